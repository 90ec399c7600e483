//! What a driver's machine can do, for `hutch doctor`.

use serde::Serialize;

/// Whether one thing is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Support {
    /// In force.
    Ok,
    /// Not in force; sandboxes run without it.
    Missing,
    /// Not in force; no sandbox runs without it.
    Required,
}

/// One thing that isolation or limits rest on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Capability {
    /// A short name, for example `user namespaces`.
    pub name: &'static str,
    /// Whether it is in force.
    pub support: Support,
    /// What that means, and the way out where there is one.
    pub detail: String,
}

/// What a driver found on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// The driver's name.
    pub driver: &'static str,
    /// Item by item, the most important first.
    pub items: Vec<Capability>,
}

impl Capabilities {
    /// Why no sandbox can run here, or nothing.
    #[must_use]
    pub fn obstacle(&self) -> Option<String> {
        let missing = |item: &&Capability| item.support == Support::Required;
        let reasons: Vec<String> = self
            .items
            .iter()
            .filter(missing)
            .map(|item| format!("{}: {}", item.name, item.detail))
            .collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }
}

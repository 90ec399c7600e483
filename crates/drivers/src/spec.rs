//! What a start asks for.

use std::fmt;
use std::path::PathBuf;

use hutch_protocol::{BootId, InstanceType, ProjectId, SandboxName};
use serde::{Deserialize, Serialize};

/// Which sandbox, on this machine: its project and its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SandboxKey {
    /// The project that owns it.
    pub project: ProjectId,
    /// Its name in the project.
    pub name: SandboxName,
}

impl fmt::Display for SandboxKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.project.as_str(), self.name.as_str())
    }
}

/// What an instance type's CPU means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuLimit {
    /// A weight against others; what nobody uses is there to take.
    #[default]
    Share,
    /// No more than that, also on an idle machine.
    Capped,
}

/// One boot of one sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartSpec {
    /// The boot's identity, chosen by the caller and used once.
    pub boot: BootId,
    /// The sandbox.
    pub sandbox: SandboxKey,
    /// The host name inside, 1–63 bytes of `a-z 0-9 -`.
    pub hostname: String,
    /// The size: memory and processes are hard limits, CPU is
    /// what [`CpuLimit`] says.
    pub instance_type: InstanceType,
    /// The host directory of the sandbox's volume ([`crate::Volume::path`]).
    pub volume: PathBuf,
}

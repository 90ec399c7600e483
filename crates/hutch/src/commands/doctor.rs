//! `hutch doctor`.

mod data_dir;
mod server;

use crate::{
    failure::Failure,
    output::{self, style::Style, table::printable},
    settings::Settings,
};
use clap::Args;
use hutch_drivers::{Capabilities, NativeDriver, Support};
use serde::Serialize;

/// Options of `hutch doctor`.
#[derive(Debug, Args)]
#[command(after_help = "\
Exits 1 when something is missing without which no sandbox runs here.

Examples:
  hutch doctor
  hutch doctor --json")]
pub struct DoctorArgs {}

/// One thing that was looked at.
#[derive(Debug, PartialEq, Serialize)]
pub struct Check {
    /// What.
    pub name: &'static str,
    /// Whether it is as it should be.
    pub support: Support,
    /// What was found, and the way out.
    pub detail: String,
}

impl Check {
    fn new(name: &'static str, support: Support, detail: impl Into<String>) -> Self {
        Self {
            name,
            support,
            detail: detail.into(),
        }
    }
}

#[derive(Serialize)]
struct Report {
    ok: bool,
    isolation: Capabilities,
    #[serde(rename = "dataDir")]
    data_dir: Vec<Check>,
    server: Vec<Check>,
}

/// Says what works here.
pub async fn run(_: DoctorArgs, settings: &Settings) -> Result<u8, Failure> {
    let isolation = tokio::task::spawn_blocking(NativeDriver::detect);
    let isolation = isolation
        .await
        .map_err(|error| Failure::new("INTERNAL_ERROR", error.to_string()))?;
    let report = Report {
        ok: isolation.obstacle().is_none(),
        isolation,
        data_dir: data_dir::check(&settings.data_dir),
        server: server::check(settings).await,
    };
    if settings.json {
        output::json(&report)?;
    } else {
        output::line(&text(&report, Style::stdout()))?;
    }
    Ok(if report.ok { 0 } else { crate::failure::FAILED })
}

fn text(report: &Report, style: Style) -> String {
    let isolation = report
        .isolation
        .items
        .iter()
        .map(|item| (item.name, item.support, item.detail.as_str()));
    let isolation: Vec<_> = isolation.collect();
    let title = format!("Isolation ({} driver)", report.isolation.driver);
    let mut sections = vec![section(&title, &isolation, style)];
    for (title, checks) in [
        ("Data directory", &report.data_dir),
        ("Server", &report.server),
    ] {
        let lines: Vec<_> = checks
            .iter()
            .map(|check| (check.name, check.support, check.detail.as_str()))
            .collect();
        sections.push(section(title, &lines, style));
    }
    sections.push(match report.isolation.obstacle() {
        None => "Sandboxes can run here.".to_owned(),
        Some(obstacle) => format!("Sandboxes cannot run here: {obstacle}"),
    });
    sections.join("\n\n")
}

fn section(title: &str, lines: &[(&str, Support, &str)], style: Style) -> String {
    let width = lines.iter().map(|(name, ..)| name.chars().count()).max();
    let mut text = title.to_owned();
    for (name, support, detail) in lines {
        let (good, word) = match support {
            Support::Ok => (true, "ok      "),
            Support::Missing => (false, "missing "),
            Support::Required => (false, "required"),
        };
        text.push_str(&format!(
            "\n  {}  {name:<width$}  {}",
            style.verdict(good, word),
            printable(detail),
            width = width.unwrap_or(0),
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use hutch_drivers::Capability;

    #[test]
    fn an_obstacle_is_said_last_and_loudest() {
        let item = Capability {
            name: "root",
            support: Support::Required,
            detail: "run hutch serve as root".to_owned(),
        };
        let report = Report {
            ok: false,
            isolation: Capabilities {
                driver: "native",
                items: vec![item],
            },
            data_dir: vec![],
            server: vec![Check::new("reachable", Support::Missing, "no")],
        };
        let text = text(&report, Style::default());
        assert!(text.starts_with("Isolation (native driver)\n  required  root  run"));
        assert!(text.ends_with("Sandboxes cannot run here: root: run hutch serve as root"));
    }
}

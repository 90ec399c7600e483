//! Finding the daemon of one boot from the host.

use std::fs;
use std::path::Path;

use serde_json::Value as Json;

/// PID 1 of a boot, as the host numbers it.
pub fn of_boot(data_dir: &Path, boot: &str) -> Option<u32> {
    let id = fs::read_to_string(data_dir.join("id")).ok()?;
    let slots = fs::read_dir(data_dir.join("run/boots")).ok()?;
    let slot = slots.flatten().find(|slot| {
        let text = fs::read_to_string(slot.path().join("boot.json")).unwrap_or_default();
        let record: Json = serde_json::from_str(&text).unwrap_or_default();
        record.to_string().contains(boot)
    })?;
    let group = format!("/hutch-{}/{}/", id.trim(), slot.file_name().to_str()?);
    let entries = fs::read_dir("/proc").ok()?.flatten();
    let mut pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.find(|pid| {
        let read =
            |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let status = read("status");
        let inside = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        let is_first = inside.is_some_and(|line| line.split_whitespace().last() == Some("1"));
        is_first && read("comm") == "sandboxd\n" && read("cgroup").contains(&group)
    })
}

/// What the data directory holds of a sandbox.
pub fn kept_of(data_dir: &Path, name: &str) -> Vec<String> {
    let mut kept = Vec::new();
    for folder in ["volumes", "logs"] {
        let projects = fs::read_dir(data_dir.join(folder)).into_iter().flatten();
        let entries = projects
            .flatten()
            .flat_map(|project| fs::read_dir(project.path()).into_iter().flatten().flatten());
        for entry in entries {
            let file = entry.file_name().to_string_lossy().into_owned();
            if file == name || file.starts_with(&format!("{name}.")) {
                kept.push(entry.path().display().to_string());
            }
        }
    }
    kept
}

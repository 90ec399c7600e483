//! Looking at processes from the host.

use std::fs;
use std::time::{Duration, Instant};

/// Waits until a condition holds; fails after a minute with what was awaited.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "never happened: {what}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The resident memory of a process, in KiB; 0 once it is gone.
pub fn resident_kib(pid: u32) -> u64 {
    status_kib(pid, "VmRSS:")
}

fn status_kib(pid: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Where the open descriptors of a process lead.
pub fn open_files(pid: u32) -> Vec<String> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return Vec::new();
    };
    let links = entries
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok());
    links
        .map(|link| link.to_string_lossy().into_owned())
        .collect()
}

/// Processes whose parent is `pid`.
pub fn children_of(pid: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|child| parent_of(*child) == Some(pid))
        .collect()
}

fn parent_of(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok()
}

/// The most memory that a process ever had resident, in KiB.
pub fn peak_kib(pid: u32) -> u64 {
    status_kib(pid, "VmHWM:")
}

/// The daemon of the only sandbox that runs.
pub fn sandboxd_of(hutch: &crate::Hutch) -> u32 {
    let id = fs::read_to_string(hutch.data_dir().join("id")).expect("the directory's id");
    let group = format!("/hutch-{}/", id.trim());
    let is_daemon = |pid: &u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("NSpid:"))
            .unwrap_or_default();
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        // By its group: after a spawner's end it is another's child.
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        name == "sandboxd\n"
            && line.split_whitespace().last() == Some("1")
            && groups.contains(&group)
    };
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let daemons: Vec<u32> = pids.filter(is_daemon).collect();
    assert_eq!(daemons.len(), 1, "one sandbox runs");
    daemons[0]
}

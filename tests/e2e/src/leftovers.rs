//! What a server has on the machine, and what it left there.

use std::fs;

use crate::Hutch;

/// The spawner of a server.
pub fn spawner_of(hutch: &Hutch) -> u32 {
    let found = hutch.processes().into_iter().find(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let is_spawner = line.split(|byte| *byte == 0).any(|word| word == b"spawner");
        // What it has prepared has the same line, and pid 1 inside.
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let inside = status.lines().find(|line| line.starts_with("NSpid:"));
        is_spawner && inside.is_some_and(|line| line.split_whitespace().count() == 2)
    });
    found.expect("a spawner")
}

/// What on the machine carries the data directory's id or path.
pub fn left_over(hutch: &Hutch) -> Vec<String> {
    let dir = hutch.data_dir();
    let id = fs::read_to_string(dir.join("id")).unwrap();
    let name = format!("hutch-{}", id.trim());
    let read = |path: String| fs::read_to_string(path).unwrap_or_default();
    let mut found: Vec<String> = hutch.processes().iter().map(u32::to_string).collect();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let process = entry.path();
        if read(format!("{}/cgroup", process.display())).contains(&name) {
            found.push(process.display().to_string());
        }
    }
    for hierarchy in fs::read_dir("/sys/fs/cgroup").unwrap().flatten() {
        let group = hierarchy.path().join(&name);
        if group.exists() {
            found.push(group.display().to_string());
        }
    }
    let lines = |text: String, part: &str| -> Vec<String> {
        let with = text.lines().filter(|line| line.contains(part));
        with.map(str::to_owned).collect()
    };
    found.extend(lines(read("/run/hutch/uid-ranges".into()), id.trim()));
    found.extend(lines(
        read("/proc/self/mountinfo".into()),
        dir.to_str().unwrap(),
    ));
    let boots = fs::read_dir(dir.join("run/boots"));
    found.extend(
        boots
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path().display().to_string()),
    );
    found
}

//! Which control group hierarchies this machine has, and where.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The v1 controllers that limits and accounts rest on.
pub const CONTROLLERS: [&str; 4] = ["memory", "pids", "cpu", "cpuacct"];

/// The mount points of the hierarchies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hierarchies {
    /// The v1 controllers of [`CONTROLLERS`] that are mounted.
    pub v1: BTreeMap<&'static str, PathBuf>,
    /// The v2 hierarchy.
    pub v2: Option<PathBuf>,
    /// The controllers that v2 offers.
    pub v2_controllers: Vec<String>,
}

impl Hierarchies {
    /// Finds the mounted hierarchies.
    pub fn detect() -> io::Result<Self> {
        let mut found = Self::parse(&fs::read_to_string("/proc/self/mountinfo")?);
        if let Some(v2) = &found.v2 {
            let offered = fs::read_to_string(v2.join("cgroup.controllers")).unwrap_or_default();
            found.v2_controllers = offered.split_whitespace().map(str::to_owned).collect();
        }
        Ok(found)
    }

    fn parse(mountinfo: &str) -> Self {
        let mut found = Self::default();
        for line in mountinfo.lines() {
            let Some((before, after)) = line.split_once(" - ") else {
                continue;
            };
            let mut kind = after.split(' ');
            let place = before.split(' ').nth(4).map(Path::new);
            match (kind.next(), place) {
                (Some("cgroup2"), Some(place)) => {
                    found.v2.get_or_insert_with(|| place.to_path_buf());
                }
                (Some("cgroup"), Some(place)) => {
                    let options = kind.nth(1).unwrap_or_default();
                    for name in CONTROLLERS {
                        if options.split(',').any(|option| option == name) {
                            found.v1.entry(name).or_insert_with(|| place.to_path_buf());
                        }
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// The distinct v1 mount points: two controllers may share one.
    pub fn v1_mounts(&self) -> Vec<&Path> {
        let mut mounts: Vec<&Path> = self.v1.values().map(PathBuf::as_path).collect();
        mounts.sort_unstable();
        mounts.dedup();
        mounts
    }

    /// Why no limits can be set here, or nothing.
    pub fn obstacle(&self) -> Option<String> {
        if self.v2.is_none() {
            return Some(
                "no cgroup v2 hierarchy is mounted: mount -t cgroup2 none /sys/fs/cgroup/unified"
                    .into(),
            );
        }
        let missing: Vec<&str> = ["memory", "pids"]
            .into_iter()
            .filter(|name| !self.v1.contains_key(name))
            .collect();
        if missing.is_empty() {
            return None;
        }
        if missing
            .iter()
            .all(|name| self.v2_controllers.iter().any(|own| own == name))
        {
            return Some(
                "the controllers are on cgroup v2, which this release has not been run on: boot \
                 with systemd.unified_cgroup_hierarchy=0"
                    .into(),
            );
        }
        Some(format!("no controller for {}", missing.join(" and ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
31 30 0:27 / /sys/fs/cgroup/cpu rw,relatime shared:1 - cgroup cgroup rw,cpu,cpuacct
32 30 0:28 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
33 30 0:29 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
34 30 0:30 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    #[test]
    fn a_mount_with_two_controllers_counts_once() {
        let found = Hierarchies::parse(HYBRID);
        assert_eq!(found.v1["cpu"], found.v1["cpuacct"]);
        assert_eq!(found.v1_mounts().len(), 3);
        assert_eq!(found.obstacle(), None);
    }

    #[test]
    fn a_pure_v2_machine_is_told_from_one_without_controllers() {
        let mut found =
            Hierarchies::parse("30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate");
        assert!(
            found
                .obstacle()
                .is_some_and(|why| why.starts_with("no controller"))
        );
        found.v2_controllers = ["memory", "pids", "cpu"].map(str::to_owned).to_vec();
        assert!(
            found
                .obstacle()
                .is_some_and(|why| why.contains("cgroup v2"))
        );
    }
}

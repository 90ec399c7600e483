//! What the driver says of a machine, and to who is not root.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::os::unix::process::CommandExt;
use std::process::Command;

use hutch_drivers::{NativeDriver, Support};
use support::PROBE;

#[test]
fn root_can_run_sandboxes_and_disk_limits_are_missing() {
    let report = NativeDriver::detect();
    assert_eq!(report.obstacle(), None);
    let disk = report
        .items
        .iter()
        .find(|item| item.name == "disk limits")
        .unwrap();
    assert_eq!(disk.support, Support::Missing);
    assert!(disk.detail.contains("plain directories"));
}

#[test]
fn who_is_not_root_is_told_the_way_out() {
    // A copy where everybody may run it.
    let dir = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(dir.path(), open).unwrap();
    let probe = dir.path().join("probe");
    std::fs::copy(PROBE, &probe).unwrap();
    let output = Command::new(&probe)
        .arg("report")
        .uid(65534)
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&output.stdout);
    assert!(words.contains("start hutch serve as root"), "{words}");
}

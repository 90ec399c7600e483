//! Archives that lead elsewhere.

use super::*;
use hutch_pax::Segment;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use tempfile::TempDir;

const FILE: Body = Body::File { size: 1 };

fn link(target: &str) -> Body {
    Body::Symlink(target.into())
}

/// A folder `out` that must stay as it is beside the target `in`.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("in")).unwrap();
    fs::create_dir_all(folder.path().join("out")).unwrap();
    fs::write(folder.path().join("out/secret"), "secret").unwrap();
    folder
}

fn untouched(folder: &TempDir) {
    assert_eq!(names(folder.path()), ["in", "out"]);
    let out = folder.path().join("out");
    assert_eq!(names(&out), ["secret"]);
    assert_eq!(fs::read_to_string(out.join("secret")).unwrap(), "secret");
    assert_eq!(fs::metadata(out.join("secret")).unwrap().nlink(), 1);
}

#[test]
fn nothing_is_made_outside_the_target() {
    for members in [
        vec![member("../out/x", FILE)],
        vec![member("/etc/hutch-copy-test", FILE)],
        vec![member("a/../../out/x", FILE)],
        vec![member("l", link("../out")), member("l/x", FILE)],
        vec![member("l", link("../out")), member("l/d/x", FILE)],
        vec![
            member("l", link("../out")),
            member("l", Body::Directory),
            member("l/x", FILE),
        ],
        vec![member("l", link("/")), member("l/etc/x", FILE)],
        vec![member("h", Body::HardLink("../out/secret".into()))],
        vec![
            member("l", link("../out")),
            member("h", Body::HardLink("l/secret".into())),
        ],
        vec![
            member("l", link("../out/secret")),
            member("h", Body::HardLink("l".into())),
        ],
        vec![member("d", Body::CharDevice { major: 1, minor: 3 })],
        vec![member("d", Body::BlockDevice { major: 8, minor: 0 })],
        vec![member("..", Body::Directory)],
        vec![member("", FILE)],
    ] {
        let folder = folder();
        let target = folder.path().join("in");
        let result = unpack(&archive(&members)[..], Target::Into(&target), MINE);
        assert!(result.is_err(), "{members:?}");
        untouched(&folder);
    }
}

#[test]
fn a_link_in_the_way_is_replaced_and_never_written_through() {
    let folder = folder();
    let target = folder.path().join("in");
    symlink("../out/secret", target.join("f")).unwrap();
    let members = [
        member("l", link("../out/secret")),
        member("l", FILE),
        member("f", FILE),
    ];
    unpack(&archive(&members)[..], Target::Into(&target), MINE).unwrap();
    for name in ["f", "l"] {
        assert!(fs::symlink_metadata(target.join(name)).unwrap().is_file());
    }
    untouched(&folder);
}

#[test]
fn a_sender_cannot_add_to_what_was_asked_for() {
    let asked = Expect::Named(b"report");
    for members in [
        vec![member(".bashrc", FILE)],
        vec![member("", Body::Directory), member("report", FILE)],
        vec![member("report", FILE), member(".bashrc", FILE)],
        vec![member("report", FILE), member("report/x", FILE)],
        vec![member("report/x", FILE)],
        vec![],
    ] {
        let folder = folder();
        let target = folder.path().join("in");
        let result = unpack(&archive(&members)[..], Target::As(&target, asked), MINE);
        assert!(result.is_err(), "{members:?}");
        let left = names(&target);
        assert!(left.is_empty() || left == ["report"], "{left:?}");
        untouched(&folder);
    }
}

#[test]
fn no_half_file_is_left_under_any_name() {
    let whole = archive(&[member("a", FILE), member("b", Body::File { size: 5000 })]);
    for cut in (0..whole.len() - 1).step_by(97) {
        let folder = folder();
        let target = folder.path().join("in");
        assert!(unpack(&whole[..cut], Target::Into(&target), MINE).is_err());
        for name in names(&target) {
            let size = fs::metadata(target.join(&name)).unwrap().len();
            let full = if name == "a" { 1 } else { 5000 };
            assert_eq!(size, full, "{name} after {cut} bytes");
        }
    }
}

#[test]
fn holes_and_pipes_come_out_as_such() {
    let folder = folder();
    let target = folder.path().join("in");
    let segments = vec![Segment {
        offset: 1 << 20,
        length: 3,
    }];
    let members = [
        member(
            "sparse",
            Body::Sparse {
                size: 1 << 30,
                segments,
            },
        ),
        member("fifo", Body::Fifo),
    ];
    unpack(&archive(&members)[..], Target::Into(&target), MINE).unwrap();
    let sparse = fs::metadata(target.join("sparse")).unwrap();
    assert_eq!(sparse.len(), 1 << 30);
    assert!(sparse.blocks() * 512 < 1 << 20);
    // A pipe and what else never ends is not read.
    assert_eq!(packed(&target.join("fifo")).len(), 1536);
}

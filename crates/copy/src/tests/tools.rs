//! Archives of other tools.

use super::*;
use std::fs;
use std::process::{Command, Stdio};

#[test]
fn every_format_of_gnu_tar_is_unpacked_and_ours_is_listed_by_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    let long = format!("{}/{}", "d".repeat(120), "f".repeat(150));
    fs::create_dir_all(at("tree").join("d".repeat(120))).unwrap();
    fs::write(at("tree").join(&long), "long").unwrap();
    fs::write(at("tree/é"), "short").unwrap();
    std::os::unix::fs::symlink(&long, at("tree/link")).unwrap();
    for format in ["gnu", "oldgnu", "posix"] {
        let mut tar = Command::new("tar");
        tar.args(["--format", format, "-C"])
            .arg(at("tree"))
            .args(["-c", "."]);
        let output = tar.output().unwrap();
        assert!(output.status.success(), "{format}");
        let target = at(format);
        fs::create_dir(&target).unwrap();
        unpack(&output.stdout[..], Target::Into(&target), MINE).expect(format);
        assert_eq!(
            fs::read_to_string(target.join(&long)).unwrap(),
            "long",
            "{format}"
        );
        assert_eq!(
            fs::read_to_string(target.join("é")).unwrap(),
            "short",
            "{format}"
        );
        let link = fs::read_link(target.join("link")).unwrap();
        assert_eq!(link, Path::new(&long), "{format}");
    }
    let mut tar = Command::new("tar");
    let child = tar.arg("-t").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let archive = packed(&at("tree"));
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), &archive).unwrap();
    let listed = child.wait_with_output().unwrap();
    assert!(listed.status.success());
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(
        listed.lines().any(|line| line == format!("tree/{long}")),
        "{listed}"
    );
}

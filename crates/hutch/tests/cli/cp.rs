//! `hutch cp`, both ways and through pipes.

use super::{good, json, refused, with_sandbox};
use hutch_e2e::Hutch;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::Path,
    process::{Command, Stdio},
};

/// Runs `hutch cp` in a folder.
fn cp(hutch: &Hutch, folder: &Path, args: &[&str]) -> std::process::Output {
    let mut command = hutch.command(&[&["--json", "cp"], args].concat());
    command.current_dir(folder).output().unwrap()
}

/// What a script in the sandbox prints.
fn sh(hutch: &Hutch, script: &str) -> String {
    good(&hutch.cli(&["exec", "main", "-c", script]))
}

/// The code of a refusal; standard output stays empty.
fn code(output: &std::process::Output) -> String {
    refused(output).1
}

fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).unwrap().flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn files_and_trees_go_in_by_the_rules() {
    let hutch = with_sandbox();
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::create_dir_all(here.join("d/sub")).unwrap();
    fs::write(here.join("d/sub/x"), "x").unwrap();
    fs::write(here.join("f"), b"\xff\x00f").unwrap();
    fs::set_permissions(here.join("f"), fs::Permissions::from_mode(0o751)).unwrap();
    symlink("sub", here.join("d/link")).unwrap();
    let put = |from: &str, to: &str| cp(&hutch, here, &[from, &format!("main:{to}")]);
    let told = json(&put("f", "/workspace/new"));
    assert_eq!((&told["entries"], &told["bytes"]), (&1.into(), &3.into()));
    json(&put("d", "/workspace/tree"));
    json(&put("d", "/workspace"));
    json(&put("d/.", "/workspace/d/sub"));
    json(&put("f", "tree/"));
    assert_eq!(
        sh(
            &hutch,
            "stat -c '%a %U %s' new; od -An -tx1 new; find . -type f -o -type l | sort; readlink d/link"
        ),
        "751 root 3\n ff 00 66\n./d/link\n./d/sub/link\n./d/sub/sub/x\n./d/sub/x\n./new\n./tree/f\n./tree/link\n./tree/sub/x\nsub\n"
    );
    let mtime = fs::metadata(here.join("f")).unwrap().mtime();
    assert_eq!(sh(&hutch, "stat -c %Y new"), format!("{mtime}\n"));
    assert_eq!(code(&put("d", "/workspace/new")), "NOT_DIRECTORY");
    assert_eq!(code(&put("f", "/workspace/none/")), "FILE_NOT_FOUND");
    assert_eq!(code(&put("f", "/workspace/none/f")), "FILE_NOT_FOUND");
    assert_eq!(code(&put("none", "/workspace")), "FILE_NOT_FOUND");
    assert_eq!(code(&put("f", "/proc/nothing")), "FILE_NOT_FOUND");
    assert_eq!(
        code(&cp(&hutch, here, &["f", "nobody:/x"])),
        "SANDBOX_NOT_FOUND"
    );
    assert_eq!(code(&cp(&hutch, here, &["f", "g"])), "USAGE");
    assert_eq!(code(&cp(&hutch, here, &["main:/a", "main:/b"])), "USAGE");
    // Over a directory no file goes, and the directory stays.
    sh(&hutch, "mkdir -p busy/f");
    assert_eq!(code(&put("f", "/workspace/busy")), "IS_DIRECTORY");
    assert_eq!(sh(&hutch, "ls -A busy"), "f\n");
}

#[test]
fn files_and_trees_come_out_by_the_rules() {
    let hutch = with_sandbox();
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    sh(
        &hutch,
        "mkdir -p d/sub; printf x > d/sub/x; printf '\\377f' > f; chmod 6751 f; ln -s d l; ln f d/hard; chown 5:6 d/sub/x",
    );
    let get = |from: &str, to: &str| cp(&hutch, here, &[&format!("main:{from}"), to]);
    fs::create_dir(here.join("into")).unwrap();
    fs::write(here.join("old"), "old").unwrap();
    json(&get("/workspace/f", "new"));
    json(&get("f", "old"));
    json(&get("f", "into"));
    json(&get("/workspace/d", "tree"));
    json(&get("/workspace/d", "into"));
    json(&get("/workspace/d/.", "into/"));
    json(&get("l", "link"));
    json(&cp(&hutch, here, &["-L", "main:l", "followed"]));
    for file in ["new", "old", "into/f", "tree/hard"] {
        assert_eq!(fs::read(here.join(file)).unwrap(), b"\xfff", "{file}");
    }
    assert_eq!(
        names(here),
        ["followed", "into", "link", "new", "old", "tree"]
    );
    assert_eq!(names(&here.join("into")), ["d", "f", "hard", "sub"]);
    assert_eq!(names(&here.join("followed")), ["hard", "sub"]);
    assert_eq!(fs::read_link(here.join("link")).unwrap(), Path::new("d"));
    let new = fs::metadata(here.join("new")).unwrap();
    assert_eq!(new.mode() & 0o7777, 0o751, "no bit that gives rights away");
    let x = |path: &str| fs::metadata(here.join(path)).unwrap();
    assert_eq!(x("tree/sub/x").uid(), rustix::process::geteuid().as_raw());
    json(&cp(&hutch, here, &["-a", "main:/workspace/d", "owned"]));
    assert_eq!((x("owned/sub/x").uid(), x("owned/sub/x").gid()), (5, 6));
    assert_eq!(code(&get("d", "new")), "NOT_DIRECTORY");
    assert_eq!(code(&get("f", "none/")), "FILE_NOT_FOUND");
    assert_eq!(code(&get("none", "x")), "FILE_NOT_FOUND");
    assert_eq!(code(&get("f/", "x")), "NOT_DIRECTORY");
    assert!(!here.join("x").exists());
}

#[test]
fn archives_go_through_pipes() {
    let hutch = with_sandbox();
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::create_dir(here.join("d")).unwrap();
    let long = "n".repeat(180);
    fs::write(here.join("d").join(&long), "long").unwrap();
    for format in ["gnu", "posix"] {
        let tar = Command::new("tar")
            .args(["--format", format, "-C"])
            .arg(here)
            .args(["-c", "d"])
            .output()
            .unwrap();
        let into = format!("main:/workspace/{format}");
        sh(&hutch, &format!("mkdir {format}"));
        good(&hutch.cli_with(&["cp", "-", &into], &tar.stdout));
        assert_eq!(sh(&hutch, &format!("cat {format}/d/*")), "long");
    }
    let archive = hutch.cli(&["cp", "main:/workspace/gnu", "-"]);
    assert!(archive.status.success());
    let mut tar = Command::new("tar");
    tar.arg("-t").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut tar = tar.spawn().unwrap();
    std::io::Write::write_all(&mut tar.stdin.take().unwrap(), &archive.stdout).unwrap();
    let listed = good(&tar.wait_with_output().unwrap());
    assert_eq!(listed, format!("gnu/\ngnu/d/\ngnu/d/{long}\n"));
    // Into a directory alone, and only archives.
    let into = |path: &str, bytes: &[u8]| {
        code(&hutch.cli_with(&["--json", "cp", "-", &format!("main:{path}")], bytes))
    };
    assert_eq!(into("/workspace/none", &archive.stdout), "FILE_NOT_FOUND");
    assert_eq!(into("/etc/hostname", &archive.stdout), "NOT_DIRECTORY");
    assert_eq!(into("/workspace", &[b'x'; 4096]), "VALIDATION_FAILED");
    assert_eq!(
        into("/workspace", &archive.stdout[..1000]),
        "FILESYSTEM_ERROR"
    );
    let outside = tar_with_a_name_that_leads_upwards();
    assert_eq!(into("/workspace/gnu", &outside), "VALIDATION_FAILED");
    assert_eq!(
        sh(
            &hutch,
            "find / -xdev -name escaped 2>/dev/null; find . -name '.hutch-*'"
        ),
        ""
    );
}

/// One member, `../escaped`.
fn tar_with_a_name_that_leads_upwards() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("escaped"), "x").unwrap();
    let tar = Command::new("tar")
        .arg("-C")
        .arg(folder.path())
        .args(["-cP", "--transform", "s,^,../,", "escaped"])
        .output()
        .unwrap();
    assert!(tar.stdout.windows(10).any(|bytes| bytes == b"../escaped"));
    tar.stdout
}

#[test]
fn a_quarter_of_a_gibibyte_goes_both_ways_in_little_memory() {
    let hutch = Hutch::start();
    good(&hutch.cli(&["sandbox", "create", "main", "--type", "standard-1"]));
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let sum = "head -c 268435456 /dev/urandom | tee big | sha256sum";
    let up = Command::new("bash")
        .args(["-c", sum])
        .current_dir(here)
        .output()
        .unwrap();
    let up = good(&up);
    sh(&hutch, "true");
    let daemon = hutch_e2e::sandboxd_of(&hutch);
    let before = [hutch.pid(), daemon].map(hutch_e2e::resident_kib);
    json(&cp(&hutch, here, &["big", "main:/workspace/big"]));
    assert_eq!(sh(&hutch, "sha256sum < big"), up);
    json(&cp(&hutch, here, &["main:big", "back"]));
    let same = Command::new("cmp")
        .args(["big", "back"])
        .current_dir(here)
        .status()
        .unwrap();
    assert!(same.success());
    let after = [hutch.pid(), daemon].map(hutch_e2e::peak_kib);
    for (before, after) in before.into_iter().zip(after) {
        assert!(
            after.saturating_sub(before) < 64 * 1024,
            "{before} to {after} KiB"
        );
    }
}

#[test]
fn what_breaks_off_leaves_no_half_file() {
    let mut hutch = Hutch::start();
    good(&hutch.cli(&["sandbox", "create", "main", "--type", "standard-1"]));
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    // A gibibyte that takes a while, and no disk.
    sh(&hutch, "truncate -s 8G big; echo old > small");
    let started = |args: &[&str]| {
        let mut command = hutch.command(&[&["cp"], args].concat());
        command
            .current_dir(here)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let some_is_there = || names(here).iter().any(|name| name.starts_with(".hutch-"));
    let mut child = started(&["main:big", "big"]);
    hutch_e2e::wait_until("a part has arrived", some_is_there);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(names(here), Vec::<String>::new());

    let file = fs::File::create(here.join("local")).unwrap();
    file.set_len(8 << 30).unwrap();
    let mut child = started(&["local", "main:small"]);
    let parts = "find /workspace -name '.hutch-*' -size +0 | wc -l";
    hutch_e2e::wait_until("a part is inside", || sh(&hutch, parts) == "1\n");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    hutch_e2e::wait_until("the part is gone", || sh(&hutch, parts) == "0\n");
    assert_eq!(sh(&hutch, "cat small"), "old\n");
    fs::remove_file(here.join("local")).unwrap();

    let child = started(&["main:big", "big"]);
    hutch_e2e::wait_until("a part has arrived", some_is_there);
    hutch.end(Signal::KILL);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(names(here), Vec::<String>::new());
    hutch.serve();
}

#[test]
fn a_link_planted_by_the_sandbox_is_never_gone_through() {
    let hutch = with_sandbox();
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::create_dir(here.join("outside")).unwrap();
    fs::create_dir(here.join("target")).unwrap();
    let outside = here.join("outside");
    // First a link, then a directory of the same name.
    sh(
        &hutch,
        &format!(
            "mkdir a b; ln -s {} a/sub; mkdir b/sub; touch b/sub/x",
            outside.display()
        ),
    );
    json(&cp(&hutch, here, &["main:a/.", "target"]));
    let output = cp(&hutch, here, &["main:b/.", "target"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(names(&outside), Vec::<String>::new());
    sh(&hutch, "mknod dev c 1 3 2>/dev/null || ln -s /dev dev");
    sh(&hutch, "rm -rf dev; cp -a /dev/null dev 2>/dev/null; true");
    if sh(&hutch, "test -c dev && echo yes; true") == "yes\n" {
        assert_eq!(
            code(&cp(&hutch, here, &["main:dev", "dev"])),
            "ARCHIVE_REFUSED"
        );
    }
    assert_eq!(
        code(&cp(&hutch, here, &["main:/dev/null", "null"])),
        "ARCHIVE_REFUSED"
    );
    assert!(!here.join("null").exists());
    let value: Value = json(&hutch.cli(&["sandbox", "get", "main", "--json"]));
    assert_eq!(value["running"], true);
}

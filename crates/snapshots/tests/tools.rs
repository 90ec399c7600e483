//! Archives are read by other tools, and theirs by us.
#![allow(clippy::unwrap_used)]

mod trees;

use std::fs::{self, File};
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hutch_pax::{Body, Limits, Reader};
use hutch_snapshots::{Entry, Kind};
use trees::{Fixture, assert_same, everything};

/// Saves one of everything and returns the archive, not compressed.
fn archive(fixture: &Fixture) -> (PathBuf, PathBuf, Vec<Entry>) {
    let tree = fixture.empty("tree");
    everything(&tree);
    let manifest = fixture.save(&tree);
    let mut entries = Vec::new();
    let each = |entry| {
        entries.push(entry);
        Ok(())
    };
    fixture.store.entries(manifest.id, each).unwrap();
    let compressed = File::open(fixture.layer(&manifest)).unwrap();
    let path = fixture.dir.path().join("archive.tar");
    let mut decoder = zstd::Decoder::new(compressed).unwrap();
    std::io::copy(&mut decoder, &mut File::create(&path).unwrap()).unwrap();
    (tree, path, entries)
}

fn run(command: &mut Command) -> Vec<u8> {
    let output = command.env("LC_ALL", "C").output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    assert_eq!(complaint, "");
    output.stdout
}

#[test]
fn gnu_tar_lists_and_unpacks_the_archive() {
    let fixture = Fixture::new();
    let (tree, archive, entries) = archive(&fixture);
    let names = run(Command::new("tar")
        .arg("-tf")
        .arg(&archive)
        .arg("--quoting-style=escape"));
    let lines = names.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(lines, entries.len());

    let into = fixture.empty("by tar");
    run(Command::new("tar")
        .args(["-xpf"])
        .arg(&archive)
        .args([
            "--warning=no-timestamp",
            "--numeric-owner",
            "--xattrs",
            "--xattrs-include=*",
            "-C",
        ])
        .arg(&into));
    assert_same(&tree, &into);
}

#[test]
fn python_reads_the_archive() {
    let fixture = Fixture::new();
    let (_, archive, entries) = archive(&fixture);
    let mut python = Command::new("python3")
        .args(["-c", PYTHON])
        .arg(&archive)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = python.stdin.take().unwrap();
    for entry in &entries {
        serde_json::to_writer(&mut stdin, entry).unwrap();
        stdin.write_all(b"\n").unwrap();
    }
    drop(stdin);
    assert!(python.wait().unwrap().success());
}

/// Compares the archive with the listing on its standard input.
const PYTHON: &str = r#"
import base64, json, os, sys, tarfile
from decimal import Decimal

def data(text):
    return base64.b64decode(text["base64"]) if isinstance(text, dict) else text.encode()

def raw(text):
    return os.fsencode(text)

entries = [json.loads(line) for line in sys.stdin.buffer]
archive = tarfile.open(sys.argv[1], encoding="utf-8", errors="surrogateescape")
members = archive.getmembers()
assert len(entries) == len(members), (len(entries), len(members))
contents = 0
for entry, member in zip(entries, members):
    path = data(entry["path"]) or b"."
    assert raw(member.name) == path, (member.name, path)
    assert member.mode == entry["mode"], member
    assert (member.uid, member.gid) == (entry["uid"], entry["gid"]), member
    mtime = member.pax_headers.get("mtime", member.mtime)
    assert Decimal(mtime) == Decimal(entry["mtime"]), member
    for xattr in entry.get("xattrs", []):
        name = data(xattr["name"]).replace(b"%", b"%25").replace(b"=", b"%3D")
        value = member.pax_headers["SCHILY.xattr." + os.fsdecode(name)]
        assert value.encode("utf-8", "surrogateescape") == data(xattr["value"]), member
    kind = entry["kind"]
    if kind == "directory":
        assert member.isdir()
    elif kind == "fifo":
        assert member.isfifo()
    elif kind == "whiteout":
        assert member.ischr() and (member.devmajor, member.devminor) == (0, 0)
    elif "symlink" in kind:
        assert member.issym() and raw(member.linkname) == data(kind["symlink"]["target"])
    elif "hardLink" in kind:
        assert member.islnk() and raw(member.linkname) == data(kind["hardLink"]["target"])
    else:
        file = kind["file"]
        assert member.isfile() and member.size == file["size"], member
        if file["size"] <= 16 << 20:
            real = os.path.join(os.path.dirname(sys.argv[1]).encode(), b"tree", path)
            assert archive.extractfile(member).read() == open(real, "rb").read(), member
            contents += 1
assert contents > 20
"#;

#[test]
fn archives_of_gnu_tar_are_read() {
    let fixture = Fixture::new();
    let (tree, _, entries) = archive(&fixture);
    let path = fixture.dir.path().join("theirs.tar");
    run(Command::new("tar")
        .args([
            "--format=posix",
            "--sparse",
            "--xattrs",
            "--sort=name",
            "-cf",
        ])
        .arg(&path)
        .args(["--exclude=node_modules/*", "--exclude=socket", "-C"])
        .arg(&tree)
        .arg("."));
    let files = read(&path);
    let ours = entries
        .iter()
        .filter(|entry| matches!(entry.kind, Kind::File { .. }));
    assert_eq!(files, ours.count());
}

/// Reads an archive and returns how many files are in it.
fn read(path: &Path) -> usize {
    let mut reader = Reader::new(BufReader::new(File::open(path).unwrap()), Limits::default());
    let mut files = 0;
    while let Some(member) = reader.member().unwrap() {
        files += usize::from(matches!(
            member.body,
            Body::File { .. } | Body::Sparse { .. }
        ));
        let mut buffer = [0; 4096];
        let mut content = 0;
        loop {
            match reader.data(&mut buffer).unwrap() {
                0 => break,
                got => content += got as u64,
            }
        }
        assert_eq!(content, member.body.stored());
    }
    files
}

#[test]
fn zstd_tests_the_archive() {
    let fixture = Fixture::new();
    let tree = fixture.empty("tree");
    fs::write(tree.join("file"), b"content").unwrap();
    let manifest = fixture.save(&tree);
    let listing = fixture.place(&manifest).join("entries.jsonl.zst");
    for path in [fixture.layer(&manifest), listing] {
        let mut decoder = zstd::Decoder::new(File::open(path).unwrap()).unwrap();
        std::io::copy(&mut decoder, &mut std::io::sink()).unwrap();
    }
}

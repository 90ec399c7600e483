//! Files as callers see them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::services::testing::Bench;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use hutch_protocol::ErrorCode;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

async fn write(bench: &Bench, path: &str, content: &[u8]) -> Result<u64, ApiError> {
    bench
        .files
        .write(path, NewContent::Bytes(Bytes::copy_from_slice(content)))
        .await
}

fn code<T: std::fmt::Debug>(result: Result<T, ApiError>) -> ErrorCode {
    result.unwrap_err().code
}

fn left_over(bench: &Bench) -> usize {
    let entries = fs::read_dir(bench.path("")).unwrap().flatten();
    entries
        .filter(|entry| {
            entry
                .file_name()
                .to_string_lossy()
                .starts_with(".sandboxd-")
        })
        .count()
}

#[tokio::test]
async fn all_bytes_round_trip() {
    let bench = Bench::new();
    let all: Vec<u8> = (0..=255).collect();
    assert_eq!(write(&bench, "b", &all).await.unwrap(), 256);
    let read = bench.files.read("b", ReadEncoding::Base64).await.unwrap();
    assert_eq!(read.content, Content::Base64(BASE64_STANDARD.encode(&all)));
    assert_eq!(fs::read(bench.path("b")).unwrap(), all);
}

#[tokio::test]
async fn content_that_is_no_text_is_never_changed() {
    let bench = Bench::new();
    write(&bench, "utf16.txt", b"\xff\xfea\0").await.unwrap();
    let read = bench
        .files
        .read("utf16.txt", ReadEncoding::Fitting)
        .await
        .unwrap();
    assert_eq!(read.content, Content::Base64("//5hAA==".into()));
    write(&bench, "empty", b"").await.unwrap();
    let read = bench
        .files
        .read("empty", ReadEncoding::Fitting)
        .await
        .unwrap();
    assert_eq!((read.content, read.size), (Content::Text(String::new()), 0));
    write(&bench, "nul.json", b"\"a\0\"").await.unwrap();
    let read = bench
        .files
        .read("nul.json", ReadEncoding::Fitting)
        .await
        .unwrap();
    assert_eq!(
        (read.content, read.media_type),
        (Content::Text("\"a\0\"".into()), "application/json")
    );
}

#[tokio::test]
async fn hidden_is_judged_on_the_entrys_own_name() {
    let bench = Bench::new();
    bench
        .exec("mkdir -p .hidden/foo/bar; touch .hidden/foo/.x")
        .await;
    let list = |include_hidden| {
        bench.files.list(
            ".hidden/foo",
            ListOptions {
                recursive: false,
                include_hidden,
            },
        )
    };
    let names = |files: Vec<hutch_protocol::file::FileInfo>| -> Vec<String> {
        files.into_iter().map(|file| file.name).collect()
    };
    assert_eq!(names(list(false).await.unwrap()), ["bar"]);
    assert_eq!(names(list(true).await.unwrap()), [".x", "bar"]);
}

#[tokio::test]
async fn listing_what_is_no_directory_is_a_typed_error() {
    let bench = Bench::new();
    write(&bench, "file", b"x").await.unwrap();
    let options = ListOptions::default();
    assert_eq!(
        code(bench.files.list("file", options).await),
        ErrorCode::NotDirectory
    );
    assert_eq!(
        code(bench.files.list("missing", options).await),
        ErrorCode::FileNotFound
    );
    bench.files.make_directory("empty", false).await.unwrap();
    assert_eq!(bench.files.list("empty", options).await.unwrap(), []);
}

#[tokio::test]
async fn a_listing_describes_each_entry_and_follows_no_link() {
    let bench = Bench::new();
    bench
        .exec("mkdir -p d/e; printf abc > d/e/f; chmod 640 d/e/f; ln -s /etc d/l; mkfifo d/p")
        .await;
    let options = ListOptions {
        recursive: true,
        include_hidden: true,
    };
    let files = bench.files.list("d", options).await.unwrap();
    let told: Vec<_> = files
        .iter()
        .map(|f| (f.relative_path.as_str(), format!("{:?}", f.r#type)))
        .collect();
    let expected = [
        ("e", "Directory"),
        ("e/f", "File"),
        ("l", "Symlink"),
        ("p", "Other"),
    ];
    assert_eq!(told, expected.map(|(path, kind)| (path, kind.to_owned())));
    let file = &files[1];
    assert_eq!(
        (file.size, file.mode.as_str(), file.permissions.executable),
        (3, "rw-r-----", false)
    );
    assert_eq!(file.absolute_path, bench.path("d/e/f").to_str().unwrap());
    assert!(file.modified_at.ends_with('Z'));
}

#[tokio::test]
async fn paths_never_meet_a_shell() {
    let bench = Bench::new();
    for name in [
        "a'; touch pwn; '.txt",
        "$(touch pwn)",
        "-rf",
        "line\nbreak",
        "ünï \t",
    ] {
        write(&bench, name, b"x").await.unwrap();
        assert_eq!(fs::read(bench.path(name)).unwrap(), b"x");
        bench.files.delete(name).await.unwrap();
    }
    assert!(!bench.path("pwn").exists());
}

#[tokio::test]
async fn overwriting_keeps_mode_owner_and_links() {
    let bench = Bench::new();
    write(&bench, "f", b"old").await.unwrap();
    assert_eq!(
        fs::metadata(bench.path("f")).unwrap().mode() & 0o7777,
        0o644
    );
    fs::set_permissions(bench.path("f"), fs::Permissions::from_mode(0o4751)).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(bench.path("f"), Some(1234), Some(4321)).unwrap();
        fs::set_permissions(bench.path("f"), fs::Permissions::from_mode(0o4751)).unwrap();
    }
    let before = fs::metadata(bench.path("f")).unwrap();
    symlink("f", bench.path("soft")).unwrap();
    write(&bench, "soft", b"new").await.unwrap();
    assert!(
        fs::symlink_metadata(bench.path("soft"))
            .unwrap()
            .is_symlink()
    );
    let after = fs::metadata(bench.path("f")).unwrap();
    assert_eq!(fs::read(bench.path("f")).unwrap(), b"new");
    assert_eq!(
        (after.mode(), after.uid(), after.gid()),
        (before.mode(), before.uid(), before.gid())
    );
    assert_ne!(
        after.ino(),
        before.ino(),
        "a file with one name is replaced"
    );

    fs::hard_link(bench.path("f"), bench.path("hard")).unwrap();
    write(&bench, "hard", b"shared").await.unwrap();
    assert_eq!(fs::read(bench.path("f")).unwrap(), b"shared");
    assert_eq!(fs::metadata(bench.path("f")).unwrap().nlink(), 2);

    symlink("later", bench.path("dangling")).unwrap();
    write(&bench, "dangling", b"x").await.unwrap();
    assert_eq!(fs::read(bench.path("later")).unwrap(), b"x");
    assert_eq!(left_over(&bench), 0);
}

#[tokio::test]
async fn writing_makes_parents_and_refuses_what_is_no_file() {
    let bench = Bench::new();
    write(&bench, "new/deep/f", b"x").await.unwrap();
    assert_eq!(fs::read(bench.path("new/deep/f")).unwrap(), b"x");
    assert_eq!(
        code(write(&bench, "new", b"x").await),
        ErrorCode::IsDirectory
    );
    assert_eq!(
        code(write(&bench, "new/deep/f/g", b"x").await),
        ErrorCode::NotDirectory
    );
    bench.exec("mkfifo fifo").await;
    assert_eq!(
        code(write(&bench, "fifo", b"x").await),
        ErrorCode::FilesystemError
    );
    assert_eq!(
        code(bench.files.read("fifo", ReadEncoding::Fitting).await),
        ErrorCode::FilesystemError
    );
    assert_eq!(
        code(bench.files.read("new", ReadEncoding::Fitting).await),
        ErrorCode::IsDirectory
    );
    assert_eq!(
        code(write(&bench, "slash/", b"x").await),
        ErrorCode::IsDirectory
    );
    for path in ["", "a\0b", &"x/".repeat(3000)] {
        assert_eq!(
            code(write(&bench, path, b"x").await),
            ErrorCode::ValidationFailed
        );
    }
    assert_eq!(left_over(&bench), 0);
}

#[tokio::test]
async fn whole_reads_have_a_limit() {
    let bench = Bench::new();
    bench.exec("truncate -s 33554433 big").await;
    let error = bench
        .files
        .read("big", ReadEncoding::Base64)
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::FileTooLarge);
    assert_eq!(error.details["actualSize"], 33_554_433);
    // Files of /proc say that they have no length.
    let read = bench
        .files
        .read("/proc/self/status", ReadEncoding::Fitting)
        .await
        .unwrap();
    assert!(matches!(read.content, Content::Text(text) if text.starts_with("Name:")));
}

#[tokio::test]
async fn removing_and_renaming() {
    let bench = Bench::new();
    assert_eq!(
        code(bench.files.delete("gone").await),
        ErrorCode::FileNotFound
    );
    bench.files.make_directory("d", false).await.unwrap();
    assert_eq!(code(bench.files.delete("d").await), ErrorCode::IsDirectory);
    assert_eq!(
        code(bench.files.make_directory("d", false).await),
        ErrorCode::FileExists
    );
    bench.files.make_directory("d/e/f", true).await.unwrap();
    symlink("nowhere", bench.path("link")).unwrap();
    assert!(!bench.files.exists("link").await.unwrap());
    bench.files.delete("link").await.unwrap();
    write(&bench, "a", b"x").await.unwrap();
    bench.files.rename("file.rename", "a", "b").await.unwrap();
    bench.files.rename("file.move", "b", "d").await.unwrap();
    assert!(bench.files.exists("d/b").await.unwrap());
    assert!(!bench.files.exists("d/b/c").await.unwrap());
    let missing = bench.files.rename("file.move", "a", "c").await.unwrap_err();
    assert_eq!(
        (missing.code, missing.message.as_str()),
        (ErrorCode::FileNotFound, "Source file not found: a")
    );
}

#[tokio::test]
async fn a_move_between_file_systems_keeps_the_tree() {
    let bench = Bench::new();
    let Ok(elsewhere) = tempfile::tempdir_in("/dev/shm") else {
        return;
    };
    bench
        .exec("mkdir -p t/u; printf abc > t/u/f; chmod 751 t/u; ln -s u t/l; touch -d @1000 t/u/f")
        .await;
    let to = elsewhere.path().join("t");
    bench
        .files
        .rename("file.move", "t", to.to_str().unwrap())
        .await
        .unwrap();
    assert!(!bench.path("t").exists());
    assert_eq!(fs::read(to.join("u/f")).unwrap(), b"abc");
    assert_eq!(fs::metadata(to.join("u/f")).unwrap().mtime(), 1000);
    assert_eq!(fs::metadata(to.join("u")).unwrap().mode() & 0o777, 0o751);
    assert_eq!(fs::read_link(to.join("l")).unwrap().to_str(), Some("u"));
}

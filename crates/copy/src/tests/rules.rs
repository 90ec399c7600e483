//! What `docker cp` means by its paths.

use super::*;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;
use tempfile::TempDir;

/// A folder with a file `f`, a directory `d` with `d/in`, and a target folder `t`
/// with a file `file` and a directory `dir`.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    fs::create_dir_all(at("d")).unwrap();
    fs::create_dir_all(at("t/dir")).unwrap();
    fs::write(at("f"), "f").unwrap();
    fs::write(at("d/in"), "in").unwrap();
    fs::write(at("t/file"), "old").unwrap();
    folder
}

fn copy(folder: &TempDir, from: &str, to: &str) -> Result<Copied, CopyError> {
    let (from, to) = (path(folder, from), path(folder, to));
    let name = Source::name_of(&from);
    let expect = match &name {
        Some(name) => Expect::Named(name),
        None => Expect::Contents,
    };
    let (_, archive) = pack(&Source::open(&from, false)?, Vec::new())?;
    unpack(&archive[..], Target::As(&to, expect), MINE)
}

/// Joined as text, since the end of a path matters here.
fn path(folder: &TempDir, path: &str) -> PathBuf {
    PathBuf::from(format!("{}/{path}", folder.path().display()))
}

fn fault(result: Result<Copied, CopyError>) -> TargetFault {
    match result {
        Err(CopyError::Target { fault, .. }) => fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_goes_to_a_name_over_a_file_or_into_a_directory() {
    let folder = folder();
    let read = |at: &str| fs::read_to_string(path(&folder, at)).unwrap();
    copy(&folder, "f", "t/new").unwrap();
    copy(&folder, "f", "t/file").unwrap();
    copy(&folder, "f", "t/dir").unwrap();
    copy(&folder, "d/in", "t/dir/").unwrap();
    assert_eq!((read("t/new"), read("t/file")), ("f".into(), "f".into()));
    assert_eq!(
        (read("t/dir/f"), read("t/dir/in")),
        ("f".into(), "in".into())
    );
    assert_eq!(fault(copy(&folder, "f", "t/none/")), TargetFault::Missing);
    assert_eq!(
        fault(copy(&folder, "f", "t/file/")),
        TargetFault::NotDirectory
    );
    assert!(copy(&folder, "f", "t/none/f").is_err());
    assert_eq!(names(&path(&folder, "t")), ["dir", "file", "new"]);
}

#[test]
fn a_directory_goes_to_a_new_name_or_into_a_directory_and_its_contents_with_a_dot() {
    let folder = folder();
    copy(&folder, "d", "t/new").unwrap();
    copy(&folder, "d", "t/slash/").unwrap();
    copy(&folder, "d/.", "t/dot").unwrap();
    copy(&folder, "d", "t/dir").unwrap();
    copy(&folder, "d/.", "t/dir").unwrap();
    for at in ["new", "slash", "dot", "dir/d"] {
        assert_eq!(names(&path(&folder, &format!("t/{at}"))), ["in"], "{at}");
    }
    assert_eq!(names(&path(&folder, "t/dir")), ["d", "in"]);
    for from in ["d", "d/."] {
        assert_eq!(
            fault(copy(&folder, from, "t/file")),
            TargetFault::NotDirectory
        );
    }
    assert!(
        copy(&folder, "d", "t/none/below").is_err(),
        "only one level is made"
    );
    assert!(copy(&folder, "f/.", "t/x").is_err());
    assert!(copy(&folder, "f/", "t/x").is_err());
    assert!(copy(&folder, "none", "t/x").is_err());
    assert_eq!(fault(copy(&folder, "d/..", "t/x")), TargetFault::Unsuitable);
}

#[test]
fn directories_merge_and_never_change_places_with_files() {
    let folder = folder();
    fs::create_dir_all(path(&folder, "t/dir/d")).unwrap();
    fs::write(path(&folder, "t/dir/d/old"), "old").unwrap();
    copy(&folder, "d", "t/dir").unwrap();
    assert_eq!(names(&path(&folder, "t/dir/d")), ["in", "old"]);
    // A file where the archive has a directory, and the other way round.
    fs::write(path(&folder, "t/d"), "a file").unwrap();
    assert_eq!(fault(copy(&folder, "d", "t")), TargetFault::NotDirectory);
    fs::create_dir(path(&folder, "t/f")).unwrap();
    assert_eq!(fault(copy(&folder, "f", "t")), TargetFault::IsDirectory);
    assert_eq!(names(&path(&folder, "t")), ["d", "dir", "f", "file"]);
}

#[test]
fn a_link_is_copied_as_a_link_unless_it_is_to_be_followed() {
    let folder = folder();
    symlink("d", path(&folder, "l")).unwrap();
    symlink("gone", path(&folder, "dangling")).unwrap();
    copy(&folder, "l", "t/l").unwrap();
    copy(&folder, "dangling", "t/dangling").unwrap();
    assert_eq!(fs::read_link(path(&folder, "t/l")).unwrap(), Path::new("d"));
    assert_eq!(
        fs::read_link(path(&folder, "t/dangling")).unwrap(),
        Path::new("gone")
    );
    // With a slash, and with a dot, it is what it leads to.
    copy(&folder, "l/", "t/one").unwrap();
    copy(&folder, "l/.", "t/two").unwrap();
    let source = Source::open(&path(&folder, "l"), true).unwrap();
    let (_, archive) = pack(&source, Vec::new()).unwrap();
    let to = path(&folder, "t/three");
    unpack(&archive[..], Target::As(&to, Expect::Named(b"l")), MINE).unwrap();
    for at in ["one", "two", "three"] {
        assert_eq!(names(&path(&folder, &format!("t/{at}"))), ["in"], "{at}");
    }
    // A target that is a link is what it leads to, be it there or not.
    symlink("dir", path(&folder, "t/to-dir")).unwrap();
    symlink("later", path(&folder, "t/to-later")).unwrap();
    copy(&folder, "f", "t/to-dir").unwrap();
    copy(&folder, "f", "t/to-later").unwrap();
    assert_eq!(names(&path(&folder, "t/dir")), ["f"]);
    assert_eq!(fs::read_to_string(path(&folder, "t/later")).unwrap(), "f");
}

#[test]
fn modes_times_and_links_between_files_are_kept() {
    let folder = folder();
    let at = |name: &str| path(&folder, name);
    fs::set_permissions(at("d/in"), fs::Permissions::from_mode(0o4751)).unwrap();
    fs::hard_link(at("d/in"), at("d/other")).unwrap();
    fs::set_permissions(at("d"), fs::Permissions::from_mode(0o500)).unwrap();
    let copied = copy(&folder, "d", "t/new").unwrap();
    assert_eq!((copied.entries, copied.bytes), (3, 2));
    let (old, new) = (
        fs::metadata(at("d/in")).unwrap(),
        fs::metadata(at("t/new/in")).unwrap(),
    );
    assert_eq!(new.mode() & 0o7777, 0o751, "no bit that gives rights away");
    assert_eq!(
        (old.mtime(), old.mtime_nsec()),
        (new.mtime(), new.mtime_nsec())
    );
    assert_eq!(new.ino(), fs::metadata(at("t/new/other")).unwrap().ino());
    assert_eq!(fs::metadata(at("t/new")).unwrap().mode() & 0o7777, 0o500);
    let kept = Owners {
        keep: true,
        set_id: true,
    };
    let archive = packed(&at("d"));
    unpack(&archive[..], Target::Into(&at("t/dir")), kept).unwrap();
    assert_eq!(
        fs::metadata(at("t/dir/d/in")).unwrap().mode() & 0o7777,
        0o4751
    );
}

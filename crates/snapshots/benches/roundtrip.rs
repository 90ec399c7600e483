//! How long a save and a restore take, beside `tar` and `zstd` on the same tree
//! in the same run: `cargo bench -p hutch-snapshots`. The tree is on the disk of
//! `TMPDIR`.
//!
//! Both sides make what they write durable: ours by itself, theirs by `sync`.
//! Beside the time on the clock is the time on processors, which says more on a
//! machine that is busy.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use hutch_snapshots::{LocalStore, Manifest, Rules, SaveMeta, TreeFingerprint};

const FILES: usize = 20_000;
const BYTES: usize = 300 << 20;
const RUNS: usize = 3;

fn main() {
    // Test runners start benches too, without this; there is nothing to test here.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let tree = dir.path().join("tree");
    build(&tree);
    let store = LocalStore::open(&dir.path().join("store")).unwrap();
    println!(
        "{FILES} files, {} MiB; best of {RUNS}, ms on the clock / on processors",
        BYTES >> 20
    );

    let mut ours = [(Duration::MAX, u64::MAX); 6];
    let mut theirs = [(Duration::MAX, u64::MAX); 3];
    let mut lengths = [0, 0];
    for run in 0..RUNS {
        let fresh = |name: &str| {
            let path = dir.path().join(format!("{name} {run}"));
            fs::create_dir(&path).unwrap();
            path
        };
        let (took, _) = timed(|| TreeFingerprint::of(open(&tree), Rules::workspace()).unwrap());
        best(&mut ours[0], took);
        let (took, manifest) = timed(|| store.save(open(&tree), SaveMeta::default()).unwrap());
        best(&mut ours[1], took);
        let (took, _) = timed(|| store.verify(manifest.id).unwrap());
        best(&mut ours[2], took);
        let into = fresh("ours");
        let (took, _) = timed(|| store.restore(manifest.id, open(&into)).unwrap());
        best(&mut ours[3], took);
        for file in 0..10 {
            let name = format!("d{file}/s{file}/f{file}.rs");
            fs::write(into.join(name), format!("changed in run {run}")).unwrap();
        }
        let on = |base: &Manifest| SaveMeta {
            base: Some(base.id),
            ..SaveMeta::default()
        };
        let (took, changed) = timed(|| store.save(open(&into), on(&manifest)).unwrap());
        best(&mut ours[4], took);
        let (took, _) = timed(|| store.save(open(&into), on(&changed)).unwrap());
        best(&mut ours[5], took);

        let archive = dir.path().join(format!("theirs {run}.tar.zst"));
        let script = "tar --format=posix --sparse --xattrs -C \"$1\" -c . | zstd -1 -q -o \"$2\"; sync \"$2\"";
        let (took, ()) = timed(|| shell(script, &tree, &archive));
        best(&mut theirs[0], took);
        let script =
            "zstd -dc \"$2\" | tar -t --quoting-style=escape > /dev/null; b2sum \"$2\" > /dev/null";
        let (took, ()) = timed(|| shell(script, &tree, &archive));
        best(&mut theirs[1], took);
        let into = fresh("theirs");
        let script = "zstd -dc \"$2\" | tar -C \"$1\" -xp --xattrs; sync -f \"$1\"";
        let (took, ()) = timed(|| shell(script, &into, &archive));
        best(&mut theirs[2], took);
        lengths = [manifest.layers[0].length, archive.metadata().unwrap().len()];
    }
    for (what, ours, theirs) in [
        ("fingerprint", ours[0], None),
        ("save, read back", ours[1], Some(theirs[0])),
        ("verify", ours[2], Some(theirs[1])),
        ("restore", ours[3], Some(theirs[2])),
        ("save 10 changes", ours[4], None),
        ("save no change", ours[5], None),
    ] {
        let show = |(clock, processors): Took| format!("{:6} /{processors:6}", clock.as_millis());
        let theirs = theirs.map_or_else(String::new, show);
        println!("{what:16} {}   tar|zstd {theirs}", show(ours));
    }
    println!("archive bytes    {}   tar|zstd {}", lengths[0], lengths[1]);
}

/// Time on the clock, and milliseconds on processors.
type Took = (Duration, u64);

fn best(best: &mut Took, took: Took) {
    *best = (best.0.min(took.0), best.1.min(took.1));
}

fn timed<T>(work: impl FnOnce() -> T) -> (Took, T) {
    // What came before is not to be paid for here.
    rustix::fs::sync();
    let (begun, before) = (Instant::now(), on_processors());
    let done = work();
    ((begun.elapsed(), on_processors() - before), done)
}

/// What this process and its children have taken so far, in milliseconds.
fn on_processors() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let (_, after_name) = stat.rsplit_once(')').unwrap();
    let fields = after_name.split_ascii_whitespace().skip(11).take(4);
    // The unit is a hundredth of a second.
    fields.map(|field| field.parse::<u64>().unwrap() * 10).sum()
}

fn shell(script: &str, one: &Path, other: &Path) {
    let status = Command::new("sh")
        .args(["-ec", script, "sh"])
        .args([one, other])
        .status();
    assert!(status.unwrap().success());
}

fn open(path: &Path) -> std::os::fd::OwnedFd {
    File::open(path).unwrap().into()
}

/// A tree like a checkout with its builds: most files small, some large, text
/// and noise.
fn build(tree: &Path) {
    let mut state = 42_u64;
    let mut random = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let large = 20;
    let small = (BYTES / 2) / (FILES - large);
    for file in 0..FILES {
        let directory: PathBuf = tree.join(format!("d{}/s{}", file % 100, file % 700));
        fs::create_dir_all(&directory).unwrap();
        let length = if file < large {
            (BYTES / 2) / large
        } else {
            small
        };
        let mut content = Vec::with_capacity(length + 64);
        while content.len() < length {
            match random() % 3 {
                0 => content.extend_from_slice(&random().to_le_bytes()),
                1 => content
                    .extend_from_slice(b"    let value = source.next().unwrap_or_default();\n"),
                _ => content
                    .extend_from_slice(format!("fn f{}() {{}}\n", random() % 1000).as_bytes()),
            }
        }
        content.truncate(length);
        fs::write(directory.join(format!("f{file}.rs")), content).unwrap();
    }
}

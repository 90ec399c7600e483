//! What sleeping and restoring cost, beside GNU tar and zstd on the same tree.

use super::fleet::{Fleet, run, run_true};
use super::own_server::scratch;
use super::report::Report;
use crate::failure::Failure;
use hutch_client::Sandbox;
use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

/// 20,000 files of 15 KiB in 200 folders, of text that zstd takes a quarter of.
const TREE: &str = "for d in $(seq 200); do mkdir d$d && base64 -w 0 /dev/urandom | head -c 1572900 | split -b 15729 -a 3 - d$d/f || exit 1; done; sync";
/// Ten changes: an edit, an append, new files, a removal, a rename.
const CHANGES: &str = "for d in 1 2 3 4; do echo change >> d$d/faaa; done; echo new > d5/new1; echo new > d6/new2; rm d7/faab; mv d8/faab d8/moved; : > d9/faac; chmod 600 d10/faaa";

/// Needs the server's data directory, to take a volume away.
pub async fn measure(
    fleet: &mut Fleet,
    data_dir: &Path,
    rounds: u32,
    report: &mut Report,
) -> Result<(), Failure> {
    for _ in 0..rounds {
        let sandbox = fleet.create().await?;
        run(&sandbox, TREE).await?;
        let place = scratch("tree").map_err(|error| failed(&error.to_string()))?;
        let measured = one(&sandbox, data_dir, &place, report).await;
        let removed = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(place)).await;
        measured?;
        removed
            .map_err(std::io::Error::other)
            .flatten()
            .map_err(|error| failed(&error.to_string()))?;
        fleet.destroy(&sandbox).await?;
    }
    for (ours, theirs, name) in [
        ("first_snapshot", "tar_zstd", "first_snapshot_ratio"),
        ("restore", "tar_zstd_extract", "restore_ratio"),
    ] {
        let ratio = report.percentile(ours, 50) / report.percentile(theirs, 50);
        report.value(name, ratio, "times GNU tar and zstd");
    }
    Ok(())
}

async fn one(
    sandbox: &Sandbox,
    data_dir: &Path,
    place: &Path,
    report: &mut Report,
) -> Result<(), Failure> {
    let volume = volume(data_dir, sandbox)?;
    let tree = volume.join("content/workspace");
    // Beside a copy in the page cache, as the tree in the sandbox is.
    let archive = place.join("tree.tar.zst");
    let pack = tar(
        &["--zstd", "-cf"],
        &archive,
        &["-C", &tree.to_string_lossy(), "."],
    );
    report.add("tar_zstd", timed(pack, archive.clone()).await?);
    report.add("first_snapshot", asleep(sandbox).await?);

    run(sandbox, CHANGES).await?;
    report.add("sleep_small", asleep(sandbox).await?);
    run_true(sandbox).await?;
    report.add("sleep_unchanged", asleep(sandbox).await?);

    let out = place.join("out");
    std::fs::create_dir(&out).map_err(|error| failed(&error.to_string()))?;
    let unpack = tar(
        &["--zstd", "-xf"],
        &archive,
        &["-C", &out.to_string_lossy()],
    );
    report.add("tar_zstd_extract", timed(unpack, out).await?);
    // As on a machine that has the snapshot and nothing else. Moved, not removed:
    // writing to what a disk has just given up is slow, and tar did not have to.
    let taken = data_dir.join("bench-taken");
    std::fs::rename(volume, &taken).map_err(|error| failed(&error.to_string()))?;
    let begun = Instant::now();
    sandbox.start(false).await?;
    report.add("restore", begun.elapsed());
    let removed = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(taken)).await;
    removed
        .map_err(std::io::Error::other)
        .flatten()
        .map_err(|error| failed(&error.to_string()))?;
    run(sandbox, "test $(find . -type f | wc -l) = 20001").await
}

async fn asleep(sandbox: &Sandbox) -> Result<Duration, Failure> {
    let begun = Instant::now();
    sandbox.sleep().await?;
    Ok(begun.elapsed())
}

/// The directory of a sandbox's volume.
fn volume(data_dir: &Path, sandbox: &Sandbox) -> Result<PathBuf, Failure> {
    let name = sandbox.path().rsplit('/').next().unwrap_or_default();
    let projects = std::fs::read_dir(data_dir.join("volumes"));
    let projects = projects.map_err(|error| failed(&error.to_string()))?;
    let mut places = projects.flatten().map(|project| project.path().join(name));
    places
        .find(|place| place.is_dir())
        .ok_or_else(|| failed("the sandbox has no volume in the data directory"))
}

fn tar(mode: &[&str], archive: &Path, rest: &[&str]) -> Command {
    let mut command = Command::new("tar");
    command.args(mode).arg(archive).args(rest);
    command
}

/// Runs a program, and then has what it wrote on the disk as ours is.
async fn timed(mut command: Command, written: PathBuf) -> Result<Duration, Failure> {
    let run = move || {
        let begun = Instant::now();
        let output = command.output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(std::io::Error::other(format!("tar: {}", said.trim())));
        }
        let file = std::fs::File::open(&written)?;
        if file.metadata()?.is_dir() {
            rustix::fs::syncfs(&file)?;
        } else {
            file.sync_all()?;
        }
        Ok(begun.elapsed())
    };
    let ran = tokio::task::spawn_blocking(run).await;
    ran.map_err(std::io::Error::other)
        .flatten()
        .map_err(|error| failed(&error.to_string()))
}

fn failed(reason: &str) -> Failure {
    Failure::new("BENCH_FAILED", format!("snapshots: {reason}"))
}

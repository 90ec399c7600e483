//! Memory of sandboxes that idle, of the server and of the spawner.

use super::fleet::{Fleet, run_true};
use super::report::Report;
use crate::failure::Failure;
use futures_util::future::join_all;
use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

/// How many sandboxes idle together.
const SANDBOXES: usize = 200;
/// How many start at once, so that the machine is not what is measured.
const AT_ONCE: usize = 20;
/// How long they idle before they are looked at.
const IDLE: Duration = Duration::from_secs(10);
const MIB: f64 = 1024.0 * 1024.0;

/// Needs a server on this machine, as root, since it is looked at from outside.
pub async fn measure(
    fleet: &mut Fleet,
    server: u32,
    data_dir: &Path,
    report: &mut Report,
) -> Result<(), Failure> {
    let first = fleet.create().await?;
    run_true(&first).await?;
    fleet.destroy(&first).await?;
    let spawner = spawner(data_dir)?;
    let before = (anonymous(server)?, anonymous(spawner)?);
    report.value("server_memory_0", resident(server)? / MIB, "MiB");
    let sandboxes = fleet.addresses(SANDBOXES);
    for some in sandboxes.chunks(AT_ONCE) {
        let options = fleet.options();
        let calls = some.iter().map(|sandbox| async move {
            sandbox.create(options).await?;
            run_true(sandbox).await
        });
        for started in join_all(calls).await {
            started?;
        }
    }
    tokio::time::sleep(IDLE).await;
    report.value("server_memory_200", resident(server)? / MIB, "MiB");
    let after = (anonymous(server)?, anonymous(spawner)?);
    let share = |before: f64, after: f64| (after - before).max(0.0) / SANDBOXES as f64 / MIB;
    let (server_share, spawner_share) = (share(before.0, after.0), share(before.1, after.1));
    let mut own = groups(spawner)?;
    own.sort_by(f64::total_cmp);
    let Some(middle) = own.get(own.len() / 2) else {
        return Err(failed("no sandbox was found by its spawner"));
    };
    let own = middle / MIB;
    report.value("idle_memory", own + server_share + spawner_share, "MiB");
    report.value("idle_memory_sandbox", own, "MiB");
    report.value("idle_memory_server", server_share, "MiB");
    report.value("idle_memory_spawner", spawner_share, "MiB");
    fleet.clean_up().await
}

/// The spawner of a data directory.
fn spawner(data_dir: &Path) -> Result<u32, Failure> {
    let own = data_dir.as_os_str().as_encoded_bytes();
    let found = processes().find(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0);
        words.any(|word| word == b"spawner") && words.any(|word| word == own)
    });
    found.ok_or_else(|| failed("the server of this run has no spawner; sandboxes need root"))
}

/// What the memory groups of a spawner's sandboxes hold: everything, kernel
/// memory too, less the page cache, which the machine takes back when it wants.
fn groups(spawner: u32) -> Result<Vec<f64>, Failure> {
    let daemons = processes().filter(|pid| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        field(&status, "PPid:") == Some(f64::from(spawner)) && status.starts_with("Name:\tsandboxd")
    });
    daemons
        .map(|pid| told(group(pid).and_then(|group| held(&group))))
        .collect()
}

/// The sandbox's group: the parent of the daemon's.
fn group(pid: u32) -> io::Result<PathBuf> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
    let v1 = text.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let memory = controllers.split(',').any(|name| name == "memory");
        memory.then(|| Path::new("/sys/fs/cgroup/memory").join(path.trim_start_matches('/')))
    });
    let v2 = || {
        let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
        Some(Path::new("/sys/fs/cgroup").join(path))
    };
    let daemon = v1.or_else(v2).ok_or(io::ErrorKind::NotFound)?;
    Ok(daemon.parent().unwrap_or(&daemon).to_owned())
}

fn held(group: &Path) -> io::Result<f64> {
    let stat = fs::read_to_string(group.join("memory.stat"))?;
    let number = |text: String| text.trim().parse::<f64>().map_err(io::Error::other);
    let v1 = fs::read_to_string(group.join("memory.usage_in_bytes"));
    // What is in tmpfs counts as cache there, and cannot be taken back.
    let (usage, cache, tmpfs) = match v1 {
        Ok(text) => (number(text)?, "total_cache ", "total_shmem "),
        Err(_) => {
            let text = fs::read_to_string(group.join("memory.current"))?;
            (number(text)?, "file ", "shmem ")
        }
    };
    let cache = field(&stat, cache).unwrap_or(0.0) - field(&stat, tmpfs).unwrap_or(0.0);
    Ok(usage - cache.max(0.0))
}

fn resident(pid: u32) -> Result<f64, Failure> {
    let status = told(fs::read_to_string(format!("/proc/{pid}/status")))?;
    Ok(field(&status, "VmRSS:").unwrap_or(0.0) * 1024.0)
}

fn anonymous(pid: u32) -> Result<f64, Failure> {
    let status = told(fs::read_to_string(format!("/proc/{pid}/status")))?;
    Ok(field(&status, "RssAnon:").unwrap_or(0.0) * 1024.0)
}

/// The number after a name at the start of a line.
fn field(text: &str, name: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn told<T>(result: io::Result<T>) -> Result<T, Failure> {
    result.map_err(|error| failed(&error.to_string()))
}

fn failed(reason: &str) -> Failure {
    Failure::new("BENCH_FAILED", format!("memory: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_by_name() {
        let text = "Name:\tx\nVmRSS:\t  120 kB\ncache 7\ntotal_cache 9\n";
        assert_eq!(field(text, "VmRSS:"), Some(120.0));
        assert_eq!(field(text, "total_cache "), Some(9.0));
        assert_eq!(field(text, "VmSwap:"), None);
    }
}

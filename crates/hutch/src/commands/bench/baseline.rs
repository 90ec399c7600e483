//! What hutch is judged against: the same `true` by other means.

use super::{crun::Crun, report::Report};
use crate::failure::Failure;
use std::{
    collections::BTreeMap,
    process::{Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

const BWRAP: &[&str] = &[
    "--unshare-all",
    "--die-with-parent",
    "--ro-bind",
    "/",
    "/",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "/bin/true",
];

/// The programs that can be measured here.
pub struct Baselines {
    crun: Result<Arc<Mutex<Crun>>, String>,
    bwrap: Result<(), String>,
}

impl Baselines {
    /// Finds out what works, by trying each once.
    pub async fn prepare() -> Result<Self, Failure> {
        blocking(|| {
            Ok(Self {
                crun: Crun::start().map(|crun| Arc::new(Mutex::new(crun))),
                bwrap: timed("bwrap", BWRAP).map(drop),
            })
        })
        .await
    }

    /// What is not measured, and why.
    pub fn skipped(&self) -> BTreeMap<&'static str, String> {
        let crun = self.crun.as_ref().err().map(|reason| ("crun_true", reason));
        let bwrap = self
            .bwrap
            .as_ref()
            .err()
            .map(|reason| ("bwrap_true", reason));
        let skipped = crun.into_iter().chain(bwrap);
        skipped
            .map(|(name, reason)| (name, reason.clone()))
            .collect()
    }

    /// One sample of each.
    pub async fn round(&self, report: &mut Report) -> Result<(), Failure> {
        if let Ok(crun) = &self.crun {
            let crun = crun.clone();
            let run = move || crun.lock().unwrap_or_else(PoisonError::into_inner).run();
            report.add("crun_true", blocking(move || failed(run())).await?);
        }
        if self.bwrap.is_ok() {
            let time = blocking(|| failed(timed("bwrap", BWRAP))).await?;
            report.add("bwrap_true", time);
        }
        let time = blocking(|| failed(timed("bash", &["-c", "true"]))).await?;
        report.add("bash_true", time);
        Ok(())
    }

    /// Ends what was started.
    pub async fn clean_up(self) {
        // A thread that cannot be had leaves it to the drop.
        let _ = blocking(move || {
            drop(self);
            Ok(())
        })
        .await;
    }
}

/// Runs a program to its end and says how long it took.
fn timed(program: &str, args: &[&str]) -> Result<Duration, String> {
    let begun = Instant::now();
    let output = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    let time = begun.elapsed();
    if output.status.success() {
        Ok(time)
    } else {
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("{program}: {}: {}", output.status, said.trim()))
    }
}

fn failed<T>(result: Result<T, String>) -> Result<T, Failure> {
    result.map_err(|reason| Failure::new("BENCH_FAILED", reason))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(Failure::new("INTERNAL_ERROR", error.to_string())))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_failing_program_says_why() {
        let reason = timed("bash", &["-c", "echo no >&2; exit 3"]).unwrap_err();
        assert!(reason.contains("exit status: 3: no"), "{reason}");
        assert!(timed("no-such-program", &[]).is_err());
    }
}

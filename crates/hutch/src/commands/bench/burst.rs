//! Many at once: each of fifty callers creates a sandbox and runs its first
//! command in it.

use super::fleet::{Fleet, run_true};
use super::report::Report;
use crate::failure::Failure;
use futures_util::future::join_all;
use std::time::{Duration, Instant};

/// How many come at the same time.
const BURST: usize = 50;

/// How long the machine is left alone before each: what the one before left is
/// cleared away, and what a rush needs is made again.
const SETTLE: Duration = Duration::from_secs(3);

/// The first burst of a server, then `rounds` more; a sample is one caller's
/// wait.
pub async fn measure(fleet: &mut Fleet, rounds: u32, report: &mut Report) -> Result<(), Failure> {
    one("burst50_first", fleet, report).await?;
    for _ in 0..rounds {
        one("burst50_create_exec", fleet, report).await?;
    }
    Ok(())
}

async fn one(name: &'static str, fleet: &mut Fleet, report: &mut Report) -> Result<(), Failure> {
    tokio::time::sleep(SETTLE).await;
    let sandboxes = fleet.addresses(BURST);
    let options = fleet.options();
    let begun = Instant::now();
    let calls = sandboxes.iter().map(|sandbox| async move {
        sandbox.create(options).await?;
        run_true(sandbox).await?;
        Ok::<_, Failure>(begun.elapsed())
    });
    for waited in join_all(calls).await {
        report.add(name, waited?);
    }
    fleet.clean_up().await
}

//! Many at once: each of fifty callers creates a sandbox and runs its first
//! command in it.

use super::fleet::{Fleet, run_true};
use super::report::Report;
use crate::failure::Failure;
use futures_util::future::join_all;
use std::time::Instant;

/// How many come at the same time.
const BURST: usize = 50;

/// `rounds` bursts; a sample is one caller's wait.
pub async fn measure(fleet: &mut Fleet, rounds: u32, report: &mut Report) -> Result<(), Failure> {
    for _ in 0..rounds {
        let sandboxes = fleet.addresses(BURST);
        let options = fleet.options();
        let begun = Instant::now();
        let calls = sandboxes.iter().map(|sandbox| async move {
            sandbox.create(options).await?;
            run_true(sandbox).await?;
            Ok::<_, Failure>(begun.elapsed())
        });
        for waited in join_all(calls).await {
            report.add("burst50_create_exec", waited?);
        }
        fleet.clean_up().await?;
    }
    Ok(())
}

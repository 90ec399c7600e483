//! What people wait for: a new sandbox, a sleeping one, a running one.

use super::fleet::{Fleet, run_true};
use super::report::Report;
use crate::failure::Failure;
use hutch_client::Sandbox;
use std::time::Instant;

/// Two sandboxes that outlive a round: one sleeps, one runs.
pub struct Lives {
    sleeper: Sandbox,
    runner: Sandbox,
}

impl Lives {
    /// Makes them.
    pub async fn prepare(fleet: &mut Fleet) -> Result<Self, Failure> {
        let sleeper = fleet.create().await?;
        let runner = fleet.create().await?;
        for sandbox in [&sleeper, &runner] {
            run_true(sandbox).await?;
        }
        Ok(Self { sleeper, runner })
    }

    /// One sample of each job.
    pub async fn round(&self, fleet: &mut Fleet, report: &mut Report) -> Result<(), Failure> {
        create(fleet, report).await?;
        self.wake(report).await?;
        let begun = Instant::now();
        run_true(&self.runner).await?;
        report.add("exec", begun.elapsed());
        Ok(())
    }

    async fn wake(&self, report: &mut Report) -> Result<(), Failure> {
        self.sleeper.sleep().await?;
        let begun = Instant::now();
        run_true(&self.sleeper).await?;
        let total = begun.elapsed();
        report.add("wake_exec", total);
        boot_parts(
            &self.sleeper,
            "wake_exec",
            total.as_secs_f64() * 1e3,
            report,
        )
        .await
    }
}

/// One life from its creation to its first command, and its end.
async fn create(fleet: &mut Fleet, report: &mut Report) -> Result<(), Failure> {
    let sandbox = fleet.address();
    let begun = Instant::now();
    fleet.create_at(&sandbox).await?;
    let created = begun.elapsed();
    run_true(&sandbox).await?;
    let total = begun.elapsed();
    report.add("create_exec", total);
    report.add_part("create_exec", "create", created.as_secs_f64() * 1e3);
    let rest = (total - created).as_secs_f64() * 1e3;
    boot_parts(&sandbox, "create_exec", rest, report).await?;
    fleet.destroy(&sandbox).await
}

/// Where the time of the boot went, as the server tells it, and the rest: the
/// command itself and the way there and back.
async fn boot_parts(
    sandbox: &Sandbox,
    name: &'static str,
    waited_ms: f64,
    report: &mut Report,
) -> Result<(), Failure> {
    let described = sandbox.describe().await?;
    let Some(boot) = described.get("lastBoot").and_then(|boot| boot.as_object()) else {
        return Ok(());
    };
    let ms = |field: &str| boot.get(field).and_then(serde_json::Value::as_f64);
    for (field, part) in [
        ("workspaceMs", "boot_workspace"),
        ("machineMs", "boot_machine"),
        ("commitMs", "boot_commit"),
    ] {
        if let Some(ms) = ms(field) {
            report.add_part(name, part, ms);
        }
    }
    if let Some(total) = ms("totalMs") {
        report.add_part(name, "command_and_transport", (waited_ms - total).max(0.0));
    }
    Ok(())
}

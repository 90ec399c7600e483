//! The jobs of hutch itself.

use super::report::Report;
use crate::failure::Failure;
use hutch_client::{CreateOptions, ExecOptions, Project, Sandbox};
use std::time::Instant;

/// The sandboxes of one run.
pub struct Jobs {
    project: Project,
    options: CreateOptions,
    prefix: String,
    made: u32,
    live: Vec<Sandbox>,
    sleeper: Sandbox,
    runner: Sandbox,
}

impl Jobs {
    /// Makes the sandboxes that outlive a round.
    pub async fn prepare(project: Project, instance_type: &str) -> Result<Self, Failure> {
        let options = CreateOptions {
            instance_type: Some(instance_type.to_owned()),
            ..CreateOptions::default()
        };
        // Names are retired for ever, so each run has names of its own.
        let run = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default()
            .as_millis();
        let prefix = format!("bench-{run:x}-{:x}", std::process::id());
        let address = |name: &str| project.sandbox(&format!("/sandboxes/{prefix}-{name}"));
        let mut jobs = Self {
            sleeper: address("sleeper"),
            runner: address("runner"),
            project: project.clone(),
            options,
            prefix: prefix.clone(),
            made: 0,
            live: Vec::new(),
        };
        let ready = jobs.warm_up().await;
        if let Err(failure) = ready {
            // The first failure is the one to tell.
            let _ = jobs.clean_up().await;
            return Err(failure);
        }
        Ok(jobs)
    }

    async fn warm_up(&mut self) -> Result<(), Failure> {
        for sandbox in [self.sleeper.clone(), self.runner.clone()] {
            sandbox.create(&self.options).await?;
            self.live.push(sandbox.clone());
            run_true(&sandbox).await?;
        }
        Ok(())
    }

    /// One sample of each job.
    pub async fn round(&mut self, report: &mut Report) -> Result<(), Failure> {
        self.create(report).await?;
        self.wake(report).await?;
        let begun = Instant::now();
        run_true(&self.runner).await?;
        report.add("exec", begun.elapsed());
        Ok(())
    }

    async fn create(&mut self, report: &mut Report) -> Result<(), Failure> {
        self.made += 1;
        let path = format!("/sandboxes/{}-{}", self.prefix, self.made);
        let sandbox = self.project.sandbox(&path);
        let begun = Instant::now();
        sandbox.create(&self.options).await?;
        let created = begun.elapsed();
        self.live.push(sandbox.clone());
        run_true(&sandbox).await?;
        let total = begun.elapsed();
        report.add("create_exec", total);
        report.add_part("create_exec", "create", created.as_secs_f64() * 1e3);
        let rest = (total - created).as_secs_f64() * 1e3;
        boot_parts(&sandbox, "create_exec", rest, report).await?;
        sandbox.destroy().await?;
        self.live.pop();
        Ok(())
    }

    async fn wake(&mut self, report: &mut Report) -> Result<(), Failure> {
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

    /// Destroys what is left; all are tried, the first failure is told.
    pub async fn clean_up(&mut self) -> Result<(), Failure> {
        let mut result = Ok(());
        for sandbox in self.live.drain(..) {
            let destroyed = sandbox.destroy().await.map_err(Failure::from);
            result = result.and(destroyed);
        }
        result
    }
}

async fn run_true(sandbox: &Sandbox) -> Result<(), Failure> {
    let result = sandbox.exec("true", &ExecOptions::default()).await?;
    match result.exit_code {
        0 => Ok(()),
        code => Err(Failure::new(
            "BENCH_FAILED",
            format!(
                "`true` in {} answered {code}: {}",
                sandbox.path(),
                result.stderr
            ),
        )),
    }
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

//! `hutch sandbox start`, `sleep` and `restart`.

use crate::{
    connect,
    failure::Failure,
    output::{self, wait},
    settings::Settings,
};
use clap::Args;
use serde_json::json;

/// Options of `hutch sandbox start`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hutch sandbox start main
  hutch sandbox start main --discard-workspace   Give up a workspace that cannot be restored")]
pub struct StartArgs {
    /// Name of the sandbox
    name: String,
    /// Start with an empty workspace when the kept one cannot be restored
    #[arg(long)]
    discard_workspace: bool,
}

/// Options of `hutch sandbox sleep`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hutch sandbox sleep main")]
pub struct SleepArgs {
    /// Name of the sandbox
    name: String,
}

/// Options of `hutch sandbox restart`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hutch sandbox restart main")]
pub struct RestartArgs {
    /// Name of the sandbox
    name: String,
}

/// Boots the sandbox and waits until its workspace is ready.
pub async fn start(args: StartArgs, settings: &Settings) -> Result<u8, Failure> {
    let project = connect::project(settings).await?;
    let sandbox = project.sandbox(&connect::sandbox_path(&args.name));
    wait::told("restoring", sandbox.start(args.discard_workspace)).await?;
    done(settings, sandbox.path(), "running")
}

/// Keeps the sandbox's work and tears its machine down.
pub async fn sleep(args: SleepArgs, settings: &Settings) -> Result<u8, Failure> {
    let project = connect::project(settings).await?;
    let sandbox = project.sandbox(&connect::sandbox_path(&args.name));
    wait::told("keeping the work", sandbox.sleep()).await?;
    done(settings, sandbox.path(), "stopped")
}

/// Sleeps and starts again.
pub async fn restart(args: RestartArgs, settings: &Settings) -> Result<u8, Failure> {
    let project = connect::project(settings).await?;
    let sandbox = project.sandbox(&connect::sandbox_path(&args.name));
    wait::told("restarting", sandbox.restart()).await?;
    done(settings, sandbox.path(), "running")
}

fn done(settings: &Settings, path: &str, status: &str) -> Result<u8, Failure> {
    if settings.json {
        output::json(&json!({"path": path, "status": status}))?;
    } else {
        output::line(&format!("{path} {status}"))?;
    }
    Ok(0)
}

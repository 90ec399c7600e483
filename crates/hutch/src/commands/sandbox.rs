//! `hutch sandbox`: one file per verb.

mod create;
mod destroy;
pub mod env;
mod events;
mod get;
mod list;
mod logs;
mod power;
mod set;

use crate::{failure::Failure, settings::Settings};
use clap::{Args, Subcommand};

/// Options of `hutch sandbox`.
#[derive(Debug, Args)]
#[command(after_help = "\
A sandbox is named by its bare name or its path: `main` and `/sandboxes/main` are the same.

Examples:
  hutch sandbox create main --type standard-1 --env LANG=C.UTF-8
  hutch sandbox list
  hutch sandbox sleep main
  hutch sandbox rm main")]
pub struct SandboxArgs {
    #[command(subcommand)]
    command: SandboxCommand,
}

#[derive(Debug, Subcommand)]
enum SandboxCommand {
    /// Make a sandbox
    Create(create::CreateArgs),
    /// List sandboxes
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
    /// Show one sandbox
    Get(get::GetArgs),
    /// Boot a sandbox now instead of with its next command
    Start(power::StartArgs),
    /// Keep a sandbox's work and tear its machine down
    Sleep(power::SleepArgs),
    /// Sleep and start again: commands and processes end, the work stays
    Restart(power::RestartArgs),
    /// Change when a sandbox sleeps and its variables
    Set(set::SetArgs),
    /// Show what a sandbox's boots and its daemon said
    Logs(logs::LogsArgs),
    /// Remove a sandbox and its work for ever; its name is retired
    #[command(visible_aliases = ["rm", "destroy"])]
    Remove(destroy::DestroyArgs),
    /// Show what happened to a sandbox
    Events(events::EventsArgs),
}

/// Runs `hutch sandbox …`.
pub async fn run(args: SandboxArgs, settings: &Settings) -> Result<u8, Failure> {
    match args.command {
        SandboxCommand::Create(args) => create::run(args, settings).await,
        SandboxCommand::List(args) => list::run(args, settings).await,
        SandboxCommand::Get(args) => get::run(args, settings).await,
        SandboxCommand::Start(args) => power::start(args, settings).await,
        SandboxCommand::Sleep(args) => power::sleep(args, settings).await,
        SandboxCommand::Restart(args) => power::restart(args, settings).await,
        SandboxCommand::Set(args) => set::run(args, settings).await,
        SandboxCommand::Logs(args) => logs::run(args, settings).await,
        SandboxCommand::Remove(args) => destroy::run(args, settings).await,
        SandboxCommand::Events(args) => events::run(args, settings).await,
    }
}

//! `hutch exec`: a command's bytes in and out, exactly, as they come.

mod output;
mod signals;
mod stdin;

use crate::{
    commands::sandbox::env, connect, failure::Failure, output::duration, settings::Settings,
};
use clap::Args;
use hutch_client::{Program, Sandbox, SpawnOptions, Spawned};
use signals::Signals;
use std::{collections::BTreeMap, io::IsTerminal, time::Duration};

/// Longest wait for the server to confirm the end of a command that was broken off.
const GRACE: Duration = Duration::from_secs(5);

/// Options of `hutch exec`.
#[derive(Debug, Args)]
#[command(after_help = "\
Standard output and error are the command's own bytes. Standard input is passed on when it is a
pipe or a file; from a terminal only with -i. Ctrl-C ends the command and all it started.

Exit code: the command's own; 124 after --timeout; 130 after Ctrl-C; 125 when hutch itself failed.

Examples:
  hutch exec main -- python3 -V
  hutch exec main --cwd src --env CI=1 -c 'make test | tail'
  tar c . | hutch exec main -c 'tar x'
  hutch exec main --timeout 5m -- cargo test")]
pub struct ExecArgs {
    /// Name of the sandbox
    pub name: String,
    /// Run this text with bash
    #[arg(
        short = 'c',
        long = "command",
        value_name = "STRING",
        allow_hyphen_values = true
    )]
    pub command: Option<String>,
    /// Program and arguments, run without a shell
    #[arg(
        last = true,
        value_name = "CMD",
        required_unless_present = "command",
        conflicts_with = "command"
    )]
    pub argv: Vec<String>,
    /// Working directory [default: /workspace]
    #[arg(short = 'w', long, value_name = "DIR")]
    pub cwd: Option<String>,
    /// Variable of this command; may be repeated
    #[arg(short, long, value_name = "NAME=VALUE", value_parser = env::parse)]
    pub env: Vec<(String, String)>,
    /// End the command after this time, such as 30s or 5m
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub timeout: Option<Duration>,
    /// Pass standard input on even from a terminal
    #[arg(short, long)]
    pub interactive: bool,
}

/// Runs the command and answers with its exit code.
pub async fn run(args: ExecArgs, settings: &Settings) -> Result<u8, Failure> {
    let mut signals = Signals::listen()?;
    let sandbox = connect::project(settings)
        .await?
        .sandbox(&connect::sandbox_path(&args.name));
    let options = options(args);
    let spawned = tokio::select! {
        spawned = sandbox.spawn(options) => spawned?,
        signal = signals.next() => return Ok(signal.exit_code()),
    };
    let mut running = Box::pin(relay(spawned));
    tokio::select! {
        code = &mut running => code,
        signal = signals.next() => {
            // Dropping the relay drops the streams, which ends the command.
            drop(running);
            settle(&sandbox).await;
            Ok(signal.exit_code())
        }
    }
}

fn options(args: ExecArgs) -> SpawnOptions {
    let program = match args.command {
        Some(text) => Program::Command(text),
        None => Program::Argv(args.argv),
    };
    let passes_stdin = args.interactive || !std::io::stdin().is_terminal();
    SpawnOptions {
        cwd: args.cwd,
        env: args.env.into_iter().collect::<BTreeMap<_, _>>(),
        stdin: passes_stdin.then(stdin::stream),
        timeout: args.timeout,
        ..SpawnOptions::new(program)
    }
}

/// Copies both streams until they and the command have ended.
async fn relay(spawned: Spawned) -> Result<u8, Failure> {
    let Spawned {
        stdout,
        stderr,
        exit,
        ..
    } = spawned;
    tokio::try_join!(
        output::copy(stdout, std::io::stdout(), "stdout"),
        output::copy(stderr, std::io::stderr(), "stderr"),
    )?;
    Ok(exit_code(exit.wait().await?.exit_code))
}

/// Waits until the server has seen that the command was broken off: it reads in
/// order, so an answer to a later call says so.
async fn settle(sandbox: &Sandbox) {
    // The command ends with the connection too, if this takes too long or fails.
    let _ = tokio::time::timeout(GRACE, sandbox.describe()).await;
}

/// Codes travel as numbers; what does not fit a byte is still a failure.
fn exit_code(code: i32) -> u8 {
    u8::try_from(code).unwrap_or(255)
}

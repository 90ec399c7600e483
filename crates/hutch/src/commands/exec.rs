//! `hutch exec`: a command's bytes in and out, exactly, as they come.

mod output;
pub mod stdin;

use crate::{
    commands::sandbox::env,
    connect,
    failure::{FAILED, Failure},
    output::duration,
    settings::Settings,
    signals::{Received, Signals},
};
use clap::{ArgGroup, Args};
use hutch_client::{ExitHandle, Program, SpawnOptions, Spawned};
use std::{collections::BTreeMap, io::IsTerminal, pin::Pin, time::Duration};

/// How long a command may take to end by the signal that was passed on.
const PATIENCE: Duration = Duration::from_secs(2);

/// Options of `hutch exec`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("program").required(true).args(["command", "argv"]))]
#[command(override_usage = "\
hutch exec [OPTIONS] <NAME> -- <CMD>...
       hutch exec [OPTIONS] <NAME> -c <STRING>")]
#[command(after_help = "\
Standard output and error are the command's own bytes. Standard input is passed on when it is a
pipe or a file; from a terminal only with -i. Ctrl-C ends the command and all it started.

Exit code: the command's own; 124 after --timeout; 126 when it may not be executed; 127 when it is
not there; 130 after Ctrl-C; 125 when hutch itself failed.

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
    #[arg(last = true, value_name = "CMD")]
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
    let spawned = tokio::select! {
        spawned = sandbox.spawn(options(args)) => spawned.map_err(|error| not_started(error.into()))?,
        // Dropping the call ends what it may have started.
        signal = signals.next() => return Ok(signal.exit_code()),
    };
    let exit = spawned.exit.clone();
    let mut relay = relay(spawned);
    tokio::select! {
        code = &mut relay => code,
        signal = signals.next() => {
            tokio::select! {
                () = end(&exit, signal, &mut relay) => {}
                // Asked twice, we leave; the command ends with the connection.
                _ = signals.next() => {}
            }
            Ok(signal.exit_code())
        }
    }
}

/// What a shell answers for a program that it cannot start.
fn not_started(failure: Failure) -> Failure {
    let exit = match failure.code.as_str() {
        "COMMAND_NOT_FOUND" => 127,
        "COMMAND_PERMISSION_DENIED" => 126,
        _ => FAILED,
    };
    failure.with_exit(exit)
}

/// Passes the signal on, then ends the command and all it started. What it still
/// writes meanwhile arrives.
async fn end(exit: &ExitHandle, signal: Received, relay: &mut Relay) {
    // The command may be gone already, which is what we want.
    let _ = exit.kill(signal.name()).await;
    if tokio::time::timeout(PATIENCE, &mut *relay).await.is_ok() {
        // The command is; what it started may have ignored the signal.
        let _ = exit.kill("SIGTERM").await;
        return;
    }
    let mut killed = Box::pin(exit.kill("SIGTERM"));
    tokio::select! {
        _ = &mut killed => {}
        _ = relay => {
            let _ = killed.await;
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

type Relay = Pin<Box<dyn Future<Output = Result<u8, Failure>> + Send>>;

/// Copies both streams until they and the command have ended.
fn relay(spawned: Spawned) -> Relay {
    let Spawned {
        stdout,
        stderr,
        exit,
        ..
    } = spawned;
    Box::pin(async move {
        let (_, _, exit) = tokio::try_join!(
            output::copy(stdout, std::io::stdout(), "stdout"),
            output::copy(stderr, std::io::stderr(), "stderr"),
            async { exit.wait().await.map_err(Failure::from) },
        )?;
        Ok(exit_code(exit.exit_code))
    })
}

/// Codes travel as numbers; what does not fit a byte is still a failure.
fn exit_code(code: i32) -> u8 {
    u8::try_from(code).unwrap_or(255)
}

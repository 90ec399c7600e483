//! `hutch cp`: trees between this machine and a sandbox.

mod download;
mod endpoint;
mod progress;
mod upload;

use crate::{connect, failure::Failure, output, settings::Settings, signals::Signals};
use clap::Args;
use endpoint::Endpoint;
use hutch_client::Copied;
use hutch_copy::CopyError;
use progress::{Progress, size};
use serde_json::json;
use std::io::IsTerminal;

/// Options of `hutch cp`.
#[derive(Debug, Args)]
#[command(override_usage = "\
hutch cp [OPTIONS] <NAME>:<PATH> <LOCAL|->
       hutch cp [OPTIONS] <LOCAL|-> <NAME>:<PATH>")]
#[command(after_help = "\
A file goes to a new name, over a file, or into a directory. A directory goes to a new name or into
a directory; DIR/. is what is in it. A target that ends in / has to be a directory. A relative path
in a sandbox starts at /workspace. A local path with a colon is written ./a:b.

A link is copied as a link; with -L the source itself is followed. Files belong to whoever copies,
in a sandbox to root; with -a they keep their owners. On this machine no file gets set-user-id or
set-group-id, no device is made, and nothing leaves the target, whatever the sandbox sends. What
breaks off leaves whole files only.

With - a tar archive goes to standard output, or comes from standard input into a directory.

Examples:
  hutch cp main:/workspace/report.pdf .
  hutch cp ./src main:/workspace
  hutch cp ./src/. main:/workspace/src
  hutch cp main:/etc/ssl ./ssl
  hutch cp main:/workspace - | tar t
  tar c . | hutch cp - main:/workspace")]
pub struct CpArgs {
    /// What to copy: NAME:PATH, a local path, or -
    #[arg(value_name = "FROM")]
    from: String,
    /// Where to: a local path, - or NAME:PATH
    #[arg(value_name = "TO")]
    to: String,
    /// Copy what the source leads to when it is a link
    #[arg(short = 'L', long)]
    follow_link: bool,
    /// Keep owners and groups
    #[arg(short, long)]
    archive: bool,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
}

/// What a copy is told besides its ends.
struct Options {
    follow_link: bool,
    archive: bool,
}

/// Copies.
pub async fn run(args: CpArgs, settings: &Settings) -> Result<u8, Failure> {
    let (from, to) = (Endpoint::parse(&args.from)?, Endpoint::parse(&args.to)?);
    let options = Options {
        follow_link: args.follow_link,
        archive: args.archive,
    };
    let mut signals = Signals::listen()?;
    let shown = !args.quiet && std::io::stderr().is_terminal();
    let progress = Progress::start(shown);
    let project = connect::project(settings).await?;
    let sandbox = |name: &str| project.sandbox(&connect::sandbox_path(name));
    // What a signal breaks off still takes its half file away.
    let copied = match (&from, &to) {
        (Endpoint::Sandbox { name, path }, Endpoint::Stdout) => {
            let sandbox = sandbox(name);
            let copy = download::to_stdout(&sandbox, path, &options, &progress);
            tokio::select! {
                copied = copy => copied?,
                signal = signals.next() => return Ok(signal.exit_code()),
            }
        }
        (Endpoint::Sandbox { name, path }, Endpoint::Local(target)) => {
            let sandbox = sandbox(name);
            let copy = download::to_path(&sandbox, path, target, &options, &progress);
            match copy.until(&mut signals).await? {
                Ok(copied) => copied,
                Err(signal) => return Ok(signal.exit_code()),
            }
        }
        (Endpoint::Stdout, Endpoint::Sandbox { name, path }) => {
            let sandbox = sandbox(name);
            let copy = upload::from_stdin(&sandbox, path, &options, &progress);
            tokio::select! {
                copied = copy => copied?,
                signal = signals.next() => return Ok(signal.exit_code()),
            }
        }
        (Endpoint::Local(source), Endpoint::Sandbox { name, path }) => {
            let sandbox = sandbox(name);
            let copy = upload::from_path(&sandbox, source, path, &options, &progress);
            tokio::select! {
                copied = copy => copied?,
                signal = signals.next() => return Ok(signal.exit_code()),
            }
        }
        (Endpoint::Sandbox { .. }, Endpoint::Sandbox { .. }) => {
            return Err(Failure::usage(
                "a copy has one end in a sandbox; copy to this machine first, or pipe: hutch cp one:/a - | hutch cp - two:/b",
            ));
        }
        (Endpoint::Local(_) | Endpoint::Stdout, Endpoint::Local(_) | Endpoint::Stdout) => {
            return Err(Failure::usage(
                "neither end is in a sandbox; write one as NAME:PATH, such as main:/workspace",
            ));
        }
    };
    let seconds = progress.end();
    // With `-` standard output is the archive's own.
    let results = to != Endpoint::Stdout;
    if settings.json && results {
        output::json(&json!({
            "from": args.from,
            "to": args.to,
            "entries": copied.entries,
            "bytes": copied.bytes,
        }))?;
    } else if shown {
        output::note(&format!(
            "copied {} in {seconds:.1} s to {}",
            size(copied.bytes),
            args.to
        ));
    }
    Ok(0)
}

/// A failure on this machine, as the sandbox would name it.
fn failed(error: &CopyError) -> Failure {
    let code = match error {
        CopyError::Io { source, .. } => match source.kind() {
            std::io::ErrorKind::NotFound => "FILE_NOT_FOUND",
            std::io::ErrorKind::PermissionDenied => "PERMISSION_DENIED",
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => "NO_SPACE",
            std::io::ErrorKind::NotADirectory => "NOT_DIRECTORY",
            std::io::ErrorKind::IsADirectory => "IS_DIRECTORY",
            _ => "FILESYSTEM_ERROR",
        },
        CopyError::Archive(_) | CopyError::Refused { .. } => "ARCHIVE_REFUSED",
        CopyError::Target { fault, .. } => match fault {
            hutch_copy::TargetFault::Missing => "FILE_NOT_FOUND",
            hutch_copy::TargetFault::NotDirectory => "NOT_DIRECTORY",
            hutch_copy::TargetFault::IsDirectory => "IS_DIRECTORY",
            hutch_copy::TargetFault::Unsuitable => "USAGE",
        },
    };
    Failure::new(code, error.to_string())
}

/// The thread that does the blocking half ended by itself.
fn lost(error: tokio::task::JoinError) -> Failure {
    Failure::new("INTERNAL_ERROR", error.to_string())
}

fn copied(copied: hutch_copy::Copied) -> Copied {
    Copied {
        entries: copied.entries,
        bytes: copied.bytes,
    }
}

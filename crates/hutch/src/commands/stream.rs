//! `hutch stream`: one file per verb.

mod append;
mod follow;
mod list;
mod read;
mod tail;

pub use follow::follow;
pub use read::all;

use crate::{failure::Failure, settings::Settings};
use clap::{Args, Subcommand};

/// Options of `hutch stream`.
#[derive(Debug, Args)]
#[command(after_help = "\
A stream is named by its path. Paths below /sandboxes are the server's: they can be read, and only
the server appends to them.

Examples:
  hutch stream append /notes --type notes/added --payload '{\"text\": \"hi\"}'
  hutch stream read /notes
  hutch stream tail /notes
  hutch stream list")]
pub struct StreamArgs {
    #[command(subcommand)]
    command: StreamCommand,
}

#[derive(Debug, Subcommand)]
enum StreamCommand {
    /// List the streams of the project
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
    /// Show the events of a stream, oldest first
    Read(read::ReadArgs),
    /// Show the last events of a stream and go on with what happens next
    Tail(tail::TailArgs),
    /// Append an event to a stream
    Append(append::AppendArgs),
}

/// Runs `hutch stream …`.
pub async fn run(args: StreamArgs, settings: &Settings) -> Result<u8, Failure> {
    match args.command {
        StreamCommand::List(args) => list::run(args, settings).await,
        StreamCommand::Read(args) => read::run(args, settings).await,
        StreamCommand::Tail(args) => tail::run(args, settings).await,
        StreamCommand::Append(args) => append::run(args, settings).await,
    }
}

//! `hutch sandbox events`.

use crate::{commands::stream, connect, failure::Failure, settings::Settings};
use clap::Args;
use hutch_client::EventQuery;

/// Options of `hutch sandbox events`.
#[derive(Debug, Args)]
#[command(after_help = "\
With --follow it goes on until Ctrl-C and then exits with 130, also while the server restarts: no
event is lost or shown twice. Under --json every event is one line.

Examples:
  hutch sandbox events main
  hutch sandbox events main --follow
  hutch sandbox events main --type sandbox/started --json")]
pub struct EventsArgs {
    /// Name of the sandbox
    name: String,
    /// Go on with what happens next, until Ctrl-C
    #[arg(short, long)]
    follow: bool,
    /// Only events of this type; may be repeated
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Only events after this offset
    #[arg(long, value_name = "OFFSET", default_value_t = 0)]
    after: u64,
}

/// Shows the events of one sandbox, oldest first.
pub async fn run(args: EventsArgs, settings: &Settings) -> Result<u8, Failure> {
    let project = connect::project(settings).await?;
    let path = connect::sandbox_path(&args.name);
    // Streams answer empty for what never was; a sandbox does not.
    project.sandbox(&path).describe().await?;
    let stream = project.stream(&path);
    let query = EventQuery {
        after_offset: args.after,
        event_types: args.types,
        ..EventQuery::default()
    };
    if args.follow {
        stream::follow(&stream, query, settings.json).await
    } else {
        stream::all(&stream, query, None, settings.json).await
    }
}

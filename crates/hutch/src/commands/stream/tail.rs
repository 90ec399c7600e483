//! `hutch stream tail`.

use super::follow;
use crate::{connect, failure::Failure, settings::Settings};
use clap::Args;
use hutch_client::EventQuery;

/// Options of `hutch stream tail`.
#[derive(Debug, Args)]
#[command(after_help = "\
Goes on until Ctrl-C, also while the server restarts: no event is lost or shown twice. Under --json
every event is one line.

Examples:
  hutch stream tail /notes
  hutch stream tail /notes --last 0 --type notes/added
  hutch stream tail /notes --after 12 --json")]
pub struct TailArgs {
    /// Path of the stream, such as /notes
    path: String,
    /// Begin so many events before the end
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 10)]
    last: u64,
    /// Begin after this offset instead
    #[arg(long, value_name = "OFFSET", conflicts_with = "last")]
    after: Option<u64>,
    /// Only events of this type; may be repeated
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
}

/// Follows a stream.
pub async fn run(args: TailArgs, settings: &Settings) -> Result<u8, Failure> {
    let client = connect::client(settings).await?;
    let project = client.project(&settings.project);
    let stream = project.stream(&args.path);
    let after_offset = match args.after {
        Some(offset) => offset,
        None => {
            let head = stream.head().await?;
            head.map_or(0, |head| head.max_offset.saturating_sub(args.last))
        }
    };
    let query = EventQuery {
        after_offset,
        event_types: args.types,
        ..EventQuery::default()
    };
    follow(&stream, query, settings.json).await
}

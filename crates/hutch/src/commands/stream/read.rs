//! `hutch stream read`.

use crate::{
    connect,
    failure::Failure,
    output::{self, follow::Lines, table::printable},
    settings::Settings,
};
use clap::Args;
use hutch_client::{Event, EventQuery, EventStream};

/// Options of `hutch stream read`.
#[derive(Debug, Args)]
#[command(after_help = "\
Under --json every event is one line. A stream that has no event shows nothing.

Examples:
  hutch stream read /notes
  hutch stream read /notes --after 10 --type notes/added --json
  hutch stream read /notes --newest-first --limit 1")]
pub struct ReadArgs {
    /// Path of the stream, such as /notes
    path: String,
    /// Only events after this offset
    #[arg(long, value_name = "OFFSET", default_value_t = 0)]
    after: u64,
    /// Only events of this type; may be repeated
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// At most so many
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Begin with the newest
    #[arg(long)]
    newest_first: bool,
}

/// Events of one page.
const PAGE: u64 = 500;

/// Shows the events of a stream.
pub async fn run(args: ReadArgs, settings: &Settings) -> Result<u8, Failure> {
    let stream = connect::project(settings).await?.stream(&args.path);
    let query = EventQuery {
        after_offset: args.after,
        event_types: args.types,
        newest_first: args.newest_first,
        ..EventQuery::default()
    };
    all(&stream, query, args.limit, settings.json).await
}

/// Shows page after page.
pub async fn all(
    stream: &EventStream,
    mut query: EventQuery,
    limit: Option<u64>,
    json: bool,
) -> Result<u8, Failure> {
    let lines = Lines::start();
    let mut left = limit.unwrap_or(u64::MAX);
    while left > 0 {
        query.limit = Some(u32::try_from(left.min(PAGE)).unwrap_or(u32::MAX));
        let events = stream.get_events(&query).await?;
        let Some(last) = events.last() else { break };
        if query.newest_first {
            query.before_offset = Some(last.offset);
        } else {
            query.after_offset = last.offset;
        }
        left -= left.min(events.len() as u64);
        for event in &events {
            if !lines.add(text(event, json)?).await {
                return lines.finish().await.map(|()| 0);
            }
        }
    }
    lines.finish().await.map(|()| 0)
}

/// An event as one line.
pub fn text(event: &Event, json: bool) -> Result<String, Failure> {
    if json {
        return output::document(event);
    }
    let payload = match &event.payload {
        serde_json::Value::Object(fields) if fields.is_empty() => String::new(),
        payload => format!("  {}", printable(&payload.to_string())),
    };
    Ok(format!(
        "{:>6}  {}  {}{payload}",
        event.offset,
        printable(&event.created_at),
        printable(&event.event_type),
    ))
}

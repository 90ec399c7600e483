//! `hutch sandbox events`.

use crate::{
    connect,
    failure::Failure,
    output::{self, table::printable},
    settings::Settings,
};
use clap::Args;
use hutch_client::{Event, EventQuery};

/// Options of `hutch sandbox events`.
#[derive(Debug, Args)]
#[command(after_help = "\
Under --json every event is one line.

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
    let mut query = EventQuery {
        after_offset: args.after,
        event_types: args.types,
        ..EventQuery::default()
    };
    loop {
        let events = stream.get_events(&query).await?;
        let Some(last) = events.last() else { break };
        query.after_offset = last.offset;
        for event in &events {
            show(event, settings.json)?;
        }
    }
    if !args.follow {
        return Ok(0);
    }
    let mut tail = stream.subscribe(&query).await?;
    loop {
        tokio::select! {
            batch = tail.next() => {
                for event in batch? {
                    show(&event, settings.json)?;
                }
            }
            _ = tokio::signal::ctrl_c() => return Ok(0),
        }
    }
}

fn show(event: &Event, json: bool) -> Result<(), Failure> {
    if json {
        return output::json(event);
    }
    let payload = match &event.payload {
        serde_json::Value::Object(fields) if fields.is_empty() => String::new(),
        payload => format!("  {}", printable(&payload.to_string())),
    };
    output::line(&format!(
        "{:>6}  {}  {}{payload}",
        event.offset,
        printable(&event.created_at),
        printable(&event.event_type),
    ))
}

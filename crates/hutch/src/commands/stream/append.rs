//! `hutch stream append`.

use super::read::text;
use crate::{connect, failure::Failure, output, settings::Settings};
use clap::Args;
use hutch_client::NewEvent;
use std::io::Read;

/// The longest payload that is read; the server takes 64 KiB.
const PAYLOAD_MAX: u64 = 1 << 20;

/// Options of `hutch stream append`.
#[derive(Debug, Args)]
#[command(after_help = "\
Prints the event as it was committed. With a key that the stream has already nothing is appended:
the first event of that key is printed, or the append refused if it was another.

Examples:
  hutch stream append /notes --type notes/added --payload '{\"text\": \"hi\"}'
  jq -n '{n: 1}' | hutch stream append /notes --type notes/added --payload -
  hutch stream append /jobs --type jobs/claimed --key claim-7 --expect 12")]
pub struct AppendArgs {
    /// Path of the stream, such as /notes
    path: String,
    /// What happened, such as notes/added
    #[arg(long = "type", value_name = "TYPE")]
    event_type: String,
    /// What is known about it, a JSON object; `-` reads standard input
    #[arg(
        long,
        value_name = "JSON",
        default_value = "{}",
        allow_hyphen_values = true
    )]
    payload: String,
    /// Append nothing when the stream has an event of this key
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Append only if the event gets this offset
    #[arg(long, value_name = "OFFSET")]
    expect: Option<u64>,
}

/// Appends one event.
pub async fn run(args: AppendArgs, settings: &Settings) -> Result<u8, Failure> {
    let event = NewEvent {
        payload: payload(&args.payload)?,
        event_type: args.event_type,
        idempotency_key: args.key,
        expected_offset: args.expect,
    };
    let stream = connect::project(settings).await?.stream(&args.path);
    for event in stream.append(&[event]).await? {
        output::line(&text(&event, settings.json)?)?;
    }
    Ok(0)
}

fn payload(text: &str) -> Result<serde_json::Map<String, serde_json::Value>, Failure> {
    let mut read = String::new();
    let text = if text == "-" {
        let result = std::io::stdin().take(PAYLOAD_MAX).read_to_string(&mut read);
        result.map_err(|error| Failure::usage(format!("cannot read stdin: {error}")))?;
        &read
    } else {
        text
    };
    serde_json::from_str(text).map_err(|error| {
        Failure::usage(format!(
            "--payload must be a JSON object such as {{\"text\": \"hi\"}}: {error}"
        ))
    })
}

//! `hutch stream list`.

use crate::{
    connect,
    failure::Failure,
    output::{self, table},
    settings::Settings,
};
use clap::Args;

/// Options of `hutch stream list`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  hutch stream list\n  hutch stream ls --json")]
pub struct ListArgs {}

/// Lists the streams that have an event.
pub async fn run(_: ListArgs, settings: &Settings) -> Result<u8, Failure> {
    let streams = connect::project(settings).await?.list_streams().await?;
    if settings.json {
        output::json(&streams)?;
        return Ok(0);
    }
    let rows: Vec<_> = streams
        .into_iter()
        .map(|stream| {
            [
                stream.path,
                stream.max_offset.to_string(),
                stream.created_at.unwrap_or_default(),
            ]
        })
        .collect();
    output::line(&table::render(
        ["STREAM", "LAST", "CREATED"],
        &rows,
        |_, _, cell| cell,
    ))?;
    Ok(0)
}

//! `hutch sandbox list`.

use crate::{
    connect,
    failure::Failure,
    output::{self, style::Style, table},
    settings::Settings,
};
use clap::Args;

/// Options of `hutch sandbox list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hutch sandbox list
  hutch sandbox ls --all --json")]
pub struct ListArgs {
    /// Show destroyed sandboxes too
    #[arg(short, long)]
    all: bool,
}

/// Lists the sandboxes of the project.
pub async fn run(args: ListArgs, settings: &Settings) -> Result<u8, Failure> {
    let mut sandboxes = connect::project(settings).await?.list_sandboxes().await?;
    if !args.all {
        sandboxes.retain(|sandbox| !sandbox.is_destroyed());
    }
    if settings.json {
        output::json(&sandboxes)?;
        return Ok(0);
    }
    if sandboxes.is_empty() {
        output::note(&format!(
            "no sandboxes in project {}; make one with `hutch sandbox create NAME`",
            settings.project
        ));
        return Ok(0);
    }
    let style = Style::stdout();
    let rows: Vec<_> = sandboxes
        .iter()
        .map(|sandbox| {
            [
                connect::sandbox_name(&sandbox.path).to_owned(),
                sandbox.status.clone().unwrap_or_default(),
                sandbox.instance_type.clone().unwrap_or_default(),
                sandbox.created_at.clone().unwrap_or_default(),
            ]
        })
        .collect();
    let text = table::render(
        ["NAME", "STATUS", "TYPE", "CREATED"],
        &rows,
        |row, column, cell| match rows.get(row) {
            Some(cells) if column == 1 => style.status(&cells[1], &cell),
            _ => cell,
        },
    );
    output::line(&text)?;
    Ok(0)
}

//! `hutch sandbox logs`.

use crate::{connect, failure::Failure, output, settings::Settings};
use clap::Args;
use serde_json::json;

/// Bytes that are asked for without --tail.
const USUAL: usize = 64 << 10;
/// The most that the server keeps.
const ALL: usize = 512 << 10;

/// Options of `hutch sandbox logs`.
#[derive(Debug, Args)]
#[command(after_help = "\
What the sandbox's boots and its daemon said, kept on the host; not what commands print. Boots
nothing, and works while the sandbox sleeps.

Examples:
  hutch sandbox logs main
  hutch sandbox logs main --tail 20
  hutch sandbox logs main --json")]
pub struct LogsArgs {
    /// Name of the sandbox
    name: String,
    /// Only so many lines from the end
    #[arg(short = 'n', long, value_name = "LINES")]
    tail: Option<usize>,
}

/// Shows the end of a sandbox's log.
pub async fn run(args: LogsArgs, settings: &Settings) -> Result<u8, Failure> {
    let project = connect::project(settings).await?;
    let sandbox = project.sandbox(&connect::sandbox_path(&args.name));
    let log = sandbox
        .logs(if args.tail.is_some() { ALL } else { USUAL })
        .await?;
    let (text, cut) = match args.tail {
        Some(lines) => last(&log.text, lines),
        None => (log.text.as_str(), false),
    };
    let truncated = cut || log.truncated;
    if settings.json {
        output::json(&json!({"text": text, "truncated": truncated}))?;
    } else if !text.is_empty() {
        output::line(output::harmless(text).trim_end_matches('\n'))?;
    }
    Ok(0)
}

/// The last lines, and whether there are others before them.
fn last(text: &str, lines: usize) -> (&str, bool) {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let mut starts = body.rmatch_indices('\n').map(|(at, _)| at + 1);
    match lines.checked_sub(1).map(|before| starts.nth(before)) {
        None => ("", !text.is_empty()),
        Some(None) => (text, false),
        Some(Some(at)) => (&text[at..], true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_cut_off_whole() {
        let text = "a\nb\nc\n";
        assert_eq!(last(text, 0), ("", true));
        assert_eq!(last(text, 1), ("c\n", true));
        assert_eq!(last(text, 2), ("b\nc\n", true));
        assert_eq!(last(text, 3), (text, false));
        assert_eq!(last(text, 9), (text, false));
        assert_eq!(last("a\nb", 1), ("b", true));
        assert_eq!(last("", 3), ("", false));
    }
}

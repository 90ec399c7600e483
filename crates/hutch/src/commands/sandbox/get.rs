//! `hutch sandbox get`.

use crate::{
    connect,
    failure::Failure,
    output::{self, table::printable},
    settings::Settings,
};
use clap::Args;
use serde_json::{Number, Value};

/// Options of `hutch sandbox get`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hutch sandbox get main
  hutch sandbox get main --json")]
pub struct GetArgs {
    /// Name of the sandbox
    name: String,
}

/// Shows what the server knows of one sandbox. Boots nothing.
pub async fn run(args: GetArgs, settings: &Settings) -> Result<u8, Failure> {
    let project = connect::project(settings).await?;
    let described = project
        .sandbox(&connect::sandbox_path(&args.name))
        .describe()
        .await?;
    if settings.json {
        output::json(&described)?;
    } else {
        output::line(&facts(&described))?;
    }
    Ok(0)
}

/// One `name  value` line a field, nested ones joined by dots.
fn facts(described: &Value) -> String {
    let mut pairs = Vec::new();
    flatten("", described, &mut pairs);
    let width = pairs.iter().map(|(name, _)| name.chars().count()).max();
    let lines: Vec<_> = pairs
        .iter()
        .map(|(name, value)| format!("{name:<0$}  {value}", width.unwrap_or(0)))
        .collect();
    lines.join("\n")
}

fn flatten(prefix: &str, value: &Value, pairs: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                let name = printable(name);
                let name = if prefix.is_empty() {
                    name
                } else {
                    format!("{prefix}.{name}")
                };
                flatten(&name, value, pairs);
            }
        }
        Value::String(text) => pairs.push((prefix.to_owned(), printable(text))),
        Value::Null => pairs.push((prefix.to_owned(), "-".to_owned())),
        Value::Number(number) => pairs.push((prefix.to_owned(), plain(number))),
        other => pairs.push((prefix.to_owned(), other.to_string())),
    }
}

/// A whole number without a fraction, any other with two digits of it.
fn plain(number: &Number) -> String {
    match number.as_f64() {
        Some(value) if !number.is_i64() && !number.is_u64() => {
            let text = format!("{value:.2}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nested_fields_are_joined_and_aligned() {
        assert_eq!(
            facts(&json!({"a": {"bc": 1}, "d": "x", "e": null})),
            "a.bc  1\nd     x\ne     -"
        );
    }

    #[test]
    fn numbers_are_rounded_for_people() {
        assert_eq!(
            facts(&json!({"a": 3.0, "b": 0.123_456, "c": 1e12, "d": -7})),
            "a  3\nb  0.12\nc  1000000000000\nd  -7"
        );
    }
}

//! `hutch sandbox create`.

use super::env;
use crate::{connect, failure::Failure, output, settings::Settings};
use clap::Args;
use hutch_client::{ClientError, CreateOptions, Sandbox, SleepAfter};
use serde_json::json;

/// Options of `hutch sandbox create`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hutch sandbox create main
  hutch sandbox create main --type standard-2 --sleep-after 1h --env LANG=C.UTF-8
  hutch sandbox create main --if-missing")]
pub struct CreateArgs {
    /// Name: 1 to 63 of a-z, 0-9 and hyphens
    name: String,
    /// Instance type: lite, basic, standard-1 to standard-4 [default: basic]
    #[arg(long = "type", value_name = "TYPE")]
    instance_type: Option<String>,
    /// Idle time before it sleeps, such as 30s, 10m or 1h [default: 10m]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    sleep_after: Option<String>,
    /// Never sleep on its own
    #[arg(long)]
    keep_alive: bool,
    /// Variable of every command in it; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = env::parse)]
    env: Vec<(String, String)>,
    /// Succeed when the sandbox exists
    #[arg(long)]
    if_missing: bool,
}

impl CreateArgs {
    fn options(&self) -> CreateOptions {
        CreateOptions {
            instance_type: self.instance_type.clone(),
            sleep_after: self.sleep_after.as_deref().map(sleep_after),
            keep_alive: self.keep_alive.then_some(true),
            env: self.env.iter().cloned().collect(),
        }
    }
}

/// A bare number is seconds on the wire; all else is text for the server to judge.
pub(super) fn sleep_after(text: &str) -> SleepAfter {
    match text.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() => SleepAfter::Seconds(seconds),
        _ => SleepAfter::Text(text.to_owned()),
    }
}

/// Makes the sandbox.
pub async fn run(args: CreateArgs, settings: &Settings) -> Result<u8, Failure> {
    let project = connect::project(settings).await?;
    let path = connect::sandbox_path(&args.name);
    let sandbox = project.sandbox(&path);
    let created = match sandbox.create(&args.options()).await {
        Ok(()) => true,
        Err(error) if args.if_missing && already_exists(&error) => {
            same_type(&args, &sandbox).await?;
            false
        }
        Err(error) if already_exists(&error) => {
            return Err(Failure {
                message: format!(
                    "sandbox {path} already exists; use it, pass --if-missing to take it as it is, or choose another name"
                ),
                ..error.into()
            });
        }
        Err(error) => return Err(error.into()),
    };
    if settings.json {
        output::json(&json!({"path": path, "created": created}))?;
    } else {
        output::line(&path)?;
    }
    Ok(0)
}

fn already_exists(error: &ClientError) -> bool {
    error.code() == "SANDBOX_ALREADY_EXISTS"
}

/// `--if-missing` must not hand out a machine of another size than asked for.
async fn same_type(args: &CreateArgs, sandbox: &Sandbox) -> Result<(), Failure> {
    let Some(wanted) = &args.instance_type else {
        return Ok(());
    };
    let found = sandbox.describe().await?;
    match found.get("instanceType").and_then(|value| value.as_str()) {
        Some(found) if found != wanted => Err(Failure::new(
            "SANDBOX_ALREADY_EXISTS",
            format!(
                "sandbox {} exists with instance type {found}, not {wanted}; a type is for life: use it as it is or choose another name",
                sandbox.path()
            ),
        )
        .with_context(json!({"path": sandbox.path(), "instanceType": found}))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_numbers_are_seconds() {
        assert_eq!(sleep_after("30"), SleepAfter::Seconds(30.0));
        assert_eq!(sleep_after("-1"), SleepAfter::Seconds(-1.0));
        assert_eq!(sleep_after("5m"), SleepAfter::Text("5m".into()));
        assert_eq!(sleep_after("1d"), SleepAfter::Text("1d".into()));
        assert_eq!(sleep_after("NaN"), SleepAfter::Text("NaN".into()));
    }
}

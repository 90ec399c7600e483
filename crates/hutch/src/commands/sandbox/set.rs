//! `hutch sandbox set`.

use super::{create::sleep_after, env};
use crate::{connect, failure::Failure, output, settings::Settings};
use clap::{ArgGroup, Args, ValueEnum};
use serde_json::json;
use std::collections::BTreeMap;

/// Options of `hutch sandbox set`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("change").required(true).multiple(true)
    .args(["sleep_after", "keep_alive", "env", "unset_env"]))]
#[command(after_help = "\
Boots nothing. A variable holds for commands that start from now on.

Examples:
  hutch sandbox set main --sleep-after 1h
  hutch sandbox set main --keep-alive on
  hutch sandbox set main --env CI=1 --unset-env DEBUG")]
pub struct SetArgs {
    /// Name of the sandbox
    name: String,
    /// Idle time before it sleeps, such as 30s, 10m or 1h
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    sleep_after: Option<String>,
    /// Whether it stays awake when it is idle
    #[arg(long, value_name = "WHETHER")]
    keep_alive: Option<Switch>,
    /// Set a variable of every command in it; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = env::parse)]
    env: Vec<(String, String)>,
    /// Take a variable away; may be repeated
    #[arg(long, value_name = "NAME")]
    unset_env: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

/// Changes the settings that were given, and no other.
pub async fn run(args: SetArgs, settings: &Settings) -> Result<u8, Failure> {
    let project = connect::project(settings).await?;
    let sandbox = project.sandbox(&connect::sandbox_path(&args.name));
    let mut variables: BTreeMap<_, _> = args
        .env
        .into_iter()
        .map(|(name, value)| (name, Some(value)))
        .collect();
    for name in args.unset_env {
        if variables.insert(name.clone(), None).is_some() {
            let message = format!("variable {name} is both set and taken away; give one of them");
            return Err(Failure::usage(message));
        }
    }
    if let Some(time) = &args.sleep_after {
        sandbox.set_sleep_after(&sleep_after(time)).await?;
    }
    if let Some(switch) = args.keep_alive {
        sandbox.set_keep_alive(switch == Switch::On).await?;
    }
    if !variables.is_empty() {
        sandbox.set_env_vars(&variables).await?;
    }
    let now = sandbox.describe().await?;
    if settings.json {
        output::json(&json!({
            "path": sandbox.path(),
            "sleepAfter": now["sleepAfter"],
            "keepAlive": now["keepAlive"],
            "env": now["env"],
        }))?;
    } else {
        output::line(&format!("{} set", sandbox.path()))?;
    }
    Ok(0)
}

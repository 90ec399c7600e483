//! `hutch sandbox remove`.

use crate::{connect, failure::Failure, output, settings::Settings};
use clap::Args;
use hutch_client::Project;
use serde_json::json;
use std::io::{BufRead, IsTerminal, Write};

/// Options of `hutch sandbox remove`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hutch sandbox remove main
  hutch sandbox rm one two
  hutch sandbox remove --all --yes")]
pub struct DestroyArgs {
    /// Names of the sandboxes
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    names: Vec<String>,
    /// Remove every sandbox of the project
    #[arg(long)]
    all: bool,
    /// Do not ask; without a terminal only --all needs it
    #[arg(short, long)]
    yes: bool,
}

/// Destroys the named sandboxes, or all of the project. One that fails does not
/// keep the others: the first failure is reported after all were tried.
pub async fn run(args: DestroyArgs, settings: &Settings) -> Result<u8, Failure> {
    let project = connect::project(settings).await?;
    let paths = if args.all {
        live(&project).await?
    } else {
        args.names
            .iter()
            .map(|name| connect::sandbox_path(name))
            .collect()
    };
    if !args.yes && !paths.is_empty() {
        confirm(&args, &paths, &settings.project)?;
    }
    let mut destroyed = Vec::new();
    let mut failed = None;
    for path in paths {
        match project.sandbox(&path).destroy().await {
            Ok(()) if settings.json => destroyed.push(path),
            Ok(()) => output::line(&format!("{path} destroyed"))?,
            Err(error) => {
                let _ = failed.get_or_insert(Failure::from(error));
            }
        }
    }
    if settings.json && (failed.is_none() || !destroyed.is_empty()) {
        output::json(&json!({"destroyed": destroyed}))?;
    }
    failed.map_or(Ok(0), Err)
}

async fn live(project: &Project) -> Result<Vec<String>, Failure> {
    let sandboxes = project.list_sandboxes().await?;
    Ok(sandboxes
        .into_iter()
        .filter(|sandbox| !sandbox.is_destroyed())
        .map(|sandbox| sandbox.path)
        .collect())
}

/// Asks on a terminal. Where there is nobody to ask, a script that names its
/// sandboxes means them, and one that says `--all` is refused.
fn confirm(args: &DestroyArgs, paths: &[String], project: &str) -> Result<(), Failure> {
    let what = match paths {
        [path] if !args.all => path.clone(),
        _ if args.all => format!("all {} sandboxes of project {project}", paths.len()),
        _ => format!("{} sandboxes", paths.len()),
    };
    let refused = || Failure::usage(format!("not destroying {what}: pass --yes to confirm"));
    if !std::io::stdin().is_terminal() {
        return if args.all { Err(refused()) } else { Ok(()) };
    }
    let mut err = std::io::stderr();
    // If the question cannot be shown, no answer will be `y`.
    let _ = write!(err, "Destroy {what} for ever, work and name? [y/N] ");
    let _ = err.flush();
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    match read {
        Ok(_) if matches!(answer.trim(), "y" | "Y" | "yes") => Ok(()),
        _ => Err(refused()),
    }
}

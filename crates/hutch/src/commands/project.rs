//! `hutch project`.

use crate::{
    connect,
    failure::Failure,
    output::{self, table},
    settings::Settings,
};
use clap::{Args, Subcommand};
use hutch_client::ClientError;

/// Options of `hutch project`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hutch project create demo
  hutch project list --json")]
pub struct ProjectArgs {
    #[command(subcommand)]
    command: ProjectCommand,
}

#[derive(Debug, Subcommand)]
enum ProjectCommand {
    /// Make a project
    #[command(
        after_help = "Examples:\n  hutch project create demo\n  hutch project create demo --if-missing"
    )]
    Create {
        /// Name of the project: a-z, 0-9 and hyphens
        slug: String,
        /// Succeed when the project exists
        #[arg(long)]
        if_missing: bool,
    },
    /// List the projects
    #[command(
        visible_alias = "ls",
        after_help = "Examples:\n  hutch project list\n  hutch project list --json"
    )]
    List,
}

/// Names the option that a command line has for a project that is there.
fn already_exists(slug: &str) -> impl Fn(ClientError) -> Failure {
    move |error| {
        let failure = Failure::from(error);
        if failure.code != "PROJECT_ALREADY_EXISTS" {
            return failure;
        }
        Failure {
            message: format!(
                "project {slug} already exists; use it with -p {slug}, pass --if-missing to take it as it is, or choose another name"
            ),
            ..failure
        }
    }
}

/// Runs `hutch project …`.
pub async fn run(args: ProjectArgs, settings: &Settings) -> Result<u8, Failure> {
    let client = connect::client(settings).await?;
    match args.command {
        ProjectCommand::Create { slug, if_missing } => {
            let existing = if if_missing {
                let projects = client.list_projects().await?;
                projects.into_iter().find(|project| project.slug == slug)
            } else {
                None
            };
            let project = match existing {
                Some(project) => project,
                None => client
                    .create_project(&slug)
                    .await
                    .map_err(already_exists(&slug))?,
            };
            if settings.json {
                output::json(&project)?;
            } else {
                output::line(&format!("{}  {}", project.slug, project.id))?;
            }
        }
        ProjectCommand::List => {
            let projects = client.list_projects().await?;
            if settings.json {
                output::json(&projects)?;
            } else {
                let rows: Vec<_> = projects
                    .into_iter()
                    .map(|project| [project.slug, project.id])
                    .collect();
                output::line(&table::render(["PROJECT", "ID"], &rows, |_, _, cell| cell))?;
            }
        }
    }
    Ok(0)
}

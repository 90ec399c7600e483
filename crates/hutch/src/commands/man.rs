//! `hutch man`.

use crate::{args::Cli, failure::Failure, output};
use clap::{Args, Command, CommandFactory};

/// Options of `hutch man`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hutch man | man -l -
  hutch man sandbox create | man -l -
  hutch man > /usr/local/share/man/man1/hutch.1")]
pub struct ManArgs {
    /// The command to describe; hutch itself when there is none
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

/// Prints a manual page in roff.
pub fn run(args: &ManArgs, json: bool) -> Result<u8, Failure> {
    let mut root = Cli::command();
    root.build();
    let command = find(&root, &args.command)?;
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut page)
        .map_err(|error| Failure::new("INTERNAL_ERROR", error.to_string()))?;
    output::page(&page, json).map(|()| 0)
}

fn find(root: &Command, path: &[String]) -> Result<Command, Failure> {
    let mut at = root;
    let mut name = root.get_name().to_owned();
    for word in path {
        at = at.find_subcommand(word).ok_or_else(|| {
            Failure::usage(format!(
                "`{name}` has no command `{word}`; see `{name} --help`"
            ))
        })?;
        name.push(' ');
        name.push_str(at.get_name());
    }
    Ok(at
        .clone()
        .display_name(name.replace(' ', "-"))
        .bin_name(name))
}

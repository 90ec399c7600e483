//! `hutch completions`.

use crate::{args::Cli, failure::Failure, output};
use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Options of `hutch completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hutch completions bash > /etc/bash_completion.d/hutch
  hutch completions zsh > \"${fpath[1]}/_hutch\"
  hutch completions fish > ~/.config/fish/completions/hutch.fish")]
pub struct CompletionsArgs {
    /// The shell to complete in
    shell: Shell,
}

/// Prints a script for the shell.
pub fn run(args: &CompletionsArgs, json: bool) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "hutch", &mut script);
    output::page(&script, json).map(|()| 0)
}

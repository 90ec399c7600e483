//! What can be typed: the global options and the list of commands. The options
//! of each command stand beside its code.

use crate::commands::{
    bench, completions, cp, doctor, exec, itx, key, man, project, sandbox, serve, stream,
};
use crate::{
    failure::{EXEC_FAILED, Failure, USAGE},
    output::style::Style,
};
use clap::{Args, Parser, Subcommand};
use std::{ffi::OsString, path::PathBuf, process::ExitCode};

/// Pet sandboxes: named Linux machines that sleep when idle and keep their work.
#[derive(Debug, Parser)]
#[command(
    name = "hutch",
    version,
    propagate_version = true,
    max_term_width = 100,
    after_help = "\
Examples:
  hutch serve                                   Start the server on 127.0.0.1:7070
  hutch sandbox create main --type basic        Make a sandbox
  hutch exec main -- uname -a                   Run a command in it
  hutch cp ./src main:/workspace                Copy a tree into it
  hutch sandbox sleep main                      Keep its work, free its memory
  hutch itx run -e 'return itx.sandboxes.list()'

Settings, strongest first: the option, the variable, the file
~/.config/hutch/config.toml (project, url, token, data_dir), the default."
)]
pub struct Cli {
    /// Options that every command takes.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options that every command takes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArgs {
    /// Project, by slug or id [default: default]
    #[arg(
        short,
        long,
        global = true,
        env = "HUTCH_PROJECT",
        value_name = "PROJECT"
    )]
    pub project: Option<String>,
    /// Server address [default: http://127.0.0.1:7070]
    #[arg(long, global = true, env = "HUTCH_URL", value_name = "URL")]
    pub url: Option<String>,
    /// Access token [default: the file admin.key in the data directory]
    #[arg(
        long,
        global = true,
        env = "HUTCH_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN"
    )]
    pub token: Option<String>,
    /// Data directory of the server [default: /var/lib/hutch as root, else ~/.local/share/hutch]
    #[arg(long, global = true, env = "HUTCH_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Print results as JSON on stdout and errors as JSON on stderr
    #[arg(long, global = true)]
    pub json: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the server
    Serve(serve::ServeArgs),
    /// Run JavaScript against the server
    Itx(itx::ItxArgs),
    /// Make and list projects
    Project(project::ProjectArgs),
    /// Make, list and steer sandboxes
    #[command(visible_alias = "sb")]
    Sandbox(sandbox::SandboxArgs),
    /// Run a command in a sandbox
    Exec(exec::ExecArgs),
    /// Copy files and directories between this machine and a sandbox
    Cp(cp::CpArgs),
    /// Append, read and follow events
    Stream(stream::StreamArgs),
    /// Make, list and revoke access keys
    Key(key::KeyArgs),
    /// Say what isolation this machine offers and whether the server answers
    Doctor(doctor::DoctorArgs),
    /// Measure how long the main jobs take
    Bench(bench::BenchArgs),
    /// Print a script that completes commands in a shell
    Completions(completions::CompletionsArgs),
    /// Print a manual page
    Man(man::ManArgs),
}

/// Prints clap's message. Wrong usage exits 2, help and version exit 0.
pub fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // Nothing is left to tell when the terminal is gone.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    if asks_for_json(&words) {
        let message = error.render().to_string();
        Failure::usage(message.trim()).report(true, Style::stderr());
    } else {
        let _ = error.print();
    }
    ExitCode::from(if is_exec(&words) { EXEC_FAILED } else { USAGE })
}

/// Whether the command is `exec`, whose small exit codes are the command's own.
fn is_exec(words: &[OsString]) -> bool {
    const WITH_VALUE: [&str; 5] = ["-p", "--project", "--url", "--token", "--data-dir"];
    let mut words = words.iter().map(|word| word.to_str().unwrap_or_default());
    while let Some(word) = words.next() {
        if WITH_VALUE.contains(&word) {
            words.next();
        } else if !word.starts_with('-') {
            return word == "exec";
        }
    }
    false
}

/// Whether `--json` is among our own options, when nothing could be parsed.
fn asks_for_json(words: &[OsString]) -> bool {
    let own = words.iter().take_while(|word| *word != "--");
    own.into_iter().any(|word| word == "--json")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_shows_an_example() {
        fn check(command: &clap::Command, path: &str) {
            for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
                let path = format!("{path} {}", sub.get_name());
                let help = sub
                    .get_after_help()
                    .map(ToString::to_string)
                    .unwrap_or_default();
                assert!(help.contains(&path), "`{path} --help` lacks an example");
                check(sub, &path);
            }
        }
        check(&Cli::command(), "hutch");
    }

    #[test]
    fn global_options_are_taken_after_the_command() {
        let cli =
            Cli::try_parse_from(["hutch", "sandbox", "list", "-p", "demo", "--json"]).unwrap();
        assert_eq!(cli.global.project.as_deref(), Some("demo"));
        assert!(cli.global.json);
    }

    #[test]
    fn exec_takes_options_of_the_command_after_two_dashes() {
        let cli =
            Cli::try_parse_from(["hutch", "exec", "main", "--", "ls", "--json", "-p"]).unwrap();
        assert!(!cli.global.json);
        let Command::Exec(exec) = cli.command else {
            panic!("not exec");
        };
        assert_eq!(exec.argv, ["ls", "--json", "-p"]);
    }

    #[test]
    fn exec_is_known_even_when_nothing_can_be_parsed() {
        let is = |words: &[&str]| is_exec(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert!(is(&["exec", "--frob"]));
        assert!(is(&["--json", "-p", "exec", "exec"]));
        assert!(!is(&["-p", "exec", "sandbox"]));
        assert!(!is(&["sandbox", "exec"]));
        assert!(!is(&[]));
    }

    #[test]
    fn exec_needs_exactly_one_of_string_and_argv() {
        assert!(Cli::try_parse_from(["hutch", "exec", "main"]).is_err());
        assert!(Cli::try_parse_from(["hutch", "exec", "main", "-c", "ls", "--", "ls"]).is_err());
    }
}

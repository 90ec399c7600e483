//! What needs no server: completions, manual pages, help.

use super::good;
use hutch_e2e::binaries;
use std::process::{Command, Output};

fn hutch(args: &[&str]) -> Output {
    let mut command = Command::new(binaries().join("hutch"));
    // Not even a home.
    command.args(args).env_clear();
    command.output().unwrap()
}

/// The names of the commands below `path`, as its help lists them.
fn below(path: &[&str]) -> Vec<String> {
    let help = good(&hutch(&[path, &["--help"]].concat()));
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.split_whitespace().next().map(str::to_owned));
    names.filter(|name| name != "help").collect()
}

#[test]
fn every_command_has_help_with_an_example_a_page_and_a_completion() {
    let bash = good(&hutch(&["completions", "bash"]));
    let mut waiting: Vec<Vec<String>> = below(&[]).into_iter().map(|name| vec![name]).collect();
    let mut seen = 0;
    while let Some(path) = waiting.pop() {
        let words: Vec<&str> = path.iter().map(String::as_str).collect();
        let help = good(&hutch(&[&words[..], &["--help"]].concat()));
        let line = format!("hutch {}", path.join(" "));
        let example = help.split("Examples:").nth(1).unwrap_or_default();
        assert!(example.contains(&line), "`{line} --help` lacks an example");
        let page = good(&hutch(&[&["man"], &words[..]].concat()));
        assert!(page.contains(".TH") && page.contains("Examples"), "{line}");
        let function = format!("hutch__subcmd__{}", path.join("__subcmd__"));
        assert!(bash.contains(&function), "{line}");
        waiting.extend(
            below(&words)
                .into_iter()
                .map(|name| [path.clone(), vec![name]].concat()),
        );
        seen += 1;
    }
    assert!(seen > 25, "only {seen} commands were found");
}

#[test]
fn completions_are_for_three_shells_and_are_taken_by_bash() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(good(&hutch(&["completions", shell])).contains("hutch"));
    }
    let script = "source <(\"$1\" completions bash); complete -p hutch";
    let mut bash = Command::new("bash");
    bash.args(["-c", script, "bash"])
        .arg(binaries().join("hutch"));
    let text = good(&bash.output().unwrap());
    assert!(text.contains("_hutch"), "{text}");
}

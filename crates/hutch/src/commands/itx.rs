//! `hutch itx run`.

use crate::{
    connect,
    failure::Failure,
    itx::{self, Limits, Outcome, Script, ScriptError},
    output,
    settings::Settings,
};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::{io::Read, path::PathBuf};

/// Options of `hutch itx`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hutch itx run -e 'return itx.sandboxes.list()'
  hutch itx run --context demo script.js")]
pub struct ItxArgs {
    #[command(subcommand)]
    command: ItxCommand,
}

#[derive(Debug, Subcommand)]
enum ItxCommand {
    /// Run JavaScript with `itx`, the project's RPC object, in scope
    Run(RunArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
The script is the body of an async function. What it returns is printed as JSON on stdout; bytes
become {\"base64\": …}. console.log writes to stderr. A thrown error is printed on stderr and the
exit code is 1. Calls are sent at once and in order; await what you need.

Examples:
  hutch itx run -e 'return itx.sandboxes.list()'
  hutch itx run -p demo -e 'const sb = itx.sandboxes.get(\"/sandboxes/main\");
    return (await sb.exec(\"ls /\")).stdout'
  hutch itx run --context demo script.js
  echo 'return 1 + 1' | hutch itx run -")]
struct RunArgs {
    /// JavaScript to run
    #[arg(short, long, value_name = "JS", allow_hyphen_values = true)]
    eval: Option<String>,
    /// File to run; `-` reads standard input
    #[arg(required_unless_present = "eval", conflicts_with = "eval")]
    file: Option<PathBuf>,
    /// The same as --project
    #[arg(long, value_name = "PROJECT")]
    context: Option<String>,
}

/// Runs `hutch itx …`.
pub async fn run(args: ItxArgs, settings: &Settings) -> Result<u8, Failure> {
    let ItxCommand::Run(args) = args.command;
    let script = Script {
        indent: if settings.json { 0 } else { 2 },
        ..script(&args)?
    };
    let client = connect::client(settings).await?;
    let project = client.project(args.context.as_ref().unwrap_or(&settings.project));
    // An unknown project is an error even of a script that makes no call.
    let itx = project.open().await?;
    let (cancel, mut outcome) = {
        let (cancel, outcome) = itx::run(script, itx, Limits::default());
        (cancel, Box::pin(outcome))
    };
    let outcome = tokio::select! {
        outcome = &mut outcome => outcome,
        _ = tokio::signal::ctrl_c() => {
            cancel.cancel();
            outcome.await
        }
    };
    match outcome {
        Outcome::Value {
            json,
            forgotten,
            uncaught,
        } => {
            if let Some(reason) = uncaught {
                output::note(&format!("note: nobody caught an error: {reason}"));
            }
            if forgotten > 0 {
                output::note(&format!(
                    "note: calls that were not awaited, and may not have happened: {forgotten}"
                ));
            }
            output::line(&json).map(|()| 0)
        }
        Outcome::Threw(error) => Err(failure(*error)),
        Outcome::Canceled => Ok(130),
    }
}

fn script(args: &RunArgs) -> Result<Script, Failure> {
    let (name, source) = match (&args.eval, &args.file) {
        (Some(source), _) => ("eval".to_owned(), source.clone()),
        (None, Some(file)) if file.as_os_str() == "-" => {
            let mut source = String::new();
            let read = std::io::stdin().read_to_string(&mut source);
            read.map_err(|error| Failure::usage(format!("cannot read stdin: {error}")))?;
            ("stdin".to_owned(), source)
        }
        (None, Some(file)) => {
            let source = std::fs::read_to_string(file).map_err(|error| {
                Failure::usage(format!("cannot read {}: {error}", file.display()))
            })?;
            (file.display().to_string(), source)
        }
        (None, None) => return Err(Failure::usage("give a script: -e JS or a file")),
    };
    Ok(Script {
        name,
        source: without_shebang(source),
        indent: 2,
    })
}

/// Keeps the line, so that line numbers stay right.
fn without_shebang(source: String) -> String {
    if source.starts_with("#!") {
        format!("//{source}")
    } else {
        source
    }
}

/// A refusal of the server's reads as it does from every other command; an error
/// of the script's own has its name before and its stack below it.
fn failure(error: ScriptError) -> Failure {
    if let Some(code) = error.code {
        return Failure {
            http_status: error.http_status,
            ..Failure::new(&code, error.message)
                .with_context(error.details.filter(Value::is_object).unwrap_or(json!({})))
        };
    }
    let stack = error
        .stack
        .as_deref()
        .map(str::trim_end)
        .unwrap_or_default();
    Failure {
        trace: (!stack.is_empty()).then(|| stack.to_owned()),
        ..Failure::new("SCRIPT_ERROR", format!("{}: {}", error.name, error.message))
            .with_context(json!({"stack": stack}))
    }
}

//! `hutch bench`: the main jobs timed beside what they are judged against.

mod baseline;
mod crun;
mod jobs;
mod own_server;
mod report;
mod samples;

use crate::{connect, failure::Failure, output, settings::Settings};
use baseline::Baselines;
use clap::Args;
use jobs::Jobs;
use own_server::OwnServer;
use report::Report;
use std::{io::IsTerminal, io::Write};

/// Options of `hutch bench`.
#[derive(Debug, Args)]
#[command(after_help = "\
Measures, side by side and in turns: creating a sandbox and its first command, waking one and its
first command, a command in a running one, and the same `true` by crun, bubblewrap and bash. Uses a
server of its own in a temporary directory, unless --url or HUTCH_URL names one; removes what it
made. Times are in milliseconds.

Examples:
  sudo hutch bench
  hutch bench -n 20 --json --url http://127.0.0.1:7070")]
pub struct BenchArgs {
    /// Samples of each measurement
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    samples: u32,
    /// Instance type of the sandboxes
    #[arg(long = "type", value_name = "TYPE", default_value = "standard-2")]
    instance_type: String,
}

/// Measures and reports.
pub async fn run(args: BenchArgs, settings: &Settings) -> Result<u8, Failure> {
    let own = if settings.url_given {
        None
    } else {
        Some(OwnServer::start().await?)
    };
    let settings = match &own {
        Some(server) => server.settings(settings),
        None => settings.clone(),
    };
    let measured = measure(&args, &settings).await;
    let stopped = match own {
        Some(server) => server.stop().await,
        None => Ok(()),
    };
    let report = measured?;
    stopped?;
    if settings.json {
        output::json(&report.to_json())?;
    } else {
        output::line(&report.to_text())?;
    }
    Ok(0)
}

async fn measure(args: &BenchArgs, settings: &Settings) -> Result<Report, Failure> {
    let project = connect::project(settings).await?;
    let baselines = Baselines::prepare().await?;
    let mut jobs = Jobs::prepare(project, &args.instance_type).await?;
    let mut report = Report::new(baselines.skipped());
    let result = tokio::select! {
        result = rounds(args.samples, &mut jobs, &baselines, &mut report) => result,
        _ = tokio::signal::ctrl_c() => Err(Failure::new("INTERRUPTED", "stopped by Ctrl-C").with_exit(130)),
    };
    let cleaned = jobs.clean_up().await;
    baselines.clean_up().await;
    result.and(cleaned).map(|()| report)
}

/// One sample of everything a round, so that a busy moment hits all alike.
async fn rounds(
    samples: u32,
    jobs: &mut Jobs,
    baselines: &Baselines,
    report: &mut Report,
) -> Result<(), Failure> {
    let terminal = std::io::stderr().is_terminal();
    for round in 1..=samples {
        if terminal {
            // Only a sign of life.
            let _ = write!(std::io::stderr(), "\r{round}/{samples}");
        }
        jobs.round(report).await?;
        baselines.round(report).await?;
    }
    if terminal {
        let _ = writeln!(std::io::stderr());
    }
    Ok(())
}

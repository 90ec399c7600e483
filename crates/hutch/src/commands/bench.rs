//! `hutch bench`: the main jobs timed beside what they are judged against.

mod baseline;
mod burst;
mod crun;
mod fleet;
mod lives;
mod memory;
mod neighbours;
mod own_server;
mod plot;
mod report;
mod samples;
mod snapshots;

use crate::{connect, failure::Failure, output, settings::Settings};
use baseline::Baselines;
use clap::{Args, ValueEnum};
use fleet::Fleet;
use lives::Lives;
use own_server::OwnServer;
use report::Report;
use std::{io::IsTerminal, io::Write, path::PathBuf};

/// Burst rounds for each hundred samples.
const BURST_ROUNDS: u32 = 4;
/// Commands beside each neighbour for each sample: a 99th percentile of a
/// hundred would be the worst but one.
const NEIGHBOUR_SAMPLES: u32 = 10;
/// Trees for each hundred samples.
const SNAPSHOT_ROUNDS: u32 = 3;

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Group {
    /// create_exec, wake_exec, exec, crun_true, bwrap_true, bash_true
    Commands,
    /// burst50_create_exec, burst50_first
    Burst,
    /// first_snapshot, restore, sleep_small, sleep_unchanged, beside tar and zstd
    Snapshots,
    /// idle_memory, server_memory
    Memory,
    /// neighbour_p99 beside a fork bomb, a memory hog and an fsync storm
    Neighbours,
}

/// Options of `hutch bench`.
#[derive(Debug, Args)]
#[command(after_help = "\
Measures, side by side and in turns: creating a sandbox and its first command, waking one and its
first command, a command in a running one, and the same `true` by crun, bubblewrap and bash; then
fifty at once, snapshots, memory and bad neighbours. Uses a server of its own in a temporary
directory, unless --url or HUTCH_URL names one; removes what it made. Times are in milliseconds.

Examples:
  sudo hutch bench
  sudo hutch bench --only commands --only burst
  sudo hutch bench --plots benches/plots
  hutch bench -n 20 --json --url http://127.0.0.1:7070")]
pub struct BenchArgs {
    /// Samples of each measurement
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    samples: u32,
    /// Instance type of the sandboxes
    #[arg(long = "type", value_name = "TYPE", default_value = "standard-2")]
    instance_type: String,
    /// Measure only this; may be given more than once
    #[arg(long, value_enum, value_name = "GROUP")]
    only: Vec<Group>,
    /// Draw what was measured as SVG files in this folder
    #[arg(long, value_name = "FOLDER")]
    plots: Option<PathBuf>,
}

/// Measures and reports.
pub async fn run(args: BenchArgs, settings: &Settings) -> Result<u8, Failure> {
    let own = if settings.url_given {
        None
    } else {
        Some(OwnServer::start(&args.instance_type).await?)
    };
    let settings = match &own {
        Some(server) => server.settings(settings),
        None => settings.clone(),
    };
    let measured = measure(&args, &settings, own.as_ref()).await;
    let stopped = match own {
        Some(server) => server.stop().await,
        None => Ok(()),
    };
    let report = measured?;
    stopped?;
    if let Some(folder) = &args.plots {
        plot::write(&report, folder).map_err(|error| {
            Failure::new("BENCH_FAILED", format!("{}: {error}", folder.display()))
        })?;
    }
    if settings.json {
        output::json(&report.to_json())?;
    } else {
        output::line(&report.to_text())?;
    }
    Ok(0)
}

async fn measure(
    args: &BenchArgs,
    settings: &Settings,
    own: Option<&OwnServer>,
) -> Result<Report, Failure> {
    let project = connect::project(settings).await?;
    // Authenticated first: of what comes before, a server takes only so much.
    project.id().await?;
    let mut fleet = Fleet::new(project, &args.instance_type);
    let mut report = Report::new();
    let result = tokio::select! {
        result = groups(args, &mut fleet, own, &mut report) => result,
        _ = tokio::signal::ctrl_c() => Err(Failure::new("INTERRUPTED", "stopped by Ctrl-C").with_exit(130)),
    };
    let cleaned = fleet.clean_up().await;
    result.and(cleaned).map(|()| report)
}

async fn groups(
    args: &BenchArgs,
    fleet: &mut Fleet,
    own: Option<&OwnServer>,
    report: &mut Report,
) -> Result<(), Failure> {
    let wanted = |group| args.only.is_empty() || args.only.contains(&group);
    let part = |count: u32| (args.samples * count).div_ceil(100);
    // A server's first rush is one only once.
    if wanted(Group::Burst) {
        progress("fifty at once");
        burst::measure(fleet, part(BURST_ROUNDS), report).await?;
    }
    if wanted(Group::Memory)
        && let Some(own) = of_own(own, "memory", report)
    {
        memory::measure(fleet, own.pid(), own.dir(), report).await?;
    }
    if wanted(Group::Commands) {
        let baselines = Baselines::prepare().await?;
        let result = commands(args.samples, fleet, &baselines, report).await;
        baselines.clean_up().await;
        result?;
        fleet.clean_up().await?;
    }
    if wanted(Group::Snapshots)
        && let Some(own) = of_own(own, "snapshots", report)
    {
        snapshots::measure(fleet, own.dir(), part(SNAPSHOT_ROUNDS), report).await?;
    }
    if wanted(Group::Neighbours) {
        progress("neighbours");
        neighbours::measure(fleet, args.samples * NEIGHBOUR_SAMPLES, report).await?;
    }
    Ok(())
}

/// The server whose directory can be looked into; without one the measurement is skipped.
fn of_own<'a>(
    own: Option<&'a OwnServer>,
    name: &'static str,
    report: &mut Report,
) -> Option<&'a OwnServer> {
    match own {
        Some(_) => progress(name),
        None => report.skip(
            name,
            "it looks into the server's data directory; leave --url out",
        ),
    }
    own
}

/// A sign of life for a person who waits.
fn progress(what: &str) {
    if std::io::stderr().is_terminal() {
        // Only a sign of life.
        let _ = writeln!(std::io::stderr(), "{what}");
    }
}

/// One sample of everything a round, so that a busy moment hits all alike.
async fn commands(
    samples: u32,
    fleet: &mut Fleet,
    baselines: &Baselines,
    report: &mut Report,
) -> Result<(), Failure> {
    for (name, reason) in baselines.skipped() {
        report.skip(name, &reason);
    }
    let lives = Lives::prepare(fleet).await?;
    let terminal = std::io::stderr().is_terminal();
    for round in 1..=samples {
        if terminal {
            // Only a sign of life.
            let _ = write!(std::io::stderr(), "\r{round}/{samples}");
        }
        lives.round(fleet, report).await?;
        baselines.round(report).await?;
    }
    if terminal {
        let _ = writeln!(std::io::stderr());
    }
    Ok(())
}

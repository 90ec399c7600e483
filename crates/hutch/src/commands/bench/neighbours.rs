//! What a command waits for while another sandbox misbehaves.

use super::fleet::{Fleet, run_true};
use super::report::Report;
use crate::failure::Failure;
use capnweb::Value;
use hutch_client::Sandbox;
use std::time::{Duration, Instant};

/// How long a neighbour is given to become a nuisance.
const SETTLE: Duration = Duration::from_secs(2);

/// What the neighbour runs, by the name of its measurement.
const NUISANCES: [(&str, &str); 3] = [
    (
        "fork_bomb",
        "b() { b | b & }; while :; do b; sleep 0.1; done",
    ),
    ("hog", "while :; do tail /dev/zero; done"),
    (
        "fsync_storm",
        "for i in 1 2 3 4; do (while :; do dd if=/dev/zero of=storm$i bs=64k count=16 conv=fsync; done) & done; wait",
    ),
];

/// How often quiet and nuisance take turns: the machine itself changes over a
/// minute.
const TURNS: u32 = 4;

/// `samples` commands beside nobody and as many beside each nuisance.
pub async fn measure(fleet: &mut Fleet, samples: u32, report: &mut Report) -> Result<(), Failure> {
    let runner = fleet.create().await?;
    run_true(&runner).await?;
    for _ in 0..TURNS {
        for (name, command) in NUISANCES {
            beside(&runner, "quiet", samples / TURNS, report).await?;
            let nuisance = fleet.create().await?;
            let options = serde_json::json!({ "cwd": "/workspace" });
            let arguments = vec![Value::from(command), Value::from_json(options)];
            nuisance.call("startProcess", arguments).await?;
            tokio::time::sleep(SETTLE).await;
            let measured = beside(&runner, name, samples / TURNS, report).await;
            fleet.destroy(&nuisance).await?;
            measured?;
        }
    }
    let quiet = report.percentile("quiet", 99);
    for (name, _) in NUISANCES {
        let ratio = report.percentile(name, 99) / quiet;
        let number = format!("neighbour_p99_{name}");
        report.value(&number, ratio, "times the quiet p99");
    }
    Ok(())
}

async fn beside(
    runner: &Sandbox,
    name: &'static str,
    samples: u32,
    report: &mut Report,
) -> Result<(), Failure> {
    for _ in 0..samples {
        let begun = Instant::now();
        run_true(runner).await?;
        report.add(name, begun.elapsed());
    }
    Ok(())
}

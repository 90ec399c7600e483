//! Many clients, lives and deaths at once, against a small model.
//!
//! `HUTCH_CHAOS_SEED=7 HUTCH_CHAOS_STEPS=1000 cargo nextest run -p hutch-e2e --test chaos asked_for`
//! runs the operations of seed 7; the same seed and number of steps give the
//! same operations in the same order. How they overlap is up to the machine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]
#![allow(
    clippy::print_stderr,
    reason = "a failed run shows how to run it again"
)]

mod daemon;
mod faults;
mod history;
mod lifecycle;
mod model;
mod model_tests;
mod plan;
mod run;
mod step;

use plan::Plan;

/// Runs a plan; fails with its seed and the history of what went wrong.
async fn hold(seed: u64, steps: usize) {
    let plan = Plan::new(seed, steps);
    let lives = run::run(&plan).await;
    let entries: usize = lives.iter().map(|life| life.entries.len()).sum();
    let boots: usize = lives.iter().map(|life| life.count("started")).sum();
    eprintln!(
        "seed {seed}: {entries} calls, {boots} boots, {} lives",
        lives.len()
    );
    for life in &lives {
        if let Err(fault) = model::judge(life) {
            panic!(
                "{fault}\nsandbox {}, seed {seed}; again: HUTCH_CHAOS_SEED={seed} HUTCH_CHAOS_STEPS={steps} \
                 cargo nextest run -p hutch-e2e --test chaos asked_for\n{}",
                life.name,
                history::tail(life, &fault)
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_short_history_is_legal() {
    hold(1, 40).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn another_short_history_is_legal() {
    hold(2, 40).await;
}

/// The one of `make soak`: short unless the environment asks for more.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_history_asked_for_is_legal() {
    let asked = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let Some(steps) = asked("HUTCH_CHAOS_STEPS") else {
        return;
    };
    let seed = asked("HUTCH_CHAOS_SEED").unwrap_or(1);
    hold(seed, usize::try_from(steps).unwrap()).await;
}

//! How long a start takes, step by step: `cargo bench -p hutch-drivers`, as root.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout
)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hutch_protocol::InstanceType;
use support::{Machine, ping};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let machine = Machine::new().await;
    let mut totals = Vec::new();
    let mut starts = Vec::new();
    let mut stops = Vec::new();
    let mut order = Vec::new();
    let mut steps: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for round in 0..100 {
        let spec = machine.spec(&format!("s{}", round % 4), InstanceType::Standard2);
        tokio::time::sleep(Duration::from_millis(150)).await;
        let begun = Instant::now();
        let instance = hutch_drivers::Driver::start(&machine.driver, spec)
            .await
            .unwrap();
        starts.push(begun.elapsed().as_micros() as u64);
        assert_eq!(ping(&instance).await, "pong");
        totals.push(begun.elapsed().as_micros() as u64);
        for (step, took) in instance.boot_steps() {
            if !steps.contains_key(step) {
                order.push(step.clone());
            }
            steps.entry(step.clone()).or_default().push(*took);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        let begun = Instant::now();
        instance.stop().await.unwrap();
        stops.push(begun.elapsed().as_micros() as u64);
    }
    for step in order {
        show(&step, steps.remove(&step).unwrap());
    }
    show("start()", starts);
    show("start() + ping", totals);
    show("stop()", stops);
    machine.close().await;
}

fn show(name: &str, mut took: Vec<u64>) {
    took.sort_unstable();
    let at = |part: usize| took[(took.len() - 1) * part / 100];
    println!(
        "{name:16} p50 {:6} us  p95 {:6}  min {:6}  max {:6}",
        at(50),
        at(95),
        at(0),
        at(100)
    );
}

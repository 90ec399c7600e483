//! A boot from start to stop, and what is left of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use hutch_protocol::InstanceType;
use support::{Machine, ping, run};

#[tokio::test]
async fn a_sandbox_starts_runs_and_stops() {
    let machine = Machine::new().await;
    let instance = machine.start("one", InstanceType::Basic).await;
    let (code, out) = run(&instance, "hostname; id -u; pwd; echo $HOME; ls /").await;
    assert_eq!(code, 0, "{out}");
    assert_eq!(ping(&instance).await, "pong");
    instance.stop().await.unwrap();
    instance.stop().await.unwrap();
    drop(instance);
    machine.close().await;
}

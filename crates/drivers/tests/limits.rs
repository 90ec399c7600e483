//! What a greedy sandbox can take: its own limit, nothing of its daemon or of
//! a neighbour.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;

use hutch_drivers::{CpuLimit, Instance, NativeDriver};
use hutch_protocol::InstanceType;
use support::{Machine, ping, run, wait_until};

/// PID 1's groups, as the host sees them.
fn groups_of(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default()
}

#[tokio::test]
async fn a_memory_hog_ends_at_the_limit_while_daemon_and_neighbour_answer() {
    let machine = Machine::new().await;
    let hog = machine.start("hog", InstanceType::Lite).await;
    let neighbour = machine.start("neighbour", InstanceType::Lite).await;
    let pid = hog.identity().pid;
    wait_until("the daemon is parted from commands", || {
        groups_of(pid).matches("/daemon").count() >= 5
    })
    .await;
    let (code, _) = run(&hog, "exec python3 -c \"x = b'x' * (1 << 30)\"").await;
    assert_ne!(code, 0);
    assert_eq!(ping(&hog).await, "pong");
    assert_eq!(run(&neighbour, "echo alive").await.1, "alive\n");
    let usage = hog.usage().unwrap();
    assert!(usage.oom_kills >= 1, "{usage:?}");
    assert!(
        usage.memory_bytes <= InstanceType::Lite.memory_bytes(),
        "{usage:?}"
    );
    assert_eq!(neighbour.usage().unwrap().oom_kills, 0);
    // Also what is written to memory file systems counts.
    let (code, _) = run(&hog, "exec head -c 1G /dev/zero > /dev/shm/full").await;
    assert_ne!(code, 0);
    assert_eq!(ping(&hog).await, "pong");
    // Names without content take memory, too, and outlive whoever is killed
    // for them: there are no more than fit beside a command.
    let (_, out) = run(
        &hog,
        "for d in /dev/shm /run; do (cd $d && seq 20000 | xargs mkdir 2>/dev/null; ls | wc -l); done",
    )
    .await;
    let most = |line: &str| line.parse().is_ok_and(|names: u32| names < 8192);
    assert!(out.lines().count() == 2 && out.lines().all(most), "{out}");
    let (code, out) = run(&hog, "head -c 16M /dev/zero | tail -c 1 | wc -c").await;
    assert_eq!((code, out.trim()), (0, "1"), "{:?}", hog.usage());
    drop((hog, neighbour));
    machine.close().await;
}

#[tokio::test]
async fn a_fork_bomb_ends_at_the_limit_while_daemon_and_neighbour_answer() {
    let machine = Machine::new().await;
    let bomb = machine.start("bomb", InstanceType::Lite).await;
    let neighbour = machine.start("neighbour", InstanceType::Lite).await;
    // Every process of it stays: 512 is where it must stop.
    let (_, out) = run(
        &bomb,
        "for i in $(seq 1 2000); do sleep 1000 >/dev/null 2>&1 & done 2>&1 | tail -1; jobs -p | wc -l",
    )
    .await;
    let usage = bomb.usage().unwrap();
    let limit = u64::from(InstanceType::Lite.pids());
    assert!(
        usage.pids <= limit && usage.pids > limit / 2,
        "{usage:?} {out}"
    );
    assert_eq!(ping(&bomb).await, "pong");
    assert_eq!(run(&neighbour, "echo alive").await.1, "alive\n");
    bomb.stop().await.unwrap();
    drop((bomb, neighbour));
    machine.close().await;
}

#[tokio::test]
async fn a_frozen_sandbox_uses_no_time_and_goes_on() {
    let machine = Machine::new().await;
    let instance = machine.start("busy", InstanceType::Basic).await;
    run(&instance, "(while :; do :; done) >/dev/null 2>&1 &").await;
    instance
        .freeze(std::time::Duration::from_secs(5))
        .await
        .unwrap();
    let before = instance.usage().unwrap().cpu_ns;
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    // What ran up to the freeze may be counted a moment later.
    let used = instance.usage().unwrap().cpu_ns - before;
    assert!(used < 5_000_000, "{used}");
    instance.thaw().await.unwrap();
    assert_eq!(ping(&instance).await, "pong");
    let mut after = before;
    wait_until("it uses time again", || {
        after = instance.usage().unwrap().cpu_ns;
        after > before + 10_000_000
    })
    .await;
    // A frozen one can be stopped.
    instance
        .freeze(std::time::Duration::from_secs(5))
        .await
        .unwrap();
    instance.stop().await.unwrap();
    drop(instance);
    machine.close().await;
}

/// What the host enforces on a whole sandbox.
fn limit(instance: &Arc<dyn Instance>, controller: &str, file: &str) -> String {
    let path = format!(
        "/sys/fs/cgroup/{controller}/{}/{file}",
        instance.identity().cgroup
    );
    std::fs::read_to_string(path).unwrap().trim().to_owned()
}

#[tokio::test]
async fn each_size_is_limited_to_exactly_what_it_says() {
    let machine = Machine::new().await;
    for size in InstanceType::ALL {
        let a = machine.start(size.as_str(), size).await;
        let seen = (
            limit(&a, "memory", "memory.limit_in_bytes"),
            limit(&a, "pids", "pids.max"),
            limit(&a, "cpu", "cpu.shares"),
            limit(&a, "cpu", "cpu.cfs_quota_us"),
        );
        let shares = u64::from(size.cpu_millis()) * 1024 / 1000;
        let expected = (
            size.memory_bytes().to_string(),
            size.pids().to_string(),
            shares.to_string(),
            "-1".to_owned(),
        );
        assert_eq!(seen, expected, "{size}");
        a.stop().await.unwrap();
    }
    machine.close().await;
}

#[tokio::test]
async fn a_cap_holds_on_an_idle_machine_too() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = support::options(dir.path(), 1);
    options.cpu = CpuLimit::Capped;
    let machine = Machine {
        driver: NativeDriver::connect_or_start(options).await.unwrap(),
        volumes: hutch_drivers::DirectoryVolumes::open(dir.path()).unwrap(),
        project: hutch_protocol::ProjectId::random(),
        dir,
    };
    let a = machine.start("a", InstanceType::Lite).await;
    assert_eq!(limit(&a, "cpu", "cpu.cfs_period_us"), "100000");
    assert_eq!(limit(&a, "cpu", "cpu.cfs_quota_us"), "6300");
    let begun = (std::time::Instant::now(), a.usage().unwrap().cpu_ns);
    run(&a, "timeout 1 sh -c 'while :; do :; done'").await;
    let used = a.usage().unwrap().cpu_ns - begun.1;
    let most = begun.0.elapsed().as_nanos() as u64 / 1000 * 63;
    // A period more than it should, at worst.
    assert!(used < most + 20_000_000, "{used} of {most}");
    drop(a);
    machine.close().await;
}

#[tokio::test]
async fn programs_can_size_themselves_by_the_limits_and_not_change_them() {
    let machine = Machine::new().await;
    let instance = machine.start("sized", InstanceType::Basic).await;
    let (code, out) = run(
        &instance,
        "cd /sys/fs/cgroup && cat memory/memory.limit_in_bytes pids/pids.max",
    )
    .await;
    assert_eq!((code, out.as_str()), (0, "939524096\n992\n"));
    for way in [
        "echo 1 > /sys/fs/cgroup/memory/memory.force_empty",
        "echo max > /sys/fs/cgroup/pids/pids.max",
        "echo 0 > /sys/fs/cgroup/pids/cgroup.procs",
        "mkdir /sys/fs/cgroup/memory/own",
        "ls /sys/fs/cgroup/memory/../memory/daemon",
    ] {
        let (code, out) = run(&instance, way).await;
        assert_ne!(code, 0, "{way}: {out}");
    }
    drop(instance);
    machine.close().await;
}

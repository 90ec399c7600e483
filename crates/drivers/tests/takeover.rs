//! What a spawner takes over from one that was killed, and what it leaves
//! alone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::path::{Path, PathBuf};

use hutch_drivers::{Driver, DriverError, Exit, NativeDriver};
use hutch_protocol::InstanceType;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::{
    Machine, is_alive, kill, leftovers, options, ping, run, spawner_of, spawners_of, wait_until,
};

/// Kills the spawner and waits until those go that were only prepared.
async fn kill_spawner(machine: &Machine) {
    let dir = machine.dir.path();
    kill(spawner_of(dir).unwrap());
    wait_until("prepared boots are gone", || spawners_of(dir).is_empty()).await;
}

fn record(machine: &Machine) -> PathBuf {
    let boots = std::fs::read_dir(machine.dir.path().join("run/boots")).unwrap();
    let records = boots.flatten().map(|entry| entry.path().join("boot.json"));
    let found: Vec<PathBuf> = records.filter(|path| path.exists()).collect();
    assert_eq!(found.len(), 1);
    found[0].clone()
}

fn group(cgroup: &str) -> PathBuf {
    Path::new("/sys/fs/cgroup/unified").join(cgroup)
}

#[tokio::test]
async fn sandboxes_outlive_a_killed_spawner_and_the_next_takes_them_over() {
    let machine = Machine::new().await;
    let a = machine.start("a", InstanceType::Basic).await;
    run(&a, "setsid sleep 1000 >/dev/null 2>&1 &").await;
    let identity = a.identity().clone();
    kill_spawner(&machine).await;
    assert_eq!(ping(&a).await, "pong");
    // The next question makes a spawner.
    let running = machine.driver.running().await.unwrap();
    assert_eq!(running.len(), 1);
    assert_eq!(*running[0].identity(), identity);
    assert_eq!(run(&running[0], "pgrep -c sleep").await.1, "1\n");
    // It makes new ones beside it, and other host ids.
    let b = machine.start("b", InstanceType::Basic).await;
    let uid = |pid: u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("Uid:"))
            .unwrap();
        line.to_owned()
    };
    assert_ne!(uid(identity.pid), uid(b.identity().pid));
    let log = machine.driver.log(machine.key("a"), 4096).await.unwrap();
    assert!(log.text.contains("runs on under a new spawner"), "{log:?}");
    // Its end is seen, though not how, and everything of it goes.
    let (stopped, exit) = tokio::join!(running[0].stop(), running[0].exited());
    stopped.unwrap();
    assert_eq!((exit.code, exit.signal), (None, None));
    assert!(!group(&identity.cgroup).exists());
    // Its parent is the machine's init by now, which reaps when it comes to it.
    wait_until("PID 1 is gone", || !is_alive(identity.pid)).await;
    drop((a, b, running));
    machine.close().await;
}

#[tokio::test]
async fn the_daemons_output_is_followed_on_after_a_takeover() {
    let machine = Machine::new().await;
    let a = machine.start("a", InstanceType::Basic).await;
    kill_spawner(&machine).await;
    let running = machine.driver.running().await.unwrap();
    // Its own end cannot be opened anew: the pipe is the host's.
    let (code, _) = support::as_pid_1(&a, "echo x > /proc/1/fd/2").await;
    assert_ne!(code, 0);
    support::as_pid_1(&a, "say said by the daemon").await;
    let mut said = false;
    for _ in 0..2000 {
        let log = machine.driver.log(machine.key("a"), 4096).await.unwrap();
        said = log.text.contains("said by the daemon");
        if said {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert!(said);
    drop((a, running));
    machine.close().await;
}

#[tokio::test]
async fn whatever_differs_from_the_record_is_removed_and_not_taken_over() {
    type Change = (&'static str, fn(&mut Value));
    let wrong: [Change; 7] = [
        ("/startTime", |value| {
            *value = json!(value.as_u64().unwrap() + 1)
        }),
        ("/netnsInode", |value| {
            *value = json!(value.as_u64().unwrap() + 1)
        }),
        ("/pidnsInode", |value| {
            *value = json!(value.as_u64().unwrap() + 1)
        }),
        ("/cgroupInode", |value| {
            *value = json!(value.as_u64().unwrap() + 1)
        }),
        ("/machine", |value| {
            *value = json!("another boot of the machine")
        }),
        ("/pid", |value| *value = json!(std::process::id())),
        ("/dataDir", |value| *value = json!("0123456789abcdef")),
    ];
    let machine = Machine::new().await;
    for (field, change) in wrong {
        let a = machine.start("a", InstanceType::Basic).await;
        let identity = a.identity().clone();
        kill_spawner(&machine).await;
        let path = record(&machine);
        let mut known: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        change(
            known
                .pointer_mut(&format!("/boot/identity{field}"))
                .unwrap(),
        );
        std::fs::write(&path, known.to_string()).unwrap();
        assert!(
            machine.driver.running().await.unwrap().is_empty(),
            "{field}"
        );
        assert!(!group(&identity.cgroup).exists(), "{field}");
        wait_until("PID 1 is gone", || !is_alive(identity.pid)).await;
        assert_eq!(a.exited().await, Exit::UNKNOWN);
    }
    machine.close().await;
}

#[tokio::test]
async fn two_data_directories_never_touch_each_other() {
    let one = Machine::new().await;
    let two = Machine::new().await;
    let a = one.start("a", InstanceType::Basic).await;
    let b = two.start("b", InstanceType::Basic).await;
    // The second finds the first's record among its own.
    let forged = record(&one);
    let place = two.dir.path().join("run/boots/forged");
    std::fs::create_dir(&place).unwrap();
    std::fs::copy(forged, place.join("boot.json")).unwrap();
    kill_spawner(&two).await;
    let running = two.driver.running().await.unwrap();
    assert_eq!(running.len(), 1);
    assert_eq!(running[0].identity(), b.identity());
    assert!(!place.exists());
    assert_eq!(ping(&a).await, "pong");
    // A copy of the first directory takes nothing of it, either.
    let copy = tempfile::tempdir().unwrap();
    for name in ["id", "id.place"] {
        std::fs::copy(one.dir.path().join(name), copy.path().join(name)).unwrap();
    }
    let copied = NativeDriver::connect_or_start(options(copy.path(), 1))
        .await
        .unwrap();
    assert!(copied.running().await.unwrap().is_empty());
    drop(copied);
    wait_until("the copy's spawner is gone", || {
        spawners_of(copy.path()).is_empty()
    })
    .await;
    // The end of one is not the other's.
    kill_process(
        Pid::from_raw(spawner_of(two.dir.path()).unwrap()).unwrap(),
        Signal::TERM,
    )
    .unwrap();
    let id = two.id();
    wait_until("the second is gone", || leftovers(&id).is_empty()).await;
    assert_eq!(ping(&a).await, "pong");
    drop((a, b, running));
    one.close().await;
}

#[tokio::test]
async fn an_older_server_is_refused_by_the_next_spawner_too() {
    let machine = Machine::new().await;
    let newer = NativeDriver::connect_or_start(options(machine.dir.path(), 7))
        .await
        .unwrap();
    let keeps = newer
        .start(machine.spec("a", InstanceType::Basic))
        .await
        .unwrap();
    kill_spawner(&machine).await;
    drop(newer);
    let older = NativeDriver::connect_or_start(options(machine.dir.path(), 6)).await;
    assert!(matches!(older, Err(DriverError::Superseded(_))));
    assert_eq!(ping(&keeps).await, "pong");
    drop(keeps);
    let Machine {
        dir,
        volumes,
        project,
        ..
    } = machine;
    let driver = NativeDriver::connect_or_start(options(dir.path(), 8))
        .await
        .unwrap();
    Machine {
        dir,
        driver,
        volumes,
        project,
    }
    .close()
    .await;
}

#[tokio::test]
async fn what_a_newer_release_started_is_left_alone() {
    let machine = Machine::new().await;
    let a = machine.start("a", InstanceType::Basic).await;
    kill_spawner(&machine).await;
    let path = record(&machine);
    let known = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, known.replacen("\"v\":1", "\"v\":2", 1)).unwrap();
    let Err(refused) = machine.driver.running().await else {
        panic!("it read what it cannot know");
    };
    assert!(
        refused.to_string().contains("run the newer release"),
        "{refused}"
    );
    assert_eq!(ping(&a).await, "pong");
    std::fs::write(&path, known).unwrap();
    assert_eq!(machine.driver.running().await.unwrap().len(), 1);
    drop(a);
    machine.close().await;
}

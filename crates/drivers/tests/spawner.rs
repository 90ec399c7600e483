//! What happens when the server, the spawner or a sandbox dies.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::path::Path;

use hutch_drivers::{Driver, DriverError, NativeDriver};
use hutch_protocol::InstanceType;
use rustix::process::{Pid, Signal, kill_process};
use support::{Machine, is_alive, kill, leftovers, options, ping, run, spawner_of, wait_until};

#[tokio::test]
async fn stop_leaves_no_process_mount_group_or_namespace() {
    let machine = Machine::new().await;
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let a = machine.start("a", InstanceType::Basic).await;
    let (code, out) = run(
        &a,
        "setsid sleep 1000 >/dev/null 2>&1 & setsid nohup sleep 1001 >/dev/null 2>&1 &",
    )
    .await;
    assert_eq!(code, 0, "{out}");
    let identity = a.identity().clone();
    assert_eq!(
        std::fs::read_to_string("/proc/self/mountinfo").unwrap(),
        mounts
    );
    assert!(identity.netns_inode > 0 && identity.start_time > 0);
    a.stop().await.unwrap();
    assert_eq!(a.exited().await.signal, Some(9));
    assert!(!is_alive(identity.pid));
    for hierarchy in ["memory", "pids", "cpu", "cpuacct", "unified"] {
        let group = Path::new("/sys/fs/cgroup")
            .join(hierarchy)
            .join(&identity.cgroup);
        assert!(!group.exists(), "{}", group.display());
    }
    let namespace = format!("net:[{}]", identity.netns_inode);
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let link = std::fs::read_link(entry.path().join("ns/net")).unwrap_or_default();
        assert_ne!(
            link.to_string_lossy(),
            namespace,
            "{}",
            entry.path().display()
        );
    }
    assert_eq!(
        std::fs::read_to_string("/proc/self/mountinfo").unwrap(),
        mounts
    );
    drop(a);
    let dir = machine.dir.path().to_owned();
    let id = machine.id();
    let Machine {
        dir: kept, driver, ..
    } = machine;
    drop(driver);
    wait_until("the spawner is gone", || {
        leftovers(&id).is_empty() && spawner_of(&dir).is_none()
    })
    .await;
    let left: Vec<_> = std::fs::read_dir(dir.join("run/boots"))
        .into_iter()
        .flatten()
        .collect();
    assert!(left.is_empty(), "{left:?}");
    drop(kept);
}

#[tokio::test]
async fn sandboxes_outlive_their_server_and_are_adopted() {
    let machine = Machine::new().await;
    let a = machine.start("a", InstanceType::Basic).await;
    run(&a, "echo kept > /tmp/kept; (sleep 1000 >/dev/null 2>&1) &").await;
    let identity = a.identity().clone();
    drop(a);
    let Machine {
        dir,
        driver,
        volumes,
        project,
    } = machine;
    drop(driver);
    let driver = NativeDriver::connect_or_start(options(dir.path(), 2))
        .await
        .unwrap();
    let machine = Machine {
        dir,
        driver,
        volumes,
        project,
    };
    let running = machine.driver.running().await.unwrap();
    assert_eq!(running.len(), 1);
    let a = &running[0];
    assert_eq!(*a.identity(), identity);
    assert_eq!(run(a, "cat /tmp/kept; pgrep -c sleep").await.1, "kept\n1\n");
    // Its end is told to the new server.
    let (_, exit) = tokio::join!(a.stop(), a.exited());
    assert_eq!(exit.signal, Some(9));
    drop(running);
    machine.close().await;
}

#[tokio::test]
async fn an_older_generation_is_refused_and_a_newer_takes_over() {
    let machine = Machine::new().await;
    let a = machine.start("a", InstanceType::Basic).await;
    let newer = NativeDriver::connect_or_start(options(machine.dir.path(), 7))
        .await
        .unwrap();
    assert_eq!(newer.running().await.unwrap().len(), 1);
    let older = NativeDriver::connect_or_start(options(machine.dir.path(), 6)).await;
    assert!(matches!(older, Err(DriverError::Superseded(_))));
    // The one before cannot start anything any more, its sandbox runs on.
    let refused = machine
        .driver
        .start(machine.spec("b", InstanceType::Basic))
        .await;
    assert!(matches!(refused, Err(DriverError::Superseded(_))));
    assert_eq!(ping(&a).await, "pong");
    drop(a);
    let Machine {
        dir,
        volumes,
        project,
        driver,
    } = machine;
    drop(driver);
    Machine {
        dir,
        volumes,
        project,
        driver: newer,
    }
    .close()
    .await;
}

#[tokio::test]
async fn the_end_of_pid_1_is_told_and_cleaned_up() {
    let machine = Machine::new().await;
    let a = machine.start("a", InstanceType::Basic).await;
    kill(a.identity().pid.cast_signed());
    let exit = a.exited().await;
    assert_eq!((exit.code, exit.signal), (None, Some(9)));
    let group = Path::new("/sys/fs/cgroup/unified").join(&a.identity().cgroup);
    wait_until("the group is gone", || !group.exists()).await;
    a.stop().await.unwrap();
    drop(a);
    machine.close().await;
}

#[tokio::test]
async fn a_spawner_that_is_told_to_end_takes_everything_along() {
    let machine = Machine::new().await;
    let a = machine.start("a", InstanceType::Basic).await;
    let id = machine.id();
    let spawner = spawner_of(machine.dir.path()).unwrap();
    kill_process(Pid::from_raw(spawner).unwrap(), Signal::TERM).unwrap();
    let pid = a.identity().pid;
    wait_until("nothing is left", || {
        leftovers(&id).is_empty() && !is_alive(pid)
    })
    .await;
}

#[tokio::test]
async fn a_spawner_whose_data_directory_is_gone_ends() {
    let machine = Machine::new().await;
    let a = machine.start("a", InstanceType::Basic).await;
    let id = machine.id();
    let path = machine.dir.path().to_owned();
    let Machine { dir, driver, .. } = machine;
    dir.close().unwrap();
    let pid = a.identity().pid;
    wait_until("nothing is left", || {
        leftovers(&id).is_empty() && !is_alive(pid)
    })
    .await;
    assert!(!path.exists());
    drop(driver);
}

#[tokio::test]
async fn a_start_that_fails_says_why_and_leaves_nothing() {
    let machine = Machine::new().await;
    let mut spec = machine.spec("a", InstanceType::Basic);
    spec.volume = machine.dir.path().join("never");
    let Err(cause) = machine.driver.start(spec).await else {
        panic!("it started without a volume");
    };
    assert!(cause.to_string().contains("open the volume"), "{cause}");
    assert!(machine.driver.running().await.unwrap().is_empty());
    machine.close().await;
}

#[tokio::test]
async fn twenty_boots_at_once_all_answer() {
    let machine = Machine::new().await;
    let boots = (0..20).map(|number| {
        let machine = &machine;
        async move {
            let a = machine
                .start(&format!("s{number}"), InstanceType::Lite)
                .await;
            assert_eq!(ping(&a).await, "pong");
            a
        }
    });
    let mut all = Vec::new();
    for boot in boots {
        all.push(boot);
    }
    let running = futures_join(all).await;
    assert_eq!(machine.driver.running().await.unwrap().len(), 20);
    drop(running);
    machine.close().await;
}

/// Polls all at once, on one task.
async fn futures_join<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut waiting: Vec<_> = futures
        .into_iter()
        .map(|future| (Box::pin(future), None))
        .collect();
    std::future::poll_fn(|context| {
        let mut done = true;
        for (future, output) in &mut waiting {
            if output.is_none() {
                match future.as_mut().poll(context) {
                    std::task::Poll::Ready(value) => *output = Some(value),
                    std::task::Poll::Pending => done = false,
                }
            }
        }
        if done {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    waiting
        .into_iter()
        .filter_map(|(_, output)| output)
        .collect()
}

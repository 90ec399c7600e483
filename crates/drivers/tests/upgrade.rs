//! A spawner becomes another build and lets go of nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use hutch_drivers::{Driver, NativeDriver, NativeOptions};
use hutch_protocol::InstanceType;
use rustix::process::{Pid, Signal, kill_process};
use support::{Machine, PROBE, options, ping, run, spawner_of, wait_until};

/// A copy of the program, which is another build.
fn build(dir: &Path, name: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::copy(PROBE, &path).unwrap();
    path
}

fn run_by(dir: &Path, generation: u64, program: &Path) -> NativeOptions {
    let mut options = options(dir, generation);
    options.spawner = vec![program.into(), "spawner".into()];
    options
}

fn inode_of(path: impl AsRef<Path>) -> u64 {
    std::fs::metadata(path).unwrap().ino()
}

fn program_of(pid: i32) -> u64 {
    std::fs::metadata(format!("/proc/{pid}/exe")).map_or(0, |found| found.ino())
}

async fn next(machine: Machine, options: NativeOptions) -> Machine {
    let Machine {
        dir,
        driver,
        volumes,
        project,
    } = machine;
    drop(driver);
    let driver = NativeDriver::connect_or_start(options).await.unwrap();
    Machine {
        dir,
        driver,
        volumes,
        project,
    }
}

#[tokio::test]
async fn a_server_of_another_build_has_the_spawner_become_it_while_a_command_runs() {
    let builds = tempfile::tempdir().unwrap();
    let machine = Machine::new().await;
    let a = machine.start("a", InstanceType::Basic).await;
    let b = machine.start("b", InstanceType::Basic).await;
    let spawner = spawner_of(machine.dir.path()).unwrap();
    run(&a, "mkfifo /tmp/go").await;
    let command = run(&a, "read line < /tmp/go; echo $line");
    let upgrading = async {
        let newer = build(builds.path(), "newer");
        let options = run_by(machine.dir.path(), 2, &newer);
        let driver = NativeDriver::connect_or_start(options).await.unwrap();
        assert_eq!(spawner_of(machine.dir.path()), Some(spawner));
        assert_eq!(program_of(spawner), inode_of(&newer));
        run(&a, "echo went on > /tmp/go").await;
        driver
    };
    let ((_, out), driver) = tokio::join!(command, upgrading);
    assert_eq!(out, "went on\n");
    let running = driver.running().await.unwrap();
    let mut boots: Vec<_> = running.iter().map(|boot| boot.identity().clone()).collect();
    boots.sort_by_key(|identity| identity.sandbox.clone());
    assert_eq!(boots, [a.identity().clone(), b.identity().clone()]);
    // Ends are told with their status: they are its children still.
    let (_, exit) = tokio::join!(running[0].stop(), running[0].exited());
    assert_eq!(exit.signal, Some(9));
    let Machine {
        dir,
        volumes,
        project,
        ..
    } = machine;
    let machine = Machine {
        dir,
        driver,
        volumes,
        project,
    };
    let c = machine.start("c", InstanceType::Basic).await;
    assert_eq!(ping(&c).await, "pong");
    let log = machine.driver.log(machine.key("c"), 4096).await.unwrap();
    assert!(log.text.contains("started in"), "{log:?}");
    drop((a, b, c, running));
    machine.close().await;
}

#[tokio::test]
async fn a_build_that_cannot_take_over_leaves_the_old_one_serving() {
    let builds = tempfile::tempdir().unwrap();
    let mut machine = Machine::new().await;
    let a = machine.start("a", InstanceType::Basic).await;
    let spawner = spawner_of(machine.dir.path()).unwrap();
    let script = |name: &str, text: &str| {
        let path = builds.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path
    };
    let wrong = [
        script("refuses", "no program at all"),
        PathBuf::from("/bin/false"),
        script("plain", "").with_file_name("never"),
    ];
    for (number, program) in wrong.iter().enumerate() {
        let options = run_by(machine.dir.path(), 2 + number as u64, program);
        machine = next(machine, options).await;
        assert_eq!(spawner_of(machine.dir.path()), Some(spawner));
        assert_eq!(
            program_of(spawner),
            inode_of(PROBE),
            "{}",
            program.display()
        );
        assert_eq!(machine.driver.running().await.unwrap().len(), 1);
        assert_eq!(ping(&a).await, "pong");
    }
    let log = std::fs::read_to_string(machine.dir.path().join("run/spawner.log")).unwrap();
    assert_eq!(
        log.matches("could not become another build").count(),
        2,
        "{log}"
    );
    drop(a);
    machine.close().await;
}

#[tokio::test]
async fn a_signal_has_it_become_the_program_at_its_path() {
    let builds = tempfile::tempdir().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = build(builds.path(), "hutch");
    let driver = NativeDriver::connect_or_start(run_by(dir.path(), 1, &path))
        .await
        .unwrap();
    let machine = Machine {
        volumes: hutch_drivers::DirectoryVolumes::open(dir.path()).unwrap(),
        project: hutch_protocol::ProjectId::random(),
        dir,
        driver,
    };
    let a = machine.start("a", InstanceType::Basic).await;
    let spawner = spawner_of(machine.dir.path()).unwrap();
    let newer = build(builds.path(), "newer");
    std::fs::rename(&newer, &path).unwrap();
    assert_ne!(program_of(spawner), inode_of(&path));
    kill_process(Pid::from_raw(spawner).unwrap(), Signal::USR2).unwrap();
    wait_until("it is the new program", || {
        program_of(spawner) == inode_of(&path)
    })
    .await;
    // The server's connection went along.
    let running = machine.driver.running().await.unwrap();
    assert_eq!(running[0].identity(), a.identity());
    a.stop().await.unwrap();
    drop((a, running));
    machine.close().await;
}

#[test]
fn a_state_of_a_newer_version_is_refused_in_words() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    std::fs::write(&state, r#"{"v":2,"boots":"of another shape"}"#).unwrap();
    for flag in ["--check-state", "--resume"] {
        let script = "exec 9<\"$1\"; exec \"$2\" spawner --data-dir \"$3\" \"$4\" 9";
        let output = std::process::Command::new("bash")
            .args(["-c", script, "bash"])
            .arg(&state)
            .arg(PROBE)
            .arg(dir.path().join("data"))
            .arg(flag)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(
            words.contains("version 2") && words.contains("nothing was changed"),
            "{words}"
        );
    }
}

//! Server, spawner and machine die in every combination, or are replaced.

use hutch_e2e::{Hutch, left_over, sandboxd_of, spawner_of, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

fn kill(pid: u32) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    // What a spawner had prepared may have gone with it.
    match kill_process(pid, Signal::KILL) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(cause) => panic!("kill: {cause}"),
    }
}

/// Destroys everything, stops the server and looks for what is left.
async fn end_and_find_nothing(mut hutch: Hutch) {
    let destroyed = hutch.cli(&["sandbox", "destroy", "--all", "--yes"]);
    assert!(destroyed.status.success());
    hutch.end(Signal::TERM);
    let mut left = Vec::new();
    wait_until("nothing is left over", || {
        left = left_over(&hutch);
        left.is_empty()
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_the_spawner_interrupts_nothing() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    sandbox.sh("mkfifo go").await;
    let before = (
        sandbox.json("describe", &[]).await["bootId"].clone(),
        sandboxd_of(&hutch),
    );
    let exec = sandbox.exec("read line < go; echo $line");
    let killing = async {
        kill(spawner_of(&hutch));
        sandbox.sh("echo went on > go").await;
    };
    let (result, ()) = futures_util::future::join(exec, killing).await;
    assert_eq!(result["stdout"], "went on\n");
    // Another one starts, which needs a spawner; the first is still what it was.
    let other = api.create("other", json!({})).await;
    assert_eq!(other.sh("echo here").await.1, "here\n");
    other.json("sleep", &[]).await;
    let after = (
        sandbox.json("describe", &[]).await["bootId"].clone(),
        sandboxd_of(&hutch),
    );
    assert_eq!(after, before);
    sandbox.sh("echo kept > f").await;
    sandbox.json("sleep", &[]).await;
    assert_eq!(sandbox.sh("cat f").await.1, "kept\n");
    end_and_find_nothing(hutch).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_both_server_and_spawner_loses_no_sandbox() {
    let mut hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    sandbox.sh("echo kept > /tmp/only-while-awake").await;
    let before = (
        sandbox.json("describe", &[]).await["bootId"].clone(),
        sandboxd_of(&hutch),
    );
    hutch.end(Signal::KILL);
    drop(api);
    for pid in hutch.processes() {
        kill(pid);
    }
    wait_until("server and spawner are gone", || {
        hutch.processes().is_empty()
    });
    hutch.serve();
    let api = hutch.api().await;
    let sandbox = api.sandbox("main");
    assert_eq!(sandbox.sh("cat /tmp/only-while-awake").await.1, "kept\n");
    let after = (
        sandbox.json("describe", &[]).await["bootId"].clone(),
        sandboxd_of(&hutch),
    );
    assert_eq!(after, before);
    assert_eq!(api.events("main").await, ["created", "started"]);
    end_and_find_nothing(hutch).await;
}

/// As a reboot leaves it: no process, no group; files on disk as they were.
async fn reboot(mut hutch: Hutch, lose_run: bool) {
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    sandbox.sh("echo slept > slept").await;
    sandbox.json("sleep", &[]).await;
    sandbox
        .sh("echo dirty > dirty; echo gone > /dev/shm/gone")
        .await;
    let daemon = sandboxd_of(&hutch);
    hutch.end(Signal::KILL);
    drop(api);
    for pid in hutch.processes() {
        kill(pid);
    }
    kill(daemon);
    let id = std::fs::read_to_string(hutch.data_dir().join("id")).unwrap();
    wait_until("everything is gone", || {
        let name = format!("/hutch-{}/", id.trim());
        let groups = std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .map(|entry| std::fs::read_to_string(entry.path().join("cgroup")).unwrap_or_default());
        let alive = groups.filter(|lines| lines.contains(&name)).count();
        hutch.processes().is_empty() && alive == 0
    });
    for hierarchy in std::fs::read_dir("/sys/fs/cgroup").unwrap().flatten() {
        remove_group(&hierarchy.path().join(format!("hutch-{}", id.trim())));
    }
    if lose_run {
        std::fs::remove_dir_all(hutch.data_dir().join("run")).unwrap();
    }
    hutch.serve();
    let api = hutch.api().await;
    let found = api
        .sandbox("main")
        .sh("cat slept dirty; ls /dev/shm")
        .await
        .1;
    assert_eq!(found, "slept\ndirty\n");
    let events = api.events("main").await;
    assert_eq!(
        events[events.len() - 3..],
        ["started", "stopped", "started"]
    );
    end_and_find_nothing(hutch).await;
}

fn remove_group(group: &std::path::Path) {
    for entry in std::fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().unwrap().is_dir() {
            remove_group(&entry.path());
        }
    }
    if group.exists() {
        std::fs::remove_dir(group).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_reboot_the_dirty_disk_is_used_and_the_end_is_told() {
    reboot(Hutch::start(), false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_reboot_that_lost_the_run_directory_it_is_the_same() {
    reboot(Hutch::start(), true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_over_a_killed_sandbox_tells_its_end_once() {
    let mut hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    sandbox.sh("echo kept > f").await;
    hutch.end(Signal::KILL);
    drop(api);
    kill(spawner_of(&hutch));
    kill(sandboxd_of(&hutch));
    hutch.serve();
    let api = hutch.api().await;
    assert_eq!(api.sandbox("main").sh("cat f").await.1, "kept\n");
    assert_eq!(
        api.events("main").await,
        ["created", "started", "stopped", "started"]
    );
    end_and_find_nothing(hutch).await;
}

/// A folder with binaries of its own, which are another build to the spawner.
fn another_build() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["hutch", "sandboxd"] {
        std::fs::copy(hutch_e2e::binaries().join(name), folder.path().join(name)).unwrap();
    }
    folder
}

fn program_of(pid: u32) -> std::path::PathBuf {
    std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_takes_the_spawner_along_and_keeps_sandboxes_and_their_commands() {
    let mut hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    sandbox.sh("mkfifo go").await;
    let waiting = json!("read line < go; echo $line");
    let process = sandbox.json("startProcess", &[waiting]).await["id"].clone();
    let before = (
        sandbox.json("describe", &[]).await["bootId"].clone(),
        sandboxd_of(&hutch),
    );
    let spawner = spawner_of(&hutch);
    hutch.end(Signal::TERM);
    drop(api);
    let folder = another_build();
    hutch.upgrade_to(folder.path());
    hutch.serve();
    assert_eq!(spawner_of(&hutch), spawner);
    assert_eq!(program_of(spawner), folder.path().join("hutch"));
    let api = hutch.api().await;
    let sandbox = api.sandbox("main");
    let after = (
        sandbox.json("describe", &[]).await["bootId"].clone(),
        sandboxd_of(&hutch),
    );
    assert_eq!(after, before);
    sandbox.sh("echo went on > go").await;
    let exit = sandbox
        .json("waitForExit", std::slice::from_ref(&process))
        .await;
    assert_eq!(exit["exitCode"], 0);
    let logs = sandbox.json("getProcessLogs", &[process]).await;
    assert_eq!(logs["stdout"], "went on\n");
    sandbox.json("sleep", &[]).await;
    assert_eq!(sandbox.sh("echo awake").await.1, "awake\n");
    end_and_find_nothing(hutch).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replaced_program_is_taken_up_by_signal_while_a_command_runs() {
    let folder = another_build();
    let hutch = Hutch::start_from(folder.path());
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    sandbox.sh("mkfifo go").await;
    let spawner = spawner_of(&hutch);
    let exec = sandbox.exec("read line < go; echo $line");
    let upgrading = async {
        let newer = folder.path().join("newer");
        std::fs::copy(hutch_e2e::binaries().join("hutch"), &newer).unwrap();
        std::fs::rename(&newer, folder.path().join("hutch")).unwrap();
        let pid = Pid::from_raw(i32::try_from(spawner).unwrap()).unwrap();
        kill_process(pid, Signal::USR2).unwrap();
        // The old one is shown as deleted.
        wait_until("the spawner is the new program", || {
            program_of(spawner) == folder.path().join("hutch")
        });
        sandbox.sh("echo went on > go").await;
    };
    let (result, ()) = futures_util::future::join(exec, upgrading).await;
    assert_eq!(result["stdout"], "went on\n");
    assert_eq!(spawner_of(&hutch), spawner);
    sandbox.json("sleep", &[]).await;
    assert_eq!(sandbox.sh("echo awake").await.1, "awake\n");
    end_and_find_nothing(hutch).await;
}

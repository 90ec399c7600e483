use hutch_e2e::{Hutch, sandboxd_of, string, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

fn kill(pid: u32) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_server_adopts_running_sandboxes_and_their_commands() {
    let mut hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    sandbox.sh("mkfifo go").await;
    let reader = "exec 3<>go; for i in 1 2 3; do read -u 3 line; echo $line; done";
    let process = sandbox.json("startProcess", &[json!(reader)]).await;
    sandbox
        .sh("until pgrep -f 'read -u' >/dev/null; do :; done")
        .await;
    let before = sandbox.json("describe", &[]).await;
    let daemon = sandboxd_of(&hutch);
    hutch.end(Signal::KILL);
    drop(api);
    hutch.serve();
    let api = hutch.api().await;
    let sandbox = api.sandbox("main");
    let after = sandbox.json("describe", &[]).await;
    assert_eq!(
        (&after["running"], &after["bootId"]),
        (&json!(true), &before["bootId"])
    );
    assert_eq!(sandboxd_of(&hutch), daemon);
    let again = sandbox.json("getProcess", &[process["id"].clone()]).await;
    assert_eq!(
        (&again["status"], &again["pid"]),
        (&json!("running"), &process["pid"])
    );
    assert_eq!(
        sandbox.sh("for i in 1 2 3; do echo $i > go; done").await.0,
        0
    );
    let exit = sandbox.json("waitForExit", &[process["id"].clone()]).await;
    assert_eq!(exit["exitCode"], 0);
    let logs = sandbox
        .json("getProcessLogs", &[process["id"].clone()])
        .await;
    assert_eq!(logs["stdout"], "1\n2\n3\n");
    assert_eq!(
        api.events("main")
            .await
            .iter()
            .filter(|name| *name == "started")
            .count(),
        1
    );
    sandbox.json("sleep", &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_stopped_in_order_leaves_sandboxes_running() {
    let mut hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    sandbox.sh("echo x > /tmp/only-while-awake").await;
    drop(api);
    hutch.end(Signal::TERM);
    hutch.serve();
    let api = hutch.api().await;
    assert_eq!(
        api.sandbox("main").sh("cat /tmp/only-while-awake").await.1,
        "x\n"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_sandboxd_is_recorded_and_the_next_call_boots() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    sandbox.sh("echo kept > f").await;
    let call = sandbox.0.call("exec", vec!["sleep 600".into()]);
    sandbox
        .sh("until pgrep -x sleep >/dev/null; do :; done")
        .await;
    kill(sandboxd_of(&hutch));
    let error = call.await.unwrap_err();
    assert_eq!(error.code(), Some("OPERATION_INTERRUPTED"), "{error}");
    let stopped = json!({"eventTypes": ["sandbox/stopped"]});
    api.stream("/sandboxes/main")
        .json("waitForEvent", &[stopped])
        .await;
    assert_eq!(sandbox.sh("cat f").await, (0, "kept\n".into()));
    assert_eq!(
        api.events("main").await,
        ["created", "started", "stopped", "started"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_died_without_a_server_is_told_to_the_next_one() {
    let mut hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    sandbox.sh("echo kept > f").await;
    let daemon = sandboxd_of(&hutch);
    hutch.end(Signal::KILL);
    drop(api);
    kill(daemon);
    wait_until("sandboxd is gone", || {
        !std::path::Path::new(&format!("/proc/{daemon}/ns/mnt")).exists()
    });
    hutch.serve();
    let api = hutch.api().await;
    assert_eq!(api.sandbox("main").sh("cat f").await.1, "kept\n");
    assert_eq!(
        api.events("main").await,
        ["created", "started", "stopped", "started"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_of_boots_and_daemon_is_kept_on_the_host() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    let empty = sandbox.json("logs", &[]).await;
    assert_eq!(empty, json!({"text": "", "truncated": false}));
    sandbox.sh("true").await;
    let boot = string(&sandbox.json("describe", &[]).await["bootId"]);
    sandbox.json("sleep", &[]).await;
    // It answers asleep, and does not wake.
    let log = string(&sandbox.json("logs", &[]).await["text"]);
    for part in [
        &format!("boot {boot} started in "),
        "sandboxd::boot::daemon: serving",
        &format!("boot {boot} ended by signal 9"),
    ] {
        assert!(log.contains(part), "{part}:\n{log}");
    }
    let tail = json!({"tailBytes": 60});
    let tail = sandbox.json("logs", &[tail]).await;
    assert_eq!(tail["truncated"], true);
    assert!(log.ends_with(&string(&tail["text"])), "{tail}");
    let (code, _) = sandbox.refusal("logs", &[json!({"tailBytes": 0})]).await;
    assert_eq!(code, "VALIDATION_FAILED");
    assert_eq!(sandbox.json("describe", &[]).await["running"], false);
    sandbox.json("destroy", &[]).await;
    assert_eq!(sandbox.refusal("logs", &[]).await.0, "SANDBOX_NAME_RETIRED");
    let left = std::fs::read_dir(hutch.data_dir().join("logs")).unwrap();
    assert_eq!(left.count(), 0);
}

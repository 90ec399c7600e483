use std::time::Duration;

use hutch_e2e::{Hutch, string};
use rustix::process::Signal;
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killing_a_process_ends_its_whole_tree() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    let command = "sh -c 'trap \"\" TERM; sleep 301 & exec sleep 302'";
    let process = sandbox.json("startProcess", &[json!(command)]).await;
    let id = process["id"].clone();
    assert_eq!(
        sandbox
            .sh("until pgrep -f 'sleep 30[12]' >/dev/null; do :; done")
            .await
            .0,
        0
    );
    sandbox.json("killProcess", &[id.clone()]).await;
    let (code, out) = sandbox.sh("pgrep -fc 'sleep 30[12]'").await;
    assert_eq!((code, out.as_str()), (1, "0\n"));
    let process = sandbox.json("getProcess", &[id]).await;
    assert_eq!(process["status"], "killed");
    assert!([137, 143].contains(&process["exitCode"].as_i64().unwrap()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_are_complete_once_the_exit_is_known() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    for _ in 0..100 {
        let process = sandbox
            .json("startProcess", &[json!("echo fast; echo err >&2")])
            .await;
        assert!(process["pid"].as_u64().unwrap() > 1);
        let id = process["id"].clone();
        let exit = sandbox.json("waitForExit", &[id.clone()]).await;
        assert_eq!(exit["exitCode"], 0);
        let logs = sandbox.json("getProcessLogs", &[id]).await;
        assert_eq!(
            (
                string(&logs["stdout"]).as_str(),
                string(&logs["stderr"]).as_str()
            ),
            ("fast\n", "err\n")
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_finished_process_is_never_running_and_none_outlives_sleep() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    let process = sandbox.json("startProcess", &[json!("exit 4")]).await;
    let id = process["id"].clone();
    sandbox.json("waitForExit", &[id.clone()]).await;
    let process = sandbox.json("getProcess", &[id.clone()]).await;
    assert_eq!(
        (&process["status"], &process["exitCode"]),
        (&json!("failed"), &json!(4))
    );
    sandbox.json("startProcess", &[json!("sleep 600")]).await;
    assert_eq!(
        sandbox
            .json("listProcesses", &[])
            .await
            .as_array()
            .unwrap()
            .len(),
        2
    );

    sandbox.json("sleep", &[]).await;
    assert_eq!(sandbox.json("listProcesses", &[]).await, json!([]));
    assert_eq!(sandbox.json("getProcess", &[id.clone()]).await, json!(null));
    assert_eq!(
        sandbox.refusal("getProcessLogs", &[id.clone()]).await.0,
        "PROCESS_NOT_FOUND"
    );
    assert_eq!(
        sandbox.json("describe", &[]).await["running"],
        false,
        "looking does not wake"
    );
    sandbox.json("start", &[]).await;
    assert_eq!(sandbox.json("getProcess", &[id]).await, json!(null));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_survives_the_connection_that_started_it() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    let other = hutch.api().await;
    let process = other
        .sandbox("main")
        .json("startProcess", &[json!("sleep 600")])
        .await;
    drop(other);
    let again = sandbox.json("getProcess", &[process["id"].clone()]).await;
    assert_eq!(
        (&again["status"], &again["pid"]),
        (&json!("running"), &process["pid"])
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_belongs_to_the_sandbox_not_to_a_call_or_a_connection() {
    let mut hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    let started = sandbox.json("startProcess", &[json!("sleep 600")]).await;
    // A shell that ends, a caller that goes away, a server that dies.
    sandbox.sh("kill -9 $$").await;
    let other = hutch.api().await;
    let open = other
        .sandbox("main")
        .0
        .call("exec", vec!["sleep 611".into()]);
    let mut open = std::pin::pin!(open.into_future());
    let runs = sandbox.sh("until pgrep -f 'sleep 61[1]' >/dev/null; do :; done");
    tokio::select! {
        _ = &mut open => panic!("the command ended"),
        _ = runs => {}
    }
    drop(other);
    sandbox
        .sh("while pgrep -f 'sleep 61[1]' >/dev/null; do :; done")
        .await;
    drop(api);
    hutch.end(Signal::KILL);
    hutch.serve();
    let api = hutch.api().await;
    let listed = api.sandbox("main").json("listProcesses", &[]).await;
    let listed = listed.as_array().unwrap();
    assert_eq!(listed.len(), 1, "{listed:?}");
    for member in ["id", "pid"] {
        assert_eq!(listed[0][member], started[member]);
    }
    assert_eq!(listed[0]["status"], "running");
}

/// `HUTCH_PROCESS_SECONDS=130` lets it run for longer than any deadline of ours.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_background_process_has_no_deadline_and_its_log_no_gap() {
    let seconds = std::env::var("HUTCH_PROCESS_SECONDS").ok();
    let seconds: f64 = seconds.map_or(2.0, |text| text.parse().unwrap());
    let pause = seconds / 130.0;
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    let command = format!("for i in $(seq 130); do echo $i; sleep {pause}; done; exit 5");
    let id = sandbox.json("startProcess", &[json!(command)]).await["id"].clone();
    drop(api);
    tokio::time::sleep(Duration::from_secs_f64(seconds * 0.95)).await;
    let api = hutch.api().await;
    let sandbox = api.sandbox("main");
    let exit = sandbox.json("waitForExit", &[id.clone()]).await;
    assert_eq!(exit["exitCode"], 5);
    let logs = sandbox.json("getProcessLogs", &[id]).await;
    let all: String = (1..=130).map(|line| format!("{line}\n")).collect();
    assert_eq!(string(&logs["stdout"]), all);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_is_ready_when_the_process_itself_serves_it() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    for (port, bind) in [(8099, "::1"), (8098, "127.0.0.1"), (8097, "0.0.0.0")] {
        // Its server is a child of the process.
        let server = format!("python3 -m http.server {port} --bind {bind}; true");
        let process = sandbox.json("startProcess", &[json!(server)]).await;
        let id = process["id"].clone();
        let wait = [
            id.clone(),
            json!(port),
            json!({"timeout": 20_000, "interval": 20}),
        ];
        sandbox.json("waitForPort", &wait).await;
        let wait = [id.clone(), json!(port), json!({"mode": "tcp"})];
        sandbox.json("waitForPort", &wait).await;
        let never = json!({"path": "/none", "timeout": 300, "interval": 20});
        let wait = [id, json!(port), never];
        let (code, error) = sandbox.refusal("waitForPort", &wait).await;
        assert_eq!(code, "PROCESS_READY_TIMEOUT", "{error}");
        assert!(
            error.message.contains(&format!("port {port} (HTTP /none)")),
            "{error}"
        );
    }
    // The port is taken by another one, which answers all the time.
    let second = "python3 -m http.server 8099 --bind ::1";
    let process = sandbox.json("startProcess", &[json!(second)]).await;
    let id = process["id"].clone();
    let wait = [id.clone(), json!(8099), json!({"timeout": 20_000})];
    let error = sandbox.call("waitForPort", &wait).await.unwrap_err();
    assert_eq!(error.code(), Some("PROCESS_EXITED_BEFORE_READY"), "{error}");
    let details = error
        .props
        .get("details")
        .and_then(|details| details.get("exitCode"));
    assert_eq!(details.and_then(capnweb::Value::as_i64), Some(1), "{error}");
    let logs = sandbox.json("getProcessLogs", &[id]).await;
    assert!(string(&logs["stderr"]).contains("Address already in use"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_process_writes_can_be_waited_for() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    let command = "echo begin; printf 'now rea' >&2; sleep 0.1; printf 'dy: x\\n' >&2; sleep 600";
    let process = sandbox.json("startProcess", &[json!(command)]).await;
    let id = process["id"].clone();
    let found = sandbox
        .json("waitForLog", &[id.clone(), json!("ready")])
        .await;
    assert!(string(&found["line"]).starts_with("now ready"), "{found}");
    // What it has written before is found as well.
    let found = sandbox
        .json("waitForLog", &[id.clone(), json!("begin")])
        .await;
    assert_eq!(found["line"], "begin");
    let wait = [id.clone(), json!("never"), json!({"timeout": 50})];
    let (code, error) = sandbox.refusal("waitForLog", &wait).await;
    assert_eq!(code, "PROCESS_READY_TIMEOUT", "{error}");
    let (wait, kill) = ([id.clone(), json!("never")], [id]);
    let waiting = sandbox.call("waitForLog", &wait);
    let killing = sandbox.call("killProcess", &kill);
    let (waited, killed) = futures_util::join!(waiting, killing);
    killed.unwrap();
    assert_eq!(
        waited.unwrap_err().code(),
        Some("PROCESS_EXITED_BEFORE_READY")
    );
}

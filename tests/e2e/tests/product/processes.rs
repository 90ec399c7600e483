use hutch_e2e::{Hutch, string};
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

use capnweb::Value;
use futures_util::future::join_all;
use hutch_e2e::{Api, Hutch, left_over, string, wait_until};
use rustix::process::Signal;
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_twenty_racing_creates_one_succeeds() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let handle = api.sandbox("main");
    let creates = join_all((0..20).map(|_| handle.call("create", &[]))).await;
    assert_eq!(creates.iter().filter(|result| result.is_ok()).count(), 1);
    let codes = creates
        .iter()
        .filter_map(|result| result.as_ref().err()?.code());
    assert!(
        codes
            .into_iter()
            .all(|code| code == "SANDBOX_ALREADY_EXISTS")
    );
    assert_eq!(api.events("main").await, ["created"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_first_calls_on_a_sleeper_share_one_boot() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    sandbox.json("start", &[]).await;
    sandbox.json("sleep", &[]).await;
    let answers = join_all((0..20).map(|i| {
        let sandbox = sandbox.clone();
        async move { sandbox.sh(&format!("echo {i}")).await }
    }));
    for (i, answer) in answers.await.into_iter().enumerate() {
        assert_eq!(answer, (0, format!("{i}\n")));
    }
    let events = api.events("main").await;
    assert_eq!(events.iter().filter(|name| *name == "started").count(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_history_tells_the_life() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api
        .create("main", json!({"env": {"A": "1"}, "sleepAfter": "30s"}))
        .await;
    assert_eq!(sandbox.sh("echo $A").await.1, "1\n");
    sandbox
        .json("setEnvVars", &[json!({"A": null, "B": "2"})])
        .await;
    assert_eq!(sandbox.sh("echo [$A][$B]").await.1, "[][2]\n");
    sandbox.json("sleep", &[]).await;
    sandbox.json("start", &[]).await;
    assert_eq!(sandbox.sh("echo [$A][$B]").await.1, "[][2]\n");
    sandbox.json("destroy", &[]).await;
    sandbox.json("destroy", &[]).await;
    let expected = [
        "created",
        "configured",
        "started",
        "configured",
        "sleep-requested",
        "backup-created",
        "stopped",
        "start-requested",
        "started",
        "destroy-requested",
        "destroyed",
    ];
    assert_eq!(api.events("main").await, expected);
    let snapshot = sandbox.json("processor.snapshot", &[]).await;
    assert_eq!(snapshot["offset"], expected.len());
    assert_eq!(snapshot["state"]["status"], "destroyed");
    assert_eq!(snapshot["state"]["env"], json!({"B": "2"}));
    let catalogue = api.stream("/sandboxes").json("getEvents", &[]).await;
    let requested = catalogue
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["type"] == "sandbox/create-requested");
    assert_eq!(requested.count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_idle_fall_asleep_and_open_calls_hold_awake() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({"sleepAfter": 1})).await;
    assert_eq!(sandbox.sh("sleep 3; echo ok").await.1, "ok\n");
    let stopped = json!({"eventTypes": ["sandbox/stopped"]});
    let event = api
        .stream("/sandboxes/main")
        .json("waitForEvent", &[stopped])
        .await;
    assert_eq!(event["type"], "sandbox/stopped");
    let events = api.events("main").await;
    assert_eq!(
        events,
        [
            "created",
            "configured",
            "started",
            "backup-created",
            "stopped"
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_and_describe_never_wake() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({"instanceType": "lite"})).await;
    let listed = hutch_e2e::Handle(api.itx.clone())
        .json("sandboxes.list", &[])
        .await;
    assert_eq!(listed[0]["path"], "/sandboxes/main");
    assert_eq!(
        (&listed[0]["status"], &listed[0]["instanceType"]),
        (&json!("created"), &json!("lite"))
    );
    assert!(string(&listed[0]["createdAt"]).ends_with('Z'));
    let described = sandbox.json("describe", &[]).await;
    assert_eq!(
        (&described["running"], &described["awake"]),
        (&json!(false), &json!(null))
    );
    sandbox.sh("true").await;
    let described = sandbox.json("describe", &[]).await;
    assert_eq!(described["running"], true);
    assert!(string(&described["awake"]["reason"]).contains("something happened"));
}

/// One sandbox whose destroy races with a call, each in its turn at first.
async fn race(api: &Api, round: usize) {
    let name = format!("r{round}");
    let sandbox = api.create(&name, json!({"instanceType": "lite"})).await;
    if round.is_multiple_of(2) {
        sandbox.sh("true").await;
    }
    let command = [json!("echo hi; sleep 0.01")];
    let (ran, destroyed) =
        futures_util::join!(sandbox.call("exec", &command), sandbox.call("destroy", &[]));
    destroyed.unwrap();
    if let Err(error) = ran {
        let code = error.code().unwrap_or_default();
        assert!(
            ["OPERATION_INTERRUPTED", "SANDBOX_NAME_RETIRED"].contains(&code),
            "{error}"
        );
    }
    assert_eq!(
        api.sandbox(&name).refusal("create", &[]).await.0,
        "SANDBOX_NAME_RETIRED"
    );
}

/// `HUTCH_RACES=200` makes it many more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn racing_calls_and_destroys_leave_nothing() {
    let asked = std::env::var("HUTCH_RACES").ok();
    let count: usize = asked.map_or(48, |text| text.parse().unwrap());
    let mut hutch = Hutch::start();
    let api = hutch.api().await;
    let rounds: Vec<usize> = (0..count).collect();
    for some in rounds.chunks(8) {
        join_all(some.iter().map(|round| race(&api, *round))).await;
    }
    let volumes = std::fs::read_dir(hutch.data_dir().join("volumes")).unwrap();
    let named: Vec<_> = volumes
        .flatten()
        .map(|entry| entry.file_name())
        .filter(|name| name.to_string_lossy().contains("-r"))
        .collect();
    assert!(named.is_empty(), "{named:?}");
    drop(api);
    // Without sandboxes nothing stays when the server goes.
    hutch.end(Signal::TERM);
    let mut left = Vec::new();
    wait_until("nothing is left over", || {
        left = left_over(&hutch);
        left.is_empty()
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_an_instance_is_not_booked_on_the_next_one() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    for _ in 0..3 {
        // Takes a while to die: many processes, none of which listens to TERM.
        let many = "trap '' TERM; for i in $(seq 300); do sleep 600 & done; wait";
        sandbox.json("startProcess", &[json!(many)]).await;
        sandbox
            .sh("until [ $(pgrep -xc sleep) -ge 300 ]; do :; done")
            .await;
        let (slept, started) =
            futures_util::join!(sandbox.call("sleep", &[]), sandbox.call("start", &[]));
        slept.unwrap();
        started.unwrap();
        let alive = sandbox.sh("pgrep -xc sleep").await.1;
        assert_eq!(alive, "0\n");
    }
    assert_eq!(sandbox.json("describe", &[]).await["running"], true);
    let mut expected = vec!["created", "started"];
    for _ in 0..3 {
        expected.extend(["sleep-requested", "backup-created", "stopped"]);
        expected.extend(["start-requested", "started"]);
    }
    assert_eq!(api.events("main").await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_startup_file_of_a_shell_is_run_and_none_holds_a_call_up() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    let hostile = "for f in ~/.bashrc ~/.bash_profile ~/.profile ~/.zshenv /etc/profile /etc/bash.bashrc;          do printf 'read x; exit 1\n' > $f; done; cp ~/.bashrc ~/.zshenv .";
    sandbox.sh(hostile).await;
    assert_eq!(sandbox.sh("echo ok").await, (0, "ok\n".into()));
    // From the workspace it comes back after a sleep.
    let env = json!({"HOME": "/workspace", "ZDOTDIR": "/workspace"});
    sandbox.json("setEnvVars", &[env]).await;
    sandbox.json("sleep", &[]).await;
    sandbox.json("start", &[]).await;
    assert_eq!(
        sandbox.sh("echo ok; ls -A").await,
        (0, "ok\n.bashrc\n.zshenv\n".into())
    );
    let started = sandbox.json("startProcess", &[json!("echo ok")]).await;
    let exit = sandbox.json("waitForExit", &[started["id"].clone()]).await;
    assert_eq!(exit["exitCode"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_follows_the_host_across_sleep() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    sandbox.json("start", &[]).await;
    sandbox.json("sleep", &[]).await;
    let inside: i64 = sandbox.sh("date +%s").await.1.trim().parse().unwrap();
    let outside = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    assert!((inside - i64::try_from(outside).unwrap()).abs() <= 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restart_interrupts_open_calls_and_stubs_of_the_boot_before() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    sandbox.sh("echo kept > f").await;
    let spawned = sandbox
        .call("spawn", &[json!({"command": "sleep 600"})])
        .await
        .unwrap();
    let exit = match spawned.get("exit") {
        Some(Value::Stub(exit)) => exit.clone(),
        other => panic!("{other:?}"),
    };
    let open = sandbox.0.call("exec", vec!["sleep 600".into()]);
    sandbox
        .sh("until pgrep -xc sleep | grep -q 2; do :; done")
        .await;
    sandbox.json("restart", &[]).await;
    let error = open.await.unwrap_err();
    assert_eq!(error.code(), Some("OPERATION_INTERRUPTED"), "{error}");
    let details = |error: &capnweb::ErrorValue| {
        let details = error.props.get("details").map(Value::clone_without_streams);
        details.unwrap_or_default().to_json().unwrap()
    };
    let known = details(&error);
    assert_eq!(
        (&known["reason"], &known["admitted"]),
        (&json!("restart"), &json!(true))
    );
    let error = exit.call((), vec![]).await.unwrap_err();
    let known = details(&error);
    assert_eq!(
        (&known["reason"], &known["admitted"]),
        (&json!("runtime_replaced"), &json!(false))
    );
    assert_eq!(sandbox.sh("cat f; pgrep -xc sleep").await.1, "kept\n0\n");
    let expected = [
        "created",
        "started",
        "sleep-requested",
        "backup-created",
        "stopped",
        "start-requested",
        "started",
    ];
    assert_eq!(api.events("main").await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn machines_of_a_type_have_a_limit_at_start_not_at_create() {
    let mut hutch = Hutch::start();
    hutch.end(Signal::TERM);
    hutch
        .try_serve(&["--max-instances", "lite=1,basic=7"], &[])
        .unwrap();
    let api = hutch.api().await;
    let lite = json!({"instanceType": "lite"});
    let first = api.create("first", lite.clone()).await;
    let second = api.create("second", lite).await;
    first.sh("true").await;
    let (code, error) = second.refusal("exec", &[json!("true")]).await;
    assert_eq!(code, "CAPACITY_EXCEEDED");
    assert!(error.message.contains("--max-instances lite="), "{error}");
    first.json("sleep", &[]).await;
    second.sh("true").await;
    api.create("third", json!({})).await.sh("true").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_call_hears_of_the_servers_stop_and_that_it_may_have_run() {
    let mut hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    let open = sandbox
        .0
        .call("exec", vec!["echo ran > f; sleep 600".into()]);
    sandbox.sh("until test -e f; do :; done").await;
    hutch.end(Signal::TERM);
    let error = open.await.unwrap_err();
    assert_eq!(error.code(), Some("OPERATION_INTERRUPTED"), "{error}");
    let details = error.props.get("details").map(Value::clone_without_streams);
    let details = details.unwrap_or_default().to_json().unwrap();
    assert_eq!(details["admitted"], true, "{details}");
}

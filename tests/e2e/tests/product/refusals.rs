use hutch_e2e::Hutch;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_bad_input_has_its_code() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let long = "a".repeat(64);
    for name in ["", "-a", "a-", "A", "a b", "é", "..", long.as_str()] {
        let error = api
            .itx
            .call("sandboxes.get", vec![format!("/sandboxes/{name}").into()])
            .await
            .unwrap_err();
        assert_eq!(error.code(), Some("INVALID_NAME"), "{name:?}");
    }
    for path in ["main", "/sandboxes/a/b", "/", "", "/secrets/a"] {
        let error = api
            .itx
            .call("sandboxes.get", vec![path.into()])
            .await
            .unwrap_err();
        assert_eq!(error.code(), Some("INVALID_PATH"), "{path:?}");
    }
    let sandbox = api.sandbox("main");
    for (options, code) in [
        (json!({"instanceType": "huge"}), "INVALID_INSTANCE_TYPE"),
        (json!({"instanceType": 1}), "INVALID_INSTANCE_TYPE"),
        (json!({"sleepAfter": "0s"}), "INVALID_SLEEP_AFTER"),
        (json!({"sleepAfter": "1d"}), "INVALID_SLEEP_AFTER"),
        (json!({"sleepAfter": -1}), "INVALID_SLEEP_AFTER"),
        (json!({"env": {"A=B": "x"}}), "INVALID_ENV"),
        (json!({"env": {"A": 1}}), "INVALID_ENV"),
        (json!({"keepAlive": "yes"}), "VALIDATION_FAILED"),
        (json!({"nonsense": 1}), "VALIDATION_FAILED"),
    ] {
        let (got, error) = sandbox.refusal("create", &[options.clone()]).await;
        assert_eq!(got, code, "{options}");
        let status = error
            .props
            .get("httpStatus")
            .and_then(capnweb::Value::as_f64);
        assert_eq!(status, Some(400.0));
    }
    let nan = capnweb::Value::from_json(json!({}));
    let capnweb::Value::Object(mut members) = nan else {
        panic!()
    };
    members.insert("sleepAfter", capnweb::Value::Number(f64::NAN));
    let error = sandbox
        .0
        .call("create", vec![capnweb::Value::Object(members)])
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some("INVALID_SLEEP_AFTER"), "{error}");
    assert_eq!(
        sandbox.refusal("exec", &[json!("true")]).await.0,
        "SANDBOX_NOT_FOUND"
    );
    for method in [
        "start",
        "sleep",
        "destroy",
        "describe",
        "processor.snapshot",
        "writeFile",
    ] {
        assert_eq!(
            sandbox.refusal(method, &[]).await.0,
            "SANDBOX_NOT_FOUND",
            "{method}"
        );
    }
    assert!(
        hutch_e2e::Handle(api.itx.clone())
            .json("sandboxes.list", &[])
            .await
            .as_array()
            .unwrap()
            .is_empty()
    );

    sandbox
        .json("create", &[])
        .await
        .as_null()
        .unwrap_or_default();
    assert_eq!(
        sandbox.refusal("create", &[]).await.0,
        "SANDBOX_ALREADY_EXISTS"
    );
    sandbox.json("destroy", &[]).await;
    for method in [
        "exec",
        "start",
        "sleep",
        "create",
        "setEnvVars",
        "listProcesses",
    ] {
        assert_eq!(
            sandbox.refusal(method, &[]).await.0,
            "SANDBOX_NAME_RETIRED",
            "{method}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_of_javascript_objects_are_no_methods() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    for method in [
        "then",
        "toJSON",
        "nope",
        "commands.execute.x.y.z",
        "control.configure",
    ] {
        let (code, error) = sandbox.refusal(method, &[]).await;
        assert!(
            code == "METHOD_NOT_FOUND" || error.name == "TypeError",
            "{method}: {error:?}"
        );
    }
    assert_eq!(sandbox.sh("echo fine").await.1, "fine\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_line_says_the_same() {
    let hutch = Hutch::start();
    let refused = |args: &[&str]| {
        let output = hutch.cli(args);
        let error: Value = serde_json::from_slice(&output.stderr).unwrap_or_default();
        (
            output.status.code(),
            error["error"]["code"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        )
    };
    for (args, status, code) in [
        (
            &["exec", "main", "--json", "--", "true"] as &[&str],
            125,
            "SANDBOX_NOT_FOUND",
        ),
        (
            &["sandbox", "start", "main", "--json"],
            1,
            "SANDBOX_NOT_FOUND",
        ),
        (&["sandbox", "create", "Bad", "--json"], 1, "INVALID_NAME"),
        (
            &["sandbox", "create", "a", "--type", "huge", "--json"],
            1,
            "INVALID_INSTANCE_TYPE",
        ),
        (
            &["sandbox", "create", "a", "--sleep-after", "1d", "--json"],
            1,
            "INVALID_SLEEP_AFTER",
        ),
        (
            &["sandbox", "list", "-p", "nope", "--json"],
            1,
            "PROJECT_NOT_FOUND",
        ),
        (
            &["sandbox", "list", "--token", "wrong", "--json"],
            1,
            "UNAUTHENTICATED",
        ),
    ] {
        assert_eq!(refused(args), (Some(status), code.to_owned()), "{args:?}");
    }
    assert!(hutch.cli(&["sandbox", "create", "a"]).status.success());
    assert_eq!(
        refused(&["sandbox", "create", "a", "--json"]),
        (Some(1), "SANDBOX_ALREADY_EXISTS".into())
    );
    assert!(
        hutch
            .cli(&["sandbox", "create", "a", "--if-missing"])
            .status
            .success()
    );
}

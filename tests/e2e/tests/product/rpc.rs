use std::process::Command;

use capnweb::{Stub, Value};
use hutch_e2e::{Hutch, binaries};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failing_calls_with_callbacks_leave_nothing_behind() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    api.create("main", json!({})).await.sh("true").await;
    let base = api.connection.stats();
    for _ in 0..100 {
        let calls = (0..100).map(|_| {
            let callback = Stub::function(|_| async { Ok(Value::Undefined) });
            api.itx
                .call("sandboxes.nope", vec![Value::Stub(callback)])
                .into_future()
        });
        for result in futures_util::future::join_all(calls).await {
            assert!(result.is_err());
        }
    }
    let now = api.connection.stats();
    let back = now.exports <= base.exports && now.imports <= base.imports;
    assert!(back, "{base:?} {now:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_cannot_hand_its_authority_to_a_sandbox() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    for stub in [&api.itx, &api.session, &sandbox.0, &api.connection.main()] {
        let args = vec!["true".into(), Value::Stub(stub.clone())];
        let error = sandbox.0.call("exec", args).await.unwrap_err();
        assert_eq!(error.code(), Some("FORBIDDEN"), "{error}");
    }
}

/// Runs a script of tests/interop with the official npm client.
fn node(hutch: &Hutch, script: &str) -> serde_json::Value {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../interop");
    assert!(
        root.join("node_modules/capnweb").is_dir(),
        "run `npm ci` in tests/interop first"
    );
    let mut command = Command::new("node");
    command
        .current_dir(&root)
        .arg(script)
        .env("HUTCH_URL", hutch.url())
        .env("HUTCH_TOKEN", hutch.token());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{script}: {text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_str(text.trim().lines().last().unwrap_or_default()).unwrap()
}

#[test]
fn the_official_client_runs_the_smoke_test() {
    let hutch = Hutch::start();
    let result = node(&hutch, "product/smoke.mjs");
    assert_eq!(result["exitCode"], 0);
    assert!(result["stdout"].as_str().unwrap().contains("workspace"));
}

#[test]
fn the_official_client_pipelines_four_calls_into_one_round_trip() {
    let hutch = Hutch::start();
    assert!(hutch.cli(&["sandbox", "create", "main"]).status.success());
    let result = node(&hutch, "product/pipeline.mjs");
    assert_eq!(result["stdout"], "hi\n");
    assert_eq!(result["sentBeforeFirstAnswer"], 5, "four pushes and a pull");
}

#[test]
fn the_official_client_streams_a_large_file_and_cancels_one() {
    let hutch = Hutch::start();
    assert!(
        hutch
            .cli(&["sandbox", "create", "main", "--type", "standard-1"])
            .status
            .success()
    );
    assert!(
        hutch
            .cli(&[
                "exec",
                "main",
                "-c",
                "head -c 268435456 /dev/urandom > big; sha256sum big > sum"
            ])
            .status
            .success()
    );
    let daemon = hutch_e2e::sandboxd_of(&hutch);
    let before = (
        hutch_e2e::resident_kib(hutch.pid()),
        hutch_e2e::resident_kib(daemon),
    );
    let result = node(&hutch, "product/stream.mjs");
    assert_eq!(result["bytes"], 268_435_456u64);
    assert_eq!(result["equal"], true);
    let grown = (
        hutch_e2e::peak_kib(hutch.pid()).saturating_sub(before.0),
        hutch_e2e::peak_kib(daemon).saturating_sub(before.1),
    );
    assert!(
        grown.0 < 64 * 1024 && grown.1 < 64 * 1024,
        "grew by {grown:?} KiB"
    );
    hutch_e2e::wait_until("sandboxd closes the cancelled file", || {
        !hutch_e2e::open_files(daemon)
            .iter()
            .any(|file| file.ends_with("/workspace/big"))
    });
    assert!(binaries().join("sandboxd").is_file());
}

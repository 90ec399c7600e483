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
    let memory = hutch_e2e::resident_kib(hutch.pid());
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
    // Releases are messages of their own and may come after the answers.
    hutch_e2e::wait_until("the tables are as they were", || {
        let now = api.connection.stats();
        now.exports <= base.exports && now.imports <= base.imports
    });
    let grown = hutch_e2e::resident_kib(hutch.pid()).saturating_sub(memory);
    assert!(grown < 32 * 1024, "the server grew by {grown} KiB");
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
    node_with(hutch, script, &[])
}

fn node_with(hutch: &Hutch, script: &str, env: &[(&str, &str)]) -> serde_json::Value {
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
        .env("HUTCH_TOKEN", hutch.token())
        .envs(env.iter().copied());
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
fn one_http_request_reaches_into_a_sandbox() {
    let hutch = Hutch::start();
    assert!(hutch.cli(&["sandbox", "create", "main"]).status.success());
    for library in ["capnweb", "capnweb-08"] {
        let result = node_with(&hutch, "product/batch.mjs", &[("HUTCH_CAPNWEB", library)]);
        assert_eq!(result["stdout"], "hi\n", "{library}");
        assert_eq!(result["code"], 3);
        assert_eq!(result["refused"], "UNAUTHENTICATED");
        assert_eq!(result["lists"], json!([{"slug": "default"}]));
        assert_eq!(result["requests"], 3);
    }
}

#[test]
fn a_batch_ends_with_its_request() {
    let hutch = Hutch::start();
    assert!(hutch.cli(&["sandbox", "create", "main"]).status.success());
    assert!(hutch.cli(&["exec", "main", "--", "true"]).status.success());
    let daemon = hutch_e2e::sandboxd_of(&hutch);
    let lines = [
        json!(["push", ["pipeline", 0, ["authenticate"], [{"type": "bearer", "token": hutch.token()}]]]),
        json!(["push", ["pipeline", 1, ["projects", "get"], ["default"]]]),
        json!([
            "push",
            ["pipeline", 2, ["sandboxes", "get"], ["/sandboxes/main"]]
        ]),
        json!(["push", ["pipeline", 3, ["exec"], ["exec sleep 98765"]]]),
        json!(["pull", 4]),
    ];
    let body = lines.map(|line| line.to_string()).join("\n");
    let sleeps = || {
        let lines = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = lines.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        lines
            .filter(|line| line.starts_with(b"sleep\x0098765\0"))
            .count()
    };
    let address = hutch.url().trim_start_matches("http://");
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /api HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
    std::io::Write::write_all(&mut stream, body.as_bytes()).unwrap();
    hutch_e2e::wait_until("the command runs", || sleeps() == 1);
    drop(stream);
    hutch_e2e::wait_until("the command ends with the request", || sleeps() == 0);
    assert!(hutch_e2e::resident_kib(daemon) > 0);
}

/// A reader that pauses holds back its own stream and nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_stops_reading_costs_no_memory_and_holds_nobody_up() {
    const BYTES: usize = 500 << 20;
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    sandbox.sh("true").await;
    let before = hutch_e2e::resident_kib(hutch.pid());
    let command = json!({"command": format!("head -c {BYTES} /dev/zero")});
    let Value::Object(mut spawned) = sandbox.call("spawn", &[command]).await.unwrap() else {
        panic!("no process")
    };
    let Some(Value::Readable(mut stdout)) = spawned.remove("stdout") else {
        panic!("no stream")
    };
    let mut received = 0;
    let first = stdout.next().await.unwrap().unwrap();
    received += first.as_bytes().unwrap().len();
    let paused = std::time::Instant::now();
    while paused.elapsed() < std::time::Duration::from_secs(5) {
        let asked = std::time::Instant::now();
        assert_eq!(sandbox.sh("echo here").await.1, "here\n");
        assert!(asked.elapsed() < std::time::Duration::from_secs(2));
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    while let Some(chunk) = stdout.next().await {
        received += chunk.unwrap().as_bytes().unwrap().len();
    }
    assert_eq!(received, BYTES);
    let grown = hutch_e2e::peak_kib(hutch.pid()).saturating_sub(before);
    assert!(grown < 64 * 1024, "grew by {grown} KiB");
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

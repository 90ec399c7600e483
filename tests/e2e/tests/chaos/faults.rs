//! What is asked of the machine is not there: typed errors, nothing
//! acknowledged is lost, and it goes on by itself once it is there again.

use std::fs::File;
use std::io::Write;

use capnweb::{ErrorValue, Value};
use hutch_e2e::{Api, Hutch, message};
use serde_json::{Value as Json, json};

use crate::step::events;

/// Takes what room a disk has left.
fn fill(hutch: &Hutch) {
    let mut filler = File::create(hutch.place().join("filler")).unwrap();
    for size in [1 << 20, 4096, 1] {
        let block = vec![1; size];
        while filler.write_all(&block).is_ok() {}
    }
}

/// A refusal has a code of ours, and is no broken connection.
fn is_typed(error: &ErrorValue) {
    let code = error.code().unwrap_or_default();
    assert!(
        !code.is_empty() && !code.starts_with("RPC_"),
        "{}",
        message(error)
    );
}

/// What was set, if it was acknowledged.
async fn set(api: &Api, value: &str) -> Option<Json> {
    let patch = json!({"A": value});
    match api.sandbox("main").call("setEnvVars", &[patch]).await {
        Ok(_) => Some(json!({"A": value})),
        Err(error) => {
            is_typed(&error);
            None
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_loses_nothing_and_is_got_over() {
    let hutch = Hutch::start_on_disk(48);
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    let mut env = set(&api, "first").await.expect("room");
    sandbox.sh("echo slept > slept").await;
    sandbox.json("sleep", &[]).await;
    sandbox
        .sh("echo awake > awake; head -c 3000000 /dev/urandom > noise")
        .await;

    fill(&hutch);
    let (code, _) = sandbox.sh("head -c 100000 /dev/zero > more").await;
    assert_ne!(code, 0, "the disk is full");
    let mut refused = 0;
    for round in 0..200 {
        match set(&api, &format!("{round} {}", "x".repeat(20_000))).await {
            Some(set) => env = set,
            None => refused += 1,
        }
    }
    assert!(refused > 0, "the database has no end");
    let slept: Result<Value, ErrorValue> = sandbox.call("sleep", &[]).await;
    is_typed(&slept.unwrap_err());
    if let Err(error) = api.sandbox("other").call("create", &[]).await {
        is_typed(&error);
    }

    std::fs::remove_file(hutch.place().join("filler")).unwrap();
    assert_eq!(
        sandbox.sh("cat slept awake; wc -c < noise").await.1,
        "slept\nawake\n3000000\n"
    );
    let described = sandbox.json("describe", &[]).await;
    assert_eq!(described["env"], env, "as acknowledged");
    let last = set(&api, "last").await.expect("room");
    sandbox.json("sleep", &[]).await;
    assert_eq!(
        sandbox.sh("echo $A; cat slept awake").await.1,
        "last\nslept\nawake\n"
    );
    assert_eq!(sandbox.json("describe", &[]).await["env"], last);
    for (index, event) in events(&api, "main").await.iter().enumerate() {
        assert_eq!(event["offset"], index + 1);
    }
}

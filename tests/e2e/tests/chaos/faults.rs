//! What is asked of the machine is not there: typed errors, nothing
//! acknowledged is lost, and it goes on by itself once it is there again.

use std::fs::File;
use std::io::Write;

use capnweb::{ErrorValue, Value};
use hutch_e2e::{Api, Hutch, message, open_files, sandboxd_of, wait_until};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_daemon_that_stands_still_holds_up_nobody_and_loses_nothing() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    sandbox.sh("echo kept > kept").await;
    let daemon = Pid::from_raw(i32::try_from(sandboxd_of(&hutch)).unwrap()).unwrap();
    kill_process(daemon, Signal::STOP).unwrap();
    let follower = sandbox.clone();
    let open = tokio::spawn(async move { follower.call("exec", &[json!("true")]).await });
    // Others, and what the server itself answers.
    let other = api.create("other", json!({})).await;
    assert_eq!(other.sh("echo here").await.1, "here\n");
    assert_eq!(sandbox.json("describe", &[]).await["running"], true);
    let env = set(&api, "while it stood")
        .await
        .expect("the record takes it");
    sandbox.json("sleep", &[]).await;
    let ended = open.await.unwrap().unwrap_err();
    assert_eq!(ended.code(), Some("OPERATION_INTERRUPTED"), "{ended}");
    assert_eq!(
        sandbox.sh("cat kept; echo $A").await.1,
        "kept\nwhile it stood\n"
    );
    assert_eq!(sandbox.json("describe", &[]).await["env"], env);
}

/// Lets a process have `most` descriptors; gives what it could have before.
fn allow_descriptors(pid: u32, most: Option<u64>) -> Option<u64> {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    let now = getrlimit(Resource::Nofile);
    let limit = Rlimit {
        current: most,
        maximum: now.maximum,
    };
    prlimit(Some(pid), Resource::Nofile, limit).unwrap().current
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_descriptors_refuses_and_goes_on_once_there_are_some() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let running = api.create("main", json!({})).await;
    running.sh("echo kept > kept").await;
    let asleep = api.create("asleep", json!({})).await;
    asleep.sh("echo slept > kept").await;
    asleep.json("sleep", &[]).await;

    let used = u64::try_from(open_files(hutch.pid()).len()).unwrap();
    let before = allow_descriptors(hutch.pid(), Some(used + 3));
    let address = hutch.url().trim_start_matches("http://").to_owned();
    let mut crowd = Vec::new();
    for _ in 0..20 {
        crowd.push(tokio::net::TcpStream::connect(&address).await.unwrap());
    }
    wait_until("the server has no descriptor left", || {
        open_files(hutch.pid()).len() as u64 >= used + 2
    });
    // What is connected is served.
    assert_eq!(running.sh("cat kept").await.1, "kept\n");
    is_typed(&asleep.call("start", &[]).await.unwrap_err());

    drop(crowd);
    allow_descriptors(hutch.pid(), before);
    let api = hutch.api().await;
    assert_eq!(api.sandbox("asleep").sh("cat kept").await.1, "slept\n");
    assert_eq!(api.sandbox("main").sh("cat kept").await.1, "kept\n");
}

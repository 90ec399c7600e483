//! The client and its example against a real server.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use hutch_client::{Client, ClientError, CreateOptions, EventQuery, ExecOptions, Sandbox};
use hutch_e2e::{Hutch, binaries};
use rustix::process::Signal;
use std::{process::Command, time::Duration};

async fn sh(sandbox: &Sandbox, command: &str) -> String {
    let result = sandbox.exec(command, &ExecOptions::default()).await;
    result.unwrap().stdout
}

#[test]
fn the_example_runs() {
    let hutch = Hutch::start();
    let mut command = Command::new(binaries().join("examples/tour"));
    command
        .env("HUTCH_URL", hutch.url())
        .env("HUTCH_TOKEN", hutch.token());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    for line in [
        "sorted: \"1\\n2\\n3\\n\", exit code 0",
        "seq ended with 0",
        "after sleep: \"1\\n2\\n3\\n\"",
        "  1 sandbox/created",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    let last = text.lines().last().unwrap();
    assert!(last.starts_with("SANDBOX_NAME_RETIRED: "), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_calls_fail_typed_when_the_server_goes_and_new_ones_connect_again() {
    let mut hutch = Hutch::start();
    let address = hutch.url().replace("http://", "");
    let token = hutch.token();
    let client = Client::connect(hutch.url(), token.into()).await.unwrap();
    let project = client.project("default");
    let sandbox = project.sandbox("/sandboxes/main");
    sandbox.create(&CreateOptions::default()).await.unwrap();
    sh(&sandbox, "truncate -s 1G big").await;
    let mut read = sandbox.read_tar("big", false).await.unwrap();
    let mut tail = project
        .stream("/notes")
        .subscribe(&EventQuery::default())
        .await
        .unwrap();
    let exec = || {
        let sandbox = sandbox.clone();
        async move {
            let command = "echo ran >> runs; sleep 600";
            sandbox.exec(command, &ExecOptions::default()).await
        }
    };
    let cut = async {
        while sh(&sandbox, "cat runs 2>/dev/null | wc -l").await != "2\n" {}
        hutch.end(Signal::KILL);
    };
    let calls = async { tokio::join!(exec(), exec(), tail.next(), cut) };
    let calls = tokio::time::timeout(Duration::from_secs(60), calls).await;
    let (first, second, watched, ()) = calls.expect("every call has ended");
    let read = loop {
        match read.next().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("a cut stream is not whole"),
            Err(error) => break error,
        }
    };
    for error in [
        first.unwrap_err(),
        second.unwrap_err(),
        watched.unwrap_err(),
        read,
    ] {
        assert!(
            matches!(&error, ClientError::Interrupted { admitted, .. } if *admitted != Some(false)),
            "{error:?}"
        );
        assert_eq!(error.code(), "OPERATION_INTERRUPTED");
    }
    let error = sandbox.describe().await.unwrap_err();
    assert!(matches!(&error, ClientError::Connect { .. }), "{error:?}");
    hutch.serve_at(&address);
    assert_eq!(
        sh(&sandbox, "wc -l < runs").await,
        "2\n",
        "nothing ran twice"
    );
    assert_eq!(client.list_projects().await.unwrap().len(), 1);
}

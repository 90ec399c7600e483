//! Large values over one connection, and what a cut leaves.

use std::sync::Arc;
use std::time::{Duration, Instant};

use capnweb::{ErrorValue, Value};
use hutch_e2e::{Api, Hutch, message};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_of_every_size_up_to_the_limit_arrive_and_more_is_refused() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    let content = |size: usize| -> bytes::Bytes {
        let bytes = (0..size).map(|at| u8::try_from(at % 251).unwrap());
        bytes.collect::<Vec<u8>>().into()
    };
    let write = |size: usize| {
        let args = vec!["/workspace/f".into(), Value::from(content(size))];
        sandbox.0.call("writeFile", args).into_future()
    };
    for size in [0, 1, 112_640, 1 << 20, 16 << 20] {
        write(size).await.unwrap();
        let sum = "wc -c < f; python3 -c 'd=open(\"f\",\"rb\").read(); \
            print(d == bytes(i % 251 for i in range(len(d))))'";
        assert_eq!(sandbox.sh(sum).await.1, format!("{size}\nTrue\n"));
    }
    let error = write(33 << 20).await.unwrap_err();
    let words = message(&error);
    assert_eq!(error.code(), Some("PAYLOAD_TOO_LARGE"), "{words}");
    assert_eq!(sandbox.sh("wc -c < f").await.1, "16777216\n");
}

/// Between a client and the server; dropping it cuts the line.
struct Line {
    url: String,
    answers: watch::Sender<bool>,
    _task: AbortOnDropHandle<()>,
}

impl Line {
    async fn to(hutch: &Hutch) -> Self {
        let upstream = hutch.url().trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (answers, pass) = watch::channel(true);
        let relay = async move {
            let (near, _) = listener.accept().await.unwrap();
            let far = TcpStream::connect(upstream).await.unwrap();
            let (near_in, near_out) = near.into_split();
            let (far_in, far_out) = far.into_split();
            let (_always, open) = watch::channel(true);
            tokio::join!(pump(near_in, far_out, open), pump(far_in, near_out, pass));
        };
        let _task = AbortOnDropHandle::new(tokio::spawn(relay));
        Self {
            url,
            answers,
            _task,
        }
    }

    /// From now on the client hears nothing.
    fn hold_answers(&self) {
        self.answers.send_replace(false);
    }
}

async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut pass: watch::Receiver<bool>) {
    let mut buffer = vec![0; 65536];
    loop {
        if pass.wait_for(|pass| *pass).await.is_err() {
            return;
        }
        let Ok(read @ 1..) = from.read(&mut buffer).await else {
            return;
        };
        if pass.wait_for(|pass| *pass).await.is_err() {
            return;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

fn may_have_run(error: &ErrorValue) -> Option<bool> {
    assert_eq!(error.code(), Some("RPC_DISCONNECTED"), "{}", message(error));
    error.props.get("details")?.get("mayHaveRun")?.as_bool()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_tells_each_open_call_whether_it_may_have_run_and_nothing_runs_twice() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    sandbox.sh(": > count").await;
    let line = Line::to(&hutch).await;
    let cut = Arc::new(Api::connect(&line.url, &hutch.token()).await);
    let handle = cut.sandbox("main");
    assert_eq!(handle.sh("echo through").await.1, "through\n");
    let call = |path: &str, method: &'static str, args: Vec<serde_json::Value>| {
        let target = match path.strip_prefix("stream:") {
            Some(path) => cut.stream(path),
            None => cut.sandbox(path),
        };
        tokio::spawn(async move { target.call(method, &args).await })
    };
    let run = vec![json!("echo ran >> count; sleep 621")];
    let wait = json!({"eventTypes": ["sandbox/destroyed"], "timeoutMs": 600_000});
    let mut open = vec![
        call("main", "exec", run.clone()),
        call("main", "exec", run),
        call("stream:/sandboxes/main", "waitForEvent", vec![wait]),
    ];
    sandbox
        .sh("until [ $(wc -l < count) = 2 ]; do :; done")
        .await;
    line.hold_answers();
    open.push(call("main", "readFile", vec![json!("/workspace/count")]));
    open.push(call("made", "create", vec![]));
    let made = api.sandbox("made");
    while made.call("describe", &[]).await.is_err() {}
    let begun = Instant::now();
    drop(line);
    for open in open {
        let error = open.await.unwrap().unwrap_err();
        assert_eq!(may_have_run(&error), Some(true), "{error}");
    }
    assert!(begun.elapsed() < Duration::from_secs(5));
    // What is asked after the cut has not run for sure.
    let late = cut.connection.main().call("authenticate", vec![]).await;
    assert_eq!(may_have_run(&late.unwrap_err()), Some(false));
    // The commands ended with their caller, and ran once.
    sandbox
        .sh("while pgrep -f 'sleep 62[1]' >/dev/null; do :; done")
        .await;
    let again = hutch.api().await;
    assert_eq!(again.sandbox("main").sh("cat count").await.1, "ran\nran\n");
    let (code, _) = made.refusal("create", &[]).await;
    assert_eq!(code, "SANDBOX_ALREADY_EXISTS");
}

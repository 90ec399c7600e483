//! Calls, references, pipelining and errors between two sessions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use capnweb::{CloseReason, ErrorValue, Object, Stub, Value, codes};
use support::{eventually, methods, pair, within};
use tokio::sync::{Notify, mpsc};

#[tokio::test]
async fn a_call_returns_its_result() {
    let echo = methods(|path, mut args| async move {
        assert_eq!(path, "utils.echo");
        Ok(args.remove(0))
    });
    let (server, client) = pair(echo, None).await;
    let answer = within(client.main().call("utils.echo", vec!["hi".into()]))
        .await
        .unwrap();
    assert_eq!(answer.as_str(), Some("hi"));
    eventually("tables are back to their base", || {
        server.connection.stats().exports == 1 && client.connection.stats().imports == 1
    })
    .await;
}

#[tokio::test]
async fn an_error_keeps_its_class_code_and_details() {
    let fail = methods(|_, _| async {
        let mut details = Object::new();
        details.insert("path", "/x");
        Err(ErrorValue::coded("FILE_NOT_FOUND", "File not found: /x").with_prop("details", details))
    });
    let (_server, client) = pair(fail, None).await;
    let error = within(client.main().call("read", vec![]))
        .await
        .unwrap_err();
    assert_eq!(
        (error.name.as_str(), error.message.as_str()),
        ("Error", "File not found: /x")
    );
    assert_eq!(error.code(), Some("FILE_NOT_FOUND"));
    assert_eq!(
        error
            .details()
            .and_then(|details| details.get("path"))
            .and_then(Value::as_str),
        Some("/x")
    );
}

#[tokio::test]
async fn a_side_without_a_main_object_says_so() {
    let (_server, client) = pair(None, None).await;
    let error = within(client.main().call("x", vec![])).await.unwrap_err();
    assert_eq!(error.message, "This connection has no main object.");
}

#[tokio::test]
async fn functions_travel_as_arguments_and_are_released_after() {
    let call_back = methods(|_, args| async move {
        let function = args[0].as_stub().unwrap();
        let doubled = function.call((), vec![21.into()]).await?;
        Ok(doubled)
    });
    let (server, client) = pair(call_back, None).await;
    let double = Stub::function(|args| async move { Ok((args[0].as_f64().unwrap() * 2.0).into()) });
    let answer = within(client.main().call("run", vec![double.into()]))
        .await
        .unwrap();
    assert_eq!(answer.as_f64(), Some(42.0));
    eventually("the function is released", || {
        client.connection.stats().exports == 1 && server.connection.stats().imports == 1
    })
    .await;
}

#[tokio::test]
async fn a_server_calls_the_clients_main_object() {
    let (server, _client) = pair(None, methods(|path, _| async move { Ok(path.into()) })).await;
    let answer = within(server.main().call("onTunnelExit", vec![]))
        .await
        .unwrap();
    assert_eq!(answer.as_str(), Some("onTunnelExit"));
}

#[tokio::test]
async fn calls_pipeline_on_results_that_have_not_arrived() {
    let gate = Arc::new(Notify::new());
    let opened = gate.clone();
    let main = methods(move |path, args| {
        let gate = gate.clone();
        async move {
            match path.as_str() {
                "authenticate" => {
                    gate.notified().await;
                    let counter = Arc::new(AtomicUsize::new(0));
                    Ok(Stub::function(move |_| {
                        let number = counter.fetch_add(1, Ordering::SeqCst);
                        async move { Ok((number as f64).into()) }
                    })
                    .into())
                }
                _ => {
                    let sum: f64 = args.iter().map(|arg| arg.as_f64().unwrap()).sum();
                    Ok(sum.into())
                }
            }
        }
    });
    let (_server, client) = pair(main, None).await;
    let counter = client.main().call("authenticate", vec![]).stub();
    let first = counter.call((), vec![]);
    let second = counter.call((), vec![]);
    let third = counter.call((), vec![]);
    // A result that has not arrived as an argument.
    let sum = client.main().call(
        "sum",
        vec![
            Value::Promise(second.stub()),
            10.into(),
            Value::Promise(third.stub()),
        ],
    );
    opened.notify_one();
    assert_eq!(within(first).await.unwrap().as_f64(), Some(0.0));
    assert_eq!(within(sum).await.unwrap().as_f64(), Some(13.0));
}

#[tokio::test]
async fn calls_queued_on_a_failed_result_fail_with_its_error() {
    let main = methods(|_, _| async { Err(ErrorValue::coded("NOPE", "no")) });
    let (_server, client) = pair(main, None).await;
    let mut last = client.main().call("authenticate", vec![]).stub();
    for _ in 0..5000 {
        last = last.call("next", vec![]).stub();
    }
    let error = within(last.call("end", vec![])).await.unwrap_err();
    assert_eq!(error.code(), Some("NOPE"));
}

#[tokio::test]
async fn parts_of_a_result_can_be_called_and_read() {
    let main = methods(|_, _| async {
        let mut inner = Object::new();
        inner.insert("f", Stub::function(|_| async { Ok("called".into()) }));
        inner.insert("list", vec![Value::from("zero"), "one".into()]);
        let mut object = Object::new();
        object.insert("inner", inner);
        Ok(Value::Object(object))
    });
    let (_server, client) = pair(main, None).await;
    let object = client.main().call("make", vec![]).stub();
    let path = vec![
        capnweb::Key::Name("inner".into()),
        capnweb::Key::Name("list".into()),
        capnweb::Key::Index(1),
    ];
    let (called, read, missing, not_function) = tokio::join!(
        within(object.call("inner.f", vec![])),
        within(object.get(path)),
        within(object.get("inner.nothing")),
        within(object.call("inner.list", vec![])),
    );
    assert_eq!(called.unwrap().as_str(), Some("called"));
    assert_eq!(read.unwrap().as_str(), Some("one"));
    assert!(missing.unwrap().is_undefined());
    let error = not_function.unwrap_err();
    assert_eq!(
        (error.name.as_str(), error.message.as_str()),
        ("TypeError", "'inner.list' is not a function.")
    );
}

#[tokio::test]
async fn names_of_every_javascript_object_lead_to_undefined() {
    let (_server, client) = pair(methods(|_, _| async { Ok("reached".into()) }), None).await;
    assert!(
        within(client.main().get("constructor"))
            .await
            .unwrap()
            .is_undefined()
    );
    let error = within(client.main().call("a.__proto__.b", vec![]))
        .await
        .unwrap_err();
    assert_eq!(error.message, "'a.__proto__.b' is not a function.");
}

#[tokio::test]
async fn calls_start_in_order_and_a_blocked_one_stalls_nobody() {
    let (log, mut started) = mpsc::channel(200);
    let gate = Arc::new(Notify::new());
    let opened = gate.clone();
    struct Main(mpsc::Sender<String>, Arc<Notify>);
    impl capnweb::Target for Main {
        fn call(self: Arc<Self>, path: capnweb::Path, _: Vec<Value>) -> capnweb::CallFuture {
            let path = capnweb::display_path(&path);
            self.0.try_send(path.clone()).unwrap();
            Box::pin(async move {
                if path == "block" {
                    self.1.notified().await;
                }
                Ok(Value::Undefined)
            })
        }
    }
    let (_server, client) = pair(Some(Arc::new(Main(log, gate))), None).await;
    let blocked = client.main().call("block", vec![]);
    let blocked = tokio::spawn(blocked.into_future());
    let calls: Vec<_> = (0..100)
        .map(|n| client.main().call(format!("call{n}"), vec![]))
        .collect();
    for call in calls {
        within(call).await.unwrap();
    }
    assert_eq!(started.recv().await.unwrap(), "block");
    for n in 0..100 {
        assert_eq!(started.recv().await.unwrap(), format!("call{n}"));
    }
    assert!(!blocked.is_finished());
    opened.notify_one();
    within(blocked).await.unwrap().unwrap();
}

/// Tells when it is dropped.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_released_or_disconnected_call_is_dropped() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let seen = dropped.clone();
    let main = methods(move |_, _| {
        let guard = Dropped(dropped.clone());
        async move {
            let _guard = guard;
            std::future::pending().await
        }
    });
    let (server, client) = pair(main, None).await;
    let first = client.main().call("forever", vec![]);
    let second = client.main().call("forever", vec![]);
    eventually("both calls run", || {
        server.connection.stats().pending_calls == 2
    })
    .await;
    drop(first);
    eventually("the released call is dropped", || {
        seen.load(Ordering::SeqCst) == 1
    })
    .await;
    assert_eq!(server.connection.stats().pending_calls, 1);
    client.driver.abort();
    eventually("the disconnected call is dropped", || {
        seen.load(Ordering::SeqCst) == 2
    })
    .await;
    let error = within(second).await.unwrap_err();
    assert_eq!(error.code(), Some(codes::DISCONNECTED));
}

#[tokio::test]
async fn a_released_result_lives_while_calls_are_queued_on_it() {
    let gate = Arc::new(Notify::new());
    let opened = gate.clone();
    let main = methods(move |_, _| {
        let gate = gate.clone();
        async move {
            gate.notified().await;
            Ok(Stub::function(|_| async { Ok("done".into()) }).into())
        }
    });
    let (server, client) = pair(main, None).await;
    let call = client.main().call("a", vec![]).stub().call((), vec![]);
    eventually("the first call was released", || {
        server.connection.stats().exports == 2
    })
    .await;
    opened.notify_one();
    assert_eq!(within(call).await.unwrap().as_str(), Some("done"));
}

#[tokio::test]
async fn ten_thousand_failing_calls_with_a_callback_leave_nothing_behind() {
    let main = methods(|_, _| async { Err(ErrorValue::new("Error", "failed")) });
    let (server, client) = pair(main, None).await;
    for _ in 0..10 {
        let calls: Vec<_> = (0..1000)
            .map(|_| {
                let callback = Stub::function(|_| async { Ok(Value::Undefined) });
                client.main().call("fail", vec![callback.into()])
            })
            .collect();
        for call in calls {
            assert!(within(call).await.is_err());
        }
    }
    eventually("all tables are back to their base", || {
        let (near, far) = (server.connection.stats(), client.connection.stats());
        (near.imports, near.exports, far.imports, far.exports) == (1, 1, 1, 1)
            && near.result_bytes == 0
    })
    .await;
}

#[tokio::test]
async fn a_target_that_panics_fails_its_own_call_only() {
    let main = methods(|path, _| async move {
        assert_ne!(path, "boom");
        Ok(path.into())
    });
    let (_server, client) = pair(main, None).await;
    assert!(within(client.main().call("boom", vec![])).await.is_err());
    assert!(within(client.main().call("fine", vec![])).await.is_ok());
}

#[tokio::test]
async fn letting_go_of_everything_ends_the_session() {
    let (server, client) = pair(methods(|_, _| async { Ok(Value::Undefined) }), None).await;
    let stub = client.main();
    drop(client.connection);
    within(stub.call("x", vec![])).await.unwrap();
    drop(stub);
    assert!(matches!(
        within(client.driver).await.unwrap(),
        CloseReason::Dropped
    ));
    assert!(matches!(
        server.ended().await,
        CloseReason::PeerClosed { code: 1000, .. }
    ));
}

#[tokio::test]
async fn an_abort_reaches_the_peer_with_its_error() {
    let (server, client) = pair(methods(|_, _| std::future::pending()), None).await;
    let call = client.main().call("x", vec![]);
    server
        .connection
        .abort(ErrorValue::coded("GOING_AWAY", "restart"));
    let error = within(call).await.unwrap_err();
    assert_eq!(error.code(), Some("GOING_AWAY"));
    assert!(
        matches!(client.ended().await, CloseReason::PeerAborted(error) if error.message == "restart")
    );
    assert!(matches!(server.ended().await, CloseReason::Aborted(_)));
}

#[tokio::test]
async fn references_pass_through_a_middle_man() {
    let back = methods(|path, args| async move {
        match path.as_str() {
            "make" => Ok(Stub::function(|_| async { Ok("deep".into()) }).into()),
            _ => args[0].as_stub().unwrap().call((), vec![5.into()]).await,
        }
    });
    let (_back, middle_out) = pair(back, None).await;
    let behind = middle_out.main();
    let front = methods(move |path, args| {
        let call = behind.call(path, args);
        async move { call.await }
    });
    let (_front, client) = pair(front, None).await;
    let made = client.main().call("make", vec![]).stub();
    assert_eq!(
        within(made.call((), vec![])).await.unwrap().as_str(),
        Some("deep")
    );
    let add_one =
        Stub::function(|args| async move { Ok((args[0].as_f64().unwrap() + 1.0).into()) });
    let answer = within(client.main().call("use", vec![add_one.into()]))
        .await
        .unwrap();
    assert_eq!(answer.as_f64(), Some(6.0));
    drop(made);
    eventually("nothing is left behind", || {
        let stats = client.connection.stats();
        (stats.imports, stats.exports) == (1, 1) && middle_out.connection.stats().imports == 1
    })
    .await;
}

//! What becomes of references and streams, in both directions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod middle;

use std::sync::atomic::Ordering;

use capnweb::Limits;
use middle::{Middle, inward, outward, pushed, resolved};

#[tokio::test]
async fn a_clients_function_crosses_as_one_that_only_calls_it() {
    let mut middle = Middle::start(Limits::default());
    let arguments = inward(&mut middle, r#"{"f":["export",-7]}"#).await;
    assert_eq!(arguments, pushed(r#"{"f":["export",-1]}"#));
    // Data goes in and comes back.
    let call = r#"["push",["pipeline",-1,["a","b"],[{"n":1}]]]"#;
    middle.sandbox.send(call);
    middle.sandbox.send(r#"["pull",1]"#);
    assert_eq!(
        middle.client.next().await,
        r#"["push",["pipeline",-7,["a","b"],[{"n":1}]]]"#
    );
    middle.client.send(r#"["resolve",1,["date",5]]"#);
    assert_eq!(middle.sandbox.next().await, r#"["resolve",1,["date",5]]"#);
    // What it answers with is a function again, and its errors are text.
    middle.sandbox.send(r#"["push",["pipeline",-1,[],[]]]"#);
    middle.sandbox.send(r#"["pull",2]"#);
    assert_eq!(
        middle.client.next().await,
        r#"["push",["pipeline",-7,[],[]]]"#
    );
    middle.client.send(r#"["resolve",2,["export",-8]]"#);
    assert_eq!(
        middle.sandbox.next().await,
        r#"["resolve",2,["export",-2]]"#
    );
    middle.sandbox.send(r#"["push",["pipeline",-2,[],[]]]"#);
    middle.sandbox.send(r#"["pull",3]"#);
    assert_eq!(
        middle.client.next().await,
        r#"["push",["pipeline",-8,[],[]]]"#
    );
    middle.client.send(
        r#"["reject",3,["error","TypeError","no","at secret.js",{"code":"UNAUTHENTICATED","f":["export",-9]}]]"#,
    );
    let answer = middle.sandbox.next().await;
    assert!(answer.contains(r#""code":"UNKNOWN_ERROR""#), "{answer}");
    assert!(answer.contains("\"no\""), "{answer}");
    assert!(
        !answer.contains("secret.js") && !answer.contains("export"),
        "{answer}"
    );
}

#[tokio::test]
async fn what_is_passed_to_a_clients_function_is_data_alone() {
    for (value, code) in [
        (r#"["export",-5]"#, "FORBIDDEN"),
        (r#"{"k":[[["export",-5]]]}"#, "FORBIDDEN"),
        (r#"["import",-1]"#, "FORBIDDEN"),
        (r#"["readable",1]"#, "FORBIDDEN"),
        (r#"["writable",-5]"#, "FORBIDDEN"),
        (
            r#"["error","Error","m",null,{"f":["export",-5]}]"#,
            "FORBIDDEN",
        ),
        (r#"["request","http://h/",{}]"#, "VALIDATION_FAILED"),
    ] {
        let mut middle = Middle::start(Limits::default());
        inward(&mut middle, r#"["export",-7]"#).await;
        middle.sandbox.send(r#"["pipe"]"#);
        middle
            .sandbox
            .send(&format!(r#"["push",["pipeline",-1,[],[{value}]]]"#));
        middle.sandbox.send(r#"["pull",2]"#);
        let mut answer = middle.sandbox.next().await;
        if answer.starts_with("[\"reject\",1,") {
            answer = middle.sandbox.next().await;
        }
        assert!(answer.starts_with("[\"reject\",2,"), "{value}: {answer}");
        assert!(answer.contains(code), "{value}: {answer}");
        assert!(
            middle
                .client
                .heard()
                .is_none_or(|text| text.starts_with("[\"release\""))
        );
    }
}

#[tokio::test]
async fn a_sandboxs_object_crosses_bound_and_takes_functions() {
    let mut middle = Middle::start(Limits::default());
    let result = outward(&mut middle, r#"{"o":["export",-7]}"#).await;
    assert_eq!(result, resolved(r#"{"o":["export",-1]}"#));
    let call = r#"["push",["pipeline",-1,["m"],[["export",-3],1]]]"#;
    middle.client.send(call);
    middle.client.send(r#"["pull",2]"#);
    assert_eq!(
        middle.sandbox.next().await,
        r#"["push",["pipeline",-7,["m"],[["export",-1],1]]]"#
    );
    middle.sandbox.send(
        r#"["reject",2,["error","Error","log in",null,{"code":"UNAUTHENTICATED","details":{"origin":"host"}}]]"#,
    );
    let answer = middle.client.next().await;
    assert!(answer.contains(r#""code":"UNKNOWN_ERROR""#), "{answer}");
    assert!(answer.contains(r#""origin":"sandbox""#), "{answer}");
    // Its properties are not readable, only its methods can be called.
    middle.client.send(r#"["push",["pipeline",-1,["m"]]]"#);
    middle.client.send(r#"["pull",3]"#);
    let answer = middle.client.next().await;
    assert!(answer.contains("TypeError"), "{answer}");
}

#[tokio::test]
async fn objects_of_the_host_and_of_the_other_side_are_refused() {
    // The host's own, as a result that is there, as one to come, and deep inside.
    for value in [
        r#"["pipeline",0,["itx"],[]]"#,
        r#"["import",1]"#,
        r#"["pipeline",1]"#,
        r#"["import",0]"#,
        r#"{"k":[["error","Error","m",null,{"o":["pipeline",1]}]]}"#,
    ] {
        let mut middle = Middle::start(Limits::default());
        middle.client.send(r#"["push",["pipeline",0,["itx"],[]]]"#);
        middle
            .client
            .send(&format!(r#"["push",["pipeline",0,["x"],[{value}]]]"#));
        middle.client.send(r#"["pull",2]"#);
        let answer = middle.client.next().await;
        assert!(answer.starts_with("[\"reject\",2,"), "{value}: {answer}");
        assert!(middle.sandbox.heard().is_none(), "{value}");
        assert_eq!(middle.secret.0.load(Ordering::Relaxed), 0);
    }
    // A sandbox's object does not go back in as if it were the client's.
    let mut middle = Middle::start(Limits::default());
    outward(&mut middle, r#"["export",-7]"#).await;
    middle
        .client
        .send(r#"["push",["pipeline",0,["x"],[["import",-1]]]]"#);
    middle.client.send(r#"["pull",2]"#);
    let answer = middle.client.next().await;
    assert!(answer.contains("FORBIDDEN"), "{answer}");
    // A client's function does not come back as if it were the sandbox's.
    let mut middle = Middle::start(Limits::default());
    inward(&mut middle, r#"["export",-7]"#).await;
    middle.sandbox.send(r#"["resolve",1,["import",-1]]"#);
    let answer = middle.client.next().await;
    assert!(answer.contains("FORBIDDEN"), "{answer}");
}

#[tokio::test]
async fn what_a_promise_comes_to_crosses_and_the_promise_does_not() {
    let mut middle = Middle::start(Limits::default());
    middle
        .client
        .send(r#"["push",["pipeline",0,["x"],[["promise",-4]]]]"#);
    middle.client.send(r#"["pull",1]"#);
    middle.client.send(r#"["resolve",-4,["date",1]]"#);
    assert_eq!(middle.sandbox.next().await, pushed(r#"["date",1]"#));
    middle.sandbox.send(r#"["resolve",1,{"p":["promise",-4]}]"#);
    middle.sandbox.send(r#"["resolve",-4,["export",-5]]"#);
    assert_eq!(
        middle.client.next().await,
        resolved(r#"{"p":["export",-1]}"#)
    );
}

#[tokio::test]
async fn a_map_over_a_sandboxs_result_runs_on_the_host_and_yields_what_may_cross() {
    let mut middle = Middle::start(Limits::default());
    middle.client.send(r#"["push",["pipeline",0,["x"],[]]]"#);
    middle
        .client
        .send(r#"["push",["remap",1,[],[],[["pipeline",0,["a"]]]]]"#);
    middle.client.send(r#"["pull",2]"#);
    assert_eq!(middle.sandbox.next().await, pushed(""));
    middle.sandbox.send(r#"["resolve",1,[[{"a":1},{"a":2}]]]"#);
    assert_eq!(middle.client.next().await, r#"["resolve",2,[[1,2]]]"#);
    // From inside, a map over what the host has gives nothing.
    middle
        .sandbox
        .send(r#"["push",["remap",0,[],[],[["pipeline",0,["itx"],[]]]]]"#);
    middle.sandbox.send(r#"["pull",1]"#);
    let answer = middle.sandbox.next().await;
    assert!(answer.starts_with("[\"reject\",1,"), "{answer}");
}

#[tokio::test]
async fn streams_cross_with_data_alone_in_both_directions() {
    // Out of a sandbox: a readable.
    let mut middle = Middle::start(Limits::default());
    middle.sandbox.send(r#"["pipe"]"#);
    middle.client.send(r#"["push",["pipeline",0,["x"],[]]]"#);
    middle.client.send(r#"["pull",1]"#);
    middle.sandbox.next().await;
    middle.sandbox.send(r#"["resolve",1,["readable",1]]"#);
    assert_eq!(middle.client.next().await, r#"["pipe"]"#);
    assert_eq!(middle.client.next().await, resolved(r#"["readable",1]"#));
    middle
        .sandbox
        .send(r#"["stream",["pipeline",1,["write"],[["bytes","AAEC"]]]]"#);
    assert_eq!(
        middle.client.next().await,
        r#"["stream",["pipeline",1,["write"],[["bytes","AAEC"]]]]"#
    );
    middle
        .sandbox
        .send(r#"["stream",["pipeline",1,["write"],[["export",-9]]]]"#);
    let ended = middle.client.next().await;
    assert!(
        ended.contains("[\"abort\"]") && ended.contains("FORBIDDEN"),
        "{ended}"
    );

    // Into a sandbox: a readable whose error is passed on without references.
    let mut middle = Middle::start(Limits::default());
    middle.client.send(r#"["pipe"]"#);
    middle
        .client
        .send(r#"["push",["pipeline",0,["x"],[["readable",1]]]]"#);
    assert_eq!(middle.sandbox.next().await, r#"["pipe"]"#);
    assert_eq!(middle.sandbox.next().await, pushed(r#"["readable",1]"#));
    middle
        .client
        .send(r#"["stream",["pipeline",1,["write"],["a"]]]"#);
    assert_eq!(
        middle.sandbox.next().await,
        r#"["stream",["pipeline",1,["write"],["a"]]]"#
    );
    middle.client.send(
        r#"["stream",["pipeline",1,["abort"],[["error","Error","m",null,{"f":["export",-9],"n":1}]]]]"#,
    );
    let ended = middle.sandbox.next().await;
    assert!(
        ended.contains("[\"abort\"]") && ended.contains("\"n\":1"),
        "{ended}"
    );
    assert!(!ended.contains("export"), "{ended}");

    // Into a sandbox: a writable, into which only data goes.
    let mut middle = Middle::start(Limits::default());
    let arguments = inward(&mut middle, r#"["writable",-2]"#).await;
    assert_eq!(arguments, pushed(r#"["writable",-1]"#));
    middle
        .sandbox
        .send(r#"["stream",["pipeline",-1,["write"],[{"a":1}]]]"#);
    assert_eq!(
        middle.client.next().await,
        r#"["stream",["pipeline",-2,["write"],[{"a":1}]]]"#
    );
    middle
        .sandbox
        .send(r#"["stream",["pipeline",-1,["write"],[["export",-3]]]]"#);
    let ended = middle.client.next().await;
    assert!(
        ended.contains("[\"abort\"]") && ended.contains("FORBIDDEN"),
        "{ended}"
    );

    // Out of a sandbox: a writable.
    let mut middle = Middle::start(Limits::default());
    let result = outward(&mut middle, r#"["writable",-2]"#).await;
    assert_eq!(result, resolved(r#"["writable",-1]"#));
    middle
        .client
        .send(r#"["stream",["pipeline",-1,["write"],["in"]]]"#);
    assert_eq!(
        middle.sandbox.next().await,
        r#"["stream",["pipeline",-2,["write"],["in"]]]"#
    );
}

//! A client and a sandbox that both send any frames at all, with the membrane between them.
//! A line of the input is a frame; the first character says whose, `c` or `s`.
//!
//! Whatever they send: nobody panics, the tables keep their limits, what reaches the other
//! side is canonical wire that refers to nothing but the host's wrappers, none of which leads
//! to an object of the host, and nothing is left when both have hung up.
#![no_main]

#[path = "../../crates/membrane/tests/middle/mod.rs"]
mod middle;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use capnweb::Limits;
use libfuzzer_sys::fuzz_target;
use middle::{Middle, Peer, settle};
use serde_json::Value as Json;

/// More lines than these find nothing new.
const LINES: usize = 64;

/// Small enough to be reached.
fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.receive_bytes = 64 * 1024;
    limits.send_bytes = 48 * 1024;
    limits.depth = 32;
    limits.values = 2048;
    limits.exports = 32;
    limits.imports = 32;
    limits.pending_calls = 16;
    limits.pending_bytes = 64 * 1024;
    limits.result_bytes = 64 * 1024;
    limits.stream_bytes = 32 * 1024;
    limits.queue_bytes = 16 * 1024;
    limits.queue_max_bytes = 256 * 1024;
    limits.map_steps = 64;
    limits
}

/// What a message of the host may hold.
#[derive(Clone, Copy, PartialEq)]
enum Rule {
    /// No reference at all.
    Data,
    /// Places of the host's own.
    Wrapped,
    /// What the peer itself has said may come back, too.
    Echo,
}

/// Looks at one message of the host; the exports in it are noted.
fn message(text: &str, data_to_callbacks: bool, exports: &mut BTreeSet<i64>) {
    let Ok(Json::Array(parts)) = serde_json::from_str(text) else {
        panic!("not a message: {text}");
    };
    let tag = parts.first().and_then(Json::as_str).unwrap_or_default();
    match tag {
        "push" | "stream" => {
            let call = parts.get(1).and_then(Json::as_array).expect(text);
            assert_eq!(
                call.first().and_then(Json::as_str),
                Some("pipeline"),
                "{text}"
            );
            let rule = match tag {
                "stream" => Rule::Echo,
                _ if data_to_callbacks => Rule::Data,
                _ => Rule::Wrapped,
            };
            for argument in call.get(3).and_then(Json::as_array).into_iter().flatten() {
                expression(argument, rule, text, exports);
            }
        }
        "resolve" | "reject" | "abort" => {
            let value = parts.last().expect(text);
            expression(value, Rule::Echo, text, exports);
            let bare = text
                .splitn(3, ',')
                .nth(2)
                .and_then(|rest| rest.strip_suffix(']'));
            if let (Some(bare), "resolve") = (bare, tag)
                && let Ok(value) = capnweb::codec::decode(bare, &limits())
            {
                let again = capnweb::codec::encode(value, &limits());
                assert_eq!(again.ok().as_deref(), Some(bare), "not canonical");
            }
        }
        "pull" | "release" | "pipe" => {}
        _ => panic!("unknown message: {text}"),
    }
}

fn expression(value: &Json, rule: Rule, text: &str, exports: &mut BTreeSet<i64>) {
    let items = match value {
        Json::Array(items) => items,
        Json::Object(fields) => {
            for (name, field) in fields {
                let reserved = matches!(name.as_str(), "__proto__" | "constructor" | "toString");
                assert!(!reserved, "{text}");
                expression(field, rule, text, exports);
            }
            return;
        }
        _ => return,
    };
    if let [Json::Array(parts)] = items.as_slice() {
        for part in parts {
            expression(part, rule, text, exports);
        }
        return;
    }
    let tag = items.first().and_then(Json::as_str).expect(text);
    let id = items.get(1).and_then(Json::as_i64).unwrap_or_default();
    match tag {
        "undefined" | "inf" | "-inf" | "nan" | "bytes" | "bigint" | "date" | "headers" => {}
        "error" => {
            if let Some(props) = items.get(4) {
                expression(props, rule, text, exports);
            }
        }
        "export" => {
            assert!(rule != Rule::Data && id < 0, "{text}");
            exports.insert(id);
        }
        "writable" => assert!(rule != Rule::Data && id < 0, "{text}"),
        "readable" => assert!(rule != Rule::Data && id > 0, "{text}"),
        "promise" => assert!(rule == Rule::Echo && id < 0, "{text}"),
        "import" | "pipeline" | "request" | "response" | "blob" | "url" => {
            assert!(rule == Rule::Echo, "{text}");
        }
        _ => panic!("unknown expression {tag}: {text}"),
    }
}

fn within_limits(peer: &Peer) {
    let (stats, limits) = (peer.connection.stats(), limits());
    assert!(stats.exports <= limits.exports + 1, "{stats:?}");
    assert!(stats.pending_calls <= limits.pending_calls, "{stats:?}");
    assert!(stats.pending_bytes <= limits.pending_bytes, "{stats:?}");
    assert!(stats.result_bytes <= limits.result_bytes, "{stats:?}");
    assert!(stats.stream_bytes <= limits.stream_bytes, "{stats:?}");
    let most = limits.queue_max_bytes + limits.send_bytes;
    assert!(stats.queue_bytes <= most, "{stats:?}");
}

async fn run(text: &str) {
    let mut middle = Middle::start(limits());
    let mut wrapped = BTreeSet::new();
    let mut shown = BTreeSet::new();
    for line in text.lines().take(LINES) {
        match line.split_at_checked(1) {
            Some(("c", frame)) => middle.client.send(frame),
            Some(("s", frame)) => middle.sandbox.send(frame),
            _ => continue,
        }
        settle().await;
        hear(&mut middle, &mut shown, &mut wrapped);
    }
    // Whatever crossed into the sandbox leads to nothing of the host's.
    let before = middle.secret.0.load(Ordering::Relaxed);
    for id in wrapped {
        middle
            .sandbox
            .send(&format!(r#"["push",["pipeline",{id},["whoami"],[]]]"#));
        middle
            .sandbox
            .send(&format!(r#"["push",["pipeline",{id},[],[]]]"#));
    }
    middle.sandbox.send(r#"["push",["pipeline",0,["itx"],[]]]"#);
    settle().await;
    assert_eq!(
        middle.secret.0.load(Ordering::Relaxed),
        before,
        "an object of the host crossed"
    );
    hear(&mut middle, &mut shown, &mut BTreeSet::new());
    let secret = middle.end().await;
    for _ in 0..32 {
        settle().await;
    }
    assert_eq!(Arc::strong_count(&secret), 1, "something was left");
}

fn hear(middle: &mut Middle, shown: &mut BTreeSet<i64>, wrapped: &mut BTreeSet<i64>) {
    while let Some(text) = middle.client.heard() {
        message(&text, true, shown);
    }
    while let Some(text) = middle.sandbox.heard() {
        message(&text, false, wrapped);
    }
    within_limits(&middle.client);
    within_limits(&middle.sandbox);
}

fuzz_target!(|text: &str| {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    if let Ok(runtime) = runtime {
        runtime.block_on(run(text));
    }
});

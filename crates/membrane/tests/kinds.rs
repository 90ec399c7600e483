//! What becomes of each kind of value, in both directions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod middle;

use capnweb::{Dialect, Limits};
use hutch_protocol::limits::ARGUMENT_CONTENT_MAX;
use middle::{Middle, inward, outward, pushed, resolved};

/// Values without references: as one side writes them, as the other reads them.
const PLAIN: &[(&str, &str)] = &[
    ("null", "null"),
    ("true", "true"),
    ("false", "false"),
    ("0", "0"),
    // JSON.stringify writes it so, too.
    ("-0", "0"),
    ("1.5e300", "1.5e+300"),
    ("9007199254740991", "9007199254740991"),
    ("[\"nan\"]", "[\"nan\"]"),
    ("[\"inf\"]", "[\"inf\"]"),
    ("[\"-inf\"]", "[\"-inf\"]"),
    ("1e999", "[\"inf\"]"),
    ("[\"undefined\"]", "[\"undefined\"]"),
    ("[\"bigint\",\"-0012\"]", "[\"bigint\",\"-12\"]"),
    ("\"\"", "\"\""),
    ("\"a\\u0000\\ud83d\\ude00é\"", "\"a\\u0000😀é\""),
    // Half a character has no UTF-8.
    ("\"\\ud800\"", "\"\u{fffd}\""),
    ("\"\\udc00\\ud800x\"", "\"\u{fffd}\u{fffd}x\""),
    ("[\"bytes\",\"AAEC/w==\"]", "[\"bytes\",\"AAEC/w\"]"),
    ("[\"bytes\",\"\"]", "[\"bytes\",\"\"]"),
    // A typed array is its bytes to peers of version 0.8.
    (
        "[\"bytes\",\"AAAAAA\",\"Float32Array\"]",
        "[\"bytes\",\"AAAAAA\"]",
    ),
    ("[\"date\",1700000000000]", "[\"date\",1700000000000]"),
    ("[\"date\",null]", "[\"date\",null]"),
    ("[\"url\",\"https://h/\"]", "\"https://h/\""),
    (
        "[\"headers\",[[\"a\",\"1\"],[\"a\",\"2\"]]]",
        "[\"headers\",[[\"a\",\"1\"],[\"a\",\"2\"]]]",
    ),
    ("[[]]", "[[]]"),
    ("[[1,[[2]],\"x\"]]", "[[1,[[2]],\"x\"]]"),
    ("{}", "{}"),
    // Names that every object has are not data.
    (
        r#"{"a":1,"__proto__":{"x":1},"constructor":2,"toString":3,"":4,"then":5,"a.b":6}"#,
        r#"{"a":1,"":4,"then":5,"a.b":6}"#,
    ),
    (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
    (
        r#"["error","RangeError","m","at f",{"code":"X","details":{"n":[[1]]}}]"#,
        r#"["error","RangeError","m","at f",{"code":"X","details":{"n":[[1]]}}]"#,
    ),
    (r#"["error","NoSuchError","m"]"#, r#"["error","Error","m"]"#),
];

/// Kinds that do not cross, with what the code of the refusal is.
const REFUSED: &[(&str, &str)] = &[
    (r#"["request","http://h/",{}]"#, "VALIDATION_FAILED"),
    (r#"["response",null,{}]"#, "VALIDATION_FAILED"),
    (
        r#"["blob","text/plain",["readable",1]]"#,
        "VALIDATION_FAILED",
    ),
];

#[tokio::test]
async fn plain_values_cross_in_both_directions_also_deep_inside_others() {
    for (written, read) in PLAIN {
        for (before, after) in [
            ("", ""),
            ("{\"k\":[[", "]]}"),
            (r#"["error","Error","m",null,{"k":"#, "}]"),
        ] {
            let written = format!("{before}{written}{after}");
            let read = format!("{before}{read}{after}");
            let mut middle = Middle::start(Limits::default());
            assert_eq!(inward(&mut middle, &written).await, pushed(&read));
            let mut middle = Middle::start(Limits::default());
            assert_eq!(outward(&mut middle, &written).await, resolved(&read));
        }
    }
}

#[tokio::test]
async fn types_of_newer_peers_cross_where_both_know_them() {
    let mut limits = Limits::default();
    limits.dialect = Dialect::V0_11;
    for value in [
        r#"["url","https://h/"]"#,
        r#"["bytes","AAAAAA","Float32Array"]"#,
        r#"["bytes","AAAAAA","DataView"]"#,
    ] {
        assert_eq!(
            inward(&mut Middle::start(limits), value).await,
            pushed(value)
        );
        assert_eq!(
            outward(&mut Middle::start(limits), value).await,
            resolved(value)
        );
    }
}

#[tokio::test]
async fn requests_responses_and_blobs_are_refused_wherever_they_are() {
    for (value, code) in REFUSED {
        for (before, after) in [("", ""), ("{\"k\":[[", "]]}")] {
            let value = format!("{before}{value}{after}");
            // The pipe that a blob needs takes the first place.
            let mut middle = Middle::start(Limits::default());
            middle.client.send(r#"["pipe"]"#);
            middle
                .client
                .send(&format!(r#"["push",["pipeline",0,["x"],[{value}]]]"#));
            middle.client.send(r#"["pull",2]"#);
            let mut answer = middle.client.next().await;
            if answer.starts_with("[\"reject\",1,") {
                // The blob's content has no reader any more.
                answer = middle.client.next().await;
            }
            assert!(answer.starts_with("[\"reject\",2,"), "{value}: {answer}");
            assert!(answer.contains(code), "{value}: {answer}");
            assert!(middle.sandbox.heard().is_none());

            let mut middle = Middle::start(Limits::default());
            middle.sandbox.send(r#"["pipe"]"#);
            let answer = outward(&mut middle, &value).await;
            assert!(answer.starts_with("[\"reject\",1,"), "{value}: {answer}");
            assert!(answer.contains(code), "{value}: {answer}");
        }
    }
}

#[tokio::test]
async fn arguments_beyond_the_limit_are_refused_whatever_they_are_made_of() {
    let half = "x".repeat(ARGUMENT_CONTENT_MAX / 2 + 1);
    let base64 = "AAAA".repeat(ARGUMENT_CONTENT_MAX / 6 + 1);
    for part in [
        format!("\"{half}\""),
        format!("[\"url\",\"{half}\"]"),
        format!("[\"bytes\",\"{base64}\"]"),
        format!("[\"headers\",[[\"a\",\"{half}\"]]]"),
        format!("[\"error\",\"Error\",\"{half}\"]"),
        format!("{{\"{half}\":1}}"),
    ] {
        let shown: String = part.chars().take(40).collect();
        let mut limits = Limits::default();
        limits.dialect = Dialect::V0_11;
        let mut middle = Middle::start(limits);
        let answer = inward(&mut middle, &format!("[[{part}]],{part}")).await;
        assert!(answer.starts_with("[\"reject\",1,"), "{shown}");
        assert!(answer.contains("PAYLOAD_TOO_LARGE"), "{shown}");
        assert!(middle.sandbox.heard().is_none(), "{shown}");
    }
}

#[tokio::test]
async fn a_result_beyond_the_limits_fails_its_call_alone() {
    let mut limits = Limits::default();
    limits.depth = 20;
    limits.send_bytes = 100_000;
    for value in [
        format!("\"{}\"", "x".repeat(200_000)),
        format!("{}1{}", "[[".repeat(40), "]]".repeat(40)),
        format!("[\"bigint\",\"{}\"]", "9".repeat(20_000)),
    ] {
        let mut middle = Middle::start(limits);
        let answer = outward(&mut middle, &value).await;
        assert!(answer.starts_with("[\"reject\",1,"), "{answer}");
        middle.client.send(r#"["push",["pipeline",0,["x"],[]]]"#);
        middle.client.send(r#"["pull",2]"#);
        middle.sandbox.next().await;
        middle.sandbox.send(r#"["resolve",2,1]"#);
        assert_eq!(middle.client.next().await, r#"["resolve",2,1]"#);
    }
}

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::scan::{Scanner, first_special};
use super::{decode, encode};
use crate::codes;
use crate::error::ErrorValue;
use crate::limits::Limits;
use crate::object::Object;
use crate::value::Value;

/// Values that the wire gives back as they were.
fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("[\"undefined\"]".to_owned()),
        Just("[\"nan\"]".to_owned()),
        Just("[\"-inf\"]".to_owned()),
        any::<f64>()
            .prop_filter("finite", |number| number.is_finite())
            .prop_map(|number| { encode(Value::Number(number), &Limits::default()).unwrap() }),
        any::<String>().prop_map(|text| encode(text.into(), &Limits::default()).unwrap()),
        any::<Vec<u8>>().prop_map(|bytes| encode(bytes.into(), &Limits::default()).unwrap()),
        any::<i64>().prop_map(|number| format!("[\"bigint\",\"{number}\"]")),
        any::<i32>().prop_map(|time| format!("[\"date\",{time}]")),
        "[a-z]{0,8}".prop_map(|text| format!("[\"error\",\"TypeError\",\"{text}\"]")),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6)
                .prop_map(|items| format!("[[{}]]", items.join(","))),
            prop::collection::vec(("[a-z]{1,6}", inner.clone()), 0..6).prop_map(|pairs| {
                let mut seen = std::collections::HashSet::new();
                let pairs = pairs
                    .into_iter()
                    .filter(|(key, _)| seen.insert(key.clone()));
                let pairs: Vec<_> = pairs
                    .map(|(key, value)| format!("\"{key}\":{value}"))
                    .collect();
                format!("{{{}}}", pairs.join(","))
            }),
            inner.prop_map(|inner| format!(
                "[\"error\",\"Error\",\"m\",null,{{\"cause\":{inner}}}]"
            )),
        ]
    })
}

proptest! {
    #[test]
    fn what_was_written_reads_the_same(text in value()) {
        let limits = Limits::default();
        let value = decode(&text, &limits).unwrap();
        prop_assert_eq!(encode(value, &limits).unwrap(), text);
    }

    #[test]
    fn numbers_keep_every_bit(number in any::<f64>().prop_filter("finite", |number| number.is_finite())) {
        let text = encode(number.into(), &Limits::default()).unwrap();
        prop_assert_eq!(decode(&text, &Limits::default()).unwrap().as_f64(), Some(number));
    }

    #[test]
    fn strings_are_written_as_json_and_read_back(string in any::<String>()) {
        let text = encode(string.as_str().into(), &Limits::default()).unwrap();
        prop_assert_eq!(serde_json::from_str::<String>(&text).unwrap(), string.as_str());
        let theirs = serde_json::to_string(&string).unwrap();
        let read = decode(&theirs, &Limits::default()).unwrap();
        prop_assert_eq!(read.as_str(), Some(string.as_str()));
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        let _ = decode(&text, &Limits::default());
    }

    #[test]
    fn text_made_of_json_tokens_is_read_or_refused(
        tokens in prop::collection::vec(
            prop::sample::select(vec![
                "[", "]", "{", "}", ",", ":", "\"", "\\", "\\u", "d800", "-", "0", "1", ".", "e", "null", "true",
                "\"bytes\"", "\"error\"", "\"undefined\"", "\"date\"", "\"request\"", "\"headers\"", "\"a\"", " ",
            ]),
            0..60,
        ),
    ) {
        let text = tokens.concat();
        let ours = decode(&text, &Limits::default()).is_ok();
        // Whatever is read was JSON.
        prop_assert!(!ours || serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{}", text);
    }

    #[test]
    fn skipping_passes_over_exactly_one_value(text in value()) {
        let followed = format!("{text},1");
        let mut scan = Scanner::new(&followed);
        scan.skip().unwrap();
        prop_assert_eq!(scan.since(0), text);
    }

    #[test]
    fn a_special_byte_is_found_wherever_it_is(before in 0_usize..300, after in 0_usize..300) {
        let text = format!("{}\"{}\"", "x".repeat(before), "y".repeat(after));
        prop_assert_eq!(first_special(text.as_bytes()), Some(before));
        prop_assert_eq!(first_special("x".repeat(before).as_bytes()), None);
    }
}

#[test]
fn values_nest_up_to_the_limit_also_on_a_small_stack() {
    let run = || {
        let limits = Limits::default();
        for (depth, fits) in [(255, true), (256, false), (100_000, false)] {
            let text = format!("{}1{}", "[[".repeat(depth), "]]".repeat(depth));
            let value = decode(&text, &limits);
            assert_eq!(value.is_ok(), fits, "{depth}");
            match value {
                Ok(value) => assert_eq!(encode(value, &limits).unwrap(), text),
                Err(error) => assert_eq!(error.code(), Some(codes::VALUE_TOO_COMPLEX)),
            }
        }
        let objects = format!("{}1{}", "{\"a\":".repeat(255), "}".repeat(255));
        assert_eq!(
            encode(decode(&objects, &limits).unwrap(), &limits).unwrap(),
            objects
        );
        let mut deep = Value::Null;
        for _ in 0..300 {
            deep = Value::Array(vec![deep]);
        }
        assert_eq!(
            encode(deep, &limits).unwrap_err().code(),
            Some(codes::VALUE_TOO_COMPLEX)
        );
    };
    let thread = std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(run)
        .unwrap();
    thread.join().unwrap();
}

#[test]
fn a_message_has_so_many_parts_at_most() {
    let limits = Limits::default();
    let many = format!("[[{}0]]", "0,".repeat(limits.values));
    assert_eq!(
        decode(&many, &limits).unwrap_err().code(),
        Some(codes::VALUE_TOO_COMPLEX)
    );
}

#[test]
fn an_object_with_many_keys_reads_in_linear_time() {
    let keys: Vec<_> = (0..300_000).map(|key| format!("\"key{key}\":1")).collect();
    let text = format!("{{{}}}", keys.join(","));
    let value = decode(&text, &Limits::default()).unwrap();
    assert_eq!(value.as_object().map(Object::len), Some(300_000));
}

#[test]
fn a_value_that_is_too_large_is_refused_before_it_is_written() {
    let limits = Limits {
        send_bytes: 1000,
        ..Limits::default()
    };
    for value in [
        Value::from("x".repeat(2000)),
        Value::from("\u{1}".repeat(500)),
        vec![0_u8; 1000].into(),
        Value::Array((0..600).map(|_| Value::Null).collect()),
        ErrorValue::new("Error", "x".repeat(2000)).into(),
    ] {
        assert_eq!(
            encode(value, &limits).unwrap_err().code(),
            Some(codes::MESSAGE_TOO_LARGE)
        );
    }
}

#[test]
fn references_need_a_session() {
    for text in [
        "[\"export\",-1]",
        "[\"pipeline\",0]",
        "[\"readable\",1]",
        "[\"remap\",0,[],[],[1]]",
    ] {
        let error = decode(text, &Limits::default()).unwrap_err();
        assert!(
            error.message.contains("without an RPC session"),
            "{text}: {error}"
        );
    }
    let stub = crate::stub::Stub::function(|_| async { Ok(Value::Undefined) });
    assert!(encode(stub.into(), &Limits::default()).is_err());
}

//! Any text as an expression: it is refused, or it reads, writes and reads the same again.
#![no_main]

use capnweb::{Limits, codec};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let limits = Limits::default();
    let Ok(value) = codec::decode(text, &limits) else {
        return;
    };
    let _ = value.to_json();
    let Ok(written) = codec::encode(value, &limits) else {
        return;
    };
    let Ok(again) = codec::decode(&written, &limits) else {
        panic!("what was written does not read: {written}");
    };
    let rewritten = codec::encode(again, &limits);
    assert_eq!(rewritten.ok().as_deref(), Some(written.as_str()));
});

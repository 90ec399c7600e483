//! Whatever a client writes as an id, a path, a duration, an environment or the input of
//! create is accepted or refused, and what is accepted reads the same when written again.
#![no_main]

use std::fmt::Display;
use std::str::FromStr;

use hutch_protocol::{
    BootId, CreateInput, ErrorCode, InstanceType, ProjectId, ProjectSlug, SandboxName, SandboxPath,
    SleepAfter, StreamPath, Timestamp,
};
use libfuzzer_sys::fuzz_target;

fn round_trip<T: FromStr + Display + PartialEq>(text: &str) {
    if let Ok(value) = text.parse::<T>() {
        let written = value.to_string();
        assert!(
            written.parse::<T>().is_ok_and(|again| again == value),
            "{written:?}"
        );
    }
}

fuzz_target!(|text: &str| {
    round_trip::<BootId>(text);
    round_trip::<ErrorCode>(text);
    round_trip::<InstanceType>(text);
    round_trip::<ProjectId>(text);
    round_trip::<ProjectSlug>(text);
    round_trip::<SandboxName>(text);
    round_trip::<SandboxPath>(text);
    round_trip::<StreamPath>(text);
    round_trip::<Timestamp>(text);
    if let Ok(value) = serde_json::from_str(text) {
        let _ = SleepAfter::from_json(&value);
        let _ = CreateInput::from_json(&value);
        let _ = hutch_protocol::env::patch_from_json(&value);
    }
});

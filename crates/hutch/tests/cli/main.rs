//! The command line against a real server, real sandboxes and real pipes.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bench;
mod cp;
mod errors;
mod events;
mod exec;
mod itx;
mod page;
mod sandbox;
mod serve;
mod signals;

use hutch_e2e::Hutch;
use serde_json::Value;
use std::process::Output;

/// A server with one sandbox, `main`.
fn with_sandbox() -> Hutch {
    let hutch = Hutch::start();
    good(&hutch.cli(&["sandbox", "create", "main", "--type", "lite"]));
    hutch
}

/// Standard output as text, of a command line that has to succeed.
fn good(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Standard output as JSON, of a command line that has to succeed.
fn json(output: &Output) -> Value {
    serde_json::from_str(&good(output)).unwrap()
}

/// The exit code and the error's code, of a command line under `--json` that has
/// to fail. Standard output has to be empty.
fn refused(output: &Output) -> (i32, String) {
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{output:?}");
    let error: Value = serde_json::from_slice(&output.stderr).unwrap();
    let error = &error["error"];
    assert!(
        error["message"].is_string() && error["context"].is_object(),
        "{error}"
    );
    let code = error["code"].as_str().unwrap().to_owned();
    (output.status.code().unwrap(), code)
}

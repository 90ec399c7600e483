//! The official JavaScript package as client and as server.
//!
//! Needs node and `npm ci` in `tests/interop`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

mod as_batch_client;
mod as_client;
mod as_server;
mod http;

use std::path::PathBuf;
use std::process::Command;

use capnweb::{ErrorValue, Object, ReadableStream, Value};

fn folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/interop");
    assert!(
        folder.join("node_modules/capnweb").is_dir(),
        "the JavaScript packages are missing: run `npm ci` in tests/interop"
    );
    folder
}

fn node(script: &str) -> Command {
    let mut command = Command::new("node");
    command.arg(script).current_dir(folder());
    command
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 31 % 251) as u8).collect()
}

fn file_not_found() -> ErrorValue {
    let mut details = Object::new();
    details.insert("path", "/x");
    ErrorValue::coded("FILE_NOT_FOUND", "File not found: /x").with_prop("details", details)
}

fn readable(args: &mut Vec<Value>) -> ReadableStream {
    match args.remove(0) {
        Value::Readable(stream) => stream,
        other => panic!("not a stream: {other:?}"),
    }
}

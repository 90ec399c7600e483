//! The `control` main: for the host alone.

use super::Services;
use super::answer::{self, number, object};
use super::arguments::{Arguments, env, wrong};
use crate::services::commands::invalid;
use capnweb::{CallFuture, Path, Target, Value, display_path, not_a_function};
use futures_util::FutureExt;
use futures_util::future::ready;
use hutch_protocol::ApiError;
use std::sync::Arc;

/// `ping()`, `configure({env})` and `stats()`.
#[derive(Debug)]
pub struct Control(Arc<Services>);

impl Control {
    /// The main over the services.
    #[must_use]
    pub fn new(services: Arc<Services>) -> Self {
        Self(services)
    }

    fn configure(&self, mut arguments: Arguments) -> Result<Value, ApiError> {
        let Value::Object(mut settings) = arguments.value() else {
            return Err(invalid("settings", "configure takes an object {env}"));
        };
        match settings.remove("env").unwrap_or_default() {
            Value::Undefined => {}
            map @ Value::Object(_) => {
                let patch = env(map)?;
                hutch_protocol::env::check_patch(&patch)?;
                self.0.environment.replace(patch);
            }
            other => return Err(wrong("env", "an object of strings and nulls", &other)),
        }
        Ok(Value::Undefined)
    }

    fn stats(&self) -> Value {
        let running = self.0.processes.running();
        let holding = running.iter().filter(|process| process.hold_awake).count();
        Value::Object(object([
            ("processes", number(running.len())),
            ("holdAwake", number(holding)),
            ("openCalls", number(self.0.open_calls.count())),
        ]))
    }
}

impl Target for Control {
    fn call(self: Arc<Self>, path: Path, arguments: Vec<Value>) -> CallFuture {
        // Nothing here waits, so calls take effect in the order in which they arrive.
        let result = match display_path(&path).as_str() {
            "ping" => Ok(Value::from("pong")),
            "stats" => Ok(self.stats()),
            "configure" => self
                .configure(Arguments::new(arguments))
                .map_err(answer::error),
            _ => Err(not_a_function(&path)),
        };
        ready(result).boxed()
    }
}

//! Waiting for what a process does.

use crate::control_plane::answer::object;
use crate::control_plane::arguments::{Arguments, Options, wrong};
use crate::services::commands::timeout;
use crate::services::processes::{Port, Probe, Processes};
use capnweb::Value;
use hutch_protocol::{ApiError, ErrorCode};
use std::ops::RangeInclusive;
use std::time::Duration;

/// How often a port is tried unless the caller says.
const INTERVAL: Duration = Duration::from_millis(500);
/// The shortest time between two tries.
const INTERVAL_MIN: Duration = Duration::from_millis(10);

/// Waits for what `name` says of the process `id`; the other arguments follow.
pub(super) async fn call(
    processes: &Processes,
    name: &str,
    id: &str,
    mut arguments: Arguments,
) -> Result<Value, ApiError> {
    match name {
        "waitForLog" => {
            let text = arguments.text("text")?;
            let limit = limit(arguments.value())?;
            let line = processes.wait_for_log(id, &text, limit).await?;
            Ok(Value::Object(object([("line", line.into())])))
        }
        "waitForPort" => {
            let number = port(&arguments.value())?;
            let mut options = arguments.options()?;
            let limit = options.timeout("timeout")?;
            let interval = options.timeout("interval")?.unwrap_or(INTERVAL);
            let port = Port {
                number,
                probe: probe(&mut options)?,
                interval: interval.max(INTERVAL_MIN),
            };
            processes.wait_for_port(id, &port, limit).await?;
            Ok(Value::Undefined)
        }
        _ => {
            let limit = limit(arguments.value())?;
            let code = processes.wait(id, limit).await?;
            Ok(Value::Object(object([("exitCode", code.into())])))
        }
    }
}

/// The limit is in milliseconds, by itself or as `{timeout}`.
fn limit(value: Value) -> Result<Option<Duration>, ApiError> {
    match value {
        Value::Number(milliseconds) => timeout(milliseconds).map(Some),
        other => {
            let mut options = Arguments::new(vec![other]).options()?;
            options.timeout("timeout")
        }
    }
}

fn port(value: &Value) -> Result<u16, ApiError> {
    let number = value.as_i64().and_then(|number| u16::try_from(number).ok());
    number
        .filter(|number| *number > 0)
        .ok_or_else(|| wrong("port", "a number from 1 to 65535", value))
}

/// `{mode?: "http" | "tcp", path?, status?: number | {min, max}}`.
fn probe(options: &mut Options) -> Result<Probe, ApiError> {
    let mode = options.text("mode")?;
    let path = options.text("path")?.unwrap_or_else(|| "/".to_owned());
    let status = status(options.value("status"))?;
    match mode.as_deref() {
        Some("tcp") => Ok(Probe::Tcp),
        None | Some("http") => {
            // It goes into the first line of a request.
            let fits = path.starts_with('/') && path.len() <= 4096;
            if !fits || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
                let message =
                    "path must begin with / and have at most 4096 visible ASCII characters";
                return Err(ApiError::new(ErrorCode::ValidationFailed, message));
            }
            Ok(Probe::Http { path, status })
        }
        Some(_) => {
            let message = "mode must be \"http\" or \"tcp\"";
            Err(ApiError::new(ErrorCode::ValidationFailed, message))
        }
    }
}

fn status(value: Value) -> Result<RangeInclusive<u16>, ApiError> {
    let code = |number: f64| {
        // Exact for every status there is.
        (100..=999_u16).find(|code| f64::from(*code) == number)
    };
    let range = match &value {
        Value::Undefined | Value::Null => return Ok(200..=399),
        Value::Number(number) => code(*number).map(|code| code..=code),
        Value::Object(bounds) => {
            let bound = |name: &str, default: u16| match bounds.get(name) {
                None | Some(Value::Undefined) => Some(default),
                Some(Value::Number(number)) => code(*number),
                Some(_) => None,
            };
            bound("min", 200)
                .zip(bound("max", 399))
                .map(|(min, max)| min..=max)
        }
        _ => None,
    };
    range
        .filter(|range| !range.is_empty())
        .ok_or_else(|| wrong("status", "a status or {min, max}", &value))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(options: serde_json::Value) -> Result<Probe, ApiError> {
        let value = Value::from_json(options);
        probe(&mut Arguments::new(vec![value]).options().unwrap())
    }

    #[test]
    fn a_probe_is_http_unless_it_is_said() {
        use serde_json::json;
        let http = |path: &str, status| Probe::Http {
            path: path.into(),
            status,
        };
        assert_eq!(read(json!({})).unwrap(), http("/", 200..=399));
        assert_eq!(read(json!({"mode": "tcp"})).unwrap(), Probe::Tcp);
        let given = json!({"path": "/a?b", "status": 204});
        assert_eq!(read(given).unwrap(), http("/a?b", 204..=204));
        let given = json!({"status": {"min": 500, "max": 503}});
        assert_eq!(read(given).unwrap(), http("/", 500..=503));
        for wrong in [
            json!({"mode": "udp"}),
            json!({"path": "x"}),
            json!({"path": "/a b"}),
            json!({"path": "/\r\nX: y"}),
            json!({"status": 20}),
            json!({"status": "200"}),
            json!({"status": {"min": "a"}}),
            json!({"status": {"min": 500}}),
        ] {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_port_is_a_number_that_there_is() {
        assert_eq!(port(&8080.into()).unwrap(), 8080);
        for wrong in [0_i32, -1, 65_536] {
            assert!(port(&Value::from(wrong)).is_err());
        }
        assert!(port(&Value::from("80")).is_err());
    }
}

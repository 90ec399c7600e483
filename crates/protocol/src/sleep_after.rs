//! How long a sandbox stays awake with nothing to do.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::path::shown;
use crate::{ApiError, ErrorCode};

/// The longest accepted time: a year.
const MAX_SECONDS: f64 = 366.0 * 86_400.0;

/// An idle time: a positive number of seconds, or digits followed by `s`, `m`
/// or `h`. The default is ten minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub struct SleepAfter(Duration);

impl Default for SleepAfter {
    fn default() -> Self {
        Self(Duration::from_secs(600))
    }
}

impl SleepAfter {
    /// The time as a duration.
    #[must_use]
    pub const fn duration(self) -> Duration {
        self.0
    }

    /// Reads what a caller sent: a JSON number or a string.
    ///
    /// # Errors
    /// `INVALID_SLEEP_AFTER` for anything else, zero and less included.
    pub fn from_json(value: &Value) -> Result<Self, ApiError> {
        match value {
            Value::Number(number) => number
                .as_f64()
                .ok_or_else(|| refused(&number.to_string()))
                .and_then(Self::from_seconds),
            Value::String(text) => text.parse(),
            other => Err(refused(&other.to_string())),
        }
    }

    /// Reads a number of seconds.
    ///
    /// # Errors
    /// `INVALID_SLEEP_AFTER` for NaN, infinities, zero, less, and over a year.
    pub fn from_seconds(seconds: f64) -> Result<Self, ApiError> {
        // A millisecond is the least that a timer here can tell apart.
        if seconds.is_finite() && (0.001..=MAX_SECONDS).contains(&seconds) {
            return Ok(Self(Duration::from_secs_f64(seconds)));
        }
        Err(refused(&seconds.to_string()))
    }
}

fn refused(given: &str) -> ApiError {
    ApiError::new(
        ErrorCode::InvalidSleepAfter,
        format!(
            "invalid sleepAfter {:?}: pass a positive number of seconds or \"<n>s\"/\"<n>m\"/\"<n>h\" (e.g. \"30s\", \"5m\", \"1h\")",
            shown(given)
        ),
    )
    .with("sleepAfter", shown(given))
}

impl std::str::FromStr for SleepAfter {
    type Err = ApiError;

    fn from_str(text: &str) -> Result<Self, ApiError> {
        let unit = match text.chars().last() {
            Some('s') => 1.0,
            Some('m') => 60.0,
            Some('h') => 3600.0,
            _ => return Err(refused(text)),
        };
        let digits = &text[..text.len() - 1];
        if digits.is_empty() || digits.len() > 10 || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(refused(text));
        }
        let count: f64 = digits.parse().map_err(|_| refused(text))?;
        Self::from_seconds(count * unit).map_err(|_| refused(text))
    }
}

impl fmt::Display for SleepAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        if self.0.subsec_nanos() != 0 {
            return write!(f, "{}", self.0.as_secs_f64());
        }
        match seconds {
            s if s % 3600 == 0 => write!(f, "{}h", s / 3600),
            s if s % 60 == 0 => write!(f, "{}m", s / 60),
            s => write!(f, "{s}s"),
        }
    }
}

impl TryFrom<Value> for SleepAfter {
    type Error = ApiError;
    fn try_from(value: Value) -> Result<Self, ApiError> {
        Self::from_json(&value)
    }
}

impl From<SleepAfter> for Value {
    fn from(time: SleepAfter) -> Self {
        if time.0.subsec_nanos() == 0 {
            Self::String(time.to_string())
        } else {
            Self::from(time.0.as_secs_f64())
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn seconds_and_units_are_read() {
        for (given, seconds) in [
            (json!(90), 90.0),
            (json!(0.5), 0.5),
            (json!("30s"), 30.0),
            (json!("5m"), 300.0),
            (json!("1h"), 3600.0),
        ] {
            let time = SleepAfter::from_json(&given).unwrap();
            assert_eq!(time.duration().as_secs_f64(), seconds, "{given}");
            let back = SleepAfter::from_json(&Value::from(time)).unwrap();
            assert_eq!(back, time);
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for given in [
            json!("0s"),
            json!("1d"),
            json!("30min"),
            json!("1.5h"),
            json!("-1s"),
            json!(""),
            json!("s"),
            json!("99999999999s"),
            json!("10"),
            json!("١s"),
            json!(0),
            json!(-1),
            json!(1e300),
            json!(null),
            json!(true),
            json!([]),
        ] {
            let error = SleepAfter::from_json(&given).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidSleepAfter, "{given}");
        }
        for seconds in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(SleepAfter::from_seconds(seconds).is_err());
        }
    }
}

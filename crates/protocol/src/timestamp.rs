//! Points in time as every surface writes them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;

/// Milliseconds since 1970 in UTC; written as `2026-11-30T20:28:54.123Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(i64);

impl Timestamp {
    /// The host's clock, now.
    #[must_use]
    pub fn now() -> Self {
        let nanos = OffsetDateTime::now_utc().unix_timestamp_nanos();
        Self(i64::try_from(nanos / 1_000_000).unwrap_or(i64::MAX))
    }

    /// From milliseconds since 1970.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// As milliseconds since 1970.
    #[must_use]
    pub const fn millis(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = i128::from(self.0) * 1_000_000;
        let at = OffsetDateTime::from_unix_timestamp_nanos(nanos).map_err(|_| fmt::Error)?;
        let shape = format_description!(
            "[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z"
        );
        f.write_str(&at.format(&shape).map_err(|_| fmt::Error)?)
    }
}

/// The text is not an RFC 3339 time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a time: {0:?}")]
pub struct InvalidTimestamp(String);

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    fn from_str(text: &str) -> Result<Self, InvalidTimestamp> {
        let invalid = || InvalidTimestamp(text.chars().take(40).collect());
        let at = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| invalid())?;
        let millis = at.unix_timestamp_nanos() / 1_000_000;
        Ok(Self(i64::try_from(millis).map_err(|_| invalid())?))
    }
}

impl TryFrom<String> for Timestamp {
    type Error = InvalidTimestamp;
    fn try_from(text: String) -> Result<Self, InvalidTimestamp> {
        text.parse()
    }
}

impl From<Timestamp> for String {
    fn from(at: Timestamp) -> Self {
        // Only a year past 9999 cannot be written; such a clock is broken.
        if (-62_135_596_800_000..=253_402_300_799_999).contains(&at.0) {
            at.to_string()
        } else {
            "9999-12-31T23:59:59.999Z".into()
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn times_read_back_to_the_millisecond() {
        let at = Timestamp::from_millis(1_796_000_000_007);
        assert_eq!(at.to_string().parse::<Timestamp>().unwrap(), at);
        assert!(at.to_string().ends_with(".007Z"));
    }
}

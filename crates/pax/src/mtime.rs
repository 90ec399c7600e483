//! Times as PAX writes them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const BILLION: u32 = 1_000_000_000;

/// A time in nanoseconds, exact and without the year 2262 limit of 64 bits.
/// Written as in PAX: decimal seconds since 1970 with a fraction, `-0.5` being
/// half a second before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mtime {
    /// Whole seconds since 1970, rounded down.
    pub seconds: i64,
    /// Nanoseconds to add: 0 to 999,999,999.
    pub nanos: u32,
}

impl fmt::Display for Mtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seconds, nanos } = *self;
        if nanos == 0 {
            write!(f, "{seconds}")
        } else if seconds < 0 {
            let whole = (seconds + 1).unsigned_abs();
            write!(f, "-{whole}.{:09}", BILLION - nanos)
        } else {
            write!(f, "{seconds}.{nanos:09}")
        }
    }
}

/// The text is not a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not a time in decimal seconds")]
pub struct InvalidMtime;

impl FromStr for Mtime {
    type Err = InvalidMtime;

    /// Digits after the ninth are dropped.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !all_digits(whole) || !all_digits(fraction) {
            return Err(InvalidMtime);
        }
        let whole: i64 = whole.parse().map_err(|_| InvalidMtime)?;
        let nanos = fraction
            .bytes()
            .chain(std::iter::repeat(b'0'))
            .take(9)
            .fold(0, |nanos, digit| nanos * 10 + u32::from(digit - b'0'));
        Ok(match (negative, nanos) {
            (false, nanos) => Self {
                seconds: whole,
                nanos,
            },
            (true, 0) => Self {
                seconds: -whole,
                nanos: 0,
            },
            (true, nanos) => Self {
                seconds: -whole - 1,
                nanos: BILLION - nanos,
            },
        })
    }
}

impl Serialize for Mtime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Mtime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn half_a_second_before_1970_is_minus_a_half() {
        let time = Mtime {
            seconds: -1,
            nanos: 500_000_000,
        };
        assert_eq!(time.to_string(), "-0.500000000");
        assert_eq!("-0.5".parse(), Ok(time));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "-",
            ".",
            "1.",
            ".5",
            "+1",
            "1e3",
            "1.-5",
            " 1",
            "9223372036854775808",
        ] {
            assert_eq!(text.parse::<Mtime>(), Err(InvalidMtime), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_written_time_reads_back(seconds in (i64::MIN + 2)..=i64::MAX, nanos in 0..BILLION) {
            let time = Mtime { seconds, nanos };
            prop_assert_eq!(time.to_string().parse(), Ok(time));
        }
    }
}

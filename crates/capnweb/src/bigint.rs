//! Integers of any size, kept as decimal text.

use std::fmt;
use std::str::FromStr;

/// An integer of any size as canonical decimal text: an optional minus sign and
/// digits without leading zeros.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BigInt(String);

/// The text is not an optional minus sign followed by decimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a decimal integer")]
pub struct InvalidBigInt;

impl BigInt {
    /// The decimal text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for BigInt {
    type Err = InvalidBigInt;

    fn from_str(text: &str) -> Result<Self, InvalidBigInt> {
        let (sign, digits) = match text.strip_prefix('-') {
            Some(rest) => ("-", rest),
            None => ("", text),
        };
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(InvalidBigInt);
        }
        let digits = digits.trim_start_matches('0');
        Ok(if digits.is_empty() {
            Self("0".to_owned())
        } else {
            Self(format!("{sign}{digits}"))
        })
    }
}

impl From<i64> for BigInt {
    fn from(number: i64) -> Self {
        Self(number.to_string())
    }
}

impl From<u64> for BigInt {
    fn from(number: u64) -> Self {
        Self(number.to_string())
    }
}

impl fmt::Display for BigInt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn text_becomes_canonical() {
        for (text, canonical) in [("0", "0"), ("-0", "0"), ("-007", "-7"), ("12", "12")] {
            assert_eq!(text.parse::<BigInt>().unwrap().as_str(), canonical);
        }
    }

    #[test]
    fn other_text_is_refused() {
        for text in ["", "-", "+1", "1.0", "0x1", " 1", "1n", "--1"] {
            assert_eq!(text.parse::<BigInt>(), Err(InvalidBigInt), "{text:?}");
        }
    }
}

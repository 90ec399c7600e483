//! Durations as people type them.

use std::time::Duration;

/// Reads `500ms`, `30s`, `5m`, `1h` or a bare number of seconds. Zero is refused.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || {
        format!(
            "`{text}` is not a duration: give a positive whole number with ms, s, m or h, such as 30s or 5m"
        )
    };
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let factor: u64 = match unit {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(wrong()),
    };
    match number.checked_mul(factor) {
        Some(millis) if millis > 0 => Ok(Duration::from_millis(millis)),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn units_and_bare_seconds() {
        for (text, millis) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("5m", 300_000),
            ("1h", 3_600_000),
            ("7", 7_000),
        ] {
            assert_eq!(
                parse(text).unwrap(),
                Duration::from_millis(millis),
                "{text}"
            );
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "",
            "0",
            "0s",
            "-1",
            "1d",
            "1.5h",
            "s",
            "5 m",
            "NaN",
            "+3",
            "99999999999999999999h",
            "18446744073709551615h",
            "٣s",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}

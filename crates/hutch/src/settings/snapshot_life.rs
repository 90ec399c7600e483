//! How long snapshots are kept, as people write it.

use serde::Deserialize;
use std::time::Duration;

const DAY: u64 = 24 * 60 * 60;
/// The longest that is not for ever.
const DAYS_MAX: u64 = 36_500;

/// `"30d"`, or `"never"` for those that are to stay for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct SnapshotLife(pub Option<Duration>);

impl TryFrom<String> for SnapshotLife {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text == "never" {
            return Ok(Self(None));
        }
        let days = text.strip_suffix('d').and_then(|days| days.parse().ok());
        match days {
            Some(days @ 1..=DAYS_MAX) => Ok(Self(Some(Duration::from_secs(days * DAY)))),
            _ => Err(format!(
                "{text:?} is no time to keep snapshots: write a number of days, such as 30d, at most {DAYS_MAX}d, or never"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_life_is_days_or_for_ever() {
        let read = |text: &str| SnapshotLife::try_from(text.to_owned());
        assert_eq!(read("never").unwrap(), SnapshotLife(None));
        let month = Duration::from_secs(30 * DAY);
        assert_eq!(read("30d").unwrap(), SnapshotLife(Some(month)));
        for wrong in ["", "d", "0d", "30", "1h", "-1d", "36501d", "Never", "1.5d"] {
            assert!(read(wrong).unwrap_err().contains("30d"), "{wrong}");
        }
    }
}

//! How many boots are prepared ahead.
//!
//! As many as the server asked for; after a rush, for a minute, as many as the
//! rush was short of, because who starts fifty often starts fifty again.

use std::time::{Duration, Instant};

/// The most that are kept because of a rush. One is a process with its
/// namespaces: about half a megabyte of the kernel's memory.
const MOST: usize = 32;
/// How long a rush is remembered.
const MEMORY: Duration = Duration::from_mins(1);
/// How long after a start the next boot is prepared, so that the daemon that
/// starts, and its first command, have the processor. Attaching to groups also
/// holds up every fork on the machine for some milliseconds.
pub const REST: Duration = Duration::from_millis(60);
/// The same in a rush, whose boots take longer.
const RUSH_REST: Duration = Duration::from_millis(500);

/// The number, and what it depends on.
#[derive(Debug, Default)]
pub struct Ahead {
    asked: usize,
    rush: Option<Rush>,
}

#[derive(Clone, Copy, Debug)]
struct Rush {
    short: usize,
    seen: Instant,
}

impl Ahead {
    /// A server asks for `number`.
    pub fn ask(&mut self, number: usize) {
        self.asked = number;
    }

    /// How many a server asked for.
    pub fn asked(&self) -> usize {
        self.asked
    }

    /// `short` starts wait at `now` and nothing is prepared for them.
    pub fn note(&mut self, short: usize, now: Instant) {
        let before = self.rush_at(now).map_or(0, |rush| rush.short);
        // Nobody who asked for none gets some.
        if self.asked > 0 && short > self.asked {
            let short = short.max(before).min(MOST);
            self.rush = Some(Rush { short, seen: now });
        }
    }

    /// How many to have at `now`.
    pub fn wanted(&self, now: Instant) -> usize {
        let rush = self.rush_at(now).map_or(0, |rush| rush.short);
        self.asked.max(rush)
    }

    /// How long after a start at `now` nothing is prepared.
    pub fn rest(&self, now: Instant) -> Duration {
        self.rush_at(now).map_or(REST, |_| RUSH_REST)
    }

    /// How long until fewer are wanted than at `now`.
    pub fn changes_in(&self, now: Instant) -> Option<Duration> {
        let rush = self.rush_at(now)?;
        Some((rush.seen + MEMORY).saturating_duration_since(now))
    }

    fn rush_at(&self, now: Instant) -> Option<Rush> {
        self.rush.filter(|rush| now < rush.seen + MEMORY)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use std::time::{Duration, Instant};

    use super::{Ahead, MEMORY, MOST, REST};

    fn asked(number: usize) -> Ahead {
        let mut ahead = Ahead::default();
        ahead.ask(number);
        ahead
    }

    #[test]
    fn a_rush_is_remembered_for_a_minute() {
        let now = Instant::now();
        let mut ahead = asked(2);
        ahead.note(20, now);
        ahead.note(7, now);
        assert_eq!(ahead.wanted(now), 20);
        assert!(ahead.rest(now) > REST);
        let later = now + MEMORY;
        assert_eq!(ahead.changes_in(now), Some(MEMORY));
        assert_eq!(ahead.wanted(later), 2);
        assert_eq!(ahead.rest(later), REST);
        assert_eq!(ahead.changes_in(later), None);
    }

    #[test]
    fn another_rush_starts_the_minute_again() {
        let now = Instant::now();
        let mut ahead = asked(2);
        ahead.note(20, now);
        let later = now + MEMORY - Duration::from_secs(1);
        ahead.note(5, later);
        assert_eq!(ahead.wanted(now + MEMORY), 20);
    }

    #[test]
    fn no_rush_keeps_more_than_the_most() {
        let now = Instant::now();
        let mut ahead = asked(2);
        ahead.note(1000, now);
        assert_eq!(ahead.wanted(now), MOST);
    }

    #[test]
    fn an_ordinary_wait_changes_nothing() {
        let now = Instant::now();
        let mut ahead = asked(2);
        ahead.note(2, now);
        assert_eq!(ahead.wanted(now), 2);
        assert_eq!(ahead.rest(now), REST);
        let mut none = asked(0);
        none.note(9, now);
        assert_eq!(none.wanted(now), 0);
    }
}

//! Connections of which nobody knows yet whose they are.
//!
//! When there is no room for another, the oldest one goes: whoever has a key
//! shows it within milliseconds, and those who only wait keep nobody out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use super::batch::Busy;

/// At most so many strangers.
#[derive(Clone, Debug)]
pub(super) struct Strangers(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    most: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    by_age: BTreeMap<u64, Stranger>,
}

#[derive(Debug)]
struct Stranger {
    pushed_out: CancellationToken,
    /// One that works on calls of somebody known stays.
    busy: Busy,
}

/// A stranger's place, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    of: Strangers,
    number: u64,
    pushed_out: CancellationToken,
}

impl Strangers {
    pub(super) fn new(most: usize) -> Self {
        let state = Mutex::default();
        Self(Arc::new(Shared { most, state }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every step leaves the map whole.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.state().by_age.len()
    }

    /// Takes one in, in place of the oldest if need be. `None` if none of the
    /// others can go.
    pub(super) fn enter(&self, busy: Busy) -> Option<Place> {
        let mut state = self.state();
        if state.by_age.len() >= self.0.most && !state.push_out() {
            return None;
        }
        let number = state.next;
        state.next += 1;
        let pushed_out = CancellationToken::new();
        let stranger = Stranger {
            pushed_out: pushed_out.clone(),
            busy,
        };
        state.by_age.insert(number, stranger);
        drop(state);
        Some(Place {
            of: self.clone(),
            number,
            pushed_out,
        })
    }

    /// Ends the oldest one that can go.
    pub(super) fn push_out(&self) -> bool {
        self.state().push_out()
    }
}

impl State {
    fn push_out(&mut self) -> bool {
        let mut by_age = self.by_age.iter();
        let oldest = by_age.find(|(_, stranger)| stranger.busy.is_idle());
        let Some(number) = oldest.map(|(number, _)| *number) else {
            return false;
        };
        if let Some(stranger) = self.by_age.remove(&number) {
            stranger.pushed_out.cancel();
        }
        true
    }
}

impl Place {
    /// Resolves once a newer one has this place.
    pub(super) async fn pushed_out(&self) {
        self.pushed_out.cancelled().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.of.state().by_age.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use futures_util::FutureExt as _;

    use super::*;

    fn is_out(place: &Place) -> bool {
        place.pushed_out().now_or_never().is_some()
    }

    #[test]
    fn the_oldest_goes_when_there_is_no_room() {
        let strangers = Strangers::new(2);
        let enter = || strangers.enter(Busy::default()).unwrap();
        let (first, second) = (enter(), enter());
        assert!(!is_out(&first));
        let third = enter();
        assert!(is_out(&first) && !is_out(&second) && !is_out(&third));
        // Its own end frees nobody else's place.
        drop(first);
        assert_eq!(strangers.count(), 2);
        drop(second);
        let fourth = enter();
        assert!(!is_out(&third) && !is_out(&fourth));
        drop((third, fourth));
        assert_eq!(strangers.count(), 0);
        assert!(!strangers.push_out());
    }

    #[test]
    fn who_works_for_somebody_known_stays() {
        let strangers = Strangers::new(2);
        let busy = Busy::default();
        let working = busy.begin();
        let worker = strangers.enter(busy.clone()).unwrap();
        let idle = strangers.enter(Busy::default()).unwrap();
        let other = strangers.enter(busy.clone()).unwrap();
        assert!(!is_out(&worker) && is_out(&idle));
        assert!(strangers.enter(Busy::default()).is_none());
        drop(working);
        let newest = strangers.enter(Busy::default());
        assert!(newest.is_some() && is_out(&worker) && !is_out(&other));
    }

    #[test]
    fn without_room_for_any_nobody_enters() {
        assert!(Strangers::new(0).enter(Busy::default()).is_none());
    }
}

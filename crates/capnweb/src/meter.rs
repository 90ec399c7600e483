//! Counters of what a peer makes this side hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An amount in use. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meter(Arc<AtomicUsize>);

/// A part of a meter's amount, given back on drop.
#[derive(Debug)]
pub(crate) struct Charge {
    meter: Meter,
    amount: usize,
    /// The same amount of what several sessions share.
    shared: Option<Box<Charge>>,
}

impl Charge {
    pub(crate) fn with(mut self, shared: Charge) -> Self {
        self.shared = Some(Box::new(shared));
        self
    }
}

impl Meter {
    pub(crate) fn used(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes an amount unless the sum would exceed the limit.
    pub(crate) fn charge(&self, amount: usize, limit: usize) -> Option<Charge> {
        self.0
            .try_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(amount).filter(|sum| *sum <= limit)
            })
            .ok()?;
        Some(Charge {
            meter: self.clone(),
            amount,
            shared: None,
        })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.meter.0.fetch_sub(self.amount, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_is_given_back() {
        let meter = Meter::default();
        let first = meter.charge(6, 10);
        assert!(first.is_some());
        assert!(meter.charge(5, 10).is_none());
        drop(first);
        assert!(meter.charge(10, 10).is_some());
        assert_eq!(meter.used(), 0);
    }
}

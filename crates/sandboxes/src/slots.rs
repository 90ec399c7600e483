//! How many machines of each size may run at the same time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hutch_protocol::InstanceType;

/// The most machines of each size that may boot or run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaxInstances(HashMap<InstanceType, usize>);

impl Default for MaxInstances {
    fn default() -> Self {
        use InstanceType::*;
        Self(HashMap::from([
            (Lite, 1000),
            (Basic, 500),
            (Standard1, 100),
            (Standard2, 50),
            (Standard3, 25),
            (Standard4, 10),
        ]))
    }
}

impl MaxInstances {
    /// The same with another limit for one size. 0 starts none of it.
    #[must_use]
    pub fn with(mut self, size: InstanceType, most: usize) -> Self {
        self.0.insert(size, most);
        self
    }

    /// The limit of a size.
    #[must_use]
    pub fn of(&self, size: InstanceType) -> usize {
        self.0.get(&size).copied().unwrap_or(0)
    }
}

/// The machines that boot or run now, by size.
pub(crate) struct Slots {
    most: MaxInstances,
    used: Mutex<HashMap<InstanceType, usize>>,
}

/// One machine's place. It is free again when this is dropped.
pub(crate) struct Slot {
    slots: Arc<Slots>,
    size: InstanceType,
}

impl Slots {
    pub(crate) fn new(most: MaxInstances) -> Arc<Self> {
        let used = Mutex::default();
        Arc::new(Self { most, used })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<InstanceType, usize>> {
        // Numbers that every step leaves whole.
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a new machine; the limit if there is none left.
    pub(crate) fn take(self: &Arc<Self>, size: InstanceType) -> Result<Slot, usize> {
        let most = self.most.of(size);
        {
            let mut used = self.lock();
            let used = used.entry(size).or_default();
            if *used >= most {
                return Err(most);
            }
            *used += 1;
        }
        let slots = Arc::clone(self);
        Ok(Slot { slots, size })
    }

    /// A place for a machine that runs already, whatever the limit is now.
    pub(crate) fn take_over(self: &Arc<Self>, size: InstanceType) -> Slot {
        *self.lock().entry(size).or_default() += 1;
        let slots = Arc::clone(self);
        Slot { slots, size }
    }

    /// Size, machines and limit, the smallest size first.
    pub(crate) fn usage(&self) -> Vec<(InstanceType, usize, usize)> {
        let used = self.lock();
        let line = |size| {
            let used = used.get(&size).copied().unwrap_or(0);
            (size, used, self.most.of(size))
        };
        InstanceType::ALL.into_iter().map(line).collect()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(used) = self.slots.lock().get_mut(&self.size) {
            *used = used.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_slot_is_free_at_once() {
        let slots = Slots::new(MaxInstances::default().with(InstanceType::Lite, 1));
        let first = slots.take(InstanceType::Lite);
        assert!(first.is_ok());
        assert_eq!(slots.take(InstanceType::Lite).err(), Some(1));
        assert!(slots.take(InstanceType::Basic).is_ok());
        drop(first);
        let second = slots.take(InstanceType::Lite);
        assert!(second.is_ok());
        let adopted = slots.take_over(InstanceType::Lite);
        assert_eq!(slots.usage()[0], (InstanceType::Lite, 2, 1));
        drop((second, adopted));
        assert_eq!(slots.usage()[0], (InstanceType::Lite, 0, 1));
    }
}

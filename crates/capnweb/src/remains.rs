//! Letting go of what may hold more of its kind.
//!
//! A peer can build chains of any length: a result that waits for another, that
//! comes to another, or that has another in its value or its arguments; a stream
//! in which a stream waits.
//! Dropped by recursion they would overflow the stack, which ends the process.

use std::cell::RefCell;

thread_local! {
    /// What waits, while something is being let go of on this thread.
    static WAITING: RefCell<Option<Vec<Box<dyn Send>>>> = const { RefCell::new(None) };
}

/// Drops it, but not from within the drop of another: that one goes on with it.
pub(crate) fn let_go<T: Send + 'static>(remains: T) {
    let mut remains = Some(remains);
    let first = WAITING.try_with(|waiting| {
        let mut waiting = waiting.borrow_mut();
        match (&mut *waiting, remains.take()) {
            (Some(waiting), Some(remains)) => {
                waiting.push(Box::new(remains));
                false
            }
            (_, back) => {
                remains = back;
                *waiting = Some(Vec::new());
                true
            }
        }
    });
    // At the end of a thread there may be no list any more.
    let _last = matches!(first, Ok(true)).then(|| Last);
    drop(remains);
    if matches!(first, Ok(true)) {
        while let Some(next) = next() {
            drop(next);
        }
    }
}

fn next() -> Option<Box<dyn Send>> {
    WAITING
        .try_with(|waiting| waiting.borrow_mut().as_mut()?.pop())
        .ok()?
}

/// Ends the list, also when a drop panics.
struct Last;

impl Drop for Last {
    fn drop(&mut self) {
        let rest = WAITING.try_with(|waiting| waiting.borrow_mut().take());
        drop(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Link(Option<Box<Link>>);

    impl Drop for Link {
        fn drop(&mut self) {
            if let Some(next) = self.0.take() {
                let_go(next);
            }
        }
    }

    #[test]
    fn a_chain_of_any_length_fits_any_stack() {
        let mut chain = Link(None);
        for _ in 0..1_000_000 {
            chain = Link(Some(Box::new(chain)));
        }
        drop(chain);
    }
}

//! What expressions of a function refer to, while it is being described.

use std::sync::atomic::{AtomicU64, Ordering};

use super::variable;
use crate::error::ErrorValue;
use crate::stub::{Inner, Stub};

/// A value inside a map, in the description of the map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Variable {
    description: u64,
    level: usize,
    index: i64,
}

/// The maps, one in the other, that are being described.
pub(crate) struct Frames {
    description: u64,
    open: Vec<Open>,
    /// What the outermost map captures.
    captures: Vec<Stub>,
}

#[derive(Default)]
struct Open {
    /// What was captured at which place, the first at -1.
    known: Vec<Source>,
    /// The same as places in the map around this one.
    outer: Vec<i64>,
    instructions: Vec<String>,
}

#[derive(Clone, PartialEq, Eq)]
enum Source {
    Variable(Variable),
    Reference(usize),
}

impl Frames {
    pub(super) fn new() -> Self {
        static DESCRIPTIONS: AtomicU64 = AtomicU64::new(0);
        Self {
            description: DESCRIPTIONS.fetch_add(1, Ordering::Relaxed),
            open: vec![Open::default()],
            captures: Vec::new(),
        }
    }

    fn level(&self) -> usize {
        self.open.len().saturating_sub(1)
    }

    /// The element that the innermost map is applied to.
    pub(super) fn input(&self) -> Stub {
        self.variable(0)
    }

    fn variable(&self, index: i64) -> Stub {
        Stub::new(Inner::Variable(Variable {
            description: self.description,
            level: self.level(),
            index,
        }))
    }

    /// What a reference is called in the innermost map.
    pub(crate) fn place_of(&mut self, stub: &Stub) -> Result<i64, ErrorValue> {
        let source = match stub.inner() {
            Inner::Variable(found) if found.description != self.description => {
                return Err(variable());
            }
            Inner::Variable(found) if found.level > self.level() => return Err(variable()),
            Inner::Variable(found) => Source::Variable(*found),
            _ => Source::Reference(stub.identity()),
        };
        Ok(self.place_at(self.level(), &source, stub))
    }

    fn place_at(&mut self, level: usize, source: &Source, stub: &Stub) -> i64 {
        if let Source::Variable(found) = source
            && found.level == level
        {
            return found.index;
        }
        let known = self.open.get(level).and_then(|open| {
            let at = open.known.iter().position(|known| known == source)?;
            Some(capture(at))
        });
        if let Some(place) = known {
            return place;
        }
        let outer = match level.checked_sub(1) {
            Some(outer) => self.place_at(outer, source, stub),
            None => {
                self.captures.push(stub.clone());
                0
            }
        };
        let Some(open) = self.open.get_mut(level) else {
            return outer;
        };
        open.known.push(source.clone());
        open.outer.push(outer);
        capture(open.known.len() - 1)
    }

    /// Adds an expression; what it comes to.
    pub(super) fn push(&mut self, text: String) -> Stub {
        let mut index = 0;
        if let Some(open) = self.open.last_mut() {
            open.instructions.push(text);
            index = open.instructions.len() as i64;
        }
        self.variable(index)
    }

    pub(super) fn enter(&mut self) {
        self.open.push(Open::default());
    }

    /// Closes the innermost map: its captures, as places around it, and its
    /// expressions.
    pub(super) fn leave(&mut self) -> (Vec<i64>, Vec<String>) {
        let open = self.open.pop().unwrap_or_default();
        (open.outer, open.instructions)
    }

    /// What the outermost map captures.
    pub(super) fn into_captures(self) -> Vec<Stub> {
        self.captures
    }
}

fn capture(index: usize) -> i64 {
    -(index as i64) - 1
}

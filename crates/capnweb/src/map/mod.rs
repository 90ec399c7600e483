//! Functions that travel: a peer applies one to each element of a list, so that
//! a call for each takes no round trip.
//!
//! A function is a list of expressions. In them 0 is the element, 1, 2, … what
//! the earlier expressions came to, and -1, -2, … what the function captures.
//! The last one is the result.

mod apply;
mod build;
mod frames;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) use apply::{Frame, Mapped};
pub use build::MapBuilder;
pub(crate) use frames::{Frames, Variable};

use crate::codec::Encoder;
use crate::codes;
use crate::error::ErrorValue;
use crate::limits::Limits;
use crate::session::Admission;
use crate::stub::Stub;

/// How deep maps may stand in each other.
const NESTED: usize = 16;

/// The expressions of a function, unread.
#[derive(Debug, Clone)]
pub(crate) struct Instructions {
    text: Arc<str>,
    parts: Arc<[Range<usize>]>,
}

impl Instructions {
    /// `text` is the whole list, `parts` where in it each expression is.
    pub(crate) fn new(text: &str, parts: Vec<Range<usize>>) -> Self {
        Self {
            text: text.into(),
            parts: parts.into(),
        }
    }

    fn iter(&self) -> impl Iterator<Item = &str> {
        let text = |part: &Range<usize>| self.text.get(part.clone()).unwrap_or_default();
        self.parts.iter().map(text)
    }
}

/// A function to apply to a value or to each element of a list.
#[derive(Clone)]
pub(crate) struct Mapping {
    captures: Arc<[Stub]>,
    instructions: Instructions,
    limits: Limits,
    /// How deep the values are in which this stands.
    depth: usize,
    /// How many maps this stands in.
    nested: usize,
    budget: Arc<Budget>,
    /// The room of the call that this came in.
    admission: Option<Admission>,
}

/// What is left for all maps that one message brought, one in the other.
struct Budget {
    steps: AtomicUsize,
    bytes: AtomicUsize,
}

impl Mapping {
    pub(crate) fn new(
        captures: Vec<Stub>,
        instructions: Instructions,
        depth: usize,
        limits: &Limits,
    ) -> Self {
        Self {
            captures: captures.into(),
            instructions,
            limits: *limits,
            depth,
            nested: 0,
            budget: Arc::new(Budget {
                steps: AtomicUsize::new(limits.map_steps),
                bytes: AtomicUsize::new(limits.map_bytes),
            }),
            admission: None,
        }
    }

    /// One that stands in this one and lives on what that may still use.
    fn inner(
        &self,
        captures: Vec<Stub>,
        instructions: Instructions,
        depth: usize,
    ) -> Result<Self, ErrorValue> {
        if self.nested + 1 >= NESTED {
            return Err(too_much("maps in maps"));
        }
        Ok(Self {
            captures: captures.into(),
            instructions,
            depth,
            nested: self.nested + 1,
            ..self.clone()
        })
    }

    /// Lets it use the room of a received call.
    pub(crate) fn admit(&mut self, admission: Admission) {
        self.admission = Some(admission);
    }

    /// Pays for the run of one instruction.
    fn pay(&self, bytes: usize) -> Result<(), ErrorValue> {
        let take = |left: &AtomicUsize, amount| {
            left.try_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(amount)
            })
        };
        take(&self.budget.steps, 1).map_err(|_| too_much("elements and instructions"))?;
        take(&self.budget.bytes, bytes).map_err(|_| too_much("bytes of instructions"))?;
        Ok(())
    }

    /// Writes the captures and the instructions, behind a path.
    pub(crate) fn encode(&self, encoder: &mut Encoder<'_>) -> Result<(), ErrorValue> {
        encoder.raw(",[");
        for (index, stub) in self.captures.iter().enumerate() {
            if index > 0 {
                encoder.raw(",");
            }
            encoder.capture(stub)?;
        }
        encoder.raw("],");
        encoder.room(self.instructions.text.len())?;
        encoder.raw(&self.instructions.text);
        Ok(())
    }
}

fn too_much(what: &str) -> ErrorValue {
    ErrorValue::coded(
        codes::VALUE_TOO_COMPLEX,
        format!("The map has too many {what}; map shorter lists, or call for each element."),
    )
}

/// A variable was used where there is no map.
pub(crate) fn variable() -> ErrorValue {
    ErrorValue::type_error("A variable of a map is of no use outside of the map it belongs to.")
}

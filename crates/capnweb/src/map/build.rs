//! Describes a function to a peer.

use super::frames::Frames;
use super::{Instructions, Mapping};
use crate::codec::{Encoder, Place};
use crate::error::ErrorValue;
use crate::limits::Limits;
use crate::path::IntoPath;
use crate::stub::Stub;
use crate::value::Value;

/// Records what a function does with its input, to have it done elsewhere: see
/// [`Stub::map`].
///
/// The function runs once here, on variables: it cannot look at values or wait.
/// What it calls and reads by this builder is done for each element; the value
/// that it returns is the element's result, with variables in it as
/// [`Value::Promise`]. It may use any reference from around it, but make no new
/// function and no stream.
pub struct MapBuilder {
    frames: Frames,
    limits: Limits,
    failed: Option<ErrorValue>,
}

impl MapBuilder {
    pub(crate) fn build(
        describe: impl FnOnce(&mut MapBuilder) -> Value,
    ) -> Result<Mapping, ErrorValue> {
        let mut builder = Self {
            frames: Frames::new(),
            limits: Limits::default(),
            failed: None,
        };
        let result = describe(&mut builder);
        builder.result(result);
        if let Some(error) = builder.failed {
            return Err(error);
        }
        let (_, instructions) = builder.frames.leave();
        let captures = builder.frames.into_captures();
        let instructions = joined(&instructions);
        Ok(Mapping::new(captures, instructions, 0, &builder.limits))
    }

    /// The element that the function is applied to.
    pub fn input(&self) -> Stub {
        self.frames.input()
    }

    /// Calls a method of a variable or of a reference from outside.
    pub fn call(&mut self, on: &Stub, path: impl IntoPath, mut args: Vec<Value>) -> Stub {
        let path = path.into_path();
        self.record(on, |encoder, place| {
            head(encoder, "pipeline", place);
            encoder.path(&path)?;
            encoder.raw(",");
            encoder.list(&mut args, 1)?;
            encoder.raw("]");
            Ok(())
        })
    }

    /// Reads a property.
    pub fn get(&mut self, on: &Stub, path: impl IntoPath) -> Stub {
        let path = path.into_path();
        self.record(on, |encoder, place| {
            head(encoder, "pipeline", place);
            encoder.path(&path)?;
            encoder.raw("]");
            Ok(())
        })
    }

    /// Applies another function to the elements of a variable.
    pub fn map(
        &mut self,
        on: &Stub,
        path: impl IntoPath,
        describe: impl FnOnce(&mut MapBuilder) -> Value,
    ) -> Stub {
        let path = path.into_path();
        self.frames.enter();
        let result = describe(self);
        self.result(result);
        let (captures, instructions) = self.frames.leave();
        self.record(on, |encoder, place| {
            head(encoder, "remap", place);
            encoder.path(&path)?;
            encoder.raw(",[");
            for (index, capture) in captures.iter().enumerate() {
                encoder.raw(if index > 0 {
                    ",[\"import\","
                } else {
                    "[\"import\","
                });
                encoder.integer(*capture);
                encoder.raw("]");
            }
            encoder.raw("],");
            encoder.raw(&joined(&instructions).text);
            encoder.raw("]");
            Ok(())
        })
    }

    fn result(&mut self, mut value: Value) {
        self.write(|encoder| encoder.value(&mut value, 0));
    }

    fn record(
        &mut self,
        on: &Stub,
        write: impl FnOnce(&mut Encoder<'_>, i64) -> Result<(), ErrorValue>,
    ) -> Stub {
        match self.frames.place_of(on) {
            Ok(place) => self.write(|encoder| write(encoder, place)),
            Err(error) => {
                self.failed.get_or_insert(error);
                self.frames.push("null".to_owned())
            }
        }
    }

    /// Adds an expression. Each stays, so that the places of others do.
    fn write(&mut self, write: impl FnOnce(&mut Encoder<'_>) -> Result<(), ErrorValue>) -> Stub {
        let mut encoder = Encoder::new(Place::Map(&mut self.frames), &self.limits);
        let written = write(&mut encoder);
        let text = encoder.into_text();
        if let Err(error) = written {
            self.failed.get_or_insert(error);
        }
        self.frames.push(text)
    }
}

fn head(encoder: &mut Encoder<'_>, tag: &str, place: i64) {
    encoder.raw("[\"");
    encoder.raw(tag);
    encoder.raw("\",");
    encoder.integer(place);
    encoder.raw(",");
}

/// The list of the expressions, and where in it each one is.
fn joined(instructions: &[String]) -> Instructions {
    let mut text = String::from("[");
    let mut parts = Vec::new();
    for instruction in instructions {
        if text.len() > 1 {
            text.push(',');
        }
        let start = text.len();
        text.push_str(instruction);
        parts.push(start..text.len());
    }
    text.push(']');
    Instructions::new(&text, parts)
}

impl std::fmt::Debug for MapBuilder {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("MapBuilder")
    }
}

//! Between values and the text of expressions.

pub(crate) mod decode;
pub(crate) mod encode;
mod encode_http;
mod encode_reference;
mod scan;
#[cfg(test)]
mod tests;

pub(crate) use decode::{Decoder, Fault, Scope, Use};
pub(crate) use encode::{Encoder, Place};

use crate::error::ErrorValue;
use crate::limits::Limits;
use crate::value::Value;

/// Writes a value that holds no references and no streams as an expression.
pub fn encode(mut value: Value, limits: &Limits) -> Result<String, ErrorValue> {
    let mut encoder = Encoder::new(Place::Bare, limits);
    encoder.value(&mut value, 0)?;
    Ok(encoder.into_text())
}

/// Reads an expression without references and streams.
pub fn decode(text: &str, limits: &Limits) -> Result<Value, ErrorValue> {
    let mut decoder = Decoder::new(text, Scope::Bare, limits);
    let value = decoder.value(0).map_err(Fault::into_error)?;
    decoder.finish().map_err(Fault::into_error)?;
    Ok(value)
}

//! Literals: bytes, big integers, dates, errors.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;

use super::{Decoded, Decoder, Fault};
use crate::bigint::BigInt;
use crate::error::ErrorValue;
use crate::value::Value;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Names that an error keeps; any other becomes `Error`.
const ERROR_NAMES: [&str; 8] = [
    "Error",
    "EvalError",
    "RangeError",
    "ReferenceError",
    "SyntaxError",
    "TypeError",
    "URIError",
    "AggregateError",
];

/// Typed arrays and the size of their elements.
const BYTE_TYPES: [(&str, usize); 13] = [
    ("ArrayBuffer", 1),
    ("DataView", 1),
    ("Int8Array", 1),
    ("Uint8Array", 1),
    ("Uint8ClampedArray", 1),
    ("Int16Array", 2),
    ("Uint16Array", 2),
    ("Int32Array", 4),
    ("Uint32Array", 4),
    ("BigInt64Array", 8),
    ("BigUint64Array", 8),
    ("Float32Array", 4),
    ("Float64Array", 8),
];

impl Decoder<'_> {
    pub(super) fn bytes(&mut self, start: usize) -> Decoded<Value> {
        let text = self.text(start)?;
        let bytes = BASE64
            .decode(text.as_bytes())
            .map_err(|_| Fault::fatal("Bytes are not valid base64."))?;
        if self.scan.take(b',') {
            let name = self.text(start)?;
            let Some((_, size)) = BYTE_TYPES.iter().find(|(known, _)| *known == name) else {
                let shown: String = name.chars().take(64).collect();
                return Err(Fault::fatal(format!("Unknown bytes type marker: {shown}")));
            };
            if bytes.len() % size != 0 {
                return Err(Fault::fatal(format!(
                    "Invalid byte length {} for {name}; expected a multiple of {size}",
                    bytes.len()
                )));
            }
        }
        self.close(start)?;
        Ok(Value::Bytes(Bytes::from(bytes)))
    }

    pub(super) fn bigint(&mut self, start: usize) -> Decoded<Value> {
        let text = self.text(start)?;
        if text.len() > self.digits {
            return Err(Fault::complex(format!(
                "The big integer has more than {} digits.",
                self.digits
            )));
        }
        let number: BigInt = text
            .parse()
            .map_err(|_| Fault::fatal("A big integer is not decimal digits."))?;
        self.close(start)?;
        Ok(Value::BigInt(number))
    }

    pub(super) fn date(&mut self, start: usize) -> Decoded<Value> {
        let time = match self.scan.peek() {
            Some(b'n') => {
                self.scan.word("null")?;
                f64::NAN
            }
            Some(b'-' | b'0'..=b'9') => self.scan.number()?,
            _ => return Err(self.unknown(start)),
        };
        self.close(start)?;
        Ok(Value::Date(time))
    }

    pub(super) fn error(&mut self, start: usize, depth: usize) -> Decoded<Value> {
        let name = self.text(start)?;
        self.comma(start)?;
        let message = self.text(start)?;
        let name = ERROR_NAMES
            .into_iter()
            .find(|known| *known == name)
            .unwrap_or("Error");
        let mut error = ErrorValue::new(name, message);
        if self.scan.take(b',') {
            if self.scan.peek() == Some(b'"') {
                error.stack = Some(self.scan.string()?.into_owned());
            } else {
                self.scan.skip()?;
            }
            if self.scan.take(b',') {
                if self.scan.peek() != Some(b'{') {
                    return Err(self.unknown(start));
                }
                error.props =
                    self.object(depth, |key| matches!(key, "name" | "message" | "stack"))?;
            }
        }
        self.close(start)?;
        Ok(error.into())
    }
}

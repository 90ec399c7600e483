//! Literals: bytes, big integers, dates, errors.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;

use super::{Decoded, Decoder, Fault};
use crate::bigint::BigInt;
use crate::error::ErrorValue;
use crate::limits::Dialect;
use crate::typed_array::{ArrayKind, TypedArray};
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

impl Decoder<'_> {
    pub(super) fn bytes(&mut self, start: usize) -> Decoded<Value> {
        let text = self.text(start)?;
        let bytes = BASE64
            .decode(text.as_bytes())
            .map_err(|_| Fault::fatal("Bytes are not valid base64."))?;
        let bytes = Bytes::from(bytes);
        if !self.scan.take(b',') {
            self.close(start)?;
            return Ok(Value::Bytes(bytes));
        }
        let name = self.text(start)?;
        self.close(start)?;
        if name == "Uint8Array" {
            return Ok(Value::Bytes(bytes));
        }
        let Some(kind) = ArrayKind::named(&name) else {
            let shown: String = name.chars().take(64).collect();
            return Err(Fault::fatal(format!("Unknown bytes type marker: {shown}")));
        };
        let length = bytes.len();
        let Some(array) = TypedArray::new(kind, bytes) else {
            return Err(Fault::fatal(format!(
                "Invalid byte length {length} for {name}; expected a multiple of {}",
                kind.element_bytes()
            )));
        };
        Ok(match self.dialect {
            Dialect::V0_8 => Value::Bytes(array.bytes().clone()),
            Dialect::V0_11 => array.into(),
        })
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
        let mut error = ErrorValue::new(name, message).said_by_peer();
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

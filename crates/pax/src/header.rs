//! The `ustar` block.

use crate::{BLOCK, PaxError};

/// The largest value of an octal field of `width` bytes, the last being NUL.
const fn octal_max(width: usize) -> u64 {
    (1 << (3 * (width - 1))) - 1
}

/// The largest size and time that a block holds.
pub(crate) const MAX_LONG: u64 = octal_max(12);
/// The largest owner that a block holds.
pub(crate) const MAX_SHORT: u64 = octal_max(8);
/// Bytes of a name that a block holds.
pub(crate) const MAX_NAME: usize = 100;

/// The fields of a `ustar` block that are used.
#[derive(Debug, Clone, Default)]
pub(crate) struct Header {
    pub(crate) name: Vec<u8>,
    pub(crate) mode: u32,
    pub(crate) uid: u64,
    pub(crate) gid: u64,
    pub(crate) size: u64,
    pub(crate) mtime: u64,
    pub(crate) typeflag: u8,
    pub(crate) link: Vec<u8>,
    pub(crate) major: u32,
    pub(crate) minor: u32,
}

impl Header {
    /// The block. What does not fit its field is cut or zero; a record says it
    /// in full then.
    pub(crate) fn encode(&self) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        put_text(&mut block[0..100], &self.name);
        put_octal(&mut block[100..108], self.mode.into());
        put_octal(&mut block[108..116], self.uid);
        put_octal(&mut block[116..124], self.gid);
        put_octal(&mut block[124..136], self.size);
        put_octal(&mut block[136..148], self.mtime);
        block[156] = self.typeflag;
        put_text(&mut block[157..257], &self.link);
        block[257..265].copy_from_slice(b"ustar\x0000");
        put_octal(&mut block[329..337], self.major.into());
        put_octal(&mut block[337..345], self.minor.into());
        let sum = checksum(&block);
        put_octal(&mut block[148..155], sum);
        block[155] = b' ';
        block
    }

    /// Reads a block. A foreign one may also be of GNU tar's older format.
    pub(crate) fn decode(block: &[u8; BLOCK], foreign: bool) -> Result<Self, PaxError> {
        if octal(&block[148..156])? != checksum(block) {
            return Err(PaxError::Malformed("has a header with a wrong checksum"));
        }
        let gnu = foreign && &block[257..265] == b"ustar  \0";
        if !gnu && &block[257..263] != b"ustar\0" {
            return Err(PaxError::Malformed("has a header that is not ustar"));
        }
        let octal = |field: &[u8]| match field.first() {
            Some(0x80) if gnu => base_256(field),
            _ => octal(field),
        };
        // The older format has times where a prefix of the name is.
        let prefix = if gnu { &[][..] } else { text(&block[345..500]) };
        let mut name = prefix.to_vec();
        if !name.is_empty() {
            name.push(b'/');
        }
        name.extend_from_slice(text(&block[0..100]));
        Ok(Self {
            name,
            mode: octal_u32(&block[100..108])?,
            uid: octal(&block[108..116])?,
            gid: octal(&block[116..124])?,
            size: octal(&block[124..136])?,
            mtime: octal(&block[136..148])?,
            typeflag: block[156],
            link: text(&block[157..257]).to_vec(),
            major: octal_u32(&block[329..337])?,
            minor: octal_u32(&block[337..345])?,
        })
    }
}

/// The sum of all bytes, the checksum field counting as blanks.
fn checksum(block: &[u8; BLOCK]) -> u64 {
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    sum(&block[..148]) + 8 * u64::from(b' ') + sum(&block[156..])
}

fn put_text(field: &mut [u8], text: &[u8]) {
    for (to, from) in field.iter_mut().zip(text) {
        *to = *from;
    }
}

fn put_octal(field: &mut [u8], value: u64) {
    let digits = field.len() - 1;
    let value = if value > octal_max(field.len()) {
        0
    } else {
        value
    };
    for (place, digit) in field[..digits].iter_mut().rev().enumerate() {
        *digit = b'0' + ((value >> (3 * place)) & 7) as u8;
    }
}

fn text(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|byte| *byte == 0);
    &field[..end.unwrap_or(field.len())]
}

fn octal(field: &[u8]) -> Result<u64, PaxError> {
    let mut value = 0_u64;
    let digits = field.iter().skip_while(|byte| **byte == b' ');
    for byte in digits {
        match byte {
            b'0'..=b'7' => value = value * 8 + u64::from(byte - b'0'),
            0 | b' ' => break,
            _ => return Err(PaxError::Malformed("has a header with a bad number")),
        }
    }
    Ok(value)
}

/// A number that needs more digits than its field has, in GNU tar's older format:
/// big-endian after the byte 0x80.
fn base_256(field: &[u8]) -> Result<u64, PaxError> {
    field[1..].iter().try_fold(0_u64, |value, byte| {
        let value = value.checked_mul(256);
        let value = value.and_then(|value| value.checked_add(u64::from(*byte)));
        value.ok_or(PaxError::Malformed("has a header with a bad number"))
    })
}

fn octal_u32(field: &[u8]) -> Result<u32, PaxError> {
    u32::try_from(octal(field)?).map_err(|_| PaxError::Malformed("has a header with a bad number"))
}

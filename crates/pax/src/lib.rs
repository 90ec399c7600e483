//! Tar archives in the POSIX PAX format, as a stream: the part of it that a
//! tree needs, exactly. Written archives are read by any tar tool.
//!
//! A member is an optional `x` header, records of `length key=value` with any
//! bytes in the value, then a `ustar` header, then data in blocks of 512 bytes.
//! Files with holes are written as GNU's sparse format 1.0: the data begins
//! with a map of the parts that are not holes.
#![forbid(unsafe_code)]

mod attributes;
mod byte_text;
mod error;
mod fuzz;
mod header;
mod limits;
mod member;
mod mtime;
mod read;
mod records;
mod sparse;
mod write;

pub use attributes::{Attributes, Xattr};
pub use byte_text::ByteText;
pub use error::PaxError;
pub use fuzz::read;
pub use limits::{LimitKind, Limits};
pub use member::{Body, Member, Segment};
pub use mtime::{InvalidMtime, Mtime};
pub use read::Reader;
pub use write::Writer;

/// The unit of a tar archive.
pub(crate) const BLOCK: usize = 512;

/// How many bytes complete the last block of `length` bytes.
pub(crate) const fn padding(length: u64) -> usize {
    ((BLOCK as u64 - length % BLOCK as u64) % BLOCK as u64) as usize
}

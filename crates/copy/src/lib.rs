//! Copying trees as tar archives, with the meaning that `docker cp` gives to
//! paths. Both ends of a copy use it: the command line on its machine, and the
//! daemon in a sandbox. Neither trusts the archive that it unpacks.
//!
//! All calls block; run them on a thread. [`pipe`] joins them to async streams.
#![forbid(unsafe_code)]

mod beneath;
mod error;
mod names;
mod pack;
pub mod pipe;
mod place;
mod source;
#[cfg(test)]
mod tests;
mod unpack;

pub use error::{CopyError, TargetFault};
pub use pack::pack;
pub use place::{Expect, Target};
pub use source::Source;
pub use unpack::{Owners, unpack};

/// What was copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copied {
    /// Members of the archive: files, directories, links.
    pub entries: u64,
    /// Bytes of content.
    pub bytes: u64,
}

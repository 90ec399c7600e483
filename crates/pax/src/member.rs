//! One member of an archive.

use crate::{Attributes, Xattr};

/// One member of an archive, without its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The path as written, less one `./` before and one `/` after it; the root
    /// of the tree is empty. Any bytes but NUL: nothing else has been checked.
    pub path: Vec<u8>,
    /// Owner, mode and time.
    pub attributes: Attributes,
    /// Extended attributes in the order of the archive.
    pub xattrs: Vec<Xattr>,
    /// What it is.
    pub body: Body,
}

/// What a member is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// A directory.
    Directory,
    /// A regular file without holes; `size` bytes of data follow.
    File {
        /// Bytes of data.
        size: u64,
    },
    /// A regular file with holes; the bytes of the segments follow.
    Sparse {
        /// Length of the file, holes included.
        size: u64,
        /// What is not a hole: ascending, apart, none empty, all within `size`.
        segments: Vec<Segment>,
    },
    /// A symbolic link with its target.
    Symlink(Vec<u8>),
    /// Another name of an earlier member, whose path this is.
    HardLink(Vec<u8>),
    /// A named pipe.
    Fifo,
    /// A character device.
    CharDevice {
        /// The driver.
        major: u32,
        /// The device.
        minor: u32,
    },
    /// A block device.
    BlockDevice {
        /// The driver.
        major: u32,
        /// The device.
        minor: u32,
    },
}

/// A part of a file that is not a hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Where it begins, in bytes.
    pub offset: u64,
    /// Its bytes.
    pub length: u64,
}

impl Body {
    /// Bytes of file content that follow in the archive.
    pub fn stored(&self) -> u64 {
        match self {
            Self::File { size } => *size,
            Self::Sparse { segments, .. } => segments
                .iter()
                .fold(0, |sum, segment| sum.saturating_add(segment.length)),
            _ => 0,
        }
    }
}

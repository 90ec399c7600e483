//! One entry of a tree: everything about it that a snapshot keeps.

mod member;

use hutch_pax::{Attributes, ByteText, Mtime, Xattr};
use serde::{Deserialize, Serialize};

/// One entry of a tree, as a line of the listing has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "Line")]
pub struct Entry {
    /// From the root of the tree, without a leading or trailing slash; the root
    /// itself is the empty path.
    pub path: ByteText,
    /// What it is.
    pub kind: Kind,
    /// Owner, mode and time.
    #[serde(flatten)]
    pub attributes: Attributes,
    /// Extended attributes, ordered by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub xattrs: Vec<Xattr>,
}

/// An [`Entry`] as it is read. What serde flattens it has to hold back until the
/// end of the line, and there are many lines.
#[derive(Deserialize)]
struct Line {
    path: ByteText,
    kind: Kind,
    mode: u32,
    uid: u32,
    gid: u32,
    mtime: Mtime,
    #[serde(default)]
    xattrs: Vec<Xattr>,
}

impl From<Line> for Entry {
    fn from(line: Line) -> Self {
        Self {
            path: line.path,
            kind: line.kind,
            attributes: Attributes {
                mode: line.mode,
                uid: line.uid,
                gid: line.gid,
                mtime: line.mtime,
            },
            xattrs: line.xattrs,
        }
    }
}

/// What an entry is, with what only that kind has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// A directory.
    Directory,
    /// A regular file.
    #[serde(rename_all = "camelCase")]
    File {
        /// Length in bytes, holes included.
        size: u64,
        /// Bytes of data in the archive, holes left out.
        stored: u64,
        /// BLAKE3 of the stored bytes, in hex. For a file without holes that is
        /// the digest of the file.
        digest: String,
        /// Where the content is; absent where the snapshot has an archive of
        /// its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Place>,
    },
    /// A symbolic link.
    Symlink {
        /// Any bytes; never followed.
        target: ByteText,
    },
    /// Another name of an entry that came before.
    HardLink {
        /// The path of the earlier entry.
        target: ByteText,
    },
    /// A named pipe.
    Fifo,
    /// The character device 0/0, by which an overlay says "deleted".
    Whiteout,
}

/// Where the member with a file's content begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Place {
    /// Which of the manifest's layers.
    pub layer: u32,
    /// Which frame of the layer.
    pub frame: u32,
    /// Bytes into the unpacked frame.
    pub offset: u32,
}

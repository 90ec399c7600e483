//! What is known of a tree from the last snapshot of it.

use std::collections::{HashMap, HashSet};

use crate::walked::Seen;
use crate::{Entry, Kind, LayerInfo, Mtime, Place, Xattr};

/// What a save adds to: the last snapshot of the same tree.
#[derive(Debug, Default)]
pub(crate) struct Base {
    pub(crate) layers: Vec<LayerInfo>,
    /// That of the tree.
    pub(crate) device: u64,
    /// By inode, if the walk that saw them is known and certain.
    pub(crate) files: HashMap<u64, Known>,
    /// Files without holes by digest.
    pub(crate) contents: HashMap<(String, u64), Place>,
    pub(crate) sizes: HashSet<u64>,
}

/// A file as it was saved.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) seen: Seen,
    pub(crate) size: u64,
    pub(crate) mtime: Mtime,
    pub(crate) stored: u64,
    pub(crate) digest: String,
    pub(crate) at: Place,
    pub(crate) xattrs: Vec<Xattr>,
}

impl Base {
    /// Learns from the listing of the last snapshot and from what its walk saw,
    /// which has a part for each file.
    pub(crate) fn learn(&mut self, entry: Entry, seen: Option<Seen>) {
        let Kind::File {
            size,
            stored,
            digest,
            at,
        } = entry.kind
        else {
            return;
        };
        let Some(at) = at else {
            return;
        };
        if size > 0 && stored == size {
            self.sizes.insert(size);
            self.contents.insert((digest.clone(), size), at);
        }
        if let Some(seen) = seen {
            let known = Known {
                seen,
                size,
                mtime: entry.attributes.mtime,
                stored,
                digest,
                at,
                xattrs: entry.xattrs,
            };
            self.files.insert(seen.inode, known);
        }
    }

    /// The file that a name was found to lead to, if it is as it was.
    pub(crate) fn known(&self, seen: Seen, size: u64, mtime: Mtime) -> Option<&Known> {
        let known = self.files.get(&seen.inode)?;
        (known.seen == seen && known.size == size && known.mtime == mtime).then_some(known)
    }
}

impl Known {
    /// What the listing says of it.
    pub(crate) fn kind(&self) -> Kind {
        Kind::File {
            size: self.size,
            stored: self.stored,
            digest: self.digest.clone(),
            at: Some(self.at),
        }
    }
}

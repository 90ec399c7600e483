//! From a member of an archive to a line of the listing.

use super::{Entry, Kind};
use hutch_pax::{Body, Member};

impl Entry {
    /// The entry that a member with that content stands for; `None` for devices
    /// that no snapshot keeps.
    pub(crate) fn of(member: Member, content: blake3::Hash) -> Option<Self> {
        let stored = member.body.stored();
        Some(Self {
            path: member.path.into(),
            kind: match member.body {
                Body::Directory => Kind::Directory,
                Body::File { size } | Body::Sparse { size, .. } => Kind::File {
                    size,
                    stored,
                    digest: content.to_hex().to_string(),
                    at: None,
                },
                Body::Symlink(target) => Kind::Symlink {
                    target: target.into(),
                },
                Body::HardLink(target) => Kind::HardLink {
                    target: target.into(),
                },
                Body::Fifo => Kind::Fifo,
                Body::CharDevice { major: 0, minor: 0 } => Kind::Whiteout,
                Body::CharDevice { .. } | Body::BlockDevice { .. } => return None,
            },
            attributes: member.attributes,
            xattrs: member.xattrs,
        })
    }
}

//! What sleeping keeps: trees as layers of `tar.zst` archives, each save adding
//! what is new, and the trees brought back from them exactly.
//!
//! [`LocalStore`] is the store on a local disk. A tree comes in and goes out as
//! a directory descriptor, never as a path, because what it holds was written
//! by a sandbox and is hostile. All calls block; run them on a thread.
//!
//! [`TreeFingerprint`] says whether two trees are the same in everything that
//! a snapshot keeps.
#![forbid(unsafe_code)]

mod archive;
mod cancel;
mod durable;
mod entry;
mod error;
mod fingerprint;
mod id;
mod known;
mod manifest;
mod rules;
mod settings;
mod store;
mod tree;
mod walked;

pub use cancel::Cancel;
pub use entry::{Entry, Kind, Place};
pub use error::{LimitKind, Part, SnapshotError};
pub use fingerprint::TreeFingerprint;
pub use hutch_pax::{Attributes, ByteText, Mtime, Xattr};
pub use id::{InvalidSnapshotId, SnapshotId};
pub use manifest::{ArchiveInfo, LayerInfo, ListingInfo, Manifest, Skipped};
pub use rules::Rules;
pub use settings::{Limits, SaveMeta, Settings};
pub use store::LocalStore;

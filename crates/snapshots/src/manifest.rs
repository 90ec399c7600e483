//! The manifest: what a snapshot holds and how to tell that it is whole.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::{Entry, SnapshotId};

/// The version of the manifest that this build writes.
pub(crate) const MANIFEST_VERSION: u64 = 2;

/// The version with one archive a snapshot, which this build still reads.
pub(crate) const ONE_ARCHIVE: u64 = 1;

/// What a snapshot holds and how to tell that it is whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// The version of this document: 2, or 1 for one with an archive of its own.
    pub version: u64,
    /// The snapshot.
    pub id: SnapshotId,
    /// When it was saved.
    #[serde(with = "rfc3339")]
    pub created_at: OffsetDateTime,
    /// When it can no longer be restored; absent is never.
    #[serde(with = "rfc3339::option", default)]
    pub expires_at: Option<OffsetDateTime>,
    /// What the caller said of it.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The root directory of the tree: owner, mode, time, attributes.
    pub root: Entry,
    /// Entries below the root.
    pub entries: u64,
    /// Lengths of all regular files together, holes included, hard links once.
    pub bytes: u64,
    /// The names of the rules by which entries were left out.
    pub excluded: Vec<String>,
    /// How many entries were left out, by reason.
    pub skipped: Skipped,
    /// The archive, in version 1 only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<ArchiveInfo>,
    /// The layers that hold the contents, from version 2 on. Entries name them
    /// by their place in this list. Other snapshots may refer to them as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<LayerInfo>,
    /// The list of entries.
    pub listing: ListingInfo,
}

/// A layer as stored: an archive by itself, in parts that unpack by themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LayerInfo {
    /// BLAKE3 of its bytes in hex, which is also its name.
    pub digest: String,
    /// Bytes in the store.
    pub length: u64,
    /// Its zstd frames in order: bytes stored and bytes unpacked, at most 4 MiB.
    pub frames: Vec<(u32, u32)>,
}

impl LayerInfo {
    /// Bytes before compression.
    pub fn unpacked_length(&self) -> u64 {
        let unpacked = self.frames.iter().map(|(_, unpacked)| u64::from(*unpacked));
        unpacked.fold(0, u64::saturating_add)
    }
}

/// The archive as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArchiveInfo {
    /// Always `tar.zst`: a POSIX PAX archive, zstd.
    pub format: String,
    /// Bytes in the store.
    pub length: u64,
    /// BLAKE3 of those bytes, in hex.
    pub digest: String,
    /// Bytes before compression.
    pub unpacked_length: u64,
}

/// The list of entries as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListingInfo {
    /// Always `jsonl.zst`: one [`Entry`] a line in the order of the archive, zstd.
    pub format: String,
    /// Bytes in the store.
    pub length: u64,
    /// BLAKE3 of those bytes, in hex.
    pub digest: String,
    /// Bytes before compression.
    pub unpacked_length: u64,
}

/// How many entries were left out, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Skipped {
    /// Sockets.
    pub sockets: u64,
    /// Device nodes other than 0/0.
    pub devices: u64,
    /// Directories named `node_modules`.
    pub node_modules: u64,
    /// Entries that went away while the tree was read.
    pub vanished: u64,
}

mod rfc3339 {
    use super::{OffsetDateTime, Rfc3339};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        time: &OffsetDateTime,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let text = time.format(&Rfc3339).map_err(serde::ser::Error::custom)?;
        text.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<OffsetDateTime, D::Error> {
        let text = String::deserialize(deserializer)?;
        OffsetDateTime::parse(&text, &Rfc3339).map_err(serde::de::Error::custom)
    }

    pub(super) mod option {
        use super::{OffsetDateTime, Rfc3339};
        use serde::{Deserialize, Deserializer, Serialize, Serializer};

        pub(in super::super) fn serialize<S: Serializer>(
            time: &Option<OffsetDateTime>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            let text = time
                .map(|time| time.format(&Rfc3339))
                .transpose()
                .map_err(serde::ser::Error::custom)?;
            text.serialize(serializer)
        }

        pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Option<OffsetDateTime>, D::Error> {
            Option::<String>::deserialize(deserializer)?
                .map(|text| OffsetDateTime::parse(&text, &Rfc3339))
                .transpose()
                .map_err(serde::de::Error::custom)
        }
    }
}

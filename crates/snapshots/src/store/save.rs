//! Saving a tree.

use std::io::Write;
use std::os::fd::BorrowedFd;

use time::OffsetDateTime;

use super::layout::{Layout, create};
use super::read::{ARCHIVE, LISTING, MANIFEST, MANIFEST_MOST, Stored};
use super::scratch::Scratch;
use crate::archive::check::Nowhere;
use crate::archive::pack::pack;
use crate::manifest::MANIFEST_VERSION;
use crate::tree::walk::Walk;
use crate::{Manifest, SaveMeta, Settings, SnapshotError, SnapshotId};

/// The points of a save that a crash can come between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Begun,
    Packed,
    Described,
    ReadBack,
}

pub(crate) fn save(
    layout: &Layout,
    settings: &Settings,
    tree: BorrowedFd<'_>,
    meta: SaveMeta,
) -> Result<Manifest, SnapshotError> {
    let id = SnapshotId::random();
    let scratch = reached(layout.scratch()?, Step::Begun)?;
    let new = |name| {
        create(&scratch.path().join(name))
            .map_err(|error| SnapshotError::io(format!("making the {name} of a snapshot"), error))
    };
    let cancel = meta.cancel;
    let walk = Walk::new(tree, meta.rules, settings.limits, cancel.clone())?;
    let packed = pack(walk, new(ARCHIVE)?, new(LISTING)?, settings, &cancel)?;
    // Whole milliseconds: enough, and the same text everywhere.
    let now = OffsetDateTime::now_utc();
    let created_at = now.replace_millisecond(now.millisecond()).unwrap_or(now);
    let manifest = Manifest {
        version: MANIFEST_VERSION,
        id,
        created_at,
        // A time that no calendar reaches is never.
        expires_at: settings
            .ttl
            .and_then(|ttl| time::Duration::try_from(ttl).ok())
            .and_then(|ttl| created_at.checked_add(ttl)),
        labels: meta.labels,
        root: packed.root,
        entries: packed.entries,
        bytes: packed.bytes,
        excluded: meta.rules.names(),
        skipped: packed.skipped,
        archive: packed.archive,
        listing: packed.listing,
    };
    let failed = |error| SnapshotError::io("writing the manifest of a snapshot", error);
    let text = serde_json::to_vec_pretty(&manifest).map_err(|error| failed(error.into()))?;
    if text.len() as u64 > MANIFEST_MOST {
        let error = std::io::Error::other("the labels are too long");
        return Err(failed(error));
    }
    let scratch = reached(scratch, Step::Packed)?;
    let mut file = create(&scratch.path().join(MANIFEST)).map_err(failed)?;
    file.write_all(&text)
        .and_then(|()| file.sync_all())
        .map_err(failed)?;
    let scratch = reached(scratch, Step::Described)?;

    // What was written is read again before anybody may rely on it.
    let stored = Stored::open_at(scratch.path(), id)?;
    if stored.manifest != manifest {
        return Err(stored.manifest_damage().is("was not read back as written"));
    }
    stored.stream(&settings.limits, &cancel, &mut Nowhere)?;
    let scratch = reached(scratch, Step::ReadBack)?;
    layout.publish(scratch, id)?;
    Ok(manifest)
}

/// Where tests let a save die.
fn reached(scratch: Scratch, step: Step) -> Result<Scratch, SnapshotError> {
    #[cfg(test)]
    if let Err(error) = tests::crash(step) {
        scratch.abandon();
        return Err(error);
    }
    let _ = step;
    Ok(scratch)
}

#[cfg(test)]
mod tests;

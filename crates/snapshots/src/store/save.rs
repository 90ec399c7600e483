//! Saving a tree.

mod base;

use std::fs::File;
use std::io::Write;
use std::os::fd::BorrowedFd;

use hutch_failpoint::failpoint;
use time::OffsetDateTime;

use super::layout::{Layout, create};
use super::read::{LISTING, MANIFEST, MANIFEST_MOST, Stored};
use super::scratch::Scratch;
use crate::archive::gather::gather;
use crate::manifest::MANIFEST_VERSION;
use crate::tree::walk::Walk;
use crate::walked::Walked;
use crate::{Manifest, SaveMeta, Settings, SnapshotError, SnapshotId, durable};

/// A new layer before it has a name.
const LAYER: &str = "layer.tar.zst";

/// The points of a save that a crash can come between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Begun,
    Packed,
    Described,
    ReadBack,
    Layered,
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
    // From before the base is read until the new manifest refers to its layers.
    let _hold = layout.hold_layers()?;
    let base = base::of(layout, settings, tree, meta.base);
    let mut walked = Walked::begin(tree)
        .map_err(|error| SnapshotError::io("reading the root of the tree", error))?;
    let walk = Walk::new(tree, meta.rules, settings.limits, cancel.clone())?;
    let gathered = gather(walk, &base, new(LAYER)?, new(LISTING)?, settings, &cancel)?;
    walked.files = gathered.files;
    let draft = scratch.path().join(LAYER);
    let mut layers = base.layers;
    layers.extend(gathered.layer.clone());
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
        root: gathered.root,
        entries: gathered.entries,
        bytes: gathered.bytes,
        excluded: meta.rules.names(),
        skipped: gathered.skipped,
        archive: None,
        layers,
        listing: gathered.listing,
    };
    let failed = |error| SnapshotError::io("writing the manifest of a snapshot", error);
    let text = serde_json::to_vec_pretty(&manifest).map_err(|error| failed(error.into()))?;
    if text.len() as u64 > MANIFEST_MOST {
        let error = std::io::Error::other("the labels are too long");
        return Err(failed(error));
    }
    let scratch = reached(scratch, Step::Packed)?;
    failpoint!("snapshot.packed").map_err(|error| failed(error.into()))?;
    let mut file = create(&scratch.path().join(MANIFEST)).map_err(failed)?;
    file.write_all(&text)
        .and_then(|()| durable::file(&file))
        .map_err(failed)?;
    let scratch = reached(scratch, Step::Described)?;
    failpoint!("snapshot.described").map_err(|error| failed(error.into()))?;

    // What was written is read again before anybody may rely on it.
    let stored = Stored::open_at(layout, scratch.path(), id)?;
    if stored.manifest != manifest {
        return Err(stored.manifest_damage().is("was not read back as written"));
    }
    let written = match &gathered.layer {
        Some(_) => Some(File::open(&draft).map_err(failed)?),
        None => None,
    };
    stored.read_back(written, &settings.limits, &cancel)?;
    let scratch = reached(scratch, Step::ReadBack)?;
    failpoint!("snapshot.checked").map_err(|error| failed(error.into()))?;

    // The layer first, then the manifest that refers to it.
    match &gathered.layer {
        Some(layer) => layout.publish_layer(&draft, &layer.digest)?,
        None => std::fs::remove_file(&draft).map_err(failed)?,
    }
    let scratch = reached(scratch, Step::Layered)?;
    failpoint!("snapshot.layered").map_err(|error| failed(error.into()))?;
    layout.publish(scratch, id)?;
    failpoint!("snapshot.published").map_err(|error| failed(error.into()))?;
    remember(layout, id, &walked);
    Ok(manifest)
}

/// Keeps what a walk saw, for the next save. Without it, that one reads all.
pub(crate) fn remember(layout: &Layout, id: SnapshotId, walked: &Walked) {
    let kept = layout.scratch().and_then(|scratch| {
        let draft = scratch.path().join("walk");
        let kept = walked.write(&draft, &layout.walk(id));
        kept.map_err(|error| SnapshotError::io("keeping what a walk saw", error))
    });
    if let Err(error) = kept {
        tracing::debug!(%error, "the next save reads everything");
    }
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

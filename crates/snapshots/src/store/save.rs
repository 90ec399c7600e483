//! Saving a tree.

mod base;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::fd::BorrowedFd;
use std::path::Path;

use hutch_failpoint::failpoint;
use time::OffsetDateTime;

use self::base::Before;
use super::layout::{Layout, create};
use super::read::{LISTING, MANIFEST, MANIFEST_MOST, Stored};
use super::scratch::Scratch;
use crate::archive::gather::gather;
use crate::known::Base;
use crate::manifest::MANIFEST_VERSION;
use crate::tree::walk::Walk;
use crate::walked::Walked;
use crate::{LayerInfo, Manifest, SaveMeta, Settings, SnapshotError, SnapshotId, durable};

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
    // From before the base is read until the new manifest refers to its layers.
    let _hold = layout.hold_layers()?;
    let before = Before::find(layout, tree, meta.base);
    let is_same = match &before {
        Some(before) => before.has_all_of(tree, &meta.rules, settings, &meta.cancel)?,
        None => false,
    };
    let mut packed = match before {
        Some(before) if is_same => before.again(scratch.path())?,
        before => {
            let base = before.map(|before| before.base(settings));
            pack(&base.unwrap_or_default(), settings, tree, &meta, &scratch)?
        }
    };
    // Whole milliseconds: enough, and the same text everywhere.
    let now = OffsetDateTime::now_utc();
    let created_at = now.replace_millisecond(now.millisecond()).unwrap_or(now);
    packed.manifest = Manifest {
        id,
        created_at,
        // A time that no calendar reaches is never.
        expires_at: settings
            .ttl
            .and_then(|ttl| time::Duration::try_from(ttl).ok())
            .and_then(|ttl| created_at.checked_add(ttl)),
        labels: meta.labels,
        ..packed.manifest
    };
    let scratch = reached(scratch, Step::Packed)?;
    failpoint!("snapshot.packed").map_err(|error| failed(error.into()))?;
    describe(&packed.manifest, &scratch.path().join(MANIFEST))?;
    let scratch = reached(scratch, Step::Described)?;
    failpoint!("snapshot.described").map_err(|error| failed(error.into()))?;

    // What was written is read again before anybody may rely on it.
    let stored = Stored::open_at(layout, scratch.path(), id)?;
    if stored.manifest != packed.manifest {
        return Err(stored.manifest_damage().is("was not read back as written"));
    }
    let draft = scratch.path().join(LAYER);
    match (&packed.walked, &packed.layer) {
        // Its listing was read before it was shared.
        (None, _) => {}
        (Some(_), None) => stored.read_back(None, &settings.limits, &meta.cancel)?,
        (Some(_), Some(_)) => {
            let written = File::open(&draft).map_err(failed)?;
            stored.read_back(Some(written), &settings.limits, &meta.cancel)?;
        }
    }
    let scratch = reached(scratch, Step::ReadBack)?;
    failpoint!("snapshot.checked").map_err(|error| failed(error.into()))?;

    // The layer first, then the manifest that refers to it.
    if let Some(layer) = &packed.layer {
        layout.publish_layer(&draft, &layer.digest)?;
    }
    let scratch = reached(scratch, Step::Layered)?;
    failpoint!("snapshot.layered").map_err(|error| failed(error.into()))?;
    layout.publish(scratch, id)?;
    failpoint!("snapshot.published").map_err(|error| failed(error.into()))?;
    match (&packed.walked, meta.base) {
        (Some(walked), _) => remember(layout, id, walked),
        (None, Some(before)) => layout.share_walk(before, id),
        (None, None) => {}
    }
    Ok(packed.manifest)
}

/// What is in the scratch directory, but for the manifest.
struct Packed {
    /// Its name and times are still to be set.
    manifest: Manifest,
    /// The new layer, unless there is none.
    layer: Option<LayerInfo>,
    /// What was seen, unless that is what was seen before.
    walked: Option<Walked>,
}

impl Before<'_> {
    /// The same snapshot once more: its listing under another name.
    fn again(self, scratch: &Path) -> Result<Packed, SnapshotError> {
        self.stored
            .share_listing(&scratch.join(LISTING))
            .map_err(|error| SnapshotError::io("sharing a list of entries", error))?;
        Ok(Packed {
            manifest: self.stored.manifest,
            layer: None,
            walked: None,
        })
    }
}

/// Walks the tree and writes what the base does not have.
fn pack(
    base: &Base,
    settings: &Settings,
    tree: BorrowedFd<'_>,
    meta: &SaveMeta,
    scratch: &Scratch,
) -> Result<Packed, SnapshotError> {
    let new = |name| {
        create(&scratch.path().join(name))
            .map_err(|error| SnapshotError::io(format!("making the {name} of a snapshot"), error))
    };
    let mut walked = Walked::begin(tree, &settings.limits)
        .map_err(|error| SnapshotError::io("reading the root of the tree", error))?;
    let walk = Walk::new(tree, meta.rules, settings.limits, meta.cancel.clone())?.knowing(base);
    let files = (new(LAYER)?, new(LISTING)?);
    let gathered = gather(walk, base, files.0, files.1, settings, &meta.cancel)?;
    walked.steps = gathered.steps;
    if gathered.layer.is_none() {
        let draft = scratch.path().join(LAYER);
        std::fs::remove_file(draft)
            .map_err(|error| SnapshotError::io("removing an empty layer", error))?;
    }
    let mut layers = base.layers.clone();
    layers.extend(gathered.layer.clone());
    let manifest = Manifest {
        version: MANIFEST_VERSION,
        id: SnapshotId::random(),
        created_at: OffsetDateTime::UNIX_EPOCH,
        expires_at: None,
        labels: BTreeMap::new(),
        root: gathered.root,
        entries: gathered.entries,
        bytes: gathered.bytes,
        excluded: meta.rules.names(),
        skipped: gathered.skipped,
        archive: None,
        layers,
        listing: gathered.listing,
    };
    Ok(Packed {
        manifest,
        layer: gathered.layer,
        walked: Some(walked),
    })
}

/// Writes a manifest, durably.
fn describe(manifest: &Manifest, place: &Path) -> Result<(), SnapshotError> {
    let text = serde_json::to_vec_pretty(manifest).map_err(|error| failed(error.into()))?;
    if text.len() as u64 > MANIFEST_MOST {
        let error = std::io::Error::other("the labels are too long");
        return Err(failed(error));
    }
    let mut file = create(place).map_err(failed)?;
    file.write_all(&text)
        .and_then(|()| durable::file(&file))
        .map_err(failed)
}

fn failed(error: std::io::Error) -> SnapshotError {
    SnapshotError::io("writing the manifest of a snapshot", error)
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
mod same;
#[cfg(test)]
mod tests;

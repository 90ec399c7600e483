//! What a save can take over from the snapshot before.

use std::os::fd::BorrowedFd;

use crate::archive::gather::Base;
use crate::store::layout::Layout;
use crate::store::read::{MOST_LAYERS, Stored};
use crate::walked::Walked;
use crate::{Kind, LayerInfo, Settings, SnapshotError, SnapshotId};

/// Layers may hold this much that nothing refers to, beside as much again as
/// is referred to.
const DEAD: u64 = 32 << 20;

/// What the headers of a member take, and the padding of its content, rather
/// too much than too little: a tree of small files is mostly headers.
const HEADERS: u64 = 2048;

/// The base of a save; an empty one, which makes it a full save, if there is
/// none that is fit.
pub(super) fn of(
    layout: &Layout,
    settings: &Settings,
    tree: BorrowedFd<'_>,
    id: Option<SnapshotId>,
) -> Base {
    let Some(id) = id else {
        return Base::default();
    };
    match read(layout, settings, tree, id) {
        Ok(Some(base)) => base,
        Ok(None) => Base::default(),
        Err(error) => {
            tracing::warn!(%error, "saving all, as the snapshot before is not fit to build on");
            Base::default()
        }
    }
}

fn read(
    layout: &Layout,
    settings: &Settings,
    tree: BorrowedFd<'_>,
    id: SnapshotId,
) -> Result<Option<Base>, SnapshotError> {
    let stored = match Stored::open(layout, id) {
        Err(SnapshotError::NotFound { .. }) => return Ok(None),
        stored => stored?,
    };
    // A save adds one.
    let layers = &stored.manifest.layers;
    if layers.is_empty() || layers.len() >= MOST_LAYERS {
        return Ok(None);
    }
    stored.has_layers()?;
    let walked =
        Walked::read(&layout.walk(id), stored.manifest.entries).filter(|walked| walked.is_of(tree));
    let mut base = Base::default();
    let mut live = 0_u64;
    let mut files = 0;
    stored.entries(&settings.limits, |entry| {
        live = live.saturating_add(HEADERS + 2 * entry.path.as_bytes().len() as u64);
        if let Kind::File { stored, .. } = &entry.kind {
            live = live.saturating_add(*stored);
            let seen = walked.as_ref().and_then(|walked| walked.files.get(files));
            files += 1;
            base.learn(entry, seen.copied());
        }
        Ok(())
    })?;
    match &walked {
        Some(walked) if walked.files.len() == files => base.certain_until = walked.certain_until,
        _ => base.files.clear(),
    }
    let held = layers.iter().map(LayerInfo::unpacked_length);
    let held = held.fold(0, u64::saturating_add);
    if held > live.saturating_mul(2).saturating_add(DEAD) {
        return Ok(None);
    }
    base.layers.clone_from(layers);
    Ok(Some(base))
}

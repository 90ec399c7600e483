//! What a save can take over from the snapshot before.

use std::os::fd::BorrowedFd;

use crate::known::Base;
use crate::store::layout::Layout;
use crate::store::read::{MOST_LAYERS, Stored};
use crate::tree::unchanged::is_unchanged;
use crate::walked::{Seen, Walked};
use crate::{Cancel, Kind, LayerInfo, Rules, Settings, SnapshotError, SnapshotId};

/// Layers may hold this much that nothing refers to, beside as much again as
/// is referred to.
const DEAD: u64 = 32 << 20;

/// What the headers of a member take, and the padding of its content, rather
/// too much than too little: a tree of small files is mostly headers.
const HEADERS: u64 = 2048;

/// A snapshot to build on. Its layers are there.
pub(super) struct Before<'a> {
    pub(super) stored: Stored<'a>,
    /// What was seen of the very tree that is to be saved.
    walked: Option<Walked>,
}

impl<'a> Before<'a> {
    /// `None` if there is none that is fit.
    pub(super) fn find(
        layout: &'a Layout,
        tree: BorrowedFd<'_>,
        id: Option<SnapshotId>,
    ) -> Option<Self> {
        let found = Stored::open(layout, id?).and_then(|stored| {
            stored.has_layers()?;
            Ok(stored)
        });
        match found {
            Ok(stored) if stored.manifest.layers.is_empty() => None,
            Ok(stored) => {
                let walk = layout.walk(stored.manifest.id);
                let walked = Walked::read(&walk, stored.manifest.entries);
                let walked = walked.filter(|walked| walked.is_of(tree));
                Some(Self { stored, walked })
            }
            Err(SnapshotError::NotFound { .. }) => None,
            Err(error) => {
                unfit(&error);
                None
            }
        }
    }

    fn is_certain(&self, seen: Seen) -> bool {
        let walked = self.walked.as_ref();
        walked.is_some_and(|walked| walked.is_certain(seen))
    }

    /// Whether a snapshot of `tree` would be this one once more.
    pub(super) fn has_all_of(
        &self,
        tree: BorrowedFd<'_>,
        rules: &Rules,
        settings: &Settings,
        cancel: &Cancel,
    ) -> Result<bool, SnapshotError> {
        let manifest = &self.stored.manifest;
        let Some(walked) = &self.walked else {
            return Ok(false);
        };
        // What vanished may have come back in a directory that did not change.
        let is_comparable = walked.is_whole(&settings.limits)
            && manifest.excluded == rules.names()
            && manifest.skipped.vanished == 0;
        let entries = manifest.entries.saturating_add(1);
        if !is_comparable || !is_unchanged(tree, walked, entries, cancel)? {
            return Ok(false);
        }
        match self.stored.check_listing(cancel) {
            Err(error @ SnapshotError::Corrupt { .. }) => {
                unfit(&error);
                Ok(false)
            }
            checked => checked.map(|()| true),
        }
    }

    /// What to add to; nothing, which makes it a full save, if that is better.
    pub(super) fn base(&self, settings: &Settings) -> Base {
        self.read(settings).unwrap_or_else(|error| {
            unfit(&error);
            Base::default()
        })
    }

    fn read(&self, settings: &Settings) -> Result<Base, SnapshotError> {
        // A save adds one.
        let layers = &self.stored.manifest.layers;
        if layers.len() >= MOST_LAYERS {
            return Ok(Base::default());
        }
        let mut base = Base {
            device: self.walked.as_ref().map_or(0, |walked| walked.root.0),
            ..Base::default()
        };
        let mut live = 0_u64;
        let mut seen = self.walked.as_ref().map(|walked| walked.steps.files());
        let mut agrees = true;
        self.stored.entries(&settings.limits, |entry| {
            live = live.saturating_add(HEADERS + 2 * entry.path.as_bytes().len() as u64);
            if let Kind::File { stored, .. } = &entry.kind {
                live = live.saturating_add(*stored);
                let seen = seen.as_mut().and_then(Iterator::next);
                agrees &= seen.is_some();
                base.learn(entry, seen.filter(|seen| self.is_certain(*seen)));
            }
            Ok(())
        })?;
        agrees &= seen.is_some_and(|mut seen| seen.next().is_none());
        if !agrees {
            base.files.clear();
        }
        let held = layers.iter().map(LayerInfo::unpacked_length);
        let held = held.fold(0, u64::saturating_add);
        if held > live.saturating_mul(2).saturating_add(DEAD) {
            return Ok(Base::default());
        }
        base.layers.clone_from(layers);
        Ok(base)
    }
}

fn unfit(error: &SnapshotError) {
    tracing::warn!(%error, "saving all, as the snapshot before is not fit to build on");
}

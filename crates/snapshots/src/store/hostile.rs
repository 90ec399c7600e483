//! Manifests, listings and layers that no save would write are refused, typed,
//! and reach nothing outside the directory. Their digests are right: whoever
//! wrote them could write those too.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs::{self, File};
use std::path::PathBuf;

use tempfile::TempDir;

use super::read::{LISTING, MANIFEST};
use crate::archive::listing::ListingWriter;
use crate::*;

struct Room {
    dir: TempDir,
    store: LocalStore,
}

impl Room {
    /// A store with a snapshot of a few files in two layers.
    fn new(limits: Limits) -> (Self, Manifest) {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("outside"), b"outside").unwrap();
        let tree = dir.path().join("tree");
        fs::create_dir_all(tree.join("d")).unwrap();
        fs::write(tree.join("d/one"), vec![1; 10_000]).unwrap();
        fs::write(tree.join("two"), vec![2; 10_000]).unwrap();
        std::os::unix::fs::symlink("two", tree.join("soft")).unwrap();
        let settings = Settings {
            limits,
            ..Settings::default()
        };
        let store = LocalStore::open_with(&dir.path().join("store"), settings).unwrap();
        let open = || File::open(&tree).unwrap().into();
        let first = store.save(open(), SaveMeta::default()).unwrap();
        fs::write(tree.join("zz"), vec![3; 10_000]).unwrap();
        let meta = SaveMeta {
            base: Some(first.id),
            ..SaveMeta::default()
        };
        let manifest = store.save(open(), meta).unwrap();
        assert_eq!(manifest.layers.len(), 2);
        (Self { dir, store }, manifest)
    }

    fn layer(&self, manifest: &Manifest, number: usize) -> PathBuf {
        self.store.layout.layer(&manifest.layers[number].digest)
    }

    /// Writes the snapshot anew with other entries and another manifest.
    fn forge(&self, manifest: &Manifest, edit: impl FnOnce(&mut Vec<Entry>, &mut Manifest)) {
        let (mut entries, mut manifest) = (Vec::new(), manifest.clone());
        let each = |entry| {
            entries.push(entry);
            Ok(())
        };
        self.store.entries(manifest.id, each).unwrap();
        edit(&mut entries, &mut manifest);
        let place = self.store.layout.place(manifest.id);
        let listing = File::create(place.join(LISTING)).unwrap();
        let mut listing = ListingWriter::new(listing, 1).unwrap();
        for entry in &entries {
            listing.push(entry).unwrap();
        }
        manifest.listing = listing.finish().unwrap();
        manifest.entries = entries.len() as u64 - 1;
        fs::write(place.join(MANIFEST), serde_json::to_vec(&manifest).unwrap()).unwrap();
    }

    fn restore(&self, id: SnapshotId) -> Result<Manifest, SnapshotError> {
        let into = tempfile::tempdir_in(self.dir.path()).unwrap();
        let open = File::open(into.path()).unwrap();
        let restored = self.store.restore(id, open.into());
        drop(into);
        let outside = self.dir.path().join("outside");
        assert_eq!(fs::read(outside).unwrap(), b"outside");
        assert_eq!(fs::read_dir(self.dir.path()).unwrap().count(), 3);
        restored
    }
}

fn at(entries: &mut [Entry], path: &str) -> usize {
    let named = |entry: &Entry| entry.path.as_bytes() == path.as_bytes();
    entries.iter().position(named).unwrap()
}

fn place<'a>(entries: &'a mut [Entry], path: &str) -> &'a mut Place {
    let number = at(entries, path);
    match &mut entries[number].kind {
        Kind::File { at: Some(at), .. } => at,
        other => panic!("{other:?}"),
    }
}

fn rename(entries: &mut [Entry], path: &str, to: &[u8]) {
    let number = at(entries, path);
    entries[number].path = to.into();
}

/// What is done to a snapshot.
type Edit = fn(&mut Vec<Entry>, &mut Manifest);

#[track_caller]
fn refused(part: Part, reason: &str, edit: Edit) {
    let (room, manifest) = Room::new(Limits::default());
    room.forge(&manifest, edit);
    match room.restore(manifest.id) {
        Err(SnapshotError::Corrupt {
            which,
            reason: found,
            ..
        }) => {
            assert!(found.contains(reason), "{found:?} is not {reason:?}");
            assert_eq!(which, part, "{found}");
        }
        other => panic!("{other:?} is not {reason:?}"),
    }
}

#[test]
fn a_forged_snapshot_that_is_fine_is_restored() {
    let (room, manifest) = Room::new(Limits::default());
    room.forge(&manifest, |_, _| ());
    room.restore(manifest.id).unwrap();
}

#[test]
fn references_that_lead_nowhere_are_refused() {
    let listing = Part::Listing;
    refused(listing, "a layer that its manifest", |entries, _| {
        place(entries, "two").layer = 2;
    });
    refused(listing, "outside of the layer", |entries, _| {
        place(entries, "two").frame = 1;
    });
    refused(listing, "outside of the layer", |entries, _| {
        place(entries, "two").frame = u32::MAX;
    });
    refused(listing, "outside of the layer", |entries, _| {
        place(entries, "two").offset = u32::MAX;
    });
    refused(listing, "where the content is", |entries, _| {
        let number = at(entries, "two");
        if let Kind::File { at, .. } = &mut entries[number].kind {
            *at = None;
        }
    });
    // Into the middle of a member, and to one that is a directory.
    refused(Part::Archive, "", |entries, _| {
        place(entries, "two").offset += 100;
    });
    refused(listing, "no file begins", |entries, _| {
        *place(entries, "two") = Place {
            layer: 0,
            frame: 0,
            offset: 0,
        };
    });
    refused(listing, "no file begins", |entries, _| {
        // Past the last member.
        place(entries, "zz").offset += 3 * 512 + 10_240;
    });
}

#[test]
fn references_to_another_content_are_refused() {
    refused(Part::Archive, "differs from its listing", |entries, _| {
        *place(entries, "two") = *place(entries, "d/one");
    });
    refused(Part::Archive, "differs from its listing", |entries, _| {
        *place(entries, "two") = *place(entries, "zz");
    });
    refused(Part::Listing, "another length", |entries, _| {
        let number = at(entries, "two");
        if let Kind::File { size, .. } = &mut entries[number].kind {
            *size = 1 << 50;
        }
    });
    refused(Part::Listing, "another length", |entries, _| {
        let number = at(entries, "two");
        if let Kind::File { stored, .. } = &mut entries[number].kind {
            *stored = 1;
        }
    });
}

#[test]
fn lines_that_would_land_elsewhere_are_refused() {
    let archive = Part::Archive;
    refused(archive, "dot name", |entries, _| {
        rename(entries, "two", b"../outside")
    });
    refused(archive, "absolute path", |entries, _| {
        rename(entries, "two", b"/tmp/hutch-escaped")
    });
    refused(archive, "apart from its directory", |entries, _| {
        rename(entries, "two", b"soft/x")
    });
    refused(archive, "twice or out of order", |entries, _| {
        rename(entries, "two", b"soft")
    });
    refused(archive, "twice or out of order", |entries, _| {
        entries.swap(3, 4)
    });
    refused(Part::Listing, "zero byte", |entries, _| {
        rename(entries, "two", b"t\0o")
    });
    refused(archive, "did not come before", |entries, _| {
        let number = at(entries, "zz");
        entries[number].kind = Kind::HardLink {
            target: b"soft/outside"[..].into(),
        };
    });
    refused(Part::Listing, "mode or a time", |entries, _| {
        let number = at(entries, "two");
        entries[number].attributes.mode = 0o120_777;
    });
    refused(Part::Listing, "a root that is not", |entries, _| {
        entries[0].attributes.mode ^= 0o700;
    });
    refused(archive, "security.selinux", |entries, _| {
        let number = at(entries, "two");
        entries[number].xattrs.push(Xattr {
            name: b"security.selinux"[..].into(),
            value: b"x"[..].into(),
        });
    });
}

#[test]
fn manifests_that_lie_about_layers_are_refused() {
    refused(Part::Archive, "lacks the layer", |_, manifest| {
        manifest.layers[0].digest = "0".repeat(64);
    });
    refused(Part::Manifest, "no digest", |_, manifest| {
        manifest.layers[0].digest = "../../../outside".to_owned();
    });
    refused(Part::Archive, "", |_, manifest| manifest.layers.swap(0, 1));
    refused(Part::Archive, "instead of", |_, manifest| {
        manifest.layers[0].length += 1
    });
    refused(Part::Archive, "not as long", |_, manifest| {
        manifest.layers[0].frames.push((1, 1));
    });
    refused(Part::Archive, "a size that no frame has", |_, manifest| {
        manifest.layers[0].frames[0].1 = u32::MAX;
    });
    refused(Part::Archive, "does not decode", |_, manifest| {
        manifest.layers[0].frames[0].1 -= 1;
    });
    refused(Part::Archive, "does not decode", |_, manifest| {
        manifest.layers[0].frames[0].1 += 1;
    });
    refused(Part::Manifest, "more layers", |_, manifest| {
        let layer = manifest.layers[0].clone();
        manifest.layers = vec![layer; 17];
    });
}

#[test]
fn a_layer_that_is_swapped_cut_flipped_or_gone_is_found_before_anything_is_written() {
    let (room, manifest) = Room::new(Limits::default());
    let paths = [room.layer(&manifest, 0), room.layer(&manifest, 1)];
    let whole = paths.clone().map(|path| fs::read(path).unwrap());
    for (number, path) in paths.iter().enumerate() {
        let mut flipped = whole[number].clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 1;
        let cut = whole[number][..whole[number].len() - 1].to_vec();
        for bytes in [flipped, cut, Vec::new(), whole[1 - number].clone()] {
            fs::write(path, bytes).unwrap();
            let into = room.dir.path().join("tree/into");
            fs::create_dir(&into).unwrap();
            let open = File::open(&into).unwrap();
            let restored = room.store.restore(manifest.id, open.into());
            assert!(matches!(
                restored,
                Err(SnapshotError::Corrupt {
                    which: Part::Archive,
                    ..
                })
            ));
            assert_eq!(fs::read_dir(&into).unwrap().count(), 0);
            fs::remove_dir(&into).unwrap();
        }
        fs::write(path, &whole[number]).unwrap();
    }
    room.restore(manifest.id).unwrap();
}

#[test]
fn a_bomb_grows_no_further_than_its_frame() {
    let (room, manifest) = Room::new(Limits::default());
    let bomb = zstd::bulk::compress(&vec![0; 256 << 20], 1).unwrap();
    let digest = blake3::hash(&bomb).to_hex().to_string();
    fs::write(room.store.layout.layer(&digest), &bomb).unwrap();
    room.forge(&manifest, |_, manifest| {
        manifest.layers[0] = LayerInfo {
            digest,
            length: bomb.len() as u64,
            frames: vec![(u32::try_from(bomb.len()).unwrap(), 4 << 20)],
        };
    });
    let restored = room.restore(manifest.id);
    assert!(matches!(
        restored,
        Err(SnapshotError::Corrupt {
            which: Part::Archive,
            ..
        })
    ));
}

#[test]
fn references_to_the_same_content_count_each_time() {
    let limits = Limits {
        unpacked_bytes: 50_000,
        ..Limits::default()
    };
    let (room, manifest) = Room::new(limits);
    room.forge(&manifest, |entries, _| {
        let number = at(entries, "zz");
        for copy in 0..10 {
            let mut again = entries[number].clone();
            again.path = format!("zz{copy}").as_bytes().into();
            entries.push(again);
        }
    });
    let restored = room.restore(manifest.id);
    assert!(matches!(
        restored,
        Err(SnapshotError::LimitExceeded {
            which: LimitKind::UnpackedBytes,
            ..
        })
    ));
}

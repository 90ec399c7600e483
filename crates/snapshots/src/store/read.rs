//! Reading a snapshot that is stored.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::layout::Layout;
use crate::archive::check::{self, Sink};
use crate::archive::damage::Damage;
use crate::archive::listing::{self, ListingReader};
use crate::archive::pack;
use crate::manifest::MANIFEST_VERSION;
use crate::{Cancel, Entry, Limits, Manifest, Part, SnapshotError, SnapshotId};

pub(crate) const ARCHIVE: &str = "archive.tar.zst";
pub(crate) const LISTING: &str = "entries.jsonl.zst";
pub(crate) const MANIFEST: &str = "manifest.json";

/// Most bytes of a manifest.
pub(crate) const MANIFEST_MOST: u64 = 32 << 20;

/// A snapshot that is stored. Its manifest has been read, the rest not.
#[derive(Debug)]
pub(crate) struct Stored {
    place: PathBuf,
    pub(crate) manifest: Manifest,
}

#[derive(Deserialize)]
struct Version {
    version: u64,
}

impl Stored {
    pub(crate) fn open(layout: &Layout, id: SnapshotId) -> Result<Self, SnapshotError> {
        Self::open_at(&layout.place(id), id)
    }

    pub(crate) fn open_at(place: &Path, id: SnapshotId) -> Result<Self, SnapshotError> {
        let which = Part::Manifest;
        let damage = Damage { id, which };
        let text = match File::open(place.join(MANIFEST)) {
            Ok(file) => read(file, MANIFEST_MOST).map_err(|error| damage.io(error))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(match place.exists() {
                    true => damage.is("is missing"),
                    false => SnapshotError::NotFound { id },
                });
            }
            Err(error) => return Err(damage.io(error)),
        };
        let malformed = |error| damage.is(format!("does not parse ({error})"));
        let Version { version } = serde_json::from_slice(&text).map_err(malformed)?;
        if version != MANIFEST_VERSION {
            return Err(SnapshotError::UnsupportedVersion {
                what: format!("snapshot {id}"),
                found: version,
                known: MANIFEST_VERSION,
            });
        }
        let manifest: Manifest = serde_json::from_slice(&text).map_err(malformed)?;
        if manifest.id != id {
            return Err(damage.is("is that of another snapshot"));
        }
        if manifest.archive.format != pack::FORMAT || manifest.listing.format != listing::FORMAT {
            return Err(damage.is("names a format that is not known"));
        }
        Ok(Self {
            place: place.to_owned(),
            manifest,
        })
    }

    pub(crate) fn manifest_damage(&self) -> Damage {
        self.damage(Part::Manifest)
    }

    pub(crate) fn archive_damage(&self) -> Damage {
        self.damage(Part::Archive)
    }

    fn damage(&self, which: Part) -> Damage {
        Damage {
            id: self.manifest.id,
            which,
        }
    }

    fn part(&self, which: Part, name: &str) -> Result<File, SnapshotError> {
        let damage = self.damage(which);
        match File::open(self.place.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(damage.is("is missing")),
            file => file.map_err(|error| damage.io(error)),
        }
    }

    /// Checks lengths and digests of archive and listing, decoding nothing.
    pub(crate) fn check_digests(&self, cancel: &Cancel) -> Result<(), SnapshotError> {
        let (archive, listing) = (&self.manifest.archive, &self.manifest.listing);
        for (which, name, length, digest) in [
            (Part::Listing, LISTING, listing.length, &listing.digest),
            (Part::Archive, ARCHIVE, archive.length, &archive.digest),
        ] {
            let file = self.part(which, name)?;
            check::digest(&file, length, digest, self.damage(which), cancel)?;
        }
        Ok(())
    }

    /// Reads all of it, compares archive, listing and manifest, and hands the
    /// members to `sink`.
    pub(crate) fn stream(
        &self,
        limits: &Limits,
        cancel: &Cancel,
        sink: &mut impl Sink,
    ) -> Result<(), SnapshotError> {
        let archive = self.part(Part::Archive, ARCHIVE)?;
        let listing = self.part(Part::Listing, LISTING)?;
        check::stream(archive, listing, &self.manifest, limits, cancel, sink)
    }

    /// Reads the listing alone.
    pub(crate) fn entries(
        &self,
        limits: &Limits,
        mut each: impl FnMut(Entry) -> Result<(), SnapshotError>,
    ) -> Result<(), SnapshotError> {
        let file = self.part(Part::Listing, LISTING)?;
        let damage = self.damage(Part::Listing);
        let mut listing = ListingReader::new(file, self.manifest.listing.clone(), limits, damage)?;
        while let Some(entry) = listing.next()? {
            each(entry)?;
        }
        listing.finish()
    }
}

fn read(file: File, most: u64) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    file.take(most + 1).read_to_end(&mut text)?;
    if text.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "too long"));
    }
    Ok(text)
}

//! Reading a snapshot that is stored.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::layout::Layout;
use crate::archive::check::{self, Sink};
use crate::archive::damage::Damage;
use crate::archive::layer::Layer;
use crate::archive::listing::{self, ListingReader};
use crate::archive::recall::Recall;
use crate::manifest::{MANIFEST_VERSION, ONE_ARCHIVE};
use crate::{Cancel, Entry, LayerInfo, Limits, Manifest, Part, SnapshotError, SnapshotId};

pub(crate) const ARCHIVE: &str = "archive.tar.zst";
pub(crate) const ARCHIVE_FORMAT: &str = "tar.zst";
pub(crate) const LISTING: &str = "entries.jsonl.zst";
pub(crate) const MANIFEST: &str = "manifest.json";

/// Most layers of one snapshot; a save begins anew before there are more.
pub(crate) const MOST_LAYERS: usize = 16;

/// Most bytes of a manifest.
pub(crate) const MANIFEST_MOST: u64 = 32 << 20;

/// A snapshot that is stored. Its manifest has been read, the rest not.
#[derive(Debug)]
pub(crate) struct Stored<'a> {
    layout: &'a Layout,
    place: PathBuf,
    pub(crate) manifest: Manifest,
}

#[derive(Deserialize)]
struct Version {
    version: u64,
}

impl<'a> Stored<'a> {
    pub(crate) fn open(layout: &'a Layout, id: SnapshotId) -> Result<Self, SnapshotError> {
        Self::open_at(layout, &layout.place(id), id)
    }

    pub(crate) fn open_at(
        layout: &'a Layout,
        place: &Path,
        id: SnapshotId,
    ) -> Result<Self, SnapshotError> {
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
        if ![MANIFEST_VERSION, ONE_ARCHIVE].contains(&version) {
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
        let format = manifest.archive.as_ref().map(|archive| &archive.format[..]);
        let expected = (version == ONE_ARCHIVE).then_some(ARCHIVE_FORMAT);
        if format != expected || manifest.listing.format != listing::FORMAT {
            return Err(damage.is("names a format that is not known"));
        }
        if version == ONE_ARCHIVE && !manifest.layers.is_empty() {
            return Err(damage.is("has layers beside its archive"));
        }
        let is_digest = |text: &str| {
            let is_hex = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            text.len() == 64 && text.bytes().all(is_hex)
        };
        if !manifest.layers.iter().all(|layer| is_digest(&layer.digest)) {
            return Err(damage.is("names a layer by what is no digest"));
        }
        if manifest.layers.len() > MOST_LAYERS {
            return Err(damage.is("names more layers than any snapshot has"));
        }
        Ok(Self {
            layout,
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

    /// The file of a layer. Gone with its snapshot is another thing than gone.
    fn layer(&self, info: &LayerInfo) -> Result<File, SnapshotError> {
        let damage = self.archive_damage();
        match File::open(self.layout.layer(&info.digest)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if !self.place.exists() {
                    let id = self.manifest.id;
                    return Err(SnapshotError::NotFound { id });
                }
                Err(damage.is(format!("lacks the layer {}", info.digest)))
            }
            file => file.map_err(|error| damage.io(error)),
        }
    }

    /// Checks lengths and digests of all parts, decoding nothing.
    pub(crate) fn check_digests(&self, cancel: &Cancel) -> Result<(), SnapshotError> {
        self.check_listing(cancel)?;
        let damage = self.archive_damage();
        if let Some(archive) = &self.manifest.archive {
            let file = self.part(Part::Archive, ARCHIVE)?;
            check::digest(&file, archive.length, &archive.digest, damage, cancel)?;
        }
        for layer in &self.manifest.layers {
            let file = self.layer(layer)?;
            check::digest(&file, layer.length, &layer.digest, damage, cancel)?;
        }
        Ok(())
    }

    /// Gives the list of entries another name, for a snapshot with the same.
    pub(crate) fn share_listing(&self, name: &Path) -> io::Result<()> {
        std::fs::hard_link(self.place.join(LISTING), name)
    }

    /// Checks length and digest of the list of entries.
    pub(crate) fn check_listing(&self, cancel: &Cancel) -> Result<(), SnapshotError> {
        let listing = &self.manifest.listing;
        let file = self.part(Part::Listing, LISTING)?;
        let damage = self.damage(Part::Listing);
        check::digest(&file, listing.length, &listing.digest, damage, cancel)
    }

    /// Whether a save may refer to the layers: they are there and not cut.
    pub(crate) fn has_layers(&self) -> Result<(), SnapshotError> {
        for layer in &self.manifest.layers {
            check::has_length(&self.layer(layer)?, layer.length, self.archive_damage())?;
        }
        Ok(())
    }

    /// Reads all of it, compares its parts with each other, and hands the
    /// members to `sink`.
    pub(crate) fn stream(
        &self,
        limits: &Limits,
        cancel: &Cancel,
        sink: &mut impl Sink,
    ) -> Result<(), SnapshotError> {
        let listing = self.part(Part::Listing, LISTING)?;
        if let Some(info) = &self.manifest.archive {
            let archive = self.part(Part::Archive, ARCHIVE)?;
            return check::stream(archive, listing, &self.manifest, info, limits, cancel, sink);
        }
        let recall = Recall {
            manifest: &self.manifest,
            limits,
            cancel,
            only: None,
        };
        let files = self.manifest.layers.iter().map(|info| self.layer(info));
        self.recall(recall, files.collect::<Result<_, _>>()?, sink)
    }

    /// Reads back what a save has just written: the listing, and the contents in
    /// `last`, the file of the last layer, if there is a new one.
    pub(crate) fn read_back(
        &self,
        last: Option<File>,
        limits: &Limits,
        cancel: &Cancel,
    ) -> Result<(), SnapshotError> {
        let damage = self.archive_damage();
        let mut only = u32::MAX;
        let mut layers = Vec::new();
        if let (Some(file), Some(info)) = (last, self.manifest.layers.last()) {
            check::digest(&file, info.length, &info.digest, damage, cancel)?;
            only = u32::try_from(self.manifest.layers.len() - 1).unwrap_or(u32::MAX);
            for old in &self.manifest.layers[..self.manifest.layers.len() - 1] {
                layers.push(self.layer(old)?);
            }
            layers.push(file);
        }
        let recall = Recall {
            manifest: &self.manifest,
            limits,
            cancel,
            only: Some(only),
        };
        self.recall(recall, layers, &mut check::Nowhere)
    }

    fn recall(
        &self,
        recall: Recall<'_>,
        files: Vec<File>,
        sink: &mut impl Sink,
    ) -> Result<(), SnapshotError> {
        let damage = self.archive_damage();
        let (limits, info) = (recall.limits, self.manifest.listing.clone());
        let file = self.part(Part::Listing, LISTING)?;
        let listing = ListingReader::new(file, info, limits, self.damage(Part::Listing))?;
        let infos = self.manifest.layers.iter();
        let layers = files.into_iter().zip(infos).map(|(file, info)| {
            check::has_length(&file, info.length, damage)?;
            Layer::new(file, info, damage)
        });
        recall.run(layers.collect::<Result<_, _>>()?, listing, sink)
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

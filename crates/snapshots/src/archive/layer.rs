//! A layer: one archive, in zstd frames that unpack by themselves.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::CParameter;

use super::damage::Damage;
use super::hashing::Hashing;
use crate::{LayerInfo, SnapshotError};

/// Most bytes that one frame unpacks to.
pub(crate) const FRAME: usize = 4 << 20;

/// Frames on their way to the compressor.
const IN_FLIGHT: usize = 2;

/// Cuts what is written into frames.
#[derive(Debug)]
pub(crate) struct Cutter {
    to: SyncSender<Vec<u8>>,
    frame: Vec<u8>,
    cut: u32,
}

/// The two ends of a layer that is being written: what cuts, and what
/// [`compress`] takes.
pub(crate) fn cutter() -> (Cutter, Receiver<Vec<u8>>) {
    let (to, from) = sync_channel(IN_FLIGHT);
    let cutter = Cutter {
        to,
        frame: Vec::new(),
        cut: 0,
    };
    (cutter, from)
}

impl Cutter {
    /// Before a member of about `length` bytes: begins a frame if it does not
    /// fit into this one. Returns the frame and the bytes into it.
    pub(crate) fn at(&mut self, length: u64) -> io::Result<(u32, u32)> {
        let fits = (self.frame.len() as u64).saturating_add(length) <= FRAME as u64;
        if !fits {
            self.cut()?;
        }
        Ok((self.cut, u32::try_from(self.frame.len()).unwrap_or(0)))
    }

    fn cut(&mut self) -> io::Result<()> {
        if self.frame.is_empty() {
            return Ok(());
        }
        self.cut += 1;
        let frame = std::mem::take(&mut self.frame);
        self.to
            .send(frame)
            .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }
}

impl Write for Cutter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.frame.len() == FRAME {
            self.cut()?;
        }
        let taken = &bytes[..bytes.len().min(FRAME - self.frame.len())];
        self.frame.extend_from_slice(taken);
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.cut()
    }
}

/// Writes frames until there are no more. The file is to be made durable.
pub(crate) fn compress(from: Receiver<Vec<u8>>, to: &File, level: i32) -> io::Result<LayerInfo> {
    let mut compressor = Compressor::new(level)?;
    compressor.set_parameter(CParameter::ChecksumFlag(true))?;
    let mut to = Hashing::new(to);
    let mut frames = Vec::new();
    for frame in from {
        let stored = compressor.compress(&frame)?;
        to.write_all(&stored)?;
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).map_err(io::Error::other);
        frames.push((length(&stored)?, length(&frame)?));
    }
    let (_, length, digest) = to.finish();
    Ok(LayerInfo {
        digest,
        length,
        frames,
    })
}

/// A layer that is read, from any frame on.
pub(crate) struct Layer {
    file: File,
    frames: Vec<(u32, u32)>,
    /// Where each frame begins in the file.
    begins: Vec<u64>,
    decompressor: Decompressor<'static>,
    /// The frame at hand, and how much of it was read.
    frame: Option<usize>,
    bytes: Vec<u8>,
    read: usize,
}

impl Layer {
    /// Begins to read `file`, whose length and digest are checked elsewhere.
    pub(crate) fn new(file: File, info: &LayerInfo, damage: Damage) -> Result<Self, SnapshotError> {
        let mut begins = Vec::with_capacity(info.frames.len());
        let mut at = 0_u64;
        for (stored, unpacked) in &info.frames {
            if *unpacked as usize > FRAME || *unpacked == 0 {
                return Err(damage.is("has a frame of a size that no frame has"));
            }
            begins.push(at);
            at = at.saturating_add(u64::from(*stored));
        }
        if at != info.length {
            return Err(damage.is("has frames that are not as long as it is"));
        }
        Ok(Self {
            file,
            frames: info.frames.clone(),
            begins,
            decompressor: Decompressor::new().map_err(|error| damage.io(error))?,
            frame: None,
            bytes: Vec::new(),
            read: 0,
        })
    }

    /// Goes to a place; `false` if there is none.
    pub(crate) fn seek(&mut self, frame: u32, offset: u32) -> io::Result<bool> {
        let (frame, offset) = (frame as usize, offset as usize);
        if frame >= self.frames.len() {
            return Ok(false);
        }
        self.load(frame)?;
        self.read = offset;
        Ok(offset < self.bytes.len())
    }

    fn load(&mut self, number: usize) -> io::Result<()> {
        if self.frame == Some(number) {
            return Ok(());
        }
        self.frame = None;
        let (stored, unpacked) = self.frames[number];
        let mut packed = vec![0; stored as usize];
        self.file.read_exact_at(&mut packed, self.begins[number])?;
        self.bytes.resize(unpacked as usize, 0);
        let got = self
            .decompressor
            .decompress_to_buffer(&packed, &mut self.bytes[..])
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
        if got != unpacked as usize {
            let reason = "a frame is shorter than the manifest says";
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        (self.frame, self.read) = (Some(number), 0);
        Ok(())
    }
}

impl Read for Layer {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read >= self.bytes.len() {
            let next = self.frame.map_or(0, |frame| frame + 1);
            if next >= self.frames.len() {
                return Ok(0);
            }
            self.load(next)?;
        }
        let rest = &self.bytes[self.read..];
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        self.read += length;
        Ok(length)
    }
}

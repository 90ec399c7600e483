//! A layer: one archive, in zstd frames that unpack by themselves.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::CParameter;

use super::damage::Damage;
use super::hashing::Hashing;
use crate::{LayerInfo, SnapshotError};

/// Most bytes that one frame unpacks to.
pub(crate) const FRAME: usize = 4 << 20;

/// Threads that compress.
const WORKERS: usize = 2;

/// Frames on their way to each of them, and from it.
const IN_FLIGHT: usize = 1;

/// Cuts what is written into frames, for the workers in turn.
#[derive(Debug)]
pub(crate) struct Cutter {
    to: Vec<SyncSender<Vec<u8>>>,
    frame: Vec<u8>,
    cut: u32,
}

/// The two ends of a layer that is being written: what cuts, and what
/// [`compress`] takes.
pub(crate) fn cutter() -> (Cutter, Vec<Receiver<Vec<u8>>>) {
    let (to, from) = (0..WORKERS).map(|_| sync_channel(IN_FLIGHT)).unzip();
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
        let frame = std::mem::take(&mut self.frame);
        let sent = self
            .to
            .get(self.cut as usize % WORKERS)
            .map(|to| to.send(frame));
        self.cut += 1;
        match sent {
            Some(Ok(())) => Ok(()),
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        }
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

/// A frame as stored, and its length before.
type Packed = io::Result<(Vec<u8>, usize)>;

/// Writes frames until there are no more. The file is to be made durable.
pub(crate) fn compress(
    from: Vec<Receiver<Vec<u8>>>,
    to: &File,
    level: i32,
) -> io::Result<LayerInfo> {
    std::thread::scope(|scope| {
        let packed = from.into_iter().map(|from| {
            let (to, packed) = sync_channel(IN_FLIGHT);
            scope.spawn(move || work(from, to, level));
            packed
        });
        collect(&packed.collect::<Vec<_>>(), to)
    })
}

/// Compresses what one worker gets, until nobody wants more.
fn work(from: Receiver<Vec<u8>>, to: SyncSender<Packed>, level: i32) {
    let compressor = Compressor::new(level).and_then(|mut compressor| {
        compressor.set_parameter(CParameter::ChecksumFlag(true))?;
        Ok(compressor)
    });
    let mut compressor = match compressor {
        Ok(compressor) => compressor,
        // If nobody hears it, nobody waits for it.
        Err(error) => return drop(to.send(Err(error))),
    };
    for frame in from {
        let packed = compressor
            .compress(&frame)
            .map(|packed| (packed, frame.len()));
        if to.send(packed).is_err() {
            return;
        }
    }
}

/// Writes the frames in the order in which they were cut.
fn collect(packed: &[Receiver<Packed>], to: &File) -> io::Result<LayerInfo> {
    let mut to = Hashing::new(to);
    let mut frames = Vec::new();
    // The first worker without a next frame has come to the end, and so have all.
    for from in packed.iter().cycle() {
        let Ok(packed) = from.recv() else {
            break;
        };
        let (stored, length) = packed?;
        to.write_all(&stored)?;
        let short = |length: usize| u32::try_from(length).map_err(io::Error::other);
        frames.push((short(stored.len())?, short(length)?));
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
    file: Arc<File>,
    frames: Vec<(u32, u32)>,
    /// Where each frame begins in the file.
    begins: Vec<u64>,
    /// The next frame, where frames are read one after the other.
    ahead: Option<(usize, JoinHandle<io::Result<Vec<u8>>>)>,
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
            file: Arc::new(file),
            frames: info.frames.clone(),
            begins,
            ahead: None,
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
        let before = self.frame.take();
        self.bytes = match self.ahead.take() {
            Some((ahead, unpacking)) if ahead == number => unpacking
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("the unpacking thread panicked")))?,
            _ => self.unpacking(number)()?,
        };
        (self.frame, self.read) = (Some(number), 0);
        let next = number + 1;
        if before.is_some_and(|before| before + 1 == number) && next < self.frames.len() {
            let unpacking = Builder::new().name("unpack".into());
            // Without a thread it is unpacked when it is wanted.
            let unpacking = unpacking.spawn(self.unpacking(next)).ok();
            self.ahead = unpacking.map(|unpacking| (next, unpacking));
        }
        Ok(())
    }

    /// What reads and unpacks a frame.
    fn unpacking(&self, number: usize) -> impl FnOnce() -> io::Result<Vec<u8>> + Send + 'static {
        let (stored, unpacked) = self.frames[number];
        let (file, at) = (Arc::clone(&self.file), self.begins[number]);
        move || {
            let mut packed = vec![0; stored as usize];
            file.read_exact_at(&mut packed, at)?;
            let mut bytes = vec![0; unpacked as usize];
            let got = Decompressor::new()?
                .decompress_to_buffer(&packed, &mut bytes[..])
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
            if got != bytes.len() {
                let reason = "a frame is shorter than the manifest says";
                return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
            }
            Ok(bytes)
        }
    }
}

impl Drop for Layer {
    fn drop(&mut self) {
        if let Some((_, unpacking)) = self.ahead.take() {
            let _ = unpacking.join();
        }
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

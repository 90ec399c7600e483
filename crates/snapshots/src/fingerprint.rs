//! Whether two trees are the same.

use std::fmt::Write as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, pread};

use crate::tree::walk::{Found, Walk};
use crate::{Cancel, Limits, Rules, SnapshotError};
use hutch_pax::{Body, Segment};

/// Everything about a tree that a snapshot keeps, in a form to compare: two
/// trees with the same digest are the same in paths, kinds, owners, modes,
/// times, link targets, hard links, extended attributes and contents. Where the
/// holes of a sparse file are does not count, its bytes do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeFingerprint {
    /// BLAKE3 over the lines, in hex.
    pub digest: String,
    /// One line an entry, in the order of the walk.
    pub lines: Vec<String>,
}

impl TreeFingerprint {
    /// Reads the tree below `tree`, a directory, less what `rules` leave out.
    pub fn of(tree: OwnedFd, rules: Rules) -> Result<Self, SnapshotError> {
        let mut walk = Walk::new(tree.as_fd(), rules, Limits::default(), Cancel::new())?;
        let mut hasher = blake3::Hasher::new();
        let mut lines = Vec::new();
        while let Some(found) = walk.next()? {
            let line = line(&found)?;
            hasher.update(line.as_bytes());
            hasher.update(b"\n");
            lines.push(line);
        }
        let digest = hasher.finalize().to_hex().to_string();
        Ok(Self { digest, lines })
    }

    /// The lines that only one of the two has: `-` for this one, `+` for the
    /// other. Empty means that the trees are the same.
    pub fn diff(&self, other: &Self) -> Vec<String> {
        let ours: std::collections::BTreeSet<_> = self.lines.iter().collect();
        let theirs: std::collections::BTreeSet<_> = other.lines.iter().collect();
        let gone = ours.difference(&theirs).map(|line| format!("- {line}"));
        let new = theirs.difference(&ours).map(|line| format!("+ {line}"));
        gone.chain(new).collect()
    }
}

/// One entry in plain ASCII, without a newline.
fn line(found: &Found) -> Result<String, SnapshotError> {
    let member = &found.member;
    let attributes = member.attributes;
    let mut line = format!(
        "\"{}\" mode={:04o} uid={} gid={} mtime={}",
        member.path.escape_ascii(),
        attributes.mode,
        attributes.uid,
        attributes.gid,
        attributes.mtime,
    );
    let what = match &member.body {
        Body::Directory => "directory".to_owned(),
        Body::File { size } => {
            let whole = [Segment {
                offset: 0,
                length: *size,
            }];
            format!("file size={size} {}", content(found, *size, &whole)?)
        }
        Body::Sparse { size, segments } => {
            format!("file size={size} {}", content(found, *size, segments)?)
        }
        Body::Symlink(target) => format!("symlink \"{}\"", target.escape_ascii()),
        Body::HardLink(first) => format!("same as \"{}\"", first.escape_ascii()),
        Body::Fifo => "fifo".to_owned(),
        Body::CharDevice { .. } | Body::BlockDevice { .. } => "whiteout".to_owned(),
    };
    let _ = write!(line, " {what}");
    for xattr in &member.xattrs {
        let _ = write!(line, " {}={:?}", xattr.name, xattr.value);
    }
    Ok(line)
}

/// The unit in which zeros are looked for.
const BLOCK: u64 = 4096;

/// A digest of a file's bytes that takes no time for holes and does not depend
/// on where they are: blocks of zeros count as a number.
fn content(found: &Found, size: u64, segments: &[Segment]) -> Result<String, SnapshotError> {
    let Some(file) = &found.file else {
        return Ok(String::new());
    };
    let mut hasher = blake3::Hasher::new();
    let (mut zeros, mut at) = (0_u64, 0_u64);
    let mut buffer = vec![0; 64 * BLOCK as usize];
    for segment in segments {
        let start = (segment.offset / BLOCK * BLOCK).max(at);
        zeros += (start - at) / BLOCK;
        at = start;
        let end = segment.offset + segment.length;
        while at < end {
            let want = (size - at).min(buffer.len() as u64) as usize;
            read_exact_at(file.as_fd(), &mut buffer[..want], at).map_err(|error| {
                let path = found.member.path.escape_ascii();
                SnapshotError::io(format!("reading \"{path}\""), error)
            })?;
            for block in buffer[..want].chunks(BLOCK as usize) {
                if block.iter().all(|byte| *byte == 0) {
                    zeros += 1;
                } else {
                    hasher.update(&zeros.to_le_bytes());
                    hasher.update(block);
                    zeros = 0;
                }
            }
            at += (want as u64).next_multiple_of(BLOCK);
        }
    }
    Ok(hasher.finalize().to_hex().to_string())
}

/// Fills the buffer; zeros for what is no longer there.
fn read_exact_at(file: BorrowedFd<'_>, mut buffer: &mut [u8], mut at: u64) -> Result<(), Errno> {
    while !buffer.is_empty() {
        match pread(file, &mut *buffer, at) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
            Ok(0) => {
                buffer.fill(0);
                return Ok(());
            }
            Ok(got) => {
                buffer = &mut buffer[got..];
                at += got as u64;
            }
        }
    }
    Ok(())
}

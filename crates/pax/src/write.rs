//! Writing an archive.

use std::io::{self, Write};

use crate::header::{Header, MAX_LONG, MAX_NAME, MAX_SHORT};
use crate::{BLOCK, Body, Member, PaxError, padding, records, sparse};

/// Writes an archive, member by member.
#[derive(Debug)]
pub struct Writer<W> {
    to: W,
    /// Bytes of data that the current member still owes, and its padding.
    owed: u64,
    padding: usize,
}

impl<W: Write> Writer<W> {
    /// Begins an archive.
    pub fn new(to: W) -> Self {
        Self {
            to,
            owed: 0,
            padding: 0,
        }
    }

    /// Begins a member. Its [`stored`](Body::stored) bytes are to be written
    /// next with [`data`](Self::data).
    pub fn member(&mut self, member: &Member) -> Result<(), PaxError> {
        if self.owed > 0 {
            return Err(PaxError::Malformed("has a member without all of its data"));
        }
        let map = match &member.body {
            Body::Sparse { size, segments } => sparse::encode(*size, segments),
            _ => Vec::new(),
        };
        let stored = member.body.stored();
        let (header, records) = describe(member, stored + map.len() as u64);
        if !records.is_empty() {
            let length = records.len() as u64;
            let extended = Header {
                name: b"PaxHeaders/0".to_vec(),
                mode: 0o644,
                size: length,
                typeflag: b'x',
                ..Header::default()
            };
            self.to.write_all(&extended.encode())?;
            self.to.write_all(&records)?;
            self.to.write_all(&[0; BLOCK][..padding(length)])?;
        }
        self.to.write_all(&header.encode())?;
        self.to.write_all(&map)?;
        self.owed = stored;
        self.padding = padding(stored);
        self.pad()?;
        Ok(())
    }

    /// Writes bytes of the current member's content, no more than are owed.
    pub fn data(&mut self, bytes: &[u8]) -> Result<(), PaxError> {
        self.owed = self
            .owed
            .checked_sub(bytes.len() as u64)
            .ok_or(PaxError::Malformed("has a member with too much data"))?;
        self.to.write_all(bytes)?;
        self.pad()?;
        Ok(())
    }

    /// The stream that is written to.
    pub fn stream(&self) -> &W {
        &self.to
    }

    /// The same, for one that must know where members begin. What is written
    /// past this writer is not known to it.
    pub fn stream_mut(&mut self) -> &mut W {
        &mut self.to
    }

    /// Ends the archive and gives the stream back, not flushed.
    pub fn finish(mut self) -> Result<W, PaxError> {
        if self.owed > 0 {
            return Err(PaxError::Malformed("has a member without all of its data"));
        }
        self.to.write_all(&[0; 2 * BLOCK])?;
        Ok(self.to)
    }

    fn pad(&mut self) -> io::Result<()> {
        if self.owed == 0 {
            self.to.write_all(&[0; BLOCK][..self.padding])?;
            self.padding = 0;
        }
        Ok(())
    }
}

/// The block of a member and the records for what the block cannot say.
fn describe(member: &Member, size: u64) -> (Header, Vec<u8>) {
    let mut header = Header {
        mode: member.attributes.mode,
        uid: member.attributes.uid.into(),
        gid: member.attributes.gid.into(),
        size,
        ..Header::default()
    };
    let (mut path, mut link) = (member.path.clone(), &[][..]);
    header.typeflag = match &member.body {
        Body::File { .. } | Body::Sparse { .. } => b'0',
        Body::HardLink(target) => {
            link = target;
            b'1'
        }
        Body::Symlink(target) => {
            link = target;
            b'2'
        }
        Body::CharDevice { major, minor } => {
            (header.major, header.minor) = (*major, *minor);
            b'3'
        }
        Body::BlockDevice { major, minor } => {
            (header.major, header.minor) = (*major, *minor);
            b'4'
        }
        Body::Directory => {
            path.extend_from_slice(if path.is_empty() { b"./" } else { b"/" });
            b'5'
        }
        Body::Fifo => b'6',
    };

    let mut list = Vec::new();
    match member.body {
        Body::Sparse { size, .. } => {
            header.name = b"GNUSparseFile.0/file".to_vec();
            records::push(&mut list, b"GNU.sparse.major", b"1");
            records::push(&mut list, b"GNU.sparse.minor", b"0");
            records::push(&mut list, b"GNU.sparse.name", &path);
            records::push(
                &mut list,
                b"GNU.sparse.realsize",
                size.to_string().as_bytes(),
            );
        }
        _ => header.name = name_field(&mut list, b"path", &path),
    }
    header.link = name_field(&mut list, b"linkpath", link);
    for (key, value, max) in [
        ("uid", header.uid, MAX_SHORT),
        ("gid", header.gid, MAX_SHORT),
        ("size", header.size, MAX_LONG),
    ] {
        if value > max {
            records::push(&mut list, key.as_bytes(), value.to_string().as_bytes());
        }
    }
    let mtime = member.attributes.mtime;
    match u64::try_from(mtime.seconds) {
        Ok(seconds) if seconds <= MAX_LONG && mtime.nanos == 0 => header.mtime = seconds,
        seconds => {
            header.mtime = seconds.unwrap_or(0);
            records::push(&mut list, b"mtime", mtime.to_string().as_bytes());
        }
    }
    for xattr in &member.xattrs {
        let key = records::xattr_key(xattr.name.as_bytes());
        records::push(&mut list, &key, xattr.value.as_bytes());
    }
    (header, list)
}

/// A name for the block if it fits and is ASCII; a record says any other, and
/// the block has an ASCII remnant of it for tools that know no records. Names
/// that are no UTF-8 are written as they are, as GNU tar does: it warns of the
/// `hdrcharset` record that POSIX has for them.
fn name_field(list: &mut Vec<u8>, key: &[u8], name: &[u8]) -> Vec<u8> {
    if name.len() <= MAX_NAME && name.is_ascii() {
        return name.to_vec();
    }
    records::push(list, key, name);
    let ascii = |byte: &u8| if byte.is_ascii() { *byte } else { b'_' };
    name.iter().take(MAX_NAME).map(ascii).collect()
}

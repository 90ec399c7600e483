//! Reading an archive. The bytes may be anything: no input panics or takes more
//! memory than the limits allow.

use std::io::{self, Read};

use crate::header::Header;
use crate::{Attributes, BLOCK, Body, LimitKind, Limits, Member, Mtime, PaxError, Xattr};
use crate::{padding, records, sparse};

/// Reads an archive, member by member.
#[derive(Debug)]
pub struct Reader<R> {
    from: R,
    limits: Limits,
    /// Bytes of data left in the current member, and the padding after it.
    left: u64,
    padding: usize,
    ended: bool,
    foreign: bool,
}

impl<R: Read> Reader<R> {
    /// Begins to read. The limits hold for each member by itself.
    pub fn new(from: R, limits: Limits) -> Self {
        Self {
            from,
            limits,
            left: 0,
            padding: 0,
            ended: false,
            foreign: false,
        }
    }

    /// The same for archives that other tools wrote: also GNU tar's older format,
    /// with its long names, and headers for a whole archive, which are skipped.
    pub fn foreign(from: R, limits: Limits) -> Self {
        Self {
            foreign: true,
            ..Self::new(from, limits)
        }
    }

    /// The next member, `None` at the end. What was not read of the last one is
    /// skipped.
    pub fn member(&mut self) -> Result<Option<Member>, PaxError> {
        if self.ended {
            return Ok(None);
        }
        self.skip()?;
        let mut extended = None;
        let (mut long_name, mut long_link) = (None, None);
        loop {
            let Some(mut header) = self.header()? else {
                if extended.is_some() || long_name.is_some() || long_link.is_some() {
                    return Err(PaxError::Malformed("ends after a PAX header"));
                }
                self.end()?;
                return Ok(None);
            };
            if header.typeflag == b'x' {
                if extended.is_some() {
                    return Err(PaxError::Malformed("has two PAX headers in a row"));
                }
                extended = Some(self.records(header.size)?);
                continue;
            }
            if self.foreign {
                match header.typeflag {
                    b'L' => {
                        long_name = Some(self.long(header.size)?);
                        continue;
                    }
                    b'K' => {
                        long_link = Some(self.long(header.size)?);
                        continue;
                    }
                    b'g' => {
                        self.records(header.size)?;
                        continue;
                    }
                    b'7' => header.typeflag = b'0',
                    _ => {}
                }
                if let Some(name) = long_name.take() {
                    header.name = name;
                }
                if let Some(link) = long_link.take() {
                    header.link = link;
                }
            }
            let pairs = records::parse(extended.as_deref().unwrap_or_default())?;
            return self.assemble(header, &pairs).map(Some);
        }
    }

    /// Reads bytes of the current member's content; 0 at its end.
    pub fn data(&mut self, buffer: &mut [u8]) -> Result<usize, PaxError> {
        if self.left == 0 || buffer.is_empty() {
            return Ok(0);
        }
        let want = usize::try_from(self.left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let got = match self.from.read(&mut buffer[..want]) {
            Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            got => got?,
        };
        self.left -= got as u64;
        Ok(got)
    }

    /// Bytes of the current member's content that were not read yet.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// The stream, as far as it was read.
    pub fn into_inner(self) -> R {
        self.from
    }

    fn skip(&mut self) -> Result<(), PaxError> {
        let mut buffer = [0; 8 * BLOCK];
        while self.left > 0 {
            self.data(&mut buffer)?;
        }
        let padding = std::mem::take(&mut self.padding);
        self.from.read_exact(&mut buffer[..padding])?;
        Ok(())
    }

    /// One block; `None` if it is all zeros.
    fn header(&mut self) -> Result<Option<Header>, PaxError> {
        let mut block = [0; BLOCK];
        self.from.read_exact(&mut block)?;
        if block == [0; BLOCK] {
            return Ok(None);
        }
        Header::decode(&block, self.foreign).map(Some)
    }

    /// After the first block of zeros: another, then nothing but zeros.
    fn end(&mut self) -> Result<(), PaxError> {
        let mut block = [0; BLOCK];
        self.from.read_exact(&mut block)?;
        loop {
            if block.iter().any(|byte| *byte != 0) {
                return Err(PaxError::Malformed("goes on after its end"));
            }
            match self.from.read(&mut block) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.ended = true;
        Ok(())
    }

    /// A name of GNU tar's older format, which ends with NUL.
    fn long(&mut self, size: u64) -> Result<Vec<u8>, PaxError> {
        let mut name = self.records(size)?;
        if name.last() == Some(&0) {
            name.pop();
        }
        Ok(name)
    }

    fn records(&mut self, size: u64) -> Result<Vec<u8>, PaxError> {
        // Room for the attributes, for both names and for the other records.
        let limit = self.limits.entry_bytes + 2 * self.limits.path_bytes + 4096;
        if size > limit {
            return Err(PaxError::Limit {
                which: LimitKind::EntryBytes,
                limit: self.limits.entry_bytes,
            });
        }
        // Grows with what is there, not with what is claimed.
        let mut records = Vec::new();
        (&mut self.from).take(size).read_to_end(&mut records)?;
        if records.len() as u64 != size {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let mut rest = [0; BLOCK];
        self.from.read_exact(&mut rest[..padding(size)])?;
        Ok(records)
    }

    fn assemble(
        &mut self,
        header: Header,
        pairs: &[records::Record<'_>],
    ) -> Result<Member, PaxError> {
        let mut names = Names {
            path: header.name,
            link: header.link,
        };
        let mut numbers = [header.uid, header.gid, header.size];
        let seconds = i64::try_from(header.mtime).unwrap_or(i64::MAX);
        let mut mtime = Mtime { seconds, nanos: 0 };
        let mut holes = Holes::default();
        let mut xattrs = Vec::new();
        for (key, value) in pairs {
            match *key {
                b"path" => names.path = value.to_vec(),
                b"linkpath" => names.link = value.to_vec(),
                b"uid" => numbers[0] = records::decimal(value)?,
                b"gid" => numbers[1] = records::decimal(value)?,
                b"size" => numbers[2] = records::decimal(value)?,
                b"mtime" => mtime = time(value)?,
                b"GNU.sparse.major" => holes.major = Some(records::decimal(value)?),
                b"GNU.sparse.minor" => holes.minor = Some(records::decimal(value)?),
                b"GNU.sparse.name" => holes.name = Some(value.to_vec()),
                b"GNU.sparse.realsize" => holes.size = Some(records::decimal(value)?),
                key if key.starts_with(b"GNU.sparse.") => {
                    return Err(PaxError::Malformed("has a sparse file of another format"));
                }
                key => {
                    let Some(name) = records::xattr_name(key) else {
                        continue;
                    };
                    if name.is_empty() || name.contains(&0) {
                        return Err(PaxError::Malformed("has an attribute with a bad name"));
                    }
                    xattrs.push(Xattr {
                        name: name.into(),
                        value: (*value).into(),
                    });
                }
            }
        }
        if let Some(name) = holes.name.take() {
            names.path = name;
        }
        let directory = header.typeflag == b'5';
        let names = names.checked(directory, self.limits.path_bytes)?;
        let owner = |number| {
            u32::try_from(number).map_err(|_| PaxError::Malformed("has an owner out of range"))
        };
        let attributes = Attributes {
            mode: header.mode & 0o7777,
            uid: owner(numbers[0])?,
            gid: owner(numbers[1])?,
            mtime,
        };
        if matches!(header.typeflag, b'1' | b'2') && names.link.is_empty() {
            return Err(PaxError::Malformed("has a link without a target"));
        }
        let size = numbers[2];
        let (major, minor) = (header.major, header.minor);
        let body = match header.typeflag {
            b'0' | 0 => match holes.size()? {
                Some(whole) => {
                    let limit = self.limits.entry_bytes;
                    let (segments, map) = sparse::decode(&mut self.from, whole, size, limit)?;
                    self.left = size - map;
                    Body::Sparse {
                        size: whole,
                        segments,
                    }
                }
                None => {
                    self.left = size;
                    Body::File { size }
                }
            },
            b'1' => Body::HardLink(names.link),
            b'2' => Body::Symlink(names.link),
            b'3' => Body::CharDevice { major, minor },
            b'4' => Body::BlockDevice { major, minor },
            b'5' => Body::Directory,
            b'6' => Body::Fifo,
            _ => return Err(PaxError::Malformed("has a member of an unknown kind")),
        };
        if size > 0 && !matches!(body, Body::File { .. } | Body::Sparse { .. }) {
            return Err(PaxError::Malformed("has data in a member that is no file"));
        }
        self.padding = padding(self.left);
        Ok(Member {
            path: names.path,
            attributes,
            xattrs,
            body,
        })
    }
}

struct Names {
    path: Vec<u8>,
    link: Vec<u8>,
}

impl Names {
    fn checked(mut self, directory: bool, limit: u64) -> Result<Self, PaxError> {
        for name in [&self.path, &self.link] {
            if name.len() as u64 > limit {
                return Err(PaxError::Limit {
                    which: LimitKind::PathBytes,
                    limit,
                });
            }
            if name.contains(&0) {
                return Err(PaxError::Malformed("has a name with a zero byte"));
            }
        }
        if self.path.is_empty() {
            return Err(PaxError::Malformed("has a member without a name"));
        }
        if self.path == b"./" {
            return Ok(Self {
                path: Vec::new(),
                link: self.link,
            });
        }
        if self.path.starts_with(b"./") {
            self.path.drain(..2);
        }
        if directory && self.path.len() > 1 && self.path.ends_with(b"/") {
            self.path.pop();
        }
        Ok(self)
    }
}

#[derive(Default)]
struct Holes {
    major: Option<u64>,
    minor: Option<u64>,
    name: Option<Vec<u8>>,
    size: Option<u64>,
}

impl Holes {
    /// The length of the whole file if the member is one with holes.
    fn size(&self) -> Result<Option<u64>, PaxError> {
        match (self.major, self.minor, self.size) {
            (None, None, None) => Ok(None),
            (Some(1), Some(0), Some(size)) => Ok(Some(size)),
            _ => Err(PaxError::Malformed("has a sparse file of another format")),
        }
    }
}

fn time(value: &[u8]) -> Result<Mtime, PaxError> {
    std::str::from_utf8(value)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or(PaxError::Malformed("has a malformed time"))
}

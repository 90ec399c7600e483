//! The map before the data of a file with holes, GNU sparse format 1.0: decimal
//! numbers, each on a line: how many segments, then offset and length of each,
//! padded to a block.

use std::io::Read;

use crate::{BLOCK, LimitKind, PaxError, Segment, padding, records};

const MALFORMED: PaxError = PaxError::Malformed("has a malformed map of holes");

/// Writes the map. A hole at the end is marked by an empty segment there, as
/// GNU tar does and wants.
pub(crate) fn encode(size: u64, segments: &[Segment]) -> Vec<u8> {
    let end = segments.last().map_or(0, |last| last.offset + last.length);
    let marker = (end < size).then_some(Segment {
        offset: size,
        length: 0,
    });
    let count = segments.len() + usize::from(marker.is_some());
    let mut map = format!("{count}\n").into_bytes();
    for segment in segments.iter().chain(&marker) {
        map.extend_from_slice(format!("{}\n{}\n", segment.offset, segment.length).as_bytes());
    }
    map.resize(map.len() + padding(map.len() as u64), 0);
    map
}

/// Reads the map of a file of `size` bytes whose member has `available` bytes
/// of map and data. Returns the segments and how long the map was.
pub(crate) fn decode(
    from: &mut impl Read,
    size: u64,
    available: u64,
    limit: u64,
) -> Result<(Vec<Segment>, u64), PaxError> {
    let mut numbers = Numbers {
        from,
        block: [0; BLOCK],
        at: BLOCK,
        taken: 0,
        available,
        limit,
    };
    let count = numbers.next()?;
    let mut segments: Vec<Segment> = Vec::new();
    let mut end = 0_u64;
    for _ in 0..count {
        let (offset, length) = (numbers.next()?, numbers.next()?);
        let after = offset.checked_add(length).ok_or(MALFORMED)?;
        if offset < end || after > size {
            return Err(MALFORMED);
        }
        end = after;
        match segments.last_mut() {
            _ if length == 0 => {}
            Some(last) if last.offset + last.length == offset => last.length += length,
            _ => segments.push(Segment { offset, length }),
        }
    }
    let stored: u64 = segments.iter().map(|segment| segment.length).sum();
    if numbers.taken.checked_add(stored) != Some(available) {
        return Err(MALFORMED);
    }
    Ok((segments, numbers.taken))
}

struct Numbers<'a, R> {
    from: &'a mut R,
    block: [u8; BLOCK],
    at: usize,
    taken: u64,
    available: u64,
    limit: u64,
}

impl<R: Read> Numbers<'_, R> {
    fn next(&mut self) -> Result<u64, PaxError> {
        let mut digits = Vec::with_capacity(20);
        loop {
            match self.byte()? {
                b'\n' => return records::decimal(&digits).map_err(|_| MALFORMED),
                _ if digits.len() == 20 => return Err(MALFORMED),
                digit => digits.push(digit),
            }
        }
    }

    fn byte(&mut self) -> Result<u8, PaxError> {
        if self.at == BLOCK {
            let taken = self.taken + BLOCK as u64;
            if taken > self.available {
                return Err(MALFORMED);
            }
            if taken > self.limit {
                return Err(PaxError::Limit {
                    which: LimitKind::EntryBytes,
                    limit: self.limit,
                });
            }
            self.from.read_exact(&mut self.block)?;
            (self.taken, self.at) = (taken, 0);
        }
        self.at += 1;
        Ok(self.block[self.at - 1])
    }
}

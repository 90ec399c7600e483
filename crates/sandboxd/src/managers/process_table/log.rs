//! What a process wrote: the tail of both streams in the order of arrival.

use std::collections::VecDeque;

/// Pieces shorter than this grow by what follows on the same stream, so that many tiny
/// writes do not cost a piece each.
const GROW_TO: usize = 4096;
/// The most pieces kept.
const PIECES_MAX: usize = 65_536;

/// Which stream something was written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Source {
    /// The stream's name in events.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// What one stream wrote at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Where.
    pub source: Source,
    /// What.
    pub bytes: Vec<u8>,
    /// Whether output before it was dropped before it could be read.
    pub gap: bool,
}

/// A place in a log. The default is its very start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cursor {
    piece: u64,
    offset: usize,
}

/// The tail of what a process wrote.
#[derive(Debug, Default)]
pub struct Log {
    pieces: VecDeque<Piece>,
    /// The number of the first piece kept.
    first: u64,
    bytes: usize,
    dropped: [u64; 2],
}

impl Log {
    /// Adds output; drops the oldest beyond `limit` bytes.
    pub fn push(&mut self, source: Source, bytes: &[u8], limit: usize) {
        match self.pieces.back_mut() {
            Some(last) if last.source == source && last.bytes.len() < GROW_TO => {
                last.bytes.extend_from_slice(bytes);
            }
            _ => self.pieces.push_back(Piece {
                source,
                bytes: bytes.to_vec(),
                gap: false,
            }),
        }
        self.bytes += bytes.len();
        self.trim(limit);
    }

    /// Drops the oldest pieces until at most `limit` bytes are left, but never the last piece.
    pub fn trim(&mut self, limit: usize) {
        while self.pieces.len() > 1 && (self.bytes > limit || self.pieces.len() > PIECES_MAX) {
            let Some(piece) = self.pieces.pop_front() else {
                return;
            };
            self.first += 1;
            self.bytes -= piece.bytes.len();
            self.dropped[index(piece.source)] += piece.bytes.len() as u64;
        }
    }

    /// How many bytes of a stream were dropped.
    #[must_use]
    pub fn dropped(&self, source: Source) -> u64 {
        self.dropped[index(source)]
    }

    /// What is kept.
    pub fn pieces(&self) -> impl Iterator<Item = &Piece> {
        self.pieces.iter()
    }

    /// What follows `cursor`, one piece at a time, and moves the cursor past it.
    pub fn next(&self, cursor: &mut Cursor) -> Option<Piece> {
        let gap = cursor.piece < self.first;
        if gap {
            *cursor = Cursor {
                piece: self.first,
                offset: 0,
            };
        }
        loop {
            let piece = self
                .pieces
                .get(usize::try_from(cursor.piece - self.first).ok()?)?;
            if let Some(rest) = piece
                .bytes
                .get(cursor.offset..)
                .filter(|rest| !rest.is_empty())
            {
                cursor.offset += rest.len();
                return Some(Piece {
                    source: piece.source,
                    bytes: rest.to_vec(),
                    gap,
                });
            }
            // The last piece may still grow; only a later one proves that it does not.
            let last = self.first + self.pieces.len() as u64 - 1;
            if cursor.piece >= last {
                return None;
            }
            *cursor = Cursor {
                piece: cursor.piece + 1,
                offset: 0,
            };
        }
    }
}

fn index(source: Source) -> usize {
    match source {
        Source::Stdout => 0,
        Source::Stderr => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BIG: usize = 1 << 20;

    #[test]
    fn a_follower_sees_everything_once_and_in_order() {
        let (mut log, mut cursor, mut seen) = (Log::default(), Cursor::default(), Vec::new());
        for turn in 0..1000_u32 {
            let source = if turn % 7 == 0 {
                Source::Stderr
            } else {
                Source::Stdout
            };
            log.push(source, &turn.to_be_bytes(), BIG);
            if turn % 3 == 0 {
                while let Some(piece) = log.next(&mut cursor) {
                    seen.extend(piece.bytes);
                }
            }
        }
        let expected: Vec<u8> = (0..1000_u32).flat_map(u32::to_be_bytes).collect();
        assert_eq!(seen, expected);
        assert_eq!(log.next(&mut cursor), None);
    }

    #[test]
    fn the_oldest_is_dropped_and_counted() {
        let mut log = Log::default();
        log.push(Source::Stderr, &[1; 5000], 12_000);
        log.push(Source::Stdout, &[2; 5000], 12_000);
        log.push(Source::Stdout, &[3; 5000], 12_000);
        assert_eq!(
            (log.dropped(Source::Stderr), log.dropped(Source::Stdout)),
            (5000, 0)
        );
        let mut cursor = Cursor::default();
        assert_eq!(log.next(&mut cursor).map(|piece| piece.bytes[0]), Some(2));
    }
}

//! Which parts of a file are not holes.

use std::os::fd::BorrowedFd;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use hutch_pax::Segment;

/// Above this many segments, small holes are stored as zeros.
const MOST: usize = 1 << 16;

/// The parts of a file of `size` bytes that are not holes.
pub(crate) fn segments(file: BorrowedFd<'_>, size: u64) -> Result<Vec<Segment>, Errno> {
    let mut segments: Vec<Segment> = Vec::new();
    let mut smallest_hole = 1;
    let mut at = 0;
    while at < size {
        let start = match seek(file, SeekFrom::Data(at)) {
            Ok(start) if start < size => start,
            Ok(_) | Err(Errno::NXIO) => break,
            Err(error) => return Err(error),
        };
        // Cut off meanwhile: what is not there is padded when it is read.
        let end = match seek(file, SeekFrom::Hole(start)) {
            Ok(end) => end.min(size),
            Err(Errno::NXIO) => size,
            Err(error) => return Err(error),
        };
        push(&mut segments, start, end, smallest_hole);
        if segments.len() > MOST {
            smallest_hole *= 2;
            let all = std::mem::take(&mut segments);
            for segment in all {
                let end = segment.offset + segment.length;
                push(&mut segments, segment.offset, end, smallest_hole);
            }
        }
        at = end.max(start + 1);
    }
    Ok(segments)
}

fn push(segments: &mut Vec<Segment>, start: u64, end: u64, smallest_hole: u64) {
    match segments.last_mut() {
        Some(last) if start < last.offset + last.length + smallest_hole => {
            last.length = end - last.offset;
        }
        _ if end > start => segments.push(Segment {
            offset: start,
            length: end - start,
        }),
        _ => {}
    }
}

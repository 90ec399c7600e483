//! One call for a fuzzer.

use crate::{Body, Limits, PaxError, Reader};

/// Reads all of an archive from memory, contents too, and returns how many
/// members and bytes of content it had. For fuzzing: whatever the bytes are,
/// this returns, in time and memory that follow their length.
pub fn read(bytes: &[u8], limits: Limits) -> Result<(u64, u64), PaxError> {
    let mut reader = Reader::new(bytes, limits);
    let (mut members, mut content) = (0_u64, 0_u64);
    let mut buffer = [0; 4096];
    while let Some(member) = reader.member()? {
        members += 1;
        let stored = reader.left();
        debug_assert_eq!(stored, member.body.stored());
        if let Body::Sparse { size, segments } = &member.body {
            debug_assert!(
                segments
                    .iter()
                    .all(|part| part.offset + part.length <= *size)
            );
        }
        loop {
            match reader.data(&mut buffer)? {
                0 => break,
                got => content += got as u64,
            }
        }
    }
    Ok((members, content))
}

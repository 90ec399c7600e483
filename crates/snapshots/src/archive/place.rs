//! Where a member of an archive may go.

/// Splits the path of a member into that of its directory and its name, or
/// says why it may not be unpacked.
pub(crate) fn split(path: &[u8]) -> Result<(&[u8], &[u8]), &'static str> {
    if path.starts_with(b"/") {
        return Err("has an absolute path");
    }
    for name in path.split(|byte| *byte == b'/') {
        match name {
            b"" => return Err("has a path with an empty name"),
            b"." | b".." => return Err("has a path with a dot name"),
            name if name.len() > 255 => return Err("has a name over 255 bytes"),
            _ => {}
        }
    }
    Ok(match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&[], path),
    })
}

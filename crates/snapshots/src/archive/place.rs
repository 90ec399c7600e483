//! Where a member of an archive may go.

/// Splits a path from an archive into that of its directory and its name, or
/// says why it may not be used.
pub(crate) fn split(path: &[u8]) -> Result<(&[u8], &[u8]), &'static str> {
    if path.starts_with(b"/") {
        return Err("has an absolute path");
    }
    for name in path.split(|byte| *byte == b'/') {
        check(name)?;
    }
    Ok(match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&[], path),
    })
}

/// [`split`] for a path that is likely below `known`, which was checked before.
pub(crate) fn split_below<'a>(
    path: &'a [u8],
    known: &[u8],
) -> Result<(&'a [u8], &'a [u8]), &'static str> {
    match path
        .strip_prefix(known)
        .and_then(|rest| rest.strip_prefix(b"/"))
    {
        Some(name) if !known.is_empty() && !name.contains(&b'/') => {
            check(name)?;
            Ok((&path[..known.len()], name))
        }
        _ => split(path),
    }
}

fn check(name: &[u8]) -> Result<(), &'static str> {
    match name {
        b"" => Err("has a path with an empty name"),
        b"." | b".." => Err("has a path with a dot name"),
        name if name.len() > 255 => Err("has a name over 255 bytes"),
        _ => Ok(()),
    }
}

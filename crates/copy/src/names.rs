//! Names of members, which the sender chose.

use crate::CopyError;

/// The parts of a member's name, checked: relative, and never upwards.
pub(crate) fn parts(name: &[u8]) -> Result<Vec<&[u8]>, CopyError> {
    if name.starts_with(b"/") {
        return Err(CopyError::refused(name, "has an absolute name"));
    }
    let parts = name.split(|byte| *byte == b'/');
    let parts: Vec<_> = parts.filter(|part| !matches!(*part, b"" | b".")).collect();
    if parts.contains(&&b".."[..]) {
        return Err(CopyError::refused(name, "has a name that leads upwards"));
    }
    Ok(parts)
}

/// Where members of an archive go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// The one name that all members lie below; it is taken off.
    pub(crate) root: Option<Vec<u8>>,
    /// What is put before the rest.
    pub(crate) prefix: Option<Vec<u8>>,
}

impl Mapping {
    /// The path below the base that a member's name stands for; empty for the
    /// base itself.
    pub(crate) fn place(&self, name: &[u8]) -> Result<Vec<u8>, CopyError> {
        let mut parts = parts(name)?;
        if let Some(root) = &self.root {
            if parts.first() != Some(&root.as_slice()) {
                return Err(CopyError::refused(name, "holds what was not asked for"));
            }
            parts.remove(0);
        }
        if let Some(prefix) = &self.prefix {
            parts.insert(0, prefix);
        }
        Ok(parts.join(&b'/'))
    }
}

/// A path's directory and its last name.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        assert_eq!(parts(b"./a//b/.").unwrap(), [b"a", b"b"]);
        assert!(parts(b"").unwrap().is_empty());
        for name in [&b"/a"[..], b"..", b"a/..", b"a/../../b", b"./.."] {
            assert!(parts(name).is_err(), "{}", name.escape_ascii());
        }
    }

    #[test]
    fn only_what_lies_below_the_root_is_placed() {
        let mapping = Mapping {
            root: Some(b"a".to_vec()),
            prefix: Some(b"n".to_vec()),
        };
        assert_eq!(mapping.place(b"a").unwrap(), b"n");
        assert_eq!(mapping.place(b"a/b/c").unwrap(), b"n/b/c");
        assert!(mapping.place(b"b").is_err());
        assert!(mapping.place(b"").is_err());
        assert_eq!(Mapping::default().place(b"a/b").unwrap(), b"a/b");
    }
}

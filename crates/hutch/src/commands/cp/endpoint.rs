//! The two ends of a copy, as they are typed.

use crate::failure::Failure;
use std::path::PathBuf;

/// One end.
#[derive(Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A path in a sandbox, absolute.
    Sandbox {
        /// Name of the sandbox.
        name: String,
        /// The path, with what it ends in kept.
        path: String,
    },
    /// A path on this machine.
    Local(PathBuf),
    /// `-`: standard output or input.
    Stdout,
}

impl Endpoint {
    /// Reads `NAME:PATH`, a local path, or `-`. What begins with `/` or `.` is local.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        if text == "-" {
            return Ok(Self::Stdout);
        }
        if text.is_empty() {
            return Err(Failure::usage("an end of the copy is empty"));
        }
        if text.starts_with("/sandboxes/") && text.contains(':') {
            return Self::sandbox(text);
        }
        if text.starts_with(['/', '.']) || !text.contains(':') {
            return Ok(Self::Local(PathBuf::from(text)));
        }
        Self::sandbox(text)
    }

    fn sandbox(text: &str) -> Result<Self, Failure> {
        let (name, path) = text.split_once(':').unwrap_or((text, ""));
        if name.is_empty() || path.is_empty() {
            return Err(Failure::usage(format!(
                "`{text}` is not NAME:PATH, such as main:/workspace; a local path with a colon is written ./{text}"
            )));
        }
        Ok(Self::Sandbox {
            name: name.to_owned(),
            path: cleaned(path),
        })
    }
}

/// The path made absolute, without `.`, `..` and doubled slashes, except for the
/// `/` or `/.` at its end, which mean something.
fn cleaned(path: &str) -> String {
    let whole = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/workspace/{path}")
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let last = whole.rsplit('/').next().unwrap_or_default();
    let end = match last {
        _ if parts.is_empty() => "",
        "" => "/",
        "." => "/.",
        _ => "",
    };
    format!("/{}{end}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn ends_are_told_apart_as_docker_does() {
        let inside = |name: &str, path: &str| Endpoint::Sandbox {
            name: name.into(),
            path: path.into(),
        };
        for (text, end) in [
            ("-", Endpoint::Stdout),
            ("a", Endpoint::Local("a".into())),
            ("./a:b", Endpoint::Local("./a:b".into())),
            ("/a:b", Endpoint::Local("/a:b".into())),
            ("main:/a", inside("main", "/a")),
            ("main:a:b", inside("main", "/workspace/a:b")),
            ("/sandboxes/main:/a", inside("/sandboxes/main", "/a")),
        ] {
            assert_eq!(Endpoint::parse(text).unwrap(), end, "{text}");
        }
        for text in ["", ":", "main:", ":/a"] {
            assert!(Endpoint::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_a_path_ends_in_is_kept() {
        for (path, clean) in [
            ("/", "/"),
            ("/.", "/"),
            ("/a/./b", "/a/b"),
            ("/a//b/", "/a/b/"),
            ("/a/.", "/a/."),
            ("/a/..", "/"),
            ("/a/b/..", "/a"),
            ("../../x", "/x"),
            (".", "/workspace/."),
            ("b", "/workspace/b"),
        ] {
            assert_eq!(cleaned(path), clean, "{path}");
        }
    }
}

//! Paths: the names and indices that lead from an object to one of its parts.

use std::fmt::Write as _;

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    /// A property.
    Name(String),
    /// An element of an array.
    Index(u64),
}

/// The steps from an object to one of its parts. Empty means the object itself.
pub type Path = Vec<Key>;

/// What can name a path: `"a.b"`, a list of names, or a [`Path`].
pub trait IntoPath {
    /// The steps. The empty string has none.
    fn into_path(self) -> Path;
}

impl IntoPath for Path {
    fn into_path(self) -> Path {
        self
    }
}

impl IntoPath for &Path {
    fn into_path(self) -> Path {
        self.clone()
    }
}

impl IntoPath for &str {
    fn into_path(self) -> Path {
        if self.is_empty() {
            return Path::new();
        }
        self.split('.')
            .map(|name| Key::Name(name.to_owned()))
            .collect()
    }
}

impl IntoPath for String {
    fn into_path(self) -> Path {
        self.as_str().into_path()
    }
}

impl IntoPath for &String {
    fn into_path(self) -> Path {
        self.as_str().into_path()
    }
}

impl IntoPath for () {
    fn into_path(self) -> Path {
        Path::new()
    }
}

impl IntoPath for &[&str] {
    fn into_path(self) -> Path {
        self.iter()
            .map(|name| Key::Name((*name).to_owned()))
            .collect()
    }
}

impl<const N: usize> IntoPath for [&str; N] {
    fn into_path(self) -> Path {
        self.as_slice().into_path()
    }
}

/// The path as it reads in a message: `a.b[3]`.
pub fn display_path(path: &[Key]) -> String {
    let mut text = String::new();
    for key in path {
        match key {
            Key::Name(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            Key::Index(index) => {
                // Writing to a string cannot fail.
                let _ = write!(text, "[{index}]");
            }
        }
    }
    text
}

/// Whether a name belongs to every JavaScript object. Such a key is dropped
/// from received objects, and a path over it leads to `undefined`.
pub(crate) fn is_reserved(name: &str) -> bool {
    matches!(
        name,
        "__defineGetter__"
            | "__defineSetter__"
            | "__lookupGetter__"
            | "__lookupSetter__"
            | "__proto__"
            | "constructor"
            | "hasOwnProperty"
            | "isPrototypeOf"
            | "propertyIsEnumerable"
            | "toJSON"
            | "toLocaleString"
            | "toString"
            | "valueOf"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_separate_names() {
        assert_eq!("".into_path(), Path::new());
        assert_eq!(
            display_path(&"commands.execute".into_path()),
            "commands.execute"
        );
        assert_eq!(
            display_path(&[Key::Name("a".into()), Key::Index(3)]),
            "a[3]"
        );
    }
}

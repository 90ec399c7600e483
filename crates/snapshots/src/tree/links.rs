//! Which files were seen before under another name.

use std::collections::HashMap;

/// A name in a directory, which is given by its number.
type Place = (usize, Box<[u8]>);

/// The first path of each file that has several. Paths are kept as chains of
/// names, so deep trees take memory by their entries, not by their paths.
#[derive(Debug)]
pub(crate) struct Links {
    directories: Vec<Place>,
    files: HashMap<(u64, u64), Place>,
}

impl Links {
    /// Knows the root, directory 0.
    pub(crate) fn new() -> Self {
        Self {
            directories: vec![(0, Box::default())],
            files: HashMap::new(),
        }
    }

    /// Adds a directory and returns its number.
    pub(crate) fn directory(&mut self, parent: usize, name: &[u8]) -> usize {
        self.directories.push((parent, name.into()));
        self.directories.len() - 1
    }

    /// The first path of a file; the first call for a file gives it its path
    /// and returns nothing.
    pub(crate) fn seen(
        &mut self,
        identity: (u64, u64),
        parent: usize,
        name: &[u8],
    ) -> Option<Vec<u8>> {
        let Some((parent, name)) = self.files.get(&identity) else {
            self.files.insert(identity, (parent, name.into()));
            return None;
        };
        let mut names: Vec<&[u8]> = vec![name];
        let mut at = *parent;
        while at != 0 {
            let (above, name) = &self.directories[at];
            names.push(name);
            at = *above;
        }
        names.reverse();
        Some(names.join(&b'/'))
    }
}

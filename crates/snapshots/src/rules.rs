//! What of a tree is kept.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Which entries of a tree are left out. Sockets and device nodes are left out
/// always: a socket means nothing without its process, and a sandbox cannot
/// make devices. The one exception is the character device 0/0, which is how an
/// overlay says "deleted".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    node_modules: bool,
}

impl Rules {
    /// What sleeping keeps of `/workspace`: all but directories named
    /// `node_modules`, at any depth. A file or link of that name is kept.
    pub const fn workspace() -> Self {
        Self { node_modules: true }
    }

    /// Keeps everything.
    pub const fn everything() -> Self {
        Self {
            node_modules: false,
        }
    }

    /// The rules by name, as the manifest records them.
    pub fn names(&self) -> Vec<String> {
        let mut names = vec!["sockets".to_owned(), "devices".to_owned()];
        if self.node_modules {
            names.push("node_modules".to_owned());
        }
        names
    }

    pub(crate) fn leaves_out_directory(&self, name: &[u8]) -> bool {
        self.node_modules && OsStr::from_bytes(name) == "node_modules"
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self::workspace()
    }
}

//! Trees through archives, honest ones and others.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod hostile;
mod rules;
mod tools;

use super::*;
use hutch_pax::{Attributes, Body, Member, Mtime, Writer};
use std::path::Path;

pub(super) const MINE: Owners = Owners {
    keep: false,
    set_id: false,
};

/// The archive of a path.
pub(super) fn packed(path: &Path) -> Vec<u8> {
    let source = Source::open(path, false).unwrap();
    pack(&source, Vec::new()).unwrap().1
}

/// A member, with as much data as its body says.
pub(super) fn member(path: &str, body: Body) -> Member {
    Member {
        path: path.into(),
        attributes: Attributes {
            mode: 0o644,
            uid: 0,
            gid: 0,
            mtime: Mtime {
                seconds: 1,
                nanos: 0,
            },
        },
        xattrs: Vec::new(),
        body,
    }
}

/// An archive of these members.
pub(super) fn archive(members: &[Member]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new());
    for member in members {
        writer.member(member).unwrap();
        let stored = usize::try_from(member.body.stored()).unwrap();
        writer.data(&vec![b'x'; stored]).unwrap();
    }
    writer.finish().unwrap()
}

/// Names of a directory, sorted.
pub(super) fn names(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

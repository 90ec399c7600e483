//! What holds for all trees.
#![allow(clippy::unwrap_used)]

mod trees;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use trees::{Fixture, assert_same};

#[derive(Debug, Clone)]
enum Node {
    Directory(Vec<(Vec<u8>, Node, u32, i64, u32)>),
    File(Vec<u8>),
    Sparse(u64, Vec<(u64, Vec<u8>)>),
    Symlink(Vec<u8>),
    Fifo,
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    let byte = any::<u8>().prop_filter("in a name", |byte| *byte != 0 && *byte != b'/');
    let any = vec(byte, 1..40).prop_filter("dots", |name| name != b"." && name != b"..");
    prop_oneof![
        "[a-c.]{1,3}"
            .prop_map(String::into_bytes)
            .prop_filter("dots", |name| name != b"." && name != b".."),
        any,
        Just(vec![b'n'; 255]),
    ]
}

fn node() -> impl Strategy<Value = Node> {
    let target = vec(1_u8.., 1..200);
    let part = (0_u64..200_000, vec(any::<u8>(), 1..5000));
    let leaf = prop_oneof![
        vec(any::<u8>(), 0..2000).prop_map(Node::File),
        (0_u64..300_000, vec(part, 0..4)).prop_map(|(size, parts)| Node::Sparse(size, parts)),
        target.prop_map(Node::Symlink),
        Just(Node::Fifo),
    ];
    leaf.prop_recursive(4, 30, 6, |inner| {
        let nanos = 0_u32..1_000_000_000;
        let child = (inner, 0_u32..0o10000, -1000_i64..10_000_000_000, nanos);
        btree_map(name(), child, 0..6).prop_map(|children| {
            let child = |(name, (node, mode, seconds, nanos))| (name, node, mode, seconds, nanos);
            Node::Directory(children.into_iter().map(child).collect())
        })
    })
}

fn build(path: &Path, node: &Node) {
    match node {
        Node::Directory(children) => {
            fs::create_dir_all(path).unwrap();
            for (name, node, mode, seconds, nanos) in children {
                let child = path.join(OsStr::from_bytes(name));
                build(&child, node);
                // Not root: the walk must still get in.
                let mode = if trees::is_root() {
                    *mode
                } else {
                    mode | 0o700
                };
                if !matches!(node, Node::Symlink(_)) {
                    trees::set_mode(&child, mode);
                }
                trees::set_time(&child, *seconds, (*nanos).into());
            }
        }
        Node::File(content) => fs::write(path, content).unwrap(),
        Node::Sparse(size, parts) => {
            let file = File::create(path).unwrap();
            file.set_len(*size).unwrap();
            for (offset, bytes) in parts {
                file.write_all_at(bytes, *offset).unwrap();
            }
        }
        Node::Symlink(target) => {
            std::os::unix::fs::symlink(OsStr::from_bytes(target), path).unwrap();
        }
        Node::Fifo => trees::fifo(path, 0o600),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_tree_comes_back(node in node()) {
        let fixture = Fixture::in_memory();
        let tree = fixture.empty("tree");
        build(&tree.join("top"), &node);
        let restored = fixture.cycle(&tree, "restored");
        assert_same(&tree, &restored);
    }
}

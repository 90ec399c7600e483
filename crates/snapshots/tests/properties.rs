//! What holds for all trees, all members and all bytes.
#![allow(clippy::unwrap_used)]

mod trees;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use hutch_snapshots::pax::{self, Body, Member, Reader, Segment, Writer};
use hutch_snapshots::{Attributes, Limits, Mtime, Xattr};
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

fn member() -> impl Strategy<Value = Member> {
    let path = || {
        vec(1_u8.., 1..300).prop_filter("kept as it is", |path| {
            !path.starts_with(b"./") && !path.ends_with(b"/")
        })
    };
    let segments = vec((1_u64..5000, 1_u64..5000), 0..20).prop_map(|gaps| {
        let mut at = 0;
        let segments: Vec<_> = gaps
            .into_iter()
            .map(|(gap, length)| {
                let offset = at + gap;
                at = offset + length;
                Segment { offset, length }
            })
            .collect();
        (at, segments)
    });
    let body = prop_oneof![
        Just(Body::Directory),
        Just(Body::Fifo),
        (0_u64..5000).prop_map(|size| Body::File { size }),
        (segments, 0_u64..5000).prop_map(|((end, segments), hole)| Body::Sparse {
            size: end + hole,
            segments
        }),
        path().prop_map(Body::Symlink),
        path().prop_map(Body::HardLink),
        (0_u32..4096, 0_u32..1 << 20).prop_map(|(major, minor)| Body::CharDevice { major, minor }),
    ];
    let attributes = (
        0_u32..0o10000,
        any::<u32>(),
        any::<u32>(),
        any::<i32>(),
        0_u32..1_000_000_000,
    );
    let xattr = (vec(1_u8.., 1..30), vec(any::<u8>(), 0..200));
    (path(), body, attributes, vec(xattr, 0..4)).prop_map(|(path, body, attributes, xattrs)| {
        let (mode, uid, gid, seconds, nanos) = attributes;
        Member {
            path,
            attributes: Attributes {
                mode,
                uid,
                gid,
                mtime: Mtime {
                    seconds: seconds.into(),
                    nanos,
                },
            },
            xattrs: xattrs
                .into_iter()
                .map(|(name, value)| Xattr {
                    name: name.into(),
                    value: value.into(),
                })
                .collect(),
            body,
        }
    })
}

fn archive(members: &[Member]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new());
    for member in members {
        writer.member(member).unwrap();
        let stored = usize::try_from(member.body.stored()).unwrap();
        writer.data(&vec![b'd'; stored]).unwrap();
    }
    writer.finish().unwrap()
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

    #[test]
    fn every_member_reads_back(members in vec(member(), 0..5)) {
        let archive = archive(&members);
        let mut reader = Reader::new(&archive[..], Limits::default());
        let mut read = Vec::new();
        while let Some(member) = reader.member().unwrap() {
            let mut data = vec![0; usize::try_from(reader.left()).unwrap()];
            let got = reader.data(&mut data).unwrap();
            prop_assert_eq!(got, data.len());
            prop_assert!(data.iter().all(|byte| *byte == b'd'));
            read.push(member);
        }
        prop_assert_eq!(read, members);
    }

    #[test]
    fn no_bytes_break_the_reader(bytes in vec(any::<u8>(), 0..4096)) {
        let _ = pax::read(&bytes, Limits::default());
    }

    #[test]
    fn no_damage_breaks_the_reader(members in vec(member(), 1..4), at in any::<prop::sample::Index>(), value in any::<u8>(), cut in any::<prop::sample::Index>()) {
        let mut archive = archive(&members);
        let at = at.index(archive.len());
        archive[at] = value;
        let block = at / 512 * 512;
        // A checksum that is right again lets the damage further in.
        archive[block + 148..block + 156].fill(b' ');
        let sum: u32 = archive[block..block + 512].iter().map(|byte| u32::from(*byte)).sum();
        archive[block + 148..block + 156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let _ = pax::read(&archive, Limits::default());
        let cut = cut.index(archive.len());
        let _ = pax::read(&archive[..cut], Limits::default());
    }
}

//! What holds for all members and all bytes.
#![allow(clippy::unwrap_used)]

use hutch_pax::{Attributes, Body, Limits, Member, Mtime, Reader, Segment, Writer, Xattr};
use proptest::collection::vec;
use proptest::prelude::*;

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
        let _ = hutch_pax::read(&bytes, Limits::default());
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
        let _ = hutch_pax::read(&archive, Limits::default());
        let cut = cut.index(archive.len());
        let _ = hutch_pax::read(&archive[..cut], Limits::default());
    }
}

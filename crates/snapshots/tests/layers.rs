//! A save writes what is new, every snapshot restores by itself, and a layer
//! stays for as long as one needs it.
#![allow(clippy::unwrap_used, clippy::panic)]

mod trees;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use hutch_snapshots::{LocalStore, Manifest, SaveMeta, Settings};
use trees::{Fixture, assert_same, open, set_time};

/// 200 files that differ, older than any doubt about their times.
fn tree(fixture: &Fixture) -> std::path::PathBuf {
    let tree = fixture.empty("tree");
    for file in 0..200_u32 {
        let directory = tree.join(format!("d{}", file % 10));
        fs::create_dir_all(&directory).unwrap();
        let noise = file.to_le_bytes().map(|byte| byte.wrapping_mul(31));
        let content: Vec<u8> = noise.into_iter().cycle().take(5000).collect();
        fs::write(directory.join(format!("f{file}")), content).unwrap();
    }
    tree
}

fn layers(fixture: &Fixture) -> usize {
    fs::read_dir(fixture.dir.path().join("store/layers"))
        .unwrap()
        .count()
}

fn restored(fixture: &Fixture, manifest: &Manifest, name: &str) -> std::path::PathBuf {
    let into = fixture.empty(name);
    fixture.store.restore(manifest.id, open(&into)).unwrap();
    into
}

/// Bytes of the members of the last layer.
fn added(manifest: &Manifest) -> u64 {
    manifest.layers.last().unwrap().unpacked_length()
}

#[test]
fn a_save_adds_a_layer_of_what_is_new() {
    let fixture = Fixture::new();
    let tree = tree(&fixture);
    let first = fixture.save(&tree);
    assert_eq!(first.layers.len(), 1);
    let before = restored(&fixture, &first, "before");

    fs::write(tree.join("d1/f1"), b"changed").unwrap();
    fs::write(tree.join("d2/new"), b"new").unwrap();
    fs::remove_file(tree.join("d3/f3")).unwrap();
    fs::rename(tree.join("d4/f4"), tree.join("d5/moved")).unwrap();
    fs::rename(tree.join("d6"), tree.join("d6-moved")).unwrap();
    fs::set_permissions(tree.join("d7/f7"), fs::Permissions::from_mode(0o4711)).unwrap();
    let second = fixture.save_on(&tree, &first);
    assert_eq!(second.layers.len(), 2);
    assert_eq!(second.layers[0], first.layers[0]);
    // Two small members and the end of an archive, not the 200 files.
    assert!(added(&second) <= 8192, "{}", added(&second));
    assert_same(&tree, &restored(&fixture, &second, "second"));
    assert_same(&before, &restored(&fixture, &first, "first again"));
    fixture.store.verify(second.id).unwrap();

    let third = fixture.save_on(&tree, &second);
    assert_eq!(third.layers, second.layers);
    assert_same(&tree, &restored(&fixture, &third, "third"));
}

#[test]
fn a_tree_of_many_small_files_is_no_reason_to_begin_anew() {
    let fixture = Fixture::in_memory();
    let tree = fixture.empty("tree");
    let directory = tree.join("n".repeat(120));
    fs::create_dir(&directory).unwrap();
    // More than what may be dead, in headers alone.
    for file in 0..34_000 {
        fs::write(directory.join(format!("{file}")), b"x").unwrap();
    }
    let first = fixture.save(&tree);
    assert!(added(&first) > 64 << 20, "{}", added(&first));
    fs::write(tree.join("new"), b"new").unwrap();
    let second = fixture.save_on(&tree, &first);
    assert_eq!(second.layers.len(), 2);
}

#[test]
fn an_edit_is_seen_though_size_and_time_stay() {
    let fixture = Fixture::new();
    let tree = tree(&fixture);
    let file = tree.join("d1/f1");
    let mut last = fixture.save(&tree);
    for round in 0..5_u8 {
        set_time(&file, 1_000_000_000, 5);
        fs::write(&file, vec![round; 5000]).unwrap();
        set_time(&file, 1_000_000_000, 5);
        last = fixture.save_on(&tree, &last);
        let into = restored(&fixture, &last, &format!("round {round}"));
        assert_same(&tree, &into);
    }
}

#[test]
fn a_restored_tree_is_known_to_the_next_save() {
    let fixture = Fixture::new();
    let tree = tree(&fixture);
    fs::hard_link(tree.join("d1/f1"), tree.join("d1/linked")).unwrap();
    let first = fixture.save(&tree);
    let into = restored(&fixture, &first, "into");
    let second = fixture.save_on(&into, &first);
    assert_eq!(second.layers, first.layers);
    fs::write(into.join("d1/f11"), b"changed").unwrap();
    let third = fixture.save_on(&into, &second);
    assert!(added(&third) <= 4096);
    assert_same(&into, &restored(&fixture, &third, "third"));
}

#[test]
fn a_known_file_counts_what_it_holds_and_keeps_its_names_and_attributes() {
    let fixture = Fixture::new();
    let tree = tree(&fixture);
    let hole = fs::File::create(tree.join("hole")).unwrap();
    hole.set_len(3 << 40).unwrap();
    trees::set_xattr(&tree.join("hole"), "user.text", b"value");
    fs::hard_link(tree.join("hole"), tree.join("z linked")).unwrap();
    let first = fixture.save(&tree);
    // What a restore has made is known without doubt.
    let into = restored(&fixture, &first, "into");
    fs::write(into.join("new"), b"new").unwrap();
    let second = fixture.save_on(&into, &first);
    assert!(added(&second) <= 8192, "{}", added(&second));
    assert_same(&into, &restored(&fixture, &second, "second"));
    fs::remove_file(into.join("new")).unwrap();
    trees::set_time(&into, 1, 1);
    trees::set_time(&tree, 1, 1);
    assert_same(&tree, &into);
}

#[test]
fn layers_go_with_the_last_snapshot_that_needs_them() {
    let fixture = Fixture::new();
    let tree = tree(&fixture);
    let first = fixture.save(&tree);
    fs::write(tree.join("new"), b"new").unwrap();
    let second = fixture.save_on(&tree, &first);
    assert_eq!(layers(&fixture), 2);
    fixture.store.delete(first.id).unwrap();
    assert_eq!(layers(&fixture), 2);
    assert_same(&tree, &restored(&fixture, &second, "second"));
    fixture.store.delete(second.id).unwrap();
    assert_eq!(layers(&fixture), 0);
    let walks = fixture.dir.path().join("store/walks");
    assert_eq!(fs::read_dir(walks).unwrap().count(), 0);
}

#[test]
fn a_base_that_is_not_fit_costs_a_full_save_and_nothing_else() {
    let fixture = Fixture::new();
    let tree = tree(&fixture);
    let first = fixture.save(&tree);
    let broken: [(&str, &dyn Fn()); 3] = [
        ("a layer is cut", &|| {
            let layer = fs::OpenOptions::new()
                .write(true)
                .open(fixture.layer(&first));
            layer.unwrap().set_len(100).unwrap();
        }),
        ("the listing is damaged", &|| {
            fs::write(fixture.place(&first).join("entries.jsonl.zst"), b"x").unwrap();
        }),
        ("it is gone", &|| fixture.store.delete(first.id).unwrap()),
    ];
    for (what, damage) in broken {
        damage();
        let saved = fixture.save_on(&tree, &first);
        assert_eq!(saved.layers.len(), 1, "{what}");
        assert_same(&tree, &restored(&fixture, &saved, what));
    }
}

#[test]
fn a_walk_that_is_damaged_or_of_another_tree_is_not_used() {
    let fixture = Fixture::new();
    let tree = tree(&fixture);
    let first = fixture.save(&tree);
    let walk = fixture
        .dir
        .path()
        .join("store/walks")
        .join(first.id.to_string());
    let mut bytes = fs::read(&walk).unwrap();
    bytes[60] ^= 1;
    fs::write(&walk, &bytes).unwrap();
    fs::write(tree.join("d1/f1"), b"changed").unwrap();
    let second = fixture.save_on(&tree, &first);
    assert_same(&tree, &restored(&fixture, &second, "second"));
    // Another tree on the same base shares what is the same, and is whole.
    let other = restored(&fixture, &first, "other");
    fs::write(other.join("d2/f2"), b"changed").unwrap();
    let third = fixture.save_on(&other, &second);
    assert_same(&other, &restored(&fixture, &third, "third"));
}

#[test]
fn many_changes_in_a_row_keep_the_layers_few() {
    let fixture = Fixture::in_memory();
    let tree = tree(&fixture);
    let mut state = 7_u64;
    let mut random = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut last = fixture.save(&tree);
    for round in 0..40 {
        for _ in 0..5 {
            change(&tree, &mut random);
        }
        let next = fixture.save_on(&tree, &last);
        fixture.store.delete(last.id).unwrap();
        last = next;
        assert!(last.layers.len() <= 16);
        assert!(layers(&fixture) <= 16);
        let into = restored(&fixture, &last, &format!("round {round}"));
        assert_same(&tree, &into);
        // Now and then the tree itself is the restored one.
        if round % 7 == 3 {
            fs::remove_dir_all(&tree).unwrap();
            fs::rename(&into, &tree).unwrap();
        }
    }
}

#[test]
fn a_chain_begins_anew_at_its_bound_and_the_old_one_restores() {
    let fixture = Fixture::in_memory();
    let tree = tree(&fixture);
    let mut kept = vec![(fixture.save(&tree), trees::fingerprint(&tree))];
    for round in 1..20 {
        fs::write(tree.join("d1/f1"), format!("round {round}")).unwrap();
        fs::write(tree.join(format!("new {round}")), format!("{round}")).unwrap();
        let next = fixture.save_on(&tree, &kept[round - 1].0);
        kept.push((next, trees::fingerprint(&tree)));
    }
    let lengths: Vec<_> = kept.iter().map(|(save, _)| save.layers.len()).collect();
    let expected: Vec<_> = (1..=16).chain(1..=4).collect();
    assert_eq!(lengths, expected);
    // The layers of the old chain stay for as long as its end does.
    let (old, before) = kept.remove(15);
    for (save, _) in kept.drain(..15) {
        fixture.store.delete(save.id).unwrap();
    }
    assert_eq!(layers(&fixture), 16 + 4);
    let into = restored(&fixture, &old, "old");
    assert_eq!(
        before.diff(&trees::fingerprint(&into)),
        Vec::<String>::new()
    );
    fixture.store.delete(old.id).unwrap();
    assert_eq!(layers(&fixture), 4);
    for (save, before) in kept {
        let into = restored(&fixture, &save, &save.id.to_string());
        assert_eq!(
            before.diff(&trees::fingerprint(&into)),
            Vec::<String>::new()
        );
    }
}

fn change(tree: &Path, random: &mut impl FnMut(u64) -> u64) {
    let file = tree.join(format!("d{}/f{}", random(10), random(40)));
    let other = tree.join(format!("d{}/f{}", random(10), random(40)));
    let size = usize::try_from(random(9000)).unwrap();
    match random(6) {
        0 | 1 => {
            let byte = u8::try_from(random(200)).unwrap();
            fs::write(&file, vec![byte; size]).unwrap();
        }
        2 => drop(fs::remove_file(&file)),
        3 => drop(fs::rename(&file, &other)),
        4 => drop(fs::hard_link(&file, &other)),
        _ => {
            let mode = u32::try_from(0o600 + random(0o177)).unwrap();
            drop(fs::set_permissions(&file, fs::Permissions::from_mode(mode)));
        }
    }
}

#[test]
fn a_file_larger_than_a_frame_is_whole() {
    let fixture = Fixture::new();
    let tree = fixture.empty("tree");
    let noise: Vec<u8> = (0..11_000_000_u32)
        .map(|at| u8::try_from(at.wrapping_mul(2_654_435_761) >> 24).unwrap())
        .collect();
    fs::write(tree.join("a"), b"before").unwrap();
    fs::write(tree.join("large"), &noise).unwrap();
    fs::write(tree.join("z"), b"after").unwrap();
    let manifest = fixture.save(&tree);
    assert!(manifest.layers[0].frames.len() >= 3);
    assert_same(&tree, &restored(&fixture, &manifest, "into"));
}

/// Written by the last build that wrote version 1.
#[test]
fn a_snapshot_of_version_1_is_restored_and_can_be_a_base() {
    if !trees::is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("store");
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/version1");
    let copied = std::process::Command::new("cp")
        .arg("-r")
        .args([&stored, &place])
        .status();
    assert!(copied.unwrap().success());
    let settings = Settings {
        ttl: None,
        ..Settings::default()
    };
    let store = LocalStore::open_with(&place, settings).unwrap();
    let id = store.list().unwrap()[0];
    let into = dir.path().join("into");
    fs::create_dir(&into).unwrap();
    let manifest = store.restore(id, open(&into)).unwrap();
    assert_eq!(manifest.version, 1);
    let digest = trees::fingerprint(&into).digest;
    assert_eq!(digest, VERSION_1);
    store.verify(id).unwrap();
    let meta = SaveMeta {
        base: Some(id),
        ..SaveMeta::default()
    };
    let next = store.save(open(&into), meta).unwrap();
    assert_eq!((next.version, next.layers.len()), (2, 1));
    store.delete(id).unwrap();
    store.verify(next.id).unwrap();
}

/// The fingerprint of the tree that it was made of.
const VERSION_1: &str = "6fae2bb87ebeb11457972db97231fe2256f0af174359e69742ac8cd85eea5c22";

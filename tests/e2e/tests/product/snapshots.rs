use std::fs;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use hutch_e2e::Hutch;
use hutch_snapshots::{Rules, TreeFingerprint};
use serde_json::json;

/// The folders of volumes that belong to a project. What begins with a dot is
/// the store's own, and changes when it likes.
fn projects(hutch: &Hutch) -> impl Iterator<Item = PathBuf> {
    let folders = fs::read_dir(hutch.data_dir().join("volumes")).unwrap();
    folders.flatten().filter_map(|entry| {
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        (!hidden && entry.file_type().unwrap().is_dir()).then(|| entry.path())
    })
}

/// The workspace of a sleeping sandbox, on the host.
fn workspace(hutch: &Hutch) -> PathBuf {
    let mut places: Vec<PathBuf> = projects(hutch).collect();
    while let Some(place) = places.pop() {
        let workspace = place.join("workspace");
        if workspace.is_dir() {
            return workspace;
        }
        for entry in fs::read_dir(&place).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                places.push(entry.path());
            }
        }
    }
    panic!("no workspace below the volumes");
}

/// What a new disk, or another host, would look like.
pub fn lose_volumes(hutch: &Hutch) {
    for project in projects(hutch) {
        fs::remove_dir_all(project).unwrap();
    }
}

fn fingerprint(hutch: &Hutch) -> TreeFingerprint {
    let tree = OwnedFd::from(fs::File::open(workspace(hutch)).unwrap());
    TreeFingerprint::of(tree, Rules::default()).unwrap()
}

const EVERY_KIND: &str = r#"set -e
mkdir -p tree/deep/er tree/empty tree/node_modules/pkg node_modules; cd tree
echo dropped > node_modules/pkg/x; echo hello > plain; ln plain hard; ln -s plain soft; ln -s /nowhere dangling
ln -s "$(head -c 3000 /dev/zero | tr '\0' l)" longlink; mkfifo pipe; : > zero
truncate -s 1G sparse; printf end | dd of=sparse bs=1 seek=500000000 conv=notrunc status=none
cp /bin/true suid; chmod 4755 suid; chmod 2750 deep; chmod 1777 empty; chown 1000:1001 plain; chown 65534:65534 deep
setfattr -n user.mark -v 'a"b' plain 2>/dev/null || python3 -c "import os; os.setxattr('plain','user.mark',b'a\"b\n=')"
printf x > "$(printf 'odd\nname')"; printf x > "$(printf 'quote"\\')"; printf x > "$(printf '\xff\xfe')"; printf x > ' space '
mkdir secret; echo s > secret/f; chmod 000 secret/f secret
touch -d '2001-02-03 04:05:06.123456789' plain; touch -d '1969-12-31 23:59:58.5' zero; touch -d '2030-01-01 00:00:00.000000001' deep/er
n=$(head -c 250 /dev/zero | tr '\0' n); mkdir -p "$n/$n"; echo far > "$n/$n/$n"
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_sleeps_keep_a_tree_of_every_kind_identical() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    let made = sandbox.exec(EVERY_KIND).await;
    assert_eq!(made["exitCode"], 0, "{made}");
    sandbox.json("sleep", &[]).await;
    let first = fingerprint(&hutch);
    let list =
        "cd /workspace && find . -printf '%y %m %U %G %T@ %n %s %l %p\\0' | sort -z | sha256sum";
    let seen = sandbox.sh(list).await;
    assert_eq!(seen.0, 0);
    assert_eq!(
        sandbox
            .sh("cat tree/secret/f; ls -d tree/node_modules node_modules 2>/dev/null | wc -l")
            .await
            .1,
        "s\n0\n"
    );
    for _ in 0..20 {
        sandbox.json("sleep", &[]).await;
        assert_eq!(fingerprint(&hutch), first);
        assert_eq!(sandbox.sh(list).await, seen);
    }
    assert_eq!(sandbox.sh("getfattr --only-values -n user.mark tree/plain 2>/dev/null || python3 -c \"import os; print(os.getxattr('tree/plain','user.mark'))\"").await.0, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_volume_that_is_lost_comes_back_from_its_snapshot() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    assert_eq!(sandbox.exec(EVERY_KIND).await["exitCode"], 0);
    sandbox.json("sleep", &[]).await;
    let first = fingerprint(&hutch);
    lose_volumes(&hutch);
    assert_eq!(
        sandbox.sh("cat tree/deep/../hard").await,
        (0, "hello\n".into())
    );
    assert!(
        api.events("main")
            .await
            .contains(&"workspace-restored".to_owned())
    );
    sandbox.json("sleep", &[]).await;
    assert_eq!(fingerprint(&hutch), first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_cycle_starts_from_the_latest() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    for i in 1..=5 {
        sandbox
            .sh(&format!(
                "echo line {i} >> f; echo {i} > n{i}; echo edit {i} > n1"
            ))
            .await;
        sandbox.json("sleep", &[]).await;
        let expected = format!("{i}\n{i}\nedit {i}\n");
        assert_eq!(
            sandbox.sh("wc -l < f; ls n* | wc -l; cat n1").await.1,
            expected
        );
    }
    let snapshots = api
        .events("main")
        .await
        .iter()
        .filter(|name| *name == "backup-created")
        .count();
    assert_eq!(snapshots, 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_in_the_workspace_is_dropped_by_sleep() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    sandbox
        .sh("echo x > /root/f; echo x > /usr/local/f; echo x > /etc/f; echo x > f")
        .await;
    assert_eq!(
        sandbox.sh("cat /root/f /usr/local/f /etc/f").await.1,
        "x\nx\nx\n"
    );
    sandbox.json("sleep", &[]).await;
    assert_eq!(
        sandbox
            .sh("ls /root/f /usr/local/f /etc/f 2>/dev/null | wc -l; cat f")
            .await
            .1,
        "0\nx\n"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_snapshot_degrades_and_can_be_given_up() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    sandbox.sh("echo precious > f").await;
    sandbox.json("sleep", &[]).await;
    lose_volumes(&hutch);
    let mut damaged = 0;
    let mut places = vec![hutch.data_dir().join("snapshots")];
    while let Some(place) = places.pop() {
        for entry in fs::read_dir(&place).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                places.push(path);
            } else if path.to_string_lossy().ends_with(".tar.zst") {
                let mut bytes = fs::read(&path).unwrap();
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
                fs::write(&path, bytes).unwrap();
                damaged += 1;
            }
        }
    }
    assert_eq!(damaged, 1);
    assert_eq!(
        sandbox.refusal("exec", &[json!("cat f")]).await.0,
        "BACKUP_RESTORE_FAILED"
    );
    assert_eq!(sandbox.json("describe", &[]).await["degraded"], true);
    sandbox
        .json("start", &[json!({"discardWorkspace": true})])
        .await;
    assert_eq!(sandbox.sh("ls -A | wc -l").await.1, "0\n");
    assert_eq!(sandbox.json("describe", &[]).await["degraded"], false);
}

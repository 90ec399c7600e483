//! What sleeping keeps, whatever the workspace and its archive are like.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use hutch_e2e::{Hutch, string};
use serde_json::{Value as Json, json};

use crate::snapshots::lose_volumes;

/// Every file below a directory.
fn files(dir: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut places = vec![dir.to_owned()];
    while let Some(place) = places.pop() {
        for entry in fs::read_dir(place).into_iter().flatten().flatten() {
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => places.push(entry.path()),
                kind if kind.is_file() => drop(found.insert(entry.path())),
                _ => {}
            }
        }
    }
    found
}

fn snapshots(hutch: &Hutch) -> BTreeSet<PathBuf> {
    files(&hutch.data_dir().join("snapshots"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_its_owner_cannot_read_is_kept_with_mode_and_owner() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    let make = "mkdir u && chown 1000:1000 u && cd u && \
        setpriv --reuid 1000 --regid 1000 --clear-groups bash -c \
        'mkdir p && echo s > p/f && chmod 000 p/f && chmod 000 p && ! cat p/f 2>/dev/null'";
    assert_eq!(sandbox.sh(make).await.0, 0);
    sandbox.json("sleep", &[]).await;
    lose_volumes(&hutch);
    let look = "stat -c '%a %u:%g' u/p u/p/f; cat u/p/f";
    let seen = sandbox.sh(look).await;
    assert_eq!(seen, (0, "0 1000:1000\n0 1000:1000\ns\n".into()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn falling_asleep_keeps_the_last_write() {
    const WRITER: &str = r#"
import os, time
block = 'x' * 4000
for i in range(1, 100000):
    with open(f'n{i}', 'w') as f: f.write(f'{i} {block}')
    print(i, flush=True)
    time.sleep(0.1)
"#;
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({"sleepAfter": 1})).await;
    let args = [json!("/workspace/w.py"), json!(WRITER)];
    sandbox.json("writeFile", &args).await;
    let process = sandbox.json("startProcess", &[json!("python3 w.py")]).await;
    // Reading a log holds nothing awake.
    let mut reported = 0;
    let begun = Instant::now();
    loop {
        let logs = sandbox
            .call("getProcessLogs", &[process["id"].clone()])
            .await;
        let Ok(logs) = logs else { break };
        let logs = logs.to_json().unwrap();
        let last = string(&logs["stdout"]);
        if let Some(last) = last.lines().last() {
            reported = last.parse().unwrap();
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "never asleep");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(reported >= 5, "{reported}");
    let newest = "ls n* | tr -d n | sort -n | tail -1";
    let newest: u32 = sandbox.sh(newest).await.1.trim().parse().unwrap();
    assert!(newest >= reported, "{newest} of {reported}");
    // Each file is whole, the last one too: it is one write.
    let torn = r#"for f in n*; do [ $(wc -c < $f) = $((4001 + ${#f} - 1)) ] || echo $f; done"#;
    assert_eq!(sandbox.sh(torn).await.1, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sleeping_twice_boots_nothing_and_makes_no_second_snapshot() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    sandbox.json("sleep", &[]).await;
    assert_eq!(api.events("main").await, ["created"]);
    sandbox.sh("echo kept > f").await;
    sandbox.json("sleep", &[]).await;
    let (events, files) = (api.events("main").await, snapshots(&hutch));
    for _ in 0..3 {
        sandbox.json("sleep", &[]).await;
    }
    let described = sandbox.json("describe", &[]).await;
    assert_eq!(described["running"], false);
    assert_eq!(api.events("main").await, events);
    assert_eq!(snapshots(&hutch), files);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_archive_holds_a_variable_a_key_or_an_identity() {
    const VALUE: &str = "value-of-a-variable-7f3a";
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let options = json!({"env": {"TOKEN": VALUE}});
    let sandbox = api.create("main", options).await;
    assert_eq!(
        sandbox.sh("echo kept > f; echo $TOKEN").await.1,
        format!("{VALUE}\n")
    );
    let first = sandbox.json("describe", &[]).await["bootId"].clone();
    let call = [
        json!("echo $V > /dev/null; sleep 0"),
        json!({"env": {"V": VALUE}}),
    ];
    sandbox.json("exec", &call).await;
    sandbox.json("sleep", &[]).await;
    let secrets = [VALUE.to_owned(), hutch.token(), string(&first)];
    let mut archives = 0;
    for file in snapshots(&hutch)
        .iter()
        .chain(&files(&hutch.data_dir().join("volumes")))
    {
        let mut content = fs::read(file).unwrap();
        if file.to_string_lossy().ends_with(".zst") {
            let unpacked = Command::new("zstd")
                .args(["-dc"])
                .arg(file)
                .output()
                .unwrap();
            assert!(unpacked.status.success());
            content.extend(unpacked.stdout);
            archives += 1;
        }
        for secret in &secrets {
            let found = content
                .windows(secret.len())
                .any(|part| part == secret.as_bytes());
            assert!(!found, "{secret} is in {}", file.display());
        }
    }
    assert!(archives > 0);
    // Who wakes from it is another boot, with the variables on record.
    lose_volumes(&hutch);
    assert_eq!(
        sandbox.sh("cat f; echo $TOKEN").await.1,
        format!("kept\n{VALUE}\n")
    );
    assert_ne!(sandbox.json("describe", &[]).await["bootId"], first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_archive_is_never_unpacked_and_can_be_destroyed() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    for kind in ["cut", "flipped", "emptied"] {
        let before = snapshots(&hutch);
        let sandbox = api.create(kind, json!({})).await;
        sandbox
            .sh("seq 1000 > f; head -c 100000 /dev/urandom > g")
            .await;
        sandbox.json("sleep", &[]).await;
        let backup = sandbox.json("describe", &[]).await["lastBackupId"].clone();
        lose_volumes(&hutch);
        let made = snapshots(&hutch);
        let archive = made
            .difference(&before)
            .find(|path| path.to_string_lossy().ends_with(".tar.zst"));
        let archive = archive.expect("an archive");
        let mut bytes = fs::read(archive).unwrap();
        match kind {
            "cut" => drop(bytes.pop()),
            "flipped" => {
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
            }
            _ => bytes.clear(),
        }
        fs::write(archive, bytes).unwrap();
        for _ in 0..2 {
            let (code, error) = sandbox.refusal("exec", &[json!("cat f")]).await;
            assert_eq!(code, "BACKUP_RESTORE_FAILED", "{kind}: {error}");
            assert!(
                error.message.contains("discardWorkspace"),
                "{kind}: {error}"
            );
        }
        let described = sandbox.json("describe", &[]).await;
        assert_eq!(described["degraded"], true);
        assert_eq!(described["lastBackupId"], backup, "the handle stays");
        assert_eq!(described["running"], false);
        let half = files(&hutch.data_dir().join("volumes"));
        let half = half.iter().find(|path| path.ends_with("workspace/f"));
        assert_eq!(half, None, "{kind}");
        sandbox.json("destroy", &[]).await;
        assert_eq!(snapshots(&hutch), before, "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workspace_that_changes_all_the_time_is_kept_in_one_of_its_states() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    sandbox.sh("echo moved > m1").await;
    let busy = "while :; do echo $RANDOM >> grow; : > t$RANDOM; rm -f t*; \
        mv m1 m2 2>/dev/null || mv m2 m1; done";
    for _ in 0..3 {
        sandbox.json("startProcess", &[json!(busy)]).await;
        sandbox.sh("n=$(cat grow 2>/dev/null | wc -l); until [ $(cat grow 2>/dev/null | wc -l) -gt $((n + 20)) ]; do :; done").await;
        sandbox.json("sleep", &[]).await;
        lose_volumes(&hutch);
        let seen = sandbox
            .sh("ls m1 m2 2>/dev/null | wc -l; cat m1 m2 2>/dev/null; grep -vcE '^[0-9]+$' grow")
            .await;
        assert_eq!(seen.1, "1\nmoved\n0\n");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn how_long_work_is_kept_can_be_set() {
    let mut hutch = Hutch::start();
    let wrong = hutch.cli(&["serve", "--snapshot-life", "1h"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(string_of(&wrong.stderr).contains("such as 30d"));
    for (life, expires) in [("30d", true), ("never", false)] {
        hutch.end(rustix::process::Signal::TERM);
        hutch
            .try_serve(&[], &[("HUTCH_SNAPSHOT_LIFE", life)])
            .unwrap();
        let api = hutch.api().await;
        let before = snapshots(&hutch);
        let sandbox = api.create(&format!("s{life}"), json!({})).await;
        sandbox.sh("echo kept > f").await;
        sandbox.json("sleep", &[]).await;
        let made = snapshots(&hutch);
        let manifests: Vec<Json> = made
            .difference(&before)
            .filter_map(|file| serde_json::from_slice(&fs::read(file).ok()?).ok())
            .filter(|json: &Json| json["createdAt"].is_string())
            .collect();
        assert_eq!(manifests.len(), 1, "{made:?}");
        let (made, end) = (&manifests[0]["createdAt"], &manifests[0]["expiresAt"]);
        assert_eq!(end.is_string(), expires, "{end}");
        assert!(!expires || string(end) > string(made), "{end}");
        lose_volumes(&hutch);
        assert_eq!(sandbox.sh("cat f").await.1, "kept\n");
    }
}

fn string_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

use bytes::Bytes;
use capnweb::{ReadableStream, Value};
use hutch_e2e::{Hutch, resident_kib, string};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_survive_both_ways() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    sandbox
        .json(
            "writeFile",
            &[
                json!("/workspace/b"),
                json!("AP/+gA=="),
                json!({"encoding": "base64"}),
            ],
        )
        .await;
    assert_eq!(sandbox.sh("od -An -tx1 b").await.1, " 00 ff fe 80\n");
    let read = sandbox
        .json(
            "readFile",
            &[json!("/workspace/b"), json!({"encoding": "base64"})],
        )
        .await;
    assert_eq!(read["content"], "AP/+gA==");
    sandbox
        .sh(r"printf '\xff\xfea\0' > /workspace/u16; : > /workspace/empty")
        .await;
    let read = sandbox.json("readFile", &[json!("/workspace/u16")]).await;
    assert_eq!(
        (&read["isBinary"], &read["content"]),
        (&json!(true), &json!("//5hAA=="))
    );
    let read = sandbox.json("readFile", &[json!("/workspace/empty")]).await;
    assert_eq!(
        (&read["isBinary"], &read["content"], &read["size"]),
        (&json!(false), &json!(""), &json!(0))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn byte_arrays_of_every_size_pass_and_the_largest_is_refused() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    for size in [0, 1, 112_640, 1 << 20, 16 << 20, 31 << 20] {
        let content = Value::Bytes(Bytes::from(vec![7u8; size]));
        sandbox
            .0
            .call("writeFile", vec!["/workspace/n".into(), content])
            .await
            .unwrap();
        assert_eq!(sandbox.sh("stat -c %s n").await.1, format!("{size}\n"));
    }
    // Over the limit on arguments, though under the limit on frames.
    let content = Value::Bytes(Bytes::from(vec![7u8; (32 << 20) + 1]));
    let error = sandbox
        .0
        .call("writeFile", vec!["/workspace/n".into(), content])
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some("PAYLOAD_TOO_LARGE"), "{error:?}");
    assert_eq!(
        sandbox.sh("stat -c %s n").await.1,
        format!("{}\n", 31 << 20),
        "the session is alive"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listings_are_honest() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    sandbox
        .sh("mkdir -p .hidden/foo/bar none; touch .hidden/foo/.x plain")
        .await;
    let names = |listed: &serde_json::Value| {
        let files = listed["files"].as_array().unwrap();
        let mut names: Vec<_> = files.iter().map(|file| string(&file["name"])).collect();
        names.sort();
        names
    };
    let listed = sandbox
        .json("listFiles", &[json!("/workspace/.hidden/foo")])
        .await;
    assert_eq!(names(&listed), ["bar"]);
    let all = sandbox
        .json(
            "listFiles",
            &[
                json!("/workspace/.hidden/foo"),
                json!({"includeHidden": true}),
            ],
        )
        .await;
    assert_eq!(names(&all), [".x", "bar"]);
    assert_eq!(
        sandbox.json("listFiles", &[json!("/workspace/none")]).await["count"],
        0
    );
    assert_eq!(
        sandbox
            .refusal("listFiles", &[json!("/workspace/plain")])
            .await
            .0,
        "NOT_DIRECTORY"
    );
    assert_eq!(
        sandbox
            .refusal("listFiles", &[json!("/workspace/gone")])
            .await
            .0,
        "FILE_NOT_FOUND"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paths_are_never_shell_text_and_links_lead_nowhere_outside() {
    let mark = tempfile::Builder::new()
        .prefix("hostmark")
        .tempfile_in("/etc")
        .unwrap();
    let mark = mark.path().to_str().unwrap().to_owned();
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    for name in ["/workspace/a'; touch pwn; '.txt", "/workspace/$(touch pwn)"] {
        sandbox.json("writeFile", &[json!(name), json!("x")]).await;
        assert_eq!(sandbox.json("exists", &[json!(name)]).await["exists"], true);
    }
    assert_eq!(
        sandbox.json("exists", &[json!("/workspace/pwn")]).await["exists"],
        false
    );
    sandbox
        .sh(&format!(
            "ln -s {mark} leak; ln -s /var/tmp/new-mark dang; ln -s / up"
        ))
        .await;
    assert_eq!(
        sandbox
            .refusal("readFile", &[json!("/workspace/leak")])
            .await
            .0,
        "FILE_NOT_FOUND"
    );
    sandbox
        .json("writeFile", &[json!("/workspace/dang"), json!("x")])
        .await;
    assert_eq!(sandbox.sh("cat /var/tmp/new-mark").await.1, "x");
    assert!(!std::path::Path::new("/var/tmp/new-mark").exists());
    let hostname = sandbox
        .json("readFile", &[json!("/workspace/up/etc/hostname")])
        .await;
    assert_eq!(hostname["content"], "main\n");
}

/// A quarter of a gibibyte of numbers, each chunk another.
fn chunk(seed: u32) -> Bytes {
    let words = (0..65_536u32).map(|word| {
        word.wrapping_mul(2_654_435_761)
            .wrapping_add(seed.wrapping_mul(40_503))
    });
    words.flat_map(u32::to_le_bytes).collect::<Vec<u8>>().into()
}

const CHUNKS: u32 = 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_files_stream_both_ways_in_little_memory() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api
        .create("main", json!({"instanceType": "standard-1"}))
        .await;
    sandbox.sh("true").await;
    let daemon = hutch_e2e::sandboxd_of(&hutch);
    let before = (resident_kib(hutch.pid()), resident_kib(daemon));
    let (writer, reader) = ReadableStream::channel(1 << 20);
    let upload = sandbox.0.call(
        "writeFile",
        vec!["/workspace/big".into(), Value::Readable(reader)],
    );
    let feed = async {
        for seed in 0..CHUNKS {
            writer.write(chunk(seed)).await.unwrap();
        }
        writer.close();
    };
    let mut grown = (0, 0);
    let mut measure = || {
        grown.0 = grown
            .0
            .max(resident_kib(hutch.pid()).saturating_sub(before.0));
        grown.1 = grown.1.max(resident_kib(daemon).saturating_sub(before.1));
    };
    let (uploaded, ()) = futures_util::join!(upload.into_future(), feed);
    uploaded.unwrap();
    measure();
    let options = Value::from_json(json!({"encoding": "none"}));
    let read = sandbox
        .0
        .call("readFile", vec!["/workspace/big".into(), options])
        .await
        .unwrap();
    let Value::Object(mut read) = read else {
        panic!("{read:?}")
    };
    assert_eq!(
        read.get("size").and_then(Value::as_u64),
        Some(u64::from(CHUNKS) * 262_144)
    );
    let Some(Value::Readable(mut content)) = read.remove("content") else {
        panic!("no content")
    };
    let (mut got, mut seed, mut want) = (0u64, 0, chunk(0));
    while let Some(piece) = content.next().await {
        let mut piece = piece.unwrap().as_bytes().unwrap().clone();
        got += piece.len() as u64;
        while !piece.is_empty() {
            if want.is_empty() {
                seed += 1;
                want = chunk(seed);
                measure();
            }
            let common = piece.len().min(want.len());
            assert_eq!(piece.split_to(common), want.split_to(common));
        }
    }
    assert_eq!(got, u64::from(CHUNKS) * 262_144);
    measure();
    assert!(grown.0 < 64 * 1024, "the server grew by {} KiB", grown.0);
    assert!(grown.1 < 64 * 1024, "sandboxd grew by {} KiB", grown.1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_stream_closes_its_file() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    sandbox.sh("head -c 268435456 /dev/zero > big").await;
    let daemon = hutch_e2e::sandboxd_of(&hutch);
    let holds = |daemon| {
        hutch_e2e::open_files(daemon)
            .iter()
            .any(|file| file.ends_with("/workspace/big"))
    };
    let options = Value::from_json(json!({"encoding": "none"}));
    let read = sandbox
        .0
        .call("readFile", vec!["/workspace/big".into(), options])
        .await
        .unwrap();
    let Value::Object(mut read) = read else {
        panic!("{read:?}")
    };
    let Some(Value::Readable(mut content)) = read.remove("content") else {
        panic!("no content")
    };
    let mut got = 0;
    while got < 134_217_728 {
        got += content
            .next()
            .await
            .unwrap()
            .unwrap()
            .as_bytes()
            .unwrap()
            .len();
    }
    assert!(holds(daemon), "the file is open while it is read");
    drop(content);
    hutch_e2e::wait_until("sandboxd closes the file", || !holds(daemon));
}

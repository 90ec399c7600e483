use std::time::{Duration, Instant};

use futures_util::future::join_all;
use hutch_e2e::{Handle, Hutch, string};
use serde_json::json;

async fn sandbox(hutch: &Hutch) -> (hutch_e2e::Api, Handle) {
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    (api, sandbox)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_background_child_is_not_waited_for_and_lives_on() {
    let hutch = Hutch::start();
    let (_api, sandbox) = sandbox(&hutch).await;
    let begun = Instant::now();
    assert_eq!(
        sandbox.sh("sleep 60 & echo started").await,
        (0, "started\n".into())
    );
    assert!(
        begun.elapsed() < Duration::from_secs(30),
        "waited for the child"
    );
    assert_eq!(sandbox.sh("pgrep -xc sleep").await.1, "1\n");
    let listed = sandbox.json("listFiles", &[json!("/workspace")]).await;
    assert_eq!(listed["count"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stdin_is_empty_unless_given() {
    let hutch = Hutch::start();
    let (_api, sandbox) = sandbox(&hutch).await;
    assert_eq!(sandbox.sh("cat").await, (0, String::new()));
    assert_eq!(
        sandbox.sh(r#"read x; echo "rc=$? x=[$x]""#).await.1,
        "rc=1 x=[]\n"
    );
    let result = sandbox.exec_with("cat", json!({"stdin": "a\nb"})).await;
    assert_eq!(result["stdout"], "a\nb");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exit_codes_follow_the_shell() {
    let hutch = Hutch::start();
    let (_api, sandbox) = sandbox(&hutch).await;
    let missing = sandbox.exec("definitely_not_a_cmd_xyz").await;
    assert_eq!(missing["exitCode"], 127);
    assert!(string(&missing["stderr"]).contains("definitely_not_a_cmd_xyz"));
    let denied = sandbox
        .exec("touch /tmp/ne; chmod 644 /tmp/ne; /tmp/ne")
        .await;
    assert_eq!(denied["exitCode"], 126);
    assert!(string(&denied["stderr"]).contains("Permission denied"));
    assert_eq!(sandbox.sh("kill -9 $$").await.0, 137);
    assert_eq!(sandbox.sh("kill -TERM $$").await.0, 143);
    assert_eq!(
        sandbox.sh("bash -c 'kill -SEGV $$'; echo rc=$?").await,
        (0, "rc=139\n".into())
    );
    let quiet = sandbox.exec("grep foo /dev/null").await;
    assert_eq!(
        (&quiet["exitCode"], &quiet["stdout"], &quiet["stderr"]),
        (&json!(1), &json!(""), &json!(""))
    );
    assert_eq!(quiet["success"], false);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn characters_and_bytes_come_through_whole() {
    let hutch = Hutch::start();
    let (_api, sandbox) = sandbox(&hutch).await;
    let split =
        r"printf '\xe2\x82'; printf 'caf\xc3' >&2; sleep 0.3; printf '\xac\n'; printf '\xa9\n' >&2";
    let result = sandbox.exec(split).await;
    assert_eq!(
        (&result["stdout"], &result["stderr"]),
        (&json!("\u{20ac}\n"), &json!("caf\u{e9}\n"))
    );
    assert_eq!(
        sandbox.sh(r"printf 'a\xff\xfeb\n'").await,
        (0, "a\u{fffd}\u{fffd}b\n".into())
    );
    let raw = sandbox
        .exec_with(r"printf 'a\xff\xfeb\n'", json!({"encoding": "base64"}))
        .await;
    assert_eq!(raw["stdoutBase64"], "Yf/+Ygo=");
    assert_eq!(sandbox.sh("printf 'no newline'").await.1, "no newline");
    assert_eq!(sandbox.sh(r"printf 'a\rb\rc'").await.1, "a\rb\rc");
    assert_eq!(sandbox.sh(r"printf 'a\0b\0'").await.1, "a\0b\0");
    let listed = sandbox
        .sh("mkdir -p /tmp/q; touch /tmp/q/1 /tmp/q/2; find /tmp/q -type f -print0")
        .await
        .1;
    assert_eq!(listed.split_terminator('\0').count(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn much_output_is_whole_or_says_that_it_is_cut() {
    let hutch = Hutch::start();
    let (_api, sandbox) = sandbox(&hutch).await;
    let both =
        "(head -c 3000000 /dev/zero | tr '\\0' e >&2); (head -c 3000000 /dev/zero | tr '\\0' o)";
    let result = sandbox.exec(both).await;
    let (out, err) = (string(&result["stdout"]), string(&result["stderr"]));
    assert!(out.len() == 3_000_000 && out.bytes().all(|byte| byte == b'o'));
    assert!(err.len() == 3_000_000 && err.bytes().all(|byte| byte == b'e'));
    assert_eq!(
        (&result["stdoutTruncated"], &result["exitCode"]),
        (&json!(false), &json!(0))
    );
    for prefix in ["", "x", "xx"] {
        let command = format!("python3 -c \"print('{prefix}'+'€'*8000000,end='')\"");
        let result = sandbox.exec(&command).await;
        assert_eq!(result["exitCode"], 0);
        assert_eq!(result["stdoutTruncated"], true);
        let out = string(&result["stdout"]);
        let rest = out.strip_prefix(prefix).expect("the prefix");
        assert!(rest.len() > 1_000_000 && rest.chars().all(|c| c == '€'));
    }
    assert_eq!(sandbox.sh("echo alive").await.1, "alive\n");
    assert_eq!(
        _api.events("main")
            .await
            .iter()
            .filter(|name| *name == "started")
            .count(),
        1
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_added_to_the_command() {
    let hutch = Hutch::start();
    let (_api, sandbox) = sandbox(&hutch).await;
    assert_eq!(sandbox.sh("seq 2 | wc -l").await.1, "2\n");
    assert_eq!(sandbox.sh("echo x |& cat").await.1, "x\n");
    assert_eq!(sandbox.sh("true && seq 3 | tail -1").await.1, "3\n");
    let long = format!("echo {}", "y".repeat(200_000));
    assert_eq!(sandbox.sh(&long).await.1.len(), 200_001);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn variables_of_a_call_are_exact_and_gone_after_it() {
    let hutch = Hutch::start();
    let (_api, sandbox) = sandbox(&hutch).await;
    let odd = "a'b\"c$HOME`id`\nexport EVIL=1";
    let result = sandbox
        .exec_with(r#"printf %s "$V""#, json!({"env": {"V": odd}}))
        .await;
    assert_eq!(result["stdout"], odd);
    assert_eq!(sandbox.sh(r#"echo "[$V][$EVIL]""#).await.1, "[][]\n");
    let result = sandbox
        .exec_with(
            r#"printf '%s|%s' "$A" "${B-unset}""#,
            json!({"env": {"A": "x=y", "B": ""}}),
        )
        .await;
    assert_eq!(result["stdout"], "x=y|");
    for name in ["A=B", "A\u{0}B", ""] {
        let (code, _) = sandbox
            .refusal("exec", &[json!("true"), json!({"env": {name: "x"}})])
            .await;
        assert!(
            code == "VALIDATION_FAILED" || code == "INVALID_ENV",
            "{name:?}: {code}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_working_directory_is_the_calls_own() {
    let hutch = Hutch::start();
    let (_api, sandbox) = sandbox(&hutch).await;
    let (_, error) = sandbox
        .refusal("exec", &[json!("pwd"), json!({"cwd": "/nope"})])
        .await;
    assert!(error.message.contains("/nope"), "{}", error.message);
    assert_eq!(
        sandbox.exec_with("pwd", json!({"cwd": "/tmp"})).await["stdout"],
        "/tmp\n"
    );
    assert_eq!(sandbox.sh("pwd").await.1, "/workspace\n");
    assert_eq!(sandbox.sh("mkdir d; cd d; rmdir ../d").await.0, 0);
    assert_eq!(sandbox.sh("echo ok").await.1, "ok\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orphans_are_reaped_and_no_status_is_stolen() {
    let hutch = Hutch::start();
    let (_api, sandbox) = sandbox(&hutch).await;
    for _ in 0..10 {
        join_all((0..30).map(|_| sandbox.exec("sh -c 'sleep 0.05 &'"))).await;
    }
    let codes = join_all((0..50).map(|_| sandbox.exec("exit 42"))).await;
    assert!(codes.iter().all(|result| result["exitCode"] == 42));
    // The orphans end within moments; what stays as a zombie stays for ever.
    assert_eq!(
        sandbox
            .sh("while pgrep -x sleep >/dev/null; do :; done; ps -e -o state= | grep -c '^Z'")
            .await
            .1,
        "0\n"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_start_with_clean_signals_a_utf8_locale_and_no_descriptors_of_ours() {
    let hutch = Hutch::start();
    let (_api, sandbox) = sandbox(&hutch).await;
    let result = sandbox.exec("yes | head -n1; echo ${PIPESTATUS[0]}").await;
    assert_eq!(
        (&result["stdout"], &result["stderr"]),
        (&json!("y\n141\n"), &json!(""))
    );
    let signals = sandbox
        .sh("grep -E 'Sig(Ign|Blk)' /proc/self/status")
        .await
        .1;
    assert!(
        signals
            .lines()
            .all(|line| line.ends_with("0000000000000000")),
        "{signals}"
    );
    assert_eq!(sandbox.sh("locale charmap").await.1, "UTF-8\n");
    assert_eq!(
        sandbox.sh("python3 -c \"print('日本語')\"").await,
        (0, "日本語\n".into())
    );
    // Asked of the kernel one by one: a pipeline or a glob opens some of its own.
    let open = "for n in {0..99}; do [ -e /proc/$$/fd/$n ] && printf '%s ' $n; done; true";
    assert_eq!(sandbox.sh(open).await.1, "0 1 2 ");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timeout_ends_everything_that_the_call_started() {
    let hutch = Hutch::start();
    let (_api, sandbox) = sandbox(&hutch).await;
    let stubborn =
        "trap '' TERM; setsid sleep 301 & (trap '' TERM; sleep 302) & echo begun; sleep 303";
    let result = sandbox.exec_with(stubborn, json!({"timeout": 500})).await;
    assert_eq!(
        (&result["exitCode"], &result["timedOut"], &result["stdout"]),
        (&json!(124), &json!(true), &json!("begun\n"))
    );
    assert!(string(&result["stderr"]).contains("Command timed out after 500ms"));
    assert_eq!(sandbox.sh("pgrep -fc 'sleep 30[123]'").await.1, "0\n");
    for bad in [json!(0), json!(-1), json!(3e9), json!("1s")] {
        let (code, _) = sandbox
            .refusal("exec", &[json!("true"), json!({"timeout": bad})])
            .await;
        assert_eq!(code, "VALIDATION_FAILED");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_goes_away_takes_its_command_along() {
    let hutch = Hutch::start();
    let (_api, sandbox) = sandbox(&hutch).await;
    let other = hutch.api().await;
    let call = other
        .sandbox("main")
        .0
        .call("exec", vec!["setsid sleep 311 & sleep 312".into()]);
    let mut call = std::pin::pin!(call.into_future());
    let runs = sandbox.sh("until pgrep -f 'sleep 31[2]' >/dev/null; do :; done");
    tokio::select! {
        _ = &mut call => panic!("the command ended"),
        _ = runs => {}
    }
    drop(other);
    assert_eq!(
        sandbox
            .sh("while pgrep -f 'sleep 31[12]' >/dev/null; do :; done; echo gone")
            .await
            .1,
        "gone\n"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_are_exact_and_arrive_while_the_command_runs() {
    let hutch = Hutch::start();
    let (_api, sandbox) = sandbox(&hutch).await;
    let options = json!({"command": "printf x; read line; printf \"y$line\\n\"; exit 3"});
    let (input, reader) = capnweb::ReadableStream::channel(1024);
    let mut options = capnweb::Value::from_json(options);
    if let capnweb::Value::Object(members) = &mut options {
        members.insert("stdin", capnweb::Value::Readable(reader));
    }
    let mut spawned = match sandbox.0.call("spawn", vec![options]).await.unwrap() {
        capnweb::Value::Object(spawned) => spawned,
        other => panic!("{other:?}"),
    };
    assert!(spawned.get("pid").and_then(capnweb::Value::as_u64).unwrap() > 1);
    let Some(capnweb::Value::Readable(mut stdout)) = spawned.remove("stdout") else {
        panic!("no stdout");
    };
    // The command waits for a line, so this arrives while it runs.
    assert_eq!(
        stdout
            .next()
            .await
            .unwrap()
            .unwrap()
            .as_bytes()
            .unwrap()
            .as_ref(),
        b"x"
    );
    input
        .write(bytes::Bytes::from_static(b"z\n"))
        .await
        .unwrap();
    input.close();
    let mut rest = Vec::new();
    while let Some(chunk) = stdout.next().await {
        rest.extend_from_slice(chunk.unwrap().as_bytes().unwrap());
    }
    assert_eq!(rest, b"yz\n");
    let exit = spawned.remove("exit").unwrap();
    let exit = exit.as_stub().unwrap().call((), vec![]).await.unwrap();
    assert_eq!(
        exit.get("exitCode").and_then(capnweb::Value::as_i64),
        Some(3)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shell_that_ends_itself_takes_no_later_call_along() {
    let hutch = Hutch::start();
    let (_api, sandbox) = sandbox(&hutch).await;
    assert_eq!(sandbox.sh("exit 7").await, (7, String::new()));
    assert_eq!(
        sandbox.sh("set -e; false; echo no").await,
        (1, String::new())
    );
    assert_eq!(sandbox.sh("false; echo still").await, (0, "still\n".into()));
    assert_eq!(sandbox.sh("exec sleep 0.1").await.0, 0);
    assert_eq!(sandbox.sh("kill -9 $$").await.0, 137);
    assert_eq!(sandbox.sh("echo alive").await, (0, "alive\n".into()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_of_the_platform_has_no_exit_code() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let (code, error) = api.sandbox("none").refusal("exec", &[json!("true")]).await;
    assert_eq!(code, "SANDBOX_NOT_FOUND");
    assert!(error.props.get("exitCode").is_none());
    let sandbox = api.create("main", json!({})).await;
    for options in [json!({"cwd": "/nope"}), json!({"timeout": -1})] {
        let (_, error) = sandbox.refusal("exec", &[json!("true"), options]).await;
        assert!(error.props.get("exitCode").is_none(), "{error:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twelve_megabytes_are_whole_and_a_stream_has_no_limit() {
    let hutch = Hutch::start();
    let (_api, sandbox) = sandbox(&hutch).await;
    let result = sandbox
        .exec("python3 -c \"print('x'+'€'*4000000,end='')\"")
        .await;
    let out = string(&result["stdout"]);
    assert_eq!(result["stdoutTruncated"], false);
    assert!(out.len() == 12_000_001 && out.chars().skip(1).all(|c| c == '€'));
    let command = json!({"command": "head -c 67108864 /dev/zero | tr '\\0' x"});
    let spawned = sandbox.call("spawn", &[command]).await.unwrap();
    let capnweb::Value::Object(mut spawned) = spawned else {
        panic!("{spawned:?}");
    };
    let Some(capnweb::Value::Readable(mut stdout)) = spawned.remove("stdout") else {
        panic!("no stdout");
    };
    let mut got = 0;
    while let Some(chunk) = stdout.next().await {
        let chunk = chunk.unwrap();
        let bytes = chunk.as_bytes().unwrap();
        assert!(bytes.iter().all(|byte| *byte == b'x'));
        got += bytes.len();
    }
    assert_eq!(got, 67_108_864);
}

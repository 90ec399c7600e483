//! Commands that attack what runs them: the sandbox stays usable, or a call
//! says what is wrong and what helps.

use std::time::{Duration, Instant};

use hutch_e2e::{Api, Handle, Hutch, message, sandboxd_of, string};
use serde_json::json;

/// Runs a command that may take the word about its own end along.
async fn disturb(sandbox: &Handle, command: &str) {
    if let Err(error) = sandbox.call("exec", &[json!(command)]).await {
        let words = message(&error);
        assert!(words.contains("killed meanwhile"), "{words}");
    }
}

async fn boots(api: &Api) -> usize {
    let events = api.events("main").await;
    events.iter().filter(|name| *name == "started").count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signals_to_everybody_end_commands_and_not_the_sandbox() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({"instanceType": "lite"})).await;
    let process = sandbox.json("startProcess", &[json!("sleep 700")]).await;
    let daemon = sandboxd_of(&hutch);
    for signal in ["STOP", "KILL", "TERM", "KILL", "STOP"] {
        disturb(&sandbox, &format!("kill -{signal} -1; kill -9 $$")).await;
        let begun = Instant::now();
        assert_eq!(sandbox.sh("echo here | cat").await, (0, "here\n".into()));
        assert!(begun.elapsed() < Duration::from_secs(10), "{signal}");
    }
    // What was started before heard it as well.
    let id = process["id"].clone();
    let exit = sandbox.json("waitForExit", &[id]).await;
    assert_eq!(exit["exitCode"], 137);
    // A new starter is bound as the first was: by groups, filter and rank.
    let first = api.create("other", json!({"instanceType": "lite"})).await;
    let bounds = "cut -d: -f2,3 /proc/self/cgroup | sed 's/[0-9a-f-]*$//' | sort; \
         grep -E 'Seccomp|NoNewPrivs|Cap|Sig(Ign|Blk)' /proc/self/status; \
         cat /proc/self/oom_score_adj; umask; ls /proc/self/fd | wc -l";
    let of_first = first.sh(bounds).await;
    assert_eq!(sandbox.sh(bounds).await, of_first);
    first.json("destroy", &[]).await;
    assert_eq!(sandboxd_of(&hutch), daemon);
    assert_eq!(boots(&api).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_are_counted_as_such_after_everything_was_killed() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({"instanceType": "lite"})).await;
    sandbox.sh("true").await;
    disturb(&sandbox, "kill -9 -1").await;
    // The commands' limit, not the daemon's reserve with it.
    let bomb = "i=0; while [ $i -lt 600 ]; do sleep 300 & i=$((i+1)); done 2>/dev/null; echo done";
    let options = [json!(bomb), json!({"timeout": 5000})];
    let _ = sandbox.json("exec", &options).await;
    let many = "import os,signal,time\nn=0\ntry:\n  while True:\n    if os.fork()==0: time.sleep(300); os._exit(0)\n    n+=1\nexcept OSError: print(n)";
    let (_, count) = sandbox.sh(&format!("python3 -c '{many}'")).await;
    let count: u32 = count.trim().parse().unwrap();
    // Lite has 512, of which 32 are the daemon's.
    assert!((440..480).contains(&count), "{count}");
    let there = sandbox.json("exists", &[json!("/workspace")]).await;
    assert_eq!(there["exists"], true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_kills_again_and_again_is_told_and_can_be_ended() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({"instanceType": "lite"})).await;
    let killer = "while :; do kill -9 -1; done";
    sandbox.json("startProcess", &[json!(killer)]).await;
    let words = loop {
        let begun = Instant::now();
        if let Err(error) = sandbox.call("exec", &[json!("true")]).await {
            let words = message(&error);
            assert!(begun.elapsed() < Duration::from_secs(10), "{words}");
            if words.contains("again and again") {
                break words;
            }
        }
    };
    for way_out in ["killAllProcesses", "restart", "sleep"] {
        assert!(words.contains(way_out), "{words}");
    }
    sandbox.json("killAllProcesses", &[]).await;
    let answers = async { while sandbox.call("exec", &[json!("true")]).await.is_err() {} };
    let answers = tokio::time::timeout(Duration::from_secs(20), answers).await;
    answers.expect("it answers once nothing kills");
    assert_eq!(boots(&api).await, 1);
}

/// Takes every process that there is, and each that is given back.
const BOMB: &str = "
import os, time
while True:
    try:
        if os.fork() == 0:
            time.sleep(300)
            os._exit(0)
    except OSError:
        time.sleep(0.005)
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fork_bomb_that_outlives_its_call_is_told_by_every_method_and_can_be_ended() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({"instanceType": "lite"})).await;
    // Every way out, each on a bomb of its own.
    for way_out in ["killAllProcesses", "restart", "sleep"] {
        sandbox
            .sh(&format!("python3 -c '{BOMB}' >/dev/null 2>&1 & true"))
            .await;
        for (method, args) in [
            ("exec", vec![json!("true")]),
            ("startProcess", vec![json!("true")]),
            ("spawn", vec![json!({"command": "true"})]),
            ("spawn", vec![json!({"argv": ["true"]})]),
        ] {
            // Until the bomb has taken all there is.
            let begun = Instant::now();
            let words = loop {
                match sandbox.call(method, &args).await {
                    Ok(_) => assert!(begun.elapsed() < Duration::from_secs(60), "{method}"),
                    Err(error) => break message(&error),
                }
            };
            for part in ["limit of processes", "killAllProcesses", "restart", "sleep"] {
                assert!(words.contains(part), "{method}: {words}");
            }
        }
        // What needs no process goes on.
        let file = json!("/workspace/f");
        let args = [file.clone(), json!("still")];
        sandbox.json("writeFile", &args).await;
        let read = sandbox.json("readFile", &[file]).await;
        assert_eq!(string(&read["content"]), "still");
        assert_eq!(sandbox.json("describe", &[]).await["running"], true);
        sandbox.json(way_out, &[]).await;
        let alive = sandbox.sh("cat f; pgrep -fc 'import o[s]'").await;
        assert_eq!(alive, (1, "still0\n".into()), "{way_out}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_that_is_switched_off_inside_starts_again_with_its_work() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    // PID 1 takes a TERM as a request to end; KILL and STOP do not reach it.
    sandbox.sh("echo kept > f; kill -9 1; kill -STOP 1").await;
    assert_eq!(sandbox.sh("cat f").await.1, "kept\n");
    let open = sandbox.call("exec", &[json!("kill 1; sleep 600")]).await;
    if let Err(error) = open {
        assert_eq!(error.code(), Some("OPERATION_INTERRUPTED"), "{error}");
    }
    let stopped = json!({"eventTypes": ["sandbox/stopped"]});
    api.stream("/sandboxes/main")
        .json("waitForEvent", &[stopped])
        .await;
    assert_eq!(sandbox.sh("cat f").await, (0, "kept\n".into()));
    assert_eq!(boots(&api).await, 2);
}

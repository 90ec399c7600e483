use futures_util::future::join;
use hutch_e2e::{Hutch, message, sandboxd_of, spawner_of};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn root_inside_sees_and_reaches_nothing_outside() {
    let mark = tempfile::Builder::new()
        .prefix("hostmark")
        .tempfile_in("/etc")
        .unwrap();
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    let other = api.create("other", json!({})).await;
    other
        .sh("sleep 777 & echo neighbour > /workspace/mark")
        .await;
    assert_eq!(sandbox.sh("id -u").await.1, "0\n");
    let inside = sandbox.sh("ps -e -o args=").await.1;
    for foreign in ["hutch", "sleep 777", "spawner", "kthreadd"] {
        assert!(!inside.contains(foreign), "{foreign}:\n{inside}");
    }
    let mark = mark.path().to_str().unwrap();
    for refused in [
        "mount -t tmpfs x /mnt",
        "umount /proc",
        "unshare -U true",
        "unshare -m true",
        "nsenter -t 1 -m true",
        "dmesg",
        "chroot /proc/1/root true && ls /proc/1/root/home/*/.ssh",
        "mknod /tmp/sda b 8 0",
        "cat /proc/kcore",
        "cat /proc/1/environ",
        "cat /proc/1/mem",
        "readlink /proc/1/fd/0",
        "cd /proc/1/fd/5",
        "echo 1 > /proc/sys/kernel/panic",
        "echo c > /proc/sysrq-trigger",
        "hostname other",
        "date -s 2001-01-01",
        "echo x > /sys/kernel/mm/ksm/run",
        "find / -xdev -name mark -path '*workspace*' | grep -v '^/workspace/mark$' | grep .",
        "test -n \"$(ls -A /sys/fs/cgroup 2>/dev/null)\" && echo x > /sys/fs/cgroup/cgroup.procs",
        "timeout 3 bash -c 'echo > /dev/tcp/127.0.0.1/7070'",
        "timeout 3 bash -c 'echo > /dev/tcp/192.0.2.1/80'",
        &format!("test -e {mark}"),
    ] {
        let result = sandbox
            .exec(&format!("{refused} 2>/dev/null >/dev/null"))
            .await;
        assert_ne!(result["exitCode"], 0, "this worked: {refused}");
    }
    let links = sandbox
        .sh("tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '")
        .await
        .1;
    assert_eq!(links, "lo\n");
    let routes = sandbox.sh("tail -n +2 /proc/net/route | wc -l").await.1;
    assert_eq!(routes, "0\n");
    let groups = sandbox.sh("grep CapEff /proc/self/status").await.1;
    let effective = u64::from_str_radix(groups.split_whitespace().last().unwrap(), 16).unwrap();
    // CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_SYS_MODULE, CAP_NET_ADMIN, CAP_SYS_RESOURCE.
    for capability in [21, 19, 16, 12, 24] {
        assert_eq!(effective & (1 << capability), 0, "capability {capability}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_memory_hog_ends_at_its_limit_and_the_host_says_so() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({"instanceType": "lite"})).await;
    let other = api.create("other", json!({"instanceType": "lite"})).await;
    other.sh("true").await;
    let hog = [json!("python3 -c \"x = b'x' * (1 << 30); print(len(x))\"")];
    let (result, answer) = join(sandbox.json("exec", &hog), other.sh("echo here")).await;
    assert_eq!(
        (&result["exitCode"], &result["oomKilled"]),
        (&json!(137), &json!(true)),
        "{result}"
    );
    assert_eq!(answer.1, "here\n");
    let killed = sandbox.exec("kill -9 $$").await;
    assert_eq!(
        (&killed["exitCode"], &killed["oomKilled"]),
        (&json!(137), &json!(false))
    );
    assert_eq!(sandbox.sh("echo alive").await.1, "alive\n");
    assert_eq!(
        api.events("main")
            .await
            .iter()
            .filter(|name| *name == "started")
            .count(),
        1
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fork_bomb_ends_at_its_limit_while_the_rest_answers() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({"instanceType": "lite"})).await;
    let other = api.create("other", json!({"instanceType": "lite"})).await;
    other.sh("true").await;
    let bomb = "i=0; while [ $i -lt 2000 ]; do sleep 30 & i=$((i+1)); done 2>/dev/null; echo done";
    let options = [json!(bomb), json!({"timeout": 20_000})];
    let (result, answer) = join(sandbox.json("exec", &options), other.sh("echo here")).await;
    assert_eq!(answer.1, "here\n");
    let _ = result;
    // The daemon keeps a reserve: it answers without a new process.
    assert_eq!(
        sandbox.json("exists", &[json!("/workspace")]).await["exists"],
        true
    );
    sandbox.json("sleep", &[]).await;
    assert_eq!(sandbox.sh("echo alive").await.1, "alive\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fork_bomb_can_be_ended_from_outside() {
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({"instanceType": "lite"})).await;
    let bomb = "b() { b | b & }; b; sleep 1000";
    sandbox.json("startProcess", &[json!(bomb)]).await;
    // Once nothing can be started any more, the refusal says what to do.
    let refused = loop {
        match sandbox.call("exec", &[json!("true")]).await {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    let words = message(&refused);
    assert!(
        words.contains("limit of processes") && words.contains("killAllProcesses"),
        "{words}"
    );
    // The daemon has a reserve: it answers, and ends the bomb.
    let there = sandbox.json("exists", &[json!("/workspace")]).await;
    assert_eq!(there["exists"], true);
    sandbox.json("killAllProcesses", &[]).await;
    assert_eq!(sandbox.sh("echo alive").await, (0, "alive\n".into()));
    let left: u32 = sandbox.sh("ps -e | wc -l").await.1.trim().parse().unwrap();
    assert!(left < 12, "{left}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_host_follows_no_link_of_a_sandbox() {
    let outside = tempfile::tempdir().unwrap();
    let kept = outside.path().join("node_modules");
    std::fs::create_dir(&kept).unwrap();
    std::fs::write(kept.join("host"), "the host's").unwrap();
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    let place = outside.path().display();
    let tricks = format!(
        "mkdir keep dir && echo mine > keep/f && ln keep/f keep/hard &&
         ln -s {place}/node_modules node_modules && ln -s ../keep dir/node_modules &&
         ln -s {place} up && ln -s /proc/1/root/{place} root && ln -s /etc/shadow shadow &&
         mkdir -p gone/node_modules && ln -s {place}/node_modules gone/node_modules/link &&
         ln keep/f gone/node_modules/hard &&
         rm -rf /etc/hosts && ln -s {place}/node_modules/host /etc/hosts &&
         rm -rf /opt /root /tmp && ln -s {place} /opt && ln -s {place} /root && ln -s {place} /tmp;
         rmdir /workspace; mv /workspace /w; ln -sfn {place} /workspace; true"
    );
    assert_eq!(sandbox.sh(&tricks).await.0, 0);
    // Strip and snapshot at sleep, what is kept at the wake after it.
    for _ in 0..2 {
        sandbox.json("sleep", &[]).await;
        let found = sandbox
            .sh("cat keep/f keep/hard; readlink up shadow; test -e up || echo nothing there")
            .await;
        let expected = format!("mine\nmine\n{place}\n/etc/shadow\nnothing there\n");
        assert_eq!(found, (0, expected));
    }
    // A whole disk of links where the next boot puts the root together.
    sandbox.json("sleep", &[]).await;
    assert_eq!(sandbox.sh("cat /etc/hosts | grep -c localhost").await.0, 0);
    assert_eq!(
        std::fs::read_to_string(kept.join("host")).unwrap(),
        "the host's"
    );
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    assert_eq!(std::fs::read_dir(&kept).unwrap().count(), 1);
    sandbox.json("destroy", &[]).await;
    assert_eq!(
        std::fs::read_to_string(kept.join("host")).unwrap(),
        "the host's"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crashed_boot_leaves_no_link_for_the_next_to_follow() {
    let outside = tempfile::tempdir().unwrap();
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    let place = outside.path().display();
    let tricks = format!(
        "rm -f /etc/hosts /etc/resolv.conf; ln -s {place}/hosts /etc/hosts; ln -s {place} /home/x;
         rm -rf /opt; ln -s {place} /opt; mv /bin /bin2 && ln -s {place} /bin"
    );
    sandbox.exec(&tricks).await;
    let pid = rustix::process::Pid::from_raw(sandboxd_of(&hutch).cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let stopped = json!({"eventTypes": ["sandbox/stopped"]});
    api.stream("/sandboxes/main")
        .json("waitForEvent", &[stopped])
        .await;
    // The dirty disk is used again; whether a shell is found is its own affair.
    let again = sandbox.json("exists", &[json!("/workspace")]).await;
    assert_eq!(again["exists"], true);
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_and_spawner_leave_no_core() {
    let hutch = Hutch::start();
    for pid in [hutch.pid(), spawner_of(&hutch)] {
        let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
        let core = limits
            .lines()
            .find(|line| line.starts_with("Max core file size"));
        let words: Vec<&str> = core.unwrap().split_whitespace().collect();
        assert!(
            words[4..6].iter().all(|limit| matches!(*limit, "0" | "1")),
            "{words:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_daemon_comes_before_whoever_computes_and_commands_do_not() {
    const SLICES: &str = r#"
import ctypes, struct
def slice(pid):
    attributes = ctypes.create_string_buffer(56)
    assert ctypes.CDLL(None).syscall(315, pid, attributes, 56, 0) == 0
    return struct.unpack_from('=IIQiIQ', attributes)[5]
print(slice(1), slice(0))
"#;
    let hutch = Hutch::start();
    let api = hutch.api().await;
    let sandbox = api.create("main", json!({})).await;
    let args = [json!("/workspace/s.py"), json!(SLICES)];
    sandbox.json("writeFile", &args).await;
    let (code, out) = sandbox.sh("python3 s.py").await;
    let slices: Vec<u64> = out.split_whitespace().map(|n| n.parse().unwrap()).collect();
    assert_eq!((code, slices.len()), (0, 2), "{out}");
    // Both are zero on kernels that know of no slices.
    assert!(slices[1] == 0 || slices[0] < slices[1], "{out}");
}

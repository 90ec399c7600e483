use futures_util::future::join;
use hutch_e2e::Hutch;
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

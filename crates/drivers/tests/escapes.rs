//! What published escapes do with files, tried by a command and by who has
//! taken over PID 1.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::os::unix::fs::MetadataExt;

use hutch_protocol::InstanceType;
use support::{Machine, PROBE, as_pid_1, ping, run, wait_until};

/// Each must fail, whoever tries.
const WAYS: &[&str] = &[
    // The kernel's programs and switches.
    "echo '|/tmp/x' > /proc/sys/kernel/core_pattern",
    "echo /tmp/x > /proc/sys/kernel/modprobe",
    "echo /tmp/x > /proc/sys/kernel/hotplug",
    "echo /tmp/x > /proc/sys/kernel/poweroff_cmd",
    "echo 1 > /proc/sys/kernel/sysrq",
    "echo b > /proc/sysrq-trigger",
    "echo 0 > /proc/sys/kernel/randomize_va_space",
    "echo 1 > /proc/sys/vm/overcommit_memory",
    "echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start",
    "echo 99999999 > /proc/sys/kernel/shmall",
    "echo 99999 > /proc/sys/user/max_user_namespaces",
    "echo 99999 > /proc/sys/user/max_inotify_instances",
    "echo ':x:M::x::/tmp/x:' > /proc/sys/fs/binfmt_misc/register",
    "ls /proc/sys/fs/binfmt_misc/register",
    "echo /tmp/x > /sys/kernel/uevent_helper",
    "ls -A /sys/kernel/debug /sys/kernel/tracing /sys/fs/bpf /sys/firmware",
    "ls /sys/module /sys/bus /sys/class/block /sys/power",
    // Control groups.
    "echo /tmp/x > /sys/fs/cgroup/memory/release_agent",
    "echo 1 > /sys/fs/cgroup/memory/notify_on_release",
    "mkdir /sys/fs/cgroup/memory/x",
    "mkdir /sys/fs/cgroup/x",
    "echo a > /sys/fs/cgroup/devices/devices.allow",
    "echo -1 > /sys/fs/cgroup/memory/memory.limit_in_bytes",
    // Devices.
    "mknod /tmp/x b 8 0",
    "mknod /tmp/x c 1 1",
    "mknod /workspace/x b 254 0",
    "mknod /dev/x c 1 11",
    "cat /dev/mem /dev/kmem /dev/port /dev/kmsg",
    "ls /dev/fuse /dev/kvm /dev/loop-control /dev/net/tun /dev/vhost-vsock",
    "head -c 1 /dev/vda /dev/sda /dev/loop0",
    // The host by another process's eyes.
    "ls /proc/1/root/root/../../../proc/1/task/1/cwd/hutch-marker",
    "cat /proc/kcore /proc/kmsg",
    "grep . /proc/kallsyms /proc/modules /proc/config.gz /proc/cmdline /proc/keys /proc/key-users",
    "ls /proc/pressure/cpu",
    "echo -1000 > /proc/self/oom_score_adj",
    // The daemon's own binary lies on the host.
    ": > /proc/1/exe",
    "chmod 777 /proc/1/exe",
    "ln /proc/1/exe /tmp/x",
    "mount --bind / /mnt",
    "mount -t proc proc /mnt",
    "mount -o remount,rw /proc/sys",
    "umount /proc/sys",
    "umount -l /etc",
    "pivot_root / /mnt",
    "nsenter -t 1 -m true",
    "unshare -Ur true",
    "unshare -m true",
    "ln /usr/bin/env /workspace/x",
    // The kernel answers ENOENT below the root of a mount that was dropped.
    "cd /proc/self/cwd/../../../../low",
    "modprobe dummy",
    "insmod /tmp/x.ko",
    "ip link add x type dummy",
    "ip netns add x",
    "nft add table x",
    "iptables -L",
    "date -s 2001-01-01",
    "hostname x",
    "chattr +i /tmp",
    "swapon /tmp",
    "keyctl show",
    "dmesg",
    "bpftool prog",
    "perf stat true",
];

/// What only PID 1 has: the group of commands by descriptor 5, the sockets.
const DAEMON_WAYS: &[&str] = &[
    "ls /proc/1/fd/5/../daemon",
    // A dropped mount has no parent: this is the empty group itself.
    "grep . /proc/1/fd/5/../cgroup.procs",
    "grep . /proc/1/fd/5/../../cgroup.procs",
    "echo max > /proc/1/fd/5/cgroup.max.descendants",
    "echo max > /proc/1/fd/5/cgroup.max.depth",
    "echo 1 > /proc/1/fd/5/cgroup.freeze",
    "mkdir -p /proc/1/fd/5/a/b/c",
    "chmod 777 /proc/1/fd/5/cgroup.kill",
    // The filter for commands cannot be changed.
    "echo x > /proc/1/fd/8",
    "truncate -s 0 /proc/1/fd/8",
    // Nor the host's end of the log be read or filled from elsewhere.
    "head -c 1 /proc/1/fd/2",
    "echo x > /proc/1/fd/1",
];

#[tokio::test]
async fn no_published_way_out_works_for_a_command_or_for_pid_1() {
    let machine = Machine::new().await;
    std::fs::write(machine.dir.path().join("hutch-marker"), "x").unwrap();
    let a = machine.start("a", InstanceType::Basic).await;
    let program = std::fs::metadata(PROBE).unwrap();
    let mut worked = Vec::new();
    for way in WAYS {
        for (who, (code, out)) in [
            ("command", run(&a, way).await),
            ("PID 1", as_pid_1(&a, way).await),
        ] {
            if code == 0 {
                worked.push(format!("{who}: {way}: {out}"));
            }
        }
    }
    for way in DAEMON_WAYS {
        let (code, out) = as_pid_1(&a, way).await;
        if code == 0 {
            worked.push(format!("PID 1: {way}: {out}"));
        }
    }
    assert!(worked.is_empty(), "{worked:#?}");
    let after = std::fs::metadata(PROBE).unwrap();
    assert_eq!(
        (after.size(), after.mode(), after.mtime(), after.nlink()),
        (
            program.size(),
            program.mode(),
            program.mtime(),
            program.nlink()
        )
    );
    assert_eq!(ping(&a).await, "pong");
    drop(a);
    machine.close().await;
}

#[tokio::test]
async fn who_has_pid_1_has_no_more_than_the_sandbox() {
    let machine = Machine::new().await;
    let a = machine.start("a", InstanceType::Basic).await;
    let status = as_pid_1(&a, "cat /proc/self/status").await.1;
    for line in ["NoNewPrivs:\t1", "Seccomp:\t2"] {
        assert!(status.contains(line), "{status}");
    }
    // No descriptor leads to a directory of the host: the sockets, the group,
    // the filter and what it made itself. Nor do the files through which the
    // next starter enters the commands' groups: who writes to one can only
    // put a process of this sandbox under the commands' limits.
    let links = as_pid_1(&a, "ls -l /proc/1/fd | sed 's/.*-> //' | sort -u")
        .await
        .1;
    let foreign: Vec<&str> = links
        .lines()
        .filter(|link| link.starts_with('/'))
        .filter(|link| !matches!(*link, "/dev/null" | "/" | "/memfd:command-filter (deleted)"))
        .filter(|link| !link.ends_with("/commands/cgroup.procs"))
        .collect();
    assert!(foreign.is_empty(), "{links}");
    // It cannot leave its limits, whatever group it goes to. Moved beside the
    // commands it sees its own group's name, and nothing above.
    let groups = "cat /proc/self/cgroup | cut -d: -f3 | sort -u";
    let (_, out) = as_pid_1(&a, groups).await;
    assert!(!out.contains("hutch-") && !out.contains("../.."), "{out}");
    // Its end is the sandbox's: nothing of it stays.
    let pid = a.identity().pid;
    let _ = as_pid_1(
        &a,
        "setsid sleep 1000 >/dev/null 2>&1 & kill -9 1; kill -SEGV 1",
    )
    .await;
    a.stop().await.unwrap();
    wait_until("it is gone", || !support::is_alive(pid)).await;
    drop(a);
    machine.close().await;
}

//! What root inside a sandbox sees of the host and of a neighbour: nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::io::Write;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::{Child, Command};
use std::sync::Arc;

use hutch_drivers::Instance;
use hutch_protocol::InstanceType;
use support::{Machine, run};

/// The output of a command that must succeed.
async fn ask(instance: &Arc<dyn Instance>, command: &str) -> String {
    let (code, out) = run(instance, command).await;
    assert_eq!(code, 0, "{command}: {out}");
    out
}

struct Sleeper(Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn no_process_of_the_host_or_a_neighbour_is_visible() {
    let machine = Machine::new().await;
    let _host = Sleeper(Command::new("sleep").arg("86399.25").spawn().unwrap());
    let a = machine.start("a", InstanceType::Basic).await;
    let b = machine.start("b", InstanceType::Basic).await;
    ask(&b, "sleep 86398.75 >/dev/null 2>&1 &").await;
    let seen = ask(
        &a,
        "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; ls -d /proc/[0-9]* | wc -l",
    )
    .await;
    assert!(
        !seen.contains("86399.25") && !seen.contains("86398.75"),
        "{seen}"
    );
    assert!(!seen.contains("spawner"), "{seen}");
    let (code, _) = run(&a, "kill -9 -1; sleep 0.1; test -e /proc/1").await;
    // Its own shell is gone, the neighbour's processes are not.
    assert_ne!(code, 1);
    assert!(
        ask(&b, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
            .await
            .contains("86398.75")
    );
    drop((a, b));
    machine.close().await;
}

#[tokio::test]
async fn no_file_or_mount_of_the_host_is_reachable() {
    let machine = Machine::new().await;
    let marker = machine.dir.path().join("marker-of-the-host");
    std::fs::write(&marker, "secret").unwrap();
    let a = machine.start("a", InstanceType::Basic).await;
    let b = machine.start("b", InstanceType::Basic).await;
    ask(
        &b,
        "echo secret > /workspace/marker-of-b; echo secret > /root/marker-of-b",
    )
    .await;
    let found = ask(
        &a,
        "find / -xdev \\( -name 'marker-of-*' -o -name spawner.sock \\) 2>/dev/null; ls /home /root /mnt /media /srv /opt",
    )
    .await;
    assert!(!found.contains("marker-of"), "{found}");
    assert!(!found.contains("spawner.sock"), "{found}");
    let path = marker.display();
    for way in [
        format!("cat {path}"),
        format!("cat /proc/1/root{path}"),
        format!("cat /proc/1/cwd/../../../..{path}"),
        format!("cd / && cat ../../..{path}"),
        format!("chroot /proc/1/root cat {path}"),
        "ls /proc/1/fd/5/..//daemon".into(),
        "cat /etc/machine-id".into(),
        "ls /etc/ssh".into(),
        "ls /usr/share/polkit-1/rules.d".into(),
    ] {
        let (code, out) = run(&a, &way).await;
        assert_ne!(code, 0, "{way}: {out}");
    }
    // No password of the host, and a mount table without its file systems.
    assert!(!ask(&a, "cat /etc/shadow").await.contains('$'));
    let mounts = ask(
        &a,
        "cut -d' ' -f5 /proc/self/mountinfo | grep -v -e ^/proc -e ^/sys -e ^/dev | sort | xargs",
    )
    .await;
    assert_eq!(mounts.trim(), "/ /etc /run /usr /workspace");
    drop((a, b));
    machine.close().await;
}

#[tokio::test]
async fn no_socket_or_network_of_the_host_is_reachable() {
    let machine = Machine::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let name = format!("hutch-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _abstract = UnixListener::bind_addr(&address).unwrap();
    let a = machine.start("a", InstanceType::Basic).await;
    let (code, _) = run(&a, &format!("exec 3<>/dev/tcp/127.0.0.1/{port}")).await;
    assert_ne!(code, 0);
    let (code, _) = run(&a, "exec 3<>/dev/tcp/192.0.2.1/80").await;
    assert_ne!(code, 0);
    let unix = ask(&a, "cat /proc/net/unix /proc/net/tcp /proc/net/udp").await;
    assert!(!unix.contains(&name), "{unix}");
    assert_eq!(unix.lines().count(), 3, "{unix}");
    assert_eq!(ask(&a, "ls /sys/class/net").await.trim(), "lo");
    assert_eq!(ask(&a, "tail -n +2 /proc/net/route; true").await, "");
    // Its own loopback works, low ports too.
    let served = ask(
        &a,
        "python3 -c \"import socket,threading; s=socket.socket(); s.bind(('127.0.0.1',80)); s.listen(); c=socket.create_connection(('127.0.0.1',80)); c.sendall(b'x'); print(s.accept()[0].recv(1))\"",
    )
    .await;
    assert!(served.contains("b'x'"), "{served}");
    drop(a);
    machine.close().await;
}

#[tokio::test]
async fn no_device_kernel_log_or_setting_of_the_host_is_there() {
    let machine = Machine::new().await;
    let a = machine.start("a", InstanceType::Basic).await;
    let devices = ask(&a, "ls /dev | xargs; find /dev -type b").await;
    assert_eq!(
        devices.trim(),
        "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero"
    );
    for way in [
        "mknod /tmp/disk b 254 0",
        "dmesg",
        "ls /sys/block",
        "ls /sys/class/block",
        "ls /sys/kernel/security",
        "ls /sys/firmware",
        "echo x > /proc/sys/kernel/core_pattern",
        "echo 1 > /proc/sys/vm/drop_caches",
        "echo x > /sys/kernel/mm/transparent_hugepage/enabled",
        "echo b > /proc/sysrq-trigger",
        "grep . /proc/kallsyms /proc/cmdline /proc/partitions /proc/diskstats /proc/keys",
        "hostname other",
        "ip link set lo down",
        "chmod 777 /proc/1/exe",
        "echo x >> /proc/1/exe",
    ] {
        let (code, out) = run(&a, way).await;
        assert_ne!(code, 0, "{way}: {out}");
    }
    drop(a);
    machine.close().await;
}

#[tokio::test]
async fn what_runs_inside_has_no_privilege_outside() {
    let machine = Machine::new().await;
    let a = machine.start("a", InstanceType::Basic).await;
    let status = ask(&a, "cat /proc/self/status").await;
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().to_owned()
    };
    assert_eq!(field("NoNewPrivs:"), "1");
    assert_eq!(field("Seccomp:"), "2");
    for set in ["CapPrm:", "CapEff:", "CapBnd:"] {
        let bits = u64::from_str_radix(&field(set), 16).unwrap();
        assert_eq!(bits & !0x8004_05fb, 0, "{set} {bits:x}");
    }
    // On the host its root is nobody in particular.
    let pid = a.identity().pid;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let uid = status
        .lines()
        .find(|line| line.starts_with("Uid:"))
        .unwrap();
    let uid: u32 = uid.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(uid >= 0x7000_0000, "{uid}");
    // A neighbour is another user.
    let b = machine.start("b", InstanceType::Basic).await;
    let status = std::fs::read_to_string(format!("/proc/{}/status", b.identity().pid)).unwrap();
    assert!(!status.contains(&format!("Uid:\t{uid}\t")), "{status}");
    // Given once the first command is through.
    let score = "until grep -qv '^0$' /proc/$$/oom_score_adj; do sleep 0.02; done; cat /proc/$$/oom_score_adj";
    assert_eq!(ask(&a, score).await.trim(), "200");
    assert_eq!(ask(&a, "ulimit -n").await.trim(), "16384");
    drop((a, b));
    machine.close().await;
}

#[tokio::test]
async fn programs_of_the_host_work_inside() {
    let machine = Machine::new().await;
    let a = machine.start("tools", InstanceType::Standard1).await;
    let mut log = std::io::sink();
    for command in [
        "bash --version",
        "git init /tmp/g && git -C /tmp/g -c user.name=a -c user.email=a@b commit --allow-empty -m x",
        "tar cf /tmp/t.tar /workspace && tar tf /tmp/t.tar",
        "curl --version",
        "ps aux && pgrep exe",
        "python3 -c 'import ssl, sqlite3, json; assert ssl.create_default_context().get_ca_certs()'",
        "test \"$(hostname)\" = tools && getent hosts tools && getent passwd root nobody",
        "touch /usr/local/bin/x /etc/x /opt/x /var/lib/x /root/x /tmp/x /run/x /dev/shm/x /workspace/x",
        "ln -s a /workspace/link && mkfifo /workspace/fifo && chown 1000:1000 /workspace/x",
        "su nobody -s /bin/sh -c 'test $(id -u) = 65534 && ! touch /etc/y'",
        "script -qc 'test -t 0' /dev/null",
    ] {
        let (code, out) = run(&a, command).await;
        assert_eq!(code, 0, "{command}: {out}");
        log.write_all(out.as_bytes()).unwrap();
    }
    drop(a);
    machine.close().await;
}

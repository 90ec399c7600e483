//! What of the kernel's own tables a sandbox can take, and that a neighbour
//! has its own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use hutch_protocol::InstanceType;
use support::{Machine, run};

/// Takes as many as it can get, and prints how many that were.
const GREED: &str = r#"
import ctypes, errno, os, resource, sys
libc = ctypes.CDLL(None, use_errno=True)
resource.setrlimit(resource.RLIMIT_NOFILE, (16384, 16384))
def most(name, take, limit):
    count = 0
    while count < limit and take(count) >= 0:
        count += 1
    print(name, count, errno.errorcode.get(ctypes.get_errno(), "-"), flush=True)
    return count
def terminal(_):
    try:
        return os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)
    except OSError as error:
        ctypes.set_errno(error.errno)
        return -1
# Held until the end: the next ones must do with what is left.
most("inotify", lambda _: libc.inotify_init(), 2000)
most("ptys", terminal, 5000)
most("msg", lambda _: libc.msgget(0, 0o1600), 5000)
most("sem", lambda _: libc.semget(0, 1, 0o1600), 5000)
libc.shmget.argtypes = (ctypes.c_int, ctypes.c_size_t, ctypes.c_int)
most("shm-mib", lambda _: libc.shmget(0, 1 << 20, 0o1600), 5000)
libc.timer_create.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
timer = ctypes.c_void_p()
most("timers", lambda _: libc.timer_create(1, None, ctypes.byref(timer)), 100000)
def queue(number):
    if os.fork() == 0:
        os._exit(0)
    os.wait()
    return libc.mq_open(b"/q%d" % number, os.O_CREAT | os.O_RDWR, 0o600, None)
most("mqueues", queue, 1000)
"#;

/// Name, and how many there may be.
const LIMITS: [(&str, u64); 7] = [
    ("inotify", 128),
    ("ptys", 256),
    ("msg", 256),
    ("sem", 512),
    // Half of what commands have of a basic sandbox.
    ("shm-mib", 448),
    ("timers", 16_384),
    // By their bytes: ten messages of 8 KiB each.
    ("mqueues", 9),
];

#[tokio::test]
async fn kernel_tables_are_bounded_and_a_neighbours_are_its_own() {
    let machine = Machine::new().await;
    let greedy = machine.start("greedy", InstanceType::Basic).await;
    let neighbour = machine.start("neighbour", InstanceType::Basic).await;
    std::fs::write(machine.volume("greedy").join("workspace/greed.py"), GREED).unwrap();
    // Another user inside shares the sandbox's limits, and gets what is left.
    let hold = "(cat /workspace/greed.py; echo 'import signal; signal.pause()') > /tmp/hold.py; \
                (python3 /tmp/hold.py > /tmp/first 2>&1; echo ended >> /tmp/first) >/dev/null 2>&1 & \
                until grep -q -e mqueues -e ended /tmp/first; do sleep 0.02; done; cat /tmp/first";
    let (code, out) = run(&greedy, hold).await;
    assert_eq!(code, 0, "{out}");
    for (name, most) in LIMITS {
        let line = out.lines().find(|line| line.starts_with(name));
        let line = line.unwrap_or_else(|| panic!("{name}: {out}"));
        let count: u64 = line.split(' ').nth(1).unwrap().parse().unwrap();
        assert!((most / 2..=most).contains(&count), "{name}: {out}");
    }
    let (_, second) = run(
        &greedy,
        "su nobody -s /bin/sh -c 'python3 /workspace/greed.py'",
    )
    .await;
    for name in [
        "inotify", "ptys", "msg", "sem", "shm-mib", "timers", "mqueues",
    ] {
        assert!(second.contains(&format!("{name} 0 ")), "{name}: {second}");
    }
    let (code, out) = run(
        &neighbour,
        "python3 -c 'import os,ctypes; l=ctypes.CDLL(None); os.open(\"/dev/ptmx\",2); assert l.inotify_init()>=0 and l.shmget(0,4096,896)>=0 and l.msgget(0,896)>=0'",
    )
    .await;
    assert_eq!(code, 0, "{out}");
    drop((greedy, neighbour));
    machine.close().await;
}

#[tokio::test]
async fn no_core_of_a_sandbox_reaches_the_host() {
    let machine = Machine::new().await;
    let a = machine.start("a", InstanceType::Basic).await;
    let change = "python3 -c \"import resource as r; \
                  [r.setrlimit(r.RLIMIT_CORE, (v, v)) for v in (0, 1)]; \
                  print(r.getrlimit(r.RLIMIT_CORE))\"";
    // At one, and at nothing else, the kernel runs no core program.
    let (code, out) = run(&a, change).await;
    assert_eq!((code, out.trim()), (0, "(1, 1)"));
    let (_, out) = run(
        &a,
        "cd /tmp && ulimit -c 0; sh -c 'kill -SEGV $$'; echo $?; ls -A /tmp",
    )
    .await;
    assert!(out.contains("139") && !out.contains("core"), "{out}");
    drop(a);
    machine.close().await;
}

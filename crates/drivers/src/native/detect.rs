//! What this machine can do for sandboxes, in words.

use std::fs;
use std::path::Path;

use rustix::thread::CapabilitySet;

use super::cgroup::Hierarchies;
use crate::{Capabilities, Capability, Support};

/// Looks, and changes nothing.
pub fn report() -> Capabilities {
    let mut items = vec![
        root(),
        architecture(),
        user_namespaces(),
        mounts(),
        seccomp(),
    ];
    items.extend(groups());
    items.push(disk());
    items.push(Capability {
        name: "network",
        support: Support::Ok,
        detail: "sandboxes have a loopback and no route out".into(),
    });
    Capabilities {
        driver: "native",
        items,
    }
}

fn item(name: &'static str, outcome: Result<String, String>) -> Capability {
    let (support, detail) = match outcome {
        Ok(detail) => (Support::Ok, detail),
        Err(detail) => (Support::Required, detail),
    };
    Capability {
        name,
        support,
        detail,
    }
}

fn root() -> Capability {
    let is_root = rustix::process::geteuid().is_root();
    let may_mount = rustix::thread::capabilities(None)
        .is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN));
    item(
        "root",
        match (is_root, may_mount) {
            (true, true) => Ok("the server runs as root".into()),
            (true, false) => Err("root without CAP_SYS_ADMIN cannot mount: run hutch outside of an unprivileged container".into()),
            (false, _) => Err("the server does not run as root: start hutch serve as root to run sandboxes".into()),
        },
    )
}

fn architecture() -> Capability {
    item(
        "architecture",
        if cfg!(target_arch = "x86_64") {
            Ok("x86-64".into())
        } else {
            Err("the system call list exists for x86-64 only".into())
        },
    )
}

fn user_namespaces() -> Capability {
    let most = fs::read_to_string("/proc/sys/user/max_user_namespaces").unwrap_or_default();
    let most: u64 = most.trim().parse().unwrap_or(0);
    item(
        "user namespaces",
        if Path::new("/proc/self/ns/user").exists() && most > 0 {
            Ok(format!("at most {most}"))
        } else {
            Err("the kernel gives none: set /proc/sys/user/max_user_namespaces".into())
        },
    )
}

/// The newest of the mount calls that are used came with Linux 6.3 (the
/// overlay over id-mapped layers is older); `cgroup.kill` with 5.14.
fn mounts() -> Capability {
    const NEEDED: (u32, u32) = (6, 3);
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let has_overlay = fs::read_to_string("/proc/filesystems")
        .is_ok_and(|all| all.lines().any(|line| line.ends_with("\toverlay")));
    let release = release.trim();
    item(
        "id-mapped mounts and overlay",
        match (version >= NEEDED, has_overlay) {
            (true, true) => Ok(format!("Linux {release}")),
            (false, _) => Err(format!("Linux {release} is older than 6.3")),
            (true, false) => Err("the kernel has no overlay file system: modprobe overlay".into()),
        },
    )
}

fn seccomp() -> Capability {
    let actions = fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail").unwrap_or_default();
    item(
        "seccomp",
        if actions.split_whitespace().any(|action| action == "errno") {
            Ok("system calls are limited to a written list".into())
        } else {
            Err("the kernel cannot filter system calls".into())
        },
    )
}

fn groups() -> Vec<Capability> {
    let found = match Hierarchies::detect() {
        Ok(found) => found,
        Err(cause) => {
            return vec![item("control groups", Err(cause.to_string()))];
        }
    };
    let v1: Vec<&str> = found.v1.keys().copied().collect();
    let limits = item(
        "memory and process limits",
        match found.obstacle() {
            None => Ok(format!("cgroup v1: {}", v1.join(", "))),
            Some(why) => Err(why),
        },
    );
    let missing = |name, there: bool, ok: &str, not: &str| Capability {
        name,
        support: if there { Support::Ok } else { Support::Missing },
        detail: if there { ok } else { not }.into(),
    };
    vec![
        limits,
        missing(
            "CPU share",
            found.v1.contains_key("cpu"),
            "a share of the processor that may burst",
            "no cpu controller: sandboxes share the processor evenly",
        ),
        missing(
            "CPU accounts",
            found.v1.contains_key("cpuacct"),
            "idleness is judged by CPU time too",
            "no cpuacct controller: idleness is judged without CPU time",
        ),
        missing(
            "kill and freeze",
            found.v2.is_some(),
            "cgroup v2",
            "no cgroup v2 hierarchy",
        ),
    ]
}

fn disk() -> Capability {
    Capability {
        name: "disk limits",
        support: Support::Missing,
        detail: "volumes are plain directories: a sandbox can fill the data directory's disk"
            .into(),
    }
}

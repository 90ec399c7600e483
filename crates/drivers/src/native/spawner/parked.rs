//! A boot prepared ahead: a process in its namespaces and groups that waits
//! for a sandbox to become.
//!
//! Entering groups, copying mounts and making namespaces take most of a boot's
//! time and need nothing of the sandbox, so they happen before it is asked
//! for. What is left is the volume's mounts, the ids and exec.

use std::convert::Infallible;
use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use hutch_images::HostImage;
use hutch_protocol::BootId;
use rustix::mount::{MountAttrFlags, MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::thread::UnshareFlags;
use serde::{Deserialize, Serialize};

use super::clock::Steps;
use super::exec::{self, Inherited};
use super::mounts::{self, Attributes};
use super::seccomp::Filters;
use super::step::Step;
use super::{dev, fork, identity, masks, namespaces, netns, quotas, rootfs, signals, userns};
use crate::native::cgroup::SlotGroups;
use crate::native::packet;

/// What a parked process needs of its spawner.
pub struct Plan<'a> {
    /// Its groups, made and handed to the range.
    pub groups: &'a SlotGroups,
    /// The first host id of its range.
    pub base: u32,
    /// Where the root's layers are.
    pub image: &'a HostImage,
    /// An empty directory of the host to work on.
    pub stage: &'a Path,
    /// The compiled filters.
    pub filters: &'a Filters,
    /// The socket to the spawner.
    pub control: OwnedFd,
}

/// What the spawner sends when a sandbox is wanted. Five descriptors come
/// along: the volume's tree, the two listening sockets, the daemon's tree and
/// the pipe for what it writes.
#[derive(Debug, Serialize, Deserialize)]
pub struct Go {
    /// The boot.
    pub boot: BootId,
    /// The name of the machine inside.
    pub hostname: String,
    /// The size of `/dev/shm`, and as much again for System V, in bytes.
    pub shm: u64,
}

/// What a parked process tells.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Told {
    /// It waits.
    Ready {
        /// Steps and microseconds of the preparation.
        steps: Vec<(String, u64)>,
    },
    /// It becomes the daemon now; if that fails, `Failed` follows.
    Becoming {
        /// Steps and microseconds since it was asked.
        steps: Vec<(String, u64)>,
    },
    /// It could not, and ends.
    Failed {
        /// Which step, and why.
        message: String,
    },
}

/// What preparation leaves for the boot.
struct Prepared {
    shmall: Option<fs::File>,
    namespace: OwnedFd,
    commands: OwnedFd,
    command_filter: OwnedFd,
    attach: Vec<OwnedFd>,
}

/// Runs in the child, as PID 1 of a fresh pid namespace. Never returns.
pub fn run(plan: Plan<'_>) -> ! {
    fork::close_all_but(&[
        plan.control.as_raw_fd(),
        plan.filters.for_commands.as_raw_fd(),
    ]);
    let Err(cause) = signals::restore()
        .and_then(|()| prepare(&plan))
        .and_then(|prepared| boot(&plan, prepared));
    fail(&plan.control, &cause)
}

/// Tells the spawner and ends.
fn fail(control: &OwnedFd, cause: &io::Error) -> ! {
    let message = cause.to_string();
    let _ = packet::send(control, &Told::Failed { message }, &[]);
    fork::leave(1)
}

fn prepare(plan: &Plan<'_>) -> io::Result<Prepared> {
    let mut steps = Steps::start();
    // Back to back: the first entry waits for a grace period, the next do not.
    let mut attach = Vec::new();
    for place in plan.groups.birth_places() {
        let mut file = fs::File::options()
            .write(true)
            .open(&place)
            .step("open a group")?;
        file.write_all(b"0").step("enter a group")?;
        attach.push(OwnedFd::from(file));
    }
    // The root of the view of groups is the whole boot's, so that a command
    // may be born in a sibling of the daemon's group.
    namespaces::unshare(UnshareFlags::NEWCGROUP).step("unshare the group view")?;
    fs::write(plan.groups.v2().join("daemon/cgroup.procs"), "0").step("enter the v2 group")?;
    steps.mark("groups");
    namespaces::unshare(
        UnshareFlags::NEWNS | UnshareFlags::NEWNET | UnshareFlags::NEWUTS | UnshareFlags::NEWIPC,
    )
    .step("unshare")?;
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
    .step("make mounts private")?;
    steps.mark("namespaces");
    let layers = rootfs::Layers::open(plan.image)?;
    let commands =
        mounts::copy(plan.groups.v2().join("commands")).step("copy the group's mount")?;
    let mut shown = Vec::new();
    for (name, group) in plan.groups.shown() {
        shown.push((name, mounts::copy(&group).step("copy a group's mount")?));
    }
    identity::keep_capabilities().step("keep capabilities")?;
    leave_host(plan.stage)?;
    masks::mount_proc()?;
    steps.mark("stage");
    // While /proc/sys is writable.
    netns::set_up().step("set up the network namespace")?;
    let shmall = quotas::bound_ipc().step("bound ipc")?;
    steps.mark("network");
    let namespace = userns::make(plan.base).step("make the user namespace")?;
    steps.mark("userns");
    layers.attach(&namespace)?;
    masks::mask_proc(rootfs::EMPTY, rootfs::VOID).step("mask /proc")?;
    masks::mount_sys(rootfs::SPARE, shown).step("set up /sys")?;
    dev::mount(plan.base).step("set up /dev")?;
    dev::mount_run(plan.base).step("set up /run")?;
    steps.mark("mounts");
    let told = Told::Ready {
        steps: steps.into(),
    };
    packet::send(&plan.control, &told, &[])?;
    Ok(Prepared {
        shmall,
        namespace,
        commands,
        command_filter: plan.filters.for_commands.try_clone()?,
        attach,
    })
}

/// Makes an empty tmpfs the root of everything and drops the host's mounts.
fn leave_host(stage: &Path) -> io::Result<()> {
    // Searchable by the sandbox's root, who mounts the overlays.
    let root = mounts::new("tmpfs", &[("mode", "0711")], MountAttrFlags::empty())
        .step("make the stage")?;
    mounts::attach(root, stage).step("attach the stage")?;
    rustix::process::chdir(stage)?;
    for name in rootfs::STAGE_DIRS {
        fs::create_dir_all(name)?;
    }
    fs::write(rootfs::EMPTY.trim_start_matches('/'), "")?;
    rustix::process::pivot_root(".", ".").step("leave the host's root")?;
    unmount(".", UnmountFlags::DETACH).step("drop the host's mounts")?;
    Ok(rustix::process::chdir("/")?)
}

fn boot(plan: &Plan<'_>, prepared: Prepared) -> io::Result<Infallible> {
    let Some((go, fds)) = packet::receive::<Go>(&plan.control)? else {
        // The spawner is gone or does not need this boot.
        fork::leave(0)
    };
    let mut steps = Steps::start();
    let Ok([volume, user, control, daemon, output]) = <[OwnedFd; 5]>::try_from(fds) else {
        return Err(io::Error::other("the boot came without its descriptors"));
    };
    rustix::system::sethostname(go.hostname.as_bytes()).step("set the host name")?;
    dev::limit_shm(go.shm).step("limit /dev/shm")?;
    quotas::allow_shm(prepared.shmall, go.shm).step("limit shared memory")?;
    mounts::set(
        &daemon,
        Attributes {
            set: libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV,
            clear: libc::MOUNT_ATTR_NOEXEC,
            idmap: Some(&prepared.namespace),
            ..Attributes::default()
        },
    )
    .step("map the daemon's ids")?;
    steps.mark("daemon");
    rootfs::assemble(
        &volume,
        &prepared.namespace,
        plan.base,
        &go.hostname,
        &mut steps,
    )?;
    rootfs::enter(&mut steps)?;
    steps.mark("drop");
    let environment = environment(&go, prepared.attach.len());
    let inherited = Inherited {
        output,
        user,
        control,
        commands: prepared.commands,
        command_filter: prepared.command_filter,
        attach: prepared.attach,
    };
    let spawner = plan.control.try_clone()?;
    drop(volume);
    let kept = exec::place(inherited, vec![prepared.namespace, daemon, spawner]);
    // From here on what the frames above own is closed: nothing may return.
    let Ok([namespace, daemon, spawner]) = <[OwnedFd; 3]>::try_from(kept.unwrap_or_default())
    else {
        fork::leave(1)
    };
    let ended = exec::drop_privileges(&namespace, false)
        .and_then(|()| {
            steps.mark("privileges");
            let steps = std::mem::take(&mut steps).into();
            packet::send(&spawner, &Told::Becoming { steps }, &[])
        })
        .and_then(|()| exec::become_daemon(&daemon, plan.filters, &environment));
    let Err(cause) = ended.step("become the daemon");
    fail(&spawner, &cause)
}

/// What the daemon starts with.
fn environment(go: &Go, attach: usize) -> Vec<String> {
    let attach = (exec::ATTACH..).take(attach).map(|fd| fd.to_string());
    let attach: Vec<String> = attach.collect();
    vec![
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into(),
        "HOME=/root".into(),
        "LANG=C.UTF-8".into(),
        format!("SANDBOXD_BOOT_ID={}", go.boot),
        format!("SANDBOXD_HOSTNAME={}", go.hostname),
        "SANDBOXD_COMMANDS_CGROUP=5".into(),
        "SANDBOXD_COMMAND_SECCOMP=8".into(),
        format!("SANDBOXD_STARTER_ATTACH={}", attach.join(",")),
    ]
}

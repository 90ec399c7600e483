//! The sandbox's root: its volume, the image's layers and what was prepared.
//!
//! Names here are seen inside, in `/proc/self/mountinfo`, so they are short
//! and tell nothing.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::chown;

use hutch_images::HostImage;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{UnmountFlags, unmount};

use super::clock::Steps;
use super::mounts::{self, Attributes};
use super::overlay;
use super::step::Step;

/// An empty file that covers files.
pub const EMPTY: &str = "/low/empty";
/// An empty directory that covers directories.
pub const VOID: &str = "/low/void";
/// A directory for mounts that do not stay.
pub const SPARE: &str = "/low/spare";
/// The layer with this boot's names.
const BOOT: &str = "/low/boot";
const USR: &str = "/low/usr";
const USR_MASK: &str = "/low/mask";
const ETC: &str = "/low/etc";
const VOLUME: &str = "/v";
const ROOT: &str = "/r";

/// What the stage has from the start, relative to it.
pub const STAGE_DIRS: [&str; 12] = [
    "dev",
    "proc",
    "sys",
    "run",
    "v",
    "r",
    "low/void",
    "low/spare",
    "low/boot",
    "low/usr",
    "low/mask",
    "low/etc",
];

/// Detached copies of the image's layers, taken while the host is in sight.
pub struct Layers {
    usr: OwnedFd,
    usr_mask: OwnedFd,
    etc: OwnedFd,
}

impl Layers {
    /// Takes the copies.
    pub fn open(image: &HostImage) -> io::Result<Self> {
        Ok(Self {
            usr: mounts::copy(&image.usr).step("copy /usr")?,
            usr_mask: mounts::copy(&image.usr_mask).step("copy the mask of /usr")?,
            etc: mounts::copy(&image.etc).step("copy the image's /etc")?,
        })
    }

    /// Maps their ids into `namespace` and attaches them.
    pub fn attach(self, namespace: &OwnedFd) -> io::Result<()> {
        for (layer, place) in [(self.usr, USR), (self.usr_mask, USR_MASK), (self.etc, ETC)] {
            mounts::set(
                &layer,
                Attributes {
                    set: libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NODEV,
                    clear: libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC,
                    idmap: Some(namespace),
                    ..Attributes::default()
                },
            )
            .step("map the ids of a layer")?;
            mounts::attach(layer, place).step(place)?;
        }
        Ok(())
    }
}

/// Puts the root together at `/r`.
pub fn assemble(
    volume: &OwnedFd,
    namespace: &OwnedFd,
    base: u32,
    hostname: &str,
    steps: &mut Steps,
) -> io::Result<()> {
    mounts::set(
        volume,
        Attributes {
            set: libc::MOUNT_ATTR_NODEV,
            clear: libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC | libc::MOUNT_ATTR_RDONLY,
            idmap: Some(namespace),
            ..Attributes::default()
        },
    )
    .step("map the ids of the volume")?;
    mounts::attach(volume, VOLUME).step("attach the volume")?;
    mounts::attach(mounts::copy("/v/root").step("copy the root")?, ROOT).step("attach the root")?;
    steps.mark("volume");
    write_names(base, hostname).step("write the host's name")?;
    steps.mark("names");
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::openat(CWD, ROOT, flags, Mode::empty())?;
    let usr = overlay::mount(&[USR_MASK, USR], "/v/usr", base).step("/usr")?;
    mounts::attach_in(usr, root.as_fd(), "usr").step("attach /usr")?;
    steps.mark("usr");
    let etc = overlay::mount(&[BOOT, ETC], "/v/etc", base).step("/etc")?;
    mounts::attach_in(etc, root.as_fd(), "etc").step("attach /etc")?;
    steps.mark("etc");
    let workspace = mounts::copy("/v/workspace").step("copy the workspace")?;
    mounts::attach_in(workspace, root.as_fd(), "workspace").step("attach the workspace")?;
    for name in ["proc", "sys", "dev", "run"] {
        mounts::move_in(format!("/{name}"), root.as_fd(), name).step(name)?;
    }
    steps.mark("moves");
    Ok(())
}

/// The layer of `/etc` that is this boot's own.
fn write_names(base: u32, hostname: &str) -> io::Result<()> {
    for (name, content) in [
        ("hostname", format!("{hostname}\n")),
        (
            "hosts",
            format!("127.0.0.1 localhost {hostname}\n::1 localhost ip6-localhost {hostname}\n"),
        ),
    ] {
        let path = format!("{BOOT}/{name}");
        fs::write(&path, content)?;
        rustix::fs::chmod(&path, Mode::from_raw_mode(0o644))?;
        chown(&path, Some(base), Some(base))?;
    }
    chown(BOOT, Some(base), Some(base))
}

/// Makes `/r` the root and drops the stage.
pub fn enter(steps: &mut Steps) -> io::Result<()> {
    rustix::process::chdir(ROOT)?;
    rustix::process::pivot_root(".", ".").step("enter the root")?;
    steps.mark("pivot");
    unmount(".", UnmountFlags::DETACH).step("drop the stage")?;
    Ok(rustix::process::chdir("/")?)
}

//! What the host hands to PID 1: descriptors by number, and a few variables
//! that say which numbers.

use crate::start::adopt;
use rustix::fd::{OwnedFd, RawFd};
use std::os::unix::net::UnixListener;

/// The listening socket of the `user` main.
const USER: RawFd = 3;
/// The listening socket of the `control` main.
const CONTROL: RawFd = 4;
const COMMANDS_CGROUP: &str = "SANDBOXD_COMMANDS_CGROUP";
const COMMAND_SECCOMP: &str = "SANDBOXD_COMMAND_SECCOMP";
const STARTER_ATTACH: &str = "SANDBOXD_STARTER_ATTACH";
const WORKSPACE: &str = "SANDBOXD_WORKSPACE";

/// What was inherited.
#[derive(Debug)]
pub struct Inheritance {
    /// The listening socket of the `user` main.
    pub user: UnixListener,
    /// The listening socket of the `control` main.
    pub control: UnixListener,
    /// The directory of the commands' control group.
    pub groups: Option<OwnedFd>,
    /// The commands' system-call filter.
    pub filter: Option<OwnedFd>,
    /// Opened `cgroup.procs` files for a starter to join that is forked later.
    pub attach: Vec<OwnedFd>,
    /// Where commands start.
    pub workspace: String,
}

/// The host did not hand over what it must.
#[derive(Debug, thiserror::Error)]
pub enum InheritanceError {
    /// A descriptor is missing.
    #[error("descriptor {0} ({1}) was not inherited")]
    Missing(RawFd, &'static str),
    /// A variable names no descriptor.
    #[error("{0} is no descriptor number: {1:?}")]
    NotANumber(&'static str, String),
    /// A socket is no listening socket.
    #[error("descriptor {0} cannot be used: {1}")]
    Unusable(RawFd, std::io::Error),
}

impl Inheritance {
    /// Takes everything over. Call it once, before anything else opens descriptors.
    ///
    /// # Errors
    /// See [`InheritanceError`].
    pub fn take() -> Result<Self, InheritanceError> {
        let attach = std::env::var(STARTER_ATTACH).unwrap_or_default();
        let attach = attach.split(',').filter(|part| !part.is_empty());
        Ok(Self {
            user: listener(USER, "the user socket")?,
            control: listener(CONTROL, "the control socket")?,
            groups: named(COMMANDS_CGROUP)?,
            filter: named(COMMAND_SECCOMP)?,
            attach: attach
                .map(|part| numbered(STARTER_ATTACH, part))
                .collect::<Result<_, _>>()?,
            workspace: std::env::var(WORKSPACE)
                .ok()
                .filter(|path| path.starts_with('/'))
                .unwrap_or_else(|| "/workspace".into()),
        })
    }
}

fn listener(number: RawFd, what: &'static str) -> Result<UnixListener, InheritanceError> {
    let descriptor = adopt(number).map_err(|_| InheritanceError::Missing(number, what))?;
    let listener = UnixListener::from(descriptor);
    listener
        .set_nonblocking(true)
        .map_err(|error| InheritanceError::Unusable(number, error))?;
    Ok(listener)
}

fn named(variable: &'static str) -> Result<Option<OwnedFd>, InheritanceError> {
    match std::env::var(variable) {
        Ok(text) => numbered(variable, &text).map(Some),
        Err(_) => Ok(None),
    }
}

fn numbered(variable: &'static str, text: &str) -> Result<OwnedFd, InheritanceError> {
    let number = text
        .parse()
        .map_err(|_| InheritanceError::NotANumber(variable, text.to_owned()))?;
    adopt(number).map_err(|_| InheritanceError::Missing(number, variable))
}

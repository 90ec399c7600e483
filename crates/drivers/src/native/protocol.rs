//! What the server and the spawner say to each other.
//!
//! One JSON document a packet, small and versioned. Both ends are trusted and
//! run as root; the limits keep a bug on one side from hurting the other.

use hutch_protocol::{BootId, Generation};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

use crate::{BootIdentity, CpuLimit, Exit, StartSpec};

/// The version that both ends must speak.
pub const VERSION: u32 = 2;
/// The largest packet, in bytes.
pub const PACKET_MAX: usize = 64 * 1024;
/// How many boots one page of `running` lists.
pub const PAGE: usize = 64;

/// A request of the server.
#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    /// [`VERSION`].
    pub v: u32,
    /// Chosen by the server, repeated in the reply; never 0.
    pub id: u64,
    /// What is asked.
    pub body: Ask,
}

/// A first packet, as every version reads it: what the body is beyond
/// [`Hello`] may change with `v`.
#[derive(Debug, Deserialize)]
pub struct Greeting {
    /// The [`VERSION`] of who sent it.
    pub v: u32,
    /// As [`Request::id`].
    pub id: u64,
    /// A hello.
    pub body: Hello,
}

/// How a server introduces itself. Every field that is added has a default, so
/// that each version can read every other's.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// The server's generation; an older one than was seen is refused.
    pub generation: Generation,
    /// The daemon's binary for the next boots.
    pub sandboxd: PathBuf,
    /// How many boots to prepare ahead.
    pub parked: usize,
    /// Whether CPU is capped from the next boot on.
    #[serde(default)]
    pub cpu: CpuLimit,
    /// The server's build ([`super::build`]); empty if it does not say.
    #[serde(default)]
    pub build: String,
    /// What makes its program the spawner: the arguments before
    /// `--data-dir`.
    #[serde(default)]
    pub words: Vec<String>,
}

/// What a server may ask.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum Ask {
    /// Must come first. The server's own program may come along: a spawner of
    /// another build becomes it.
    Hello(Hello),
    /// Boots a sandbox. The reply carries PID 1's pidfd.
    Start {
        /// What to boot.
        spec: StartSpec,
    },
    /// Lists boots. The reply carries a pidfd for each, in order.
    Running {
        /// The last boot of the page before.
        after: Option<BootId>,
    },
    /// Ends a boot and removes what it made. A boot that is not known is gone.
    Stop {
        /// Which one.
        boot: BootId,
    },
}

/// A reply to a request, or with id 0 a notice.
#[derive(Debug, Serialize, Deserialize)]
pub struct Reply {
    /// [`VERSION`].
    pub v: u32,
    /// The request's id.
    pub id: u64,
    /// The answer.
    pub body: Answer,
}

/// What the spawner answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum Answer {
    /// The server is obeyed from now on.
    Welcome {},
    /// The boot runs.
    Started {
        /// The boot.
        boot: Boot,
        /// Where the time went: step and microseconds.
        steps: Vec<(String, u64)>,
    },
    /// A page of boots.
    Running {
        /// In order of their ids.
        boots: Vec<Boot>,
        /// Whether there is another page.
        more: bool,
    },
    /// The boot is gone and removed.
    Stopped {},
    /// A notice: PID 1 of a boot is gone.
    Exited {
        /// Which one.
        boot: BootId,
        /// How it ended.
        exit: Exit,
    },
    /// A notice: another server is obeyed from now on.
    Superseded {
        /// Its generation.
        generation: Generation,
    },
    /// The request failed.
    Failed {
        /// Which kind of failure.
        reason: Refusal,
        /// For people.
        message: String,
    },
}

/// Kinds of failure that the server tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// A newer server is obeyed.
    Superseded,
    /// The server speaks another version.
    Version,
    /// No room for one more.
    Capacity,
    /// A step on the host failed.
    Step,
}

/// A boot, as both sides know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boot {
    /// Which one.
    pub identity: BootIdentity,
    /// Its place below the data directory's `run/boots`, with its sockets.
    pub slot: String,
}

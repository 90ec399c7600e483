//! What PID 1 asks of the starter and what the starter answers, as datagrams.

use std::ffi::CString;

/// One process to start. Descriptors travel beside it: stdin, stdout, stderr,
/// then the script (see [`Launch::script`]) if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// Names the call; the reply repeats it and the call's group is named by it.
    pub call: u64,
    /// The argument vector; the first is looked up in `PATH` of `env` unless it holds a slash.
    pub argv: Vec<CString>,
    /// The whole environment, as `NAME=value`.
    pub env: Vec<CString>,
    /// The working directory.
    pub cwd: CString,
    /// Whether a fourth descriptor travels along, to be the process's descriptor 3.
    pub script: bool,
}

/// Where a start failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The request could not be read.
    Request,
    /// No process could be made.
    Clone,
    /// The standard streams could not be put in place.
    Streams,
    /// The working directory could not be entered.
    Directory,
    /// The system-call filter could not be installed.
    Filter,
    /// The program could not be executed.
    Exec,
}

impl Stage {
    const ALL: [Stage; 6] = [
        Self::Request,
        Self::Clone,
        Self::Streams,
        Self::Directory,
        Self::Filter,
        Self::Exec,
    ];

    pub(super) fn code(self) -> u32 {
        match self {
            Self::Request => 1,
            Self::Clone => 2,
            Self::Streams => 3,
            Self::Directory => 4,
            Self::Filter => 5,
            Self::Exec => 6,
        }
    }

    pub(super) fn from_code(code: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.code() == code)
    }
}

/// The starter's answer to one [`Launch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The program runs.
    Started {
        /// Its process id, also the id of its session and process group.
        pid: i32,
        /// Whether it has a control group of its own.
        grouped: bool,
    },
    /// Nothing runs.
    Failed {
        /// Where it failed.
        stage: Stage,
        /// The operating system's error number.
        errno: i32,
    },
}

impl Launch {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        out.extend_from_slice(&self.call.to_le_bytes());
        out.push(u8::from(self.script));
        put(&mut out, self.cwd.as_bytes());
        for list in [&self.argv, &self.env] {
            out.extend_from_slice(&length(list.len()).to_le_bytes());
            for text in list {
                put(&mut out, text.as_bytes());
            }
        }
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let call = u64::from_le_bytes(take(&mut rest, 8)?.try_into().ok()?);
        let script = take(&mut rest, 1)?.first().copied()? == 1;
        let cwd = text(&mut rest)?;
        let argv = texts(&mut rest)?;
        let env = texts(&mut rest)?;
        (rest.is_empty() && !argv.is_empty()).then_some(Self {
            call,
            argv,
            env,
            cwd,
            script,
        })
    }
}

/// Encodes the answer to `call`.
pub(super) fn encode_reply(call: u64, outcome: Outcome) -> [u8; 20] {
    let (kind, a, b) = match outcome {
        Outcome::Started { pid, grouped } => (u32::from(grouped), pid, 0),
        Outcome::Failed { stage, errno } => (2, errno, stage.code()),
    };
    let mut out = [0; 20];
    out[..8].copy_from_slice(&call.to_le_bytes());
    out[8..12].copy_from_slice(&kind.to_le_bytes());
    out[12..16].copy_from_slice(&a.to_le_bytes());
    out[16..].copy_from_slice(&b.to_le_bytes());
    out
}

/// Decodes an answer into the call it is for and the outcome.
pub(super) fn decode_reply(bytes: &[u8]) -> Option<(u64, Outcome)> {
    let mut rest = bytes;
    let call = u64::from_le_bytes(take(&mut rest, 8)?.try_into().ok()?);
    let mut word = || Some(u32::from_le_bytes(take(&mut rest, 4)?.try_into().ok()?));
    let (kind, a, b) = (word()?, word()?.cast_signed(), word()?);
    let outcome = match kind {
        0 | 1 => Outcome::Started {
            pid: a,
            grouped: kind == 1,
        },
        2 => Outcome::Failed {
            stage: Stage::from_code(b)?,
            errno: a,
        },
        _ => return None,
    };
    Some((call, outcome))
}

fn length(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&length(bytes.len()).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn take<'a>(rest: &mut &'a [u8], n: usize) -> Option<&'a [u8]> {
    let (head, tail) = rest.split_at_checked(n)?;
    *rest = tail;
    Some(head)
}

fn text(rest: &mut &[u8]) -> Option<CString> {
    let n = u32::from_le_bytes(take(rest, 4)?.try_into().ok()?);
    CString::new(take(rest, usize::try_from(n).ok()?)?).ok()
}

fn texts(rest: &mut &[u8]) -> Option<Vec<CString>> {
    let n = u32::from_le_bytes(take(rest, 4)?.try_into().ok()?);
    (0..n).map(|_| text(rest)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_launch_survives_the_wire_and_no_cut_of_it_is_accepted() {
        let launch = Launch {
            call: 7,
            argv: vec![c"bash".into(), c"-c".into(), c"echo '\xff'".into()],
            env: vec![c"A=".into(), c"B=x=y\n".into()],
            cwd: c"/workspace".into(),
            script: true,
        };
        let bytes = launch.encode();
        assert_eq!(Launch::decode(&bytes).unwrap(), launch);
        for cut in 0..bytes.len() {
            assert_eq!(Launch::decode(&bytes[..cut]), None);
        }
    }

    #[test]
    fn replies_survive_the_wire() {
        for outcome in [
            Outcome::Started {
                pid: 12,
                grouped: true,
            },
            Outcome::Started {
                pid: 12,
                grouped: false,
            },
            Outcome::Failed {
                stage: Stage::Directory,
                errno: 2,
            },
        ] {
            assert_eq!(decode_reply(&encode_reply(9, outcome)), Some((9, outcome)));
        }
    }
}

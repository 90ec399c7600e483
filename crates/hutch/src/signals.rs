//! The signals that break a command off.

use crate::failure::Failure;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens from the moment it is made, so that no signal is lost meanwhile.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

/// A signal that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received(SignalKind);

impl Signals {
    /// Starts listening.
    pub fn listen() -> Result<Self, Failure> {
        let on = |kind| {
            signal(kind).map_err(|error| {
                Failure::new("INTERNAL_ERROR", format!("cannot catch signals: {error}"))
            })
        };
        Ok(Self {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
            hangup: on(SignalKind::hangup())?,
        })
    }

    /// The next signal.
    pub async fn next(&mut self) -> Received {
        tokio::select! {
            _ = self.interrupt.recv() => Received(SignalKind::interrupt()),
            _ = self.terminate.recv() => Received(SignalKind::terminate()),
            _ = self.hangup.recv() => Received(SignalKind::hangup()),
        }
    }
}

impl Received {
    /// Its name, as the sandbox understands it.
    pub fn name(self) -> &'static str {
        match self.0 {
            kind if kind == SignalKind::interrupt() => "SIGINT",
            kind if kind == SignalKind::hangup() => "SIGHUP",
            _ => "SIGTERM",
        }
    }

    /// What a shell answers for a program that the signal ended: 130 for Ctrl-C.
    pub fn exit_code(self) -> u8 {
        u8::try_from(128 + self.0.as_raw_value()).unwrap_or(u8::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_a_shell() {
        assert_eq!(Received(SignalKind::interrupt()).exit_code(), 130);
        assert_eq!(Received(SignalKind::terminate()).exit_code(), 143);
        assert_eq!(Received(SignalKind::hangup()).exit_code(), 129);
    }
}

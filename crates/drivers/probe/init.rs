//! A sandbox's PID 1 for tests.
//!
//! A line on the user socket is a shell command, run by the starter in the
//! commands' groups; the answer is its exit code on a line, then its output. A
//! line on the control socket is run the same way by PID 1 itself, with all
//! that PID 1 has: this is a sandbox whose daemon was taken over. An empty line
//! is answered by `pong`, and `say WORDS` goes to PID 1's standard error.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, ExitCode, Stdio};

/// The inherited listening sockets.
const USER: i32 = 3;
const CONTROL: i32 = 4;
/// Tells the copy that runs commands from PID 1.
const STARTER: &str = "HUTCH_PROBE_STARTER";

pub fn run() -> ExitCode {
    let outcome = if std::env::var_os(STARTER).is_some() {
        start_commands()
    } else {
        be_daemon()
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// PID 1: forks the starter first thing, then answers for itself.
fn be_daemon() -> io::Result<()> {
    let mut starter = Command::new("/proc/self/exe")
        .env(STARTER, "1")
        .stdin(Stdio::null())
        .spawn()?;
    let control = UnixListener::from(inherited(CONTROL)?);
    std::thread::spawn(move || {
        for peer in control.incoming().flatten() {
            std::thread::spawn(move || answer(peer));
        }
    });
    starter.wait()?;
    Ok(())
}

fn start_commands() -> io::Result<()> {
    let user = UnixListener::from(inherited(USER)?);
    for peer in user.incoming() {
        let peer = peer?;
        std::thread::spawn(move || answer(peer));
    }
    Ok(())
}

fn answer(mut peer: UnixStream) -> io::Result<()> {
    let mut line = String::new();
    BufReader::new(peer.try_clone()?).read_line(&mut line)?;
    if line.trim_end().is_empty() {
        return peer.write_all(b"pong");
    }
    if let Some(words) = line.strip_prefix("say ") {
        return io::stderr().write_all(words.as_bytes());
    }
    let output = Command::new("/bin/bash")
        .args(["-c", line.trim_end()])
        .stdin(Stdio::null())
        .current_dir("/workspace")
        .output()?;
    let code = output.status.code().unwrap_or(-1);
    writeln!(peer, "{code}")?;
    peer.write_all(&output.stdout)?;
    peer.write_all(&output.stderr)
}

fn inherited(number: i32) -> io::Result<OwnedFd> {
    // SAFETY: the driver opened it and it stays open for this process's life.
    let fd = unsafe { BorrowedFd::borrow_raw(number) };
    fd.try_clone_to_owned()
}

//! Becoming another build of hutch without letting go of anything.
//!
//! The successor is asked first, as a child, whether it can read the state.
//! Only then does this process become it, with every descriptor that matters.
//! Whatever fails before leaves this process as it was.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, WaitOptions, pidfd_send_signal, waitpid};

use super::fork::{self, Side};
use super::store::Outgoing;
use super::{Arguments, signals};
use crate::native::protocol::Hello;

/// How long a successor may take to read the state.
const TRIAL: Duration = Duration::from_secs(5);
/// How much of what it says is kept.
const WORDS_MAX: u64 = 2048;
/// How long the spawner may take to come to rest before it changes.
pub const REST: Duration = Duration::from_secs(10);

/// The flag by which a program is asked whether it can read a state.
pub const CHECK: &str = "--check-state";
/// The flag by which a program goes on from a state.
pub const RESUME: &str = "--resume";

/// What is to be become, and for whom.
pub struct Upgrade {
    /// The program.
    pub program: File,
    /// Its arguments before `--data-dir`.
    pub words: Vec<String>,
    /// The server that asked, which gets an answer if it fails.
    pub asker: Option<Asker>,
    /// When it is given up.
    pub until: Instant,
}

/// A server that says hello from another build.
pub struct Asker {
    /// Its connection.
    pub peer: OwnedFd,
    /// Its request.
    pub id: u64,
    /// Whether both speak the same protocol.
    pub speaks: bool,
    /// What it said.
    pub hello: Hello,
}

impl Upgrade {
    /// An upgrade to a server's program.
    pub fn asked(program: OwnedFd, asker: Asker) -> Self {
        Self {
            program: program.into(),
            words: asker.hello.words.clone(),
            asker: Some(asker),
            until: Instant::now() + REST,
        }
    }

    /// An upgrade to what is now at the path that this program came from.
    pub fn from_own_path() -> io::Result<Self> {
        let own = std::fs::read_link("/proc/self/exe")?;
        let bytes = own.as_os_str().as_bytes();
        let bytes = bytes.strip_suffix(b" (deleted)").unwrap_or(bytes);
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(bytes));
        let words = std::env::args_os()
            .skip(1)
            .take_while(|word| word != "--data-dir")
            .map(|word| word.to_string_lossy().into_owned());
        Ok(Self {
            program: File::open(path)?,
            words: words.collect(),
            asker: None,
            until: Instant::now() + REST,
        })
    }

    /// Asks the successor, then becomes it. Returns only if that failed. The
    /// caller keeps every descriptor open that `state` names.
    pub fn exec(&self, arguments: &Arguments, state: &OwnedFd) -> io::Error {
        let mut store = Outgoing::default();
        let tried = store.keep(state.as_fd()).and_then(|number| {
            self.try_out(&self.command(arguments, CHECK, number)?)?;
            self.command(arguments, RESUME, number)
        });
        match tried {
            Ok(words) => become_program(&self.program, &words),
            Err(cause) => cause,
        }
    }

    fn command(&self, arguments: &Arguments, flag: &str, state: i32) -> io::Result<Vec<CString>> {
        let mut words = vec![b"hutch".to_vec()];
        words.extend(self.words.iter().map(|word| word.as_bytes().to_vec()));
        words.push(b"--data-dir".to_vec());
        words.push(arguments.data_dir.as_os_str().as_bytes().to_vec());
        if let Some(images) = &arguments.image_dir {
            words.push(b"--image-dir".to_vec());
            words.push(images.as_os_str().as_bytes().to_vec());
        }
        words.push(flag.as_bytes().to_vec());
        words.push(state.to_string().into_bytes());
        words
            .into_iter()
            .map(|word| CString::new(word).map_err(io::Error::from))
            .collect()
    }

    /// Runs the program as a child that reads the state and does nothing.
    fn try_out(&self, words: &[CString]) -> io::Result<()> {
        let (told, tell) = io::pipe()?;
        match fork::fork(0, None)? {
            Side::Child => {
                let quiet = rustix::stdio::dup2_stdout(&tell)
                    .and_then(|()| rustix::stdio::dup2_stderr(&tell));
                if quiet.is_ok() && signals::restore().is_ok() {
                    become_program(&self.program, words);
                }
                fork::leave(127)
            }
            Side::Parent { pid, pidfd } => {
                drop(tell);
                let pause = Timespec::try_from(TRIAL).unwrap_or_default();
                let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
                let ended = matches!(poll(&mut fds, Some(&pause)), Ok(1..));
                if !ended {
                    let _ = pidfd_send_signal(&pidfd, Signal::KILL);
                }
                let status = waitpid(Some(pid), WaitOptions::empty())?;
                let mut said = String::new();
                let _ = told.take(WORDS_MAX).read_to_string(&mut said);
                match status {
                    _ if !ended => Err(io::Error::from(io::ErrorKind::TimedOut)),
                    Some((_, status)) if status.exit_status() == Some(0) => Ok(()),
                    _ if said.trim().is_empty() => {
                        Err(io::Error::other("it cannot be run, or says nothing"))
                    }
                    _ => Err(io::Error::other(said.trim().to_owned())),
                }
            }
        }
    }
}

/// Becomes a program with an empty environment. Returns only on failure.
fn become_program(program: &File, words: &[CString]) -> io::Error {
    let mut argv: Vec<*const libc::c_char> = words.iter().map(|word| word.as_ptr()).collect();
    argv.push(std::ptr::null());
    let envp: [*const libc::c_char; 1] = [std::ptr::null()];
    // SAFETY: the path is an empty C string, and both arrays end in a null
    // pointer and point to C strings that outlive the call.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            program.as_raw_fd(),
            c"".as_ptr(),
            argv.as_ptr(),
            envp.as_ptr(),
            libc::AT_EMPTY_PATH,
        )
    };
    io::Error::last_os_error()
}

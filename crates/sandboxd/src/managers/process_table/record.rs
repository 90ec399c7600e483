//! One background process.

use super::log::{Cursor, Log, Piece, Source};
use crate::managers::children::Tree;
use hutch_protocol::Timestamp;
use hutch_protocol::process::{ProcessInfo, ProcessStatus};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Where a process is in its life, and how often its log has grown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessState {
    /// Its status, from its wait status.
    pub status: ProcessStatus,
    /// Its exit code, once it ended.
    pub exit_code: Option<i32>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    version: u64,
}

impl ProcessState {
    /// Whether it has ended and all of its output is in the log.
    #[must_use]
    pub fn over(&self) -> bool {
        self.ended.is_some()
    }
}

/// One background process: who it is, where it stands, what it wrote.
#[derive(Debug)]
pub struct Record {
    /// The id that calls name it by.
    pub id: String,
    /// The process id.
    pub pid: i32,
    /// The command as given.
    pub command: String,
    /// When it started.
    pub started: Timestamp,
    /// Whether it keeps the sandbox awake.
    pub hold_awake: bool,
    /// Everything that it started.
    pub tree: Arc<Tree>,
    state: watch::Sender<ProcessState>,
    log: Mutex<Log>,
    log_limit: AtomicUsize,
    kill_asked: AtomicBool,
}

impl Record {
    /// The record of a process that runs.
    #[must_use]
    pub fn new(id: String, pid: i32, command: String, hold_awake: bool, tree: Arc<Tree>) -> Self {
        let state = ProcessState {
            status: ProcessStatus::Running,
            exit_code: None,
            ended: None,
            version: 0,
        };
        Self {
            id,
            pid,
            command,
            started: Timestamp::now(),
            hold_awake,
            tree,
            state: watch::Sender::new(state),
            log: Mutex::default(),
            log_limit: AtomicUsize::new(usize::MAX),
            kill_asked: AtomicBool::new(false),
        }
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the whole log.
    pub fn with_log<T>(&self, look: impl FnOnce(&Log) -> T) -> T {
        look(&self.log())
    }

    /// The next piece of the log after a cursor.
    pub fn next_piece(&self, cursor: &mut Cursor) -> Option<Piece> {
        self.log().next(cursor)
    }

    /// Adds output.
    pub fn wrote(&self, source: Source, bytes: &[u8]) {
        self.log()
            .push(source, bytes, self.log_limit.load(Ordering::Relaxed));
        self.state.send_modify(|state| state.version += 1);
    }

    /// Sets how much of the log is kept, in bytes.
    pub(super) fn limit_log(&self, limit: usize) {
        self.log_limit.store(limit, Ordering::Relaxed);
        self.log().trim(limit);
    }

    /// Where it stands.
    #[must_use]
    pub fn state(&self) -> ProcessState {
        *self.state.borrow()
    }

    /// Changes of the state and growth of the log.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<ProcessState> {
        self.state.subscribe()
    }

    /// Notes that it is being killed on request.
    pub fn ask_kill(&self) {
        self.kill_asked.store(true, Ordering::Relaxed);
    }

    /// Notes its end: the exit code, or `None` when that could not be had.
    pub fn end(&self, exit_code: Option<i32>) {
        let killed = self.kill_asked.load(Ordering::Relaxed);
        let status = match exit_code {
            None => ProcessStatus::Error,
            Some(_) if killed => ProcessStatus::Killed,
            Some(0) => ProcessStatus::Completed,
            Some(137 | 143) => ProcessStatus::Killed,
            Some(_) => ProcessStatus::Failed,
        };
        self.state.send_modify(|state| {
            state.status = status;
            state.exit_code = exit_code;
            state.ended = Some(Timestamp::now());
        });
    }

    /// The record as it travels.
    #[must_use]
    pub fn info(&self) -> ProcessInfo {
        let state = self.state();
        ProcessInfo {
            id: self.id.clone(),
            pid: u32::try_from(self.pid).ok(),
            command: self.command.clone(),
            status: state.status,
            start_time: self.started,
            end_time: state.ended,
            exit_code: state.exit_code,
        }
    }
}

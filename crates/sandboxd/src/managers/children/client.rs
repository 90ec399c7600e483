//! The daemon's side of the starter.

use super::reaper::{Reaper, Scope};
use super::tree::{Groups, Tree};
use super::{Child, Exit};
use crate::start::{Channel, Launch, Outcome, Stage, Starter};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::Pid;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio_util::task::TaskTracker;

/// How long the starter may take to answer. It answers in about a millisecond; only a
/// process that somebody stopped between its clone and its program holds it up.
const START_LIMIT: Duration = Duration::from_secs(30);

/// A process could not be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The starter tried and failed.
    #[error("{stage:?} failed: {errno}")]
    Failed {
        /// Where.
        stage: Stage,
        /// Why.
        errno: Errno,
    },
    /// The starter is gone or did not answer in time.
    #[error("the process that starts commands does not answer")]
    Unavailable,
    /// The request could not be handed over.
    #[error("the start request could not be sent: {0}")]
    Send(Errno),
}

/// The streams of a new process.
#[derive(Debug)]
pub struct Stdio {
    /// Standard input; `/dev/null` when absent.
    pub stdin: Option<OwnedFd>,
    /// Standard output.
    pub stdout: OwnedFd,
    /// Standard error.
    pub stderr: OwnedFd,
    /// The descriptor to pass as number 3.
    pub script: Option<OwnedFd>,
}

/// What [`Children`] is made of.
#[derive(Debug)]
pub struct ChildrenSettings {
    /// The forked starter.
    pub starter: Starter,
    /// The commands' control group, the same that the starter was given.
    pub groups: Option<OwnedFd>,
    /// Whose children to reap.
    pub scope: Scope,
}

/// Starts and reaps children. Shared by reference.
#[derive(Debug)]
pub struct Children {
    channel: Arc<AsyncFd<Channel>>,
    null: OwnedFd,
    pending: Mutex<HashMap<u64, oneshot::Sender<Result<Child, StartError>>>>,
    next_call: AtomicU64,
    groups: Option<Arc<Groups>>,
    trees: Mutex<Vec<Weak<Tree>>>,
    reaper: Reaper,
    cleanups: TaskTracker,
    runtime: Handle,
    tasks: Mutex<Vec<AbortHandle>>,
}

impl Children {
    /// Takes over the starter and begins to reap. Must run on the async runtime.
    ///
    /// # Errors
    /// The channel or SIGCHLD cannot be watched.
    pub fn new(settings: ChildrenSettings) -> std::io::Result<Arc<Self>> {
        let null = rustix::fs::open(
            c"/dev/null",
            rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC,
            rustix::fs::Mode::empty(),
        )?;
        let channel = Arc::new(settings.starter.channel.watched()?);
        let children = Arc::new(Self {
            channel: Arc::clone(&channel),
            null,
            pending: Mutex::default(),
            next_call: AtomicU64::new(1),
            groups: settings
                .groups
                .map(|directory| Arc::new(Groups::new(directory))),
            trees: Mutex::default(),
            reaper: Reaper::new(settings.scope, settings.starter.pid),
            cleanups: TaskTracker::new(),
            runtime: Handle::current(),
            tasks: Mutex::default(),
        });
        // Both tasks are ended by the drop of their owner.
        let reaping = reap(Arc::downgrade(&children), signal(SignalKind::child())?);
        let replies = read_replies(Arc::downgrade(&children), channel);
        let tasks = vec![
            tokio::spawn(reaping).abort_handle(),
            tokio::spawn(replies).abort_handle(),
        ];
        *children
            .tasks
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = tasks;
        Ok(children)
    }

    /// Starts a process. If the returned future is dropped, what it started is ended.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn start(&self, mut launch: Launch, stdio: Stdio) -> Result<Child, StartError> {
        if let Some(groups) = &self.groups {
            groups.sweep();
        }
        let call = self.next_call.fetch_add(1, Ordering::Relaxed);
        launch.call = call;
        launch.script = stdio.script.is_some();
        let (datagram, payload) = Channel::prepare(&launch).map_err(StartError::Send)?;
        drop(launch);
        let answer = self.expect_reply(call);
        {
            let unsent = Unsent {
                children: self,
                call,
                armed: true,
            };
            self.send(&datagram, &stdio, payload.as_ref()).await?;
            unsent.disarm();
        }
        drop(stdio);
        match tokio::time::timeout(START_LIMIT, answer).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) | Err(_) => Err(StartError::Unavailable),
        }
    }

    fn expect_reply(&self, call: u64) -> oneshot::Receiver<Result<Child, StartError>> {
        let (sender, answer) = oneshot::channel();
        self.reaper.begin();
        self.pending().insert(call, sender);
        answer
    }

    async fn send(
        &self,
        datagram: &[u8],
        stdio: &Stdio,
        payload: Option<&OwnedFd>,
    ) -> Result<(), StartError> {
        let stdin = stdio.stdin.as_ref().unwrap_or(&self.null);
        let descriptors: Vec<BorrowedFd<'_>> =
            [Some(stdin), Some(&stdio.stdout), Some(&stdio.stderr)]
                .into_iter()
                .chain([stdio.script.as_ref(), payload])
                .flatten()
                .map(AsFd::as_fd)
                .collect();
        self.channel
            .async_io(Interest::WRITABLE, |channel| {
                channel.try_send(datagram, &descriptors).map_err(Into::into)
            })
            .await
            .map_err(|error| match Errno::from_io_error(&error) {
                Some(Errno::PIPE | Errno::CONNRESET) | None => StartError::Unavailable,
                Some(errno) => StartError::Send(errno),
            })
    }

    fn pending(
        &self,
    ) -> std::sync::MutexGuard<'_, HashMap<u64, oneshot::Sender<Result<Child, StartError>>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, call: u64, outcome: Outcome) {
        let answer = self.pending().remove(&call);
        let result = match outcome {
            Outcome::Started { pid, grouped } => {
                let exit = self.reaper.settle(Pid::from_raw(pid));
                Ok(self.child(call, pid, grouped, exit))
            }
            Outcome::Failed { stage, errno } => {
                drop(self.reaper.settle(None));
                if let Some(groups) = &self.groups {
                    groups.discard(call);
                }
                Err(StartError::Failed {
                    stage,
                    errno: Errno::from_raw_os_error(errno),
                })
            }
        };
        // Nobody waits any more: the child is dropped here, which ends its tree.
        if let Some(answer) = answer {
            drop(answer.send(result));
        }
    }

    fn child(&self, call: u64, pid: i32, grouped: bool, exit: oneshot::Receiver<Exit>) -> Child {
        let tree = match self.groups.as_ref().filter(|_| grouped) {
            Some(groups) => Tree::grouped(Arc::clone(groups), call),
            None => Tree::by_descent(pid),
        };
        let child = Child::new(pid, exit, tree, self.cleanups.clone(), self.runtime.clone());
        let mut trees = self.trees.lock().unwrap_or_else(PoisonError::into_inner);
        if trees.len() == trees.capacity() {
            trees.retain(|tree| tree.strong_count() > 0);
        }
        trees.push(Arc::downgrade(&child.tree()));
        child
    }

    /// How many started processes have not ended.
    #[must_use]
    pub fn running(&self) -> usize {
        self.reaper.running()
    }

    /// Resolves once the starter has ended: nothing can be started any more.
    pub async fn starter_gone(&self) {
        self.reaper.starter_gone().await;
    }

    /// Sends `signal` to everything that a call still owns.
    pub async fn signal_all(&self, signal: i32) {
        let trees: Vec<Arc<Tree>> = {
            let trees = self.trees.lock().unwrap_or_else(PoisonError::into_inner);
            trees.iter().filter_map(Weak::upgrade).collect()
        };
        for tree in trees {
            if let Err(error) = tree.signal(signal).await {
                tracing::debug!(%error, "could not forward a signal");
            }
        }
    }

    /// Waits for the trees that are being ended.
    pub async fn cleaned_up(&self) {
        self.cleanups.close();
        self.cleanups.wait().await;
        self.cleanups.reopen();
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        for task in self
            .tasks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .drain(..)
        {
            task.abort();
        }
    }
}

async fn reap(owner: Weak<Children>, mut ended: Signal) {
    loop {
        match owner.upgrade() {
            Some(children) => children.reaper.sweep(),
            None => return,
        }
        if ended.recv().await.is_none() {
            return;
        }
    }
}

async fn read_replies(owner: Weak<Children>, channel: Arc<AsyncFd<Channel>>) {
    loop {
        let reply = channel
            .async_io(Interest::READABLE, |channel| {
                channel.try_receive_reply().map_err(Into::into)
            })
            .await;
        let Some(children) = owner.upgrade() else {
            return;
        };
        match reply {
            Ok(Some((call, outcome))) => children.settle(call, outcome),
            Ok(None) | Err(_) => {
                // The starter is gone: nobody will answer.
                let waiting = std::mem::take(&mut *children.pending());
                for answer in waiting.into_values() {
                    drop(children.reaper.settle(None));
                    drop(answer);
                }
                return;
            }
        }
    }
}

/// Takes a request back that was never sent.
struct Unsent<'a> {
    children: &'a Children,
    call: u64,
    armed: bool,
}

impl Unsent<'_> {
    fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for Unsent<'_> {
    fn drop(&mut self) {
        if self.armed && self.children.pending().remove(&self.call).is_some() {
            drop(self.children.reaper.settle(None));
        }
    }
}

//! The daemon's side of the starter.

use super::error::{START_LIMIT, StartError};
use super::reaper::{Reaper, Scope};
use super::revival::{Revival, revive};
use super::tree::{Groups, StillRunning, Tree};
use super::{Child, Exit};
use crate::start::{Channel, Cradle, Launch, Outcome, Starter};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::Pid;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio_util::task::TaskTracker;

/// How often a request is sent that no starter has begun with.
const TRIES: u32 = 3;

pub(super) type Answer = Result<Child, StartError>;

/// A start that waits for its answer.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) answer: oneshot::Sender<Answer>,
    /// Whether the request is on its way.
    pub(super) sent: bool,
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
    /// Opened `cgroup.procs` files that later starters join.
    pub attach: Vec<OwnedFd>,
    /// Whose children to reap.
    pub scope: Scope,
}

/// Starts and reaps children. Shared by reference.
#[derive(Debug)]
pub struct Children {
    pub(super) channel: Arc<AsyncFd<Channel>>,
    pub(super) cradle: Cradle,
    pub(super) attach: Vec<OwnedFd>,
    /// Whether the starter has answered a probe, or is the first.
    pub(super) answered: AtomicBool,
    null: OwnedFd,
    pending: Mutex<HashMap<u64, Waiting>>,
    /// For each probe, the starts that were sent before it.
    probes: Mutex<HashMap<u64, Vec<u64>>>,
    pub(super) next_call: AtomicU64,
    pub(super) groups: Option<Arc<Groups>>,
    trees: Mutex<Vec<Weak<Tree>>>,
    pub(super) reaper: Reaper,
    pub(super) cleanups: TaskTracker,
    pub(super) runtime: Handle,
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
            cradle: settings.starter.cradle,
            attach: settings.attach,
            answered: AtomicBool::new(true),
            null,
            pending: Mutex::default(),
            probes: Mutex::default(),
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
        let revival = Revival::new(children.reaper.starters_gone());
        // The tasks are ended by the drop of their owner.
        let reaping = reap(Arc::downgrade(&children), signal(SignalKind::child())?);
        let replies = read_replies(Arc::downgrade(&children), channel);
        let tasks = vec![
            tokio::spawn(reaping).abort_handle(),
            tokio::spawn(replies).abort_handle(),
            tokio::spawn(revive(Arc::downgrade(&children), revival)).abort_handle(),
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
        launch.script = stdio.script.is_some();
        let mut tries = 1;
        loop {
            let answer = self.request(&mut launch, &stdio).await;
            match answer {
                Err(StartError::NotBegun) if tries < TRIES => tries += 1,
                answer => return answer,
            }
        }
    }

    /// Sends one request and waits for its answer.
    async fn request(&self, launch: &mut Launch, stdio: &Stdio) -> Answer {
        let call = self.next_call.fetch_add(1, Ordering::Relaxed);
        launch.call = call;
        let (datagram, payload) = Channel::prepare(launch).map_err(StartError::Send)?;
        let answer = self.expect_reply(call);
        {
            let unsent = Unsent {
                children: self,
                call,
                armed: true,
            };
            self.send(call, &datagram, stdio, payload.as_ref()).await?;
            unsent.disarm();
        }
        match tokio::time::timeout(START_LIMIT, answer).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) | Err(_) => Err(StartError::Unavailable),
        }
    }

    fn expect_reply(&self, call: u64) -> oneshot::Receiver<Answer> {
        let (answer, reply) = oneshot::channel();
        self.reaper.begin();
        let sent = false;
        self.pending().insert(call, Waiting { answer, sent });
        reply
    }

    async fn send(
        &self,
        call: u64,
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
                // Under the lock, so that a probe knows what was sent before it.
                let mut pending = self.pending();
                channel.try_send(datagram, &descriptors)?;
                if let Some(waiting) = pending.get_mut(&call) {
                    waiting.sent = true;
                }
                Ok(())
            })
            .await
            .map_err(|error| match Errno::from_io_error(&error) {
                Some(Errno::PIPE | Errno::CONNRESET) | None => StartError::Unavailable,
                Some(errno) => StartError::Send(errno),
            })
    }

    pub(super) fn pending(&self) -> MutexGuard<'_, HashMap<u64, Waiting>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn probes(&self) -> MutexGuard<'_, HashMap<u64, Vec<u64>>> {
        self.probes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, call: u64, outcome: Outcome) {
        let probe = self.probes().remove(&call);
        if let Some(before) = probe {
            return self.probed(before);
        }
        let answer = self.pending().remove(&call).map(|waiting| waiting.answer);
        if answer.is_none() {
            // Given up when its starter died, whose answer comes only now.
            self.reaper.begin();
        }
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

    /// Ends what calls that are over have left behind; gives the number of such calls.
    ///
    /// # Errors
    /// Something outlived its KILL by five seconds.
    pub async fn end_left_behind(&self) -> Result<usize, StillRunning> {
        let Some(groups) = &self.groups else {
            return Ok(0);
        };
        let trees: Vec<Arc<Tree>> = groups
            .lingering()
            .into_iter()
            .map(|name| Arc::new(Tree::left_behind(Arc::clone(groups), name)))
            .collect();
        let ends = trees
            .iter()
            .map(|tree| tree.end(libc::SIGKILL, Duration::ZERO));
        let ended = futures_util::future::join_all(ends).await;
        ended.into_iter().collect::<Result<Vec<()>, _>>()?;
        Ok(trees.len())
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
                for _ in waiting {
                    drop(children.reaper.settle(None));
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

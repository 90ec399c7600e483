//! The server's connection to its spawner.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hutch_protocol::{BootId, Generation};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use super::protocol::{Answer, Ask, Refusal, Reply, Request, VERSION};
use super::socket_path;
use super::{packet, poll_fd};
use crate::{DriverError, Exit};

/// The spawner's socket in the run directory.
const SOCKET: &str = "spawner.sock";

type Outcome = (Answer, Vec<OwnedFd>);

/// A connection. Dropping it ends the task that reads.
pub struct Link {
    socket: Arc<AsyncFd<OwnedFd>>,
    calls: Arc<Calls>,
    reader: JoinHandle<()>,
}

/// What waits for the spawner.
#[derive(Default)]
pub struct Calls(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    last: u64,
    closed: bool,
    /// The generation of the server that is obeyed instead.
    superseded: Option<Generation>,
    replies: HashMap<u64, oneshot::Sender<Outcome>>,
    exits: HashMap<BootId, watch::Sender<Option<Exit>>>,
}

impl Waiting {
    fn why_closed(&self) -> DriverError {
        match self.superseded {
            Some(generation) => {
                DriverError::Superseded(format!("generation {generation} is obeyed"))
            }
            None => gone(),
        }
    }
}

impl Calls {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Listens for the end of a boot. Ends with [`Calls::forget`].
    pub fn watch(&self, boot: BootId) -> watch::Receiver<Option<Exit>> {
        let mut waiting = self.lock();
        let sender = waiting
            .exits
            .entry(boot)
            .or_insert_with(|| watch::Sender::new(None));
        sender.subscribe()
    }

    /// Stops listening for the end of a boot, if nobody else does.
    pub fn forget(&self, boot: BootId) {
        let mut waiting = self.lock();
        if waiting
            .exits
            .get(&boot)
            .is_some_and(|exit| exit.receiver_count() <= 1)
        {
            waiting.exits.remove(&boot);
        }
    }

    fn deliver(&self, reply: Reply, fds: Vec<OwnedFd>) {
        let mut waiting = self.lock();
        match reply.body {
            Answer::Exited { boot, exit } => {
                if let Some(sender) = waiting.exits.get(&boot) {
                    sender.send_replace(Some(exit));
                }
            }
            Answer::Superseded { generation } => {
                tracing::error!(%generation, "a newer server owns the sandboxes of this data directory: stop this one");
                waiting.superseded = Some(generation);
            }
            body => {
                if let Some(sender) = waiting.replies.remove(&reply.id) {
                    let _ = sender.send((body, fds));
                }
            }
        }
    }

    /// Whether nothing is told here any more.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    fn close(&self) {
        let mut waiting = self.lock();
        waiting.closed = true;
        // Those who wait see their sender gone.
        waiting.replies.clear();
    }
}

impl Link {
    /// Connects to the spawner in `run`, or tells that none listens.
    pub fn connect(run: &Path) -> io::Result<Self> {
        let (_dir, address) = socket_path::address(run, SOCKET)?;
        let socket = socket_with(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )?;
        connect(&socket, &address)?;
        let socket = Arc::new(poll_fd::new(
            socket,
            Interest::READABLE | Interest::WRITABLE,
        )?);
        let calls = Arc::new(Calls::default());
        let reader = tokio::spawn(read(Arc::clone(&socket), Arc::clone(&calls)));
        Ok(Self {
            socket,
            calls,
            reader,
        })
    }

    /// What waits on this connection.
    pub fn calls(&self) -> &Arc<Calls> {
        &self.calls
    }

    /// Whether the spawner is gone or has turned away, also if the task that
    /// reads has not come to see it.
    pub fn is_closed(&self) -> bool {
        let mut fds = [PollFd::new(self.socket.get_ref(), PollFlags::empty())];
        let hung_up = poll(&mut fds, Some(&Timespec::default())).is_ok()
            && fds[0].revents().contains(PollFlags::HUP);
        hung_up || self.calls.is_closed()
    }

    /// Asks and waits for the answer, `deadline` at most.
    pub async fn ask(&self, body: Ask, deadline: Duration) -> Result<Outcome, DriverError> {
        self.ask_with(body, &[], deadline).await
    }

    /// Asks, with descriptors.
    pub async fn ask_with(
        &self,
        body: Ask,
        fds: &[BorrowedFd<'_>],
        deadline: Duration,
    ) -> Result<Outcome, DriverError> {
        let (sender, receiver) = oneshot::channel();
        let id = {
            let mut waiting = self.calls.lock();
            if waiting.closed {
                return Err(waiting.why_closed());
            }
            waiting.last += 1;
            let id = waiting.last;
            waiting.replies.insert(id, sender);
            id
        };
        let asked = Asked {
            calls: &self.calls,
            id,
        };
        let what = describe(&body);
        let request = Request {
            v: VERSION,
            id,
            body,
        };
        let exchange = async {
            self.send(&request, fds)
                .await
                .map_err(DriverError::step("ask the spawner"))?;
            receiver.await.map_err(|_| self.calls.lock().why_closed())
        };
        let outcome = tokio::time::timeout(deadline, exchange).await;
        drop(asked);
        let (answer, fds) = outcome.map_err(|_| DriverError::Deadline(what.into()))??;
        match answer {
            Answer::Failed { reason, message } => Err(match reason {
                Refusal::Capacity => DriverError::Capacity(message),
                Refusal::Version => DriverError::Version(message),
                Refusal::Superseded => DriverError::Superseded(message),
                Refusal::Step => DriverError::Step {
                    step: what.into(),
                    cause: io::Error::other(message),
                },
            }),
            answer => Ok((answer, fds)),
        }
    }

    async fn send(&self, request: &Request, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        loop {
            let mut ready = self.socket.writable().await?;
            let sent = ready.try_io(|socket| packet::send::<Request>(socket, request, fds));
            match sent {
                Ok(sent) => return sent,
                Err(_would_block) => {}
            }
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.reader.abort();
        self.calls.close();
    }
}

/// Takes an unanswered question back when its caller goes away.
struct Asked<'a> {
    calls: &'a Calls,
    id: u64,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.calls.lock().replies.remove(&self.id);
    }
}

async fn read(socket: Arc<AsyncFd<OwnedFd>>, calls: Arc<Calls>) {
    loop {
        let Ok(mut ready) = socket.readable().await else {
            break;
        };
        match ready.try_io(|socket| packet::receive::<Reply>(socket.as_fd())) {
            // A spawner of another version says so in what all versions read.
            Ok(Ok(Some((reply, fds)))) => calls.deliver(reply, fds),
            Ok(outcome) => {
                if let Err(cause) = outcome {
                    tracing::warn!(%cause, "the spawner's connection failed");
                }
                break;
            }
            Err(_would_block) => {}
        }
    }
    calls.close();
}

fn describe(ask: &Ask) -> &'static str {
    match ask {
        Ask::Hello(_) => "greet the spawner",
        Ask::Start { .. } => "start the sandbox",
        Ask::Running { .. } => "list the running sandboxes",
        Ask::Stop { .. } => "stop the sandbox",
    }
}

fn gone() -> DriverError {
    DriverError::Unavailable(
        "the spawner ended or obeys another server: the next start makes a new one".into(),
    )
}

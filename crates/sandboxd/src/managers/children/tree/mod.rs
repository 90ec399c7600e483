//! Everything that one call started: by its control group where it has one,
//! by descent from its first process otherwise.

mod descent;
mod group;

use descent::Descent;
use group::Group;
pub(super) use group::Groups;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a tree that should end is looked at.
const POLL: Duration = Duration::from_millis(10);
/// How long a tree may take to vanish after KILL before that is an error.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// Processes are still there although all of them were killed.
#[derive(Debug, thiserror::Error)]
#[error("processes {pids:?} of the command are still there {}s after they were killed", KILL_LIMIT.as_secs())]
pub struct StillRunning {
    /// The survivors, as the sandbox numbers them.
    pub pids: Vec<i32>,
}

/// What one call started.
#[derive(Debug)]
pub struct Tree(Kind);

#[derive(Debug)]
enum Kind {
    Group(Group),
    Descent(Descent),
}

impl Tree {
    pub(super) fn grouped(groups: Arc<Groups>, call: u64) -> Self {
        Self(Kind::Group(Group::new(groups, call)))
    }

    pub(super) fn left_behind(groups: Arc<Groups>, name: String) -> Self {
        Self(Kind::Group(Group::named(groups, name)))
    }

    pub(super) fn by_descent(pid: i32) -> Self {
        Self(Kind::Descent(Descent::new(pid)))
    }

    /// Sends `signal` to every process of the tree.
    ///
    /// # Errors
    /// The processes cannot be listed.
    pub async fn signal(self: &Arc<Self>, signal: i32) -> io::Result<()> {
        self.blocking(move |tree| match &tree.0 {
            Kind::Group(group) => group.signal(signal),
            Kind::Descent(descent) => descent.signal(signal),
        })
        .await?
    }

    /// Ends the tree: `signal`, up to `grace` for it to end by itself, then KILL.
    /// Returns once nothing of it is left.
    ///
    /// # Errors
    /// Something outlived its KILL by five seconds.
    pub async fn end(self: &Arc<Self>, signal: i32, grace: Duration) -> Result<(), StillRunning> {
        if signal != libc::SIGKILL {
            if let Err(error) = self.signal(signal).await {
                tracing::debug!(%error, "could not signal a command's processes");
            }
            if self.wait_empty(grace).await.is_empty() {
                return Ok(());
            }
        }
        let deadline = Instant::now() + KILL_LIMIT;
        loop {
            let killed = self.blocking(|tree| match &tree.0 {
                Kind::Group(group) => group.kill(),
                Kind::Descent(descent) => descent.kill(),
            });
            if let Err(error) = killed.await.and_then(|result| result) {
                tracing::debug!(%error, "could not kill a command's processes");
            }
            let pids = self.wait_empty(POLL * 10).await;
            if pids.is_empty() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(StillRunning { pids });
            }
        }
    }

    /// The processes of the tree.
    ///
    /// # Errors
    /// They cannot be listed.
    pub async fn members(self: &Arc<Self>) -> io::Result<Vec<i32>> {
        self.blocking(|tree| match &tree.0 {
            Kind::Group(group) => group.members(),
            Kind::Descent(descent) => descent.members(),
        })
        .await?
    }

    /// Waits up to `limit` for the tree to be empty; returns what is left.
    async fn wait_empty(self: &Arc<Self>, limit: Duration) -> Vec<i32> {
        let deadline = Instant::now() + limit;
        let mut pause = Duration::from_millis(1);
        loop {
            match self.members().await {
                Ok(members) if members.is_empty() => {
                    self.release();
                    return members;
                }
                Ok(members) if Instant::now() >= deadline => return members,
                Err(_) if Instant::now() >= deadline => return vec![-1],
                _ => {}
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(POLL);
        }
    }

    /// The call is over: its group goes once the last process has left it.
    pub fn release(&self) {
        match &self.0 {
            Kind::Group(group) => group.release(),
            Kind::Descent(_) => {}
        }
    }

    async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> io::Result<T> {
        let tree = Arc::clone(self);
        tokio::task::spawn_blocking(move || work(&tree))
            .await
            .map_err(io::Error::other)
    }
}

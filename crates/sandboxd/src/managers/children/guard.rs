//! A started child, whose tree ends with its owner.

use super::{Exit, Tree};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

/// How long an abandoned tree may take to end by itself after a TERM.
const ABANDONED_GRACE: Duration = Duration::from_millis(500);

/// A running child and everything it starts. Dropping it ends the whole tree,
/// unless [`Child::release`] was called.
#[derive(Debug)]
pub struct Child {
    pid: i32,
    exit: oneshot::Receiver<Exit>,
    ended: Option<Exit>,
    tree: Arc<Tree>,
    guard: Guard,
}

#[derive(Debug)]
struct Guard {
    tree: Option<Arc<Tree>>,
    cleanups: TaskTracker,
    runtime: Handle,
}

impl Child {
    pub(super) fn new(
        pid: i32,
        exit: oneshot::Receiver<Exit>,
        tree: Tree,
        cleanups: TaskTracker,
        runtime: Handle,
    ) -> Self {
        let tree = Arc::new(tree);
        let guard = Guard {
            tree: Some(Arc::clone(&tree)),
            cleanups,
            runtime,
        };
        Self {
            pid,
            exit,
            ended: None,
            tree,
            guard,
        }
    }

    /// The process id, as the sandbox sees it.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// A handle to end or signal everything the child started.
    #[must_use]
    pub fn tree(&self) -> Arc<Tree> {
        Arc::clone(&self.tree)
    }

    /// Waits until the child itself has ended. May be called again and is cancel safe.
    pub async fn wait(&mut self) -> Exit {
        if let Some(exit) = self.ended {
            return exit;
        }
        // The sender lives in the reaper until the child is reaped; should it vanish,
        // the process is gone and nothing more is known than that.
        let exit = (&mut self.exit)
            .await
            .unwrap_or(Exit::Signal(libc::SIGKILL));
        self.ended = Some(exit);
        exit
    }

    /// Lets what the child started and left behind live on.
    pub fn release(mut self) {
        if let Some(tree) = self.guard.tree.take() {
            // Removing a group takes a while, which no answer need wait for.
            self.guard
                .cleanups
                .spawn_blocking_on(move || tree.release(), &self.guard.runtime);
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Some(tree) = self.tree.take() else { return };
        self.cleanups.spawn_on(
            async move {
                if let Err(error) = tree.end(libc::SIGTERM, ABANDONED_GRACE).await {
                    tracing::warn!(%error, "an abandoned command did not end");
                }
            },
            &self.runtime,
        );
    }
}

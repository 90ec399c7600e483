//! The services over a workspace of their own, in an ordinary process.
#![allow(clippy::unwrap_used)]

use super::commands::{Commands, CommandsSettings, Finished, Request};
use super::files::Files;
use super::processes::Processes;
use crate::managers::children::{Children, ChildrenSettings, Scope};
use crate::managers::environment::Environment;
use crate::start::{Starter, StarterSettings};
use hutch_protocol::ApiError;
use hutch_protocol::exec::OutputEncoding;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) struct Bench {
    pub(super) commands: Arc<Commands>,
    pub(super) processes: Processes,
    pub(super) files: Files,
    pub(super) environment: Arc<Environment>,
    pub(super) children: Arc<Children>,
    workspace: tempfile::TempDir,
}

impl Bench {
    pub(super) fn new() -> Self {
        let starter = Starter::fork(&StarterSettings::default()).unwrap();
        let children = Children::new(ChildrenSettings {
            starter,
            groups: None,
            attach: Vec::new(),
            scope: Scope::Started,
        })
        .unwrap();
        let workspace = tempfile::tempdir().unwrap();
        let environment = Arc::new(Environment::default());
        let commands = Arc::new(Commands::new(CommandsSettings {
            workspace: workspace.path().to_str().unwrap().into(),
            environment: Arc::clone(&environment),
            children: Arc::clone(&children),
        }));
        Self {
            processes: Processes::new(Arc::clone(&commands)),
            files: Files::new(workspace.path().to_str().unwrap()),
            commands,
            environment,
            children,
            workspace,
        }
    }

    pub(super) fn path(&self, relative: &str) -> PathBuf {
        self.workspace.path().join(relative)
    }

    pub(super) async fn run(&self, request: Request) -> Result<Finished, ApiError> {
        self.commands.exec(request, OutputEncoding::Utf8).await
    }

    /// Exit code, standard output and standard error of a command line.
    pub(super) async fn exec(&self, command: &str) -> (i32, String, String) {
        let finished = self.run(Request::shell(command)).await.unwrap();
        (
            finished.ended.code(),
            finished.stdout.content,
            finished.stderr.content,
        )
    }
}

/// Whether a process with exactly this command line lives.
pub(super) fn alive(line: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).replace('\0', " ").trim() == line
    })
}

/// Waits for a condition that is bound to come true.
pub(super) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

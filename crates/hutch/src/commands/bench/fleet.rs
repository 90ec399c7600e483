//! The sandboxes of one run: made under names of their own, gone in the end.

use crate::failure::Failure;
use hutch_client::{CreateOptions, ExecOptions, Project, Sandbox};

/// How many are destroyed at the same time.
const AT_ONCE: usize = 8;

/// Every sandbox that this run made and has not destroyed.
pub struct Fleet {
    project: Project,
    options: CreateOptions,
    prefix: String,
    named: u32,
    live: Vec<Sandbox>,
}

impl Fleet {
    /// An empty one.
    pub fn new(project: Project, instance_type: &str) -> Self {
        // Names are retired for ever, so each run has names of its own.
        let run = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default()
            .as_millis();
        Self {
            project,
            options: CreateOptions {
                instance_type: Some(instance_type.to_owned()),
                // What is measured asleep is put to sleep.
                keep_alive: Some(true),
                ..CreateOptions::default()
            },
            prefix: format!("bench-{run:x}-{:x}", std::process::id()),
            named: 0,
            live: Vec::new(),
        }
    }

    /// A new name.
    pub fn address(&mut self) -> Sandbox {
        self.named += 1;
        let path = format!("/sandboxes/{}-{}", self.prefix, self.named);
        self.project.sandbox(&path)
    }

    /// Creates a sandbox under its new name.
    pub async fn create_at(&mut self, sandbox: &Sandbox) -> Result<(), Failure> {
        // Before it is known whether it worked: a lost answer leaves one too.
        self.live.push(sandbox.clone());
        Ok(sandbox.create(&self.options).await?)
    }

    /// A new sandbox.
    pub async fn create(&mut self) -> Result<Sandbox, Failure> {
        let sandbox = self.address();
        self.create_at(&sandbox).await?;
        Ok(sandbox)
    }

    /// Names for several, for a caller that creates them all at once.
    pub fn addresses(&mut self, count: usize) -> Vec<Sandbox> {
        let sandboxes: Vec<Sandbox> = (0..count).map(|_| self.address()).collect();
        self.live.extend(sandboxes.iter().cloned());
        sandboxes
    }

    /// What each is created with.
    pub fn options(&self) -> &CreateOptions {
        &self.options
    }

    /// Ends one.
    pub async fn destroy(&mut self, sandbox: &Sandbox) -> Result<(), Failure> {
        sandbox.destroy().await?;
        self.live.retain(|live| live.path() != sandbox.path());
        Ok(())
    }

    /// Destroys what is left; all are tried, the first failure is told.
    pub async fn clean_up(&mut self) -> Result<(), Failure> {
        let mut result = Ok(());
        let mut left = std::mem::take(&mut self.live).into_iter();
        loop {
            let some: Vec<Sandbox> = left.by_ref().take(AT_ONCE).collect();
            if some.is_empty() {
                return result;
            }
            let ends = some.iter().map(Sandbox::destroy);
            for ended in futures_util::future::join_all(ends).await {
                match ended {
                    Err(error) if error.code() == "SANDBOX_NOT_FOUND" => {}
                    ended => result = result.and(ended.map_err(Failure::from)),
                }
            }
        }
    }
}

/// Runs a command that must succeed.
pub async fn run(sandbox: &Sandbox, command: &str) -> Result<(), Failure> {
    let result = sandbox.exec(command, &ExecOptions::default()).await?;
    match result.exit_code {
        0 => Ok(()),
        code => Err(Failure::new(
            "BENCH_FAILED",
            format!(
                "`{command}` in {} answered {code}: {}",
                sandbox.path(),
                result.stderr
            ),
        )),
    }
}

/// The shortest command.
pub async fn run_true(sandbox: &Sandbox) -> Result<(), Failure> {
    run(sandbox, "true").await
}

//! From a request to a running process.

use super::capture::Pool;
use super::input::{Feeder, feed};
use super::output::Output;
use super::request::{ARGUMENT_MAX, Program, Request};
use super::supervise::{Ended, supervise, survived};
use crate::managers::children::{Child, Children, StartError, Stdio, Tree};
use crate::managers::environment::Environment;
use crate::start::{Launch, Stage, memory_file};
use futures_util::future::join3;
use hutch_protocol::limits::RESULT_OUTPUT_MAX;
use hutch_protocol::{ApiError, EnvPatch, ErrorCode};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::CString;
use std::io;
use std::sync::Arc;
use tokio::net::unix::pipe;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;

/// Commands that may run at one time.
const COMMANDS_MAX: usize = 512;
/// Pipes kept open for children that outlived their command.
const SINKS_MAX: usize = 2048;
/// What the results of all commands together may hold of output, encoded, in bytes.
const RESULTS_MAX: usize = 4 * RESULT_OUTPUT_MAX;
/// Runs a text that is too long for an argument: the text is read from descriptor 3, which
/// is closed again before the first command of it runs.
const LONG: &str = r#"eval "$(</dev/fd/3)" 3<&-"#;

/// What the service is made of.
#[derive(Debug)]
pub struct CommandsSettings {
    /// Where commands start unless told otherwise; absolute.
    pub workspace: String,
    /// Their environment.
    pub environment: Arc<Environment>,
    /// What starts and reaps.
    pub children: Arc<Children>,
}

/// Runs commands.
#[derive(Debug)]
pub struct Commands {
    settings: CommandsSettings,
    slots: Arc<Semaphore>,
    sinks: Arc<Semaphore>,
    results: Arc<Pool>,
}

/// A command that runs. Dropping it ends everything that the command started.
#[derive(Debug)]
pub struct Running {
    pub(super) child: Child,
    pub(super) stdout: Output,
    pub(super) stderr: Output,
    /// When its time is up, counted from the call.
    pub(super) deadline: Option<Instant>,
    /// Set once the process itself has ended; tells the outputs to come to an end.
    pub(super) ended: watch::Sender<bool>,
    pub(super) feeder: Feeder,
    pub(super) slot: OwnedSemaphorePermit,
}

impl Running {
    /// The process id.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.child.pid()
    }

    /// Everything that it starts.
    #[must_use]
    pub fn tree(&self) -> Arc<Tree> {
        self.child.tree()
    }

    /// Waits for the command's own end while `out` and `err` read what it writes. Children
    /// that it leaves behind live on.
    ///
    /// # Errors
    /// As [`supervise`]; the outputs are read to the end all the same.
    pub async fn finish<A, B, F, G>(
        self,
        sinks: &Arc<Semaphore>,
        out: impl FnOnce(Output) -> F,
        err: impl FnOnce(Output) -> G,
    ) -> (Result<Ended, ApiError>, A, B)
    where
        F: Future<Output = (Output, A)>,
        G: Future<Output = (Output, B)>,
    {
        let Self {
            mut child,
            stdout,
            stderr,
            deadline,
            ended,
            feeder,
            slot,
        } = self;
        let end = async {
            let result = supervise(&mut child, deadline).await;
            ended.send_replace(true);
            result
        };
        let (result, (stdout, a), (stderr, b)) = join3(end, out(stdout), err(stderr)).await;
        drop((feeder, slot));
        if result.is_ok() {
            child.release();
            stdout.leave(sinks);
            stderr.leave(sinks);
        }
        (result, a, b)
    }
}

impl Commands {
    /// The service.
    #[must_use]
    pub fn new(settings: CommandsSettings) -> Self {
        Self {
            settings,
            slots: Arc::new(Semaphore::new(COMMANDS_MAX)),
            sinks: Arc::new(Semaphore::new(SINKS_MAX)),
            results: Pool::new(RESULTS_MAX),
        }
    }

    /// How many commands run.
    #[must_use]
    pub fn running(&self) -> usize {
        COMMANDS_MAX - self.slots.available_permits()
    }

    pub(super) fn results(&self) -> &Arc<Pool> {
        &self.results
    }

    pub(crate) fn sinks(&self) -> &Arc<Semaphore> {
        &self.sinks
    }

    /// Starts a command.
    ///
    /// # Errors
    /// What [`Request::check`] refuses; `RESOURCE_BUSY` when too many run; `COMMAND_NOT_FOUND`,
    /// `COMMAND_PERMISSION_DENIED` or `COMMAND_EXECUTION_ERROR` when it cannot be started.
    pub async fn start(&self, request: Request) -> Result<Running, ApiError> {
        let now = Instant::now();
        request.check()?;
        let deadline = request.timeout.and_then(|timeout| now.checked_add(timeout));
        let slot = Arc::clone(&self.slots)
            .try_acquire_owned()
            .map_err(|_| busy())?;
        let command = request.command();
        let cwd = self.directory(request.cwd.as_deref());
        let (launch, script) = self.launch(&request.program, &cwd, &request.env)?;
        let internal = |error: io::Error| failed(&command, &format!("no pipe: {error}"));
        let (stdin, feeder) = feed(request.stdin).map_err(internal)?;
        let (read_out, stdout) = output_pipe().map_err(internal)?;
        let (read_err, stderr) = output_pipe().map_err(internal)?;
        let stdio = Stdio {
            stdin,
            stdout,
            stderr,
            script,
        };
        let child = self.settings.children.start(launch, stdio).await;
        let child = child.map_err(|error| start_error(error, &request.program, &command, &cwd))?;
        let ended = watch::Sender::new(false);
        Ok(Running {
            child,
            stdout: Output::new(read_out, ended.subscribe()),
            stderr: Output::new(read_err, ended.subscribe()),
            deadline,
            ended,
            feeder,
            slot,
        })
    }

    /// Ends what commands that are over have left behind; gives the number of such commands.
    ///
    /// # Errors
    /// `COMMAND_EXECUTION_ERROR` when something cannot be killed.
    pub(crate) async fn end_left_behind(&self) -> Result<usize, ApiError> {
        let ended = self.settings.children.end_left_behind().await;
        ended.map_err(|error| survived(&error))
    }

    fn directory(&self, cwd: Option<&str>) -> String {
        match cwd {
            None => self.settings.workspace.clone(),
            Some(absolute) if absolute.starts_with('/') => absolute.to_owned(),
            Some(relative) => format!("{}/{relative}", self.settings.workspace),
        }
    }

    fn launch(
        &self,
        program: &Program,
        cwd: &str,
        env: &EnvPatch,
    ) -> Result<(Launch, Option<OwnedFd>), ApiError> {
        let mut script = None;
        let argv = match program {
            Program::Argv(argv) => argv.iter().map(text).collect::<Result<_, _>>()?,
            Program::Shell(command) if command.len() < ARGUMENT_MAX => {
                vec![text("bash")?, text("-c")?, text(command)?]
            }
            Program::Shell(command) => {
                let file = memory_file(c"command", command.as_bytes());
                script = Some(file.map_err(|e| failed("bash", &format!("no memory file: {e}")))?);
                vec![text("bash")?, text("-c")?, text(LONG)?]
            }
        };
        let env = self.settings.environment.of_call(env);
        let launch = Launch {
            call: 0,
            argv,
            env,
            cwd: text(cwd)?,
            script: script.is_some(),
        };
        Ok((launch, script))
    }
}

fn output_pipe() -> io::Result<(pipe::Receiver, OwnedFd)> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((pipe::Receiver::from_owned_fd(reader)?, writer))
}

fn text(text: impl AsRef<str>) -> Result<CString, ApiError> {
    CString::new(text.as_ref()).map_err(|_| failed(text.as_ref(), "it holds a NUL"))
}

fn busy() -> ApiError {
    ApiError::new(
        ErrorCode::ResourceBusy,
        format!("{COMMANDS_MAX} commands run already; wait for one to end or kill one"),
    )
    .with("limit", COMMANDS_MAX)
}

/// A command that could not be run, and why.
pub(crate) fn failed(command: &str, why: &str) -> ApiError {
    let shown = shown(command);
    ApiError::new(
        ErrorCode::CommandExecutionError,
        format!("Failed to execute command '{shown}': {why}"),
    )
    .with("command", shown)
}

/// The head of a command, for messages.
fn shown(command: &str) -> &str {
    let end = command
        .char_indices()
        .nth(200)
        .map_or(command.len(), |(at, _)| at);
    &command[..end]
}

/// What a caller can do about a starter that does not start.
fn way_out(error: StartError) -> &'static str {
    match error {
        StartError::Killed => "nothing of the command runs, try again",
        _ => "end what disturbs it with killAllProcesses, restart or sleep",
    }
}

fn start_error(error: StartError, program: &Program, command: &str, cwd: &str) -> ApiError {
    let StartError::Failed { stage, errno } = error else {
        return failed(command, &format!("{error}; {}", way_out(error)));
    };
    let name = match program {
        Program::Shell(_) => "bash",
        Program::Argv(argv) => argv.first().map_or("", String::as_str),
    };
    match (stage, errno) {
        (Stage::Directory, _) => failed(
            command,
            &format!("the working directory '{cwd}' cannot be entered: {errno}"),
        )
        .with("cwd", cwd),
        (Stage::Exec, Errno::NOENT) => ApiError::new(
            ErrorCode::CommandNotFound,
            format!(
                "Command not found: '{}' is in no directory of PATH",
                shown(name)
            ),
        )
        .with("command", shown(name)),
        (Stage::Exec, Errno::ACCESS) => ApiError::new(
            ErrorCode::CommandPermissionDenied,
            format!("Permission denied: '{}' may not be executed", shown(name)),
        )
        .with("command", shown(name)),
        (Stage::Exec, Errno::TOOBIG) => failed(
            command,
            "its arguments and environment together are too long; pass less, or by standard input",
        ),
        (Stage::Clone, Errno::AGAIN) => failed(
            command,
            "the sandbox is at its limit of processes; end them with killAllProcesses, restart or sleep",
        )
        .with("limit", "processes"),
        (Stage::Clone, Errno::NOMEM) => failed(
            command,
            "the sandbox is at its limit of memory; end processes with killAllProcesses, restart or sleep",
        )
        .with("limit", "memory"),
        (stage, errno) => failed(command, &format!("{stage:?} failed: {errno}")),
    }
}

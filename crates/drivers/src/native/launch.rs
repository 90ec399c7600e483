//! Finding the data directory's spawner, or starting it.

use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use super::data_dir::DataDir;
use super::link::Link;
use super::protocol::{Answer, Ask, Hello};
use super::{NativeOptions, build};
use crate::DriverError;

/// How long a spawner may take to answer, which may have to become another
/// build first.
const UPGRADE: Duration = Duration::from_secs(20);
/// How often a spawner that is just ending is looked at again.
const PAUSE: Duration = Duration::from_millis(20);
/// How often it is tried: it has two seconds of grace and ten to clean up.
const TRIES: u32 = 600;

/// Connects and says hello; starts a spawner if none listens.
pub async fn connect(options: &NativeOptions, data: &DataDir) -> Result<Arc<Link>, DriverError> {
    let mut refused = io::Error::from(ErrorKind::NotConnected);
    for _ in 0..TRIES {
        match Link::connect(&data.run()) {
            Ok(link) => match greet(options, &link).await {
                Ok(()) => return Ok(Arc::new(link)),
                // It ended between accepting and answering.
                Err(DriverError::Unavailable(_)) => {}
                Err(other) => return Err(other),
            },
            Err(cause)
                if matches!(
                    cause.kind(),
                    ErrorKind::NotFound | ErrorKind::ConnectionRefused
                ) =>
            {
                match start(options, data).await? {
                    Ok(()) => continue,
                    Err(cause) => refused = cause,
                }
            }
            Err(cause) => return Err(DriverError::step("connect to the spawner")(cause)),
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(DriverError::step("start the spawner")(refused))
}

async fn greet(options: &NativeOptions, link: &Link) -> Result<(), DriverError> {
    let mut words = options.spawner.iter();
    let program = words
        .next()
        .and_then(|path| build::open(path.as_ref()).ok());
    let hello = Ask::Hello(Hello {
        generation: options.generation,
        sandboxd: options.sandboxd.clone(),
        parked: options.parked,
        cpu: options.cpu,
        build: program
            .as_ref()
            .and_then(|file| build::of(file).ok())
            .unwrap_or_default(),
        words: words
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
    });
    let fds: Vec<_> = program.iter().map(AsFd::as_fd).collect();
    match link.ask_with(hello, &fds, UPGRADE).await?.0 {
        Answer::Welcome {} => Ok(()),
        _ => Err(DriverError::step("greet the spawner")(
            ErrorKind::InvalidData.into(),
        )),
    }
}

/// Starts a spawner and waits until it serves. The inner error means that
/// another one holds the directory still.
async fn start(options: &NativeOptions, data: &DataDir) -> Result<io::Result<()>, DriverError> {
    let mut words = options.spawner.iter().cloned();
    let Some(program) = words.next() else {
        return Err(DriverError::Unavailable("no spawner is configured".into()));
    };
    let mut command = Command::new(program);
    command
        .args(words)
        .arg("--data-dir")
        .arg(&data.path)
        // It outlives this server: nothing of its environment goes along.
        .env_clear()
        .envs(hutch_failpoint::environment())
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    if let Some(images) = &options.image_dir {
        command.arg("--image-dir").arg(images);
    }
    let output = tokio::task::spawn_blocking(move || command.output())
        .await
        .map_err(io::Error::other)
        .and_then(|output| output)
        .map_err(DriverError::step("start the spawner"))?;
    if output.status.success() {
        return Ok(Ok(()));
    }
    let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if words.contains("another spawner holds") {
        return Ok(Err(io::Error::other(words)));
    }
    Err(DriverError::Unavailable(format!(
        "the spawner could not start: {words}"
    )))
}

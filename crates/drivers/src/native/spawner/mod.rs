//! The spawner: a single-threaded root process that makes sandboxes and
//! outlives the server.
//!
//! It is started as `hutch spawner --data-dir D`, serves one server at a time
//! on `D/run/spawner.sock` and ends when it holds no boot and no server is
//! connected, on SIGTERM, or when its data directory is gone. Then it takes its
//! sandboxes along; if it is killed, they run on and the next spawner takes
//! over those that can prove which boot they are. A server of another build has
//! it become that build, with all its descriptors, as does SIGUSR2 for the
//! program that is now at its path.
#![expect(
    unsafe_code,
    reason = "starting processes needs calls without a safe form"
)]

mod adopt;
mod caps;
mod clock;
mod daemon;
mod daemon_log;
mod dev;
mod exec;
mod fork;
mod identity;
mod masks;
mod mounts;
mod mover;
mod namespaces;
mod netns;
mod overlay;
mod parked;
mod quotas;
mod reclaim;
mod record;
mod rootfs;
mod seccomp;
mod server_link;
mod service;
mod setup;
mod signals;
mod slice;
mod slot;
mod state;
mod step;
mod store;
mod uid_range;
mod upgrade;
mod userns;

pub use slice::shorten as shorten_slice;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use hutch_images::HostImage;

use crate::native::cgroup::Hierarchies;
use crate::native::data_dir::DataDir;
use crate::native::process;
use step::Step;

/// What the spawner was started with.
#[derive(Clone, Debug)]
struct Arguments {
    data_dir: PathBuf,
    image_dir: Option<PathBuf>,
    task: Task,
}

/// What the program is started for.
#[derive(Clone, Copy, Debug)]
enum Task {
    /// To fork a spawner off.
    Start,
    /// To say whether it can read the state behind a descriptor.
    Check(i32),
    /// To go on from the state behind a descriptor.
    Resume(i32),
}

/// Runs the spawner: `hutch spawner --data-dir D`. `args` are what follows
/// `spawner`. The call forks; the first process returns when the spawner
/// serves or could not start, the other when it holds nothing any more.
#[must_use]
pub fn spawner_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let outcome = process::forbid_core_dumps()
        .step("forbid core dumps")
        // What it starts inherits it, down to the daemons in sandboxes.
        .and_then(|()| slice::shorten().step("shorten the slice"))
        .and_then(|()| process::raise_descriptors().step("raise the limit of descriptors"))
        .and_then(|()| parse(args))
        .and_then(|arguments| match arguments.task {
            Task::Check(number) => check(number),
            Task::Resume(number) => resume(arguments, number),
            Task::Start => match daemon::start(&arguments.data_dir)? {
                daemon::Role::Starter => Ok(()),
                daemon::Role::Spawner(ready) => serve(arguments, ready),
            },
        });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(cause) => {
            let _ = writeln!(io::stderr(), "hutch spawner: {cause}");
            ExitCode::FAILURE
        }
    }
}

fn parse(args: impl IntoIterator<Item = OsString>) -> io::Result<Arguments> {
    let mut data_dir = None;
    let mut image_dir = None;
    let mut task = Task::Start;
    let mut args = args.into_iter();
    while let Some(name) = args.next() {
        let value = args.next();
        let number = value
            .as_ref()
            .and_then(|value| value.to_str()?.parse().ok());
        match (name.to_str(), value, number) {
            (Some("--data-dir"), Some(value), _) => data_dir = Some(PathBuf::from(value)),
            (Some("--image-dir"), Some(value), _) => image_dir = Some(PathBuf::from(value)),
            (Some(upgrade::CHECK), _, Some(number)) => task = Task::Check(number),
            (Some(upgrade::RESUME), _, Some(number)) => task = Task::Resume(number),
            _ => {
                return Err(io::Error::other(
                    "usage: hutch spawner --data-dir DIR [--image-dir DIR]",
                ));
            }
        }
    }
    let data_dir = data_dir.ok_or_else(|| io::Error::other("--data-dir is missing"))?;
    Ok(Arguments {
        data_dir,
        image_dir,
        task,
    })
}

/// Reads a state and changes nothing.
fn check(number: i32) -> io::Result<()> {
    let memory = store::Incoming::default().take(number)?;
    state::State::read(memory).map(drop)
}

/// Goes on as the spawner that this program replaced.
fn resume(arguments: Arguments, number: i32) -> io::Result<()> {
    let mut incoming = store::Incoming::default();
    let state = state::State::read(incoming.take(number)?)?;
    let data = DataDir::open(&arguments.data_dir).step("open the data directory")?;
    if state.data_dir != data.id {
        return Err(io::Error::other(format!(
            "the state is of data directory {}",
            state.data_dir
        )));
    }
    let hierarchies = Hierarchies::detect().step("look for control groups")?;
    let filters = seccomp::Filters::compile()?;
    let lock = incoming.take(state.lock)?.into();
    let setup = setup::Setup::new(arguments, data, hierarchies, filters, lock)?;
    HostImage::prepare(&setup.images).map_err(io::Error::other)?;
    service::Service::resume(setup, state, &mut incoming)?.run()
}

fn serve(arguments: Arguments, ready: daemon::Ready) -> io::Result<()> {
    match prepare(arguments) {
        Ok(service) => {
            ready.tell(Ok(()))?;
            service.run()
        }
        Err(cause) => {
            ready.tell(Err(&cause))?;
            Err(cause)
        }
    }
}

fn prepare(arguments: Arguments) -> io::Result<service::Service> {
    let data = DataDir::open(&arguments.data_dir).step("open the data directory")?;
    let lock = daemon::lock(&data)?;
    let hierarchies = Hierarchies::detect().step("look for control groups")?;
    if let Some(why) = hierarchies.obstacle() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    let filters = seccomp::Filters::compile()?;
    let setup = setup::Setup::new(arguments, data, hierarchies, filters, lock)?;
    // Here, where the server waits for it, and not before the first boot.
    HostImage::prepare(&setup.images).map_err(io::Error::other)?;
    daemon::leave_mounts().step("make mounts private")?;
    daemon::confine_volumes(&setup.data).step("confine the volumes")?;
    service::Service::new(setup).step("take over what a dead spawner left")
}

//! The spawner: a single-threaded root process that makes sandboxes and
//! outlives the server.
//!
//! It is started as `hutch spawner --data-dir D`, serves one server at a time
//! on `D/run/spawner.sock` and ends when it holds no boot and no server is
//! connected, on SIGTERM, or when its data directory is gone. Its sandboxes do
//! not outlive it.
#![expect(
    unsafe_code,
    reason = "starting processes needs calls without a safe form"
)]

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
mod reclaim;
mod rootfs;
mod seccomp;
mod server_link;
mod service;
mod signals;
mod slot;
mod step;
mod uid_range;
mod userns;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use hutch_images::HostImage;

use crate::native::cgroup::Hierarchies;
use crate::native::data_dir::DataDir;
use step::Step;

/// What the spawner was started with.
struct Arguments {
    data_dir: PathBuf,
    image_dir: Option<PathBuf>,
}

/// Runs the spawner: `hutch spawner --data-dir D`. `args` are what follows
/// `spawner`. The call forks; the first process returns when the spawner
/// serves or could not start, the other when it holds nothing any more.
#[must_use]
pub fn spawner_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let outcome = parse(args).and_then(|arguments| match daemon::start(&arguments.data_dir)? {
        daemon::Role::Starter => Ok(()),
        daemon::Role::Spawner(ready) => serve(&arguments, ready),
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
    let mut args = args.into_iter();
    while let Some(name) = args.next() {
        let value = args.next().map(PathBuf::from);
        match (name.to_str(), value) {
            (Some("--data-dir"), Some(value)) => data_dir = Some(value),
            (Some("--image-dir"), Some(value)) => image_dir = Some(value),
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
    })
}

fn serve(arguments: &Arguments, ready: daemon::Ready) -> io::Result<()> {
    let prepared = prepare(arguments);
    let service = match prepared {
        Ok(service) => {
            ready.tell(Ok(()))?;
            service
        }
        Err(cause) => {
            ready.tell(Err(&cause))?;
            return Err(cause);
        }
    };
    service.run()
}

fn prepare(arguments: &Arguments) -> io::Result<service::Service> {
    let data = DataDir::open(&arguments.data_dir).step("open the data directory")?;
    let lock = daemon::lock(&data)?;
    let hierarchies = Hierarchies::detect().step("look for control groups")?;
    if let Some(why) = hierarchies.obstacle() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    let filters = seccomp::Filters::compile()?;
    reclaim::all(&data, &hierarchies).step("remove what a dead spawner left")?;
    let images = arguments.image_dir.clone();
    let images = images.unwrap_or_else(|| data.path.join("images"));
    // Here, where the server waits for it, and not before the first boot.
    HostImage::prepare(&images).map_err(io::Error::other)?;
    daemon::leave_mounts().step("make mounts private")?;
    service::Service::new(service::Setup {
        data,
        hierarchies,
        filters,
        images,
        lock,
    })
}

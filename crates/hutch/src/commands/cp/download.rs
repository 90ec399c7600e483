//! From a sandbox to this machine.

use super::{Options, copied, failed, lost, progress::Progress};
use crate::{
    failure::Failure,
    signals::{Received, Signals},
};
use bytes::Bytes;
use hutch_client::{Copied, Sandbox};
use hutch_copy::{Expect, Owners, Source, Target, pipe};
use std::{
    io::{self, IsTerminal, Write},
    path::Path,
};

/// Passes the archive on as it is.
pub async fn to_stdout(
    sandbox: &Sandbox,
    path: &str,
    options: &Options,
    progress: &Progress,
) -> Result<Copied, Failure> {
    if io::stdout().is_terminal() {
        return Err(Failure::usage(
            "an archive would go to the terminal; redirect standard output, or name a target",
        ));
    }
    let mut archive = sandbox.read_tar(path, options.follow_link).await?;
    let (chunks, mut waiting) = tokio::sync::mpsc::channel::<Bytes>(4);
    let work = tokio::task::spawn_blocking(move || {
        let mut out = io::stdout().lock();
        while let Some(chunk) = waiting.blocking_recv() {
            out.write_all(&chunk)?;
        }
        out.flush()
    });
    let mut bytes = 0;
    while let Some(chunk) = archive.next().await? {
        progress.add(chunk.len());
        bytes += chunk.len() as u64;
        if chunks.send(chunk).await.is_err() {
            break;
        }
    }
    drop(chunks);
    work.await.map_err(lost)?.map_err(|error| {
        Failure::new("OUTPUT_FAILED", format!("cannot write to stdout: {error}"))
    })?;
    Ok(Copied { entries: 0, bytes })
}

/// A copy to a path that is under way.
pub struct Copy<'a> {
    sandbox: &'a Sandbox,
    path: &'a str,
    target: &'a Path,
    options: &'a Options,
    progress: &'a Progress,
}

/// Copies to a path of this machine.
pub fn to_path<'a>(
    sandbox: &'a Sandbox,
    path: &'a str,
    target: &'a Path,
    options: &'a Options,
    progress: &'a Progress,
) -> Copy<'a> {
    Copy {
        sandbox,
        path,
        target,
        options,
        progress,
    }
}

impl Copy<'_> {
    /// Copies until it is done or a signal comes. Either way nothing half done is
    /// left when this returns.
    pub async fn until(self, signals: &mut Signals) -> Result<Result<Copied, Received>, Failure> {
        let read = self.sandbox.read_tar(self.path, self.options.follow_link);
        let mut archive = tokio::select! {
            archive = read => archive?,
            signal = signals.next() => return Ok(Err(signal)),
        };
        let (sender, from) = pipe::reader();
        let target = self.target.to_owned();
        let name = Source::name_of(Path::new(self.path));
        let owners = Owners {
            keep: self.options.archive,
            set_id: false,
        };
        let work = tokio::task::spawn_blocking(move || {
            // A sandbox may send what was asked for, and nothing beside it.
            let expect = match &name {
                Some(name) => Expect::Named(name),
                None => Expect::Contents,
            };
            hutch_copy::unpack(from, Target::As(&target, expect), owners)
        });
        let feed = async {
            while let Some(chunk) = archive.next().await? {
                self.progress.add(chunk.len());
                // Nobody takes it when the archive was refused; the reason follows.
                if sender.send(Ok(chunk)).await.is_err() {
                    break;
                }
            }
            Ok::<(), Failure>(())
        };
        let fed = tokio::select! {
            fed = feed => Ok(fed),
            signal = signals.next() => Err(signal),
        };
        drop(sender);
        let unpacked = work.await.map_err(lost)?;
        match fed {
            Err(signal) => Ok(Err(signal)),
            Ok(Err(error)) => Err(error),
            Ok(Ok(())) => match unpacked {
                Ok(done) => Ok(Ok(copied(done))),
                Err(error) => Err(failed(&error)),
            },
        }
    }
}

//! Filled volumes made ahead, so that a create only names one.
//!
//! Most of an empty volume's cost is its fifty directories and links; worse
//! where the file system has just deleted many, because ext4 steps over every
//! inode that was freed in the last half minute. Blanks are made while nobody
//! creates, and only as many as were missed.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::fs::{Dir, IFlags, ioctl_getflags, ioctl_setflags, renameat};
use rustix::io::Errno;
use uuid::Uuid;

use super::confined::{make_dir, open_dir};
use super::tree;

/// Where they wait, below `volumes`; the number is the version of what is in
/// them.
pub const DIR: &str = ".blank-1";
/// How long after a create blanks are made: what was created boots now.
const REST: Duration = Duration::from_secs(1);
/// How many there are at first.
const FEWEST: usize = 8;
/// How many there are at most; each takes a fifth of a megabyte.
const MOST: usize = 64;

/// The blanks of a store, and the thread that makes them.
#[derive(Debug)]
pub struct Blanks {
    shared: Arc<Shared>,
    maker: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    ready: Vec<String>,
    wanted: usize,
    /// Counts creates, so that the maker sees whether it is quiet.
    creates: u64,
    closing: bool,
}

impl Blanks {
    /// Takes over what is there, and keeps making more with `fill`, which gets
    /// an empty directory. `volumes` is the directory of the store.
    ///
    /// # Errors
    /// Their directory cannot be made or read, or there is no thread.
    pub fn keep(
        volumes: &OwnedFd,
        fill: impl Fn(&OwnedFd) -> rustix::io::Result<()> + Send + 'static,
    ) -> io::Result<Self> {
        let home = volumes.try_clone()?;
        let dir = directory(volumes)?;
        let (ready, halves): (Vec<_>, Vec<_>) = names(&dir)?
            .into_iter()
            .partition(|name| !name.starts_with(HALF));
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                wanted: ready.len().clamp(FEWEST, MOST),
                ready,
                creates: 0,
                closing: false,
            }),
            changed: Condvar::new(),
        });
        let of_maker = Arc::clone(&shared);
        let maker = std::thread::Builder::new()
            .name("hutch-blanks".into())
            .spawn(move || {
                for half in halves {
                    let _ = tree::remove(&dir, &half);
                }
                drop(dir);
                of_maker.make(&home, fill);
            })?;
        Ok(Self {
            shared,
            maker: Some(maker),
        })
    }

    /// Moves a blank to `name` in `side`. `Ok(None)` if there is none.
    ///
    /// # Errors
    /// A blank is there but cannot be moved or opened.
    pub fn take(
        &self,
        volumes: &OwnedFd,
        side: &OwnedFd,
        name: &str,
    ) -> rustix::io::Result<Option<OwnedFd>> {
        let blank = {
            let mut state = self.shared.lock();
            state.creates += 1;
            let blank = state.ready.pop();
            if blank.is_none() {
                state.wanted = (state.wanted * 2).min(MOST);
            }
            self.shared.changed.notify_one();
            blank
        };
        let Some(blank) = blank else { return Ok(None) };
        let moved = open_dir(volumes, DIR).and_then(|dir| renameat(&dir, &blank, side, name));
        match moved {
            Err(Errno::NOENT) => {
                // Somebody cleared the directory: the others are gone as well.
                self.shared.lock().ready.clear();
                self.shared.changed.notify_one();
                Ok(None)
            }
            moved => moved.and_then(|()| open_dir(side, name)).map(Some),
        }
    }
}

impl Drop for Blanks {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.changed.notify_one();
        if let Some(maker) = self.maker.take() {
            let _ = maker.join();
        }
    }
}

/// What a blank is called until it is whole.
const HALF: &str = "half-";

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs until the store closes. A disk that takes no blank gets no second
    /// try before the next create.
    fn make(&self, volumes: &OwnedFd, fill: impl Fn(&OwnedFd) -> rustix::io::Result<()>) {
        let (mut quiet_at, mut failed_at) = (Some(0), None);
        while let Some(creates) = self.wait_for_quiet(quiet_at, failed_at) {
            quiet_at = Some(creates);
            // By its name each time, should somebody clear it away.
            match directory(volumes).and_then(|dir| blank(&dir, &fill)) {
                Ok(name) => self.lock().ready.push(name),
                Err(_) => failed_at = Some(creates),
            }
        }
    }

    /// Waits until blanks are wanted and nobody created for a while. Returns
    /// the number of creates so far, or `None` once the store closes. It was
    /// quiet before when there had been `quiet_at` creates.
    fn wait_for_quiet(&self, quiet_at: Option<u64>, failed_at: Option<u64>) -> Option<u64> {
        let mut state = self.lock();
        loop {
            let before = state.creates;
            let idle = state.ready.len() >= state.wanted || failed_at == Some(before);
            if state.closing {
                return None;
            } else if idle {
                let woken = self.changed.wait(state);
                state = woken.unwrap_or_else(PoisonError::into_inner);
            } else if quiet_at == Some(before) {
                return Some(before);
            } else {
                let waited = self.changed.wait_timeout(state, REST);
                let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                if timeout.timed_out() && !woken.closing && woken.creates == before {
                    return Some(before);
                }
                state = woken;
            }
        }
    }
}

/// Makes one blank. Nothing of it is left if that fails.
fn blank(
    dir: &OwnedFd,
    fill: impl Fn(&OwnedFd) -> rustix::io::Result<()>,
) -> rustix::io::Result<String> {
    let name = Uuid::new_v4().simple().to_string();
    let half = format!("{HALF}{name}");
    let made = make_dir(dir, &half, 0o700)
        .and_then(|home| fill(&home))
        .and_then(|()| renameat(dir, &half, dir, &name));
    if made.is_err() {
        let _ = tree::remove(dir, &half);
    }
    made.map(|()| name)
}

/// The directory of blanks in `volumes`, made if it is not there.
fn directory(volumes: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    let dir = make_dir(volumes, DIR, 0o700)?;
    spread(&dir);
    Ok(dir)
}

/// Asks the file system to lay the directories in `dir` far from each other,
/// so that what one sandbox deletes is not in the way of what another makes.
/// Not every file system has an answer, and none needs to.
fn spread(dir: &OwnedFd) {
    if let Ok(flags) = ioctl_getflags(dir) {
        let _ = ioctl_setflags(dir, flags | IFlags::TOPDIR);
    }
}

fn names(dir: &OwnedFd) -> rustix::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        match entry.file_name().to_str() {
            Ok("." | "..") | Err(_) => {}
            Ok(name) => names.push(name.to_owned()),
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests;

//! Faults on demand between two durable steps.
//!
//! `failpoint!("sleep.archived")` does nothing until a test starts the program
//! with `HUTCH_FAILPOINT=sleep.archived=kill`. Actions are `kill` (the process
//! ends by SIGKILL, as a machine's power does), `error` (the step fails) and
//! `pause` (the thread waits a minute, for somebody to look or to kill). Each
//! hit is a line in the file that `HUTCH_FAILPOINT_HITS` names. Builds without
//! debug assertions have none of this.
#![forbid(unsafe_code)]

/// Says which failpoints do what: `NAME=ACTION`, separated by commas.
pub const ARMED: &str = "HUTCH_FAILPOINT";
/// Names the file that gets a line for each hit.
pub const HITS: &str = "HUTCH_FAILPOINT_HITS";

/// The error of a failpoint that was told to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("failpoint {0}")]
pub struct Injected(pub &'static str);

impl From<Injected> for std::io::Error {
    fn from(injected: Injected) -> Self {
        Self::other(injected)
    }
}

/// A place where a test may let the program die or fail. Its value is a
/// `Result<(), Injected>`; where no step can fail, it is dropped.
#[macro_export]
macro_rules! failpoint {
    ($name:literal) => {
        $crate::pass($name)
    };
}

/// What [`failpoint!`] does.
///
/// # Errors
/// [`Injected`], if the failpoint is told to fail.
#[cfg(not(debug_assertions))]
#[inline]
pub const fn pass(_: &'static str) -> Result<(), Injected> {
    Ok(())
}

#[cfg(debug_assertions)]
pub use armed::pass;

/// What a child that outlives this process's environment has to be told.
#[must_use]
pub fn environment() -> Vec<(&'static str, std::ffi::OsString)> {
    let told = |name| Some((name, std::env::var_os(name)?));
    let names = if cfg!(debug_assertions) {
        &[ARMED, HITS][..]
    } else {
        &[]
    };
    names.iter().copied().filter_map(told).collect()
}

#[cfg(debug_assertions)]
mod armed {
    use std::collections::HashMap;
    use std::io::Write;
    use std::sync::OnceLock;
    use std::time::Duration;

    use rustix::process::{Signal, getpid, kill_process};

    use super::{ARMED, HITS, Injected};

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Action {
        Kill,
        Error,
        Pause,
    }

    pub(super) fn read(text: &str) -> HashMap<String, Action> {
        let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
        let known = pairs.filter_map(|(name, action)| {
            let action = match action {
                "kill" => Action::Kill,
                "error" => Action::Error,
                "pause" => Action::Pause,
                _ => return None,
            };
            Some((name.to_owned(), action))
        });
        known.collect()
    }

    /// What [`failpoint!`](crate::failpoint) does.
    ///
    /// # Errors
    /// [`Injected`], if the failpoint is told to fail.
    pub fn pass(name: &'static str) -> Result<(), Injected> {
        static PLAN: OnceLock<HashMap<String, Action>> = OnceLock::new();
        let plan = PLAN.get_or_init(|| read(&std::env::var(ARMED).unwrap_or_default()));
        let Some(action) = plan.get(name) else {
            return Ok(());
        };
        if let Some(hits) = std::env::var_os(HITS) {
            let file = std::fs::File::options()
                .append(true)
                .create(true)
                .open(hits);
            let _ = file.and_then(|mut file| writeln!(file, "{name}"));
        }
        match action {
            Action::Error => Err(Injected(name)),
            Action::Pause => {
                std::thread::sleep(Duration::from_secs(60));
                Ok(())
            }
            Action::Kill => loop {
                let _ = kill_process(getpid(), Signal::KILL);
            },
        }
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::armed::{Action, read};

    #[test]
    fn a_plan_names_points_and_actions() {
        let plan = read("a.b=kill,c=error,d=unknown,e");
        assert_eq!(plan.get("a.b"), Some(&Action::Kill));
        assert_eq!(plan.get("c"), Some(&Action::Error));
        assert_eq!(plan.len(), 2);
    }

    #[test]
    fn what_is_not_armed_passes() {
        assert_eq!(crate::failpoint!("nobody.armed"), Ok(()));
    }
}

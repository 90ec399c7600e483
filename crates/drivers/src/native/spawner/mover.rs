//! Parting the daemon from its commands, off the critical path.
//!
//! PID 1 is born in the groups of commands, so that the starter that it forks
//! first thing is there without being moved. A helper then moves PID 1 out.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use super::fork::{self, Side};
use crate::native::cgroup::SlotGroups;

/// How long a daemon has to fork its starter.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the first command has before PID 1 is moved: a move holds up every
/// fork on the machine for some milliseconds.
const SETTLE: Duration = Duration::from_millis(120);
/// What makes the kernel choose a command before anything of the host.
const OOM_SCORE: &str = "500";

/// Starts the helper; it is a child that ends by itself.
pub fn start(groups: &SlotGroups, pid: i32) -> io::Result<()> {
    match fork::fork(0, None)? {
        Side::Parent { .. } => Ok(()),
        Side::Child => {
            fork::close_all_but(&[]);
            part(groups, pid);
            fork::leave(0)
        }
    }
}

fn part(groups: &SlotGroups, pid: i32) {
    let deadline = Instant::now() + PATIENCE;
    let mut pause = SETTLE;
    loop {
        std::thread::sleep(pause);
        let Ok(commands) = groups.commands() else {
            return;
        };
        if !commands.contains(&pid) {
            return;
        }
        let others: Vec<i32> = commands.into_iter().filter(|other| *other != pid).collect();
        if !others.is_empty() || Instant::now() > deadline {
            for other in others {
                // Raising needs no right; children inherit it.
                let _ = fs::write(format!("/proc/{other}/oom_score_adj"), OOM_SCORE);
            }
            for place in groups.daemon_places() {
                let _ = fs::write(place, pid.to_string());
            }
            return;
        }
        pause = Duration::from_millis(50);
    }
}

//! The starter process: one thread, one loop.

use super::channel::{Channel, Received};
use super::clone::{Groups, Side, clone_child};
use super::command::{Plan, become_command, raise_oom_score};
use super::launch::{Launch, Outcome, Stage};
use super::report::{Report, last_errno};
use rustix::fd::{AsRawFd, OwnedFd, RawFd};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Pid, Signal};

/// What makes the kernel choose a command before the daemon and the starter when
/// memory runs out. Not relative to the starter's own: the host sets that meanwhile.
const OOM_SCORE: i32 = 500;

/// What the kernel thinks of a starter that was forked late; the host gives it to the first.
const OWN_OOM_SCORE: &[u8] = b"200";

/// What the starter is made with. The descriptors are borrowed from the daemon:
/// both sides hold a copy after the fork.
#[derive(Debug, Default)]
pub struct StarterSettings<'a> {
    /// The directory of the commands' control group, if there is one.
    pub groups: Option<&'a OwnedFd>,
    /// A file that holds the commands' system-call filter as raw `sock_filter` records.
    pub filter: Option<&'a OwnedFd>,
}

/// The running starter, as PID 1 holds it.
#[derive(Debug)]
pub struct Starter {
    /// Where requests go.
    pub channel: Channel,
    /// The starter's process id.
    pub pid: Pid,
    /// What the next one is forked from should this one end.
    pub cradle: Cradle,
}

/// What outlives a starter. The sandbox's own code can kill a starter, but not PID 1; the one
/// after it takes the requests that the dead one has not read.
#[derive(Debug)]
pub struct Cradle {
    serving: Channel,
    filter: Vec<libc::sock_filter>,
    report: Report,
}

/// Where a starter comes from.
enum Birth<'a> {
    /// A process with one thread, in the groups of commands.
    First,
    /// A daemon that runs. It joins these `cgroup.procs` files.
    Late(&'a [OwnedFd]),
}

impl Starter {
    /// Forks the starter. Call it before the process has a second thread.
    ///
    /// # Errors
    /// No process or socket can be made, or the filter cannot be read.
    pub fn fork(settings: &StarterSettings<'_>) -> Result<Self, Errno> {
        let (ours, serving) = Channel::pair()?;
        let filter = settings
            .filter
            .map_or_else(|| Ok(Vec::new()), read_filter)?;
        let cradle = Cradle {
            serving,
            filter,
            report: Report::new()?,
        };
        let pid = cradle.bear(settings.groups, &Birth::First)?;
        Ok(Self {
            channel: ours,
            pid,
            cradle,
        })
    }
}

impl Cradle {
    /// Forks a starter from the daemon. It joins the opened `cgroup.procs` files of `attach`.
    ///
    /// # Errors
    /// No process can be made.
    pub fn fork_late(&self, groups: Option<&OwnedFd>, attach: &[OwnedFd]) -> Result<Pid, Errno> {
        self.bear(groups, &Birth::Late(attach))
    }

    /// The call that a starter that died was at, if it was at one.
    #[must_use]
    pub fn take_call(&self) -> Option<u64> {
        self.report.take_call()
    }

    /// Takes back the requests that no starter has read. Only while none runs.
    pub fn drain(&self) {
        while self.serving.discard_request() {}
    }

    fn bear(&self, groups: Option<&OwnedFd>, birth: &Birth<'_>) -> Result<Pid, Errno> {
        // SAFETY: glibc keeps its allocator usable across a fork of a process with threads, and
        // the child uses no lock of ours: all that it touches is borrowed plain data.
        match unsafe { libc::fork() } {
            -1 => Err(last_errno()),
            0 => {
                self.settle(groups, birth);
                self.serve(groups)
            }
            pid => Pid::from_raw(pid).ok_or(Errno::INVAL),
        }
    }

    /// Makes the fresh process what commands are copied from: plain signals, a usual
    /// umask, its place in the groups, and nothing for others to read.
    fn settle(&self, groups: Option<&OwnedFd>, birth: &Birth<'_>) {
        let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
        let _ = rustix::thread::set_name(c"starter");
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
        reset_signals();
        match birth {
            Birth::First => {
                let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
            }
            // The signal would come with the end of the thread that forked; the end of the
            // channel will do.
            Birth::Late(attach) => {
                for group in *attach {
                    let _ = rustix::io::write(group, b"0");
                }
                raise_oom_score(OWN_OOM_SCORE);
            }
        }
        // Neither the daemon's end of the channel, whose close is the end, nor the pipes and
        // sockets of its calls may stay open here.
        let kept = [
            Some(self.serving.as_raw_fd()),
            groups.map(AsRawFd::as_raw_fd),
        ];
        close_all_but(kept.into_iter().flatten());
    }

    fn serve(&self, groups: Option<&OwnedFd>) -> ! {
        let oom_score = oom_score();
        let mut groups = groups.map(Groups::new);
        while let Ok(Some(Received {
            launch,
            call,
            descriptors,
        })) = self.serving.receive()
        {
            self.report.begin(if launch.is_some() { call } else { 0 });
            let outcome = match &launch {
                Some(launch) => {
                    let plan = Plan {
                        launch,
                        descriptors: &descriptors,
                        filter: &self.filter,
                        oom_score: &oom_score,
                        report: &self.report,
                    };
                    start(groups.as_mut(), launch, &plan)
                }
                None => Outcome::Failed {
                    stage: Stage::Request,
                    errno: Errno::INVAL.raw_os_error(),
                },
            };
            drop(descriptors);
            let replied = self.serving.reply(call, outcome);
            self.report.done();
            if replied.is_err() {
                break;
            }
            if let Some(groups) = &mut groups {
                groups.make_ahead(call);
            }
        }
        // SAFETY: the daemon is gone; ends this process without running its handlers.
        unsafe { libc::_exit(0) }
    }
}

/// Closes every descriptor but the standard streams and these.
fn close_all_but(kept: impl Iterator<Item = RawFd>) {
    let mut kept: Vec<u32> = kept.filter_map(|fd| u32::try_from(fd).ok()).collect();
    kept.sort_unstable();
    let mut first = 3_u32;
    for fd in kept.into_iter().chain([u32::MAX]) {
        if let Some(last) = fd.checked_sub(1).filter(|last| *last >= first) {
            // SAFETY: a fresh copy of the daemon; what owned these never runs here.
            unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        }
        first = fd.saturating_add(1);
    }
}

fn start(groups: Option<&mut Groups<'_>>, launch: &Launch, plan: &Plan<'_>) -> Outcome {
    if plan.descriptors.len() != 3 + usize::from(launch.script) {
        return Outcome::Failed {
            stage: Stage::Request,
            errno: Errno::BADF.raw_os_error(),
        };
    }
    match clone_child(groups, launch.call) {
        Ok(Side::Child { grouped }) => become_command(plan, grouped),
        Ok(Side::Parent { pid, grouped }) => match plan.report.failure() {
            None => Outcome::Started {
                pid: pid.as_raw_nonzero().get(),
                grouped,
            },
            Some((stage, errno)) => Outcome::Failed { stage, errno },
        },
        Err(errno) => Outcome::Failed {
            stage: Stage::Clone,
            errno: errno.raw_os_error(),
        },
    }
}

/// Gives every signal its default disposition and blocks none. By system call, since
/// the C library keeps signals 32 and 33 to itself and would leave them ignored.
fn reset_signals() {
    const SET_BYTES: usize = 8;
    // The kernel's sigaction: handler, flags, restorer, mask; all zero is the default disposition.
    let default = [0_u64; 4];
    for signal in 1..=64_i64 {
        // SAFETY: `default` is a whole kernel sigaction that installs no handler; the kernel
        // only reads it, and refuses the signals that cannot be changed.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default.as_ptr(),
                std::ptr::null::<u64>(),
                SET_BYTES,
            )
        };
    }
    let none = 0_u64;
    // SAFETY: `none` is a whole kernel signal set; the kernel only reads it.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const none,
            std::ptr::null::<u64>(),
            SET_BYTES,
        )
    };
}

fn oom_score() -> Vec<u8> {
    let own = std::fs::read_to_string("/proc/self/oom_score_adj")
        .ok()
        .and_then(|text| text.trim().parse::<i32>().ok())
        .unwrap_or(0);
    own.max(OOM_SCORE).to_string().into_bytes()
}

fn read_filter(file: &OwnedFd) -> Result<Vec<libc::sock_filter>, Errno> {
    const RECORD: usize = size_of::<libc::sock_filter>();
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let offset = u64::try_from(bytes.len()).map_err(|_| Errno::FBIG)?;
        match rustix::io::retry_on_intr(|| rustix::io::pread(file, &mut chunk, offset))? {
            0 => break,
            n => bytes.extend_from_slice(&chunk[..n]),
        }
        // The kernel takes at most 4096 instructions.
        if bytes.len() > 4096 * RECORD {
            return Err(Errno::FBIG);
        }
    }
    if bytes.is_empty() || !bytes.len().is_multiple_of(RECORD) {
        return Err(Errno::INVAL);
    }
    Ok(bytes.chunks_exact(RECORD).map(record).collect())
}

fn record(bytes: &[u8]) -> libc::sock_filter {
    libc::sock_filter {
        code: u16::from_ne_bytes([bytes[0], bytes[1]]),
        jt: bytes[2],
        jf: bytes[3],
        k: u32::from_ne_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
    }
}

//! The starter process: one thread, one loop.

use super::channel::{Channel, Received};
use super::clone::{Groups, Side, clone_child};
use super::command::{Plan, become_command};
use super::launch::{Launch, Outcome, Stage};
use super::report::{Report, last_errno};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Pid, Signal};

/// What makes the kernel choose a command before the daemon and the starter when
/// memory runs out. Not relative to the starter's own: the host sets that meanwhile.
const OOM_SCORE: i32 = 500;

/// What the starter is made with. The descriptors are borrowed from the daemon:
/// both sides hold a copy after the fork.
#[derive(Debug, Default)]
pub struct StarterSettings<'a> {
    /// The directory of the commands' control group, if there is one.
    pub groups: Option<&'a OwnedFd>,
    /// Opened `cgroup.procs` files that the starter attaches itself to.
    pub attach: &'a [OwnedFd],
    /// A file that holds the commands' system-call filter as raw `sock_filter` records.
    pub filter: Option<&'a OwnedFd>,
}

/// The running starter, as PID 1 holds it.
#[derive(Debug)]
pub struct Starter {
    /// Where requests go.
    pub channel: Channel,
    /// The starter's process id; when it ends nothing can be started any more.
    pub pid: Pid,
}

impl Starter {
    /// Forks the starter. Call it before the process has a second thread.
    ///
    /// # Errors
    /// No process or socket can be made, or the filter cannot be read.
    pub fn fork(settings: &StarterSettings<'_>) -> Result<Self, Errno> {
        let (ours, theirs) = Channel::pair()?;
        let filter = settings
            .filter
            .map_or_else(|| Ok(Vec::new()), read_filter)?;
        let report = Report::new()?;
        // SAFETY: `main` calls this before any thread exists. In unit tests there are other
        // threads; glibc keeps its allocator usable across fork and the child uses no lock of ours.
        match unsafe { libc::fork() } {
            -1 => Err(last_errno()),
            0 => {
                drop(ours);
                serve(&theirs, settings, &filter, &report)
            }
            pid => Ok(Self {
                channel: ours,
                pid: Pid::from_raw(pid).ok_or(Errno::INVAL)?,
            }),
        }
    }
}

fn serve(
    channel: &Channel,
    settings: &StarterSettings<'_>,
    filter: &[libc::sock_filter],
    report: &Report,
) -> ! {
    settle(settings);
    let oom_score = oom_score();
    let mut groups = settings.groups.map(Groups::new);
    while let Ok(Some(Received {
        launch,
        descriptors,
    })) = channel.receive()
    {
        let call = launch.as_ref().map_or(0, |launch| launch.call);
        let outcome = match &launch {
            Some(launch) => {
                let plan = Plan {
                    launch,
                    descriptors: &descriptors,
                    filter,
                    oom_score: &oom_score,
                    report,
                };
                start(groups.as_mut(), launch, &plan)
            }
            None => Outcome::Failed {
                stage: Stage::Request,
                errno: Errno::INVAL.raw_os_error(),
            },
        };
        drop(descriptors);
        if channel.reply(call, outcome).is_err() {
            break;
        }
        if let Some(groups) = &mut groups {
            groups.make_ahead(call);
        }
    }
    // SAFETY: the daemon is gone; ends this process without running its handlers.
    unsafe { libc::_exit(0) }
}

fn start(groups: Option<&mut Groups<'_>>, launch: &Launch, plan: &Plan<'_>) -> Outcome {
    if plan.descriptors.len() != 3 + usize::from(launch.script) {
        return Outcome::Failed {
            stage: Stage::Request,
            errno: Errno::BADF.raw_os_error(),
        };
    }
    plan.report.clear();
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

/// Makes the fresh process what commands are copied from: plain signals, a usual
/// umask, its place in the groups, and nothing for others to read.
fn settle(settings: &StarterSettings<'_>) {
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    let _ = rustix::thread::set_name(c"starter");
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    reset_signals();
    for group in settings.attach {
        let _ = rustix::io::write(group, b"0");
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

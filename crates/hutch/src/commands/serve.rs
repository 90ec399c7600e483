//! `hutch serve`.

use crate::{
    failure::Failure,
    output,
    settings::{Settings, SnapshotLife},
};
use clap::{Args, ValueEnum};
use hutch_drivers::CpuLimit;
use hutch_protocol::{ApiError, InstanceType};
use hutch_server::{Options, Server};
use std::{net::SocketAddr, num::NonZeroUsize, path::PathBuf};
use tokio::signal::unix::{SignalKind, signal};

/// Options of `hutch serve`.
#[derive(Debug, Args)]
#[command(after_help = "\
The server writes `ready: http://ADDRESS` to stderr when it answers. Its first start makes the
access token (admin.key in the data directory) and the project `default`. SIGTERM or Ctrl-C stops
it; sandboxes keep running and the next start takes them over.

Logs go to stderr; HUTCH_LOG sets how much (error, warn, info, debug, trace), --log-format json makes
each line an object with the project, sandbox, boot and trace id that it is about.

Examples:
  hutch serve
  hutch serve --listen 127.0.0.1:8080 --data-dir /srv/hutch
  hutch serve --max-instances standard-4=2 --max-instances basic=50")]
pub struct ServeArgs {
    /// Address to listen on; port 0 takes a free one
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "HUTCH_LISTEN",
        default_value = "127.0.0.1:7070"
    )]
    listen: SocketAddr,
    /// The in-sandbox daemon [default: sandboxd beside this program]
    #[arg(long, value_name = "FILE", env = "HUTCH_SANDBOXD")]
    sandboxd: Option<PathBuf>,
    /// An instance type's CPU: a share that may burst, or a cap
    #[arg(long, value_name = "KIND", env = "HUTCH_CPU", default_value = "share")]
    cpu: Cpu,
    /// Another host name that requests may address; may be repeated
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,
    /// The most sandboxes of a type that may be awake; may be repeated
    #[arg(
        long,
        value_name = "TYPE=N",
        env = "HUTCH_MAX_INSTANCES",
        value_delimiter = ',',
        value_parser = max_instances
    )]
    max_instances: Vec<(InstanceType, usize)>,
    /// How long the work of a sandbox that sleeps is kept, such as 30d, or never [default: 90d]
    #[arg(long, value_name = "TIME", env = "HUTCH_SNAPSHOT_LIFE", value_parser = snapshot_life)]
    snapshot_life: Option<SnapshotLife>,
    /// Sessions that may be open [default: 4096]
    #[arg(long, value_name = "N", env = "HUTCH_CONNECTIONS")]
    connections: Option<NonZeroUsize>,
    /// Sessions that may wait for their key; one more ends the oldest [default: 128]
    #[arg(long, value_name = "N", env = "HUTCH_UNAUTHENTICATED")]
    unauthenticated: Option<NonZeroUsize>,
    /// How log lines are written
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        env = "HUTCH_LOG_FORMAT",
        default_value = "text"
    )]
    log_format: LogFormat,
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

/// What an instance type's CPU means.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Cpu {
    /// A weight against others; what nobody uses is there to take
    Share,
    /// No more than that, also on an idle machine
    Capped,
}

/// Runs the server until a signal stops it.
pub async fn run(args: ServeArgs, settings: &Settings) -> Result<u8, Failure> {
    let format = if settings.json {
        LogFormat::Json
    } else {
        args.log_format
    };
    log(format)?;
    hutch_drivers::native::forbid_core_dumps().map_err(|error| {
        Failure::new(
            "INTERNAL_ERROR",
            format!("cannot forbid core dumps: {error}"),
        )
    })?;
    let uncaught = |error: std::io::Error| {
        Failure::new("INTERNAL_ERROR", format!("cannot catch signals: {error}"))
    };
    let mut terminate = signal(SignalKind::terminate()).map_err(uncaught)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(uncaught)?;
    let defaults = Options::new(&settings.data_dir);
    let chosen = |typed: Option<NonZeroUsize>, filed: Option<NonZeroUsize>, default| {
        typed.or(filed).map_or(default, NonZeroUsize::get)
    };
    let options = Options {
        listen: args.listen,
        sandboxd: args.sandboxd,
        cpu: match args.cpu {
            Cpu::Share => CpuLimit::Share,
            Cpu::Capped => CpuLimit::Capped,
        },
        allowed_hosts: args.allow_host,
        // What is typed comes last and wins.
        max_instances: [settings.max_instances.clone(), args.max_instances].concat(),
        snapshot_life: args
            .snapshot_life
            .or(settings.snapshot_life)
            .map_or(defaults.snapshot_life, |SnapshotLife(life)| life),
        connections: chosen(args.connections, settings.connections, defaults.connections),
        unauthenticated: chosen(
            args.unauthenticated,
            settings.unauthenticated,
            defaults.unauthenticated,
        ),
        ..defaults
    };
    let server = Server::start(options)
        .await
        .map_err(|error| Failure::new("SERVE_FAILED", error.to_string()))?;
    if let Some(obstacle) = server.obstacle() {
        format.tell("sandboxes cannot start here", obstacle);
    }
    format.tell("ready", &format!("http://{}", server.address()));
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    server.stop().await;
    let next = "sandboxes run on and the next `hutch serve` takes them over";
    format.tell("stopped", next);
    Ok(0)
}

fn snapshot_life(text: &str) -> Result<SnapshotLife, String> {
    SnapshotLife::try_from(text.to_owned())
}

/// `TYPE=N`.
fn max_instances(text: &str) -> Result<(InstanceType, usize), String> {
    let (size, most) = text
        .split_once('=')
        .ok_or("use TYPE=N, such as basic=100")?;
    let size = size.parse().map_err(|error: ApiError| error.message)?;
    let most = most
        .parse()
        .map_err(|_| format!("{most:?} is not a number"))?;
    Ok((size, most))
}

impl LogFormat {
    /// Says what is to be known whatever the level of the log is.
    fn tell(self, what: &str, text: &str) {
        output::note(&match self {
            Self::Text => format!("{what}: {text}"),
            Self::Json => serde_json::json!({ what: text }).to_string(),
        });
    }
}

/// Sends the server's logs to stderr.
fn log(format: LogFormat) -> Result<(), Failure> {
    use tracing_subscriber::EnvFilter;
    let level = std::env::var("HUTCH_LOG").unwrap_or_else(|_| "warn".to_owned());
    let filter = EnvFilter::try_new(&level)
        .map_err(|error| Failure::usage(format!("HUTCH_LOG: {error}; try warn or info")))?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()));
    let set = match format {
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
        LogFormat::Text => builder.try_init(),
    };
    set.map_err(|error| Failure::new("INTERNAL_ERROR", format!("cannot log: {error}")))
}

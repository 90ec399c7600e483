//! `hutch serve`.

use crate::{failure::Failure, settings::Settings};
use clap::Args;
use std::net::SocketAddr;

/// Options of `hutch serve`.
#[derive(Debug, Args)]
#[command(after_help = "\
The server writes `ready: http://ADDRESS` to stderr when it answers. Its first start makes the
access token (admin.key in the data directory) and the project `default`. SIGTERM or Ctrl-C stops
it; sandboxes keep running and the next start takes them over.

Examples:
  hutch serve
  hutch serve --listen 127.0.0.1:8080 --data-dir /srv/hutch")]
pub struct ServeArgs {
    /// Address to listen on; port 0 takes a free one
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "HUTCH_LISTEN",
        default_value = "127.0.0.1:7070"
    )]
    listen: SocketAddr,
}

/// Runs the server until a signal stops it.
pub async fn run(args: ServeArgs, settings: &Settings) -> Result<u8, Failure> {
    let _ = (args.listen, settings);
    Err(Failure::new("INTERNAL_ERROR", "not linked in yet"))
}

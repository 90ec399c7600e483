//! `hutch bench`.

use crate::{failure::Failure, settings::Settings};
use clap::Args;

/// Options of `hutch bench`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hutch bench
  hutch bench -n 20 --json")]
pub struct BenchArgs {
    /// Samples of each measurement
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 100)]
    samples: usize,
}

/// Measures.
pub async fn run(args: BenchArgs, _settings: &Settings) -> Result<u8, Failure> {
    let _ = args.samples;
    Err(Failure::new("INTERNAL_ERROR", "not linked in yet"))
}

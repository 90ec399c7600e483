//! `hutch doctor`.

use crate::{failure::Failure, settings::Settings};
use clap::Args;

/// Options of `hutch doctor`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hutch doctor
  hutch doctor --json")]
pub struct DoctorArgs {}

/// Says what works here.
pub async fn run(_args: DoctorArgs, _settings: &Settings) -> Result<u8, Failure> {
    Err(Failure::new("INTERNAL_ERROR", "not linked in yet"))
}

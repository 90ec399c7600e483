//! What the doctor sees of the server.

use super::Check;
use crate::{connect, failure::Failure, settings::Settings};
use hutch_drivers::Support;
use std::time::Duration;

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks the server who we are, and for its sandboxes' count.
pub async fn check(settings: &Settings) -> Vec<Check> {
    let missing = |detail: String| vec![Check::new("reachable", Support::Missing, detail)];
    match tokio::time::timeout(PATIENCE, ask(settings)).await {
        Ok(Ok(detail)) => vec![Check::new("reachable", Support::Ok, detail)],
        Ok(Err(failure)) => missing(failure.message),
        Err(_) => missing(format!(
            "{} did not answer within {} s",
            settings.url,
            PATIENCE.as_secs()
        )),
    }
}

async fn ask(settings: &Settings) -> Result<String, Failure> {
    let client = connect::client(settings).await?;
    client.whoami().await?;
    let projects = client.list_projects().await?.len();
    let noun = if projects == 1 { "project" } else { "projects" };
    Ok(format!("{}, {projects} {noun}", settings.url))
}

//! What is tidied up once a day.

use std::time::Duration;

use crate::adapters::LocalWorkspaces;

const A_DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How long an expired snapshot stays, so that a restore that has begun does
/// not lose it under way.
const GRACE: Duration = Duration::from_secs(60 * 60);

/// Drops the snapshots that expired, now and once a day, until dropped.
pub(crate) async fn daily(workspaces: LocalWorkspaces) {
    loop {
        if let Err(error) = workspaces.sweep_expired(GRACE).await {
            tracing::warn!(%error, "expired snapshots were not swept");
        }
        tokio::time::sleep(A_DAY).await;
    }
}

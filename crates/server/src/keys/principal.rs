//! Who is at the other end of an authenticated connection.

use std::fmt;
use std::time::Duration;

use hutch_protocol::{ProjectId, Timestamp};
use tokio_util::sync::CancellationToken;

use super::token::KeyId;

/// The longest wait before the clock is read again: the host's clock may jump.
const LOOK: Duration = Duration::from_secs(30);

/// Which key opened a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum KeyName {
    /// The admin key of the data directory.
    Admin,
    /// A key that was created.
    Stored(KeyId),
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Admin => f.write_str("admin"),
            Self::Stored(id) => id.fmt(f),
        }
    }
}

/// The projects that a key opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Projects {
    /// All, and those to come.
    All,
    /// One.
    One(ProjectId),
}

/// An authenticated caller.
#[derive(Clone, Debug)]
pub(crate) struct Principal {
    pub(crate) key: KeyName,
    pub(crate) projects: Projects,
    pub(super) expires_at: Option<Timestamp>,
    pub(super) revoked: CancellationToken,
}

/// Why a key opens nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Somebody revoked it.
    Revoked,
    /// Its time is over.
    Expired,
}

impl Principal {
    pub(crate) fn admin() -> Self {
        Self {
            key: KeyName::Admin,
            projects: Projects::All,
            expires_at: None,
            revoked: CancellationToken::new(),
        }
    }

    /// Whether the key opens this project.
    pub(crate) fn opens(&self, project: &ProjectId) -> bool {
        match &self.projects {
            Projects::All => true,
            Projects::One(one) => one == project,
        }
    }

    /// Whether the caller holds the admin key.
    pub(crate) fn is_admin(&self) -> bool {
        self.key == KeyName::Admin
    }

    /// Resolves once the key opens nothing any more; never for the admin key.
    pub(crate) async fn ended(&self) -> Ended {
        let expired = async {
            let Some(at) = self.expires_at else {
                return std::future::pending().await;
            };
            loop {
                let left = at.millis().saturating_sub(Timestamp::now().millis());
                let Ok(left @ 1..) = u64::try_from(left) else {
                    return;
                };
                tokio::time::sleep(Duration::from_millis(left).min(LOOK)).await;
            }
        };
        tokio::select! {
            () = self.revoked.cancelled() => Ended::Revoked,
            () = expired => Ended::Expired,
        }
    }
}

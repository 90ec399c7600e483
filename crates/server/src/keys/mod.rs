//! Keys: who may call, and what they open.

mod principal;
mod record;
mod token;

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hutch_protocol::{ApiError, ErrorCode, ProjectId, Timestamp};
use hutch_streams::{Expect, RecordId, Scope, Store, StoreError, Transaction};
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use crate::data_dir::AdminKey;
pub(crate) use principal::{Ended, KeyName, Principal, Projects};
pub(crate) use record::KeyDescription;
use record::{KeyRecord, RECORD_VERSION};
pub(crate) use token::KeyId;
use token::{NewToken, Reading};

const KIND: &str = "key";
/// How many keys a data directory may hold, revoked ones included.
const KEYS_MAX: usize = 10_000;
/// How many bytes a label may have.
const LABEL_MAX: usize = 200;
/// How exact the time of last use is, so that calls do not write each time.
const USE_GRAIN: Duration = Duration::from_secs(60);

/// What a new key is to be.
#[derive(Clone, Debug)]
pub(crate) struct NewKey {
    pub(crate) project: Option<ProjectId>,
    pub(crate) label: Option<String>,
    pub(crate) lifetime: Option<Duration>,
}

/// A key as its creator sees it, once.
pub(crate) struct CreatedKey {
    pub(crate) description: KeyDescription,
    pub(crate) token: SecretString,
}

/// All keys of a data directory.
pub(crate) struct Keys {
    admin: AdminKey,
    store: Store,
    known: Mutex<HashMap<KeyId, Known>>,
}

struct Known {
    record: KeyRecord,
    revoked: CancellationToken,
}

impl Keys {
    /// Reads them.
    pub(crate) async fn open(admin: AdminKey, store: Store) -> Result<Self, StoreError> {
        let mut known = HashMap::new();
        for stored in store.records(KIND, Scope::Deployment).await? {
            let record: KeyRecord = serde_json::from_value(stored.json)
                .map_err(|error| StoreError::Damaged(format!("key {}: {error}", stored.id.key)))?;
            let revoked = CancellationToken::new();
            if record.revoked_at.is_some() {
                revoked.cancel();
            }
            known.insert(record.id.clone(), Known { record, revoked });
        }
        let known = Mutex::new(known);
        Ok(Self {
            admin,
            store,
            known,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<KeyId, Known>> {
        // Every step leaves the map whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who holds this token.
    ///
    /// # Errors
    /// `UNAUTHENTICATED`, saying what is wrong with it where that tells nobody
    /// anything.
    pub(crate) fn authenticate(&self, token: &SecretString) -> Result<Principal, ApiError> {
        if self.admin.matches(token) {
            return Ok(Principal::admin());
        }
        let presented = match Reading::of(token) {
            Reading::Key(presented) => presented,
            Reading::Mistyped => {
                return Err(unauthenticated(
                    "the key is not whole; copy it again from where it was shown",
                ));
            }
            Reading::Other => return Err(unknown()),
        };
        let known = self.lock();
        let Some(key) = known.get(&presented.id) else {
            return Err(unknown());
        };
        if key.record.hash != presented.hash {
            return Err(unknown());
        }
        let id = &presented.id;
        if key.record.revoked_at.is_some() {
            return Err(ended(id, Ended::Revoked));
        }
        if !key.record.is_valid(Timestamp::now()) {
            return Err(ended(id, Ended::Expired));
        }
        Ok(Principal {
            key: KeyName::Stored(presented.id.clone()),
            projects: match &key.record.project {
                None => Projects::All,
                Some(project) => Projects::One(project.clone()),
            },
            expires_at: key.record.expires_at,
            revoked: key.revoked.clone(),
        })
    }

    /// Makes a key. Its token can never be shown again.
    pub(crate) async fn create(&self, new: NewKey) -> Result<CreatedKey, ApiError> {
        if self.lock().len() >= KEYS_MAX {
            let message = format!("this server holds {KEYS_MAX} keys, which is the limit");
            return Err(ApiError::new(ErrorCode::CapacityExceeded, message));
        }
        if new
            .label
            .as_ref()
            .is_some_and(|label| label.len() > LABEL_MAX)
        {
            let message = format!("a key's label has at most {LABEL_MAX} bytes");
            return Err(ApiError::new(ErrorCode::ValidationFailed, message));
        }
        let token = tokio::task::spawn_blocking(NewToken::random).await;
        let token = token.map_err(io::Error::other).flatten().map_err(|error| {
            let message = format!("no randomness for a key: {error}");
            ApiError::new(ErrorCode::InternalError, message)
        })?;
        let now = Timestamp::now();
        let expires_at = new.lifetime.map(|lifetime| {
            let lifetime = i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX);
            Timestamp::from_millis(now.millis().saturating_add(lifetime))
        });
        let record = KeyRecord {
            id: token.id,
            hash: token.hash,
            label: new.label,
            project: new.project,
            created_at: now,
            expires_at,
            last_used_at: None,
            revoked_at: None,
        };
        self.write(&record, Expect::Absent).await?;
        let description = record.describe(now);
        let revoked = CancellationToken::new();
        self.lock()
            .insert(record.id.clone(), Known { record, revoked });
        Ok(CreatedKey {
            description,
            token: token.text,
        })
    }

    /// All keys, oldest first.
    pub(crate) fn list(&self) -> Vec<KeyDescription> {
        let now = Timestamp::now();
        let known = self.lock();
        let mut all: Vec<_> = known.values().map(|key| key.record.describe(now)).collect();
        drop(known);
        all.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        all
    }

    /// Revokes a key and ends every connection that it opened. Twice is as
    /// good as once.
    pub(crate) async fn revoke(&self, id: &KeyId) -> Result<KeyDescription, ApiError> {
        let now = Timestamp::now();
        let found = self.lock().get(id).map(|key| key.record.clone());
        let Some(mut record) = found else {
            let message = format!("key {id} does not exist; `hutch key list` shows those that do");
            return Err(ApiError::new(ErrorCode::KeyNotFound, message).with("key", id.to_string()));
        };
        if record.revoked_at.is_none() {
            record.revoked_at = Some(now);
            self.write(&record, Expect::Any).await?;
        }
        let description = record.describe(now);
        if let Some(key) = self.lock().get_mut(id) {
            key.record.revoked_at = record.revoked_at;
            key.revoked.cancel();
        }
        Ok(description)
    }

    /// Notes that a key was used, at most once a minute.
    pub(crate) async fn used(&self, name: &KeyName) {
        let KeyName::Stored(id) = name else { return };
        let now = Timestamp::now();
        let grain = i64::try_from(USE_GRAIN.as_millis()).unwrap_or(i64::MAX);
        let due = {
            let mut known = self.lock();
            let Some(key) = known.get_mut(id) else { return };
            let fresh = |at: Timestamp| (now.millis() - at.millis()).abs() < grain;
            if key.record.last_used_at.is_some_and(fresh) {
                return;
            }
            key.record.last_used_at = Some(now);
            key.record.clone()
        };
        // Under a race with `revoke` the revocation must win.
        if due.revoked_at.is_none()
            && let Err(error) = self.write_use(due).await
        {
            tracing::warn!(key = %id, %error, "the use of a key was not noted");
        }
    }

    async fn write_use(&self, record: KeyRecord) -> Result<(), ApiError> {
        let stored = RecordId::deployment(KIND, record.id.as_str());
        let current = self.store.record(&stored).await?;
        let Some(current) = current.filter(|current| current.json["revokedAt"].is_null()) else {
            return Ok(());
        };
        self.write(&record, Expect::Revision(current.revision))
            .await
    }

    async fn write(&self, record: &KeyRecord, expect: Expect) -> Result<(), ApiError> {
        let id = RecordId::deployment(KIND, record.id.as_str());
        let json = serde_json::to_value(record)
            .map_err(|error| ApiError::new(ErrorCode::InternalError, error.to_string()))?;
        let transaction = Transaction::new().write(id, RECORD_VERSION, json, expect);
        self.store.commit(transaction).await?;
        Ok(())
    }
}

fn unauthenticated(message: &str) -> ApiError {
    ApiError::new(ErrorCode::Unauthenticated, message)
}

fn unknown() -> ApiError {
    unauthenticated(
        "the token is not valid; pass --token or HUTCH_TOKEN, or the server's --data-dir so that its admin.key is read",
    )
}

/// What the holder of a key hears when it opens nothing any more.
pub(crate) fn ended(id: &KeyId, why: Ended) -> ApiError {
    let what = match why {
        Ended::Revoked => "was revoked",
        Ended::Expired => "has expired",
    };
    let message = format!("key {id} {what}; ask for a new one, `hutch key create` makes it");
    unauthenticated(&message).with("key", id.to_string())
}

#[cfg(test)]
mod tests;

//! `keys` of the session: making, listing and revoking keys.

use std::time::Duration;

use capnweb::Value;
use hutch_protocol::{ApiError, ErrorCode};
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::json;

use super::session::Session;
use super::{args, plain};
use crate::keys::{KeyId, NewKey};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// The longest life that can be asked for.
const LIFE_MAX: u64 = 3650 * DAY;

/// A method of `keys`.
#[derive(Clone, Copy)]
pub(super) enum Method {
    Create,
    List,
    Revoke,
}

impl Method {
    pub(super) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "create" => Self::Create,
            "list" => Self::List,
            "revoke" => Self::Revoke,
            _ => return None,
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct CreateInput {
    project: Option<String>,
    label: Option<String>,
    expires_in: Option<String>,
}

/// Runs one. Only the admin key may: a key that leaked must not make others
/// that outlive it.
pub(super) async fn call(
    session: &Session,
    method: Method,
    args: &[Value],
) -> Result<Value, ApiError> {
    if !session.principal.is_admin() {
        return Err(ApiError::new(
            ErrorCode::Forbidden,
            "only the admin key makes, lists and revokes keys; it is in the server's data directory",
        ));
    }
    let keys = &session.world.keys;
    match method {
        Method::List => plain(&keys.list()),
        Method::Revoke => {
            let id = args::text(args, 0, "the key's id")?;
            let id: KeyId = id
                .parse()
                .map_err(|error| args::invalid(format!("{error}; `hutch key list` shows them")))?;
            plain(&keys.revoke(&id).await?)
        }
        Method::Create => {
            let input: CreateInput = args::options(args, 0, "keys.create")?;
            let project = input.project.as_deref();
            let project = project.map(|name| session.project(name)).transpose()?;
            let new = NewKey {
                project: project.map(|project| project.id),
                label: input.label,
                lifetime: input.expires_in.as_deref().map(lifetime).transpose()?,
            };
            let created = keys.create(new).await?;
            let mut answer = serde_json::to_value(&created.description)
                .map_err(|error| ApiError::new(ErrorCode::InternalError, error.to_string()))?;
            answer["token"] = json!(created.token.expose_secret());
            plain(&answer)
        }
    }
}

/// `90s`, `15m`, `12h` or `30d`.
fn lifetime(text: &str) -> Result<Duration, ApiError> {
    let invalid = || {
        args::invalid(format!(
            "invalid expiresIn {:?}: pass \"<n>s\", \"<n>m\", \"<n>h\" or \"<n>d\", at most 3650d, such as \"30d\"",
            text.chars().take(40).collect::<String>()
        ))
    };
    let unit = match text.chars().last() {
        Some('s') => 1,
        Some('m') => MINUTE,
        Some('h') => HOUR,
        Some('d') => DAY,
        _ => return Err(invalid()),
    };
    let digits = &text[..text.len() - 1];
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid());
    }
    let count: u64 = digits.parse().map_err(|_| invalid())?;
    match count.checked_mul(unit) {
        Some(seconds @ 1..=LIFE_MAX) => Ok(Duration::from_secs(seconds)),
        _ => Err(invalid()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn lifetimes_have_a_unit_and_an_end() {
        assert_eq!(lifetime("30d").unwrap(), Duration::from_secs(30 * DAY));
        assert_eq!(lifetime("90s").unwrap(), Duration::from_secs(90));
        for wrong in [
            "",
            "30",
            "d",
            "0d",
            "-1d",
            "1.5h",
            "3651d",
            "1w",
            "99999999999999999999s",
            "1é",
        ] {
            assert!(lifetime(wrong).is_err(), "{wrong}");
        }
    }
}

//! Access keys.

use capnweb::{Object, Value};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

/// What a new key is to be. The default opens every project, for ever.
#[derive(Debug, Clone, Default)]
pub struct NewKeyOptions {
    /// The only project that it opens, by slug or id.
    pub project: Option<String>,
    /// How long it is valid: `<n>s`, `<n>m`, `<n>h` or `<n>d`.
    pub expires_in: Option<String>,
    /// What people call it.
    pub label: Option<String>,
}

impl NewKeyOptions {
    pub(crate) fn to_value(&self) -> Value {
        let mut object = Object::new();
        for (name, value) in [
            ("project", &self.project),
            ("expiresIn", &self.expires_in),
            ("label", &self.label),
        ] {
            if let Some(text) = value {
                object.insert(name, Value::String(text.clone()));
            }
        }
        Value::Object(object)
    }
}

/// An access key as the server lists it; its token is known to nobody but the
/// one who made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Key {
    /// Names the key; no secret.
    pub id: String,
    /// What people call it.
    #[serde(default)]
    pub label: Option<String>,
    /// Id of the only project that it opens; `None` for all.
    #[serde(default)]
    pub project: Option<String>,
    /// When it was made, RFC 3339.
    pub created_at: String,
    /// When it ends; `None` for never.
    #[serde(default)]
    pub expires_at: Option<String>,
    /// When it was last used, to the minute.
    #[serde(default)]
    pub last_used_at: Option<String>,
    /// When it was taken back.
    #[serde(default)]
    pub revoked_at: Option<String>,
    /// Whether it opens anything now.
    #[serde(default)]
    pub valid: bool,
}

/// A key that was just made.
#[derive(Debug, Clone, Deserialize)]
pub struct NewKey {
    /// What the server keeps of it.
    #[serde(flatten)]
    pub key: Key,
    /// The secret. The server cannot say it again.
    #[serde(deserialize_with = "secret")]
    pub token: SecretString,
}

fn secret<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<SecretString, D::Error> {
    String::deserialize(deserializer).map(SecretString::from)
}

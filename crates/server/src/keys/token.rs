//! How a key is written: `hutch_key_<id>_<secret>_<sum>`.
//!
//! The id finds the record, the secret proves the right to it, and the sum
//! tells a mistyped key from a wrong one without a look at any record.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::str::FromStr;

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

const PREFIX: &str = "hutch_key_";
const ID_BYTES: usize = 6;
const SECRET_BYTES: usize = 32;
const SUM_DIGITS: usize = 8;

/// The name of a key: 12 hexadecimal digits, no secret.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct KeyId(String);

/// The text does not name a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key's id has 12 hexadecimal digits")]
pub(crate) struct InvalidKeyId;

impl KeyId {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for KeyId {
    type Err = InvalidKeyId;

    fn from_str(text: &str) -> Result<Self, InvalidKeyId> {
        let right = text.len() == 2 * ID_BYTES && text.bytes().all(is_digit);
        right.then(|| Self(text.to_owned())).ok_or(InvalidKeyId)
    }
}

impl TryFrom<String> for KeyId {
    type Error = InvalidKeyId;
    fn try_from(text: String) -> Result<Self, InvalidKeyId> {
        text.parse()
    }
}

impl From<KeyId> for String {
    fn from(id: KeyId) -> Self {
        id.0
    }
}

/// The hash of a key's secret, which is all that is kept of it. Comparing two
/// takes constant time.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct SecretHash(blake3::Hash);

impl SecretHash {
    fn of(secret: &str) -> Self {
        Self(blake3::hash(secret.as_bytes()))
    }
}

impl TryFrom<String> for SecretHash {
    type Error = blake3::HexError;
    fn try_from(text: String) -> Result<Self, blake3::HexError> {
        blake3::Hash::from_hex(text).map(Self)
    }
}

impl From<SecretHash> for String {
    fn from(hash: SecretHash) -> Self {
        hash.0.to_hex().to_string()
    }
}

/// A new key, to be shown once.
pub(super) struct NewToken {
    pub(super) id: KeyId,
    pub(super) hash: SecretHash,
    pub(super) text: SecretString,
}

impl NewToken {
    /// Takes its randomness from the kernel.
    pub(super) fn random() -> io::Result<Self> {
        let mut bytes = [0_u8; ID_BYTES + SECRET_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        let (id, secret) = bytes.split_at(ID_BYTES);
        let (id, secret) = (KeyId(hex(id)), hex(secret));
        let hash = SecretHash::of(&secret);
        let body = format!("{PREFIX}{id}_{secret}");
        let text = SecretString::from(format!("{body}_{}", sum(&body)));
        Ok(Self { id, hash, text })
    }
}

/// A token that has the form of a key.
pub(super) struct Presented {
    pub(super) id: KeyId,
    pub(super) hash: SecretHash,
}

/// Reads a token.
pub(super) enum Reading {
    /// It is one of ours by form.
    Key(Presented),
    /// It looks like one, but a character is wrong or missing.
    Mistyped,
    /// It is something else.
    Other,
}

impl Reading {
    pub(super) fn of(token: &SecretString) -> Self {
        let token = token.expose_secret();
        let Some(rest) = token.strip_prefix(PREFIX) else {
            return Self::Other;
        };
        let mut parts = rest.split('_');
        let (Some(id), Some(secret), Some(given), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Self::Mistyped;
        };
        let body = &token[..token.len() - given.len() - 1];
        let Ok(id) = id.parse() else {
            return Self::Mistyped;
        };
        if sum(body) != given {
            return Self::Mistyped;
        }
        let hash = SecretHash::of(secret);
        Self::Key(Presented { id, hash })
    }
}

fn sum(body: &str) -> String {
    let mut sum = blake3::hash(body.as_bytes()).to_hex().to_string();
    sum.truncate(SUM_DIGITS);
    sum
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_new_key_is_read_back() {
        let new = NewToken::random().unwrap();
        let Reading::Key(read) = Reading::of(&new.text) else {
            panic!("not read");
        };
        assert_eq!(read.id, new.id);
        assert!(read.hash == new.hash);
    }

    #[test]
    fn every_wrong_character_is_noticed() {
        let text = NewToken::random().unwrap().text;
        let text = text.expose_secret();
        for place in PREFIX.len()..text.len() {
            let mut wrong = text.to_owned();
            let other = if &text[place..=place] == "0" {
                "1"
            } else {
                "0"
            };
            wrong.replace_range(place..=place, other);
            assert!(matches!(
                Reading::of(&SecretString::from(wrong)),
                Reading::Mistyped
            ));
        }
        let cut = SecretString::from(text[..text.len() - 1].to_owned());
        assert!(matches!(Reading::of(&cut), Reading::Mistyped));
        let foreign = SecretString::from("sk-something".to_owned());
        assert!(matches!(Reading::of(&foreign), Reading::Other));
    }
}

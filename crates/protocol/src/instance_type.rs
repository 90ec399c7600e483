//! The sizes of sandboxes. A size is configuration fixed at create, never part
//! of the address.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::path::shown;
use crate::{ApiError, ErrorCode};

const MIB: u64 = 1024 * 1024;
const GIB: u64 = 1024 * MIB;

/// One of the six sizes, named as Cloudflare's container instance types are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum InstanceType {
    /// 1/16 of a core, 256 MiB, 2 GB.
    Lite,
    /// 1/4 of a core, 1 GiB, 4 GB.
    #[default]
    Basic,
    /// 1/2 of a core, 4 GiB, 8 GB.
    Standard1,
    /// One core, 6 GiB, 12 GB.
    Standard2,
    /// Two cores, 8 GiB, 16 GB.
    Standard3,
    /// Four cores, 12 GiB, 20 GB.
    Standard4,
}

impl InstanceType {
    /// All sizes, the smallest first.
    pub const ALL: [Self; 6] = [
        Self::Lite,
        Self::Basic,
        Self::Standard1,
        Self::Standard2,
        Self::Standard3,
        Self::Standard4,
    ];

    /// The name as callers write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lite => "lite",
            Self::Basic => "basic",
            Self::Standard1 => "standard-1",
            Self::Standard2 => "standard-2",
            Self::Standard3 => "standard-3",
            Self::Standard4 => "standard-4",
        }
    }

    /// CPU in thousandths of a core. A share that may burst, not a hard limit.
    #[must_use]
    pub const fn cpu_millis(self) -> u32 {
        match self {
            Self::Lite => 63,
            Self::Basic => 250,
            Self::Standard1 => 500,
            Self::Standard2 => 1000,
            Self::Standard3 => 2000,
            Self::Standard4 => 4000,
        }
    }

    /// The hard limit on memory, in bytes.
    #[must_use]
    pub const fn memory_bytes(self) -> u64 {
        match self {
            Self::Lite => 256 * MIB,
            Self::Basic => GIB,
            Self::Standard1 => 4 * GIB,
            Self::Standard2 => 6 * GIB,
            Self::Standard3 => 8 * GIB,
            Self::Standard4 => 12 * GIB,
        }
    }

    /// The hard limit on disk, in bytes (decimal gigabytes).
    #[must_use]
    pub const fn disk_bytes(self) -> u64 {
        let gigabytes = match self {
            Self::Lite => 2,
            Self::Basic => 4,
            Self::Standard1 => 8,
            Self::Standard2 => 12,
            Self::Standard3 => 16,
            Self::Standard4 => 20,
        };
        gigabytes * 1_000_000_000
    }

    /// The hard limit on processes and threads.
    #[must_use]
    pub const fn pids(self) -> u32 {
        match self {
            Self::Lite => 512,
            Self::Basic => 1024,
            Self::Standard1 | Self::Standard2 => 2048,
            Self::Standard3 | Self::Standard4 => 4096,
        }
    }
}

impl FromStr for InstanceType {
    type Err = ApiError;

    fn from_str(text: &str) -> Result<Self, ApiError> {
        let found = Self::ALL.into_iter().find(|size| size.as_str() == text);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::as_str).join(", ");
            ApiError::new(
                ErrorCode::InvalidInstanceType,
                format!(
                    "unknown instance type {:?}: use one of {names}",
                    shown(text)
                ),
            )
            .with("instanceType", shown(text))
        })
    }
}

impl fmt::Display for InstanceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl TryFrom<String> for InstanceType {
    type Error = ApiError;
    fn try_from(text: String) -> Result<Self, ApiError> {
        text.parse()
    }
}

impl From<InstanceType> for String {
    fn from(size: InstanceType) -> Self {
        size.as_str().to_owned()
    }
}

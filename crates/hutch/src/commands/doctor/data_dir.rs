//! What the doctor sees of the data directory.

use super::Check;
use hutch_drivers::Support;
use std::{io::ErrorKind, os::unix::fs::PermissionsExt, path::Path};

/// Free space below which a snapshot may not fit.
const SCARCE: u64 = 1 << 30;

/// Looks without changing anything.
pub fn check(dir: &Path) -> Vec<Check> {
    let shown = dir.display();
    let mode = match std::fs::symlink_metadata(dir) {
        Ok(found) => found.permissions().mode() & 0o777,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let detail = format!("{shown} does not exist; the first `hutch serve` makes it");
            return vec![Check::new("directory", Support::Missing, detail)];
        }
        Err(error) => {
            let detail = format!("{shown}: {error}; name another with --data-dir");
            return vec![Check::new("directory", Support::Missing, detail)];
        }
    };
    let directory = if mode & 0o077 == 0 {
        Check::new("directory", Support::Ok, format!("{shown}, mode {mode:o}"))
    } else {
        let detail = format!("{shown} has mode {mode:o}: others can look in; chmod 700 it");
        Check::new("directory", Support::Missing, detail)
    };
    vec![directory, key(&dir.join("admin.key")), space(dir)]
}

fn key(path: &Path) -> Check {
    match std::fs::metadata(path) {
        Ok(found) if found.permissions().mode() & 0o077 == 0 => {
            Check::new("access token", Support::Ok, path.display().to_string())
        }
        Ok(_) => {
            let detail = format!("{} can be read by others; chmod 600 it", path.display());
            Check::new("access token", Support::Missing, detail)
        }
        Err(error) => {
            let detail = format!("{}: {error}", path.display());
            Check::new("access token", Support::Missing, detail)
        }
    }
}

fn space(dir: &Path) -> Check {
    match rustix::fs::statvfs(dir) {
        Ok(found) => {
            let free = found.f_bavail.saturating_mul(found.f_frsize);
            let support = if free < SCARCE {
                Support::Missing
            } else {
                Support::Ok
            };
            Check::new("free space", support, format!("{} MiB", free >> 20))
        }
        Err(error) => Check::new("free space", Support::Missing, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_readable_key_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("admin.key");
        std::fs::write(&path, "k").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        let checks = check(dir.path());
        assert_eq!(checks[1].support, Support::Missing);
        assert!(checks[1].detail.contains("chmod 600"));
    }

    #[test]
    fn a_missing_directory_is_one_line() {
        let checks = check(Path::new("/nonexistent"));
        assert_eq!(checks.len(), 1);
        assert_eq!(checks[0].support, Support::Missing);
    }
}

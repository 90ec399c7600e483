//! An `/etc` that programs work with and that says nothing of the machine.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use crate::{ImageError, identity};

/// What is copied, by its name in `/etc`. A `*` at the end stands for any
/// version. Left out on purpose: whatever may hold a name, an address, a
/// credential or a setting of this machine (`environment`, `gitconfig`,
/// `npmrc`, `pip.conf`, `apt`, `ssh`, `fstab`, `machine-id`, `profile.d`).
const ALLOWED: &[&str] = &[
    "X11",
    "adduser.conf",
    "alternatives",
    "bash.bashrc",
    "bash_completion.d",
    "bindresvport.blacklist",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "debian_version",
    "deluser.conf",
    "ethertypes",
    "fonts",
    "gai.conf",
    "gdb",
    "groff",
    "host.conf",
    "inputrc",
    "issue",
    "java*",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "libaudit.conf",
    "locale.alias",
    "locale.conf",
    "locale.gen",
    "localtime",
    "login.defs",
    "lsb-release",
    "magic",
    "magic.mime",
    "mailcap",
    "manpath.config",
    "maven",
    "mime.types",
    "netconfig",
    "networks",
    "os-release",
    "pam.conf",
    "pam.d",
    "perl",
    "pki",
    "profile",
    "protocols",
    "python*",
    "rpc",
    "security",
    "services",
    "sgml",
    "shells",
    "skel",
    "ssl",
    "terminfo",
    "timezone",
    "vim",
    "xattr.conf",
    "xml",
];

/// How deep a copied tree may be; `/etc` is far from it.
const DEPTH: u32 = 16;

/// Copies the allowed parts of `source` to `target` and adds what hutch writes
/// itself: accounts, name service and shells.
///
/// # Errors
/// A file cannot be read or written. What others may not read is left out.
pub fn build(source: &Path, target: &Path) -> Result<(), ImageError> {
    make_dir(target, 0o755)?;
    let mut names: Vec<_> = fs::read_dir(source)
        .map_err(ImageError::at("read", source))?
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    names.sort();
    for name in names {
        if name.to_str().is_some_and(is_allowed) {
            copy(&source.join(&name), &target.join(&name), DEPTH)?;
        }
    }
    identity::write(source, target)
}

fn is_allowed(name: &str) -> bool {
    ALLOWED
        .iter()
        .any(|allowed| match allowed.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == *allowed,
        })
}

fn copy(from: &Path, to: &Path, depth: u32) -> Result<(), ImageError> {
    let Ok(found) = fs::symlink_metadata(from) else {
        return Ok(());
    };
    let mode = found.mode();
    if found.is_symlink() {
        let link = fs::read_link(from).map_err(ImageError::at("read", from))?;
        symlink(link, to).map_err(ImageError::at("link", to))
    } else if found.is_dir() && mode & 0o005 == 0o005 && depth > 0 {
        make_dir(to, mode & 0o777)?;
        let entries = fs::read_dir(from).map_err(ImageError::at("read", from))?;
        for entry in entries.flatten() {
            copy(&entry.path(), &to.join(entry.file_name()), depth - 1)?;
        }
        Ok(())
    } else if found.is_file() && mode & 0o004 != 0 {
        match fs::copy(from, to) {
            Ok(_) => fs::set_permissions(to, fs::Permissions::from_mode(mode & 0o755))
                .map_err(ImageError::at("write", to)),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(cause) => Err(ImageError::at("copy", from)(cause)),
        }
    } else {
        Ok(())
    }
}

fn make_dir(dir: &Path, mode: u32) -> Result<(), ImageError> {
    fs::DirBuilder::new()
        .mode(mode)
        .create(dir)
        .and_then(|()| fs::set_permissions(dir, fs::Permissions::from_mode(mode)))
        .map_err(ImageError::at("create", dir))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_allowed_and_world_readable_parts_are_copied() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir_all(from.join("ssl/private")).unwrap();
        fs::create_dir_all(from.join("ssh")).unwrap();
        for (name, mode) in [
            ("ssl/cert.pem", 0o644),
            ("ssl/private/key.pem", 0o644),
            ("ssl/own.key", 0o600),
            ("ssh/ssh_host_key", 0o644),
            ("shadow", 0o640),
            ("machine-id", 0o444),
            ("services", 0o644),
            ("passwd", 0o644),
        ] {
            fs::write(from.join(name), "host:x:0:0::/:/bin/sh\n").unwrap();
            fs::set_permissions(from.join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::set_permissions(from.join("ssl/private"), fs::Permissions::from_mode(0o710)).unwrap();
        build(&from, &to).unwrap();
        for name in [
            "ssl/cert.pem",
            "services",
            "passwd",
            "group",
            "nsswitch.conf",
        ] {
            assert!(to.join(name).exists(), "{name} is missing");
        }
        for name in ["ssl/private", "ssl/own.key", "ssh", "machine-id"] {
            assert!(!to.join(name).exists(), "{name} was copied");
        }
    }
}

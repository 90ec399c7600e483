//! The accounts and names of a sandbox, which are not the machine's.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::ImageError;

/// Accounts below this id come from packages; those above are people's.
const FIRST_PERSON: u32 = 1000;
/// The account that owns nothing.
const NOBODY: u32 = 65534;

/// Writes the files that hutch makes itself. Accounts of packages are kept, so
/// that programs find their own; people's accounts are not.
///
/// # Errors
/// A file cannot be written.
pub fn write(source: &Path, target: &Path) -> Result<(), ImageError> {
    let passwd = accounts(&source.join("passwd"), 7, "root:x:0:0:root:/root:/bin/bash");
    let group = accounts(&source.join("group"), 4, "root:x:0:");
    let shadow: String = passwd
        .lines()
        .filter_map(|line| line.split(':').next())
        .map(|name| format!("{name}:*:19000:0:99999:7:::\n"))
        .collect();
    let files: [(&str, u32, &str); 8] = [
        ("passwd", 0o644, &passwd),
        ("group", 0o644, &group),
        ("shadow", 0o640, &shadow),
        ("hostname", 0o644, "sandbox\n"),
        ("hosts", 0o644, "127.0.0.1 localhost\n::1 localhost\n"),
        (
            "resolv.conf",
            0o644,
            "nameserver 127.0.0.1\noptions timeout:2 attempts:1\n",
        ),
        (
            "nsswitch.conf",
            0o644,
            "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n\
             networks: files\nprotocols: files\nservices: files\nethers: files\nrpc: files\n",
        ),
        (
            "environment",
            0o644,
            "PATH=\"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"\n",
        ),
    ];
    for (name, mode, content) in files {
        let path = target.join(name);
        fs::write(&path, content)
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(mode)))
            .map_err(ImageError::at("write", &path))?;
    }
    Ok(())
}

/// The package accounts of `file`, with the members of groups left out, since
/// those are people.
fn accounts(file: &Path, fields: usize, root: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let mut seen = BTreeSet::from(["root"]);
    let mut out = format!("{root}\n");
    for line in text.lines() {
        let parts: Vec<&str> = line.split(':').collect();
        let id = parts.get(2).and_then(|id| id.parse::<u32>().ok());
        let kept = id.is_some_and(|id| id < FIRST_PERSON || id == NOBODY);
        let Some(&name) = parts.first().filter(|_| kept && parts.len() == fields) else {
            continue;
        };
        if !seen.insert(name) {
            continue;
        }
        let last = if fields == 4 { "" } else { parts[6] };
        let middle = parts[2..fields - 1].join(":");
        out.push_str(&format!("{name}:x:{middle}:{last}\n"));
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn people_and_members_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(
            dir.path().join("passwd"),
            "root:$6$hash:0:0:Ada:/root:/bin/zsh\nwww-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\nada:x:1000:1000::/home/ada:/bin/bash\n",
        )
        .unwrap();
        fs::write(
            dir.path().join("group"),
            "root:x:0:ada\nadm:x:4:ada,bob\nada:x:1000:\n",
        )
        .unwrap();
        assert_eq!(
            accounts(
                &dir.path().join("passwd"),
                7,
                "root:x:0:0:root:/root:/bin/bash"
            ),
            "root:x:0:0:root:/root:/bin/bash\nwww-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n"
        );
        assert_eq!(
            accounts(&dir.path().join("group"), 4, "root:x:0:"),
            "root:x:0:\nadm:x:4:\n"
        );
    }
}

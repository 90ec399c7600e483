//! Dependencies between crates point one way, and heavy ones stay where they belong.

use super::Finding;
use super::repo::{Package, Repo};

/// What of our own each crate may use. Only `server` and `hutch` compose.
const OURS: &[(&str, &[&str])] = &[
    ("capnweb", &[]),
    ("hutch-protocol", &[]),
    ("hutch-pax", &[]),
    ("hutch-copy", &["hutch-pax"]),
    ("hutch-failpoint", &[]),
    ("hutch-streams", &["hutch-protocol"]),
    (
        "hutch-snapshots",
        &["hutch-protocol", "hutch-pax", "hutch-failpoint"],
    ),
    ("hutch-images", &["hutch-protocol"]),
    (
        "hutch-drivers",
        &["hutch-protocol", "hutch-images", "hutch-failpoint"],
    ),
    (
        "hutch-sandboxes",
        &["hutch-protocol", "capnweb", "hutch-failpoint"],
    ),
    ("hutch-membrane", &["hutch-protocol", "capnweb"]),
    ("hutch-client", &["hutch-protocol", "capnweb"]),
    (
        "sandboxd",
        &["hutch-protocol", "capnweb", "hutch-copy", "hutch-pax"],
    ),
    (
        "hutch-server",
        &[
            "hutch-protocol",
            "capnweb",
            "hutch-streams",
            "hutch-snapshots",
            "hutch-images",
            "hutch-drivers",
            "hutch-sandboxes",
            "hutch-membrane",
            "hutch-failpoint",
        ],
    ),
    (
        "hutch",
        &[
            "hutch-protocol",
            "capnweb",
            "hutch-pax",
            "hutch-client",
            "hutch-copy",
            "hutch-server",
            "hutch-images",
            "hutch-drivers",
        ],
    ),
    // Whole-product tests see the product as its clients do.
    ("hutch-e2e", &["hutch-protocol", "capnweb"]),
    ("xtask", &[]),
];

/// Dependencies that only these crates may have.
const OTHERS: &[(&str, &[&str])] = &[
    ("axum", &["hutch-server"]),
    ("clap", &["hutch"]),
    ("clap_complete", &["hutch"]),
    ("clap_mangen", &["hutch"]),
    ("rquickjs", &["hutch"]),
    ("rusqlite", &["hutch-streams"]),
    ("seccompiler", &["hutch-drivers"]),
    ("zstd", &["hutch-snapshots"]),
];

pub fn check(repo: &Repo) -> Vec<Finding> {
    repo.packages.iter().flat_map(check_package).collect()
}

fn check_package(package: &Package) -> Vec<Finding> {
    let Package { name, manifest, .. } = package;
    let Some((_, allowed)) = OURS.iter().find(|(crate_name, _)| crate_name == name) else {
        let message = format!("say in xtask/src/tidy/arrows.rs what `{name}` may depend on");
        return vec![Finding::new(manifest, 0, message)];
    };
    let mut findings = Vec::new();
    for dependency in &package.dependencies {
        let ours = OURS.iter().any(|(crate_name, _)| crate_name == dependency);
        if ours && !allowed.contains(&dependency.as_str()) {
            findings.push(Finding::new(
                manifest,
                0,
                format!("`{name}` may not depend on `{dependency}`"),
            ));
        }
        let owners = OTHERS.iter().find(|(banned, _)| banned == dependency);
        if let Some((_, owners)) = owners
            && !owners.contains(&name.as_str())
        {
            findings.push(Finding::new(
                manifest,
                0,
                format!("`{dependency}` belongs to {} alone", join(owners)),
            ));
        }
    }
    // capnweb could be published alone, so not even its tests use ours.
    if name == "capnweb" {
        let ours = |dependency: &&String| OURS.iter().any(|(ours, _)| ours == dependency);
        for dependency in package.dev_dependencies.iter().filter(ours) {
            let message = format!("the tests of `{name}` may not use `{dependency}`");
            findings.push(Finding::new(manifest, 0, message));
        }
    }
    findings
}

/// "`a`, `b`", for messages.
fn join(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::repo::fake::package;
    use super::*;

    fn messages(package: &Package) -> Vec<String> {
        let findings = check_package(package).into_iter();
        findings.map(|finding| finding.message).collect()
    }

    #[test]
    fn a_domain_crate_uses_the_protocol_and_nothing_beside_it() {
        assert!(messages(&package("hutch-streams", &["hutch-protocol", "rusqlite"])).is_empty());
        assert_eq!(
            messages(&package("hutch-streams", &["hutch-server"])),
            ["`hutch-streams` may not depend on `hutch-server`"]
        );
    }

    #[test]
    fn the_daemon_knows_no_host_crate_and_no_domain_crate_knows_axum() {
        assert_eq!(messages(&package("sandboxd", &["hutch-drivers"])).len(), 1);
        assert!(messages(&package("sandboxd", &["hutch-pax"])).is_empty());
        assert_eq!(
            messages(&package("hutch-sandboxes", &["axum"])),
            ["`axum` belongs to `hutch-server` alone"]
        );
    }

    #[test]
    fn a_new_crate_must_say_where_it_stands() {
        assert_eq!(messages(&package("hutch-new", &[])).len(), 1);
    }

    #[test]
    fn the_wire_stands_alone_even_in_its_tests() {
        let mut wire = package("capnweb", &[]);
        wire.dev_dependencies.push("hutch-protocol".to_owned());
        assert_eq!(messages(&wire).len(), 1);
    }
}

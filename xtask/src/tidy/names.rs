//! A folder or file is named after what it is about, never after being useful.

use super::{Finding, repo::Repo};

const BANNED: &[&str] = &[
    "util", "utils", "helper", "helpers", "common", "misc", "stuff",
];

pub fn check(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &repo.files {
        for part in file.path.split('/') {
            let stem = part.split('.').next().unwrap_or(part);
            if BANNED.contains(&stem) {
                findings.push(Finding::new(
                    &file.path,
                    0,
                    format!("`{stem}` says nothing: name it after what it holds"),
                ));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::repo::fake;
    use super::*;

    #[test]
    fn folders_and_files_are_both_checked() {
        let repo = fake::repo(&[
            ("crates/a/src/utils.rs", ""),
            ("tests/common/mod.rs", ""),
            ("crates/a/src/utility.rs", ""),
        ]);
        let paths: Vec<_> = check(&repo).into_iter().map(|found| found.path).collect();
        assert_eq!(paths, ["crates/a/src/utils.rs", "tests/common/mod.rs"]);
    }
}

//! Everything is under one licence, and each package says so.

use super::{Finding, repo::Repo};

const LICENCE: &str = "Apache-2.0";

pub fn check(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &repo.packages {
        if package.licence != LICENCE {
            findings.push(Finding::new(
                &package.manifest,
                0,
                "write `license.workspace = true`",
            ));
        }
    }
    let text = repo.files.iter().find(|file| file.path == "LICENSE");
    if !text.is_some_and(|file| {
        file.text.contains("Apache License") && file.text.contains("Version 2.0")
    }) {
        findings.push(Finding::new(
            "LICENSE",
            0,
            format!("the text of {LICENCE} is missing"),
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::repo::fake;
    use super::*;

    #[test]
    fn another_licence_and_a_missing_text_are_found() {
        let mut repo = fake::repo(&[("LICENSE", "Apache License\nVersion 2.0, January 2004\n")]);
        repo.packages.push(fake::package("a", &[]));
        assert!(check(&repo).is_empty());
        repo.packages[0].licence = "MIT".to_owned();
        repo.files.clear();
        assert_eq!(check(&repo).len(), 2);
    }
}

//! Each crate root opens with a sentence that says what the crate is.

use super::{Finding, repo::Repo};

pub fn check(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repo.rust().filter(|file| is_root(&file.path)) {
        let first = file.text.lines().next().unwrap_or_default();
        let says_something = first
            .strip_prefix("//! ")
            .is_some_and(|sentence| sentence.split_whitespace().count() >= 4);
        if !says_something {
            findings.push(Finding::new(
                &file.path,
                1,
                "a crate root starts with a `//!` sentence that says what the crate is",
            ));
        }
    }
    findings
}

/// Whether this is the root of a library or of a binary.
pub fn is_root(path: &str) -> bool {
    path.ends_with("src/lib.rs") || path.ends_with("src/main.rs")
}

#[cfg(test)]
mod tests {
    use super::super::repo::fake;
    use super::*;

    #[test]
    fn a_root_without_a_sentence_is_found() {
        let repo = fake::repo(&[
            ("crates/a/src/lib.rs", "//! The wire, both roles.\n"),
            ("crates/b/src/lib.rs", "#![forbid(unsafe_code)]\n"),
            ("crates/c/src/main.rs", "//! Later\n"),
            ("crates/c/src/other.rs", "fn f() {}\n"),
        ]);
        let paths: Vec<_> = check(&repo).into_iter().map(|found| found.path).collect();
        assert_eq!(paths, ["crates/b/src/lib.rs", "crates/c/src/main.rs"]);
    }
}

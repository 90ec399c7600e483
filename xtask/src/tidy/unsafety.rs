//! Unsafe code stays in the modules that need it; every other crate forbids it.

use super::crate_head::is_root;
use super::{Finding, repo::Repo};

/// Crates that may hold unsafe code, and the modules it may stand in.
const ALLOWED: &[(&str, &[&str])] = &[
    (
        "crates/drivers/",
        &[
            "crates/drivers/src/native/spawner/",
            "crates/drivers/src/native/spawner.rs",
            // What the tests try inside a sandbox.
            "crates/drivers/probe/",
        ],
    ),
    (
        "crates/sandboxd/",
        &["crates/sandboxd/src/start/", "crates/sandboxd/src/start.rs"],
    ),
];

pub fn check(repo: &Repo) -> Vec<Finding> {
    check_with(repo, ALLOWED)
}

fn check_with(repo: &Repo, allowed: &[(&str, &[&str])]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repo.rust() {
        let exempt = allowed
            .iter()
            .find(|(folder, _)| file.path.starts_with(folder));
        let forbids = file.text.contains("#![forbid(unsafe_code)]");
        match exempt {
            None if is_root(&file.path) && !forbids => findings.push(Finding::new(
                &file.path,
                0,
                "a crate root has `#![forbid(unsafe_code)]`",
            )),
            Some((_, modules)) => {
                let inside = modules.iter().any(|module| file.path.starts_with(module));
                if let (false, Some(line)) = (inside, first_unsafe(&file.text)) {
                    findings.push(Finding::new(
                        &file.path,
                        line,
                        format!(
                            "unsafe code of this crate stands in {}",
                            modules.join(" or ")
                        ),
                    ));
                }
            }
            None => {}
        }
    }
    findings
}

/// The first line that opens an unsafe block, function or impl.
fn first_unsafe(text: &str) -> Option<usize> {
    let opens = |line: &str| {
        let code = line.split("//").next().unwrap_or_default();
        ["unsafe {", "unsafe fn ", "unsafe impl ", "unsafe extern "]
            .iter()
            .any(|opening| code.contains(opening))
    };
    text.lines().position(opens).map(|index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::super::repo::fake;
    use super::*;

    #[test]
    fn unsafe_code_outside_its_module_is_found() {
        let repo = fake::repo(&[
            ("d/src/start/fork.rs", "fn f() {\n    unsafe { g() }\n}\n"),
            ("d/src/other.rs", "// unsafe { }\nunsafe fn g() {}\n"),
            ("d/src/lib.rs", "//! A daemon.\n"),
            ("e/src/lib.rs", "//! Something else.\n"),
            ("e/src/main.rs", "#![forbid(unsafe_code)]\n"),
        ]);
        let found: Vec<_> = check_with(&repo, &[("d/", &["d/src/start/"])])
            .into_iter()
            .map(|finding| (finding.path, finding.line))
            .collect();
        let expected = [("d/src/other.rs", 2), ("e/src/lib.rs", 0)];
        assert_eq!(found, expected.map(|(path, line)| (path.to_owned(), line)));
    }
}

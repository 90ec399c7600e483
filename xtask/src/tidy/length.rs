//! A file says one thing: about 150 lines, seldom above [`LIMIT`].

use super::{Finding, repo::Repo};

/// Lines that a source file may have.
const LIMIT: usize = 400;

/// Files that may be longer: path, lines, reason.
const LONGER: &[(&str, usize, &str)] = &[];

pub fn check(repo: &Repo) -> Vec<Finding> {
    check_with(repo, LONGER)
}

fn check_with(repo: &Repo, longer: &[(&str, usize, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &repo.files {
        if !is_source(&file.path) {
            continue;
        }
        let lines = file.text.lines().count();
        let allowed = longer.iter().find(|(path, ..)| *path == file.path);
        let limit = allowed.map_or(LIMIT, |(_, limit, _)| *limit);
        if lines > limit {
            findings.push(Finding::new(
                &file.path,
                0,
                format!("{lines} lines, at most {limit}: split it by concern"),
            ));
        } else if allowed.is_some() && lines <= LIMIT {
            findings.push(Finding::new(
                &file.path,
                0,
                "short enough now: take it off the list in xtask/src/tidy/length.rs",
            ));
        }
    }
    findings
}

fn is_source(path: &str) -> bool {
    const SOURCES: &[&str] = &[".rs", ".sh", ".py", ".js", ".mjs", ".ts"];
    SOURCES.iter().any(|ending| path.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::super::repo::fake;
    use super::*;

    #[test]
    fn a_file_at_the_limit_passes_and_one_above_does_not() {
        let repo = fake::repo(&[
            ("a.rs", &"x\n".repeat(400)),
            ("b.rs", &"x\n".repeat(401)),
            ("c.md", &"x\n".repeat(999)),
        ]);
        let findings = check_with(&repo, &[]);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].path, "b.rs");
    }

    #[test]
    fn the_list_lengthens_a_file_and_must_not_go_stale() {
        let repo = fake::repo(&[("a.rs", &"x\n".repeat(500)), ("b.rs", "x\n")]);
        let findings = check_with(&repo, &[("a.rs", 500, "why"), ("b.rs", 500, "why")]);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].path, "b.rs");
    }
}

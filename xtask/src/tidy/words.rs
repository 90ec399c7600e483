//! What no line of a tracked file may hold.

use super::Finding;
use super::repo::{File, Repo};

/// Banned text, where (an ending of the path; "" is everywhere), and why.
///
/// The strings are split so that this file does not find itself.
const BANNED: &[(&str, &str, &str)] = &[
    (
        concat!("TO", "DO"),
        "",
        "finish it or say it in the tracker",
    ),
    (
        concat!("FIX", "ME"),
        "",
        "finish it or say it in the tracker",
    ),
    (
        concat!("XX", "X:"),
        "",
        "finish it or say it in the tracker",
    ),
    (concat!("<<<<", "<<< "), "", "a merge conflict"),
    (concat!(">>>>", ">>> "), "", "a merge conflict"),
    (
        concat!("registry.npm", "js.org"),
        "",
        "registries are the reader's setting",
    ),
    (
        concat!("index.crates", ".io"),
        "",
        "registries are the reader's setting",
    ),
    (
        concat!("static.crates", ".io"),
        "",
        "registries are the reader's setting",
    ),
    (
        concat!("py", "pi.org"),
        "",
        "registries are the reader's setting",
    ),
    (
        concat!("deb.deb", "ian.org"),
        "",
        "registries are the reader's setting",
    ),
    (
        concat!("\"reso", "lved\": \"http"),
        ".json",
        "lock files name no registry: `npm config set omit-lockfile-registry-resolved true`",
    ),
    (concat!("/Us", "ers/"), "", "a path of one machine"),
    (concat!("blaz", "ing"), ".md", "say what was measured"),
    (concat!("world-", "class"), ".md", "say what was measured"),
    (concat!("cutting-", "edge"), ".md", "say what was measured"),
    (concat!("seam", "less"), ".md", "say what it does"),
    (
        concat!("state-of-", "the-art"),
        ".md",
        "say what was measured",
    ),
];

/// Files whose content is not ours to word.
const EXEMPT: &[&str] = &["LICENSE", "Cargo.lock", "fuzz/Cargo.lock", "fuzz/corpus/"];

pub fn check(repo: &Repo) -> Vec<Finding> {
    let ours = |file: &&File| !EXEMPT.iter().any(|path| file.path.starts_with(path));
    let mut findings = Vec::new();
    for file in repo.files.iter().filter(ours) {
        for (index, line) in file.text.lines().enumerate() {
            let mut found = |message: String| {
                findings.push(Finding::new(&file.path, index + 1, message));
            };
            for (banned, ending, reason) in BANNED {
                if file.path.ends_with(ending) && line.contains(banned) {
                    found(format!("`{banned}`: {reason}"));
                }
            }
            if is_skipped_test(line) {
                found("a test that does not run proves nothing: mend it or delete it".to_owned());
            }
            for path in &repo.machine_paths {
                if line.contains(path.as_str()) {
                    found(format!("`{path}` exists on this machine only"));
                }
            }
            if line.ends_with([' ', '\t', '\r']) {
                found("white space at the end of the line".to_owned());
            }
        }
        if !file.text.is_empty() && !file.text.ends_with('\n') {
            let last = file.text.lines().count();
            findings.push(Finding::new(&file.path, last, "no line feed at the end"));
        }
    }
    findings
}

/// Whether a line keeps a test from running. One that another test starts as a process of its
/// own, to kill it or to give it other namespaces, says so: its reason begins with `run`.
fn is_skipped_test(line: &str) -> bool {
    let attribute = line.trim_start().strip_prefix("#[ignore");
    attribute.is_some_and(|reason| !reason.starts_with(" = \"run"))
}

#[cfg(test)]
mod tests {
    use super::super::repo::fake;
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let mut repo = fake::repo(&[(path, text)]);
        repo.machine_paths.push("/opt/checkout".to_owned());
        check(&repo).into_iter().map(|found| found.line).collect()
    }

    #[test]
    fn unfinished_work_is_found() {
        let text = format!("fn f() {{}}\n// {}: later\n", concat!("TO", "DO"));
        assert_eq!(lines("a.rs", &text), [2]);
    }

    #[test]
    fn only_tests_that_others_run_may_be_skipped() {
        assert_eq!(lines("a.rs", "#[test]\n#[ignore = \"slow\"]\n"), [2]);
        assert_eq!(lines("a.rs", "#[ignore]\n"), [1]);
        assert_eq!(
            lines("a.rs", "#[ignore = \"run by the test above\"]\n"),
            [0; 0]
        );
    }

    #[test]
    fn white_space_and_the_last_line_feed_are_checked() {
        assert_eq!(lines("a.sh", "a \nb"), [1, 2]);
    }

    #[test]
    fn paths_of_this_machine_are_found() {
        assert_eq!(lines("a.md", "see /opt/checkout/src\n"), [1]);
        assert_eq!(lines("a.md", "see /opt/other\n"), [0; 0]);
    }

    #[test]
    fn a_lock_file_names_no_registry() {
        let text = concat!("\"reso", "lved\": \"https://host/a.tgz\"\n");
        assert_eq!(lines("package-lock.json", text), [1]);
    }

    #[test]
    fn boasting_is_found_in_documents_only() {
        let text = concat!("blaz", "ing\n");
        assert_eq!(lines("a.md", text), [1]);
        assert_eq!(lines("a.rs", text), [0; 0]);
    }
}

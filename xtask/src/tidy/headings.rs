//! A thing is told once: no section twice in a document, no paragraph in two.

use std::collections::HashMap;

use super::{Finding, repo::Repo};

/// Paragraphs shorter than this, in bytes, may well be alike.
const LONG: usize = 240;

/// Finds headings of the first two levels that a document has twice.
pub fn check(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repo.documents() {
        let mut seen = HashMap::new();
        for (line, heading) in headings(&file.text) {
            let major = heading.starts_with("# ") || heading.starts_with("## ");
            if let (true, Some(first)) = (major, seen.insert(heading, line)) {
                findings.push(Finding::new(
                    &file.path,
                    line,
                    format!("`{heading}` is a section already at line {first}"),
                ));
            }
        }
    }
    findings
}

/// The headings of a document with their lines, code blocks aside.
pub fn headings(text: &str) -> Vec<(usize, &str)> {
    let mut fenced = false;
    let mut headings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if !fenced && line.starts_with('#') {
            headings.push((index + 1, line));
        }
    }
    headings
}

/// Finds long paragraphs that stand in more than one place.
pub fn repeated_paragraphs(repo: &Repo) -> Vec<Finding> {
    let mut seen: HashMap<&str, &str> = HashMap::new();
    let mut findings = Vec::new();
    for file in repo.documents() {
        for paragraph in file.text.split("\n\n").filter(|text| text.len() >= LONG) {
            if let Some(first) = seen.insert(paragraph.trim(), &file.path) {
                let start: String = paragraph.trim().chars().take(40).collect();
                findings.push(Finding::new(
                    &file.path,
                    0,
                    format!("`{start}…` stands in {first} already: link to it"),
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
    fn a_section_twice_is_found_and_a_comment_in_code_is_none() {
        let repo = fake::repo(&[(
            "a.md",
            "# A\n\n## B\n\n```\n## B\n```\n\n### C\n\n## B\n\n### C\n",
        )]);
        let lines: Vec<_> = check(&repo).into_iter().map(|found| found.line).collect();
        assert_eq!(lines, [11]);
    }

    #[test]
    fn a_long_paragraph_in_two_documents_is_found() {
        let paragraph = "word ".repeat(60);
        let repo = fake::repo(&[
            ("a.md", &format!("# A\n\n{paragraph}\n\nshort\n")),
            ("b.md", &format!("# B\n\nshort\n\n{paragraph}\n")),
        ]);
        assert_eq!(repeated_paragraphs(&repo).len(), 1);
    }
}

//! A relative link in a document leads to a file, and its anchor to a heading.

use std::path::{Component, Path, PathBuf};

use super::headings::headings;
use super::repo::{File, Repo};
use super::{Finding, repo};

pub fn check(repo: &Repo) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repo.documents() {
        for (line, target) in links(&file.text) {
            if let Some(problem) = problem(repo, file, target) {
                findings.push(Finding::new(&file.path, line, problem));
            }
        }
    }
    findings
}

fn problem(repo: &Repo, from: &File, target: &str) -> Option<String> {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let document = if path.is_empty() {
        from
    } else {
        let path = resolve(&from.path, path);
        let folder = format!("{path}/");
        match repo.files.iter().find(|file| file.path == path) {
            Some(file) => file,
            None if repo.files.iter().any(|file| file.path.starts_with(&folder)) => return None,
            None => return Some(format!("the link leads nowhere: {target}")),
        }
    };
    let known = anchor.is_empty() || has_anchor(document, anchor);
    (!known).then(|| format!("no heading for the anchor: {target}"))
}

/// The path that a link in `from` means, without `.` and `..`.
fn resolve(from: &str, link: &str) -> String {
    let mut resolved = PathBuf::from(from);
    resolved.pop();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => {
                resolved.pop();
            }
            Component::Normal(name) => resolved.push(name),
            _ => {}
        }
    }
    resolved.to_string_lossy().into_owned()
}

fn has_anchor(document: &repo::File, anchor: &str) -> bool {
    let slug = |heading: &str| -> String {
        let text = heading.trim_start_matches('#').trim().to_lowercase();
        text.chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect()
    };
    headings(&document.text)
        .iter()
        .any(|(_, heading)| slug(heading) == anchor)
}

/// Targets of Markdown links that are relative, with their lines, code blocks aside.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut fenced = false;
    let mut links = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for rest in line.split("](").skip(1) {
            let target = rest.split(')').next().unwrap_or_default();
            if !target.contains("://") && !target.starts_with("mailto:") {
                links.push((index + 1, target));
            }
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use super::super::repo::fake;
    use super::*;

    #[test]
    fn links_to_files_folders_and_headings_are_followed() {
        let repo = fake::repo(&[
            (
                "docs/a.md",
                "# Top\n[b](../b.md#two-words) [f](../src) [t](#top)\n[w](https://x.example/y)\n",
            ),
            ("b.md", "## Two words\n"),
            ("src/x.rs", ""),
        ]);
        assert!(check(&repo).is_empty());
    }

    #[test]
    fn a_missing_file_and_a_missing_heading_are_found() {
        let repo = fake::repo(&[(
            "a.md",
            "# A\n[x](gone.md)\n[y](#b)\n```\n[z](gone.md)\n```\n",
        )]);
        let lines: Vec<_> = check(&repo).into_iter().map(|found| found.line).collect();
        assert_eq!(lines, [2, 3]);
    }
}

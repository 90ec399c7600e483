//! The house rules of CONTRIBUTING.md that a machine can check, one file per rule.

mod arrows;
mod crate_head;
mod headings;
mod length;
mod licence;
mod links;
mod names;
mod repo;
mod unsafety;
mod words;

use repo::Repo;

/// One breach of a rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file, relative to the repository's root.
    pub path: String,
    /// Line in the file, counted from 1; 0 where the whole file is meant.
    pub line: usize,
    /// What is wrong and what to do about it.
    pub message: String,
}

impl Finding {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            message: message.into(),
        }
    }
}

/// Checks every tracked file. Answers a summary, or all findings, one a line.
pub fn run() -> Result<String, String> {
    let repo = Repo::open().map_err(|error| format!("tidy: {error}\n"))?;
    let mut findings = Vec::new();
    findings.extend(length::check(&repo));
    findings.extend(names::check(&repo));
    findings.extend(crate_head::check(&repo));
    findings.extend(unsafety::check(&repo));
    findings.extend(arrows::check(&repo));
    findings.extend(licence::check(&repo));
    findings.extend(words::check(&repo));
    findings.extend(links::check(&repo));
    findings.extend(headings::check(&repo));
    findings.extend(headings::repeated_paragraphs(&repo));
    if findings.is_empty() {
        return Ok(format!("tidy: {} files are in order", repo.files.len()));
    }
    findings.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    let mut report = String::new();
    for finding in &findings {
        let Finding {
            path,
            line,
            message,
        } = finding;
        report.push_str(&format!("{path}:{line}: {message}\n"));
    }
    report.push_str(&format!("tidy: {} findings\n", findings.len()));
    Err(report)
}

//! What was measured, for people and programs.

use super::samples::{Samples, rounded};
use crate::output::table;
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, time::Duration};

/// The measurements in the order they are shown.
const ORDER: [&str; 18] = [
    "create_exec",
    "wake_exec",
    "exec",
    "crun_true",
    "bwrap_true",
    "bash_true",
    "burst50_create_exec",
    "burst50_first",
    "first_snapshot",
    "tar_zstd",
    "sleep_small",
    "sleep_unchanged",
    "restore",
    "tar_zstd_extract",
    "quiet",
    "fork_bomb",
    "hog",
    "fsync_storm",
];

/// All measurements of one run.
#[derive(Debug)]
pub struct Report {
    samples: BTreeMap<&'static str, Samples>,
    /// Parts of a measurement: measurement, part, times.
    parts: BTreeMap<&'static str, Vec<(String, Samples)>>,
    /// Single numbers and their units, in the order they were taken.
    values: Vec<(String, f64, &'static str)>,
    /// What was not measured, and why.
    skipped: BTreeMap<&'static str, String>,
}

impl Report {
    /// No samples yet.
    pub fn new() -> Self {
        Self {
            samples: BTreeMap::new(),
            parts: BTreeMap::new(),
            values: Vec::new(),
            skipped: BTreeMap::new(),
        }
    }

    /// Says that something was not measured, and why.
    pub fn skip(&mut self, name: &'static str, reason: &str) {
        self.skipped.insert(name, reason.to_owned());
    }

    /// Adds a number that is measured once.
    pub fn value(&mut self, name: &str, value: f64, unit: &'static str) {
        self.values.push((name.to_owned(), value, unit));
    }

    /// Whether there are samples of this name.
    pub fn has(&self, name: &str) -> bool {
        self.samples.contains_key(name)
    }

    /// A percentile in milliseconds; 0 without samples.
    pub fn percentile(&self, name: &str, percent: usize) -> f64 {
        let samples = self.samples.get(name);
        samples.map_or(0.0, |samples| samples.percentile(percent))
    }

    /// Adds a sample.
    pub fn add(&mut self, name: &'static str, time: Duration) {
        self.samples.entry(name).or_default().add(time);
    }

    /// Adds the time of one part of a sample.
    pub fn add_part(&mut self, name: &'static str, part: &str, ms: f64) {
        let parts = self.parts.entry(name).or_default();
        match parts.iter_mut().find(|(known, _)| known == part) {
            Some((_, samples)) => samples.add_ms(ms),
            None => {
                let mut samples = Samples::default();
                samples.add_ms(ms);
                parts.push((part.to_owned(), samples));
            }
        }
    }

    /// `{<measurement>: {p50, p95, p99, n, unit} | {value, unit}, …, breakdown,
    /// skipped}`.
    pub fn to_json(&self) -> Value {
        let mut all = Map::new();
        for name in ORDER {
            if let Some(samples) = self.samples.get(name) {
                all.insert(name.to_owned(), samples.to_json());
            }
        }
        for (name, value, unit) in &self.values {
            let value = json!({ "value": rounded(*value), "unit": unit });
            all.insert(name.clone(), value);
        }
        let breakdown: Map<_, _> = self
            .parts
            .iter()
            .map(|(name, parts)| {
                let parts: Map<_, _> = parts
                    .iter()
                    .map(|(part, samples)| (part.clone(), samples.to_json()))
                    .collect();
                ((*name).to_owned(), Value::Object(parts))
            })
            .collect();
        all.insert("breakdown".to_owned(), Value::Object(breakdown));
        all.insert("skipped".to_owned(), json!(self.skipped));
        Value::Object(all)
    }

    /// A table, the parts below it.
    pub fn to_text(&self) -> String {
        let mut rows = Vec::new();
        for name in ORDER {
            if let Some(samples) = self.samples.get(name) {
                rows.push(row(name, samples));
            }
        }
        let mut text = table::render(["MS", "P50", "P95", "P99", "N"], &rows, |_, _, cell| cell);
        if !self.values.is_empty() {
            let rows: Vec<_> = self
                .values
                .iter()
                .map(|(name, value, unit)| {
                    [
                        name.clone(),
                        format!("{:.3}", rounded(*value)),
                        (*unit).to_owned(),
                    ]
                })
                .collect();
            text.push_str("\n\n");
            text.push_str(&table::render(
                ["NUMBER", "VALUE", "UNIT"],
                &rows,
                |_, _, cell| cell,
            ));
        }
        for (name, parts) in &self.parts {
            let rows: Vec<_> = parts
                .iter()
                .map(|(part, samples)| row(part, samples))
                .collect();
            let title = format!("WHERE {name} GOES");
            let header = [title.as_str(), "P50", "P95", "P99", "N"];
            text.push_str("\n\n");
            text.push_str(&table::render(header, &rows, |_, _, cell| cell));
        }
        for (name, reason) in &self.skipped {
            text.push_str(&format!("\n\n{name} not measured: {reason}"));
        }
        text
    }
}

fn row(name: &str, samples: &Samples) -> [String; 5] {
    let ms = |percent| format!("{:.3}", rounded(samples.percentile(percent)));
    [
        name.to_owned(),
        ms(50),
        ms(95),
        ms(99),
        samples.len().to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_the_documented_fields() {
        let mut report = Report::new();
        report.skip("crun_true", "not installed");
        report.add("exec", Duration::from_micros(1500));
        report.add_part("exec", "network", 0.5);
        assert_eq!(
            report.to_json(),
            json!({
                "exec": {"p50": 1.5, "p95": 1.5, "p99": 1.5, "n": 1, "unit": "ms"},
                "breakdown": {"exec": {"network": {"p50": 0.5, "p95": 0.5, "p99": 0.5, "n": 1, "unit": "ms"}}},
                "skipped": {"crun_true": "not installed"},
            })
        );
    }

    #[test]
    fn people_see_a_table_and_what_is_missing() {
        let mut report = Report::new();
        report.skip("crun_true", "not installed");
        report.add("exec", Duration::from_micros(1500));
        assert_eq!(
            report.to_text(),
            "MS    P50    P95    P99    N\nexec  1.500  1.500  1.500  1\n\ncrun_true not measured: not installed"
        );
    }
}

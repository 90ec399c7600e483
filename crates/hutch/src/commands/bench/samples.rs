//! Samples and their percentiles.

use serde_json::{Value, json};
use std::time::Duration;

/// The times of one measurement.
#[derive(Debug, Default, Clone)]
pub struct Samples(Vec<f64>);

impl Samples {
    /// Adds a time.
    pub fn add(&mut self, time: Duration) {
        self.0.push(time.as_secs_f64() * 1000.0);
    }

    /// Adds a time in milliseconds.
    pub fn add_ms(&mut self, ms: f64) {
        self.0.push(ms);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The nearest-rank percentile in milliseconds; 0 when there is no sample.
    pub fn percentile(&self, percent: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        sorted.get(rank - 1).copied().unwrap_or(0.0)
    }

    /// `{p50, p95, p99, n, unit}`.
    pub fn to_json(&self) -> Value {
        json!({
            "p50": rounded(self.percentile(50)),
            "p95": rounded(self.percentile(95)),
            "p99": rounded(self.percentile(99)),
            "n": self.len(),
            "unit": "ms",
        })
    }
}

/// To the microsecond, which is as fine as the clock is honest here.
pub fn rounded(ms: f64) -> f64 {
    (ms * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples() {
        let mut samples = Samples::default();
        for ms in (1..=100).rev() {
            samples.add(Duration::from_millis(ms));
        }
        assert_eq!(samples.percentile(50), 50.0);
        assert_eq!(samples.percentile(95), 95.0);
        assert_eq!(samples.percentile(99), 99.0);
    }

    #[test]
    fn one_sample_is_every_percentile() {
        let mut samples = Samples::default();
        samples.add_ms(7.0);
        assert_eq!(samples.percentile(50), 7.0);
        assert_eq!(samples.percentile(99), 7.0);
        assert_eq!(Samples::default().percentile(50), 0.0);
    }
}

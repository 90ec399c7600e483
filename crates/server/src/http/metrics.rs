//! `GET /metrics`: numbers in the text format of Prometheus.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use hutch_sandboxes::metrics::{BOOT_BUCKETS_MS, Metrics};
use hutch_streams::{COMMIT_BUCKETS_MS, StoreMetrics};
use secrecy::SecretString;

use super::Shared;
use super::origin::plain;
use crate::keys::Projects;

/// Answers whoever holds the admin key or a key for all projects.
pub(super) async fn answer(shared: &Arc<Shared>, headers: &HeaderMap) -> Response {
    if !is_allowed(shared, headers) {
        let mut response = plain(
            401,
            "metrics need `Authorization: Bearer` with the admin key or a key for all projects\n",
        );
        let scheme = HeaderValue::from_static("Bearer");
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, scheme);
        return response;
    }
    let process = tokio::task::spawn_blocking(Process::read).await;
    let (Ok(sandboxes), Ok(process)) = (shared.world.sandboxes.metrics().await, process) else {
        return plain(503, "the event store cannot be read\n");
    };
    let door = Door {
        connections: shared.connections_max - shared.connections.available_permits(),
        unauthenticated: shared.unauthenticated.count(),
        accepted: shared.accepted.load(Ordering::Relaxed),
        refused: shared.refused.load(Ordering::Relaxed),
    };
    let text = render(&process, &door, &sandboxes, &shared.world.store.metrics());
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = StatusCode::OK;
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn is_allowed(shared: &Shared, headers: &HeaderMap) -> bool {
    let token = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "));
    let Some(token) = token else { return false };
    let token = SecretString::from(token.trim().to_owned());
    let principal = shared.world.keys.authenticate(&token);
    principal.is_ok_and(|principal| principal.projects == Projects::All)
}

/// The door's own counters.
struct Door {
    connections: usize,
    unauthenticated: usize,
    accepted: u64,
    refused: u64,
}

/// What the kernel says of this process; zero where it says nothing.
struct Process {
    resident: u64,
    descriptors: u64,
    threads: u64,
}

impl Process {
    fn read() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let word = line.and_then(|line| line.split_whitespace().next());
            word.and_then(|word| word.parse::<u64>().ok()).unwrap_or(0)
        };
        let descriptors = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        Self {
            resident: number("VmRSS:") * 1024,
            // Less the one that was opened to count.
            descriptors: descriptors.saturating_sub(1) as u64,
            threads: number("Threads:"),
        }
    }
}

fn render(process: &Process, door: &Door, sandboxes: &Metrics, store: &StoreMetrics) -> String {
    let mut page = Page(String::new());
    page.one(
        "hutch_resident_bytes",
        "gauge",
        "Resident memory of the server.",
        process.resident,
    );
    page.one(
        "hutch_open_descriptors",
        "gauge",
        "Open descriptors of the server.",
        process.descriptors,
    );
    page.one(
        "hutch_threads",
        "gauge",
        "Threads of the server.",
        process.threads,
    );
    page.one(
        "hutch_connections",
        "gauge",
        "Open sessions.",
        door.connections as u64,
    );
    page.one(
        "hutch_connections_unauthenticated",
        "gauge",
        "Open sessions that have not authenticated.",
        door.unauthenticated as u64,
    );
    page.one(
        "hutch_connections_accepted_total",
        "counter",
        "Sessions accepted.",
        door.accepted,
    );
    page.one(
        "hutch_connections_refused_total",
        "counter",
        "Requests refused at the door.",
        door.refused,
    );
    page.head("hutch_sandboxes", "gauge", "Sandboxes by status.");
    for (status, count) in &sandboxes.sandboxes {
        page.labelled("hutch_sandboxes", "status", &text(status), *count);
    }
    page.head(
        "hutch_instances",
        "gauge",
        "Machines that boot or run, by size.",
    );
    for (size, used, _) in &sandboxes.instances {
        page.labelled("hutch_instances", "type", &text(size), *used as u64);
    }
    page.head(
        "hutch_instances_max",
        "gauge",
        "Machines of a size that may run at once.",
    );
    for (size, _, most) in &sandboxes.instances {
        page.labelled("hutch_instances_max", "type", &text(size), *most as u64);
    }
    for (name, what, count) in [
        (
            "hutch_boot_failures_total",
            "Boots that failed.",
            sandboxes.boot_failures,
        ),
        (
            "hutch_sleeps_total",
            "Sleeps, by request or by the idle timer.",
            sandboxes.sleeps,
        ),
        (
            "hutch_snapshot_failures_total",
            "Sleeps whose snapshot failed.",
            sandboxes.snapshot_failures,
        ),
        (
            "hutch_restore_failures_total",
            "Workspaces that could not be restored.",
            sandboxes.restore_failures,
        ),
        (
            "hutch_crashes_total",
            "Machines that ended by themselves.",
            sandboxes.crashes,
        ),
        (
            "hutch_adopted_total",
            "Machines taken over from an earlier server.",
            sandboxes.adopted,
        ),
        ("hutch_store_events_total", "Events appended.", store.events),
        (
            "hutch_store_failures_total",
            "Transactions that the store could not do.",
            store.failures,
        ),
    ] {
        page.one(name, "counter", what, count);
    }
    page.histogram(
        "hutch_boot_seconds",
        "Time of boots that ended well.",
        &BOOT_BUCKETS_MS,
        &sandboxes.boot_buckets,
        sandboxes.boots,
        sandboxes.boot_time,
    );
    page.histogram(
        "hutch_store_commit_seconds",
        "Time of durable commits, the wait for the writer included.",
        &COMMIT_BUCKETS_MS,
        &store.commit_buckets,
        store.commits,
        store.commit_time,
    );
    page.0
}

/// The name that every surface uses.
fn text(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(text)) => text,
        _ => String::new(),
    }
}

/// The page as it grows. Writing to a string cannot fail.
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: u64) {
        self.head(name, kind, help);
        let _ = writeln!(self.0, "{name} {value}");
    }

    fn labelled(&mut self, name: &str, label: &str, of: &str, value: u64) {
        let _ = writeln!(self.0, "{name}{{{label}=\"{of}\"}} {value}");
    }

    fn histogram(
        &mut self,
        name: &str,
        help: &str,
        bounds_ms: &[u64],
        buckets: &[u64],
        count: u64,
        sum: Duration,
    ) {
        self.head(name, "histogram", help);
        for (bound, bucket) in bounds_ms.iter().zip(buckets) {
            let bound = *bound as f64 / 1e3;
            let _ = writeln!(self.0, "{name}_bucket{{le=\"{bound}\"}} {bucket}");
        }
        let sum = sum.as_secs_f64();
        let _ = writeln!(
            self.0,
            "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {sum}\n{name}_count {count}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_described_once_and_histograms_end_in_all() {
        let process = Process {
            resident: 1,
            descriptors: 2,
            threads: 3,
        };
        let door = Door {
            connections: 4,
            unauthenticated: 0,
            accepted: 5,
            refused: 6,
        };
        let sandboxes = Metrics {
            boots: 7,
            ..Metrics::default()
        };
        let text = render(&process, &door, &sandboxes, &StoreMetrics::default());
        for name in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
            let name = name.split(' ').next().unwrap_or_default();
            let heads = text.matches(&format!("# HELP {name} ")).count();
            assert_eq!(heads, 1, "{name}");
        }
        assert!(
            text.contains("hutch_boot_seconds_bucket{le=\"+Inf\"} 7\n"),
            "{text}"
        );
        assert!(
            text.contains("hutch_boot_seconds_bucket{le=\"0.01\"} 0\n"),
            "{text}"
        );
        assert!(text.contains("\nhutch_connections 4\n"), "{text}");
    }
}

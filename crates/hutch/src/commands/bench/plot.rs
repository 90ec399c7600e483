//! Bars as SVG: what was measured beside what it is judged against.

use super::report::Report;
use std::{fmt::Write as _, fs, io, path::Path};

/// A picture: its file, its title, its bars.
const PLOTS: [(&str, &str, &[&str]); 4] = [
    (
        "commands",
        "One command, milliseconds",
        &[
            "create_exec",
            "wake_exec",
            "exec",
            "crun_true",
            "bwrap_true",
            "bash_true",
        ],
    ),
    (
        "burst",
        "Fifty at once, milliseconds",
        &["burst50_create_exec", "burst50_first"],
    ),
    (
        "snapshots",
        "20,000 files, 300 MiB, milliseconds",
        &[
            "first_snapshot",
            "tar_zstd",
            "restore",
            "tar_zstd_extract",
            "sleep_small",
            "sleep_unchanged",
        ],
    ),
    (
        "neighbours",
        "A command beside a nuisance, milliseconds",
        &["quiet", "fork_bomb", "hog", "fsync_storm"],
    ),
];
const LABEL: usize = 190;
const WIDTH: usize = 520;
const ROW: usize = 34;

/// Writes the pictures that this run has numbers for.
pub fn write(report: &Report, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for (file, title, names) in PLOTS {
        let bars: Vec<Bar> = names
            .iter()
            .filter(|name| report.has(name))
            .map(|name| Bar {
                name,
                p50: report.percentile(name, 50),
                p95: report.percentile(name, 95),
            })
            .collect();
        if !bars.is_empty() {
            fs::write(folder.join(format!("{file}.svg")), draw(title, &bars))?;
        }
    }
    Ok(())
}

struct Bar {
    name: &'static str,
    p50: f64,
    p95: f64,
}

/// The median as a bar, the 95th percentile as a line behind it.
fn draw(title: &str, bars: &[Bar]) -> String {
    let most = bars
        .iter()
        .map(|bar| bar.p95.max(bar.p50))
        .fold(1e-9, f64::max);
    let length = |ms: f64| ms / most * WIDTH as f64;
    let (width, height) = (LABEL + WIDTH + 150, bars.len() * ROW + 60);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<text x=\"12\" y=\"24\" font-size=\"15\">{title} (bar: median, line: p95)</text>\n"
    );
    for (row, bar) in bars.iter().enumerate() {
        let top = 44 + row * ROW;
        let middle = top + 10;
        let (median, far) = (length(bar.p50), length(bar.p95));
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n<line x1=\"{LABEL}\" x2=\"{:.1}\" y1=\"{middle}\" y2=\"{middle}\" stroke=\"#888\" stroke-width=\"2\"/>\n<rect x=\"{LABEL}\" y=\"{top}\" width=\"{median:.1}\" height=\"20\" fill=\"#3a6ea5\"/>\n<text x=\"{:.1}\" y=\"{}\">{:.1} / {:.1}</text>",
            LABEL - 10,
            top + 15,
            bar.name,
            LABEL as f64 + far,
            LABEL as f64 + far.max(median) + 8.0,
            top + 15,
            bar.p50,
            bar.p95,
        );
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_bar_takes_the_width() {
        let bar = |name, p50, p95| Bar { name, p50, p95 };
        let svg = draw("t", &[bar("a", 5.0, 10.0), bar("b", 10.0, 10.0)]);
        assert!(
            svg.contains("width=\"260.0\"") && svg.contains("width=\"520.0\""),
            "{svg}"
        );
        assert!(svg.ends_with("</svg>\n"));
    }
}

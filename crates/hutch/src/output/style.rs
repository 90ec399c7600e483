//! Colour, on a terminal only and never against `NO_COLOR`.

use std::io::IsTerminal;

/// Whether to colour.
#[derive(Debug, Clone, Copy, Default)]
pub struct Style {
    colour: bool,
}

impl Style {
    /// The style for stderr.
    pub fn stderr() -> Self {
        Self::decide(
            std::io::stderr().is_terminal(),
            std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
        )
    }

    /// The style for stdout.
    pub fn stdout() -> Self {
        Self::decide(
            std::io::stdout().is_terminal(),
            std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
        )
    }

    fn decide(terminal: bool, refused: bool) -> Self {
        Self {
            colour: terminal && !refused,
        }
    }

    /// Red and bold.
    pub fn error(self, text: &str) -> String {
        self.paint("31;1", text)
    }

    /// The colour of a sandbox's status.
    pub fn status(self, status: &str, text: &str) -> String {
        match status {
            "running" => self.paint("32", text),
            "destroyed" => self.paint("2", text),
            _ => text.to_owned(),
        }
    }

    /// Green for good, yellow for not.
    pub fn verdict(self, good: bool, text: &str) -> String {
        self.paint(if good { "32" } else { "33" }, text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_needs_a_terminal_that_did_not_refuse() {
        assert_eq!(Style::decide(false, false).error("x"), "x");
        assert_eq!(Style::decide(true, true).error("x"), "x");
        assert_eq!(
            Style::decide(true, false).error("x"),
            "\u{1b}[31;1mx\u{1b}[0m"
        );
    }
}

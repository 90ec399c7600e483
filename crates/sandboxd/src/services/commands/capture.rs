//! Output kept for a result: the head of each stream, within one budget.
//!
//! The budget is counted in bytes as the result encodes them: a NUL takes six
//! in JSON, three raw bytes take four in base64.

use super::decoder::Decoder;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hutch_protocol::exec::OutputEncoding;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a result may take without asking the pool.
const OWN: usize = 64 * 1024;

/// What the results of all commands together may take, beyond a little of their own.
#[derive(Debug)]
pub(super) struct Pool {
    limit: usize,
    taken: AtomicUsize,
}

impl Pool {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            taken: AtomicUsize::new(0),
        })
    }

    fn left(&self) -> usize {
        self.limit
            .saturating_sub(self.taken.load(Ordering::Relaxed))
    }
}

/// What both streams of one command may still take.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: usize,
    taken: AtomicUsize,
    pool: Option<Arc<Pool>>,
}

impl Budget {
    /// A budget of this many bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            taken: AtomicUsize::new(0),
            pool: None,
        }
    }

    /// A budget that may end before its limit when all results together take too much.
    pub(super) fn pooled(limit: usize, pool: &Arc<Pool>) -> Self {
        let mut budget = Self::new(limit);
        budget.pool = Some(Arc::clone(pool));
        budget
    }

    fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    fn left(&self) -> usize {
        let taken = self.taken();
        let own = self.limit.saturating_sub(taken);
        match &self.pool {
            Some(pool) => own.min(OWN.saturating_sub(taken) + pool.left()),
            None => own,
        }
    }

    fn take(&self, bytes: usize) {
        let before = self.taken.fetch_add(bytes, Ordering::Relaxed);
        if let Some(pool) = &self.pool {
            let more = (before + bytes).saturating_sub(before.max(OWN));
            pool.taken.fetch_add(more, Ordering::Relaxed);
        }
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            let pooled = self.taken().saturating_sub(OWN);
            pool.taken.fetch_sub(pooled, Ordering::Relaxed);
        }
    }
}

/// What is kept of one stream.
#[derive(Debug)]
pub(crate) struct Capture {
    kept: Kept,
    truncated: bool,
}

#[derive(Debug)]
enum Kept {
    Text(Decoder, String),
    Bytes(Vec<u8>),
}

/// One stream of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// Text, or base64 where that was asked for.
    pub content: String,
    /// Whether output past the budget was dropped.
    pub truncated: bool,
}

impl Capture {
    pub(crate) fn new(encoding: OutputEncoding) -> Self {
        let kept = match encoding {
            OutputEncoding::Utf8 => Kept::Text(Decoder::default(), String::new()),
            OutputEncoding::Base64 => Kept::Bytes(Vec::new()),
        };
        Self {
            kept,
            truncated: false,
        }
    }

    pub(crate) fn push(&mut self, piece: &[u8], budget: &Budget) {
        if self.truncated {
            return;
        }
        match &mut self.kept {
            Kept::Text(decoder, text) => {
                let more = decoder.push(piece);
                self.truncated = append(text, &more, budget);
            }
            Kept::Bytes(bytes) => {
                let fits = piece.len().min(budget.left() / 4 * 3);
                budget.take(fits.div_ceil(3) * 4);
                bytes.extend_from_slice(&piece[..fits]);
                self.truncated = fits < piece.len();
            }
        }
    }

    /// Adds a line of our own, past the budget.
    pub(crate) fn note(&mut self, line: &str) {
        match &mut self.kept {
            Kept::Text(decoder, text) => {
                text.push_str(&decoder.finish());
                if !text.is_empty() && !text.ends_with('\n') {
                    text.push('\n');
                }
                text.push_str(line);
            }
            Kept::Bytes(bytes) => {
                if bytes.last().is_some_and(|last| *last != b'\n') {
                    bytes.push(b'\n');
                }
                bytes.extend_from_slice(line.as_bytes());
            }
        }
    }

    pub(crate) fn finish(self, budget: &Budget) -> Captured {
        let mut truncated = self.truncated;
        let content = match self.kept {
            Kept::Text(mut decoder, mut text) => {
                if !truncated {
                    truncated = append(&mut text, &decoder.finish(), budget);
                }
                text
            }
            Kept::Bytes(bytes) => BASE64_STANDARD.encode(bytes),
        };
        Captured { content, truncated }
    }
}

/// Appends as many whole characters as the budget holds; says whether some were left out.
fn append(text: &mut String, more: &str, budget: &Budget) -> bool {
    let left = budget.left();
    let whole = encoded_length(more);
    if whole <= left {
        text.push_str(more);
        budget.take(whole);
        return false;
    }
    let mut cost = 0;
    let fits = more.char_indices().find(|(at, character)| {
        cost += encoded_length(&more[*at..*at + character.len_utf8()]);
        cost > left
    });
    let end = fits.map_or(more.len(), |(at, _)| at);
    text.push_str(&more[..end]);
    budget.take(left);
    true
}

/// The length of a text in JSON.
fn encoded_length(text: &str) -> usize {
    let escapes = text.bytes().map(|byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 1,
        0..=0x1f => 5,
        _ => 0,
    });
    text.len() + escapes.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pieces: &[&str], budget: usize) -> Captured {
        let budget = Budget::new(budget);
        let mut capture = Capture::new(OutputEncoding::Utf8);
        for piece in pieces {
            capture.push(piece.as_bytes(), &budget);
        }
        capture.finish(&budget)
    }

    #[test]
    fn text_is_cut_between_characters_and_counted_as_encoded() {
        for prefix in ["", "a", "ab"] {
            let captured = text(&[&format!("{prefix}{}", "€".repeat(10))], 20);
            assert!(captured.truncated);
            assert_eq!(
                captured.content,
                format!("{prefix}{}", "€".repeat((20 - prefix.len()) / 3))
            );
        }
        let nul = text(&["a\0b\0"], 8);
        assert_eq!((nul.content.as_str(), nul.truncated), ("a\0b", true));
        let exact = text(&["ab", "cd"], 4);
        assert_eq!((exact.content.as_str(), exact.truncated), ("abcd", false));
    }

    #[test]
    fn nothing_follows_a_cut() {
        assert_eq!(text(&["abc€", "d"], 4).content, "abc");
    }

    #[test]
    fn streams_share_the_budget_and_bytes_are_exact() {
        let budget = Budget::new(8);
        let (mut out, mut err) = (
            Capture::new(OutputEncoding::Base64),
            Capture::new(OutputEncoding::Base64),
        );
        out.push(b"a\xff\xfe", &budget);
        err.push(b"bcde", &budget);
        let (out, err) = (out.finish(&budget), err.finish(&budget));
        assert_eq!((out.content.as_str(), out.truncated), ("Yf/+", false));
        assert_eq!((err.content.as_str(), err.truncated), ("YmNk", true));
    }

    #[test]
    fn all_results_together_have_a_limit_that_is_given_back() {
        let pool = Pool::new(100);
        let keep = |budget: &Budget| {
            let mut capture = Capture::new(OutputEncoding::Utf8);
            capture.push(&vec![b'x'; OWN + 60], budget);
            capture.finish(budget)
        };
        let first = Budget::pooled(1 << 20, &pool);
        assert!(!keep(&first).truncated);
        let second = keep(&Budget::pooled(1 << 20, &pool));
        assert_eq!((second.content.len(), second.truncated), (OWN + 40, true));
        drop(first);
        assert!(!keep(&Budget::pooled(1 << 20, &pool)).truncated);
        assert_eq!(pool.left(), 100);
    }

    #[test]
    fn a_note_starts_a_line_of_its_own() {
        let budget = Budget::new(100);
        let mut capture = Capture::new(OutputEncoding::Utf8);
        capture.push(b"partial", &budget);
        capture.note("note\n");
        assert_eq!(capture.finish(&budget).content, "partial\nnote\n");
    }
}

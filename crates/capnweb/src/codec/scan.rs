//! A JSON scanner: one pass, nothing copied that need not be.

use std::borrow::Cow;

/// The text is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) usize);

/// Where the first quote, backslash or control character is.
///
/// Looks at blocks first, without a branch in a block, for most text is long
/// and has none.
pub(super) fn first_special(bytes: &[u8]) -> Option<usize> {
    const BLOCK: usize = 64;
    let mut clean = 0;
    for block in bytes.chunks_exact(BLOCK) {
        let mut found = 0_u8;
        for byte in block {
            found |= u8::from(*byte == b'"') | u8::from(*byte == b'\\') | u8::from(*byte < 0x20);
        }
        if found != 0 {
            break;
        }
        clean += BLOCK;
    }
    let rest = bytes.get(clean..).unwrap_or_default();
    let at = rest
        .iter()
        .position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
    at.map(|offset| clean + offset)
}

pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

type Scan<T> = Result<T, Malformed>;

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Goes back to a position it was at.
    pub(crate) fn rewind(&mut self, position: usize) {
        self.at = position;
    }

    pub(crate) fn malformed<T>(&self) -> Scan<T> {
        Err(Malformed(self.at))
    }

    /// The text from a position up to here.
    pub(crate) fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// The next byte that is not white space, without taking it.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    /// Takes the byte if it is the next one.
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.at += 1;
        }
        found
    }

    pub(crate) fn expect(&mut self, byte: u8) -> Scan<()> {
        if self.take(byte) {
            Ok(())
        } else {
            self.malformed()
        }
    }

    /// Whether only white space is left.
    pub(crate) fn at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    pub(crate) fn word(&mut self, word: &str) -> Scan<()> {
        if self
            .text
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(word))
        {
            self.at += word.len();
            Ok(())
        } else {
            self.malformed()
        }
    }

    pub(crate) fn number(&mut self) -> Scan<f64> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let digits = |mut at: usize| {
            while bytes.get(at).is_some_and(u8::is_ascii_digit) {
                at += 1;
            }
            at
        };
        let mut at = start + usize::from(bytes.get(start) == Some(&b'-'));
        let whole = at;
        at = digits(at);
        if at == whole || (bytes.get(whole) == Some(&b'0') && at > whole + 1) {
            return self.malformed();
        }
        if bytes.get(at) == Some(&b'.') {
            let fraction = at + 1;
            at = digits(fraction);
            if at == fraction {
                return self.malformed();
            }
        }
        if matches!(bytes.get(at), Some(b'e' | b'E')) {
            let mut exponent = at + 1;
            if matches!(bytes.get(exponent), Some(b'+' | b'-')) {
                exponent += 1;
            }
            at = digits(exponent);
            if at == exponent {
                return self.malformed();
            }
        }
        self.at = at;
        match self.since(start).parse() {
            Ok(number) => Ok(number),
            Err(_) => self.malformed(),
        }
    }

    /// A string; borrowed if it has no escapes.
    pub(crate) fn string(&mut self) -> Scan<Cow<'a, str>> {
        self.expect(b'"')?;
        let start = self.at;
        if self.plain()? == b'"' {
            let text = self.since(start);
            self.at += 1;
            return Ok(Cow::Borrowed(text));
        }
        let mut text = String::from(self.since(start));
        loop {
            let from = self.at;
            let stop = self.plain()?;
            text.push_str(self.since(from));
            self.at += 1;
            if stop == b'"' {
                return Ok(Cow::Owned(text));
            }
            self.escape(&mut text)?;
        }
    }

    /// Moves to the next quote or backslash.
    fn plain(&mut self) -> Scan<u8> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        match first_special(rest).and_then(|offset| rest.get(offset).map(|byte| (offset, *byte))) {
            Some((offset, byte @ (b'"' | b'\\'))) => {
                self.at += offset;
                Ok(byte)
            }
            _ => self.malformed(),
        }
    }

    fn escape(&mut self, text: &mut String) -> Scan<()> {
        let Some(byte) = self.text.as_bytes().get(self.at) else {
            return self.malformed();
        };
        self.at += 1;
        text.push(match byte {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => self.unicode()?,
            _ => return self.malformed(),
        });
        Ok(())
    }

    /// Half a surrogate pair alone has no UTF-8 and becomes the replacement character.
    fn unicode(&mut self) -> Scan<char> {
        let first = self.hex4()?;
        if !(0xD800..0xE000).contains(&first) {
            return Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        let after = self.at;
        if first < 0xDC00 && self.word("\\u").is_ok() {
            let second = self.hex4()?;
            if (0xDC00..0xE000).contains(&second) {
                let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = after;
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn hex4(&mut self) -> Scan<u32> {
        let digits = self.text.get(self.at..self.at + 4).unwrap_or_default();
        if digits.len() != 4 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return self.malformed();
        }
        self.at += 4;
        u32::from_str_radix(digits, 16).map_err(|_| Malformed(self.at))
    }

    /// Passes over one value, however deep, without recursion.
    pub(crate) fn skip(&mut self) -> Scan<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    while self.plain()? == b'\\' {
                        self.at += 2;
                    }
                    self.at += 1;
                }
                Some(b'[' | b'{') => {
                    self.at += 1;
                    depth += 1;
                }
                Some(b']' | b'}') if depth > 0 => {
                    self.at += 1;
                    depth -= 1;
                }
                Some(b',' | b':') if depth > 0 => self.at += 1,
                Some(b'-' | b'0'..=b'9') => {
                    self.number()?;
                }
                Some(b't') => self.word("true")?,
                Some(b'f') => self.word("false")?,
                Some(b'n') => self.word("null")?,
                _ => return self.malformed(),
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }
}

//! Text out of bytes that arrive in pieces.

/// Decodes UTF-8 that may be cut anywhere. Each byte that is no part of a
/// character becomes U+FFFD.
#[derive(Debug, Default)]
pub struct Decoder {
    /// The start of a character whose rest has not arrived: at most three bytes.
    carry: Vec<u8>,
}

impl Decoder {
    /// Decodes the next piece; holds back a character that is not complete.
    pub fn push(&mut self, piece: &[u8]) -> String {
        let mut text = String::with_capacity(piece.len() + 4);
        if self.carry.is_empty() {
            self.decode(piece, &mut text);
        } else {
            let mut joined = std::mem::take(&mut self.carry);
            joined.extend_from_slice(piece);
            self.decode(&joined, &mut text);
        }
        text
    }

    /// Ends the text: what was held back is bad after all.
    pub fn finish(&mut self) -> String {
        bad(std::mem::take(&mut self.carry).len())
    }

    fn decode(&mut self, mut bytes: &[u8], text: &mut String) {
        loop {
            let error = match std::str::from_utf8(bytes) {
                Ok(rest) => return text.push_str(rest),
                Err(error) => error,
            };
            let (good, rest) = bytes.split_at(error.valid_up_to());
            text.push_str(&String::from_utf8_lossy(good));
            match error.error_len() {
                None => return self.carry.extend_from_slice(rest),
                Some(length) => {
                    text.push_str(&bad(length));
                    bytes = &rest[length..];
                }
            }
        }
    }
}

fn bad(count: usize) -> String {
    "\u{fffd}".repeat(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole(pieces: &[&[u8]]) -> String {
        let mut decoder = Decoder::default();
        let mut text: String = pieces.iter().map(|piece| decoder.push(piece)).collect();
        text.push_str(&decoder.finish());
        text
    }

    #[test]
    fn a_character_across_pieces_is_whole() {
        assert_eq!(whole(&[b"\xe2", b"\x82", b"\xac\n"]), "€\n");
    }

    #[test]
    fn every_bad_byte_is_one_replacement() {
        assert_eq!(whole(&[b"a\xff\xfeb\n"]), "a\u{fffd}\u{fffd}b\n");
        assert_eq!(whole(&[b"caf\xc3"]), "caf\u{fffd}");
        assert_eq!(whole(&[b"\xe2\x82x"]), "\u{fffd}\u{fffd}x");
    }

    proptest! {
        #[test]
        fn cuts_never_change_the_text(text in ".{0,40}", raw in proptest::collection::vec(any::<u8>(), 0..40), cut in 0_usize..80) {
            let mut bytes = text.clone().into_bytes();
            prop_assert_eq!(whole(&[&bytes]), text);
            bytes.extend(raw);
            let (head, tail) = bytes.split_at(cut.min(bytes.len()));
            prop_assert_eq!(whole(&[head, tail]), whole(&[&bytes]));
        }
    }
}

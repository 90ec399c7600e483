//! UTF-8 for the prelude's TextDecoder.

/// Decodes what is whole. Answers the text and how many bytes were used up; the
/// rest is the start of a character that the next piece may end. `Err` for bad
/// bytes when `fatal`.
pub fn decode(
    bytes: &[u8],
    fatal: bool,
    more_follows: bool,
) -> Result<(String, usize), &'static str> {
    let used = if more_follows {
        bytes.len() - unfinished(bytes)
    } else {
        bytes.len()
    };
    let whole = &bytes[..used];
    if fatal {
        match std::str::from_utf8(whole) {
            Ok(text) => Ok((text.to_owned(), used)),
            Err(_) => Err("the bytes are not UTF-8"),
        }
    } else {
        Ok((String::from_utf8_lossy(whole).into_owned(), used))
    }
}

/// How many bytes at the end are a character's start without its end.
fn unfinished(bytes: &[u8]) -> usize {
    let tail = bytes.len().saturating_sub(3);
    for start in tail..bytes.len() {
        if let Err(error) = std::str::from_utf8(&bytes[start..])
            && error.valid_up_to() == 0
            && error.error_len().is_none()
        {
            return bytes.len() - start;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_split_character_waits_for_its_end() {
        let euro = "a€".as_bytes();
        assert_eq!(decode(&euro[..3], false, true).unwrap(), ("a".into(), 1));
        assert_eq!(decode(euro, false, true).unwrap(), ("a€".into(), 4));
        assert_eq!(
            decode(&euro[..3], false, false).unwrap(),
            ("a\u{fffd}".into(), 3)
        );
    }

    #[test]
    fn bad_bytes_are_replaced_or_refused() {
        assert_eq!(decode(b"a\xffb", false, true).unwrap().0, "a\u{fffd}b");
        assert!(decode(b"a\xffb", true, false).is_err());
    }
}

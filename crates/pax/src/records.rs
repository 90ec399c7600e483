//! The records of an `x` header: `length key=value` and a newline, where the
//! length counts all of it and the value is any bytes, newlines too.

use crate::PaxError;

const MALFORMED: PaxError = PaxError::Malformed("has a malformed PAX record");

/// Appends one record.
pub(crate) fn push(records: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    // The length counts its own digits.
    let rest = 1 + key.len() + 1 + value.len() + 1;
    let mut length = rest + 1;
    while length.to_string().len() + rest > length {
        length += 1;
    }
    records.extend_from_slice(length.to_string().as_bytes());
    records.push(b' ');
    records.extend_from_slice(key);
    records.push(b'=');
    records.extend_from_slice(value);
    records.push(b'\n');
}

/// A key and its value.
pub(crate) type Record<'a> = (&'a [u8], &'a [u8]);

/// Splits records into keys and values.
pub(crate) fn parse(mut records: &[u8]) -> Result<Vec<Record<'_>>, PaxError> {
    let mut pairs = Vec::new();
    while !records.is_empty() {
        let blank = records
            .iter()
            .take(20)
            .position(|byte| *byte == b' ')
            .ok_or(MALFORMED)?;
        let length = decimal(&records[..blank])?;
        let length = usize::try_from(length).map_err(|_| MALFORMED)?;
        let record = records.get(..length).ok_or(MALFORMED)?;
        let pair = record.get(blank + 1..).ok_or(MALFORMED)?;
        let pair = pair.strip_suffix(b"\n").ok_or(MALFORMED)?;
        let equals = pair
            .iter()
            .position(|byte| *byte == b'=')
            .ok_or(MALFORMED)?;
        pairs.push((&pair[..equals], &pair[equals + 1..]));
        records = &records[length..];
    }
    Ok(pairs)
}

/// An unsigned decimal number.
pub(crate) fn decimal(digits: &[u8]) -> Result<u64, PaxError> {
    const BAD: PaxError = PaxError::Malformed("has a PAX record with a bad number");
    if digits.is_empty() {
        return Err(BAD);
    }
    digits.iter().try_fold(0_u64, |value, byte| match byte {
        b'0'..=b'9' => value
            .checked_mul(10)
            .and_then(|value| value.checked_add(u64::from(byte - b'0')))
            .ok_or(BAD),
        _ => Err(BAD),
    })
}

/// The key for an extended attribute, with `=` and `%` in its name escaped as
/// GNU tar does.
pub(crate) fn xattr_key(name: &[u8]) -> Vec<u8> {
    let mut key = XATTR.to_vec();
    for byte in name {
        match byte {
            b'%' => key.extend_from_slice(b"%25"),
            b'=' => key.extend_from_slice(b"%3D"),
            _ => key.push(*byte),
        }
    }
    key
}

const XATTR: &[u8] = b"SCHILY.xattr.";

/// The name of the extended attribute that a key stands for, if it does.
pub(crate) fn xattr_name(key: &[u8]) -> Option<Vec<u8>> {
    let mut rest = key.strip_prefix(XATTR)?;
    let mut name = Vec::new();
    while let Some((byte, after)) = rest.split_first() {
        let (decoded, after) = match rest.get(..3) {
            Some(b"%25") => (b'%', &rest[3..]),
            Some(b"%3D") => (b'=', &rest[3..]),
            _ => (*byte, after),
        };
        name.push(decoded);
        rest = after;
    }
    Some(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_length_counts_its_own_digits() {
        for value in [0, 1, 2, 3, 91, 92, 93, 990, 991, 992, 99_990] {
            let mut records = Vec::new();
            push(&mut records, b"key", &vec![b'v'; value]);
            let digits = records.iter().position(|byte| *byte == b' ').unwrap();
            assert_eq!(decimal(&records[..digits]).unwrap(), records.len() as u64);
        }
    }

    #[test]
    fn malformed_records_are_refused() {
        for records in [
            &b"6 a=b"[..],
            b"5 a=b\n",
            b"7 a=b\n",
            b"x a=b\n",
            b" a=b\n",
            b"6 aab\n",
            b"0 a=b\n",
            b"2 \n",
            b"3 \n",
            b"99999999999999999999 a=b\n",
            b"-6 a=b\n",
            b"6",
        ] {
            assert!(parse(records).is_err(), "{}", records.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn records_read_back(pairs in proptest::collection::vec(("[a-z.]{1,9}", any::<Vec<u8>>()), 0..9)) {
            let mut records = Vec::new();
            for (key, value) in &pairs {
                push(&mut records, key.as_bytes(), value);
            }
            let read = parse(&records).unwrap();
            let pairs: Vec<_> = pairs.iter().map(|(key, value)| (key.as_bytes(), &value[..])).collect();
            prop_assert_eq!(read, pairs);
        }

        #[test]
        fn names_of_attributes_read_back(name in any::<Vec<u8>>()) {
            prop_assert_eq!(xattr_name(&xattr_key(&name)).unwrap(), name);
        }
    }
}

//! `--env K=V`, shared by `sandbox create` and `exec`.

/// Splits `K=V` at the first equals sign. The server judges the name.
pub fn parse(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` is not NAME=VALUE")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn values_may_hold_equals_signs_and_be_empty() {
        assert_eq!(parse("A=b=c").unwrap(), ("A".into(), "b=c".into()));
        assert_eq!(parse("A=").unwrap(), ("A".into(), String::new()));
    }

    #[test]
    fn a_name_is_needed() {
        assert!(parse("A").is_err());
        assert!(parse("=b").is_err());
    }
}

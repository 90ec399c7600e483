//! Queries as clients write them in JSON.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Number, Value};

use super::EventTypes;

/// What every client of event streams knows this refusal by.
pub(super) const LIMIT_NOT_POSITIVE: &str = "getEvents limit must be a positive integer.";

impl<'de> Deserialize<'de> for EventTypes {
    /// A list of types, or `"*"`, or nothing for all.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Wire {
            List(Vec<String>),
            One(String),
        }
        match Option::<Wire>::deserialize(deserializer)? {
            None => Ok(Self::All),
            Some(Wire::List(list)) => Ok(Self::from_list(Some(list))),
            Some(Wire::One(text)) if text == "*" => Ok(Self::All),
            Some(Wire::One(_)) => Err(D::Error::custom(
                "eventTypes is a list of event types, or \"*\" for all",
            )),
        }
    }
}

/// A limit; how large it may be is checked where it is used.
pub(super) fn limit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    let whole = match Value::deserialize(deserializer)? {
        Value::Number(number) => whole(&number),
        _ => None,
    };
    whole
        .filter(|limit| *limit > 0)
        .ok_or_else(|| D::Error::custom(LIMIT_NOT_POSITIVE))
}

/// JavaScript has one kind of number, so 10 may arrive as 10.0.
fn whole(number: &Number) -> Option<usize> {
    if let Some(whole) = number.as_u64() {
        return Some(usize::try_from(whole).unwrap_or(usize::MAX));
    }
    let float = number.as_f64()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a whole number in range; a larger one saturates"
    )]
    (float >= 0.0 && float.fract() == 0.0).then_some(float as usize)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use crate::{EventQuery, EventRef, EventTypes, Order};

    fn read(value: serde_json::Value) -> Result<EventQuery, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn absent_fields_have_their_defaults() {
        assert_eq!(read(json!({})).unwrap(), EventQuery::default());
        let all = json!({"afterOffset": 3, "beforeOffset": 9, "eventTypes": ["a"], "limit": 2.0, "order": "desc"});
        let expected = EventQuery {
            after_offset: 3,
            before_offset: Some(9),
            event_types: EventTypes::Only(vec!["a".into()]),
            limit: 2,
            order: Order::Descending,
            max_bytes: None,
        };
        assert_eq!(read(all).unwrap(), expected);
    }

    #[test]
    fn all_types_have_three_spellings() {
        for types in [json!(null), json!("*"), json!(["a", "*"])] {
            let query = read(json!({"eventTypes": types})).unwrap();
            assert_eq!(query.event_types, EventTypes::All, "{types}");
        }
        let none = read(json!({"eventTypes": []})).unwrap();
        assert_eq!(none.event_types, EventTypes::Only(Vec::new()));
        assert!(read(json!({"eventTypes": "a"})).is_err());
    }

    #[test]
    fn bad_limits_have_their_text() {
        for limit in [json!(0), json!(-1), json!(1.5), json!("1"), json!(null)] {
            let error = read(json!({ "limit": limit })).unwrap_err();
            assert_eq!(
                error, "getEvents limit must be a positive integer.",
                "{limit}"
            );
        }
        assert!(read(json!({"limitt": 1})).is_err());
        assert!(read(json!({"maxBytes": 1})).is_err());
    }

    #[test]
    fn one_event_is_named_by_offset_or_key() {
        let read = |value| serde_json::from_value::<EventRef>(value);
        assert_eq!(read(json!({"offset": 1})).unwrap(), EventRef::Offset(1));
        let key = read(json!({"idempotencyKey": "k"})).unwrap();
        assert_eq!(key, EventRef::Key("k".into()));
        assert!(read(json!({})).is_err());
        assert!(read(json!({"offset": 1, "idempotencyKey": "k"})).is_err());
    }
}

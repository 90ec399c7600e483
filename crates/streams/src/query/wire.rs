//! Filters as clients write them in JSON.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::EventTypes;

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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn all_types_have_three_spellings() {
        for types in [json!(null), json!("*"), json!(["a", "*"])] {
            assert_eq!(
                from_value::<EventTypes>(types.clone()).unwrap(),
                EventTypes::All,
                "{types}"
            );
        }
        assert_eq!(
            from_value::<EventTypes>(json!([])).unwrap(),
            EventTypes::Only(Vec::new())
        );
        assert!(from_value::<EventTypes>(json!("a")).is_err());
    }
}

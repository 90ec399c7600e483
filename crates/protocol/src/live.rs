//! State that readers follow: one snapshot, then patches.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a follower is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum LiveMessage {
    /// The whole state; always the first message.
    Snapshot {
        /// Grows with each change, also across servers.
        revision: u64,
        /// The state.
        state: Value,
    },
    /// A change. A follower whose own revision is not `from` has missed
    /// something and subscribes again.
    Patch {
        /// The revision that it applies to.
        from: u64,
        /// The revision that it leads to.
        to: u64,
        /// The change.
        patch: Patch,
    },
}

/// A change of one value: replaced whole, or an object's members one by one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Patch {
    /// The new value. Arrays, null and changes of type are always replaced.
    Set {
        /// The value.
        set: Value,
    },
    /// Changes of an object's members.
    Members {
        /// Members that are new or have changed.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        fields: Map<String, Value>,
        /// Members that are gone.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        drop: Vec<String>,
    },
}

impl Patch {
    /// What leads from one value to the other; none if they are equal.
    #[must_use]
    pub fn between(from: &Value, to: &Value) -> Option<Self> {
        if from == to {
            return None;
        }
        let (Value::Object(from), Value::Object(to)) = (from, to) else {
            return Some(Self::Set { set: to.clone() });
        };
        let mut fields = Map::new();
        for (name, value) in to {
            let change = match from.get(name) {
                Some(before) => Self::between(before, value),
                None => Some(Self::Set { set: value.clone() }),
            };
            if let Some(change) = change {
                fields.insert(name.clone(), change.into_json());
            }
        }
        let gone = from.keys().filter(|name| !to.contains_key(*name));
        let drop = gone.cloned().collect();
        Some(Self::Members { fields, drop })
    }

    /// The value after this change; none if the change does not fit it.
    #[must_use]
    pub fn apply(&self, value: &Value) -> Option<Value> {
        match self {
            Self::Set { set } => Some(set.clone()),
            Self::Members { fields, drop } => {
                let mut members = value.as_object()?.clone();
                for name in drop {
                    members.remove(name)?;
                }
                for (name, change) in fields {
                    let change: Self = serde_json::from_value(change.clone()).ok()?;
                    let before = members.get(name).unwrap_or(&Value::Null);
                    let after = change.apply(before)?;
                    members.insert(name.clone(), after);
                }
                Some(Value::Object(members))
            }
        }
    }

    fn into_json(self) -> Value {
        match self {
            Self::Set { set } => serde_json::json!({ "set": set }),
            Self::Members { fields, drop } => {
                let mut members = Map::new();
                if !fields.is_empty() {
                    members.insert("fields".into(), Value::Object(fields));
                }
                if !drop.is_empty() {
                    members.insert("drop".into(), drop.into());
                }
                Value::Object(members)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn objects_change_member_by_member_and_all_else_as_a_whole() {
        let patch = |from: Value, to: Value| {
            serde_json::to_value(Patch::between(&from, &to).unwrap()).unwrap()
        };
        assert_eq!(patch(json!([1]), json!([1, 2])), json!({"set": [1, 2]}));
        assert_eq!(patch(json!({}), json!(null)), json!({"set": null}));
        assert_eq!(patch(json!(null), json!({})), json!({"set": {}}));
        assert_eq!(
            patch(
                json!({"a": 1, "env": {"X": "1", "Y": "2"}, "gone": [], "n": null}),
                json!({"a": 1, "env": {"X": "3"}, "new": {"k": 1}, "n": {}}),
            ),
            json!({
                "fields": {
                    "env": {"fields": {"X": {"set": "3"}}, "drop": ["Y"]},
                    "new": {"set": {"k": 1}},
                    "n": {"set": {}},
                },
                "drop": ["gone"],
            })
        );
        assert_eq!(Patch::between(&json!({"a": 1}), &json!({"a": 1})), None);
    }

    #[test]
    fn a_patch_leads_from_one_state_to_the_other() {
        let states = [
            json!(null),
            json!([]),
            json!({}),
            json!({"a": null}),
            json!({"a": {"set": 1}, "fields": {"drop": ["x"]}}),
            json!({"a": {"b": {"c": 1, "d": [1]}}, "fields": 1}),
            json!({"a": {"b": {"c": 2}}, "set": {"fields": {}}}),
        ];
        for from in &states {
            for to in &states {
                let Some(patch) = Patch::between(from, to) else {
                    assert_eq!(from, to);
                    continue;
                };
                let sent = serde_json::to_value(&patch).unwrap();
                let read: Patch = serde_json::from_value(sent).unwrap();
                assert_eq!(read, patch);
                assert_eq!(read.apply(from).as_ref(), Some(to), "{from} to {to}");
            }
        }
    }

    #[test]
    fn messages_have_the_shape_that_followers_expect() {
        let message = LiveMessage::Patch {
            from: 3,
            to: 5,
            patch: Patch::Set { set: json!(1) },
        };
        assert_eq!(
            serde_json::to_value(message).unwrap(),
            json!({"type": "patch", "from": 3, "to": 5, "patch": {"set": 1}})
        );
    }
}

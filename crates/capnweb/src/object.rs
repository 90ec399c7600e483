//! Objects: ordered pairs with unique keys.

use std::collections::HashMap;

use crate::value::Value;

/// From how many keys on a lookup table finds duplicates.
const INDEXED_FROM: usize = 24;

/// A plain object. Keys are unique and keep the order in which they came.
#[derive(Debug, Default)]
pub struct Object(Vec<(String, Value)>);

impl Object {
    /// An object without keys.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// The value under a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value)
    }

    /// The value under a key, to change it.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.0
            .iter_mut()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value)
    }

    /// Puts a value under a key and returns what was there.
    pub fn insert(&mut self, key: impl Into<String>, value: impl Into<Value>) -> Option<Value> {
        let (key, value) = (key.into(), value.into());
        match self.get_mut(&key) {
            Some(slot) => Some(std::mem::replace(slot, value)),
            None => {
                self.0.push((key, value));
                None
            }
        }
    }

    /// Takes a value out.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let index = self.0.iter().position(|(name, _)| name == key)?;
        Some(self.0.remove(index).1)
    }

    /// The pairs in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The pairs in order, values to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut Value)> {
        self.0.iter_mut().map(|(key, value)| (key.as_str(), value))
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn share(&mut self) -> Self {
        Self(
            self.0
                .iter_mut()
                .map(|(key, value)| (key.clone(), value.share()))
                .collect(),
        )
    }

    pub(crate) fn weight(&self) -> usize {
        self.0
            .iter()
            .map(|(key, value)| size_of::<String>() + key.len() + value.weight())
            .sum()
    }

    pub(crate) fn clone_without_streams(&self) -> Self {
        Self(
            self.0
                .iter()
                .map(|(key, value)| (key.clone(), value.clone_without_streams()))
                .collect(),
        )
    }
}

/// Of equal keys the last value wins, at the place of the first.
impl<K: Into<String>, V: Into<Value>> FromIterator<(K, V)> for Object {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut builder = ObjectBuilder::default();
        for (key, value) in pairs {
            builder.put(key.into(), value.into());
        }
        builder.finish()
    }
}

impl IntoIterator for Object {
    type Item = (String, Value);
    type IntoIter = std::vec::IntoIter<(String, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Collects pairs in linear time however many there are.
#[derive(Default)]
pub(crate) struct ObjectBuilder {
    object: Object,
    index: HashMap<String, usize>,
}

impl ObjectBuilder {
    pub(crate) fn put(&mut self, key: String, value: Value) {
        let pairs = &mut self.object.0;
        let found = if pairs.len() < INDEXED_FROM {
            pairs.iter().position(|(name, _)| *name == key)
        } else {
            if self.index.is_empty() {
                self.index = pairs
                    .iter()
                    .enumerate()
                    .map(|(at, (name, _))| (name.clone(), at))
                    .collect();
            }
            self.index.get(&key).copied()
        };
        if let Some((_, slot)) = found.and_then(|at| pairs.get_mut(at)) {
            *slot = value;
            return;
        }
        if !self.index.is_empty() {
            self.index.insert(key.clone(), pairs.len());
        }
        pairs.push((key, value));
    }

    pub(crate) fn finish(self) -> Object {
        self.object
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_equal_keys_wins_at_the_first_place() {
        let pairs = (0..100)
            .map(|n| (format!("k{n}"), n))
            .chain([("k3".to_owned(), 500), ("k90".to_owned(), 501)]);
        let object: Object = pairs.collect();
        assert_eq!(object.len(), 100);
        assert_eq!(object.get("k3").and_then(Value::as_f64), Some(500.0));
        assert_eq!(object.get("k90").and_then(Value::as_f64), Some(501.0));
        assert_eq!(object.iter().nth(3).map(|(key, _)| key), Some("k3"));
    }

    #[test]
    fn insert_replaces_and_remove_keeps_order() {
        let mut object: Object = [("a", 1), ("b", 2), ("c", 3)].into_iter().collect();
        assert_eq!(
            object.insert("b", 9).and_then(|old| old.as_f64()),
            Some(2.0)
        );
        object.remove("a");
        assert_eq!(
            object.iter().map(|(key, _)| key).collect::<Vec<_>>(),
            ["b", "c"]
        );
    }
}

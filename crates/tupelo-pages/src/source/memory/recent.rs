//! Values that were used last.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// Values by key, with the bytes that each takes. Those that were used least recently make room for others.
#[derive(Debug)]
pub(crate) struct Recent<K, V> {
    values: HashMap<K, Used<V>>,
    /// Keys in order of their last use.
    by_use: BTreeMap<u64, K>,
    bytes: u64,
    uses: u64,
}

#[derive(Debug)]
struct Used<V> {
    value: V,
    bytes: u64,
    last_use: u64,
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self { values: HashMap::new(), by_use: BTreeMap::new(), bytes: 0, uses: 0 }
    }
}

impl<K: Copy + Eq + Hash, V> Recent<K, V> {
    pub(crate) fn get(&mut self, key: &K) -> Option<&V> {
        self.uses += 1;
        let used = self.values.get_mut(key)?;
        self.by_use.remove(&used.last_use);
        self.by_use.insert(self.uses, *key);
        used.last_use = self.uses;
        Some(&used.value)
    }

    /// Adds a value in place of one with the same key, and removes others while all take more than `max_bytes`. The newest
    /// one stays, however large.
    pub(crate) fn insert(&mut self, key: K, value: V, bytes: u64, max_bytes: u64) {
        self.remove(&key);
        self.uses += 1;
        self.bytes += bytes;
        self.by_use.insert(self.uses, key);
        self.values.insert(key, Used { value, bytes, last_use: self.uses });
        while self.bytes > max_bytes && self.values.len() > 1 {
            let Some((_, &oldest)) = self.by_use.first_key_value() else { break };
            self.remove(&oldest);
        }
    }

    /// The value that was used least recently.
    pub(crate) fn oldest(&self) -> Option<(&K, &V)> {
        let (_, key) = self.by_use.first_key_value()?;
        Some((key, &self.values.get(key)?.value))
    }

    pub(crate) fn remove(&mut self, key: &K) {
        if let Some(used) = self.values.remove(key) {
            self.by_use.remove(&used.last_use);
            self.bytes -= used.bytes;
        }
    }

    /// Whether there is a value, without using it.
    pub(crate) fn contains(&self, key: &K) -> bool {
        self.values.contains_key(key)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Bytes of all values.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

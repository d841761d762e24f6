//! Which calls read or write a set of values.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::key::{DaosKey, ObjectName};

/// Maximum number of akeys of a call: 128. Servers handle a call as a whole, and send its descriptors in one message.
pub(super) const MAX_AKEYS: usize = 128;
/// Size of the values of a call that gets no other value: 16 MiB, so that large clusters become several transfers at the
/// same time.
pub(super) const MAX_CALL_BYTES: u64 = 16 << 20;

/// The kind of requests for values, by the option `daos_requests`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Requests {
    /// All akeys of a dkey by one call, all calls at the same time.
    #[default]
    Batch,
    /// A call for each value, all at the same time.
    Queue,
    /// A call for each value, one after the other. A call that runs cannot be cancelled.
    Blocking,
}

impl Requests {
    /// The names of the option's values.
    const NAMES: [(&'static str, Self); 3] =
        [("batch", Self::Batch), ("queue", Self::Queue), ("blocking", Self::Blocking)];

    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(name, _)| *name == text).map(|(_, requests)| *requests)
    }

    /// The values of each call, as indices of the keys. `bytes` are the sizes of the values, where they are known.
    pub(super) fn group<'a>(self, keys: impl Iterator<Item = (&'a DaosKey, u64)>) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        let mut open: HashMap<(ObjectName, u64), (usize, u64)> = HashMap::new();
        for (at, (key, bytes)) in keys.enumerate() {
            let new = Group { object: key.object(), dkey: key.dkey, members: vec![at] };
            if self != Self::Batch {
                groups.push(new);
                continue;
            }
            match open.entry((key.object(), key.dkey)) {
                Entry::Occupied(mut entry) => {
                    let (group, taken) = entry.get_mut();
                    let is_full = groups[*group].members.len() == MAX_AKEYS;
                    if is_full || taken.saturating_add(bytes) > MAX_CALL_BYTES {
                        (*group, *taken) = (groups.len(), bytes);
                        groups.push(new);
                    } else {
                        groups[*group].members.push(at);
                        *taken += bytes;
                    }
                }
                Entry::Vacant(entry) => {
                    entry.insert((groups.len(), bytes));
                    groups.push(new);
                }
            }
        }
        groups
    }
}

/// The values of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) object: ObjectName,
    pub(super) dkey: u64,
    /// Indices of the keys.
    pub(super) members: Vec<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(lo: u64, dkey: u64, akey: u64) -> DaosKey {
        DaosKey { class: "SX".into(), hi: 1, lo, dkey, akey }
    }

    fn members(requests: Requests, keys: &[(DaosKey, u64)]) -> Vec<Vec<usize>> {
        let groups = requests.group(keys.iter().map(|(key, bytes)| (key, *bytes)));
        groups.into_iter().map(|group| group.members).collect()
    }

    #[test]
    fn akeys_of_a_dkey_are_one_call() {
        let keys = [(key(1, 1, 1), 1), (key(1, 2, 1), 1), (key(1, 1, 2), 1), (key(2, 1, 1), 1), (key(1, 2, 0), 1)];
        assert_eq!(members(Requests::Batch, &keys), [vec![0, 2], vec![1, 4], vec![3]]);
        for requests in [Requests::Queue, Requests::Blocking] {
            assert_eq!(members(requests, &keys), [[0], [1], [2], [3], [4]]);
        }
    }

    #[test]
    fn calls_have_limits() {
        let many: Vec<_> = (0..300).map(|akey| (key(1, 1, akey), 1)).collect();
        let sizes: Vec<usize> = members(Requests::Batch, &many).iter().map(Vec::len).collect();
        assert_eq!(sizes, [128, 128, 44]);
        let large = [10, 7, 9, 100, 1].map(|mebibytes| (key(1, 1, mebibytes), mebibytes << 20));
        assert_eq!(members(Requests::Batch, &large), [vec![0], vec![1, 2], vec![3], vec![4]]);
    }

    #[test]
    fn names_of_the_option() {
        assert_eq!(Requests::parse("queue"), Some(Requests::Queue));
        assert_eq!(Requests::parse("Batch"), None);
        assert_eq!(Requests::NAMES[0].1, Requests::default());
    }
}

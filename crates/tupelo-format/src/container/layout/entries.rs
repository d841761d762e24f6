//! The entries of one directory in the order of its key list, found by name.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Entry;

/// Place of an entry in the key list. Entries of the same first number have the same name, newer ones before older ones.
pub(super) type Order = (u32, i32);

const FIRST: Order = (0, i32::MIN);
const LAST: Order = (u32::MAX, i32::MAX);

/// The entries of a directory.
#[derive(Debug, Clone, Default)]
pub(super) struct Entries {
    listed: BTreeMap<Order, Entry>,
    names: HashMap<String, Named>,
    /// First number of the next new name.
    next: u32,
}

/// The entries of one name.
#[derive(Debug, Clone, Default)]
struct Named {
    orders: BTreeSet<Order>,
    cycles: BTreeSet<(u16, Order)>,
}

impl Entries {
    pub(super) fn len(&self) -> usize {
        self.listed.len()
    }

    /// In the order of the key list.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.listed.values()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.listed.values_mut()
    }

    pub(super) fn get_mut(&mut self, order: Order) -> Option<&mut Entry> {
        self.listed.get_mut(&order)
    }

    /// The entry of a name with the highest cycle.
    pub(super) fn newest(&self, name: &str) -> Option<&Entry> {
        let (_, order) = self.names.get(name)?.cycles.last()?;
        self.listed.get(order)
    }

    /// Adds an entry at the end of the list.
    pub(super) fn push(&mut self, entry: Entry) -> Order {
        let order = (self.next, 0);
        self.next = self.next.saturating_add(1);
        self.put(order, entry)
    }

    /// Adds an entry in front of those of the same name, at the end of the list where there are none.
    pub(super) fn insert(&mut self, entry: Entry) -> Order {
        match self.names.get(&entry.name).and_then(|named| named.orders.first()) {
            Some(&(first, second)) => self.put((first, second.saturating_sub(1)), entry),
            None => self.push(entry),
        }
    }

    fn put(&mut self, order: Order, entry: Entry) -> Order {
        let named = self.names.entry(entry.name.clone()).or_default();
        named.orders.insert(order);
        named.cycles.insert((entry.cycle, order));
        self.listed.insert(order, entry);
        order
    }

    /// Takes out all entries of a kind.
    pub(super) fn take(&mut self, is_taken: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        let taken: Vec<Order> = self.listed.iter().filter(|(_, it)| is_taken(it)).map(|(order, _)| *order).collect();
        taken.into_iter().filter_map(|order| self.take_at(order)).collect()
    }

    fn take_at(&mut self, order: Order) -> Option<Entry> {
        let entry = self.listed.remove(&order)?;
        if let Some(named) = self.names.get_mut(&entry.name) {
            named.orders.remove(&order);
            named.cycles.remove(&(entry.cycle, order));
            if named.orders.is_empty() {
                self.names.remove(&entry.name);
            }
        }
        Some(entry)
    }

    /// Takes out the object of a name and cycle. Directories stay.
    pub(super) fn remove(&mut self, name: &str, cycle: u16) -> Option<Entry> {
        let named = self.names.get(name)?;
        let mut of_cycle = named.cycles.range((cycle, FIRST)..=(cycle, LAST)).map(|(_, order)| *order);
        let order = of_cycle.find(|order| self.listed.get(order).is_some_and(|entry| entry.directory.is_none()))?;
        self.take_at(order)
    }
}

impl FromIterator<Entry> for Entries {
    fn from_iter<I: IntoIterator<Item = Entry>>(entries: I) -> Self {
        let mut all = Self::default();
        for entry in entries {
            all.push(entry);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::Content;
    use super::*;

    fn entry(name: &str, cycle: u16) -> Entry {
        let class_name = "C".to_owned();
        Entry { name: name.to_owned(), class_name, cycle, directory: None, content: Content::Directory }
    }

    fn listed(entries: &Entries) -> Vec<String> {
        entries.iter().map(|entry| format!("{};{}", entry.name, entry.cycle)).collect()
    }

    #[test]
    fn newer_cycles_stand_before_older_ones_and_new_names_at_the_end() {
        let mut entries: Entries = [entry("a", 3), entry("b", 1), entry("a", 1)].into_iter().collect();
        entries.insert(entry("a", 4));
        entries.insert(entry("c", 1));
        entries.insert(entry("b", 2));
        assert_eq!(listed(&entries), ["a;4", "a;3", "b;2", "b;1", "a;1", "c;1"]);
        assert_eq!(entries.newest("a").map(|entry| entry.cycle), Some(4));
        assert!(entries.remove("a", 4).is_some() && entries.remove("a", 4).is_none());
        assert!(entries.remove("d", 1).is_none());
        assert_eq!(entries.newest("a").map(|entry| entry.cycle), Some(3));
        entries.insert(entry("a", 9));
        assert_eq!(listed(&entries), ["a;9", "a;3", "b;2", "b;1", "a;1", "c;1"]);
        for cycle in [9, 3, 1] {
            assert!(entries.remove("a", cycle).is_some());
        }
        entries.insert(entry("a", 1));
        assert_eq!(listed(&entries), ["b;2", "b;1", "c;1", "a;1"]);
        assert_eq!(entries.len(), 4);
        let taken = entries.take(|entry| entry.name == "b");
        assert_eq!(taken.iter().map(|entry| entry.cycle).collect::<Vec<_>>(), [2, 1]);
        assert_eq!((listed(&entries), entries.newest("b").is_none()), (vec!["c;1".to_owned(), "a;1".to_owned()], true));
    }
}

//! Branches that count the values of others. Their baskets have other boundaries than those of the branches they count,
//! so a decoded basket is kept for all branches that need it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, UInt64Array};
use arrow_cast::cast;
use arrow_schema::{DataType, Field as ArrowField};
use tupelo_format::object::Basic;
use tupelo_format::wire::Memory;
use tupelo_ttree::classes::Classes;
use tupelo_ttree::{ValueLayout, layout};

use super::{BasketDecoder, Leaf};
use crate::{Error, Result};

/// The counter of a counter is in the tree as well, but has none itself.
const MAX_DEPTH: u8 = 2;
/// Memory of the layout of a counter, which is a number.
const LAYOUT_BYTES: u64 = 1 << 16;

/// The baskets of counters that one call has decoded, by branch and number: numbers, or lists of them.
pub(super) type Counters = Mutex<HashMap<(usize, usize), ArrayRef>>;

impl BasketDecoder<'_> {
    /// Bytes of the entries of a basket without positions: the values of the counter, times the bytes of an item.
    pub(super) fn lengths(
        self,
        branch: usize,
        basket: usize,
        item: &ValueLayout,
        entries: usize,
    ) -> Result<Vec<usize>> {
        let counter = self.branch(branch)?.leaves.first().and_then(|leaf| leaf.counter);
        let (Some((counter, _)), Some(width)) = (counter, item.fixed_bytes()) else {
            return Err(Error::unsupported("entries have unknown lengths"));
        };
        let first = self.first_entry(branch, basket)?;
        let counts = self.counts(counter, first..first.saturating_add(entries as u64))?;
        Ok(counts.into_iter().map(|count| count.saturating_mul(width)).collect())
    }

    /// The values of a branch that counts: one for each entry, or for each item of all entries.
    pub(super) fn counts(self, counter: usize, entries: Range<u64>) -> Result<Vec<usize>> {
        if self.depth >= MAX_DEPTH {
            return Err(Error::corrupt("counters count each other"));
        }
        let branch = self.branch(counter)?;
        let mut counts = Vec::new();
        for (basket, entries) in self.baskets(counter, &[entries])? {
            let place = branch.baskets.get(basket).map_or(0..0, |place| place.entries.clone());
            let values = self.counter_basket(counter, basket, place)?.slice(entries.start, entries.len());
            let values = match values.as_list_opt::<i64>() {
                Some(lists) => {
                    let (first, last) = (lists.offsets().first(), lists.offsets().last());
                    let (first, last) = (first.map_or(0, |&at| at as usize), last.map_or(0, |&at| at as usize));
                    lists.values().slice(first, last - first)
                }
                None => values,
            };
            let values = values.as_any().downcast_ref::<UInt64Array>();
            let values = values.ok_or_else(|| Error::corrupt("counter is not an integer"))?;
            counts.extend(values.values().iter().map(|&count| usize::try_from(count).unwrap_or(usize::MAX)));
        }
        Ok(counts)
    }

    /// Checks that a member of the items of a collection has as many values in each entry as the collection has items.
    pub(super) fn check_items(
        self,
        branch: usize,
        entries: Range<u64>,
        lengths: impl Iterator<Item = usize>,
        error: impl FnOnce() -> Error,
    ) -> Result<()> {
        let Some(collection) = self.collection_of(branch)? else { return Ok(()) };
        match lengths.eq(self.counts(collection, entries)?) {
            true => Ok(()),
            false => Err(error()),
        }
    }

    /// The branch with the numbers of items, for a branch of a member of them; `None` where no entry has any.
    fn collection_of(self, branch: usize) -> Result<Option<usize>> {
        let mut above = self.branch(branch)?.parent;
        while let Some(parent) = above {
            let branch = self.branch(parent)?;
            if let Some(element) = branch.element.as_ref().filter(|element| matches!(element.kind, 3 | 4)) {
                return Ok(Some(parent).filter(|_| element.max_items > 0));
            }
            above = branch.parent;
        }
        Ok(None)
    }

    /// The values of one basket of a counter.
    fn counter_basket(self, counter: usize, basket: usize, entries: Range<u64>) -> Result<ArrayRef> {
        let kept = || self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept().get(&(counter, basket)) {
            return Ok(Arc::clone(known));
        }
        // Not under the lock: other threads may decode the same basket meanwhile.
        let memory = Memory::new(LAYOUT_BYTES);
        let layout = layout::of_branch(self.source.tree(), counter, &Classes::new(self.source.infos()), &memory)?;
        let (number, is_list) = match &layout {
            ValueLayout::Rest(item) => (&**item, true),
            number => (number, false),
        };
        let data_type = match number {
            ValueLayout::Number(Basic::I8, None) => DataType::Int8,
            ValueLayout::Number(Basic::I16, None) => DataType::Int16,
            ValueLayout::Number(Basic::I32, None) => DataType::Int32,
            ValueLayout::Number(Basic::I64, None) => DataType::Int64,
            ValueLayout::Number(Basic::U8, None) => DataType::UInt8,
            ValueLayout::Number(Basic::U16, None) => DataType::UInt16,
            ValueLayout::Number(Basic::U32, None) => DataType::UInt32,
            ValueLayout::Number(Basic::U64, None) => DataType::UInt64,
            _ => return Err(Error::unsupported("counter is not an integer")),
        };
        let of = |data_type, is_nullable| match is_list {
            true => DataType::LargeList(Arc::new(ArrowField::new("item", data_type, is_nullable))),
            false => data_type,
        };
        let leaf = Leaf { branch: counter, layout: &layout, data_type: of(data_type, false) };
        let deeper = Self { depth: self.depth + 1, ..self };
        let counts = deeper.leaves(&[leaf], &[entries])?.pop();
        let counts = counts.ok_or_else(|| Error::corrupt("counter has no values"))?;
        // Numbers below zero become null, which holds 0.
        let counts = cast(&counts, &of(DataType::UInt64, true))?;
        self.memory.reserve_values(counts.get_array_memory_size() as u64)?;
        kept().insert((counter, basket), Arc::clone(&counts));
        Ok(counts)
    }
}

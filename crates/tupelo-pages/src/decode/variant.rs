//! Switch columns to type ids and offsets of dense unions.

use tupelo_format::encoding::{self, ColumnType, Encoding};

use crate::plan::{PageSlice, Segment};
use crate::{Error, Result};

/// A switch column in memory.
#[derive(Default)]
pub(super) struct Switch {
    pub(super) indexes: Vec<u64>,
    pub(super) tags: Vec<u32>,
    /// A whole page, to take a part from.
    spare: (Vec<u64>, Vec<u32>),
}

impl Switch {
    pub(super) fn of(count: usize) -> Self {
        Self { indexes: vec![0; count], tags: vec![0; count], ..Self::default() }
    }

    pub(super) fn decode(
        &mut self,
        slice: &PageSlice,
        encoding: &Encoding,
        elements: usize,
        packed: &[u8],
    ) -> Result<()> {
        debug_assert_eq!(encoding.column_type(), ColumnType::Switch);
        let (indexes, tags) = &mut self.spare;
        indexes.resize(elements, 0);
        tags.resize(elements, 0);
        encoding::decode_switch(packed, indexes, tags)?;
        let (from, to) = (slice.skip..slice.skip + slice.take, slice.to..slice.to + slice.take);
        self.indexes[to.clone()].copy_from_slice(&indexes[from.clone()]);
        self.tags[to].copy_from_slice(&tags[from]);
        Ok(())
    }
}

/// A variant's type ids and offsets.
pub(super) struct Variants {
    pub(super) type_ids: Vec<i8>,
    pub(super) offsets: Vec<i32>,
    /// Number of variants that have no value.
    pub(super) without_value: usize,
}

impl Variants {
    /// The variants of segments, and of each alternative the segments of its items.
    pub(super) fn new(switch: &Switch, segments: &[Segment], alternatives: usize) -> Result<(Self, Vec<Vec<Segment>>)> {
        let mut type_ids = Vec::with_capacity(switch.tags.len());
        let mut offsets = Vec::with_capacity(switch.tags.len());
        let mut items: Vec<Vec<Segment>> = vec![Vec::new(); alternatives];
        let mut counts = vec![0u64; alternatives + 1];
        let mut elements = switch.tags.iter().zip(&switch.indexes);
        for segment in segments {
            // By tag, the range of its items.
            let mut ranges: Vec<Option<(u64, u64)>> = vec![None; alternatives + 1];
            for (&tag, &index) in elements.by_ref().take(segment.count as usize) {
                let tag = tag as usize;
                if tag > alternatives {
                    return Err(Error::corrupt(format!("variant has tag {tag}, but {alternatives} alternatives")));
                }
                if tag > 0 {
                    let (_, next) = ranges[tag].get_or_insert((index, index));
                    if *next != index {
                        let what = format!("item {index} of alternative {tag} is out of order");
                        return Err(Error::corrupt(what));
                    }
                    let after = index.checked_add(1);
                    *next = after.ok_or_else(|| Error::corrupt("alternative has 2^64 items"))?;
                }
                let offset = i32::try_from(counts[tag]);
                offsets.push(offset.map_err(|_| Error::limit("more than 2^31 values of a variant in one batch"))?);
                counts[tag] += 1;
                type_ids.push(tag as i8);
            }
            // All of a cluster's variants have all items of its alternatives.
            let is_whole = segment.start == 0 && segment.total == Some(segment.count);
            for (range, items) in ranges[1..].iter().zip(&mut items) {
                let (start, end) = match *range {
                    Some(range) => range,
                    None if is_whole => (0, 0),
                    None => continue,
                };
                let total = (is_whole && start == 0).then_some(end);
                items.push(Segment { start, count: end - start, total, per_entry: None, ..*segment });
            }
        }
        Ok((Self { type_ids, offsets, without_value: counts[0] as usize }, items))
    }
}

//! Which bytes of a file its objects use beside their own records: pages, envelopes and baskets.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;

use tupelo_format::container::{self, Chunks, RecordKind, Walk};
use tupelo_format::descriptor::ColumnId;
use tupelo_format::locator::EnvelopeLink;
use tupelo_format::open::{ANCHOR_CLASS, PRE_RELEASE_CLASS};
use tupelo_pages::source::{self, BlobRange, Reservation, TreeSource};

use crate::reader::{File, Ntuple, TREE_CLASSES};
use crate::{Error, Result};

/// C++ class in the keys of pages and envelopes.
pub(in crate::ops) const BLOB_CLASS: &str = "RBlob";
/// C++ class in the keys of baskets.
const BASKET_CLASS: &str = "TBasket";
/// Ranges are joined with their neighbours when their number has doubled, and not below this.
const MIN_JOINED: usize = 4096;

/// Byte ranges of a file.
#[derive(Debug, Default)]
struct Ranges {
    all: Vec<Range<u64>>,
    /// How many there were when they were joined.
    joined: usize,
    reserved: Option<Reservation>,
}

impl Ranges {
    fn add(&mut self, file: &File, range: Range<u64>) -> Result<()> {
        match self.all.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.all.push(range),
        }
        if self.all.len() >= MIN_JOINED.max(2 * self.joined) {
            self.join();
            let bytes = 2 * size_of_val(self.all.as_slice()) as u64;
            self.reserved = None;
            self.reserved = Some(file.session().budget().reserve(bytes, "the places of pages and baskets")?);
        }
        Ok(())
    }

    fn join(&mut self) {
        self.all.sort_unstable_by_key(|range| range.start);
        self.all.dedup_by(|next, range| {
            let touches = next.start <= range.end;
            if touches {
                range.end = range.end.max(next.end);
            }
            touches
        });
        self.joined = self.all.len();
    }

    fn is_empty(&self) -> bool {
        self.all.iter().all(Range::is_empty)
    }

    /// Whether a range has bytes of them, once they are joined.
    fn overlap(&self, range: &Range<u64>) -> bool {
        let first = self.all.partition_point(|own| own.end <= range.start);
        self.all.get(first).is_some_and(|own| own.start < range.end)
    }
}

/// The bytes of objects.
#[derive(Debug, Default)]
struct Extents {
    /// Envelopes, and anchors of attribute sets.
    metadata: Ranges,
    /// Pages and baskets.
    data: Ranges,
}

impl Extents {
    /// Adds what an object uses beside its own record.
    fn add(&mut self, file: &File, object: &container::Object) -> Result<()> {
        let added = match object.key.class_name.as_str() {
            ANCHOR_CLASS | PRE_RELEASE_CLASS => {
                file.ntuple_of(object).and_then(|ntuple| self.add_ntuple(file, &ntuple))
            }
            class_name if TREE_CLASSES.contains(&class_name) => self.add_tree(file, object),
            _ => Ok(()),
        };
        added.map_err(|error| Error::unsupported(format!("'{}': {}", object.path, error.reason())))
    }

    fn add_ntuple(&mut self, file: &File, ntuple: &Ntuple) -> Result<()> {
        let source = ntuple.source();
        let (store, descriptor) = (source.store(), source.descriptor());
        let max_key = store.max_blob_bytes();
        let sets = descriptor.attribute_sets();
        let anchors = sets.iter().map(|set| EnvelopeLink { length: set.anchor_length.into(), locator: set.anchor });
        let lists = descriptor.cluster_groups().iter().map(|group| group.page_list);
        for link in [store.anchor().header, store.anchor().footer].into_iter().chain(anchors).chain(lists) {
            add(&mut self.metadata, file, store.envelope_range(&link)?, max_key)?;
        }
        for group in 0..descriptor.cluster_groups().len() {
            for cluster in source.group_clusters(group)? {
                for column in 0..source.listed_columns(&cluster)? as u32 {
                    let Some(stored) = source.column_pages(&cluster, ColumnId::from(column))? else { continue };
                    for page in &stored.pages {
                        let range = store.page_range(cluster.number, column, page)?;
                        add(&mut self.data, file, range, max_key)?;
                    }
                }
            }
        }
        let sets = sets.iter().map(|set| ntuple.open_attribute_set(set));
        sets.into_iter().try_for_each(|set| self.add_ntuple(file, &set?))
    }

    fn add_tree(&mut self, file: &File, object: &container::Object) -> Result<()> {
        let source = TreeSource::open(file.root_file()?.clone(), object)?;
        if let Some(refused) = source.tree().unreadable.first() {
            return Err(Error::unsupported(format!("branch '{}': {}", refused.path, refused.reason)));
        }
        for branch in source.tree().branches.iter().filter(|branch| !branch.is_elsewhere()) {
            for basket in 0..branch.baskets.len() {
                if let Some(range) = source.range(branch, basket)? {
                    self.data.add(file, range.start..range.end)?;
                }
            }
        }
        Ok(())
    }
}

/// Adds a payload, which may be spread over several blobs.
fn add(ranges: &mut Ranges, file: &File, payload: BlobRange, max_key: u64) -> Result<()> {
    match split(file.root_file()?, &payload, max_key)? {
        None => ranges.add(file, payload.start..payload.end),
        Some((chunks, rest)) => {
            ranges.add(file, chunks.first.start..chunks.table.end)?;
            rest.into_iter().try_for_each(|range| ranges.add(file, range))
        }
    }
}

/// How a payload is spread over several blobs, and the parts after the first one; `None` if it is whole.
pub(in crate::ops) fn split(
    file: &source::File,
    payload: &BlobRange,
    max_key: u64,
) -> Result<Option<(Chunks, Vec<Range<u64>>)>> {
    let Some(chunks) = Chunks::split(payload.start, payload.bytes(), max_key)? else { return Ok(None) };
    let rest = file.attempt(|fetched| {
        let table = fetched.get(chunks.table.start, chunks.table.end - chunks.table.start)?;
        Ok(chunks.ranges(&table, fetched.size())?)
    })?;
    Ok(Some((chunks, rest)))
}

/// Records that only some objects use.
#[derive(Debug, Default)]
pub(super) struct Freed {
    /// Their places, keys included.
    pub(super) records: Vec<Range<u64>>,
    /// Their total size.
    pub(super) bytes: u64,
    /// Why there may be others.
    pub(super) kept: Option<String>,
}

/// Finds the records that only the objects whose own records begin at the offsets of `chosen` use; those of `gone` use
/// nothing any more. With `keeps_data`, the pages and baskets of the chosen ones stay in use. If it is not known what
/// the other objects use, no record is found.
pub(super) fn used_only_by(
    file: &File,
    chosen: &BTreeSet<u64>,
    gone: &BTreeSet<u64>,
    keeps_data: bool,
) -> Result<Freed> {
    let file = file.clone().with_work_limit();
    let root = file.root_file()?;
    let (mut own, mut others, mut freed) = (Extents::default(), Extents::default(), Freed::default());
    let objects = || root.listing().map(|listing| listing.objects().map(|(object, _)| object));
    for object in objects()?.filter(|object| chosen.contains(&object.key.seek_key)) {
        if let Err(error) = own.add(&file, object) {
            freed.kept = Some(error.reason());
        }
    }
    if keeps_data {
        std::mem::swap(&mut own.data, &mut others.data);
    }
    if own.metadata.is_empty() && own.data.is_empty() {
        return Ok(freed);
    }
    let remains =
        |object: &&container::Object| !chosen.contains(&object.key.seek_key) && !gone.contains(&object.key.seek_key);
    for object in objects()?.filter(remains) {
        if let Err(error) = others.add(&file, object) {
            freed.kept = Some(error.reason());
            return Ok(freed);
        }
    }
    let listed: BTreeSet<u64> = objects()?.map(|object| object.key.seek_key).collect();
    for ranges in [&mut own.metadata, &mut own.data, &mut others.metadata, &mut others.data] {
        ranges.join();
    }
    let is_free = |range: &Range<u64>| {
        (own.metadata.overlap(range) || own.data.overlap(range))
            && !others.metadata.overlap(range)
            && !others.data.overlap(range)
    };
    let walked = records(root, |record, class_name| {
        // No record of another kind is freed, whatever a damaged object refers to.
        let is_blob = [BLOB_CLASS, BASKET_CLASS, ANCHOR_CLASS].contains(&class_name);
        if is_blob && !listed.contains(&record.start) && is_free(&record) {
            freed.bytes += record.end - record.start;
            freed.records.push(record);
        }
    });
    match walked {
        Ok(()) => Ok(freed),
        // Lengths before the damage may be wrong too.
        Err(error) => {
            Ok(Freed { kept: Some(format!("the records of the file: {}", error.reason())), ..Freed::default() })
        }
    }
}

/// Whether any record is a basket, as far as the records can be read.
pub(super) fn has_baskets(file: &source::File) -> bool {
    let mut is_found = false;
    // Damage is for those to report who need what is damaged.
    let _walked = records(file, |_, class_name| is_found |= class_name == BASKET_CLASS);
    is_found
}

/// Visits all records that have a key, each with its class.
fn records(file: &source::File, mut visit: impl FnMut(Range<u64>, &str)) -> Result<()> {
    // How long key lists are is known from the directories.
    file.listing()?;
    // A step is tried again with more bytes; it moves on only when it succeeds.
    let walk = RefCell::new(file.attempt_with_directories(Walk::new)?);
    while let Some(record) = file.attempt(|fetched| walk.borrow_mut().next(fetched))? {
        if let RecordKind::Key(key) = record.kind {
            visit(record.offset..record.offset + record.nbytes, &key.class_name);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined_and_found() {
        let all = vec![10..20, 20..25, 50..60, 5..11, 55..70, 100..100];
        let mut ranges = Ranges { all, ..Ranges::default() };
        ranges.join();
        assert_eq!(ranges.all, [5..25, 50..70, 100..100]);
        let found = [0..5, 0..6, 24..25, 25..50, 40..200, 70..100].map(|range| ranges.overlap(&range));
        assert_eq!(found, [false, true, true, false, true, false]);
        assert!(Ranges::default().is_empty());
    }
}

//! Entries of trees moved to other baskets: other entries, sizes of baskets and clusters, with the bytes of each entry as they
//! are, so that types, classes and the record of the tree stay.

use std::iter::once;
use std::ops::{ControlFlow, Range};

use tupelo_core::pool;
use tupelo_format::compression::{self, Compression};
use tupelo_format::wire::Memory;
use tupelo_pages::decode::basket_lengths;
use tupelo_pages::plan::EntrySet;
use tupelo_pages::source::{BlobRange, TreeSource, check_record};
use tupelo_ttree::basket::{BasketHead, StoredEntries};
use tupelo_ttree::classes::Classes;
use tupelo_ttree::moved::MovableTree;
use tupelo_ttree::references::References;
use tupelo_ttree::tree::Stored;
use tupelo_ttree::write::{BasketPlace, FinishedBasket, OpenBasket};
use tupelo_ttree::{Branch, ValueLayout, fields};

use super::moved::MovedTreeWriter;
use super::options::codec_of;
use crate::reader::Tree;
use crate::{Error, ErrorKind, Result};

/// Stored bytes of baskets whose entries are moved together.
const GROUP_BYTES: u64 = 16 << 20;
/// Size of baskets of branches that do not say it, as in ROOT.
const BASKET_BYTES: u32 = 32_000;

/// A branch whose entries are moved.
struct Recut<'t> {
    branch: usize,
    number_in_file: usize,
    /// How its values are stored, if that is known.
    layout: Option<&'t ValueLayout>,
    name: String,
    /// Whether references between its objects may count from where an entry is.
    is_placed: bool,
    codec: Compression,
    basket_bytes: usize,
    open: OpenBasket,
    /// The entry of the new tree with which the open basket begins.
    first_entry: u64,
    /// The last basket that was read, and its number.
    read: Option<(usize, StoredEntries)>,
}

/// A full basket, compressed.
struct Sealed {
    /// Place among the branches of the group.
    place: usize,
    first_entry: u64,
    basket: FinishedBasket,
    payload: Vec<u8>,
}

/// The numbers of the baskets that hold entries of a set.
fn baskets_of(branch: &Branch, entries: &EntrySet) -> Vec<usize> {
    let numbered = branch.baskets.iter().enumerate();
    numbered.filter(|(_, place)| entries.meets(&place.entries)).map(|(number, _)| number).collect()
}

/// The chosen entries of each new cluster.
fn clusters(source: &TreeSource, chosen: &EntrySet, auto_flush: Option<u64>) -> Vec<EntrySet> {
    let clusters: Vec<EntrySet> = match auto_flush {
        Some(size) => {
            let starts = (0..chosen.len()).step_by(usize::try_from(size).unwrap_or(usize::MAX));
            starts.map(|start| chosen.at(once(start..chosen.len().min(start.saturating_add(size))))).collect()
        }
        None => source.clusters(0..u64::MAX).map(|cluster| chosen.within(cluster)).collect(),
    };
    clusters.into_iter().filter(|cluster| !cluster.is_empty()).collect()
}

impl MovedTreeWriter {
    /// Moves the chosen entries of a tree; false if `progress` ended the work.
    pub(super) fn recut(
        &mut self,
        tree: &Tree,
        movable: &MovableTree,
        chosen: &EntrySet,
        process_offset: u16,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<bool> {
        let mut branches = self.begin_branches(tree, movable)?;
        let clusters = clusters(tree.source(), chosen, self.options.auto_flush());
        let mut done = 0;
        for cluster in &clusters {
            let mut rest = branches.as_mut_slice();
            while !rest.is_empty() {
                let mut bytes = 0;
                let fits = rest.iter().take_while(|recut| {
                    let Some(branch) = movable.tree.branches.get(recut.branch) else { return true };
                    let baskets = baskets_of(branch, cluster).into_iter().filter_map(|it| branch.baskets.get(it));
                    bytes += baskets.map(|place| place.stored.bytes()).sum::<u64>();
                    bytes <= GROUP_BYTES
                });
                let (group, others) = rest.split_at_mut(fits.count().max(1));
                done += self.move_group(tree, movable, group, cluster, process_offset)?;
                rest = others;
                if progress(done).is_break() {
                    return Ok(false);
                }
            }
            self.moved_entries += cluster.len();
        }
        for (new, branch) in self.new.branches.iter_mut().zip(&movable.tree.branches) {
            new.entries += if branch.entries > 0 { chosen.len() } else { 0 };
        }
        self.new.append_clusters(&movable.tree, clusters.iter().map(EntrySet::len), self.options.auto_flush());
        self.clusters += clusters.len() as u64;
        Ok(true)
    }

    /// The branches that have baskets.
    fn begin_branches<'t>(&self, tree: &'t Tree, movable: &MovableTree) -> Result<Vec<Recut<'t>>> {
        let layouts = fields::layouts(tree.source().fields());
        let codecs = self.options.codecs(movable)?;
        let own = movable.tree.branches.iter().enumerate().zip(codecs);
        let own = own.filter(|((index, branch), _)| movable.is_kept(*index) && branch.entries > 0);
        own.map(|((index, branch), codec)| {
            let basket_bytes = self.options.basket_bytes().or(movable.basket_bytes(index)).unwrap_or(BASKET_BYTES);
            let number_in_file = movable.number_in_file(index).unwrap_or(index);
            Ok(Recut {
                branch: index,
                number_in_file,
                layout: layouts.get(&number_in_file).copied(),
                name: branch.name.clone(),
                is_placed: movable.is_placed(index),
                codec: codec.unwrap_or_else(|| codec_of(branch)),
                basket_bytes: basket_bytes as usize,
                open: OpenBasket::of_stored(&self.new.name, &branch.name)?,
                first_entry: 0,
                read: None,
            })
        })
        .collect()
    }

    /// Moves the entries of a cluster of some branches. Returns the bytes that were written.
    fn move_group(
        &mut self,
        tree: &Tree,
        movable: &MovableTree,
        group: &mut [Recut<'_>],
        cluster: &EntrySet,
        process_offset: u16,
    ) -> Result<u64> {
        let source = tree.source();
        let mut wanted: Vec<(usize, usize, Option<BlobRange>)> = Vec::new();
        for (place, recut) in group.iter().enumerate() {
            let Some(branch) = movable.tree.branches.get(recut.branch) else { continue };
            for number in baskets_of(branch, cluster) {
                if recut.read.as_ref().is_none_or(|(known, _)| *known != number) {
                    let named = |e: Error| tree.context(e.within(format!("branch '{}'", recut.name)));
                    let range = source.range(branch, number).map_err(named)?;
                    wanted.push((place, number, range));
                }
            }
        }
        let ranges: Vec<BlobRange> = wanted.iter().filter_map(|(.., range)| *range).collect();
        let bytes = ranges.iter().map(BlobRange::bytes).sum();
        let _reserved = source.session().budget().reserve(bytes, "baskets").map_err(|e| tree.context(e))?;
        let mut records = source.fetch(&ranges).map_err(|e| tree.context(e))?.into_iter();
        let tasks: Vec<_> = wanted
            .into_iter()
            .map(|(place, number, range)| (place, number, range.and_then(|range| Some((range.start, records.next()?)))))
            .collect();
        let opened = pool::map(tasks, bytes, |(place, number, record)| {
            let recut = group.get(place).ok_or_else(|| Error::corrupt("the branch was not chosen"))?;
            let branch = movable.tree.branches.get(recut.branch);
            let stored = branch.and_then(|branch| Some(&branch.baskets.get(number)?.stored));
            let open = || match (&record, stored) {
                (Some((offset, record)), _) => {
                    if let Some(branch) = branch {
                        check_record([&branch.file_name, &branch.name], record, *offset)?;
                    }
                    open_record(record, *offset)
                }
                (None, Some(Stored::Embedded(bytes))) => Ok(StoredEntries::of_embedded(bytes)?),
                _ => Err(Error::corrupt("the basket was not read")),
            };
            let named = |error: Error| {
                tree.context(error.within(format!("basket {number}")).within(format!("branch '{}'", recut.name)))
            };
            let mut entries = open().map_err(&named)?;
            if entries.lacks_lengths() {
                let lengths = basket_lengths(source, recut.number_in_file, recut.layout, number).map_err(&named)?;
                entries.set_lengths(lengths).map_err(|error| named(error.into()))?;
            }
            entries.add_process_offset(process_offset).map_err(|error| named(error.into()))?;
            if let Some(branch) = branch.filter(|_| recut.is_placed) {
                let references = References::of(branch, &Classes::new(source.infos()));
                let memory = || Memory::new(source.session().budget().left());
                let found = entries.find_references(|bytes, origin| references.find(bytes, origin, &memory()));
                found.map_err(|error| named(not_moved(error.into())))?;
            }
            Ok((place, number, entries))
        })?;
        let mut opened = opened.into_iter().peekable();
        let mut full = Vec::new();
        for (place, recut) in group.iter_mut().enumerate() {
            let Some(branch) = movable.tree.branches.get(recut.branch) else { continue };
            recut.first_entry = self.moved_entries;
            for number in baskets_of(branch, cluster) {
                if let Some((_, number, entries)) = opened.next_if(|(of, it, _)| (*of, *it) == (place, number)) {
                    recut.read = Some((number, entries));
                }
                let places = branch.baskets.get(number).map_or(0..0, |basket| basket.entries.clone());
                for range in cluster.within(&places).ranges() {
                    let own = range.start - places.start..range.end - places.start;
                    let own = own.start as usize..own.end as usize;
                    recut.append(own, |first_entry, basket| full.push((place, first_entry, basket))).map_err(|e| {
                        let named = e.within(format!("basket {number}")).within(format!("branch '{}'", recut.name));
                        tree.context(named)
                    })?;
                }
            }
            if recut.open.entries() > 0 {
                full.push((place, recut.first_entry, recut.open.finish()));
            }
        }
        self.put_full(group, full)
    }

    /// Compresses and writes full baskets. Returns the bytes that were written.
    fn put_full(&mut self, group: &[Recut<'_>], full: Vec<(usize, u64, FinishedBasket)>) -> Result<u64> {
        let bytes = full.iter().map(|(.., basket)| basket.object.len() as u64).sum();
        let sealed = pool::map(full, bytes, |(place, first_entry, basket)| {
            let codec = group.get(place).map_or(Compression::DEFAULT, |recut| recut.codec);
            let mut payload = Vec::new();
            compression::compress(codec, &basket.object, &mut payload)?;
            Ok(Sealed { place, first_entry, basket, payload })
        })?;
        let payloads: Vec<&[u8]> = sealed.iter().map(|it| it.payload.as_slice()).collect();
        let name = self.new.name.clone();
        let head = |number: usize, at, datime| match sealed.get(number) {
            Some(it) => {
                let branch = group.get(it.place).map_or("", |recut| recut.name.as_str());
                it.basket.head(at, &name, branch, it.payload.len(), datime)
            }
            None => Ok(Vec::new()),
        };
        let offsets = self.sink.put_records(&payloads, head).map_err(|error| self.context(error))?;
        let mut written = 0;
        for (it, offset) in sealed.iter().zip(offsets) {
            let branch = group.get(it.place).and_then(|recut| self.new.branches.get_mut(recut.branch));
            let Some(branch) = branch else { continue };
            let bytes = u64::from(it.basket.key_bytes) + it.payload.len() as u64;
            branch.bytes[0] += u64::from(it.basket.key_bytes) + it.basket.object.len() as u64;
            branch.bytes[1] += bytes;
            let bytes =
                u32::try_from(bytes).map_err(|_| Error::limit(format!("basket of {bytes} bytes is too long")))?;
            branch.baskets.push(BasketPlace { first_entry: it.first_entry, offset, bytes });
            written += u64::from(bytes);
        }
        Ok(written)
    }
}

impl Recut<'_> {
    /// Appends entries of the basket that was read last.
    fn append(&mut self, mut entries: Range<usize>, mut full: impl FnMut(u64, FinishedBasket)) -> Result<()> {
        let Some((_, stored)) = &self.read else { return Err(Error::corrupt("the basket was not read")) };
        while !entries.is_empty() {
            let (taken, is_full) = self.open.append_stored(stored, entries.clone(), self.basket_bytes)?;
            entries.start += taken;
            if is_full {
                let basket = self.open.finish();
                let first_entry = self.first_entry;
                self.first_entry += u64::from(basket.entries);
                full(first_entry, basket);
            }
        }
        Ok(())
    }
}

/// The error for an entry with objects that name their classes, and cannot be read.
fn not_moved(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Limit => error,
        _ => Error::unsupported(format!("references between its objects cannot be moved: {}", error.reason())),
    }
}

/// The entries of a basket in a record at an offset of the file.
fn open_record(record: &[u8], offset: u64) -> Result<StoredEntries> {
    let head = BasketHead::read(record, offset)?;
    let payload = record.get(usize::from(head.key_bytes)..head.stored_bytes as usize);
    let payload = payload.ok_or_else(|| Error::corrupt("the record ends before its basket"))?;
    if !head.is_compressed() {
        return Ok(StoredEntries::of_record(head, payload)?);
    }
    let mut object = vec![0; head.object_bytes as usize];
    compression::decompress_into(payload, &mut object)?;
    Ok(StoredEntries::of_record(head, &object)?)
}

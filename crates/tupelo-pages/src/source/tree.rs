//! A tree in a ROOT file, and the bytes of its baskets.

mod others;

use std::ops::Range;

use bytes::Bytes;
use tupelo_format::checksum::xxh3;
use tupelo_format::container;
use tupelo_format::streamer::StreamerInfos;
use tupelo_format::wire::Memory;
use tupelo_storage::{ByteSource, display_name};
use tupelo_ttree::basket::BasketHead;
use tupelo_ttree::fields::Field;
use tupelo_ttree::moved::MovableTree;
use tupelo_ttree::tree::{BasketPlace, Refused, Stored};
use tupelo_ttree::{Branch, Tree};

pub use self::others::Origin;
pub(super) use self::others::OtherFiles;
use super::{Blob, BlobRange, File, KeptPages, RequestMemory, RequestPages, Reservation, Session};
use crate::{Error, Result};

/// Compressed bytes of a cluster, where a tree does not say what was flushed together.
const CLUSTER_BYTES: u64 = 32 << 20;
/// Memory that a tree takes for each byte of its record.
const MEMORY_PER_BYTE: u64 = 8;
/// Schemas and lists of names that are made of the fields of a tree, each as large as these.
const SCHEMAS: u64 = 8;

/// How the baskets of a tree are fetched, in the words of ROOT's `TTreeCache`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_structs, reason = "options, made by callers")]
pub struct TreeCache {
    /// Bytes of the baskets that one vector read fetches: by default up to 16 MiB of a remote file, while the threads that
    /// decode read a local file themselves. With 0 each basket is a separate read.
    pub bytes: Option<u64>,
    /// The baskets of so many entries at the beginning of the tree are fetched one by one, as ROOT does with 100 entries
    /// while it learns which branches are used; 0 by default, because a request names its fields.
    pub learn_entries: u64,
}

/// The metadata of a tree.
#[derive(Debug)]
pub struct TreeSource {
    file: File,
    object: container::Object,
    tree: Tree,
    /// Names of other files that have baskets, sorted. The blob of the first of them has the number 1.
    other_names: Vec<String>,
    fields: Vec<Field>,
    refused: Vec<Refused>,
    infos: StreamerInfos,
    clusters: Vec<Range<u64>>,
    identity: u64,
    record_bytes: u64,
    stored_record_bytes: u64,
    kept: KeptPages,
    _reserved: [Reservation; 3],
}

impl TreeSource {
    /// Opens a tree that the directories of a file list.
    pub fn open(file: File, object: &container::Object) -> Result<Self> {
        let mut infos = file.attempt(container::streamer_infos)?;
        let key = &object.key;
        let bytes = file.attempt(|fetched| container::object_bytes(fetched, key))?;
        let budget = file.session().budget();
        let memory = (bytes.len() as u64).saturating_mul(MEMORY_PER_BYTE);
        let tree_memory = budget.reserve(memory, "the tree")?;
        let tree = Tree::read(&bytes, key.key_bytes, &key.class_name, &infos, &Memory::new(budget.left()))?;
        tree.branches.iter().for_each(|branch| infos.describe_links(&branch.class_name));
        let memory = Memory::new(budget.left() / SCHEMAS);
        let (fields, refused) = tree.fields(&infos, &memory)?;
        let schema_memory = budget.reserve(memory.used().saturating_mul(SCHEMAS), "the fields of the tree")?;
        let clusters = tree.clusters(CLUSTER_BYTES);
        // They cost a file nothing, but are bounded.
        let cluster_bytes = size_of_val(clusters.as_slice()) as u64;
        let cluster_memory = budget.reserve(cluster_bytes, "the clusters of the tree")?;
        let elsewhere = tree.branches.iter().filter(|branch| branch.is_elsewhere());
        let mut other_names: Vec<String> = elsewhere.map(|branch| branch.file_name.clone()).collect();
        other_names.sort_unstable();
        other_names.dedup();
        let kept = KeptPages::new(budget);
        let identity = xxh3(&[&bytes[..], &file.size().to_le_bytes()].concat());
        Ok(Self {
            file,
            object: object.clone(),
            tree,
            other_names,
            fields,
            refused,
            infos,
            clusters,
            identity,
            record_bytes: bytes.len() as u64,
            stored_record_bytes: key.nbytes.into(),
            kept,
            _reserved: [tree_memory, schema_memory, cluster_memory],
        })
    }

    /// The file of the tree.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The record of the tree, for moving its baskets, and the layouts of all classes in the file, and of those in the record.
    pub fn movable(&self) -> Result<(MovableTree, StreamerInfos)> {
        let mut infos = self.file.attempt(container::streamer_infos)?;
        let key = &self.object.key;
        let bytes = self.file.attempt(|fetched| container::object_bytes(fetched, key))?;
        let memory = Memory::new(self.session().budget().left());
        let read = (self.tree.clone(), self.fields.as_slice());
        let movable = MovableTree::read(read, bytes, key.key_bytes, &infos, &memory)?;
        infos.merge(&movable.known_layouts(&infos));
        Ok((movable, infos))
    }

    /// A hash of the record of the tree and the size of the file.
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// Length of the record of the tree, decompressed.
    pub fn record_bytes(&self) -> u64 {
        self.record_bytes
    }

    /// Bytes of the record of the tree in the file.
    pub fn stored_record_bytes(&self) -> u64 {
        self.stored_record_bytes
    }

    /// Offset and bytes of that record.
    pub fn record_place(&self) -> (u64, u64) {
        (self.object.key.seek_key, self.stored_record_bytes)
    }

    /// Budget, deviations and counters of the file.
    pub fn session(&self) -> &Session {
        self.file.session()
    }

    /// The record of the tree.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The fields that can be read.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Branches that cannot be read, and why.
    pub fn refused(&self) -> &[Refused] {
        &self.refused
    }

    /// Streamer info of the file.
    pub fn infos(&self) -> &StreamerInfos {
        &self.infos
    }

    /// The memory of a request. Baskets in other files count for it once these are open.
    pub fn request_memory(&self) -> RequestMemory {
        let others = self.other_names.iter().filter_map(|name| self.file.others.known(name)?.size().ok());
        self.session().budget().request(others.fold(self.file.size(), u64::saturating_add))
    }

    /// The decompressed baskets that are kept for later requests, if the request uses them.
    pub(crate) fn kept<'k>(&'k self, request: &'k RequestMemory) -> Option<RequestPages<'k>> {
        self.kept.of(request.keep())
    }

    /// Number of clusters.
    pub fn cluster_count(&self) -> usize {
        self.clusters.len()
    }

    /// The clusters that hold entries of a range.
    pub fn clusters(&self, entries: Range<u64>) -> impl Iterator<Item = &Range<u64>> {
        let first = self.cluster_of(entries.start);
        self.clusters.iter().skip(first).take_while(move |cluster| cluster.start < entries.end)
    }

    /// The number of the cluster that holds an entry.
    pub fn cluster_of(&self, entry: u64) -> usize {
        self.clusters.partition_point(|cluster| cluster.end <= entry)
    }

    /// Opens the other files that have the baskets of some branches.
    pub fn open_others(&self, branches: impl IntoIterator<Item = usize>) -> Result<()> {
        for index in branches {
            let opened = self.tree.branches.get(index).map_or(Ok(()), |branch| self.open_other(branch));
            opened.map_err(|error| error.within(format!("branch '{}'", self.tree.path(index))))?;
        }
        Ok(())
    }

    /// Opens the other file that has the baskets of a branch, if there is one.
    pub fn open_other(&self, branch: &Branch) -> Result<()> {
        let is_needed = |place: &BasketPlace| matches!(place.stored, Stored::InFile { .. });
        match branch.is_elsewhere() && branch.baskets.iter().any(is_needed) {
            true => self.file.others.open(&branch.file_name).map(drop),
            false => Ok(()),
        }
    }

    /// The name of another file that has baskets; `None` for the tree's own.
    pub fn other_name(&self, blob: Blob) -> Option<&str> {
        let index = blob.number.checked_sub(1)?;
        self.other_names.get(usize::try_from(index).ok()?).map(String::as_str)
    }

    /// The file that has the baskets of a branch.
    pub fn blob_of(&self, branch: &Branch) -> Blob {
        let other = self.other_names.binary_search(&branch.file_name).ok().filter(|_| branch.is_elsewhere());
        Blob::numbered(other.map_or(0, |index| index as u64 + 1))
    }

    /// Runs work on a file with baskets.
    fn with_blob<T>(&self, blob: Blob, work: impl FnOnce(&dyn ByteSource) -> Result<T>) -> Result<T> {
        match self.other_name(blob) {
            None => work(self.file.source()),
            Some(name) => work(&*self.file.others.open(name)?),
        }
    }

    /// The record of a basket in its file; `None` where it is in the tree's own record.
    pub fn range(&self, branch: &Branch, basket: usize) -> Result<Option<BlobRange>> {
        match branch.baskets.get(basket).map(|place| &place.stored) {
            Some(Stored::InFile { offset, bytes }) => self.record(branch, *offset, *bytes).map(Some),
            _ => Ok(None),
        }
    }

    /// The bytes of a record of a branch, which must lie in its file.
    pub(crate) fn record(&self, branch: &Branch, offset: u64, bytes: u32) -> Result<BlobRange> {
        let blob = self.blob_of(branch);
        let size = self.with_blob(blob, |source| Ok(source.size()?))?;
        match offset.checked_add(bytes.into()).filter(|&end| end <= size) {
            Some(end) => Ok(BlobRange { blob, start: offset, end }),
            None => {
                let what = format!("{bytes} bytes at byte {offset} extend past the end of the file ({size} bytes)");
                Err(in_other(&branch.file_name, Error::corrupt(what)))
            }
        }
    }

    /// Whether the decoding thread reads a record itself.
    pub fn is_read_in_place(&self, range: &BlobRange) -> bool {
        let is_local = |source: &dyn ByteSource| Ok(source.reads_in_place(&(range.start..range.end)));
        self.with_blob(range.blob, is_local).unwrap_or(false)
    }

    /// Fetches records with as few requests as the hints of the storage allow.
    pub fn fetch(&self, ranges: &[BlobRange]) -> Result<Vec<Bytes>> {
        let mut numbered: Vec<(usize, &BlobRange)> = ranges.iter().enumerate().collect();
        numbered.sort_by_key(|(_, range)| range.blob);
        let mut fetched = vec![Bytes::new(); ranges.len()];
        for group in numbered.chunk_by(|(_, range), (_, next)| range.blob == next.blob) {
            let Some((_, first)) = group.first() else { continue };
            let own: Vec<Range<u64>> = group.iter().map(|(_, range)| range.start..range.end).collect();
            let read = self.with_blob(first.blob, |source| Ok(source.read_ranges(&own)?))?;
            for ((number, _), bytes) in group.iter().zip(read) {
                if let Some(place) = fetched.get_mut(*number) {
                    *place = bytes;
                }
            }
        }
        Ok(fetched)
    }

    /// The same, with the records one after the other in memory.
    pub fn fetch_joined(&self, ranges: &[BlobRange]) -> Result<Vec<u8>> {
        let whole = match ranges {
            [first, .., last] if ranges.is_sorted_by(BlobRange::is_followed_by) && self.is_read_in_place(first) => {
                Some(BlobRange { end: last.end, ..*first })
            }
            _ => None,
        };
        let read = self.fetch(whole.as_ref().map_or(ranges, std::slice::from_ref))?;
        // One that nothing else refers to is not copied.
        Ok(<[Bytes; 1]>::try_from(read).map_or_else(|read| read.concat(), |[whole]| whole.into()))
    }

    /// Reads a record.
    pub(crate) fn read_into(&self, range: &BlobRange, room: &mut [u8]) -> Result<()> {
        self.with_blob(range.blob, |source| Ok(source.read_into(range.start, &mut [room])?))
    }

    /// The error that explains apparent damage: a file that was changed after it was opened is not damaged.
    pub fn unless_changed(&self, error: Error) -> Error {
        let others = self.other_names.iter().filter_map(|name| self.file.others.known(name));
        others.fold(error.unless_changed(self.file.source()), |error, other| error.unless_changed(&*other))
    }
}

/// Refuses a record of another file that is not a basket of a branch: the file may have been replaced. The first name is that
/// of the file, empty for that of the tree, the other one that of the branch.
pub fn check_record([file, branch]: [&str; 2], record: &[u8], offset: u64) -> Result<()> {
    match file.is_empty() {
        true => Ok(()),
        false => BasketHead::check_branch(record, offset, branch).map_err(|error| in_other(file, error.into())),
    }
}

fn in_other(file: &str, error: Error) -> Error {
    if file.is_empty() { error } else { error.within(format!("file '{}'", display_name(file))) }
}

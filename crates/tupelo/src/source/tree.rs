//! A tree in a ROOT file, and the bytes of its baskets.

use std::ops::Range;

use bytes::Bytes;
use tupelo_format::checksum::xxh3;
use tupelo_format::container;
use tupelo_format::streamer::StreamerInfos;
use tupelo_format::wire::Memory;
use tupelo_ttree::fields::Field;
use tupelo_ttree::moved::MovableTree;
use tupelo_ttree::tree::{Refused, Stored};
use tupelo_ttree::{Branch, Tree};

use super::{File, RequestMemory, Reservation, Session};
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
pub(crate) struct TreeSource {
    file: File,
    object: container::Object,
    tree: Tree,
    fields: Vec<Field>,
    refused: Vec<Refused>,
    infos: StreamerInfos,
    clusters: Vec<Range<u64>>,
    identity: u64,
    record_bytes: u64,
    stored_record_bytes: u64,
    _reserved: [Reservation; 3],
}

impl TreeSource {
    /// Opens a tree that the directories of a file list.
    pub(crate) fn open(file: File, object: &container::Object) -> Result<Self> {
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
        let identity = xxh3(&[&bytes[..], &file.size().to_le_bytes()].concat());
        Ok(Self {
            file,
            object: object.clone(),
            tree,
            fields,
            refused,
            infos,
            clusters,
            identity,
            record_bytes: bytes.len() as u64,
            stored_record_bytes: key.nbytes.into(),
            _reserved: [tree_memory, schema_memory, cluster_memory],
        })
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// The record of the tree, for moving its baskets, and the layouts of all classes in the file.
    pub(crate) fn movable(&self) -> Result<(MovableTree, StreamerInfos)> {
        let infos = self.file.attempt(container::streamer_infos)?;
        let key = &self.object.key;
        let bytes = self.file.attempt(|fetched| container::object_bytes(fetched, key))?;
        let memory = Memory::new(self.session().budget().left());
        let movable = MovableTree::read(bytes.to_vec(), key.key_bytes, &key.class_name, &infos, &memory)?;
        Ok((movable, infos))
    }

    /// A hash of the record of the tree and the size of the file.
    pub(crate) fn identity(&self) -> u64 {
        self.identity
    }

    pub(crate) fn record_bytes(&self) -> u64 {
        self.record_bytes
    }

    /// Bytes of the record of the tree in the file.
    pub(crate) fn stored_record_bytes(&self) -> u64 {
        self.stored_record_bytes
    }

    pub(crate) fn session(&self) -> &Session {
        self.file.session()
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    pub(crate) fn fields(&self) -> &[Field] {
        &self.fields
    }

    pub(crate) fn refused(&self) -> &[Refused] {
        &self.refused
    }

    pub(crate) fn infos(&self) -> &StreamerInfos {
        &self.infos
    }

    pub(crate) fn request_memory(&self) -> RequestMemory {
        self.session().budget().request(self.file.size())
    }

    /// Number of clusters.
    pub(crate) fn cluster_count(&self) -> usize {
        self.clusters.len()
    }

    /// The clusters that hold entries of a range.
    pub(crate) fn clusters(&self, entries: Range<u64>) -> impl Iterator<Item = &Range<u64>> {
        let first = self.cluster_of(entries.start);
        self.clusters.iter().skip(first).take_while(move |cluster| cluster.start < entries.end)
    }

    /// The number of the cluster that holds an entry.
    pub(crate) fn cluster_of(&self, entry: u64) -> usize {
        self.clusters.partition_point(|cluster| cluster.end <= entry)
    }

    /// The record of a basket in the file; `None` where it is in the tree's own record.
    pub(crate) fn range(&self, branch: &Branch, basket: usize) -> Result<Option<Range<u64>>> {
        match branch.baskets.get(basket).map(|place| &place.stored) {
            Some(Stored::InFile { offset, bytes }) => self.record(*offset, *bytes).map(Some),
            _ => Ok(None),
        }
    }

    /// The bytes of a record, which must lie in the file.
    pub(crate) fn record(&self, offset: u64, bytes: u32) -> Result<Range<u64>> {
        let size = self.file.size();
        match offset.checked_add(bytes.into()).filter(|&end| end <= size) {
            Some(end) => Ok(offset..end),
            None => {
                let what = format!("{bytes} bytes at byte {offset} extend past the end of the file ({size} bytes)");
                Err(Error::corrupt(what))
            }
        }
    }

    /// Whether the decoding thread reads a record itself.
    pub(crate) fn is_read_in_place(&self, range: &Range<u64>) -> bool {
        self.file.source().reads_in_place(range)
    }

    /// Fetches records with as few requests as the hints of the storage allow.
    pub(crate) fn fetch(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        Ok(self.file.source().read_ranges(ranges)?)
    }

    /// Reads a record.
    pub(crate) fn read_into(&self, start: u64, room: &mut [u8]) -> Result<()> {
        Ok(self.file.source().read_into(start, &mut [room])?)
    }
}

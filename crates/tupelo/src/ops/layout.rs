//! The byte map of a file: the owner of every byte.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use tupelo_format::container::{self, RecordKind, Walk};
use tupelo_format::descriptor::{ColumnId, Descriptor, FieldId};
use tupelo_format::locator::EnvelopeLink;
use tupelo_pages::sink::Mapping;
use tupelo_pages::source::{self, Blob, BlobRange, ObjectKeys, Objects, Reservation};

use super::each_ntuple;
use super::inspect::shown_fields;
use super::objects::extents::{BLOB_CLASS, split};
use crate::reader::{File, Ntuple};
use crate::{Error, Result};

/// Memory of a piece and of the region that becomes of it, in bytes.
const PIECE_MEMORY: u64 = (size_of::<Piece>() + size_of::<Region>()) as u64;
/// Pieces are counted once there are this many.
const MIN_COUNTED_PIECES: usize = 1024;
/// Name of the anchor of an attribute set among envelopes.
const ANCHOR: &str = "anchor";

/// The kinds of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content {
    /// The header of the ROOT file, and the space it reserves.
    FileHeader,
    /// A record other than a blob, with its key: an object, a directory, a list of keys, streamer info.
    Record {
        /// C++ class.
        class_name: String,
        /// Name.
        name: String,
        /// Which version of the name.
        cycle: u16,
        /// Bytes of the key in front of the object.
        key_bytes: u64,
    },
    /// The key in front of a blob. The content of the blob is a separate region.
    BlobKey,
    /// Bytes that no object uses.
    Gap,
    /// An envelope, or the anchor of an attribute set.
    Envelope {
        /// The ntuple; behind `@` the attribute set.
        ntuple: Arc<str>,
        /// `header`, `footer`, `page list` or `anchor`.
        envelope: &'static str,
        /// Which cluster group a page list describes.
        cluster_group: Option<u64>,
    },
    /// Neighbouring pages of one column in one cluster, with their checksums.
    Pages {
        /// The ntuple; behind `@` the attribute set.
        ntuple: Arc<str>,
        /// Dotted path of the field, items of collections being called `_0`.
        field: Arc<str>,
        /// Number of the column in the file.
        column: u32,
        /// Number of the cluster.
        cluster: u64,
        /// Number of the first page in column and cluster.
        first_page: u64,
        /// Number of pages.
        pages: u64,
    },
    /// Where the other parts of a payload lie that is larger than a key may be.
    ChunkTable {
        /// The ntuple; behind `@` the attribute set.
        ntuple: Arc<str>,
    },
    /// Bytes of unknown content.
    Unaccounted,
}

/// Bytes that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// The object of an object store; `None` in a file.
    pub object: Option<Arc<str>>,
    /// From the start of the file or object.
    pub offset: u64,
    /// How many.
    pub bytes: u64,
    /// Their kind.
    pub content: Content,
}

/// The byte map of a file, or of the objects of an ntuple.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByteMap {
    /// Size of the file, or of all objects, in bytes.
    pub size: u64,
    /// By object and offset: each byte in exactly one.
    pub regions: Vec<Region>,
    /// Stored bytes that several columns share; they stand in the map once.
    pub shared_bytes: u64,
    /// What could not be read, and what overlaps something else.
    pub remarks: Vec<Remark>,
    /// How pages are mapped to objects, where the anchor of an ntuple in an object store has it. Not in DAOS.
    pub mapping: Option<Mapping>,
    /// How pages are stored in a DAOS container.
    pub daos: Option<DaosPages>,
}

/// How the pages of an ntuple are stored in a DAOS container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaosPages {
    /// Their object class.
    pub class: String,
    /// Whether each page is in a separate object, not in that of its cluster: the storage option `daos_objects=page`.
    pub separate: bool,
}

impl DaosPages {
    fn of(keys: &ObjectKeys) -> Option<Self> {
        match keys {
            ObjectKeys::Daos(keys) => Some(Self { class: keys.class.to_string(), separate: keys.separate_pages }),
            ObjectKeys::Numbered { .. } => None,
        }
    }
}

/// A problem in a byte map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The ntuple that could not be read as a whole; `None` where it is the file around the ntuples.
    pub ntuple: Option<String>,
    /// What is wrong.
    pub what: String,
}

impl Remark {
    fn of_ntuple(name: &str, what: impl fmt::Display) -> Self {
        Self { ntuple: Some(name.to_owned()), what: what.to_string() }
    }

    fn of_file(what: impl fmt::Display) -> Self {
        Self { ntuple: None, what: what.to_string() }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.ntuple {
            Some(ntuple) => write!(f, "ntuple '{ntuple}': {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// Makes the byte map of a file, or of the objects of an ntuple in an object store. Damage hides only what lies behind
/// it: the map contains everything that can be read, and remarks describe the rest.
///
/// # Errors
/// Corrupt if this is not a ROOT file; storage errors.
pub fn layout(file: &File) -> Result<ByteMap> {
    let mut map = Map { file, pieces: Vec::new(), remarks: Vec::new(), shares: Vec::new(), counted: 0 };
    if file.stored_objects().is_none() {
        let root = file.root_file()?;
        map.pieces.push(piece(0..root.attempt(container::read_header)?.begin, Content::FileHeader));
        // How long key lists are is known from the directories. That these are damaged is found below.
        let _known = root.listing();
        map.records(root);
    }
    let walked = each_ntuple(file, None, &mut |found| {
        if let Err(error) = found.ntuple.and_then(|ntuple| map.ntuple(&found.name, &ntuple)) {
            map.remarks.push(Remark::of_ntuple(&found.name, error.reason()));
        }
        Ok(())
    });
    if let Err(error) = walked {
        map.remarks.push(Remark::of_file(format_args!("directories: {error}")));
    }
    Ok(map.finish())
}

struct Map<'a> {
    file: &'a File,
    /// In no order; they may overlap.
    pieces: Vec<Piece>,
    remarks: Vec<Remark>,
    /// What the pieces take of the memory budget, and how many are counted.
    shares: Vec<Reservation>,
    counted: usize,
}

/// Names that many pieces share.
struct Names {
    ntuple: Arc<str>,
    fields: HashMap<FieldId, Arc<str>>,
}

impl Names {
    fn field(&mut self, descriptor: &Descriptor, id: FieldId) -> Arc<str> {
        self.fields.entry(id).or_insert_with(|| descriptor.path(id).into()).clone()
    }
}

/// Bytes of a file or object.
struct Piece {
    range: BlobRange,
    content: Content,
}

/// A piece of a ROOT file.
fn piece(range: Range<u64>, content: Content) -> Piece {
    Piece { range: BlobRange::in_file(range), content }
}

impl Map<'_> {
    fn records(&mut self, source: &source::File) {
        let mut walk = || {
            // A step is tried again with more bytes; it moves on only when it succeeds.
            let walk = RefCell::new(source.attempt(Walk::new)?);
            while let Some(record) = source.attempt(|fetched| walk.borrow_mut().next(fetched))? {
                let all = record.offset..record.offset + record.nbytes;
                self.pieces.push(match record.kind {
                    RecordKind::Gap => piece(all, Content::Gap),
                    RecordKind::Key(key) if key.class_name == BLOB_CLASS => {
                        piece(all.start..all.start + u64::from(key.key_bytes), Content::BlobKey)
                    }
                    RecordKind::Key(key) => {
                        let key_bytes = key.key_bytes.into();
                        let (class_name, name, cycle) = (key.class_name, key.name, key.cycle);
                        piece(all, Content::Record { class_name, name, cycle, key_bytes })
                    }
                });
            }
            Ok(())
        };
        if let Err(error) = walk() {
            let error: Error = error;
            self.remarks.push(Remark::of_file(format_args!("records: {error}")));
        }
    }

    fn ntuple(&mut self, name: &str, ntuple: &Ntuple) -> Result<()> {
        let source = ntuple.source();
        let (anchor, descriptor) = (source.store().anchor(), source.descriptor());
        // Pages of hidden fields have the names of those that show them.
        let shown = shown_fields(ntuple)?;
        let shown = shown.into_iter().map(|(hidden, field)| (hidden, ntuple.descriptor().path(field).into()));
        let names = Names { ntuple: name.into(), fields: shown.collect() };
        let envelope =
            |envelope, cluster_group| Content::Envelope { ntuple: names.ntuple.clone(), envelope, cluster_group };
        self.payload(&names.ntuple, ntuple, source.store().envelope_range(&anchor.header)?, envelope("header", None))?;
        self.payload(&names.ntuple, ntuple, source.store().envelope_range(&anchor.footer)?, envelope("footer", None))?;
        for set in descriptor.attribute_sets() {
            // In a folder of objects, they have names, which the manifest lists.
            let is_named = self.file.stored_objects().is_some_and(|objects| objects.folder().is_some());
            if !is_named {
                let ntuple = format!("{name}@{}", set.name).into();
                let content = Content::Envelope { ntuple, envelope: ANCHOR, cluster_group: None };
                let link = EnvelopeLink { length: set.anchor_length.into(), locator: set.anchor };
                if let Ok(range) = source.store().envelope_range(&link) {
                    self.pieces.push(Piece { range, content });
                }
            }
        }
        let mut names = names;
        for (group, record) in descriptor.cluster_groups().iter().enumerate() {
            let (ntuple_name, cluster_group) = (names.ntuple.clone(), Some(group as u64));
            let content = Content::Envelope { ntuple: ntuple_name, envelope: "page list", cluster_group };
            self.payload(&names.ntuple, ntuple, source.store().envelope_range(&record.page_list)?, content)?;
            if let Err(error) = self.group(&mut names, ntuple, group) {
                self.remarks.push(Remark::of_ntuple(name, format_args!("cluster group {group}: {error}")));
            }
        }
        Ok(())
    }

    fn group(&mut self, names: &mut Names, ntuple: &Ntuple, group: usize) -> Result<()> {
        let source = ntuple.source();
        let max_key = source.store().max_blob_bytes();
        for cluster in source.group_clusters(group)? {
            self.count(MIN_COUNTED_PIECES)?;
            let listed = source.listed_columns(&cluster)?;
            for (id, column) in (0u32..).zip(source.descriptor().columns()).take(listed) {
                let Some(stored) = source.column_pages(&cluster, ColumnId::from(id))? else { continue };
                if stored.pages.is_empty() {
                    continue;
                }
                let field = names.field(source.descriptor(), column.field);
                let content = |first_page: usize, pages: usize| Content::Pages {
                    ntuple: names.ntuple.clone(),
                    field: field.clone(),
                    column: id,
                    cluster: cluster.number,
                    first_page: first_page as u64,
                    pages: pages as u64,
                };
                let mut run: Option<(usize, BlobRange)> = None;
                for (page, info) in stored.pages.iter().enumerate() {
                    let range = source.store().page_range(cluster.number, id, info)?;
                    if max_key > 0 && range.bytes() > max_key {
                        self.payload(&names.ntuple, ntuple, range, content(page, 1))?;
                        continue;
                    }
                    run = match run {
                        Some((first, before)) if before.is_followed_by(&range) => {
                            Some((first, BlobRange { end: range.end, ..before }))
                        }
                        before => {
                            if let Some((first, before)) = before {
                                self.pieces.push(Piece { range: before, content: content(first, page - first) });
                            }
                            Some((page, range))
                        }
                    };
                }
                if let Some((first, range)) = run {
                    self.pieces.push(Piece { range, content: content(first, stored.pages.len() - first) });
                }
            }
        }
        Ok(())
    }

    /// Counts the memory of added pieces once there are enough of them.
    fn count(&mut self, least: usize) -> Result<()> {
        let added = self.pieces.len() - self.counted;
        if added >= least {
            let bytes = added as u64 * PIECE_MEMORY;
            self.shares.push(self.file.session().budget().reserve(bytes, "the map of the file")?);
            self.counted = self.pieces.len();
        }
        Ok(())
    }

    /// A payload, given by its offset and bytes, that may be spread over several keys.
    fn payload(&mut self, name: &Arc<str>, ntuple: &Ntuple, range: BlobRange, content: Content) -> Result<()> {
        let max_key = ntuple.source().store().max_blob_bytes();
        // Only in files are payloads split.
        let whole = max_key == 0 || range.bytes() <= max_key;
        let parts = if whole { None } else { split(self.file.root_file()?, &range, max_key)? };
        let Some((chunks, ranges)) = parts else {
            self.pieces.push(Piece { range, content });
            return Ok(());
        };
        self.pieces.push(piece(chunks.table.clone(), Content::ChunkTable { ntuple: name.clone() }));
        for range in std::iter::once(chunks.first.clone()).chain(ranges) {
            self.pieces.push(piece(range, content.clone()));
        }
        Ok(())
    }

    /// Puts the pieces in order, so that each byte belongs to one of them or to none.
    fn finish(mut self) -> ByteMap {
        let blobs = self.blobs();
        let size = blobs.values().map(|(_, bytes)| bytes).fold(0, |sum, bytes| bytes.saturating_add(sum));
        let anchor = self.file.stored_objects().map(Objects::anchor);
        let mut layout = ByteMap {
            size,
            regions: Vec::new(),
            shared_bytes: 0,
            remarks: self.remarks,
            mapping: anchor.and_then(|it| it.mapping.as_ref()?.parse().ok()),
            daos: anchor.and_then(|it| DaosPages::of(&it.keys)),
        };
        self.pieces.retain(|piece| piece.range.bytes() > 0);
        self.pieces.sort_by_key(|piece| (piece.range.blob, piece.range.start, Reverse(piece.range.end)));
        let mut rest = self.pieces.as_slice();
        for (blob, (object, bytes)) in blobs {
            let (own, others) = rest.split_at(rest.partition_point(|piece| piece.range.blob <= blob));
            rest = others;
            layout.add(object.as_ref(), bytes, own);
        }
        layout
    }

    /// The file, or the objects of the ntuple, by their numbers: name and size in bytes. Adds the anchors and the manifest
    /// of the ntuple, which have numbers after all others.
    fn blobs(&mut self) -> BTreeMap<Blob, (Option<Arc<str>>, u64)> {
        let Some(objects) = self.file.stored_objects() else {
            return BTreeMap::from([(Blob::default(), (None, self.file.size().unwrap_or_default()))]);
        };
        let manifest = objects.manifest().unwrap_or_else(|error| {
            self.remarks.push(Remark::of_file(error));
            None
        });
        let keys = &objects.anchor().keys;
        let mut blobs: BTreeMap<Blob, (Option<Arc<str>>, u64)> = BTreeMap::new();
        // Without a manifest, objects end where their last piece ends.
        for Piece { range, .. } in &self.pieces {
            let (_, end) = blobs.entry(range.blob).or_insert_with(|| (Some(keys.name(range.blob).into()), 0));
            *end = range.end.max(*end);
        }
        let mut others = vec![(objects.base().to_owned(), objects.anchor_bytes(), ANCHOR)];
        if let Some(manifest) = manifest {
            let numbered = (0u64..).zip(&manifest.numbered);
            blobs.extend(
                numbered.map(|(number, it)| (Blob::numbered(number), (Some(number.to_string().into()), it.bytes))),
            );
            others.extend(manifest.named.into_iter().map(|(name, it)| (name, it.bytes, ANCHOR)));
            if let Some(link) = objects.anchor().manifest {
                others.push((link.object.to_string(), link.bytes, "manifest"));
            }
        }
        let last = blobs.last_key_value().map(|(last, _)| *last).unwrap_or_default();
        for (after, (name, bytes, envelope)) in (1..).zip(others) {
            let blob = Blob { number: last.number.saturating_add(after), ..last };
            let content = Content::Envelope { ntuple: "".into(), envelope, cluster_group: None };
            self.pieces.push(Piece { range: BlobRange { blob, start: 0, end: bytes }, content });
            blobs.insert(blob, (Some(name.into()), bytes));
        }
        blobs
    }
}

impl ByteMap {
    /// Adds a file or object of this many bytes; its pieces are in order.
    fn add(&mut self, object: Option<&Arc<str>>, size: u64, pieces: &[Piece]) {
        let region = |range: Range<u64>, content: Content| Region {
            object: object.cloned(),
            offset: range.start,
            bytes: range.end.saturating_sub(range.start),
            content,
        };
        let mut at = 0;
        for Piece { range, content } in pieces {
            let (offset, end) = (range.start, range.end.min(size));
            if offset > at {
                self.regions.push(region(at..offset.min(size), Content::Unaccounted));
            }
            let start = offset.max(at);
            if offset < at {
                let covered = at.min(end).saturating_sub(offset);
                match (self.regions.last().map(|region| &region.content), content) {
                    (Some(Content::Pages { .. }), Content::Pages { .. }) => self.shared_bytes += covered,
                    // ROOT writes the anchor of an attribute set as an object that no directory lists.
                    (Some(Content::Record { .. }), Content::Envelope { envelope: ANCHOR, .. }) if end <= at => {}
                    _ => {
                        let twice = format_args!("{covered} bytes at offset {offset} belong to two records");
                        self.remarks.push(Remark::of_file(twice));
                    }
                }
            }
            if start < end {
                self.regions.push(region(start..end, content.clone()));
                at = end;
            }
        }
        if at < size {
            self.regions.push(region(at..size, Content::Unaccounted));
        }
    }
}

//! Measurements of trees: a part of the entries is written as a tree in memory, in the way in which the command writes it
//! that applies the recommendation, and decoded.

use std::collections::{BTreeSet, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::RecordBatch;
use tupelo_format::compression::Compression;
use tupelo_pages::sink::name_of;
use tupelo_schema::schema::Schema;
use tupelo_storage::{ByteSource, MemoryFile, MemorySink};
use tupelo_ttree::Branch;
use tupelo_ttree::basket::BasketHead;
use tupelo_ttree::tree::Stored;

use super::sample::{Pieces, median, paths, reading};
use super::trial::{ColumnBytes, Form, Trial};
use crate::ops::cost::selected_branches;
use crate::ops::export::{representable, with_counters};
use crate::reader::{File, Ntuple, Read, Tree};
use crate::writer::{EntrySink, FileWriter, MoveOptions, TreeOptions, TreeWriter};
use crate::{Error, Result};

/// Bytes of the record of a tree for each basket: its length, its first entry and its place.
const BASKET_RECORD_BYTES: u64 = 20;

/// Entries to write as a tree.
#[derive(Debug)]
pub(super) struct TreeSample {
    name: String,
    source: Source,
    /// The fields that the request reads, by dotted path; `None` for all, with the counters that a tree has too.
    paths: Option<Vec<String>>,
    entries: u64,
    /// What the new tree does not have.
    pub(super) left_out: Vec<String>,
}

#[derive(Debug)]
enum Source {
    /// A tree without compression, whose entries are moved to other baskets, as `ops::merge_tree` does.
    Tree(Tree),
    /// Entries of an ntuple, as `ops::export` writes them.
    Batches(Vec<RecordBatch>, Schema, Box<TreeOptions>),
}

impl TreeSample {
    /// The entries of all branches.
    pub(super) fn of_tree(read: &Read, tree: &Tree, pieces: &Pieces) -> Result<Self> {
        let name = name_of(tree.path()).to_owned();
        let options =
            MoveOptions::default().with_compression(Some(Compression::NONE)).with_entries(pieces.ranges.clone());
        let file = MemoryFile::new();
        let left_out = moved(tree, &file, &name, options)?;
        let source = Source::Tree(opened(&file, &name)?);
        Ok(Self { name, source, paths: chosen(read, &tree.read_all()), entries: pieces.entries, left_out })
    }

    /// The entries of all fields that a tree can hold.
    pub(super) fn of_ntuple(read: &Read, ntuple: &Ntuple, pieces: &Pieces) -> Result<Self> {
        let options = TreeOptions::default().with_optimised_baskets(false);
        let (all, skipped) = representable(ntuple.read_all(), &options)?;
        let schema = all.schema_with_computed()?;
        let options = with_counters(&all, &pieces.ranges, &schema, options)?;
        let batches = pieces.batches(&all, TreeWriter::BATCH_BYTES)?;
        Ok(Self {
            name: name_of(ntuple.path()).to_owned(),
            source: Source::Batches(batches, schema, Box::new(options)),
            paths: chosen(read, &ntuple.read_all()),
            entries: pieces.entries,
            left_out: skipped.iter().map(|it| format!("field '{}': {}", it.name, it.reason)).collect(),
        })
    }

    /// Measures one codec and basket size with each size of clusters: as one cluster, if the sample has no more entries.
    pub(super) fn trials(&self, compression: Compression, basket_bytes: u64, flushes: &[i64]) -> Result<Vec<Trial>> {
        let whole = self.trial(compression, basket_bytes, self.entries)?;
        let mut trials: Vec<Trial> = Vec::with_capacity(flushes.len());
        for &auto_flush in flushes {
            let cluster_entries = match auto_flush {
                1.. => auto_flush.unsigned_abs(),
                0 => u64::MAX,
                ..0 => whole.entries_in(auto_flush.unsigned_abs()).max(1),
            };
            let trial = match cluster_entries < self.entries {
                true => self.trial(compression, basket_bytes, cluster_entries)?,
                false => whole.clone(),
            };
            let is_moved = matches!(self.source, Source::Tree(_));
            trials.push(Trial { form: Form::Tree { auto_flush, cluster_entries, is_moved }, ..trial });
        }
        Ok(trials)
    }

    fn trial(&self, compression: Compression, basket_bytes: u64, cluster_entries: u64) -> Result<Trial> {
        let file = MemoryFile::new();
        let write_seconds = median(|| self.encode(&file, compression, basket_bytes, cluster_entries))?;
        let tree = opened(&file, &self.name)?;
        let read = self.read(&tree)?.with_binary_strings(true);
        let read_seconds = reading(&read, self.entries)?;
        let (bytes, branches) = (file.source()?, &tree.metadata().branches);
        let measured = (0..).zip(branches).map(|(number, branch)| measured(number, branch, &bytes));
        let columns: Vec<ColumnBytes> = measured.collect::<Result<_>>()?;
        let [baskets, stored] = columns.iter().fold([0, 0], |[all, sum], it| [all + it.pages, sum + it.stored]);
        let (stored_record, record) = (tree.source().stored_record_bytes(), tree.source().record_bytes());
        let list_bytes_per_page = BASKET_RECORD_BYTES as f64 * stored_record as f64 / record.max(1) as f64;
        Ok(Trial {
            form: Form::Tree { auto_flush: 0, cluster_entries, is_moved: false },
            compression,
            page_bytes: basket_bytes,
            entries: self.entries,
            columns,
            selected: selected_branches(&tree, &read)?.into_iter().map(|branch| branch as u32).collect(),
            envelope_bytes: stored_record.saturating_sub((baskets as f64 * list_bytes_per_page) as u64),
            list_bytes_per_page,
            file_bytes: bytes.size()?.saturating_sub(stored + stored_record),
            write_seconds,
            read_seconds,
        })
    }

    fn encode(&self, file: &MemoryFile, compression: Compression, basket_bytes: u64, entries: u64) -> Result<()> {
        // Both ways have the same limits.
        let moving = MoveOptions::default().with_basket_bytes(basket_bytes)?.with_auto_flush(entries)?;
        match &self.source {
            Source::Tree(tree) => {
                moved(tree, file, &self.name, moving.with_compression(Some(compression)))?;
                Ok(())
            }
            Source::Batches(batches, schema, options) => {
                let options = TreeOptions::clone(options)
                    .with_compression(compression)
                    .with_basket_bytes(basket_bytes as u32)
                    .with_auto_flush(entries.cast_signed());
                let writer = create(file)?;
                let mut tree = writer.tree(&self.name, schema, options)?;
                batches.iter().try_for_each(|batch| tree.write(batch))?;
                tree.finish()?;
                writer.finish()
            }
        }
    }

    /// The request to a tree that was written: of fields whose parts have other names there, the whole.
    fn read(&self, tree: &Tree) -> Result<Read> {
        let paths = match &self.paths {
            None => return Ok(tree.read_all()),
            Some(paths) if paths.is_empty() => return Ok(tree.read_all().without_fields()),
            Some(paths) => paths,
        };
        let known: HashSet<String> = tree.schema().paths().into_iter().map(|(path, _)| path).collect();
        let found = |path: &String| match path.split_once('.') {
            _ if known.contains(path) => Some(path.clone()),
            Some((field, _)) if known.contains(field) => Some(field.to_owned()),
            _ => None,
        };
        let found: BTreeSet<String> = paths.iter().filter_map(found).collect();
        if found.is_empty() {
            return Err(Error::unsupported("a tree can hold none of the fields that are read; select other fields"));
        }
        tree.read(found.into_iter().collect::<Vec<_>>())
    }
}

/// The fields of a request, unless they are all.
fn chosen(read: &Read, all: &Read) -> Option<Vec<String>> {
    let chosen = paths(read);
    (chosen != paths(all)).then_some(chosen)
}

fn create(file: &MemoryFile) -> Result<FileWriter> {
    FileWriter::create_in(Box::new(MemorySink::create(file)), "sample")
}

fn opened(file: &MemoryFile, name: &str) -> Result<Tree> {
    let table = File::new(Arc::new(file.source()?), true)?.table(Some(name))?;
    table.tree().cloned().ok_or_else(|| Error::corrupt("the sample is not a tree"))
}

/// Writes entries of a tree, and says what of it is left out.
fn moved(tree: &Tree, file: &MemoryFile, name: &str, options: MoveOptions) -> Result<Vec<String>> {
    let writer = create(file)?;
    let mut new = writer.moved_tree(name, options)?;
    new.append(tree, &mut |_| ControlFlow::Continue(()))?;
    new.finish()?;
    writer.finish()?;
    Ok(new.left_out())
}

/// The bytes of the baskets of a branch.
fn measured(number: u32, branch: &Branch, file: &dyn ByteSource) -> Result<ColumnBytes> {
    let mut column = ColumnBytes { column: number, ..ColumnBytes::default() };
    for place in &branch.baskets {
        let Stored::InFile { offset, bytes } = place.stored else { continue };
        let head = BasketHead::read(&file.read_range(offset..offset.saturating_add(bytes.into()))?, offset)?;
        column.add(head.object_bytes.into(), bytes.into());
        // Writers leave room for twice the bytes of the positions.
        column.counted += u64::from(head.positions_bytes());
        column.head = head.key_bytes.into();
    }
    column.counted_entry = column.counted / branch.entries.max(1);
    Ok(column)
}

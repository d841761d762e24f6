//! Export as trees: the selected entries of ntuples or trees, decoded and written as a `TTree`.

use std::ops::ControlFlow;

use arrow_array::RecordBatch;

use crate::reader::{Read, Skipped};
use crate::writer::{
    FileWriter, TreeOptions, TreeWriter, WriteProgress, contradiction, usual_counters, without_branch,
};
use crate::{Error, Result};

/// Memory of the entries that are decoded at once, in bytes: 16 MiB.
const BATCH_BYTES: u64 = 16 << 20;

/// The selected fields that a tree can hold, and what is left out.
///
/// # Errors
/// Invalid argument for options out of range.
pub fn representable(mut read: Read, options: &TreeOptions) -> Result<(Read, Vec<Skipped>)> {
    let mut skipped = Vec::new();
    loop {
        let refused = without_branch(read.schema(), options).map_err(|error| read.context(error))?;
        if refused.is_empty() {
            return Ok((read, skipped));
        }
        let refused: Vec<Skipped> = refused.iter().map(|(path, why)| Skipped::new(path, why.to_string())).collect();
        read = read.without_paths(&refused)?;
        skipped.extend(refused);
    }
}

/// Whether a field contains the numbers of items of a list.
fn has_counts(like: &Read, list: &str, counter: &str) -> Result<bool> {
    let others = like.schema().fields.iter().filter(|field| ![list, counter].contains(&field.name.as_str()));
    let others: Vec<Skipped> = others.map(|field| Skipped::new(&field.name, "")).collect();
    for batch in like.clone().without_paths(&others)?.batches_of_bytes(BATCH_BYTES)? {
        let batch = batch?;
        if let (Some(list), Some(counts)) = (batch.column_by_name(list), batch.column_by_name(counter))
            && contradiction(list, counts)?.is_some()
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A tree that is filled with entries of ntuples or other trees, one after the other.
///
/// The selection of a read is exported: fields, entries, cut and computed columns. Projected fields become branches
/// like others. A tree cannot hold attribute sets and metadata: they are left out.
#[derive(Debug)]
pub struct Exporter {
    writer: TreeWriter,
}

impl Exporter {
    /// Begins a tree with the fields of `like`; its title is the description of the source, unless the options have one.
    /// A field with the name of a counter, such as `nx` of `x`, becomes it if it has the numbers of items in all entries
    /// of `like`.
    ///
    /// # Errors
    /// As [`FileWriter::tree`]; those of reading; unsupported if there is no field: the entries would be a number without
    /// values.
    pub fn create(like: &Read, file: &FileWriter, path: &str, options: TreeOptions) -> Result<Self> {
        let options = match options.title().is_empty() {
            true => options.with_title(like.source().sidecar().description()),
            false => options,
        };
        let schema = like.schema_with_computed()?;
        if schema.fields.is_empty() {
            return Err(like.context(Error::unsupported("no field can be exported; select other fields")));
        }
        let mut counters = like.source().schema().counters();
        counters.retain(|(list, counter)| {
            [list, counter].iter().all(|name| schema.fields.iter().any(|it| it.name == **name))
        });
        let mut uncounted = Vec::new();
        for (list, counter) in usual_counters(&schema) {
            let is_known = counters.iter().any(|(known, _)| *known == list);
            if !is_known && !has_counts(like, &list, &counter)? {
                uncounted.push(list);
            }
        }
        let options = options.with_counters(counters).with_own_counters(uncounted);
        Ok(Self { writer: file.tree(path, &schema, options)? })
    }

    /// Appends the selected entries. Fields are matched by name and must have the same type. `progress` receives the
    /// number of selected entries that are done, and may cancel the export.
    ///
    /// # Errors
    /// Invalid argument if the fields differ from those of the tree; those of reading and of writing.
    pub fn append(&mut self, read: Read, progress: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<ControlFlow<()>> {
        let first = read.range().start;
        let source = read.source().clone();
        self.writer.schema().order_of(&read.schema_with_computed()?).map_err(|error| source.context(error))?;
        let mut batches = read.with_binary_strings(true).batches_of_bytes(BATCH_BYTES)?;
        while let Some(batch) = batches.next() {
            let batch: RecordBatch = batch?;
            self.writer.write(&batch)?;
            if progress(batches.position() - first).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Ends the tree.
    ///
    /// # Errors
    /// As [`TreeWriter::finish`].
    pub fn finish(mut self) -> Result<WriteProgress> {
        self.writer.finish()
    }
}

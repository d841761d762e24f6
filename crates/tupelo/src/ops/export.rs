//! Export as trees: the selected entries of ntuples or trees, decoded and written as a `TTree`.

mod originals;

use std::ops::Range;

use tupelo_schema::schema::Schema;

pub use self::originals::OriginalTrees;
use super::{Progress, pipe};
use crate::reader::{Read, Skipped};
use crate::writer::{
    EntrySink, FileWriter, TreeOptions, TreeWriter, WriteProgress, contradiction, renamed, usual_counters,
    without_branch,
};
use crate::{Error, Result};

/// The selected fields that a tree can hold, and what is left out.
///
/// # Errors
/// Invalid argument for options out of range.
pub fn representable(mut read: Read, options: &TreeOptions) -> Result<(Read, Vec<Skipped>)> {
    let mut skipped = Vec::new();
    let options = options.clone().with_counters(read.source().schema().counters());
    loop {
        let refused = without_branch(read.schema(), &options).map_err(|error| read.context(error))?;
        if refused.is_empty() {
            return Ok((read, skipped));
        }
        let refused: Vec<Skipped> = refused.iter().map(|(path, why)| Skipped::new(path, why.to_string())).collect();
        read = read.without_paths(&refused)?;
        skipped.extend(refused);
    }
}

/// Whether a field contains the numbers of items of a list, in these entries.
fn has_counts(like: &Read, entries: &[Range<u64>], list: &str, counter: &str) -> Result<bool> {
    let others = like.schema().fields.iter().filter(|field| ![list, counter].contains(&field.name.as_str()));
    let others: Vec<Skipped> = others.map(|field| Skipped::new(&field.name, "")).collect();
    let both = like.clone().without_paths(&others)?;
    for range in entries {
        for batch in both.clone().entries(range.clone()).batches_of_bytes(TreeWriter::BATCH_BYTES)? {
            let batch = batch?;
            if let (Some(list), Some(counts)) = (batch.column_by_name(list), batch.column_by_name(counter))
                && contradiction(list, counts)?.is_some()
            {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Writes what a read selects as a tree: fields, entries, cut and computed columns. `None` if `progress` cancelled: the file
/// can then only be dropped.
///
/// The title of the tree is the description of the source, unless the options have one. Projected fields become branches
/// like others. A field with the name of a counter, such as `nx` of `x`, becomes it if it has the numbers of items in all
/// entries. A tree cannot hold attribute sets and metadata: they are left out.
///
/// # Errors
/// Unsupported if no field is selected, since a tree needs a branch; otherwise those of reading, of [`FileWriter::tree`] and
/// of its writer.
pub fn export(
    read: Read,
    file: &FileWriter,
    path: &str,
    options: TreeOptions,
    progress: &mut Progress<'_>,
) -> Result<Option<WriteProgress>> {
    Ok(export_named(read, file, path, options, progress)?.map(|(written, _)| written))
}

/// Also returns the names of the branches.
fn export_named(
    read: Read,
    file: &FileWriter,
    path: &str,
    options: TreeOptions,
    progress: &mut Progress<'_>,
) -> Result<Option<(WriteProgress, Vec<String>)>> {
    let schema = read.schema_with_computed()?;
    let options = with_counters(&read, &[read.range()], &schema, options)?;
    let mut writer = file.tree(path, &schema, options)?;
    match pipe(read.with_binary_strings(true), Ok, &mut writer, progress)? {
        Some(_) => Ok(Some((writer.finish()?, writer.branch_names()))),
        None => Ok(None),
    }
}

/// The options to write the fields that a read selects, with title and with counters, which are compared with these entries.
pub(super) fn with_counters(
    read: &Read,
    entries: &[Range<u64>],
    schema: &Schema,
    options: TreeOptions,
) -> Result<TreeOptions> {
    let options = match options.title().is_empty() {
        true => options.with_title(read.source().sidecar().description()),
        false => options,
    };
    if schema.fields.is_empty() {
        return Err(read.context(Error::unsupported("no field can be exported; select other fields")));
    }
    let mut counters = read.source().schema().counters();
    counters
        .retain(|(list, counter)| [list, counter].iter().all(|name| schema.fields.iter().any(|it| it.name == **name)));
    let mut uncounted = Vec::new();
    // In the entries of a file that lacks its counter, a list may have items, and one that a file lacks may be empty.
    let source = read.source().schema();
    for (list, counter) in counters.clone() {
        let is_partial = source.lacking(&list).is_some() || source.lacking(&counter).is_some();
        if is_partial && !has_counts(read, entries, &list, &counter)? {
            counters.retain(|(known, _)| *known != list);
            uncounted.push(list);
        }
    }
    for (list, counter) in if options.takes_usual_counters() { usual_counters(schema) } else { Vec::new() } {
        let is_known = counters.iter().any(|(known, _)| *known == list) || uncounted.contains(&list);
        if !is_known && !has_counts(read, entries, &list, &counter)? {
            uncounted.push(list);
        }
    }
    Ok(options.with_counters(counters).with_own_counters(uncounted))
}

/// What became of a tree that was decoded and written again.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct RewrittenTree {
    /// What was written; `None` if a tree can hold none of the fields.
    pub written: Option<WriteProgress>,
    /// What the tree does not have, and why: branches that a tree cannot hold, and what the originals have besides entries.
    pub left_out: Vec<String>,
    /// Classes that are stored as others, and these: containers as vectors, and under other names records that ROOT knows
    /// itself, with other members, and those without a valid name.
    pub renamed: Vec<(String, String)>,
}

/// As [`export`], without what a tree cannot hold, and with all that a tree has besides entries. The options should be
/// [those of the first tree](TreeOptions::of).
///
/// # Errors
/// As there.
pub fn rewrite(
    read: Read,
    mut originals: OriginalTrees,
    file: &FileWriter,
    path: &str,
    options: TreeOptions,
    progress: &mut Progress<'_>,
) -> Result<Option<RewrittenTree>> {
    let options = originals.options(options, read.source().entries());
    let (read, skipped) = representable(read, &options)?;
    let mut rewritten = RewrittenTree::default();
    rewritten.left_out.extend(skipped.iter().map(|it| format!("branch '{}': {}", it.name, it.reason)));
    if read.schema().fields.is_empty() && !skipped.is_empty() {
        return Ok(Some(rewritten));
    }
    let counted = options.clone().with_counters(read.source().schema().counters());
    rewritten.renamed = renamed(read.schema(), &counted).map_err(|error| read.context(error))?;
    originals.keep_processes(file)?;
    let Some((written, branches)) = export_named(read, file, path, options, progress)? else { return Ok(None) };
    rewritten.written = Some(written);
    rewritten.left_out.extend(originals.left_out(&branches));
    Ok(Some(rewritten))
}

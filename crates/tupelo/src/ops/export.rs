//! Export as trees: the selected entries of ntuples or trees, decoded and written as a `TTree`.

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

/// Whether a field contains the numbers of items of a list.
fn has_counts(like: &Read, list: &str, counter: &str) -> Result<bool> {
    let others = like.schema().fields.iter().filter(|field| ![list, counter].contains(&field.name.as_str()));
    let others: Vec<Skipped> = others.map(|field| Skipped::new(&field.name, "")).collect();
    for batch in like.clone().without_paths(&others)?.batches_of_bytes(TreeWriter::BATCH_BYTES)? {
        let batch = batch?;
        if let (Some(list), Some(counts)) = (batch.column_by_name(list), batch.column_by_name(counter))
            && contradiction(list, counts)?.is_some()
        {
            return Ok(false);
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
    let options = match options.title().is_empty() {
        true => options.with_title(read.source().sidecar().description()),
        false => options,
    };
    let schema = read.schema_with_computed()?;
    if schema.fields.is_empty() {
        return Err(read.context(Error::unsupported("no field can be exported; select other fields")));
    }
    let mut counters = read.source().schema().counters();
    counters
        .retain(|(list, counter)| [list, counter].iter().all(|name| schema.fields.iter().any(|it| it.name == **name)));
    let mut uncounted = Vec::new();
    // A list is empty, or its counter 0, in the entries of a file that lacks one of them.
    let source = read.source().schema();
    for (list, counter) in counters.clone() {
        let is_partial = source.lacking(&list).is_some() || source.lacking(&counter).is_some();
        if is_partial && !has_counts(&read, &list, &counter)? {
            counters.retain(|(known, _)| *known != list);
            uncounted.push(list);
        }
    }
    for (list, counter) in if options.takes_usual_counters() { usual_counters(&schema) } else { Vec::new() } {
        let is_known = counters.iter().any(|(known, _)| *known == list) || uncounted.contains(&list);
        if !is_known && !has_counts(&read, &list, &counter)? {
            uncounted.push(list);
        }
    }
    let options = options.with_counters(counters).with_own_counters(uncounted);
    let mut writer = file.tree(path, &schema, options)?;
    match pipe(read.with_binary_strings(true), Ok, &mut writer, progress)? {
        Some(_) => Ok(Some((writer.finish()?, writer.branch_names()))),
        None => Ok(None),
    }
}

/// What became of a tree that was decoded and written again.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct RewrittenTree {
    /// What was written; `None` if a tree can hold none of the fields.
    pub written: Option<WriteProgress>,
    /// The fields that a tree cannot hold, by path, and why.
    pub left_out: Vec<Skipped>,
    /// Classes that are stored as others, and these: containers as vectors, and under other names records that ROOT knows
    /// itself, with other members, and those without a valid name.
    pub renamed: Vec<(String, String)>,
    /// The names of the branches that are not parts of others.
    pub branches: Vec<String>,
}

/// As [`export`], without what a tree cannot hold.
///
/// # Errors
/// As there.
pub fn rewrite(
    read: Read,
    file: &FileWriter,
    path: &str,
    options: TreeOptions,
    progress: &mut Progress<'_>,
) -> Result<Option<RewrittenTree>> {
    let (read, left_out) = representable(read, &options)?;
    if read.schema().fields.is_empty() && !left_out.is_empty() {
        return Ok(Some(RewrittenTree { left_out, ..RewrittenTree::default() }));
    }
    let counted = options.clone().with_counters(read.source().schema().counters());
    let renamed = renamed(read.schema(), &counted).map_err(|error| read.context(error))?;
    let written = export_named(read, file, path, options, progress)?;
    Ok(written.map(|(written, branches)| RewrittenTree { written: Some(written), left_out, renamed, branches }))
}

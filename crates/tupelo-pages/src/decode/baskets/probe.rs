//! Which branches cannot be decoded, found by decoding some of their entries.

use std::ops::Range;

use arrow_array::LargeListArray;
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_schema::DataType;
use tupelo_ttree::ValueLayout;
use tupelo_ttree::fields::{Field as TreeField, FieldKind};

use super::{BasketDecoder, COUNT, Counters, Form, Leaf, branches_of, decode_baskets, estimated_bytes, other_numbers};
use crate::source::{BlobRange, RequestMemory, TreeCache, TreeSource};
use crate::{Error, ErrorKind, Result};

/// Bytes of values, as branches state them, that are decoded to find out: 64 MiB.
const PROBE_BYTES: f64 = (64 << 20) as f64;

/// The dotted paths of the fields whose values cannot be decoded, and why: those of the branches, or of a whole field whose
/// branches contradict each other. All entries are decoded of a small tree; of a large or remote one the first
/// entries, and only of branches with objects, since plain leaves fail only where their bytes are damaged.
///
/// # Errors
/// All that do not concern the values: those of the storage, and of the memory budget.
pub fn unreadable(
    source: &TreeSource,
    memory: &RequestMemory,
    cache: TreeCache,
    fields: &[(&TreeField, DataType)],
    entries: Range<u64>,
) -> Result<Vec<(String, Error)>> {
    let count = entries.end - entries.start;
    let bytes: f64 = fields.iter().map(|(field, _)| estimated_bytes(source, field, count)).sum();
    let is_small = bytes <= PROBE_BYTES;
    let is_local = source.is_read_in_place(&BlobRange::in_file(0..1));
    let count = if is_small { count } else { ((count as f64 * PROBE_BYTES / bytes) as u64).clamp(1, count) };
    let probed = entries.start..entries.start + count;
    let entries = std::slice::from_ref(&probed);
    let is_probed = |field: &&(&TreeField, DataType)| is_small && is_local || !is_plain(field.0);
    let fields: Vec<_> = fields.iter().filter(is_probed).cloned().collect();
    let mut branches = Vec::new();
    fields.iter().for_each(|(field, _)| branches_of(field, &field.name, &mut branches));
    source.open_others(branches.into_iter().map(|(_, branch, _)| branch))?;
    if count == 0 || about_values(decode_baskets(source, memory, cache, &fields, entries))?.is_ok() {
        return Ok(Vec::new());
    }
    let counters = Counters::default();
    let decoder = BasketDecoder { source, memory, cache, counters: &counters, depth: 0 };
    let mut found = Vec::new();
    for field in &fields {
        let one = std::slice::from_ref(field);
        let Err(error) = about_values(decode_baskets(source, memory, cache, one, entries))? else { continue };
        let (mut leaves, mut paths) = (Vec::new(), Vec::new());
        Form::of(field.0, &field.1, &mut leaves)?;
        branches_of(field.0, &field.0.name, &mut paths);
        let before = found.len();
        for leaf in &leaves {
            let Err(error) = about_values(decoder.leaves(std::slice::from_ref(leaf), entries))? else { continue };
            found.extend(
                paths.iter().find(|(_, branch, _)| *branch == leaf.branch).map(|(path, ..)| (path.clone(), error)),
            );
        }
        if found.len() == before {
            let mut collections = Vec::new();
            collections_of(field.0, &field.0.name, &mut collections);
            for (counts, prefix) in collections {
                let counted = Leaf { branch: counts, layout: &COUNT, data_type: DataType::Int32 };
                let Ok(counts) = about_values(decoder.leaves(&[counted], entries))? else { continue };
                let lengths = |list: &LargeListArray| list.offsets().lengths().map(|it| it as i32).collect::<Vec<_>>();
                for leaf in &leaves {
                    let path =
                        paths.iter().find(|(path, branch, _)| *branch == leaf.branch && path.starts_with(&prefix));
                    let values = decoder.leaves(std::slice::from_ref(leaf), entries)?;
                    if let (Some((path, ..)), Some(list)) = (path, values[0].as_list_opt::<i64>())
                        && lengths(list) != counts[0].as_primitive::<Int32Type>().values()[..]
                    {
                        found.push((path.clone(), other_numbers()));
                    }
                }
            }
        }
        if found.len() == before {
            found.push((field.0.name.clone(), error));
        }
    }
    Ok(found)
}

/// The collections in a field: the branches with their numbers of items, and how the paths of their members begin.
fn collections_of(field: &TreeField, path: &str, found: &mut Vec<(usize, String)>) {
    match &field.kind {
        FieldKind::Collection { counts, .. } => found.push((*counts, format!("{path}."))),
        FieldKind::Record(members) => {
            members.iter().for_each(|member| collections_of(member, &format!("{path}.{}", member.name), found));
        }
        FieldKind::Value { .. } => {}
    }
}

/// The error of values that cannot be decoded, apart from others.
fn about_values<T>(outcome: Result<T>) -> Result<Result<T>> {
    match outcome {
        Err(error) if !error.is_corrupt() && error.kind() != ErrorKind::Unsupported => Err(error),
        outcome => Ok(outcome),
    }
}

/// Whether all values are numbers or texts of leaves.
fn is_plain(field: &TreeField) -> bool {
    fn layout_is_plain(layout: &ValueLayout) -> bool {
        match layout {
            ValueLayout::Number(..) | ValueLayout::Leaf => true,
            ValueLayout::Fixed(_, item) | ValueLayout::Rest(item) => layout_is_plain(item),
            _ => false,
        }
    }
    matches!(&field.kind, FieldKind::Value { layout, .. } if layout_is_plain(layout))
}

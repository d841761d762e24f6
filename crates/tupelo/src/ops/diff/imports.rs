//! Types of a tree and of an ntuple made from it.

use std::collections::HashSet;

use arrow_array::new_empty_array;
use tupelo_schema::schema::arrow::data_type;
use tupelo_schema::schema::{Field, Kind, Schema};

use super::super::import::{ClassNames, imported, relabelled, with_lists};
use crate::Result;
use crate::reader::Read;

/// The reads with the types that an import reads of a tree, if one source is a tree and the other an ntuple, and the names of
/// the fields that have the type that an import makes of that of the branch.
pub(super) fn like_imported(reads: [&Read; 2]) -> Result<([Read; 2], HashSet<String>)> {
    let is_tree = reads.map(|read| read.source().schema().is_of_tree());
    let [first, second] = reads.map(Clone::clone);
    match is_tree {
        [true, false] => {
            let (first, same) = tree_like(first, second.schema())?;
            Ok(([first, second], same))
        }
        [false, true] => {
            let (second, same) = tree_like(second, first.schema())?;
            Ok(([first, second], same))
        }
        _ => Ok(([first, second], HashSet::new())),
    }
}

fn tree_like(tree: Read, ntuple: &Schema) -> Result<(Read, HashSet<String>)> {
    let (own, nameless) = (ClassNames::of_source(&tree)?, ClassNames::default());
    let mut same = HashSet::new();
    let mut fields = tree.schema().fields.clone();
    for branch in &mut fields {
        let Some(field) = ntuple.fields.iter().find(|field| field.name == branch.name) else { continue };
        let is_made = |names: &&ClassNames| imported(branch, names).display_type() == field.display_type();
        if is_counter(branch, field) || [&own, &nameless].iter().any(is_made) {
            same.insert(branch.name.clone());
        }
        // Arrays of objects without a class are lists in an ntuple.
        let forms = [&own, &nameless].map(|names| with_lists(branch, names));
        if let Some(form) = forms.into_iter().find(|form| is_stored_as(form, field)) {
            *branch = form;
        }
    }
    let wanted = Schema { fields };
    let tree = if wanted == *tree.schema() { tree } else { tree.with_schema(&wanted)? };
    Ok((tree, same))
}

/// Whether values of a branch can be compared with those of a field.
fn is_stored_as(branch: &Field, field: &Field) -> bool {
    let [own, stored] = [branch, field].map(|field| data_type(field, false));
    relabelled(&new_empty_array(&own), &stored).is_ok()
}

/// Whether a branch has the numbers of items that a field has.
fn is_counter(branch: &Field, field: &Field) -> bool {
    let is_integer = matches!(&branch.kind, Kind::Primitive(primitive) if primitive.data_type().is_integer());
    is_integer && matches!(field.kind, Kind::Cardinality { .. })
}

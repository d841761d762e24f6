//! What values say that metadata cannot: whether they vary, and whether doubles are exact as float.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, downcast_primitive_array};
use arrow_buffer::ToByteSlice;
use arrow_schema::{DataType, Field as ArrowField};

use super::advice;
use super::report::{Report, Sampled};
use crate::Result;
use crate::ops::tune::pieces;
use crate::reader::Table;

/// Bytes of a batch in memory.
const BATCH_BYTES: u64 = 4 << 20;

/// Values of a leaf until now.
#[derive(Debug)]
struct Leaf {
    /// The first value, as the bytes that it has in Arrow.
    first: Option<Vec<u8>>,
    varies: bool,
    values: u64,
    /// Whether all are exact as float; `None` if they are not doubles.
    fits_float: Option<bool>,
}

/// Reads about `bytes` bytes in memory of all fields, from clusters all over the ntuple or tree, and adds the advice that
/// they give to the report.
///
/// # Errors
/// Those of reading.
pub fn sample(table: &Table, report: &mut Report, bytes: u64) -> Result<Sampled> {
    let all = table.read_all().with_binary_strings(true);
    let (all, _) = all.without_unreadable()?;
    let wanted = (bytes as f64 / all.bytes_per_entry()?.max(1.0)) as u64;
    let clusters: Vec<_> = match table.tree() {
        Some(tree) => tree.cluster_ranges().collect(),
        None => table.ntuple()?.cluster_ranges()?,
    };
    let mut leaves: BTreeMap<String, Leaf> = BTreeMap::new();
    let mut entries = 0;
    for range in pieces(&clusters, table.entries(), wanted.max(1)) {
        for batch in all.clone().entries(range).batches_of_bytes(BATCH_BYTES)? {
            let batch = batch?;
            entries += batch.num_rows() as u64;
            for (field, values) in batch.schema().fields().iter().zip(batch.columns()) {
                look(field.name(), field, values, table.is_of_trees(), &mut leaves);
            }
        }
    }
    let chosen = |wanted: fn(&Leaf) -> bool| {
        leaves.iter().filter(|(_, leaf)| wanted(leaf)).map(|(path, _)| path.clone()).collect()
    };
    let sampled = Sampled {
        entries,
        of: table.entries(),
        // One value cannot vary.
        constant: chosen(|leaf| leaf.values > 1 && !leaf.varies),
        fits_float: chosen(|leaf| leaf.values > 0 && leaf.varies && leaf.fits_float == Some(true)),
    };
    report.advice = advice::with_sample(std::mem::take(&mut report.advice), report, &sampled);
    Ok(sampled)
}

/// Looks at the values of an array and those in it. Paths are those of columns: items of a collection of an ntuple are called
/// `_0`, those of a tree have no name.
fn look(path: &str, field: &ArrowField, values: &ArrayRef, is_tree: bool, leaves: &mut BTreeMap<String, Leaf>) {
    let item = |of: &ArrowField, items: &ArrayRef, leaves: &mut BTreeMap<String, Leaf>| {
        let inner = if is_tree { path.to_owned() } else { format!("{path}._0") };
        look(&inner, of, items, is_tree, leaves);
    };
    match field.data_type() {
        DataType::Struct(members) => {
            for (member, values) in members.iter().zip(values.as_struct().columns()) {
                look(&format!("{path}.{}", member.name()), member, values, is_tree, leaves);
            }
        }
        DataType::LargeList(of) => {
            let list = values.as_list::<i64>();
            let (start, end) = (list.value_offsets()[0] as usize, list.value_offsets()[list.len()] as usize);
            item(of, &list.values().slice(start, end - start), leaves);
        }
        DataType::FixedSizeList(of, size) => {
            let list = values.as_fixed_size_list();
            let length = usize::try_from(*size).unwrap_or_default() * list.len();
            let start = list.value_offset(0) as usize;
            item(of, &list.values().slice(start, length), leaves);
        }
        data_type => {
            let is_double = *data_type == DataType::Float64;
            let new = || Leaf { first: None, varies: false, values: 0, fits_float: is_double.then_some(true) };
            let leaf = leaves.entry(path.to_owned()).or_insert_with(new);
            leaf.values += values.len() as u64;
            leaf.varies = leaf.varies || varies(values, &mut leaf.first);
            if leaf.fits_float == Some(true) && is_double {
                let exact = |value: f64| value.is_nan() || f64::from(value as f32).to_bits() == value.to_bits();
                leaf.fits_float = Some(values.as_primitive::<Float64Type>().values().iter().copied().all(exact));
            }
        }
    }
}

/// Whether values differ from each other or from the first one. Values of unknown types count as different.
fn varies(values: &ArrayRef, first: &mut Option<Vec<u8>>) -> bool {
    if values.null_count() > 0 {
        return values.null_count() < values.len() || first.is_some();
    }
    let mut differs = |bytes: &[u8]| match first {
        Some(first) => first != bytes,
        None => {
            *first = Some(bytes.to_vec());
            false
        }
    };
    match values.data_type() {
        DataType::Boolean => values.as_boolean().values().iter().any(|it| differs(&[it.into()])),
        DataType::LargeBinary => values.as_binary::<i64>().iter().flatten().any(differs),
        DataType::LargeUtf8 => values.as_string::<i64>().iter().flatten().any(|it| differs(it.as_bytes())),
        // Bits, so that values that are not numbers are equal to themselves.
        _ => downcast_primitive_array!(
            values => values.values().iter().any(|it| differs(it.to_byte_slice())),
            _ => true
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Float64Array, Int32Array, LargeListArray};

    use super::*;

    fn leaves(values: Vec<ArrayRef>) -> BTreeMap<String, Leaf> {
        let mut leaves = BTreeMap::new();
        for values in values {
            let field = ArrowField::new("x", values.data_type().clone(), true);
            look("x", &field, &values, false, &mut leaves);
        }
        leaves
    }

    #[test]
    fn values_in_several_batches_are_compared() {
        let array = |values: &[i32]| Arc::new(Int32Array::from(values.to_vec())) as ArrayRef;
        assert!(!leaves(vec![array(&[7, 7]), array(&[7])])["x"].varies);
        assert!(leaves(vec![array(&[7, 7]), array(&[8])])["x"].varies);
        assert_eq!(leaves(vec![array(&[7])])["x"].fits_float, None);
    }

    #[test]
    fn only_exact_doubles_fit_into_float() {
        let array = |values: &[f64]| Arc::new(Float64Array::from(values.to_vec())) as ArrayRef;
        let fits = |values: &[f64]| leaves(vec![array(values)])["x"].fits_float;
        assert_eq!(fits(&[0.5, -1.25, f64::NAN, f64::INFINITY]), Some(true));
        for odd in [0.1, 1e300, 1e-320, f64::from(1 << 24) + 1.0] {
            assert_eq!(fits(&[0.5, odd]), Some(false), "{odd}");
        }
    }

    #[test]
    fn items_of_lists_have_the_paths_of_columns() {
        let lists = vec![Some(vec![Some(1), Some(1)]), Some(vec![]), Some(vec![Some(1)])];
        let list = LargeListArray::from_iter_primitive::<arrow_array::types::Int32Type, _, _>(lists);
        let found = leaves(vec![Arc::new(list)]);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["x._0"]);
        assert!(!found["x._0"].varies && found["x._0"].values == 3);
    }
}

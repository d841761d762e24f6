//! Digests of columns, the same as those of `hashes` in `bench/rivals/contestants.py`.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use twox_hash::XxHash3_64;

use crate::Result;

/// Type, length and a hash over every bit of each column, and the bytes of all of them as NumPy would hold them.
pub(crate) fn of(batch: &RecordBatch) -> Result<(BTreeMap<String, String>, u64)> {
    let (mut digests, mut bytes) = (BTreeMap::new(), 0);
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        digests.insert(field.name().clone(), column_text(column, &mut bytes)?);
    }
    Ok((digests, bytes))
}

fn column_text(column: &ArrayRef, bytes: &mut u64) -> Result<String> {
    let Some(lists) = column.as_list_opt::<i64>() else { return values_text(column, bytes) };
    let (offsets, items) = (lists.value_offsets(), lists.values());
    let (first, last) = (offsets.first().copied().unwrap_or(0), offsets.last().copied().unwrap_or(0));
    let ends: Vec<u8> = offsets.iter().flat_map(|end| (end - first).to_le_bytes()).collect();
    let items = items.slice(usize::try_from(first)?, usize::try_from(last - first)?);
    let ends = text("int64", offsets.len(), &ends, bytes);
    Ok(format!("{ends} {}", values_text(&items, bytes)?))
}

fn values_text(values: &ArrayRef, bytes: &mut u64) -> Result<String> {
    if let Some(bits) = values.as_boolean_opt() {
        let unpacked: Vec<u8> = bits.values().iter().map(u8::from).collect();
        return Ok(text("bool", values.len(), &unpacked, bytes));
    }
    let (name, width) = match values.data_type() {
        kind if kind.is_primitive() => (kind.to_string().to_lowercase(), kind.primitive_width().unwrap_or(0)),
        other => return Err(format!("no digest for {other}").into()),
    };
    let data = values.to_data();
    let whole = data.buffers().first().ok_or("numbers without a buffer")?.as_slice();
    let start = data.offset() * width;
    Ok(text(&name, values.len(), &whole[start..start + values.len() * width], bytes))
}

fn text(kind: &str, count: usize, contents: &[u8], bytes: &mut u64) -> String {
    *bytes += contents.len() as u64;
    format!("{kind}[{count}] {:016x}", XxHash3_64::oneshot(contents))
}

/// For columns that must be of one type.
pub(crate) fn wants(name: &str, kind: &DataType) -> String {
    format!("column \"{name}\" is {kind}")
}

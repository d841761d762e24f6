//! A part of the entries: by a cut, by a mask over everything, or one by one.

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{BooleanArray, RecordBatch};

use crate::timing::{self, Report};
use crate::{Result, digest, open};

/// Entries where the first column has a value.
fn equal(batch: &RecordBatch, name: &str, value: i32) -> Result<BooleanArray, String> {
    let index = batch.schema_ref().index_of(name).map_err(|error| error.to_string())?;
    let column = batch.column(index);
    let numbers = column.as_primitive_opt::<Int32Type>().ok_or_else(|| digest::wants(name, column.data_type()))?;
    Ok(BooleanArray::from_unary(numbers, |number| number == value))
}

/// Reads all entries of all columns and keeps some of them then.
pub(crate) fn mask(arguments: &[&str], repeat: usize) -> Result<Report> {
    let &[file, ntuple, columns, name, value] = arguments else { return Err("mask wants five arguments".into()) };
    let (names, value): (Vec<&str>, i32) = (columns.split(',').collect(), value.parse()?);
    let all: Vec<&str> = names.iter().copied().chain([name]).collect();
    let (report, batch) = timing::measure(repeat, || {
        let batch = open(file, ntuple)?.read(&all)?.to_batch()?;
        let wanted = names.iter().map(|name| batch.schema_ref().index_of(name)).collect::<Result<Vec<_>, _>>()?;
        Ok(arrow_select::filter::filter_record_batch(&batch.project(&wanted)?, &equal(&batch, name, value)?)?)
    })?;
    report.with_batch(&batch)
}

/// Lets the engine keep them.
pub(crate) fn cut(arguments: &[&str], repeat: usize) -> Result<Report> {
    let &[file, ntuple, columns, name, value] = arguments else { return Err("cut wants five arguments".into()) };
    let (names, value): (Vec<&str>, i32) = (columns.split(',').collect(), value.parse()?);
    let (report, batch) = timing::measure(repeat, || {
        let read = open(file, ntuple)?.read(&names)?;
        let column = name.to_owned();
        // A column of another type has no entry with the value; the answers of the contestants then differ.
        let keep = move |batch: &RecordBatch| {
            Ok(equal(batch, &column, value).unwrap_or_else(|_| BooleanArray::from(vec![false; batch.num_rows()])))
        };
        Ok(read.with_cut([name], keep)?.to_batch()?)
    })?;
    report.with_batch(&batch)
}

/// Single entries of a column.
pub(crate) fn random(arguments: &[&str], repeat: usize) -> Result<Report> {
    let &[file, ntuple, column, entries] = arguments else { return Err("random wants four arguments".into()) };
    let entries = entries.split(',').map(str::parse).collect::<Result<Vec<u64>, _>>()?;
    let (report, batch) = timing::measure(repeat, || Ok(open(file, ntuple)?.read([column])?.take(&entries)?))?;
    report.with_batch(&batch)
}

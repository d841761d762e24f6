//! Entries as a Parquet file.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::SerializedFileWriter;
use tupelo::reader::Read;
use tupelo::writer::{EntrySink, WriteProgress};

use super::COLUMNAR_BATCH_BYTES;
use crate::console::{Console, Output};
use crate::failure::Failure;

/// Maximum number of entries in a row group, as in other writers of Parquet.
const MAX_GROUP_ENTRIES: usize = 1 << 20;
/// A row group takes at most this fraction of the memory budget. More row groups would be inefficient: each has
/// its own dictionaries, and half a kilobyte of metadata for each column.
const GROUP_PART_OF_BUDGET: u64 = 4;
/// Maximum number of encoded fields that wait to be written, for each thread.
const WAITING_FIELDS: usize = 4;

/// A Parquet file.
///
/// The writer of a column has a codec and buffers of up to a few MiB. To limit memory, the columns of a row group are
/// encoded field by field, by as many threads as decode, and a writer is dropped when its field is encoded.
pub(crate) struct ParquetSink {
    fields: Fields,
    file: SerializedFileWriter<Output>,
    factories: Vec<ArrowRowGroupWriterFactory>,
    group_entries: usize,
    /// The entries of the next row group.
    group: Vec<RecordBatch>,
    pending: usize,
    entries: u64,
}

impl ParquetSink {
    /// A file for what is read, with row groups that fit a memory budget.
    pub(crate) fn new(read: &Read, budget: u64, output: Output) -> Result<Self, Failure> {
        let schema = read.arrow_schema();
        if let Some(path) = schema.fields().iter().find_map(|field| variant(field)) {
            let refused = Failure::usage(format_args!("Parquet does not support variants, but field '{path}' is one"));
            return Err(refused.with_hint(format!(
                "exclude the field with --exclude '{path}', select others with --fields, or use --format arrow"
            )));
        }
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
        // Used only for the start of the file: its `write` keeps the writers of all columns of a row group.
        let writer = ArrowWriter::try_new(output, schema.clone(), Some(properties)).map_err(Failure::new)?;
        let (file, _) = writer.into_serialized_writer().map_err(Failure::new)?;
        let factories = factories(schema.fields(), file.properties()).map_err(Failure::new)?;
        let (fields, group_entries) = (schema.fields().clone(), group_entries(read.bytes_per_entry()?, budget));
        Ok(Self { fields, file, factories, group_entries, group: Vec::new(), pending: 0, entries: 0 })
    }

    fn write_group(&mut self) -> Result<(), Failure> {
        let entries = self.group_entries.min(self.pending);
        let group = split(&mut self.group, entries);
        write_group(&mut self.file, &self.fields, &self.factories, &group)?;
        self.pending -= entries;
        self.entries += entries as u64;
        Ok(())
    }
}

impl EntrySink for ParquetSink {
    type Error = Failure;

    const BATCH_BYTES: u64 = COLUMNAR_BATCH_BYTES;

    fn write(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        if batch.num_rows() > 0 {
            self.pending += batch.num_rows();
            self.group.push(batch.clone());
        }
        while self.pending >= self.group_entries {
            self.write_group()?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<WriteProgress, Failure> {
        while self.pending > 0 {
            self.write_group()?;
        }
        self.file.finish().map_err(Failure::new)?;
        Ok(WriteProgress { entries: self.entries, ..WriteProgress::default() })
    }
}

/// Omits records without members, which Parquet does not support, and lists of them. Also returns the number of lists, whose
/// lengths are lost; the others have no values.
pub(crate) fn without_empty_records(read: Read, console: &Console) -> Result<(Read, usize), Failure> {
    let mut omitted = Vec::new();
    for field in read.arrow_schema().fields() {
        empty_records(field, field.name().clone(), &mut omitted);
    }
    if omitted.is_empty() {
        return Ok((read, 0));
    }
    let (lists, records): (Vec<_>, Vec<_>) = omitted.into_iter().partition(|(_, is_list)| *is_list);
    for (what, fields) in [("records", &records), ("lists of records", &lists)] {
        let named: Vec<_> = fields.iter().map(|(path, _)| format!("'{path}'")).collect();
        if !named.is_empty() {
            let named = named.join(", ");
            console.warn(&format!("omitted, because Parquet does not support {what} without members: {named}"));
        }
    }
    let count = lists.len();
    let read = read.without(records.into_iter().chain(lists).map(|(path, _)| path).collect::<Vec<_>>())?;
    match read.arrow_schema().fields().is_empty() {
        true => Err(Failure::usage("Parquet supports none of the fields").with_hint("use --format arrow")),
        false => Ok((read, count)),
    }
}

/// Number of entries in a row group.
fn group_entries(bytes_per_entry: f64, budget: u64) -> usize {
    let bytes = budget / GROUP_PART_OF_BUDGET;
    (bytes as f64 / bytes_per_entry.max(1.0)).clamp(1.0, MAX_GROUP_ENTRIES as f64) as usize
}

/// Takes the first entries out of batches.
fn split(batches: &mut Vec<RecordBatch>, entries: usize) -> Vec<RecordBatch> {
    let mut left = entries;
    let mut first = Vec::new();
    while left > 0 && !batches.is_empty() {
        let batch = batches.remove(0);
        let taken = batch.num_rows().min(left);
        if taken < batch.num_rows() {
            batches.insert(0, batch.slice(taken, batch.num_rows() - taken));
        }
        first.push(batch.slice(0, taken));
        left -= taken;
    }
    first
}

/// A factory of column writers for each field. The factory of the whole file creates the writers of all fields at once.
fn factories(fields: &[FieldRef], properties: &WriterPropertiesPtr) -> ParquetResult<Vec<ArrowRowGroupWriterFactory>> {
    let factory = |field: &FieldRef| {
        let schema = Arc::new(Schema::new(vec![field.clone()]));
        let converter = ArrowSchemaConverter::new().with_coerce_types(properties.coerce_types());
        let parquet = converter.convert(&schema)?;
        let file = SerializedFileWriter::new(io::sink(), parquet.root_schema_ptr(), properties.clone())?;
        Ok(ArrowRowGroupWriterFactory::new(&file, schema))
    };
    fields.iter().map(factory).collect()
}

fn write_group(
    file: &mut SerializedFileWriter<Output>,
    fields: &[FieldRef],
    factories: &[ArrowRowGroupWriterFactory],
    batches: &[RecordBatch],
) -> Result<(), Failure> {
    let index = file.flushed_row_groups().len();
    let mut group = file.next_row_group().map_err(Failure::new)?;
    let encode = |field: usize| encode(&fields[field], &factories[field], index, field, batches);
    in_order(fields.len(), tupelo::threads(), encode, |chunks| {
        chunks?.into_iter().try_for_each(|chunk| chunk.append_to_row_group(&mut group))
    })
    .map_err(Failure::new)?;
    group.close().map(drop).map_err(Failure::new)
}

/// The columns of one field in one row group.
fn encode(
    field: &Field,
    factory: &ArrowRowGroupWriterFactory,
    group: usize,
    column: usize,
    batches: &[RecordBatch],
) -> ParquetResult<Vec<ArrowColumnChunk>> {
    let mut writers = factory.create_column_writers(group)?;
    for batch in batches {
        let leaves = compute_leaves(field, batch.column(column))?;
        for (writer, leaf) in writers.iter_mut().zip(&leaves) {
            writer.write(leaf)?;
        }
    }
    writers.into_iter().map(|writer| writer.close()).collect()
}

/// Computes a result for each number below `count` by several threads, and passes the results on in order.
fn in_order<T: Send>(
    count: usize,
    threads: usize,
    compute: impl Fn(usize) -> T + Sync,
    mut pass: impl FnMut(T) -> ParquetResult<()>,
) -> ParquetResult<()> {
    if threads <= 1 || count <= 1 {
        return (0..count).try_for_each(|number| pass(compute(number)));
    }
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel(threads * WAITING_FIELDS);
        for _ in 0..threads.min(count) {
            let (sender, next, compute) = (sender.clone(), &next, &compute);
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    // The receiver is dropped when writing fails.
                    if number >= count || sender.send((number, compute(number))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let (mut expected, mut early) = (0, BTreeMap::new());
        for (number, result) in receiver {
            early.insert(number, result);
            while let Some(result) = early.remove(&expected) {
                pass(result)?;
                expected += 1;
            }
        }
        match expected == count {
            true => Ok(()),
            false => Err(ParquetError::General("a thread ended before it finished".to_owned())),
        }
    })
}

/// The type of the items of nested lists. The items have no names of their own.
fn innermost(mut field: &Field) -> &DataType {
    while let DataType::LargeList(item) | DataType::FixedSizeList(item, _) = field.data_type() {
        field = item;
    }
    field.data_type()
}

/// Whether a field is a record without values, or nested lists of such records.
fn is_empty_record(field: &Field) -> bool {
    matches!(innermost(field), DataType::Struct(members) if members.iter().all(|member| is_empty_record(member)))
}

/// Collects the paths of records without values at or below a field, and whether they are in lists.
fn empty_records(field: &Field, path: String, found: &mut Vec<(String, bool)>) {
    if is_empty_record(field) {
        found.push((path, has_lengths(field)));
    } else if let DataType::Struct(members) = innermost(field) {
        members.iter().for_each(|member| empty_records(member, format!("{path}.{}", member.name()), found));
    }
}

/// Whether there is a list in a record without values.
fn has_lengths(field: &Field) -> bool {
    match field.data_type() {
        DataType::LargeList(_) => true,
        DataType::FixedSizeList(item, _) => has_lengths(item),
        DataType::Struct(members) => members.iter().any(|member| has_lengths(member)),
        _ => false,
    }
}

/// The path of a variant, which Parquet does not support.
fn variant(field: &Field) -> Option<String> {
    let own = field.name().clone();
    match innermost(field) {
        DataType::Union(..) => Some(own),
        DataType::Struct(members) => {
            members.iter().find_map(|member| variant(member)).map(|below| format!("{own}.{below}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_passed_in_order() {
        for threads in [1, 2, 7] {
            let mut seen = Vec::new();
            let slow_at_first = |number: usize| {
                std::thread::sleep(std::time::Duration::from_millis(20 / (number as u64 + 1)));
                number
            };
            in_order(30, threads, slow_at_first, |number| {
                seen.push(number);
                Ok(())
            })
            .unwrap();
            assert_eq!(seen, (0..30).collect::<Vec<_>>());
            let stopped = in_order(
                1000,
                threads,
                |number| number,
                |number| match number {
                    3 => Err(ParquetError::EOF("full".to_owned())),
                    _ => Ok(()),
                },
            );
            assert!(stopped.unwrap_err().to_string().contains("full"));
        }
    }

    #[test]
    fn row_groups_fit_the_budget() {
        let gib = 1 << 30;
        assert_eq!(group_entries(200.0, gib), MAX_GROUP_ENTRIES);
        assert_eq!(group_entries(0.5, gib), MAX_GROUP_ENTRIES);
        assert_eq!(group_entries(120_000.0, gib), (256 << 20) / 120_000);
        assert_eq!(group_entries(120_000.0, 64 << 20), (16 << 20) / 120_000);
        assert_eq!(group_entries(1e12, gib), 1);
    }
}

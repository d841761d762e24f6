//! Entries as a Parquet file.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, FieldRef, Schema};
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::SerializedFileWriter;
use tupelo::reader::Read;

use super::COLUMNAR_BATCH_BYTES;
use crate::console::{Output, Progress};
use crate::failure::Failure;

/// Most entries in a row group, as in other writers of Parquet.
const MAX_GROUP_ENTRIES: usize = 1 << 20;
/// A row group takes at most this part of the memory budget. It is not less where there are few columns: a group has
/// dictionaries of its own, and the metadata take half a kilobyte for each column in each group.
const GROUP_PART_OF_BUDGET: u64 = 4;
/// Encoded fields that may wait for their turn to be written, for each thread.
const WAITING_FIELDS: usize = 4;

/// Writes all entries.
///
/// A writer of a column holds a codec and buffers, together up to a few MiB. So that these do not add up, the columns of a
/// row group are encoded field by field, by as many threads as decode, and no writer lives longer than that.
pub(crate) fn parquet(read: Read, budget: u64, output: Output, progress: &mut Progress) -> Result<(), Failure> {
    let schema = read.arrow_schema();
    for field in schema.fields() {
        if let Some((path, why)) = not_in_parquet(field) {
            let refused = Failure::usage(format_args!("Parquet has no {why}, which field '{path}' needs"));
            return Err(refused.with_hint("choose other fields with --fields, or use --format arrow"));
        }
    }
    let group_entries = group_entries(read.bytes_per_entry()?, budget);
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
    // It is asked only for the head of the file: its own writing keeps all columns of a row group open.
    let writer = ArrowWriter::try_new(output, schema.clone(), Some(properties)).map_err(Failure::new)?;
    let (mut file, _) = writer.into_serialized_writer().map_err(Failure::new)?;
    let factories = factories(schema.fields(), file.properties()).map_err(Failure::new)?;
    let (mut group, mut entries, mut done) = (Vec::new(), 0, 0);
    let mut batches = read.batches_of_bytes(COLUMNAR_BATCH_BYTES)?;
    loop {
        let batch = batches.next().transpose()?;
        let is_last = batch.is_none();
        for batch in batch.into_iter().filter(|batch| batch.num_rows() > 0) {
            entries += batch.num_rows();
            group.push(batch);
        }
        while entries >= group_entries || is_last && entries > 0 {
            let next = split(&mut group, group_entries.min(entries));
            entries -= group_entries.min(entries);
            write_group(&mut file, schema.fields(), &factories, &next)?;
            done += next.iter().map(|batch| batch.num_rows() as u64).sum::<u64>();
            progress.set(done);
        }
        if is_last {
            return file.close().map(drop).map_err(Failure::new);
        }
    }
}

/// Entries of a row group.
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

/// Makers of the column writers of each field alone: the one of the whole file makes those of all fields at once.
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

/// Computes something for each number below `count` by several threads, and passes the results on in order.
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
                    // Nobody listens any more where writing failed.
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
            false => Err(ParquetError::General("a thread ended before its work was done".to_owned())),
        }
    })
}

/// The path of a field that Parquet cannot store, and what Parquet lacks.
fn not_in_parquet(field: &Field) -> Option<(String, &'static str)> {
    let own = |why| Some((field.name().clone(), why));
    let below = match field.data_type() {
        DataType::Union(..) => return own("variants"),
        DataType::Struct(members) if members.is_empty() => return own("records without members"),
        DataType::Struct(members) => members.iter().find_map(|member| not_in_parquet(member)),
        // The items of lists have no name of their own.
        DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            let (path, why) = not_in_parquet(item)?;
            let below = path.split_once('.').map_or(String::new(), |(_, below)| format!(".{below}"));
            return own(why).map(|(name, why)| (name + &below, why));
        }
        _ => None,
    };
    below.map(|(path, why)| (format!("{}.{path}", field.name()), why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_whoever_is_first() {
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
    fn row_groups_are_of_a_size() {
        let gib = 1 << 30;
        assert_eq!(group_entries(200.0, gib), MAX_GROUP_ENTRIES);
        assert_eq!(group_entries(0.5, gib), MAX_GROUP_ENTRIES);
        assert_eq!(group_entries(120_000.0, gib), (256 << 20) / 120_000);
        assert_eq!(group_entries(120_000.0, 64 << 20), (16 << 20) / 120_000);
        assert_eq!(group_entries(1e12, gib), 1);
    }
}

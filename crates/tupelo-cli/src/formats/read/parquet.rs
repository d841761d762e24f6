//! Parquet files.

use std::ops::Range;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};

use super::guard::guarded;
use super::{Batches, ForeignFile, Place, batch_entries};
use crate::failure::Failure;

/// Most entries of a batch. Dictionaries make large values of few bytes.
const MAX_ENTRIES: u64 = 1 << 11;

/// A Parquet file.
pub(super) struct ParquetFile {
    place: Place,
    metadata: ArrowReaderMetadata,
    entries: u64,
    bytes_per_entry: u64,
}

impl ParquetFile {
    pub(super) fn open(place: Place) -> Result<Self, Failure> {
        let read = guarded(|| ArrowReaderMetadata::load(&place.file, ArrowReaderOptions::new()));
        let metadata = match read {
            Some(Ok(metadata)) => metadata,
            Some(Err(error)) => return Err(place.failure(format_args!("is not a complete Parquet file: {error}"))),
            None => return Err(damaged(&place)),
        };
        let (mut entries, mut bytes) = (0u64, 0u64);
        for group in metadata.metadata().row_groups() {
            let size = (u64::try_from(group.num_rows()), u64::try_from(group.total_byte_size()));
            let (Ok(rows), Ok(size)) = size else { return Err(damaged(&place)) };
            (entries, bytes) = (entries.saturating_add(rows), bytes.saturating_add(size));
        }
        Ok(Self { place, metadata, entries, bytes_per_entry: bytes / entries.max(1) })
    }
}

fn damaged(place: &Place) -> Failure {
    place.failure("the Parquet file is damaged: its metadata cannot be decoded").with_hint("copy the file again")
}

/// The failure for an error of the decoder, which has no kind for a wrong checksum.
fn unread(place: &Place, error: &str) -> Failure {
    match error.contains("CRC checksum mismatch") {
        true => place
            .failure("the Parquet file is damaged: a page does not match its checksum")
            .with_hint("copy the file again"),
        false => place.failure(error),
    }
}

impl ForeignFile for ParquetFile {
    fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    fn entries(&self) -> Option<u64> {
        Some(self.entries)
    }

    fn is_complete(&self, column: usize) -> bool {
        let schema = self.metadata.parquet_schema();
        let mut leaves = (0..schema.num_columns()).filter(|&leaf| schema.get_column_root_idx(leaf) == column);
        let (Some(leaf), None) = (leaves.next(), leaves.next()) else { return false };
        let described = schema.column(leaf);
        if described.max_rep_level() > 0 || described.max_def_level() > 1 {
            return false;
        }
        let nulls = self.metadata.metadata().row_groups().iter().map(|group| {
            let statistics = group.columns().get(leaf).and_then(|column| column.statistics());
            statistics.and_then(|statistics| statistics.null_count_opt())
        });
        described.max_def_level() == 0 || nulls.into_iter().all(|nulls| nulls == Some(0))
    }

    fn batches(&self, columns: &[usize], range: Range<u64>) -> Result<Batches<'_>, Failure> {
        let metadata = self.metadata.clone();
        let roots = ProjectionMask::roots(metadata.parquet_schema(), columns.iter().copied());
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(self.place.handle()?, metadata)
            .with_projection(roots)
            .with_batch_size(batch_entries(self.bytes_per_entry, MAX_ENTRIES) as usize)
            .with_offset(range.start as usize)
            .with_limit((range.end - range.start) as usize);
        let mut reader = match guarded(|| builder.build()) {
            Some(Ok(reader)) => reader,
            Some(Err(error)) => return Err(self.place.failure(error)),
            None => return Err(damaged(&self.place)),
        };
        let mut left = range.end - range.start;
        let mut next = move || -> Option<Result<RecordBatch, Failure>> {
            let missing = || {
                let all = range.end;
                self.place.failure(format_args!("expected {all} entries, {left} are missing; copy the file again"))
            };
            match guarded(|| reader.next()) {
                None => Some(Err(damaged(&self.place))),
                Some(Some(Err(error))) => Some(Err(unread(&self.place, &error.to_string()))),
                Some(Some(Ok(batch))) => {
                    left = left.saturating_sub(batch.num_rows() as u64);
                    Some(Ok(batch))
                }
                Some(None) if left > 0 => Some(Err(missing())),
                Some(None) => None,
            }
        };
        // Nothing is read after an error.
        let mut is_over = false;
        Ok(Box::new(std::iter::from_fn(move || {
            let batch = if is_over { None } else { next() };
            is_over = !matches!(batch, Some(Ok(_)));
            batch
        })))
    }
}

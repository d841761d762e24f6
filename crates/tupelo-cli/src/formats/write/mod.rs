//! Files of other formats being written: text, Arrow and Parquet.

mod lines;
mod parquet;

use std::io::{BufWriter, Write};

use arrow_array::RecordBatch;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::Schema;
use tupelo::writer::{EntrySink, WriteProgress};

pub(crate) use self::lines::TextSink;
pub(crate) use self::parquet::{ParquetSink, without_empty_records};
use super::{Container, Format};
use crate::console::Output;
use crate::failure::Failure;

/// Size of record batches in Arrow and of decoded batches for Parquet, in bytes.
const COLUMNAR_BATCH_BYTES: u64 = 64 << 20;

/// An Arrow IPC stream or file.
pub(crate) struct ArrowSink {
    writer: ArrowWriter,
    entries: u64,
}

enum ArrowWriter {
    Stream(StreamWriter<BufWriter<Output>>),
    File(FileWriter<BufWriter<Output>>),
}

impl ArrowSink {
    pub(crate) fn new(schema: &Schema, container: Container, output: Output) -> Result<Self, Failure> {
        let output = BufWriter::new(output);
        let writer = match container {
            Container::Stream => StreamWriter::try_new(output, schema).map(ArrowWriter::Stream),
            Container::File => FileWriter::try_new(output, schema).map(ArrowWriter::File),
        };
        Ok(Self { writer: writer.map_err(Failure::new)?, entries: 0 })
    }
}

impl EntrySink for ArrowSink {
    type Error = Failure;

    const BATCH_BYTES: u64 = COLUMNAR_BATCH_BYTES;

    fn write(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        self.entries += batch.num_rows() as u64;
        let written = match &mut self.writer {
            ArrowWriter::Stream(writer) => writer.write(batch),
            ArrowWriter::File(writer) => writer.write(batch),
        };
        written.map_err(Failure::new)
    }

    fn finish(&mut self) -> Result<WriteProgress, Failure> {
        let (ended, output) = match &mut self.writer {
            ArrowWriter::Stream(writer) => (writer.finish(), writer.get_mut()),
            ArrowWriter::File(writer) => (writer.finish(), writer.get_mut()),
        };
        ended.map_err(Failure::new)?;
        output.flush()?;
        Ok(WriteProgress { entries: self.entries, ..WriteProgress::default() })
    }
}

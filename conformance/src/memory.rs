//! Writing and reading without a file system.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;
use tupelo::schema::Schema;
use tupelo::{File, FileWriter, Ntuple, Result, WriteOptions};
use tupelo_storage::{ByteSource, Hints, MemoryFile, MemorySink, MemorySource};

/// Name of the ntuple in files that [`write()`] makes.
pub const NAME: &str = "n";

/// A ROOT file with one ntuple of these batches, each of which ends a cluster if `clusters` says so.
///
/// # Errors
/// Those of writing.
pub fn write(schema: &Schema, batches: &[RecordBatch], options: WriteOptions, clusters: bool) -> Result<Bytes> {
    let target = MemoryFile::new();
    let file = FileWriter::create_in(Box::new(MemorySink::create(&target)), "memory.root")?;
    let mut ntuple = file.ntuple(NAME, schema, options)?;
    for batch in batches {
        ntuple.write(batch)?;
        if clusters {
            ntuple.flush_cluster()?;
        }
    }
    ntuple.finish()?;
    file.finish()?;
    Ok(target.bytes().unwrap_or_default())
}

/// The file, page checksums verified.
///
/// # Errors
/// Those of opening.
pub fn file(bytes: &Bytes) -> Result<File> {
    File::new(Arc::new(MemorySource::new(bytes.clone())), true)
}

/// The file's only ntuple.
///
/// # Errors
/// Those of opening.
pub fn ntuple(bytes: &Bytes) -> Result<Ntuple> {
    file(bytes)?.ntuple(None)
}

/// Bytes in memory that are read like a local file: by the thread that decodes them.
#[derive(Debug)]
pub struct Near(pub MemorySource);

impl fmt::Display for Near {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ByteSource for Near {
    fn size(&self) -> tupelo_storage::Result<u64> {
        self.0.size()
    }

    fn hints(&self) -> Hints {
        self.0.hints()
    }

    fn reads_in_place(&self, _: &Range<u64>) -> bool {
        true
    }

    fn read_range(&self, range: Range<u64>) -> tupelo_storage::Result<Bytes> {
        self.0.read_range(range)
    }
}

/// The ntuple that [`write()`] made, read as from a local file.
///
/// # Errors
/// Those of opening.
pub fn near_ntuple(bytes: &Bytes) -> Result<Ntuple> {
    File::new(Arc::new(Near(MemorySource::new(bytes.clone()))), true)?.ntuple(Some(NAME))
}

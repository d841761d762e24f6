//! Writing and reading without a file system.

use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;
use tupelo::schema::Schema;
use tupelo::{File, FileWriter, Ntuple, Result, WriteOptions};
use tupelo_storage::{MemoryFile, MemorySink, MemorySource};

/// Name of the ntuple in files that [`write()`] makes.
pub const NAME: &str = "n";

/// A ROOT file with one ntuple of these batches, each of which ends a cluster if `clusters` says so.
///
/// # Errors
/// Those of writing.
pub fn write(schema: &Schema, batches: &[RecordBatch], options: WriteOptions, clusters: bool) -> Result<Bytes> {
    let target = MemoryFile::new();
    let file = FileWriter::over(Box::new(MemorySink::create(&target)), "memory.root")?;
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

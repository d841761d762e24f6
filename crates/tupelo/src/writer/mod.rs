//! Writing ntuples into ROOT files.

mod ntuple;
mod options;
mod records;

use std::path::Path;

use tupelo_format::container::StreamerInfos;
use tupelo_storage::{ByteSink, ByteSource, FileSink as LocalSink, FileSource};

pub use self::ntuple::{NtupleWriter, Written};
pub use self::options::{
    DEFAULT_CLUSTER_BYTES, DEFAULT_MAX_UNPACKED_CLUSTER_BYTES, DEFAULT_PAGE_BYTES, IndexBits, MAX_PAGE_BYTES,
    PENDING_BYTES, WriteOptions,
};
use crate::schema::Schema;
use crate::sink::FileSink;
use crate::{Error, Result};

/// A ROOT file that is being written. Nothing is visible under its name before [`FileWriter::finish`] returns; a
/// writer that is dropped leaves what was there before.
#[derive(Debug)]
pub struct FileWriter {
    sink: FileSink,
}

impl FileWriter {
    /// Begins a new file; one that exists is replaced when this one is finished.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let sink = Box::new(LocalSink::create(path)?);
        let name = path.file_name().map_or_else(|| path.to_string_lossy(), |name| name.to_string_lossy());
        Self::over(sink, &name).map_err(|e| e.within(path.display()))
    }

    /// Opens an existing file to add ntuples. What is in it stays as it is; an ntuple of a name that exists becomes
    /// the newest cycle of that name.
    ///
    /// # Errors
    /// Those of the file system; corrupt if it is no whole ROOT file.
    pub fn update(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let sink = Box::new(LocalSink::update(path)?);
        Self::onto(sink, &FileSource::open(path)?).map_err(|e| e.within(path.display()))
    }

    /// A new file over any sink; `file_name` is what the file says of itself.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn over(sink: Box<dyn ByteSink>, file_name: &str) -> Result<Self> {
        Ok(Self { sink: FileSink::create(sink, file_name)? })
    }

    /// An existing file over any sink that appends to it, and a source of its bytes.
    ///
    /// # Errors
    /// Those of sink and source; corrupt if it is no whole ROOT file.
    pub fn onto(sink: Box<dyn ByteSink>, source: &dyn ByteSource) -> Result<Self> {
        Ok(Self { sink: FileSink::update(sink, source)? })
    }

    /// Begins an ntuple under `DIRECTORY/NAME`. Several may be written at the same time.
    ///
    /// # Errors
    /// Invalid argument for names that the format forbids, schemas that cannot be written and options that fit no
    /// field; storage errors.
    pub fn ntuple(&self, path: &str, schema: &Schema, options: WriteOptions) -> Result<NtupleWriter> {
        NtupleWriter::new(self.sink.clone(), path, schema, &options).map_err(|e| self.context(path, e))
    }

    /// Adds layouts of classes to those that the file describes, so that ROOT can read objects of these classes without
    /// their libraries. What the file has of the same class, version and checksum stays as it is.
    ///
    /// # Errors
    /// Invalid argument if the file was given up.
    pub fn add_streamer_info(&self, infos: &StreamerInfos) -> Result<()> {
        self.sink.add_streamer_info(infos).map_err(|e| e.within(self.sink.name()))
    }

    /// Writes directories, streamer info and header, and makes the file visible and durable.
    ///
    /// # Errors
    /// Invalid argument if an ntuple was begun but not finished; storage errors. What was there under the name before
    /// is then still there.
    pub fn finish(self) -> Result<()> {
        self.sink.commit().map_err(|e| e.within(self.sink.name()))
    }

    /// Gives the file up and removes what was written.
    ///
    /// # Errors
    /// Storage errors when cleaning up.
    pub fn abort(self) -> Result<()> {
        self.sink.abort().map_err(|e| e.within(self.sink.name()))
    }

    fn context(&self, path: &str, error: Error) -> Error {
        error.within(format!("ntuple '{path}'")).within(self.sink.name())
    }
}

//! Writing ntuples into ROOT files.

mod attributes;
mod cluster_builder;
mod committer;
mod groups;
mod ntuple;
mod options;
mod records;
mod reopen;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use tupelo_format::container::StreamerInfos;
use tupelo_storage::{ByteSink, ByteSource, FileSink as LocalSink, FileSource};

pub use self::attributes::AttributeSetWriter;
pub use self::cluster_builder::Written;
use self::committer::{Committer, Place};
pub use self::ntuple::{FillContext, NtupleWriter};
pub use self::options::{
    DEFAULT_CHECKPOINT_BYTES, DEFAULT_CHECKPOINT_TIME, DEFAULT_CLUSTER_BYTES, DEFAULT_PAGE_BYTES, MAX_PAGE_BYTES,
    PENDING_BYTES, WRITE_BYTES, WriteOptions,
};
use crate::reader::{File, Object};
use crate::schema::Schema;
use crate::sink::{FileSink, PageSink};
use crate::{Error, Result, source};

/// A ROOT file that is being written. Nothing is visible under its name before [`FileWriter::finish`] returns, or,
/// where an existing file is updated, [`NtupleWriter::checkpoint`].
///
/// A writer that is dropped goes back to the last checkpoint, or to what was there before, and says so on the standard
/// error stream, unless an error has told already why the file cannot be finished. The last checkpoint of a new file
/// stays beside it as `NAME.tmp-RANDOM`. From then on the writers of its ntuples refuse all data.
#[derive(Debug)]
pub struct FileWriter {
    sink: FileSink,
    /// What was there before, where a file is updated.
    existing: Option<File>,
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

    /// Opens an existing file to add ntuples, or entries to an ntuple. What is in it stays as it is; an ntuple of a
    /// name that exists becomes the newest cycle of that name.
    ///
    /// # Errors
    /// Those of the file system; corrupt if it is no whole ROOT file.
    pub fn update(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let sink = Box::new(LocalSink::update(path)?);
        Self::onto(sink, Arc::new(FileSource::open(path)?)).map_err(|e| e.within(path.display()))
    }

    /// A new file over any sink; `file_name` is what the file says of itself.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn over(sink: Box<dyn ByteSink>, file_name: &str) -> Result<Self> {
        Ok(Self { sink: FileSink::create(sink, file_name)?, existing: None })
    }

    /// An existing file over any sink that appends to it, and a source of its bytes.
    ///
    /// # Errors
    /// Those of sink and source; corrupt if it is no whole ROOT file.
    pub fn onto(sink: Box<dyn ByteSink>, source: Arc<dyn ByteSource>) -> Result<Self> {
        let existing = File::over(source::File::open(source)?);
        Ok(Self { sink: FileSink::update(sink, existing.source())?, existing: Some(existing) })
    }

    /// Begins an ntuple under `DIRECTORY/NAME`. Several may be written at the same time.
    ///
    /// # Errors
    /// Invalid argument for names that the format forbids, names of other objects of a file that is updated, schemas
    /// that cannot be written and options that fit no field; storage errors.
    pub fn ntuple(&self, path: &str, schema: &Schema, options: WriteOptions) -> Result<NtupleWriter> {
        let place = Place::Listed(path.to_owned());
        let begin = || {
            // An ntuple may become another cycle of an ntuple, but not of something else: who asks for that by its name
            // would get what it is not.
            self.sink.check_free(path)?;
            Committer::create(Arc::new(self.sink.for_ntuple()), place, schema, options)
        };
        let begun = begin().and_then(|(committer, builder)| NtupleWriter::new(committer, builder, None));
        begun.map_err(|e| self.context(path, e))
    }

    /// What the directories of the file listed when it was opened to be updated; nothing of a new file.
    ///
    /// # Errors
    /// Corrupt if a directory is damaged.
    pub fn objects(&self) -> Result<Vec<Object>> {
        self.existing.as_ref().map_or_else(|| Ok(Vec::new()), File::objects)
    }

    /// Continues an ntuple of the file that is updated: entries, fields and attribute sets can be added. Columns keep
    /// their encodings; of the options, those hold that say how new pages and clusters are made. Readers see the ntuple
    /// as it was, or with all that is added, never something between.
    ///
    /// # Errors
    /// Not found, with near names; unsupported for an ntuple that is not understood as a whole; invalid argument for an
    /// older cycle, options that speak of single fields, and a file that is not updated.
    pub fn append(&self, path: &str, options: WriteOptions) -> Result<NtupleWriter> {
        let open = || {
            let file = self.existing.as_ref();
            let file = file.ok_or_else(|| Error::invalid_argument("entries can be added to a file that is updated"))?;
            let (ntuple, cycle) = file.newest_ntuple(path)?;
            let place = Place::Listed(ntuple.path().to_owned());
            let (committer, builder) =
                Committer::reopen(Arc::new(self.sink.for_ntuple()), place, &ntuple, cycle, options)?;
            NtupleWriter::new(committer, builder, Some(ntuple))
        };
        open().map_err(|e| self.context(path, e))
    }

    /// Adds layouts of classes to those that the file describes, so that ROOT can read objects of these classes without
    /// their libraries. What the file has of the same class, version and checksum stays as it is.
    ///
    /// # Errors
    /// Invalid argument if the file was given up.
    pub fn add_streamer_info(&self, infos: &StreamerInfos) -> Result<()> {
        self.sink.add_streamer_info(infos).map_err(|e| e.within(self.sink.name()))
    }

    /// Writes directories, streamer info and header, and makes the file visible and durable. A file that is updated and
    /// to which nothing was added stays as it is, byte for byte.
    ///
    /// # Errors
    /// Invalid argument if an ntuple was begun but not finished; storage errors. What was there under the name before
    /// is then still there.
    pub fn finish(self) -> Result<()> {
        self.sink.commit().map_err(|e| e.within(self.sink.name()))
    }

    /// Gives the file up: what was written since the last checkpoint is removed. Gives the name of the temporary file
    /// in which the last checkpoint of a new file is kept, if there is one.
    ///
    /// # Errors
    /// Storage errors when cleaning up.
    pub fn abort(self) -> Result<Option<String>> {
        self.sink.abort().map_err(|e| e.within(self.sink.name()))
    }

    /// Whether nothing but giving the file up is left: it was finished or given up, or an error has poisoned it.
    pub fn is_closed(&self) -> bool {
        self.sink.check_open().is_err()
    }

    fn context(&self, path: &str, error: Error) -> Error {
        error.within(format!("ntuple '{path}'")).within(self.sink.name())
    }
}

impl Drop for FileWriter {
    /// The ntuples of a file that nobody can finish any more must not take data.
    fn drop(&mut self) {
        self.sink.forget();
    }
}

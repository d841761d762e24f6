//! Writing ntuples, into ROOT files and object stores.

mod attributes;
mod cluster_builder;
mod committer;
mod entry_sink;
mod groups;
mod late_fields;
mod mirror;
mod ntuple;
mod options;
mod records;
mod reopen;
mod sealed;
#[cfg(test)]
pub(crate) mod tests;
mod transfer;
mod tree;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use tupelo_format::compression::Compression;
use tupelo_format::open::PRE_RELEASE_CLASS;
use tupelo_format::streamer::{StreamerInfos, mentions_class};
use tupelo_format::{container, object};
use tupelo_pages::sink::{FileSink, ObjectSink, Target, name_of};
use tupelo_pages::source;
use tupelo_schema::schema::Schema;
use tupelo_storage::{
    self as storage, ByteSink, ByteSource, FileSink as LocalSink, FileSource, Storage, display_name, is_object_uri,
    local_path, mirror_members,
};

pub use self::attributes::AttributeSetWriter;
use self::cluster_builder::ClusterBuilder;
pub use self::cluster_builder::WriteProgress;
use self::committer::{AnchorPlace, Committer};
pub use self::entry_sink::EntrySink;
pub use self::late_fields::FieldsWriter;
use self::mirror::Copies;
pub use self::ntuple::{FillContext, NtupleWriter};
pub use self::options::{
    DEFAULT_CHECKPOINT_BYTES, DEFAULT_CHECKPOINT_TIME, DEFAULT_CLUSTER_BYTES, DEFAULT_PAGE_BYTES, MAX_PAGE_BYTES,
    ObjectOptions, PENDING_BYTES, WRITE_BYTES, WriteOptions,
};
pub(crate) use self::records::check_name;
use self::transfer::Transfer;
pub use self::tree::{
    DEFAULT_AUTO_FLUSH, DEFAULT_BASKET_BYTES, DEFAULT_SPLIT_LEVEL, Jagged, MAX_BASKET_BYTES, MoveOptions,
    MovedTreeWriter, TreeOptions, TreeWriter,
};
pub(crate) use self::tree::{IndexOfTrees, PROCESS_CLASS, contradiction, renamed, usual_counters, without_branch};
use crate::reader::{File, Ntuple, Object, TREE_CLASSES, Tree};
use crate::{Error, Result};
pub use tupelo_pages::sink::{Mapping, format_bytes, parse_bytes};

/// A ROOT file that is being written. Nothing is visible under its name before [`FileWriter::finish`] returns, or,
/// where an existing file is updated, [`NtupleWriter::checkpoint`].
///
/// Dropping an unfinished writer restores the last checkpoint, or the file as it was, and prints that to stderr, unless
/// the error that prevented the end was already returned. The last checkpoint of a new file is kept beside it as
/// `NAME.tmp-RANDOM-tupelo`. After that, the writers of its ntuples return errors.
#[derive(Debug)]
pub struct FileWriter {
    sink: Box<dyn Target>,
    /// The file before the update.
    existing: Option<File>,
    /// In the other stores of a mirror.
    copies: Copies,
}

/// Removes the bytes past the end that the header of a file states: those of a writer that was killed before it made
/// them part of the file. Nothing is removed from a file that contradicts itself.
fn cut_waste(sink: &mut LocalSink, path: &Path) -> Result<()> {
    let file = source::File::open(Arc::new(FileSource::open(path)?))?;
    let end = file.attempt(container::read_header)?.end;
    let is_whole = || file.attempt_with_directories(|fetched| container::FileLayout::update(fetched, 0)).is_ok();
    if end < file.size() && is_whole() {
        sink.cut(end)?;
    }
    Ok(())
}

impl FileWriter {
    /// Creates a new file; an existing one is replaced when this one is finished.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if let Some(name) = path.to_str() {
            return Self::create_at(name, &Storage::default());
        }
        let name = path.file_name().map_or_else(|| path.to_string_lossy(), |name| name.to_string_lossy());
        Self::create_in(Box::new(LocalSink::create(path)?), &name).map_err(|e| e.in_file(path.display()))
    }

    /// Creates a new file at a path or URL; an existing one is replaced when this one is finished. A remote file has no
    /// checkpoints: it appears as a whole, or, after an error, not at all.
    ///
    /// # Errors
    /// Those of system, network and servers.
    pub fn create_at(name: &str, storage: &Storage) -> Result<Self> {
        if is_object_uri(name) {
            return Self::create_objects(name, storage, ObjectOptions::default());
        }
        let shown = display_name(name);
        let last = shown.rsplit('/').next().filter(|last| !last.is_empty()).unwrap_or(&shown);
        Self::create_in(storage.create(name)?, last).map_err(|e| e.in_file(&shown))
    }

    /// Creates an ntuple in an object store: `ntpl+s3://BUCKET/PREFIX`, `ntpl+file:///DIRECTORY/NAME`, and so on. The
    /// writer takes one ntuple, which is visible under the URI when the writer is finished; until then an existing one is.
    /// Whole clusters are kept in memory, and are sent while the next ones are encoded.
    ///
    /// With `ntpl+mirror:URI,URI` the ntuple is written to the first store, and copied from it to the others when the writer
    /// is finished. If one of these copies fails, that is an error, and the others are visible.
    ///
    /// # Errors
    /// Invalid argument if something other than an ntuple exists under the URI; those of system, network and servers.
    /// When the writer is finished: changed, if another writer has created or replaced the ntuple since.
    pub fn create_objects(uri: &str, storage: &Storage, options: ObjectOptions) -> Result<Self> {
        Self::create_mirrored(&mirror_members(uri)?, storage, options)
    }

    /// Creates an ntuple in any namespace. Its anchor has the key `base`; `name` is for messages.
    ///
    /// # Errors
    /// As [`FileWriter::create_objects`].
    pub fn create_objects_in(
        namespace: Arc<dyn storage::ObjectSink>,
        base: &str,
        name: &str,
        options: ObjectOptions,
    ) -> Result<Self> {
        let attempts = source::new_names(1)?;
        Self::create_attempt_in(namespace, (base, attempts.first().map_or("", String::as_str)), name, options)
    }

    fn create_attempt(uri: &str, attempt: &str, storage: &Storage, options: ObjectOptions) -> Result<Self> {
        let (namespace, base) = storage.object_sink(uri)?;
        Self::create_attempt_in(namespace, (&base, attempt), &display_name(uri), options)
    }

    fn create_attempt_in(
        namespace: Arc<dyn storage::ObjectSink>,
        (base, attempt): (&str, &str),
        name: &str,
        options: ObjectOptions,
    ) -> Result<Self> {
        let ObjectOptions { mapping, is_exclusive } = options;
        let sink = ObjectSink::create(namespace, (base, attempt), name, mapping, is_exclusive)?;
        Ok(Self::over(sink, None))
    }

    fn over(sink: impl Target + 'static, existing: Option<File>) -> Self {
        Self { sink: Box::new(sink), existing, copies: Copies::default() }
    }

    /// Opens an existing file to add ntuples, or entries to an ntuple. Its content is never overwritten; a new ntuple with
    /// an existing name becomes the newest cycle of that name.
    ///
    /// # Errors
    /// Those of the file system; corrupt if it is not a complete ROOT file.
    pub fn update(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let path = match path.to_str() {
            Some(name) => local_path(name).ok_or_else(|| {
                let what = "cannot change a remote file in place; write a new one";
                Error::unsupported(what).in_file(display_name(name))
            })?,
            None => path,
        };
        let update = || {
            let mut sink = Box::new(LocalSink::update(path)?);
            cut_waste(&mut sink, path)?;
            Self::update_in(sink, Arc::new(FileSource::open(path)?))
        };
        update().map_err(|e: Error| e.in_file(path.display()))
    }

    /// Creates a new file in any sink; `file_name` is the name recorded in the file.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn create_in(sink: Box<dyn ByteSink>, file_name: &str) -> Result<Self> {
        Ok(Self::over(FileSink::create(sink, file_name, "")?, None))
    }

    /// Creates a new file with a title.
    pub(crate) fn create_titled(name: &str, title: &str, storage: &Storage) -> Result<Self> {
        let shown = display_name(name);
        let last = shown.rsplit('/').next().filter(|last| !last.is_empty()).unwrap_or(&shown);
        let create = || Ok(Self::over(FileSink::create(storage.create(name)?, last, title)?, None));
        create().map_err(|e: Error| e.in_file(&shown))
    }

    /// Updates an existing file, given a sink that appends to it and a source of its bytes.
    ///
    /// # Errors
    /// Those of sink and source; corrupt if it is not a complete ROOT file.
    pub fn update_in(sink: Box<dyn ByteSink>, source: Arc<dyn ByteSource>) -> Result<Self> {
        let existing = File::over(source::File::open(source)?);
        let sink = FileSink::update(sink, existing.root_file()?)?;
        Ok(Self::over(sink, Some(existing)))
    }

    /// Begins an ntuple with the path `DIRECTORY/NAME`. Several ntuples may be written at the same time.
    ///
    /// # Errors
    /// Invalid argument for names that the format forbids, names of other objects of a file that is updated, schemas
    /// that cannot be written and options that match no field; storage errors.
    pub fn ntuple(&self, path: &str, schema: &Schema, options: WriteOptions) -> Result<NtupleWriter> {
        let place = AnchorPlace::Listed(path.to_owned());
        let begin = || {
            // An ntuple may become a new cycle of an ntuple, but it must not shadow an object of another class.
            self.check_free(path)?;
            Committer::create(self.sink.for_ntuple(), place, schema, options)
        };
        let begun = begin().and_then(|(committer, builder)| NtupleWriter::new(committer, builder, None));
        begun.map_err(|e| self.context(path, e))
    }

    /// Begins a tree (`TTree`) with the path `DIRECTORY/NAME`, which ROOT and uproot read. Trees and ntuples may be written
    /// at the same time.
    ///
    /// | field | branch |
    /// |---|---|
    /// | number, `bool` | leaf of the same type: `x/F` |
    /// | `std::string` | leaf `x/C` |
    /// | fixed arrays of numbers | `x[3][2]/F` |
    /// | list of numbers, or of fixed arrays of them | `nx/I` and `x[nx]/F`, or `vector<float>`: [`TreeOptions::with_jagged`] |
    /// | other lists | `vector<string>`, `vector<vector<float> >` |
    /// | record | a branch for each member, or one of objects: [`TreeOptions::with_split_level`] |
    /// | list of records | a list for each member, with one counter; or a vector of objects |
    ///
    /// # Errors
    /// Unsupported for fields that cannot be stored in a branch (maps, optional values, variants, pairs) and for an
    /// object store; invalid argument for names of other objects and options out of range.
    pub fn tree(&self, path: &str, schema: &Schema, options: TreeOptions) -> Result<TreeWriter> {
        TreeWriter::create(&*self.sink, path, schema, options)
            .map_err(|error| error.in_object("tree", path).in_file(self.sink.name()))
    }

    /// Begins a tree that takes the baskets of other trees as they are stored: see [`MovedTreeWriter::append`].
    ///
    /// # Errors
    /// Unsupported for an object store; invalid argument for a name that is not valid.
    pub fn moved_tree(&self, path: &str, options: MoveOptions) -> Result<MovedTreeWriter> {
        MovedTreeWriter::create(&*self.sink, path, options)
            .map_err(|error| error.in_object("tree", path).in_file(self.sink.name()))
    }

    /// The objects that the file listed when it was opened for update, without those that were removed or renamed since; none
    /// for a new file.
    ///
    /// # Errors
    /// Corrupt if a directory is damaged.
    pub fn objects(&self) -> Result<Vec<Object>> {
        let Some(file) = &self.existing else { return Ok(Vec::new()) };
        let (removed, listing) = (self.sink.file()?.removed()?, file.root_file()?.listing());
        let listing = listing.map_err(|error| error.in_file(file.name()))?;
        let left = listing.objects().filter(|(object, _)| !removed.contains(&object.key.seek_key));
        let mut left: Vec<Object> = left.map(|(object, is_newest)| Object::of(object, is_newest)).collect();
        if !removed.is_empty() {
            let mut newest: HashMap<String, u16> = HashMap::new();
            for object in &left {
                let cycle = newest.entry(object.path.clone()).or_default();
                *cycle = object.cycle.max(*cycle);
            }
            left.iter_mut().for_each(|object| object.is_newest = newest.get(&object.path) == Some(&object.cycle));
        }
        Ok(left)
    }

    /// Continues an ntuple of a file that is updated: entries, fields and attribute sets can be added. Columns keep their
    /// encodings; the options apply to new pages and clusters. Readers see the ntuple either as it was or with everything
    /// that was added.
    ///
    /// # Errors
    /// Not found, with similar names; unsupported for an ntuple that is not fully understood; invalid argument for an older
    /// cycle, options for single fields, and a file that is not updated.
    pub fn append(&self, path: &str, options: WriteOptions) -> Result<NtupleWriter> {
        let open = || {
            let (committer, builder, ntuple) = self.reopen(path, options)?;
            NtupleWriter::new(committer, builder, Some(ntuple))
        };
        open().map_err(|e| self.context(path, e))
    }

    /// Adds fields to an ntuple of a file that is updated, with values for all entries that it has, which the writer takes.
    /// The values that it has stay where they are; what lists them is written again.
    /// ```no_run
    /// use tupelo::WriteOptions;
    /// use tupelo::ops::append::append_fields;
    ///
    /// let events = tupelo::open("events.root:Events").open()?;
    /// let computed = events.read_all().without_fields().with_defined("ht", &"sum(Jet_pt)".parse()?)?;
    /// let file = tupelo::update("events.root")?;
    /// append_fields(computed, &file, "Events", WriteOptions::default(), &mut |_| std::ops::ControlFlow::Continue(()))?;
    /// file.finish()?;
    /// # Ok::<(), tupelo::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`FileWriter::append`]; invalid argument for names that exist and fields that cannot be written; unsupported if
    /// fields were added to the ntuple after its first entries.
    pub fn append_fields(&self, path: &str, fields: &Schema, options: WriteOptions) -> Result<FieldsWriter> {
        let open = || {
            let (committer, _, ntuple) = self.reopen(path, options)?;
            FieldsWriter::new(committer, &ntuple, fields)
        };
        open().map_err(|e| self.context(path, e))
    }

    fn reopen(&self, path: &str, options: WriteOptions) -> Result<(Committer, ClusterBuilder, Ntuple)> {
        let file = self.existing.as_ref();
        let file = file.ok_or_else(|| Error::invalid_argument("nothing can be added unless the file is updated"))?;
        let (ntuple, cycle) = file.newest_ntuple(path)?;
        let place = AnchorPlace::Listed(ntuple.path().to_owned());
        let (committer, builder) = Committer::reopen(self.sink.for_ntuple(), place, &ntuple, cycle, options)?;
        Ok((committer, builder, ntuple))
    }

    /// Copies a whole ntuple with its attribute sets, pages as they are stored: they are compared with their checksums, and
    /// neither decompressed nor decoded. `progress` receives the stored bytes that are done, and may end the copy: the
    /// result is then `None`, and the file can only be dropped.
    ///
    /// # Errors
    /// Those of reading and of writing; unsupported for an ntuple that is not fully understood.
    pub fn copy_sealed(
        &self,
        ntuple: &Ntuple,
        path: &str,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Option<WriteProgress>> {
        let infos = ntuple.source().store().streamer_infos().map_err(|e| ntuple.context(e))?;
        self.add_streamer_info(&infos)?;
        let mut copy = || {
            records::check_name(name_of(path))?;
            self.check_free(path)?;
            Transfer::new(self.sink.for_ntuple(), progress).run(ntuple, path)
        };
        // What is damaged is the ntuple that is read.
        copy().map_err(|e| if e.is_corrupt() { ntuple.context(e) } else { self.context(path, e) })
    }

    /// Makes a directory `DIRECTORY/NAME` and those above it, as far as they are missing. Objects make their directories
    /// themselves; this one is there without any.
    ///
    /// # Errors
    /// Invalid argument for the path of an object; unsupported for ntuples in object stores.
    pub fn make_directory(&self, path: &str) -> Result<()> {
        let make = || self.sink.file()?.make_directory(path, None);
        make().map_err(|e: Error| e.in_file(self.sink.name()))
    }

    /// The file that is updated, and where it is written, for changes of its objects.
    pub(crate) fn updated(&self) -> Result<(&File, &FileSink)> {
        let file = self.existing.as_ref();
        let file = file.ok_or_else(|| Error::invalid_argument("objects are changed only in a file that is updated"))?;
        Ok((file, self.sink.file()?))
    }

    /// Where the file is written; unsupported for ntuples in object stores.
    pub(crate) fn file_sink(&self) -> Result<&FileSink> {
        self.sink.file()
    }

    /// Writes the metadata of an ntuple of the file that is updated again, under another path. Its pages stay where they
    /// are.
    pub(crate) fn relist(&self, ntuple: &Ntuple, path: &str) -> Result<()> {
        let list = || {
            records::check_name(name_of(path))?;
            self.check_free(path)?;
            let sink = self.sink.for_ntuple();
            let mut progress = |_| ControlFlow::Continue(());
            let listed = Transfer::new(Arc::clone(&sink), &mut progress).keeping_pages().run(ntuple, path);
            if listed.is_err() {
                sink.abandon(path)?;
            }
            listed
        };
        list().map(|_| ()).map_err(|e| if e.is_corrupt() { ntuple.context(e) } else { self.context(path, e) })
    }

    /// Keeps which process made the objects of a tree that references point to. Says whether their numbers stay.
    pub(crate) fn keep_processes(&self, tree: &Tree) -> Result<bool> {
        let sink = self.sink.file()?;
        tree::carry_first(tree.source().file(), sink).map_err(|e| tree.context(e))
    }

    /// Adds class layouts to the file's streamer info, so that ROOT can read objects of these classes without their
    /// libraries. Existing layouts of the same class, version and checksum are kept.
    ///
    /// # Errors
    /// Invalid argument if the file was aborted.
    pub fn add_streamer_info(&self, infos: &StreamerInfos) -> Result<()> {
        self.sink.add_streamer_info(infos).map_err(|e| e.in_file(self.sink.name()))
    }

    /// Writes an object as `DIRECTORY/NAME`, with the layouts of its classes, for instance a histogram that
    /// [`StreamerInfos::histograms`] describes. An existing object of the same class becomes an older cycle. It is kept in
    /// memory, compressed, until the file is finished or a checkpoint is made.
    ///
    /// # Errors
    /// Unsupported for values that cannot be written, and for ntuples in object stores; invalid argument for names of
    /// ntuples, directories and objects of other classes.
    pub fn object(&self, path: &str, title: &str, object: &object::Object, compression: Compression) -> Result<()> {
        let put = self.sink.put_object(path, title, object, compression);
        put.map_err(|e| e.in_object("object", path).in_file(self.sink.name()))
    }

    /// Copies an object of another file, such as a histogram, under the same path, with all layouts of classes that the file
    /// has; its references need no decoding. `name` is that of [`File::object`](crate::File::object). An existing object of
    /// the same class becomes an older cycle. Copy objects before ntuples: the keys of some cannot lie beyond 2 GiB.
    ///
    /// # Errors
    /// Those of reading an object, invalid argument for trees and unsupported for objects with trees in them, whose baskets
    /// are not in their object, and as [`FileWriter::object`].
    pub fn copy_object(&self, from: &File, name: &str, compression: Compression) -> Result<()> {
        from.with_object(name, |object, bytes, infos| {
            Self::check_copied(object, bytes)?;
            let copy = || {
                let sink = self.sink.file()?;
                sink.copy_object(object, bytes, compression)?;
                self.sink.add_streamer_info(infos)
            };
            copy().map_err(|e| e.in_file(self.sink.name()))
        })
    }

    /// Refuses to copy trees, objects with trees in them, and old ntuples.
    pub(crate) fn check_copied(object: &container::Object, bytes: &[u8]) -> Result<()> {
        if TREE_CLASSES.contains(&object.key.class_name.as_str()) {
            return Err(Error::invalid_argument("a tree cannot be written as an object; use the writer of trees"));
        }
        if object.key.class_name == PRE_RELEASE_CLASS {
            return Err(Error::unsupported(
                "it is an ntuple from before format 1.0, whose pages are not in its object",
            ));
        }
        match TREE_CLASSES.into_iter().find(|class_name| mentions_class(bytes, class_name)) {
            None => Ok(()),
            Some(class_name) => {
                let own = &object.key.class_name;
                Err(Error::unsupported(format!("it is a {own} with a {class_name} in it, which is not copied")))
            }
        }
    }

    /// Writes directories, streamer info and header, and makes the file visible and durable. An update that added nothing
    /// leaves the file unchanged, byte for byte.
    ///
    /// # Errors
    /// Invalid argument if an ntuple was begun but not finished; storage errors. A file that existed under the name is then
    /// unchanged.
    pub fn finish(mut self) -> Result<()> {
        self.sink.commit().map_err(|e| e.in_file(self.sink.name()))?;
        self.copies.finish()
    }

    /// Aborts the file: removes what was written since the last checkpoint. Returns the name of the temporary file that
    /// keeps the last checkpoint of a new file, if there is one.
    ///
    /// # Errors
    /// Storage errors when cleaning up.
    pub fn abort(self) -> Result<Option<String>> {
        self.sink.abort().map_err(|e| e.in_file(self.sink.name()))
    }

    /// Whether the file accepts no more data: it was finished or aborted, or an error has poisoned it.
    pub fn is_closed(&self) -> bool {
        self.sink.check_open().is_err()
    }

    fn check_free(&self, path: &str) -> Result<()> {
        self.sink.check_free(path)?;
        self.copies.check_free(path)
    }

    fn context(&self, path: &str, error: Error) -> Error {
        error.in_object("ntuple", path).in_file(self.sink.name())
    }
}

impl Drop for FileWriter {
    /// The ntuples of a file that can no longer be finished must not accept data.
    #[expect(clippy::print_stderr, reason = "a destructor cannot return an error")]
    fn drop(&mut self) {
        if let Some(warning) = self.sink.forget() {
            eprintln!("tupelo: {warning}");
        }
    }
}

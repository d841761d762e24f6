//! ROOT files and their contents; ntuples in object stores.

mod lookup;

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tupelo_format::container::{Deviation, FileHeader};
use tupelo_format::object::{self, Value};
use tupelo_format::open::{ANCHOR_CLASS, PRE_RELEASE_CLASS};
use tupelo_format::streamer::StreamerInfos;
use tupelo_format::wire::Memory;
use tupelo_format::{container, open};
use tupelo_storage::local::memory::MemorySource;
use tupelo_storage::{ByteSource, ObjectSource, Storage, display_name};

use tupelo_core::pool;
use tupelo_pages::source::Metrics;
use tupelo_pages::source::{
    self, FileStore, Metadata, Objects, Origin, Session, TreeSource, and_next, may_be_elsewhere,
};
use tupelo_ttree::tree::TREE_CLASSES;

use self::lookup::{check_saved, find, ntuples, only_tree, pre_release, trees};
use super::sources::{Ntuple, Tree};
use super::table::Table;
use crate::{Error, Result};
pub use tupelo_pages::source::{DEFAULT_MEMORY_BUDGET_BYTES, MAX_BUDGET_EXPANSION, MAX_PAGE_BYTES};

/// Whether page checksums are compared by default: yes, always.
pub const DEFAULT_PAGE_CHECKSUMS: bool = true;

/// Opens the ntuple of an object store, or its copy in the next store of a mirror if this one cannot be read.
fn open_stored(objects: &Objects, page_checksums: bool) -> Result<Ntuple> {
    let open = || {
        let source = Metadata::open(objects.session().clone(), Box::new(objects.store()), page_checksums)?;
        let name = source.descriptor().name().to_owned();
        source.store().check_name(&name)?;
        if objects.has_next() && source.descriptor().entries() > 0 {
            // Types depend on it, and must not change where another store is read.
            source.first_clusters(0..1, 1)?;
        }
        Ntuple::new(source, &name)
    };
    if !objects.has_next() {
        return Ok(open()?.with_skipped(objects.skipped()));
    }
    let first = objects.clone();
    let open_next = move || {
        let next = first.next()?;
        match next.is_copy_of(&first)? {
            true => open_stored(&next, page_checksums),
            false => Err(Error::invalid_argument("its ntuple was not written together with this one")),
        }
    };
    let opened = match open() {
        Err(error) if may_be_elsewhere(&error) => match open_next() {
            Ok(ntuple) => ntuple.with_skipped(&[format!("using the next store of the mirror: {error}")]),
            Err(other) => return Err(and_next(error, &other)),
        },
        opened => opened?.with_next(open_next),
    };
    Ok(opened.with_skipped(objects.skipped()))
}

/// One object that a ROOT file's directories list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Names of its directories and its own, joined by `/`.
    pub path: String,
    /// C++ class: `ROOT::RNTuple`, `TTree`, `TH1D`, ….
    pub class_name: String,
    /// Free text.
    pub title: String,
    /// Which version of the name; the highest is the newest.
    pub cycle: u16,
    /// Whether no other object of this path has a higher cycle.
    pub is_newest: bool,
    /// Stored bytes of the object's own record, which for trees and ntuples is only the beginning.
    pub bytes: u64,
}

impl Object {
    /// The shortest name by which the object can be opened: the path, with the cycle (`Events;1`) where there is a
    /// newer one, or the path ends like one with a cycle.
    pub fn name(&self) -> String {
        let ends_with_cycle = self.path.rsplit_once(';').is_some_and(|(_, cycle)| cycle.parse::<u16>().is_ok());
        match self.is_newest && !ends_with_cycle {
            true => self.path.clone(),
            false => format!("{};{}", self.path, self.cycle),
        }
    }

    pub(crate) fn of(object: &container::Object, is_newest: bool) -> Self {
        Self {
            path: object.path.clone(),
            bytes: u64::from(object.key.nbytes),
            class_name: object.key.class_name.clone(),
            title: object.key.title.clone(),
            cycle: object.key.cycle,
            is_newest,
        }
    }

    /// The ntuple of an object store, whose metadata cannot be read.
    fn of_store(objects: &Objects) -> Self {
        Self {
            path: String::new(),
            class_name: ANCHOR_CLASS.to_owned(),
            title: String::new(),
            cycle: 1,
            is_newest: true,
            bytes: objects.anchor_bytes(),
        }
    }

    fn of_objects(objects: &Objects, ntuple: &Ntuple) -> Self {
        let (path, title) = (ntuple.name().to_owned(), ntuple.description().to_owned());
        Self { path, title, ..Self::of_store(objects) }
    }
}

/// An open ROOT file, or an ntuple in an object store, which acts like a file with nothing else in it.
#[derive(Debug, Clone)]
pub struct File {
    container: Container,
    page_checksums: bool,
    /// The ntuple of an object store, once it is open.
    ntuple: Arc<OnceLock<Ntuple>>,
}

#[derive(Debug, Clone)]
enum Container {
    Root(source::File),
    Objects(Objects),
}

/// An ntuple that a file lists.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) object: Object,
    /// Offset of the key in a ROOT file.
    pub(crate) seek_key: u64,
    pub(crate) ntuple: Result<Ntuple>,
}

impl File {
    /// A file over bytes from anywhere.
    ///
    /// # Errors
    /// Those of the source; corrupt if it is not a ROOT file.
    pub fn new(source: Arc<dyn ByteSource>, page_checksums: bool) -> Result<Self> {
        let name = source.to_string();
        let open = || {
            let file = source::File::open(source)?;
            file.attempt(container::read_header)?;
            Ok(Self { page_checksums, ..Self::of(Container::Root(file)) })
        };
        open().map_err(|e: Error| e.in_file(name))
    }

    /// The ntuple whose anchor has the key `base` in a namespace; `name` is its URI, for errors.
    ///
    /// # Errors
    /// Not found; corrupt or unsupported if its anchor cannot be read; storage errors.
    pub fn of_objects(namespace: Arc<dyn ObjectSource>, base: &str, name: &str) -> Result<Self> {
        Self::of_opened(Objects::open(namespace, base, name), name)
    }

    /// The ntuple with this URI in an object store, or in the stores of a mirror.
    pub(crate) fn of_uri(uri: &str, storage: &Storage) -> Result<Self> {
        let name = display_name(uri);
        Self::of_opened(Objects::of_uri(uri, &name, storage), &name)
    }

    fn of_opened(objects: Result<Objects>, name: &str) -> Result<Self> {
        let objects = objects.map_err(|e| match e.storage_kind() {
            // It has the name of the anchor.
            Some(_) => e,
            None => e.in_file(name),
        })?;
        Ok(Self::of(Container::Objects(objects)))
    }

    fn of(container: Container) -> Self {
        Self { container, page_checksums: DEFAULT_PAGE_CHECKSUMS, ntuple: Arc::default() }
    }

    /// The same file, opened by this name, so that branches of its trees can be in other files.
    pub(crate) fn with_origin(self, name: &str, storage: &Storage) -> Self {
        self.with(|container| match container {
            Container::Root(file) => Container::Root(file.with_origin(Origin::new(name, storage))),
            objects @ Container::Objects(_) => objects,
        })
    }

    /// The same file with other options, which ntuples that are open do not have.
    fn with(self, change: impl FnOnce(Container) -> Container) -> Self {
        Self { container: change(self.container), ntuple: Arc::default(), ..self }
    }

    /// A file whose bytes are in memory, called `name` in errors. They are not copied.
    ///
    /// # Errors
    /// Corrupt if it is not a ROOT file.
    pub fn of_bytes<T>(name: &str, bytes: T) -> Result<Self>
    where
        T: AsRef<[u8]> + Send + 'static,
    {
        Self::new(Arc::new(MemorySource::new(Bytes::from_owner(bytes)).with_name(name)), DEFAULT_PAGE_CHECKSUMS)
    }

    /// Whether to compare the checksums of pages of the ntuples that are opened from now on.
    #[must_use]
    pub fn with_page_checksums(self, verify: bool) -> Self {
        Self { page_checksums: verify, ..self.with(|container| container) }
    }

    /// The same file for an operation that reads everything in batches, which may need the same bytes: what was read last
    /// from a server is kept, in at most half of the memory budget.
    #[must_use]
    pub fn with_recent_requests(self) -> Self {
        let is_local = |file: &source::File| file.source().reads_in_place(&(0..file.size()));
        let reads_in_place = matches!(&self.container, Container::Root(file) if is_local(file));
        if reads_in_place { self } else { self.with_recent_reads() }
    }

    /// The same file for an operation that reads the same pages several times.
    pub(crate) fn with_recent_reads(self) -> Self {
        self.with(|container| match container {
            Container::Root(file) => Container::Root(file.with_recent_reads()),
            Container::Objects(objects) => Container::Objects(objects.with_recent_reads()),
        })
    }

    /// The read statistics so far, or `None` if they are not enabled with [`File::with_metrics`].
    pub fn metrics(&self) -> Option<Metrics> {
        self.session().counters().read(pool::threads())
    }

    /// What [`File::metrics`] gives, for later: the file need not stay open.
    pub fn metrics_later(&self) -> impl Fn() -> Option<Metrics> + Send + use<> {
        let counters = self.session().counters().clone();
        move || counters.read(pool::threads())
    }

    /// Collects read statistics from now on, for [`File::metrics`] and [`Ntuple::metrics`]. Requests to the server of a
    /// remote file are counted since it was opened.
    #[must_use]
    pub fn with_metrics(self) -> Self {
        self.with(|container| match container {
            Container::Root(file) => Container::Root(file.with_metrics()),
            Container::Objects(objects) => Container::Objects(objects.with_metrics()),
        })
    }

    /// Memory budget in bytes of the ntuples that are opened from now on, by default [`DEFAULT_MEMORY_BUDGET_BYTES`].
    /// It limits their metadata, in total, and the data in flight of each read request; larger requests are fetched in
    /// parts. Returned values may exceed the budget, up to [`MAX_BUDGET_EXPANSION`] times the stored bytes that they
    /// are decoded from; beyond that, reading fails.
    #[must_use]
    pub fn with_memory_budget(self, bytes: u64) -> Self {
        self.with(|container| match container {
            Container::Root(file) => Container::Root(file.with_memory_budget(bytes)),
            Container::Objects(objects) => Container::Objects(objects.with_memory_budget(bytes)),
        })
    }

    /// The memory budget in bytes; see [`File::with_memory_budget`].
    pub fn memory_budget(&self) -> u64 {
        self.session().budget().limit_bytes()
    }

    /// The same file for one operation on all of its ntuples; see [`source::File::with_work_limit`].
    pub(crate) fn with_work_limit(self) -> Self {
        self.with(|container| match container {
            Container::Root(file) => Container::Root(file.with_work_limit()),
            Container::Objects(objects) => Container::Objects(objects.with_work_limit()),
        })
    }

    /// A ROOT file that is open.
    pub(crate) fn over(file: source::File) -> Self {
        Self::of(Container::Root(file))
    }

    /// The ROOT file.
    ///
    /// # Errors
    /// Unsupported for an ntuple in an object store.
    pub(crate) fn root_file(&self) -> Result<&source::File> {
        match &self.container {
            Container::Root(file) => Ok(file),
            Container::Objects(_) => Err(Error::unsupported("the ntuple is stored as objects, not in a ROOT file")),
        }
    }

    /// The ntuple in an object store; `None` for a ROOT file.
    pub(crate) fn stored_objects(&self) -> Option<&Objects> {
        match &self.container {
            Container::Root(_) => None,
            Container::Objects(objects) => Some(objects),
        }
    }

    pub(crate) fn session(&self) -> &Session {
        match &self.container {
            Container::Root(file) => file.session(),
            Container::Objects(objects) => objects.session(),
        }
    }

    /// Size of the file, or of all objects of the ntuple together, in bytes; `None` for an ntuple in an object store that
    /// Tupelo did not write, whose size is not recorded.
    pub fn size(&self) -> Option<u64> {
        match &self.container {
            Container::Root(file) => Some(file.size()),
            Container::Objects(objects) => objects.size(),
        }
    }

    /// The name of the file, or the URI of the ntuple.
    pub fn name(&self) -> String {
        match &self.container {
            Container::Root(file) => file.source().to_string(),
            Container::Objects(objects) => objects.name().to_owned(),
        }
    }

    /// The header of the file, and its UUID.
    ///
    /// # Errors
    /// Corrupt where the header is damaged; unsupported for an ntuple in an object store.
    pub fn header(&self) -> Result<(FileHeader, [u8; 16])> {
        let read = |fetched: &_| Ok((container::read_header(fetched)?, container::read_uuid(fetched)?));
        self.root_file().and_then(|file| file.attempt(read)).map_err(|e| e.in_file(self.name()))
    }

    /// The rules of the format that the file breaks and ROOT does not check, as far as they were found until now: those of
    /// key lists are known when the directory is read. At most 1000 are kept.
    pub fn deviations(&self) -> Vec<Deviation> {
        self.session().deviations().list()
    }

    /// The same file with directories that are rebuilt from the keys in it, if its directories lead to no object: its
    /// writer was killed before it saved them, or the file was cut off. Readable objects listed by directories are
    /// kept. Without streamer info that is damaged, trees and objects can be read whose classes are ROOT's own.
    ///
    /// # Errors
    /// Corrupt if it is not a ROOT file; limit if the keys exceed the memory budget.
    pub fn recovered(self) -> Result<Self> {
        let name = self.name();
        let container = match self.container {
            Container::Root(file) => Container::Root(file.recovered().map_err(|e| e.in_file(name))?),
            objects @ Container::Objects(_) => objects,
        };
        Ok(Self { page_checksums: self.page_checksums, ..Self::of(container) })
    }

    /// Checks that the directories lead to the objects of the file.
    ///
    /// # Errors
    /// Corrupt if its writer did not save them, as when it was killed; those of reading them.
    pub fn check_saved(&self) -> Result<()> {
        let Container::Root(file) = &self.container else { return Ok(()) };
        file.listing().and_then(|_| check_saved(file)).map_err(|error| error.in_file(self.name()))
    }

    /// Everything that the directories list, all cycles, in file order.
    ///
    /// # Errors
    /// Corrupt if a directory is damaged.
    pub fn objects(&self) -> Result<Vec<Object>> {
        match &self.container {
            Container::Root(file) => {
                let listing = file.listing().map_err(|e| e.in_file(self.name()))?;
                Ok(listing.objects().map(|(object, is_newest)| Object::of(object, is_newest)).collect())
            }
            Container::Objects(objects) => Ok(vec![Object::of_objects(objects, &self.stored_ntuple(objects)?)]),
        }
    }

    /// Visits the ntuples, all cycles, in file order. Each is opened, unless `skip` has an error for the offset of its key.
    pub(crate) fn each_listed(
        &self,
        mut skip: impl FnMut(&Object, u64) -> Option<Error>,
        mut visit: impl FnMut(Listed) -> Result<()>,
    ) -> Result<()> {
        let file = match &self.container {
            Container::Root(file) => file,
            Container::Objects(objects) => {
                let ntuple = self.stored_ntuple(objects);
                let object =
                    ntuple.as_ref().map_or_else(|_| Object::of_store(objects), |it| Object::of_objects(objects, it));
                return visit(Listed { object, seek_key: 0, ntuple });
            }
        };
        let listing = file.listing().map_err(|e| e.in_file(self.name()))?;
        for (object, is_newest) in listing.objects().filter(|(object, _)| object.key.class_name == ANCHOR_CLASS) {
            let (listed, seek_key) = (Object::of(object, is_newest), object.key.seek_key);
            let ntuple = match skip(&listed, seek_key) {
                None => self.ntuple_of(object),
                Some(error) => Err(error.in_object("ntuple", listed.name()).in_file(self.name())),
            };
            visit(Listed { object: listed, seek_key, ntuple })?;
        }
        Ok(())
    }

    /// Paths of the ntuples in the file.
    ///
    /// # Errors
    /// Corrupt if a directory is damaged.
    pub fn ntuple_names(&self) -> Result<Vec<String>> {
        match &self.container {
            Container::Root(file) => {
                let ntuples = ntuples(file).map_err(|e| e.in_file(self.name()))?;
                Ok(ntuples.into_iter().map(|object| object.path).collect())
            }
            Container::Objects(objects) => Ok(vec![self.stored_ntuple(objects)?.name().to_owned()]),
        }
    }

    /// The layouts of classes that the file describes; empty where it has none.
    ///
    /// # Errors
    /// Corrupt if the record is damaged, unsupported if it is older than ROOT 3.
    pub fn streamer_infos(&self) -> Result<StreamerInfos> {
        match &self.container {
            Container::Root(file) => file.attempt(container::streamer_infos).map_err(|e| e.in_file(self.name())),
            Container::Objects(_) => Ok(StreamerInfos::default()),
        }
    }

    /// Opens an ntuple by its path, or the only one in the file.
    ///
    /// # Errors
    /// Not found, with near names; invalid argument if no name is given and there are several; corrupt or unsupported
    /// if its metadata cannot be read.
    pub fn ntuple(&self, name: Option<&str>) -> Result<Ntuple> {
        match &self.container {
            Container::Root(file) => {
                let object = find(file, name).map_err(|e| e.in_file(self.name()))?;
                self.ntuple_of(&object)
            }
            Container::Objects(objects) => {
                let ntuple = self.stored_ntuple(objects)?;
                let name = name.map(|name| name.strip_suffix(";1").unwrap_or(name));
                match name.filter(|name| *name != ntuple.name()) {
                    None => Ok(ntuple),
                    Some(other) => {
                        let known = std::iter::once(ntuple.name());
                        Err(Error::no_such("ntuple", other, known).in_file(self.name()))
                    }
                }
            }
        }
    }

    /// Opens an ntuple or a tree by its path. Without a path it is the only ntuple or, in a file without ntuples, the only
    /// tree.
    ///
    /// # Errors
    /// As [`File::ntuple`].
    pub fn table(&self, name: Option<&str>) -> Result<Table> {
        let Container::Root(file) = &self.container else { return self.ntuple(name).map(Table::Ntuple) };
        let object = match name {
            Some(name) => find(file, Some(name)),
            None => match ntuples(file) {
                Ok(ntuples) if ntuples.is_empty() => only_tree(file),
                _ => find(file, None),
            },
        };
        let object = object.map_err(|e| e.in_file(self.name()))?;
        if !TREE_CLASSES.contains(&object.key.class_name.as_str()) {
            return self.ntuple_of(&object).map(Table::Ntuple);
        }
        let open = || Ok(Tree::new(TreeSource::open(file.clone(), &object)?, &object.path));
        open().map(Table::Tree).map_err(|e: Error| e.in_object("tree", &object.path).in_file(self.name()))
    }

    /// Paths of the ntuples and the trees in the file.
    ///
    /// # Errors
    /// Corrupt if a directory is damaged.
    pub fn table_names(&self) -> Result<Vec<String>> {
        let mut names = self.ntuple_names()?;
        names.extend(self.tree_names()?);
        Ok(names)
    }

    /// Paths of the trees in the file.
    ///
    /// # Errors
    /// Corrupt if a directory is damaged.
    pub fn tree_names(&self) -> Result<Vec<String>> {
        match &self.container {
            Container::Root(file) => {
                let trees = trees(file).map_err(|e| e.in_file(self.name()))?;
                Ok(trees.into_iter().map(|object| object.path).collect())
            }
            Container::Objects(_) => Ok(Vec::new()),
        }
    }

    /// Reads an object that the directories list, by its path or as `PATH;CYCLE`: a histogram, a graph, or anything else
    /// that the file's streamer info describes.
    ///
    /// # Errors
    /// Not found, with near names; invalid argument for ntuples and directories, which are not such objects; unsupported,
    /// with class and reason, for what the streamer info does not describe; corrupt where the object is damaged.
    pub fn object(&self, name: &str) -> Result<Value> {
        let memory = Memory::new(self.root_file()?.session().budget().left());
        self.with_object(name, |object, bytes, infos| {
            let key = &object.key;
            Ok(object::read_behind_key(bytes, key.key_bytes, &key.class_name, infos, &memory)?)
        })
    }

    /// Passes an object as the directories list it, its bytes, and the streamer info of the file.
    pub(crate) fn with_object<T>(
        &self,
        name: &str,
        read: impl FnOnce(&container::Object, &[u8], &StreamerInfos) -> Result<T>,
    ) -> Result<T> {
        let read = || {
            let file = self.root_file()?;
            let Some(object) = file.find_object(name)? else {
                let known = file.listing()?.objects().map(|(object, _)| object.path.as_str());
                return Err(Error::no_such("object", name, known));
            };
            let (key, path) = (&object.key, object.path.escape_debug());
            if key.is_directory() || key.class_name == ANCHOR_CLASS {
                let what = if key.is_directory() { "a directory" } else { "an RNTuple" };
                return Err(Error::invalid_argument(format!("'{path}' is {what}, not a single object")));
            }
            let read = || {
                let infos = file.attempt(container::streamer_infos)?;
                let bytes = file.attempt(|fetched| container::object_bytes(fetched, key))?;
                read(&object, &bytes, &infos)
            };
            read().map_err(|e: Error| e.in_object("object", path))
        };
        read().map_err(|e| e.in_file(self.name()))
    }

    /// Opens the newest cycle of an ntuple in a ROOT file, and gives the cycle.
    pub(crate) fn newest_ntuple(&self, path: &str) -> Result<(Ntuple, u16)> {
        let file = self.root_file()?;
        let object = find(file, Some(path))?;
        let newest = file.find_object(&object.path)?;
        if newest.is_some_and(|newest| newest.key.cycle != object.key.cycle) {
            return Err(Error::invalid_argument("a newer cycle exists, and only the newest can be continued"));
        }
        Ok((self.ntuple_of(&object)?, object.key.cycle))
    }

    /// Opens the ntuple of an object store.
    fn stored_ntuple(&self, objects: &Objects) -> Result<Ntuple> {
        if let Some(ntuple) = self.ntuple.get() {
            return Ok(ntuple.clone());
        }
        let opened = open_stored(objects, self.page_checksums);
        let opened = opened.map_err(|e| e.in_file(self.name()))?;
        Ok(self.ntuple.get_or_init(|| opened).clone())
    }

    /// Opens the ntuple whose anchor is an object of the directories.
    pub(crate) fn ntuple_of(&self, object: &container::Object) -> Result<Ntuple> {
        let file = self.root_file()?;
        match object.key.class_name.as_str() {
            ANCHOR_CLASS => {}
            PRE_RELEASE_CLASS => return Err(pre_release(file, object)?.in_file(self.name())),
            _ => return Err(self.not_an_ntuple(object).in_file(self.name())),
        }
        let context = |e: Error| e.in_object("ntuple", &object.path).in_file(self.name());
        let anchor = file.attempt(|fetched| open::anchor(fetched, object)).map_err(context)?;
        let store = Box::new(FileStore::new(file.clone(), anchor));
        let session = file.session().clone();
        let source = Metadata::open(session, store, self.page_checksums).map_err(context)?;
        Ntuple::new(source, &object.path).map_err(context)
    }
}

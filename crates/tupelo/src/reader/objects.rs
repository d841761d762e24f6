//! Objects as ROOT's streamers wrote them: of directories, and of streamer fields, which are decoded by the layouts that
//! the file has of their classes.

use std::ops::RangeBounds;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use tupelo_format::object::{self, Opaque, Value};
use tupelo_format::streamer::StreamerInfos;
use tupelo_format::wire::Memory;
use tupelo_schema::schema::{Field, Kind};

use super::{File, Ntuple, Object};
use crate::{Error, Result};

/// The objects of one streamer field; made by [`Ntuple::objects`].
#[derive(Debug, Clone)]
pub struct Objects {
    ntuple: Ntuple,
    path: String,
    class_name: String,
    infos: Arc<StreamerInfos>,
    /// Why the streamer info cannot be read.
    problem: Option<String>,
}

impl Ntuple {
    /// The objects of a streamer field, by its dotted path; a field below collections too.
    ///
    /// # Errors
    /// Not found, with near names; invalid argument if it is not a streamer field. Unreadable streamer info is not an
    /// error here: objects that need it are returned as bytes.
    pub fn objects(&self, path: &str) -> Result<Objects> {
        Objects::new(self.clone(), path).map_err(|e| self.context(e))
    }
}

impl File {
    /// What the directories list under a path, or `PATH;CYCLE`; `None` if there is nothing. Only the directories on the
    /// path are read.
    ///
    /// # Errors
    /// Corrupt if a directory is damaged; unsupported for an ntuple in an object store.
    pub fn listed(&self, name: &str) -> Result<Option<Object>> {
        let find = || {
            let file = self.root_file()?;
            let Some(object) = file.find_object(name)? else { return Ok(None) };
            let newest = file.find_object(&object.path)?;
            Ok(Some(Object::of(&object, newest.is_none_or(|newest| newest.key.cycle == object.key.cycle))))
        };
        find().map_err(|e: Error| e.in_file(self.name()))
    }
}

impl Objects {
    fn new(ntuple: Ntuple, path: &str) -> Result<Self> {
        let paths = ntuple.schema().paths();
        let Some((_, field)) = paths.iter().find(|(known, _)| known == path) else {
            return Err(Error::no_such("field", path, paths.iter().map(|(known, _)| known.as_str())));
        };
        let field = items(field);
        if !matches!(field.kind, Kind::Streamer) {
            let what = format!("field '{path}' has type '{}', expected a streamer field", field.display_type());
            return Err(Error::invalid_argument(what));
        }
        let (infos, problem) = match ntuple.streamer_infos() {
            Ok(infos) => (infos, None),
            Err(error) => (StreamerInfos::default(), Some(error.to_string())),
        };
        let class_name = field.type_name.clone();
        Ok(Self { path: path.to_owned(), class_name, infos: Arc::new(infos), problem, ntuple })
    }

    /// C++ class of the objects.
    pub fn class_name(&self) -> &str {
        &self.class_name
    }

    /// The objects in a range of entries, in entry order; for a field below collections, all items one after the other.
    /// Objects that cannot be decoded are a [`Value::Opaque`] with the reason.
    ///
    /// # Errors
    /// Corrupt, with field, column, cluster, page and offset, if data is damaged; storage errors.
    pub fn read(&self, entries: impl RangeBounds<u64>) -> Result<Vec<Value>> {
        let memory = self.memory();
        let batch = self.ntuple.read([&self.path])?.entries(entries).to_batch()?;
        let mut column = batch.columns().first().cloned();
        while let Some(array) = &column {
            if let DataType::LargeBinary = array.data_type() {
                let objects = array.as_binary::<i64>().iter().flatten();
                let decoded = objects.map(|bytes| Ok(self.decode_within(bytes, &memory)?));
                return decoded.collect::<Result<_>>().map_err(|error| self.ntuple.context(error));
            }
            column = inside(array);
        }
        let what = format!("field '{}' is not read as bytes", self.path);
        Err(self.ntuple.context(Error::unsupported(what)))
    }

    /// One object from its bytes in the field.
    pub fn decode(&self, bytes: &[u8]) -> Value {
        self.decode_within(bytes, &self.memory()).unwrap_or_else(|error| self.opaque(bytes, &error))
    }

    /// One object, unless it exceeds the memory.
    fn decode_within(&self, bytes: &[u8], memory: &Memory) -> Result<Value, tupelo_format::Error> {
        match object::read(bytes, &self.class_name, &self.infos, memory) {
            Err(error) if error.kind() == tupelo_format::ErrorKind::Memory => Err(error),
            Err(error) => {
                memory.take(bytes.len() as u64, "objects")?;
                Ok(self.opaque(bytes, &error))
            }
            read => read,
        }
    }

    #[cold]
    fn opaque(&self, bytes: &[u8], error: &tupelo_format::Error) -> Value {
        let mut reason = error.to_string();
        if let Some(problem) = &self.problem {
            reason = format!("{reason}; {problem}");
        }
        Value::Opaque(Box::new(Opaque { class_name: self.class_name.clone(), bytes: bytes.to_vec(), reason }))
    }

    fn memory(&self) -> Memory {
        Memory::new(self.ntuple.source().session().budget().left())
    }
}

/// The field whose values are those of a dotted path: behind collections and optionals.
fn items(mut field: &Field) -> &Field {
    while let (true, [item]) = (field.is_transparent(), field.children()) {
        field = item;
    }
    field
}

/// The items of lists and frames.
fn inside(array: &ArrayRef) -> Option<ArrayRef> {
    match array.data_type() {
        DataType::LargeList(_) => Some(Arc::clone(array.as_list::<i64>().values())),
        DataType::FixedSizeList(..) => Some(Arc::clone(array.as_fixed_size_list().values())),
        DataType::Struct(_) => array.as_struct().columns().first().cloned(),
        _ => None,
    }
}

//! Which containers the keys of links stand for: `xAOD::EventFormat` in the metadata of a file.

use std::collections::{BTreeMap, HashMap};
use std::result;

use arrow_array::StructArray;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use tupelo::schema::Field;
use tupelo::{Error, File, Result};

/// Names of ntuples and trees with metadata begin like this.
pub const METADATA: &str = "MetaData";
/// The class of the table begins like this.
const EVENT_FORMAT: &str = "xAOD::EventFormat";

/// The containers that keys of links stand for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keys {
    names: BTreeMap<u32, String>,
    classes: HashMap<String, String>,
}

impl Keys {
    /// The tables of all metadata of a file; empty if it has none.
    ///
    /// # Errors
    /// Those of reading them; corrupt where a table contradicts itself.
    pub fn of(file: &File) -> Result<Self> {
        let mut keys = Self::default();
        keys.add_file(file)?;
        Ok(keys)
    }

    /// Adds the tables of another file.
    pub(crate) fn add_file(&mut self, file: &File) -> Result<()> {
        for name in file.table_names()?.iter().filter(|name| name.starts_with(METADATA)) {
            let table = file.table(Some(name))?;
            let is_table = |field: &&Field| field.type_name.starts_with(EVENT_FORMAT);
            for field in table.schema().fields.iter().filter(is_table) {
                let batch = table.read([tupelo::schema::escaped(&field.name)])?.to_batch()?;
                if let Some(record) = batch.columns().first().and_then(|column| column.as_struct_opt()) {
                    let place = format!("{}: '{name}', field '{}'", file.name(), field.name);
                    let at = |what| Error::unsupported(format!("{place}: {what}"));
                    self.add(record).map_err(at)?;
                }
            }
        }
        Ok(())
    }

    /// Adds the rows of a table: parallel lists of names, classes and hashes.
    fn add(&mut self, table: &StructArray) -> result::Result<(), String> {
        let list = |name: &str| {
            let column = table.column_by_name(name).and_then(|column| column.as_list_opt::<i64>());
            column.ok_or_else(|| format!("the table lacks a list '{name}'"))
        };
        let (names, classes, hashes) = (list("m_branchNames")?, list("m_classNames")?, list("m_branchHashes")?);
        let is_parallel = names.offsets() == hashes.offsets() && names.offsets() == classes.offsets();
        let texts = names.values().as_string_opt::<i64>().zip(classes.values().as_string_opt::<i64>());
        let columns = texts.zip(hashes.values().as_primitive_opt::<UInt32Type>()).filter(|_| is_parallel);
        let ((names, classes), hashes) = columns.ok_or("the lists of the table differ in length or type")?;
        for ((name, class), hash) in names.iter().zip(classes).zip(hashes.values()) {
            let (Some(name), Some(class)) = (name, class) else { continue };
            self.classes.insert(name.to_owned(), class.to_owned());
            if let Some(known) = self.names.insert(*hash, name.to_owned()).filter(|known| known != name) {
                return Err(format!("'{known}' and '{name}' have the same key {hash}"));
            }
        }
        Ok(())
    }

    /// The container that a key stands for.
    pub fn name(&self, key: u32) -> Option<&str> {
        self.names.get(&key).map(String::as_str)
    }

    /// All keys with the names of their containers, in the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &str)> {
        self.names.iter().map(|(key, name)| (*key, name.as_str()))
    }

    /// The class that the table gives a container.
    pub fn class_name(&self, name: &str) -> Option<&str> {
        self.classes.get(name).map(String::as_str)
    }
}

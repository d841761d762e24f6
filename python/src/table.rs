//! What is known of ntuples and trees, as values with names.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use pyo3::types::PyString;
use tupelo::ops::inspect;
use tupelo::reader;
use tupelo::schema::{Field, Kind, Schema};

/// An object in the directories of a file.
#[pyclass(frozen, get_all, module = "tupelo._core")]
#[derive(Debug, Clone)]
pub(crate) struct ObjectInfo {
    path: String,
    class_name: String,
    title: String,
    cycle: u16,
    /// Bytes of its record.
    size_bytes: u64,
}

impl From<reader::Object> for ObjectInfo {
    fn from(object: reader::Object) -> Self {
        Self {
            path: object.path,
            class_name: object.class_name,
            title: object.title,
            cycle: object.cycle,
            size_bytes: object.bytes,
        }
    }
}

/// A field of an ntuple or a tree. Python reads these often, so they are Python's own strings.
#[pyclass(frozen, get_all, module = "tupelo._core")]
#[derive(Debug)]
pub(crate) struct FieldInfo {
    /// Dotted path.
    path: Py<PyString>,
    /// Index of the parent in the list.
    parent: Option<usize>,
    name: Py<PyString>,
    /// C++ type.
    type_name: Py<PyString>,
    description: Py<PyString>,
    /// How it is built, as a word.
    kind: Py<PyString>,
}

/// A cluster that has entries.
#[pyclass(frozen, get_all, module = "tupelo._core")]
#[derive(Debug, Clone)]
pub(crate) struct ClusterInfo {
    pub(crate) first_entry: u64,
    pub(crate) entries: u64,
    pub(crate) stored_bytes: u64,
}

/// Sizes of pages or baskets.
#[pyclass(frozen, get_all, module = "tupelo._core")]
#[derive(Debug, Clone)]
pub(crate) struct Sizes {
    pub(crate) stored_bytes: u64,
    /// Bytes before compression.
    pub(crate) unpacked_bytes: u64,
    /// The codecs in use.
    pub(crate) codec: String,
}

impl From<&inspect::Sizes> for Sizes {
    fn from(sizes: &inspect::Sizes) -> Self {
        Self { stored_bytes: sizes.stored_bytes, unpacked_bytes: sizes.unpacked_bytes, codec: sizes.codec() }
    }
}

/// Sizes of an ntuple or a tree.
#[pyclass(frozen, get_all, module = "tupelo._core")]
#[derive(Debug, Clone)]
pub(crate) struct TableSizes {
    /// Bytes of anchor, header, footer and page lists, or of the record of a tree.
    pub(crate) metadata_bytes: u64,
    pub(crate) pages: Sizes,
    /// Those of each field with its subfields, by dotted path.
    pub(crate) fields: BTreeMap<String, Sizes>,
}

/// What was copied of an ntuple or a tree.
#[pyclass(frozen, get_all, module = "tupelo._core")]
#[derive(Debug, Default, Clone)]
pub(crate) struct Copied {
    pub(crate) entries: u64,
    pub(crate) warnings: Vec<String>,
}

/// A batch of entries.
#[pyclass(frozen, get_all, module = "tupelo._core")]
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) entry_start: u64,
    pub(crate) entry_stop: u64,
    /// A `pyarrow.RecordBatch`.
    pub(crate) data: Py<PyAny>,
}

/// The top-level fields, hidden ones last.
pub(crate) fn hidden_last(schema: &Schema) -> impl Iterator<Item = &Field> {
    let listed = schema.fields.iter().filter(|field| !field.is_hidden());
    listed.chain(schema.fields.iter().filter(|field| field.is_hidden()))
}

/// Dotted paths of these fields and their subfields, parents first, with the fields; without the alternatives of
/// variants, which cannot be read alone.
pub(crate) fn paths<'a>(top_level: impl Iterator<Item = &'a Field>) -> impl Iterator<Item = (String, &'a Field)> {
    let mut variant = None;
    top_level.flat_map(Field::paths).filter(move |(path, field)| {
        if variant.as_ref().is_some_and(|variant: &String| path.starts_with(variant)) {
            return false;
        }
        variant = holds_variant(field).then(|| format!("{path}."));
        true
    })
}

/// What is known of these fields and their subfields.
pub(crate) fn fields<'a>(py: Python<'_>, top_level: impl Iterator<Item = &'a Field>) -> Vec<FieldInfo> {
    // Parents come first, so the nearest field above is the last one whose path is a prefix.
    let mut above: Vec<(usize, String)> = Vec::new();
    let mut fields = Vec::new();
    for (path, field) in paths(top_level) {
        let index = fields.len();
        let is_below = |parent: &str| path.strip_prefix(parent).is_some_and(|rest| rest.starts_with('.'));
        while above.last().is_some_and(|(_, parent)| !is_below(parent)) {
            above.pop();
        }
        let parent = above.last().map(|(index, _)| *index);
        above.push((index, path.clone()));
        let text = |text: &str| PyString::new(py, text).unbind();
        fields.push(FieldInfo {
            path: text(&path),
            parent,
            name: text(&field.name),
            type_name: text(field.display_type()),
            description: text(&field.description),
            kind: PyString::intern(py, kind(field)).unbind(),
        });
    }
    fields
}

/// Whether the values behind a field's path are variants: its own, or its items'.
fn holds_variant(field: &Field) -> bool {
    match &field.kind {
        Kind::Variant(_) => true,
        Kind::Array { item, .. }
        | Kind::Wrapper(item)
        | Kind::Collection(item)
        | Kind::Map(item)
        | Kind::Optional(item) => holds_variant(item),
        _ => false,
    }
}

/// The kind of a field as a word.
fn kind(field: &Field) -> &'static str {
    match &field.kind {
        Kind::Primitive(_) => "primitive",
        Kind::String => "string",
        Kind::Streamer => "streamer",
        Kind::Cardinality { .. } => "cardinality",
        Kind::Bitset { .. } => "bitset",
        Kind::Array { .. } => "array",
        Kind::Wrapper(_) => "wrapper",
        Kind::Collection(_) => "collection",
        Kind::Map(_) => "map",
        Kind::Optional(_) => "optional",
        Kind::Record(_) => "record",
        Kind::Tuple(_) => "tuple",
        Kind::Variant(_) => "variant",
    }
}

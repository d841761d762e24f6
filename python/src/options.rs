//! Write options as a dict of the Python package.

use std::collections::BTreeMap;
use std::time::Duration;

use pyo3::prelude::*;
use tupelo::ops::copy::Pages;
use tupelo::schema::Schema;
use tupelo::{Compression, Error, WriteOptions};

use crate::error::OrRaise;

/// New name, dotted path of the source, and C++ type if it is different.
type Projection = (String, String, Option<String>);

/// Every key is required. None means the default of the engine; 0 turns checkpoints off.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Options {
    description: String,
    compression: Option<String>,
    page_bytes: Option<u64>,
    cluster_bytes: Option<u64>,
    checkpoint_bytes: u64,
    checkpoint_clusters: u64,
    checkpoint_seconds: f64,
    encodings: BTreeMap<String, String>,
    compressions: BTreeMap<String, String>,
    projections: Vec<Projection>,
}

impl Options {
    pub(crate) fn to_write(&self) -> tupelo::Result<WriteOptions> {
        let seconds = Duration::try_from_secs_f64(self.checkpoint_seconds).map_err(|_| {
            Error::invalid_argument(format!("invalid checkpoint interval of {} seconds", self.checkpoint_seconds))
        })?;
        let mut options = WriteOptions::default()
            .with_description(&self.description)
            .with_checkpoint_bytes(self.checkpoint_bytes)
            .with_checkpoint_clusters(self.checkpoint_clusters)
            .with_checkpoint_time(seconds);
        if let Some(compression) = self.compression()? {
            options = options.with_compression(compression);
        }
        if let Some(bytes) = self.page_bytes {
            options = options.with_page_bytes(bytes);
        }
        if let Some(bytes) = self.cluster_bytes {
            options = options.with_cluster_bytes(bytes);
        }
        for (field, encoding) in &self.encodings {
            options = options.with_field_encoding(field, encoding)?;
        }
        for (field, text) in &self.compressions {
            options = options.with_field_compression(field, parse_compression(text)?);
        }
        Ok(options)
    }

    /// The codec, if one is given.
    pub(crate) fn compression(&self) -> tupelo::Result<Option<Compression>> {
        self.compression.as_deref().map(parse_compression).transpose()
    }

    /// What becomes of pages that are copied: they stay as they are if nothing says how to store them.
    pub(crate) fn pages(&self) -> Pages {
        let sizes = [self.page_bytes, self.cluster_bytes];
        let is_kept = self.compression.is_none() && sizes == [None, None];
        if is_kept && self.encodings.is_empty() && self.compressions.is_empty() { Pages::Keep } else { Pages::Encode }
    }

    /// Whether there are projected fields.
    pub(crate) fn has_projections(&self) -> bool {
        !self.projections.is_empty()
    }

    /// The schema with the projected fields at the end.
    pub(crate) fn project(&self, schema: Schema) -> tupelo::Result<Schema> {
        let with = |schema: Schema, (name, source, type_name): &Projection| {
            schema.with_projection(name, source, type_name.as_deref())
        };
        self.projections.iter().try_fold(schema, with)
    }
}

/// Refuses options that are invalid for every ntuple. Whether they match the fields is not checked.
#[pyfunction]
pub(crate) fn check_options(py: Python<'_>, options: Options) -> PyResult<()> {
    options.to_write().and_then(|options| options.check()).or_raise(py)
}

pub(crate) fn parse_compression(text: &str) -> tupelo::Result<Compression> {
    text.parse::<Compression>().map_err(|error| Error::invalid_argument(error.to_string()))
}

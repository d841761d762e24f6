//! Restores the state of a writer from an existing ntuple.

use std::collections::HashMap;

use tupelo_format::descriptor::FieldId;
use tupelo_format::envelope::{Footer, Header};
use tupelo_format::locator::{EnvelopeLink, Locator};
use tupelo_pages::encode::{ColumnKind, ColumnWriter, FieldWriter};
use tupelo_pages::sink::MAX_KEY_BYTES;
use tupelo_pages::source::{Cluster, Metadata};
use tupelo_schema::schema::Field;

use super::WriteOptions;
use super::records::{FieldIds, Model, PhysicalColumn};
use crate::reader::Ntuple;
use crate::{Error, Result};

/// The restored state.
pub(super) struct Reopened {
    pub(super) model: Model,
    pub(super) fields: Vec<Option<FieldWriter>>,
    pub(super) columns: Vec<ColumnWriter>,
    /// The index of the next element of each physical column.
    pub(super) next_elements: Vec<u64>,
    pub(super) header: (Header, EnvelopeLink),
    pub(super) footer: Footer,
    pub(super) footer_blob: Locator,
}

struct Columns<'n> {
    source: &'n Metadata,
    options: &'n WriteOptions,
    last: Option<Cluster>,
    writers: Vec<ColumnWriter>,
    physical: Vec<Option<PhysicalColumn>>,
    next_elements: Vec<u64>,
}

pub(super) fn reopen(ntuple: &Ntuple, options: &WriteOptions) -> Result<Reopened> {
    if !options.field_compression.is_empty() || !options.field_encoding.is_empty() {
        return Err(Error::invalid_argument(
            "compression and encodings of individual fields can only be set when an ntuple is created",
        ));
    }
    if let Some(warning) = ntuple.warnings().first() {
        return Err(Error::unsupported(format!(
            "cannot add entries to an ntuple with unsupported features: {warning}"
        )));
    }
    let (source, descriptor) = (ntuple.source(), ntuple.descriptor());
    let max_blob_bytes = source.store().max_blob_bytes();
    if max_blob_bytes != 0 && max_blob_bytes < MAX_KEY_BYTES {
        return Err(Error::unsupported(format!(
            "its blobs are split at {max_blob_bytes} bytes, which is not supported for writing"
        )));
    }
    let (header, footer) = source.envelopes()?;
    let anchor = source.store().anchor();
    let last_group = descriptor.cluster_groups().iter().rposition(|group| group.clusters > 0);
    let last = last_group.map(|group| source.group_clusters(group)).transpose()?;
    let mut columns = Columns {
        source,
        options,
        last: last.and_then(|clusters| clusters.last().copied()),
        writers: Vec::new(),
        physical: vec![None; descriptor.columns().len()],
        next_elements: vec![0; descriptor.columns().len()],
    };
    let mut fields = Vec::with_capacity(ntuple.schema().fields.len());
    for field in &ntuple.schema().fields {
        fields.push(match field.projected_from {
            Some(_) => None,
            None => Some(columns.field(field, &field.name)?),
        });
    }
    let mut ids = HashMap::with_capacity(descriptor.fields().len());
    for id in (0..descriptor.fields().len() as u32).map(FieldId::from) {
        // All representations: a projected field refers to those of all clusters.
        let own = descriptor.field(id)?.representations.iter().flatten();
        let own = own.map(|column| column.index() as u32).collect();
        ids.insert(descriptor.path(id), FieldIds { id: id.index() as u32, columns: own });
    }
    Ok(Reopened {
        model: Model::existing(ntuple.schema().clone(), ids, columns.physical, descriptor.fields().len()),
        fields,
        columns: columns.writers,
        next_elements: columns.next_elements,
        header: (header, anchor.header),
        footer,
        footer_blob: anchor.footer.locator,
    })
}

impl Columns<'_> {
    fn field(&mut self, field: &Field, path: &str) -> Result<FieldWriter> {
        let first = self.writers.len();
        self.own_columns(field).map_err(|e| e.within(format!("field '{path}'")))?;
        let below = |child: &Field| match field.is_transparent() {
            true => path.to_owned(),
            false => format!("{path}.{}", child.name),
        };
        let children = field.children().iter().map(|child| self.field(child, &below(child))).collect::<Result<_>>()?;
        let (path, kind) = (path.to_owned(), field.kind.clone());
        Ok(FieldWriter { path, kind, column: first, others: Vec::new(), children })
    }

    /// Creates writers for a field's columns, in the representation of the last cluster.
    fn own_columns(&mut self, field: &Field) -> Result<()> {
        let descriptor = self.source.descriptor();
        let id = field.id.ok_or_else(|| Error::invalid_argument("the field is not stored in the file"))?;
        let representations = &descriptor.field(id)?.representations;
        let mut chosen = representations.first();
        let mut ends = Vec::new();
        for columns in representations {
            let Some(cluster) = self.last else { break };
            let pages = columns.iter().map(|&column| self.source.column_pages(&cluster, column));
            let pages = pages.collect::<Result<Vec<_>>>()?;
            let stored: Option<Vec<u64>> = pages
                .iter()
                .map(|pages| pages.as_ref().and_then(|pages| Some(pages.first_element? + pages.elements())))
                .collect();
            if let Some(stored) = stored.filter(|stored| !stored.is_empty()) {
                (chosen, ends) = (Some(columns), stored);
                break;
            }
        }
        for (k, memory) in FieldWriter::columns_of(field).into_iter().enumerate() {
            let Some(&id) = chosen.and_then(|columns| columns.get(k)) else {
                return Err(Error::corrupt(format!("column {k} of the field is missing")));
            };
            let column = descriptor.column(id)?;
            let encoding = column.encoding.ok_or_else(|| Error::unsupported(format!("column {id} does not exist")))?;
            if let ColumnKind::Fixed(width) = memory
                && usize::from(encoding.bits()) != width * 8
            {
                let name = encoding.column_type().name();
                return Err(Error::unsupported(format!(
                    "cannot add values to a '{}' in a {name} column",
                    field.type_name
                )));
            }
            self.physical[id.index()] = Some(PhysicalColumn { writer: self.writers.len(), representation: 0 });
            self.next_elements[id.index()] = ends.get(k).copied().unwrap_or(column.first_element);
            self.writers.push(ColumnWriter::new(memory, self.options.page_options(encoding, self.options.compression)));
        }
        Ok(())
    }
}

//! Fields that an ntuple gets later, with values for the entries that it has.

use std::sync::Arc;

use tupelo_format::envelope::{ColumnPages, EnvelopeType};
use tupelo_pages::encode::StoredColumn;
use tupelo_pages::sink::Stored;
use tupelo_schema::schema::Schema;

use super::super::cluster_builder::ClusterBuilder;
use super::super::groups;
use super::{Committer, put_envelope};
use crate::Result;

impl Committer {
    /// Adds top-level fields that have values for all entries from the first one; returns the builder of their clusters, which
    /// only the caller ends. [`Committer::add_columns`] lists them.
    pub(in crate::writer) fn late_fields(&mut self, schema: &Schema) -> Result<ClusterBuilder> {
        let options = self.options.clone().without_fields();
        let added = self.extend_top(schema, &options, 0)?;
        let first = self.model.writers - added.columns.len();
        let fields = added.fields.into_iter().map(|field| field.map(|field| field.counted_from(first))).collect();
        Ok(ClusterBuilder::new(Arc::clone(&self.sink), fields, added.columns, &options).without_end())
    }

    /// Lists further columns of the existing clusters, one after the other, behind those that they list.
    pub(in crate::writer) fn add_columns(&mut self, clusters: Vec<Vec<StoredColumn>>) -> Result<()> {
        let mut clusters = clusters.into_iter();
        let mut next_elements: Vec<u64> = Vec::new();
        for (group, record) in self.footer.cluster_groups.iter_mut().enumerate() {
            let mut listed = self.groups.listed(group, record)?;
            for ((_, columns), stored) in listed.iter_mut().zip(&mut clusters) {
                next_elements.resize(stored.len(), 0);
                for (StoredColumn { pages, compression, .. }, next_element) in
                    stored.into_iter().zip(&mut next_elements)
                {
                    let column = ColumnPages { pages, first_element: Some(*next_element), compression };
                    *next_element += column.elements();
                    columns.push(column);
                }
            }
            let envelope = groups::write(self.header_checksum, &listed);
            self.superseded.push(Stored::Envelope(record.page_list.locator));
            record.page_list = put_envelope(&*self.sink, EnvelopeType::PageList, self.options.compression, envelope)?;
        }
        self.is_changed = true;
        Ok(())
    }
}

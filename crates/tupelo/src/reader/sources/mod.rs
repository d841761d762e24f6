//! Sources of entries: ntuples and trees.

mod ntuple;
mod tree;

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use arrow_array::ArrayRef;

use super::explain::{Explanation, explain};
use crate::decode::{DecodeOptions, decode};
use crate::evolution::SourceSchema;
use crate::plan::{self, ColumnOf, ColumnTable, ReadPlan, Segment};
use crate::schema::Field;
use crate::source::Cluster;
use crate::{Error, Result};
pub use ntuple::{FormatVersion, Ntuple};
pub use tree::{Tree, TreeSizes};

/// Number of fields from which on a read is assumed to need a server.
const SAMPLED_FIELDS: usize = 8;

/// A source of entries: an ntuple, or anything else with a schema whose fields can be decoded for ranges of entries.
/// [`Read`](super::Read), expressions, cuts and batches use only this trait.
pub(crate) trait EntrySource: fmt::Debug + Send + Sync {
    /// Adds the names of the source to an error.
    fn context(&self, error: Error) -> Error;

    /// Path or URI of the file.
    fn file_name(&self) -> String;

    /// The fields.
    fn schema(&self) -> &SourceSchema;

    /// Number of entries.
    fn entries(&self) -> u64;

    /// The first clusters that hold entries of a range, at most `most`, in order.
    fn clusters(&self, entries: Range<u64>, most: usize) -> Result<Vec<Cluster>>;

    /// Decodes stored fields for segments of clusters; one array per field. With `shares`, values must not exceed one
    /// of this many shares of the memory budget, however many bytes are stored for them.
    fn decode(
        &self,
        fields: &[Field],
        segments: &[Segment],
        binary_strings: bool,
        shares: Option<u64>,
    ) -> Result<Vec<ArrayRef>>;

    /// Bytes in memory that stored fields take in some clusters; a field that is listed twice counts once.
    fn decoded_bytes(&self, fields: &[&Field], clusters: &[Cluster]) -> Result<f64>;

    /// Whether all entries of stored fields are best read in parts of whole clusters, judged by one cluster.
    fn reads_in_parts(&self, fields: &[Field], cluster: &Cluster) -> Result<bool>;

    /// The best end of a chunk of entries; see [`plan::batch_end`].
    fn batch_end(
        &self,
        fields: &[&Field],
        window: &Range<u64>,
        limit: u64,
        place: &dyn Fn(u64) -> u64,
    ) -> Result<Option<u64>>;

    /// What reading segments would do: first the fields that a cut needs, then the others.
    fn explain(&self, cut: &[Field], others: &[Field], segments: &[Segment]) -> Result<Explanation>;

    /// An identifier that changes when the source is rewritten; `None` if it has no file.
    fn identity(&self) -> Result<Option<String>>;

    /// The ntuple, if this is one.
    fn as_ntuple(&self) -> Option<&Ntuple>;

    /// The tree, if this is one.
    fn as_tree(&self) -> Option<&Tree> {
        None
    }

    /// Lists, each with the field that has the numbers of their items: names of both.
    fn counters(&self) -> Vec<(String, String)> {
        self.schema().schema().projected_counters()
    }

    /// The dotted paths of stored fields whose values in a range of entries cannot be decoded, and why.
    fn unreadable(&self, fields: &[Field], entries: Range<u64>) -> Result<Vec<(String, Error)>> {
        let _ = (fields, entries);
        Ok(Vec::new())
    }
}

impl EntrySource for Ntuple {
    fn context(&self, error: Error) -> Error {
        self.context(error)
    }

    fn file_name(&self) -> String {
        self.file_name()
    }

    fn schema(&self) -> &SourceSchema {
        self.source_schema()
    }

    fn entries(&self) -> u64 {
        self.entries()
    }

    fn clusters(&self, entries: Range<u64>, most: usize) -> Result<Vec<Cluster>> {
        self.answer(&|ntuple| ntuple.source().first_clusters(entries.clone(), most))
    }

    fn decode(
        &self,
        fields: &[Field],
        segments: &[Segment],
        binary_strings: bool,
        shares: Option<u64>,
    ) -> Result<Vec<ArrayRef>> {
        self.answer(&|ntuple| {
            let source = ntuple.source();
            let memory = source.request_memory().shared(shares);
            let options = DecodeOptions { compressed: ntuple.is_compressed(), binary_strings };
            source.session().counters().elapsed(|| decode(source, &memory, fields, segments, options))
        })
    }

    fn decoded_bytes(&self, fields: &[&Field], clusters: &[Cluster]) -> Result<f64> {
        let mut known = HashSet::new();
        let mut columns: Vec<ColumnOf<'_>> = fields.iter().copied().flat_map(plan::columns).collect();
        columns.retain(|column| known.insert((column.field.id, column.k)));
        self.answer(&|ntuple| {
            let memory = ntuple.source().request_memory();
            let mut table = ColumnTable::new(ntuple.source(), &memory);
            let mut bytes = 0.0;
            for cluster in clusters {
                for column in &columns {
                    bytes += table.decoded_bytes(column.field, column.k, cluster)?;
                }
            }
            Ok(bytes)
        })
    }

    /// On a server, the offsets of one level decide which pages of the next level are read, so each level of many small
    /// fields takes requests in every cluster. Without levels, all clusters are fetched one after the other anyway.
    fn reads_in_parts(&self, fields: &[Field], cluster: &Cluster) -> Result<bool> {
        if plan::is_flat(fields.iter().flat_map(plan::columns)) {
            return Ok(false);
        }
        let fields = &fields[..fields.len().min(SAMPLED_FIELDS)];
        self.answer(&|ntuple| {
            let (source, memory) = (ntuple.source(), ntuple.source().request_memory());
            let store = source.store();
            if store.hints().concurrency <= 1 {
                return Ok(false);
            }
            let mut table = ColumnTable::new(source, &memory);
            let plan = ReadPlan::new(&mut table, fields, &plan::segments(&[*cluster], &cluster.entry_range()))?;
            let mut pages = plan.columns.iter().flat_map(|column| &column.pages);
            Ok(pages.any(|(_, range)| !store.is_read_in_place(range)))
        })
    }

    fn batch_end(
        &self,
        fields: &[&Field],
        window: &Range<u64>,
        limit: u64,
        place: &dyn Fn(u64) -> u64,
    ) -> Result<Option<u64>> {
        self.answer(&|ntuple| {
            let memory = ntuple.source().request_memory();
            let clusters = ntuple.source().clusters(window.start..limit)?;
            plan::batch_end(&mut ColumnTable::new(ntuple.source(), &memory), &clusters, fields, window, limit, place)
        })
    }

    fn explain(&self, cut: &[Field], others: &[Field], segments: &[Segment]) -> Result<Explanation> {
        self.answer(&|ntuple| explain(ntuple.source(), cut, others, segments))
    }

    fn identity(&self) -> Result<Option<String>> {
        self.identity().map(Some)
    }

    fn as_ntuple(&self) -> Option<&Ntuple> {
        Some(self)
    }
}

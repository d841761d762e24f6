//! Sources of entries: ntuples and trees.

mod chain;
mod defaults;
mod extras;
mod join;
mod matched;
mod ntuple;
mod parts;
mod sealed;
mod tree;
pub(crate) mod zones;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::{fmt, iter};

use arrow_array::{ArrayRef, make_array};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::DataType;
use tupelo_format::compression::Compression;
use tupelo_format::container::Deviation;
use tupelo_format::descriptor::ColumnId;
use tupelo_format::envelope::ExtraTypeInfo;
use tupelo_format::streamer::StreamerInfos;
use tupelo_pages::encode::ListedCluster;
use tupelo_pages::plan::{self, ColumnOf, ColumnTable, EntrySet};
use tupelo_pages::source::{Cluster, Keep};
use tupelo_schema::evolution::{Selection, SourceSchema, binary_type, relabel};
use tupelo_schema::schema::Field;
use tupelo_schema::schema::arrow::data_type;

use super::explain::{Explanation, explain};
use super::skipped::Skipped;
use crate::{Error, ErrorKind, Result};
pub(in crate::reader) use chain::no_ntuples;
pub use chain::{Chain, ChainPart};
pub(crate) use defaults::default_values;
use defaults::zeros_for;
pub(crate) use extras::TreeExtras;
pub use join::Join;
pub(in crate::reader) use matched::{Matched, NO_ENTRY};
pub use ntuple::{FormatVersion, Ntuple};
use sealed::SealedPages;
pub(crate) use sealed::{StoredPage, fetch};
pub use tree::{Tree, TreeSizes};
use zones::ZoneBounds;

/// Clusters by which the cost of a request is judged.
const SAMPLED_CLUSTERS: usize = 8;

/// A source of entries: anything with a schema whose fields can be decoded for sets of entries.
/// [`Read`](super::Read), expressions, cuts and batches use nothing else of it.
pub(crate) trait EntrySource: fmt::Debug + Send + Sync {
    /// The fields.
    fn schema(&self) -> &SourceSchema;

    /// Number of entries.
    fn entries(&self) -> u64;

    /// Number of clusters.
    fn clusters(&self) -> u64;

    /// The entries of each ntuple or tree behind it, one after the other.
    fn parts(&self) -> Vec<Range<u64>> {
        iter::once(0..self.entries()).collect()
    }

    /// Path or URI of the file.
    fn file_name(&self) -> String;

    /// Path in the file, with the directories.
    fn path(&self) -> &str;

    /// Adds the names of the source to an error.
    fn context(&self, error: Error) -> Error;

    /// What changes when the source is rewritten.
    fn identity(&self) -> Result<String>;

    /// Decodes stored fields; one array per field.
    fn decode(&self, fields: &[Field], entries: &EntrySet, options: DecodeOptions<'_>) -> Result<Vec<ArrayRef>>;

    /// What decoding stored fields costs, judged by the first clusters of a range. A field that is listed twice counts
    /// once.
    fn cost(&self, fields: &[&Field], entries: &Range<u64>) -> Result<Cost>;

    /// The best end of a chunk of entries; see [`plan::batch_end`].
    fn batch_end(
        &self,
        fields: &[&Field],
        window: &Range<u64>,
        limit: u64,
        place: &dyn Fn(u64) -> u64,
    ) -> Result<Option<u64>>;

    /// What zone maps say of fields in a range of entries, with filters of the `filtered` ones.
    fn zones(&self, fields: &[&str], entries: &Range<u64>, filtered: &BTreeSet<&str>) -> Vec<ZoneBounds> {
        let _ = filtered;
        vec![ZoneBounds::unknown(fields, entries)]
    }

    /// Stored bytes of the zone maps of fields in a range of entries, with filters of the `filtered` ones.
    fn stored_zone_bytes(&self, fields: &[&str], entries: &Range<u64>, filtered: &BTreeSet<&str>) -> Result<u64> {
        let _ = (fields, entries, filtered);
        Ok(0)
    }

    /// What reading entries would do: first the fields that a cut needs, then the others.
    fn explain(&self, cut: &[Field], others: &[Field], entries: &EntrySet) -> Result<Explanation>;

    /// The cluster that begins with the first of the entries and ends before they end, with the pages of stored fields as
    /// they are. Their checksums are compared when they are read.
    fn sealed(&self, fields: &[Field], entries: &Range<u64>) -> Result<Sealed> {
        let _ = fields;
        Ok(Sealed::none(entries.end))
    }

    /// What goes along with the entries to another file.
    fn sidecar(&self) -> &dyn Sidecar;

    /// The dotted paths of stored fields whose values in a range of entries cannot be decoded, and why.
    fn unreadable(&self, fields: &[Field], entries: Range<u64>) -> Result<Vec<(String, Error)>> {
        let _ = (fields, entries);
        Ok(Vec::new())
    }
}

/// Compares a source with the identity that it had when its fields were compared.
pub(in crate::reader) fn check_unchanged(source: &dyn EntrySource, identity: &str) -> Result<()> {
    if source.identity()? == identity {
        return Ok(());
    }
    let what = "the file has changed since its fields were compared; read the files again";
    Err(source.context(Error::new(ErrorKind::Changed, what)))
}

/// How values are decoded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DecodeOptions<'k> {
    pub(crate) binary_strings: bool,
    /// Values must not exceed one of so many shares of the memory budget, however many bytes are stored for them.
    pub(crate) shares: Option<u64>,
    /// Which decompressed pages are kept for later requests.
    pub(crate) keep: &'k Keep,
}

/// The values of a selection of a source's fields.
fn decode_selection(
    source: &dyn EntrySource,
    selection: &Selection,
    entries: &EntrySet,
    options: DecodeOptions<'_>,
) -> Result<Vec<ArrayRef>> {
    let arrays = source.decode(selection.stored_fields(), entries, options)?;
    source.schema().evolve(selection, arrays, options.binary_strings, |place| entries.get(place as u64))
}

/// The type of decoded values of a field.
fn type_of(field: &Field, schema: &SourceSchema, binary_strings: bool) -> DataType {
    let stored = data_type(field, schema.is_compressed());
    if binary_strings { binary_type(&stored) } else { stored }
}

/// An array under a type that has other metadata and nullability, or wider numbers.
fn typed(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if array.data_type() == data_type {
        return Ok(Arc::clone(array));
    }
    let data = array.to_data();
    match relabel(&data, data_type) {
        Ok(data) => Ok(make_array(data)),
        // Strings that are not UTF-8 are bytes.
        Err(_) => match relabel(&data, &binary_type(data_type)) {
            Ok(data) => Ok(make_array(data)),
            Err(_) => Ok(cast_with_options(array, data_type, &CastOptions { safe: false, ..CastOptions::default() })?),
        },
    }
}

/// Fields without those that were listed before.
fn each_once<'f>(fields: &'f [&'f Field]) -> impl Iterator<Item = &'f Field> {
    let mut known = HashSet::new();
    fields.iter().copied().filter(move |field| known.insert(field.id))
}

/// Adds items that are not known yet. There are few.
fn add_new<T: PartialEq>(known: &mut Vec<T>, items: impl IntoIterator<Item = T>) {
    for item in items {
        if !known.contains(&item) {
            known.push(item);
        }
    }
}

/// What a source stores of entries.
#[derive(Debug)]
pub(crate) struct Sealed {
    /// The end of the cluster that has the first entry, or of the entries if they end earlier.
    pub(crate) end: u64,
    /// The cluster and its pages; `None` if it must be decoded.
    pub(crate) cluster: Option<(ListedCluster, SealedPages)>,
    /// The places of fields that the cluster does not store for all its entries, each with the number of entries at the
    /// beginning that have the default value.
    pub(crate) missing: Vec<(usize, u64)>,
    /// The number of the cluster, and the elements of each stored column that is not deferred, counted through all clusters.
    pub(crate) elements: (u64, Vec<(ColumnId, Range<u64>)>),
}

impl Sealed {
    /// Entries that must be decoded.
    pub(crate) fn none(end: u64) -> Self {
        Self { end, cluster: None, missing: Vec::new(), elements: (0, Vec::new()) }
    }
}

/// What reading some fields costs, judged by the first clusters of a range of entries.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cost {
    /// Entries of the range in these clusters.
    pub(crate) entries: u64,
    /// Bytes in memory that an entry takes on average.
    pub(crate) bytes_per_entry: f64,
}

/// What a source has besides entries. A source without it has the default of each.
pub(crate) trait Sidecar {
    /// Free text.
    fn description(&self) -> &str;

    /// What cannot be read, as the metadata say.
    fn left_out(&self) -> Vec<Skipped> {
        Vec::new()
    }

    /// The same and other warnings: one sentence each.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// The rules of the format that the file breaks.
    fn deviations(&self) -> Vec<Deviation> {
        Vec::new()
    }

    /// The codec of its pages; `None` where it has none of an ntuple. Of several files that of the first one.
    fn compression(&self) -> Result<Option<Compression>> {
        Ok(None)
    }

    /// Information on types in the header or footer.
    fn extra_type_info(&self) -> &[ExtraTypeInfo] {
        &[]
    }

    /// The layouts of classes that the file describes and that the fields need.
    fn streamer_infos(&self) -> Result<StreamerInfos> {
        Ok(StreamerInfos::default())
    }

    /// The layouts of the classes of a tree; of several files those of the first one.
    fn classes(&self) -> Result<StreamerInfos> {
        Ok(StreamerInfos::default())
    }

    /// What is attached to the entries of a [part](EntrySource::parts), by its number.
    fn attached(&self, part: usize) -> Result<Attached> {
        let _ = part;
        Ok(Attached::default())
    }
}

/// The attribute set that holds the metadata of an application: one entry of `key` and `value` (both `std::string`) per
/// item.
pub const METADATA_SET: &str = "metadata";

/// What a file says of the entries of its ntuple or tree.
#[derive(Debug, Default)]
pub(crate) struct Attached {
    /// The ntuple that says it.
    pub(crate) ntuple: Option<Ntuple>,
    /// As [`Sidecar::streamer_infos`].
    pub(crate) streamer_infos: StreamerInfos,
    /// The metadata of an application.
    pub(crate) metadata: BTreeMap<String, String>,
    /// The other attribute sets by name.
    pub(crate) sets: Vec<(String, Ntuple)>,
    /// What a tree has.
    pub(crate) tree: TreeExtras,
}

impl EntrySource for Ntuple {
    fn schema(&self) -> &SourceSchema {
        self.source_schema()
    }

    fn entries(&self) -> u64 {
        self.entries()
    }

    fn clusters(&self) -> u64 {
        self.clusters()
    }

    fn file_name(&self) -> String {
        self.file_name()
    }

    fn path(&self) -> &str {
        self.path()
    }

    fn context(&self, error: Error) -> Error {
        self.context(error)
    }

    fn identity(&self) -> Result<String> {
        self.identity()
    }

    fn decode(&self, fields: &[Field], entries: &EntrySet, options: DecodeOptions<'_>) -> Result<Vec<ArrayRef>> {
        self.in_any_store(&|ntuple| parts::decode(ntuple, fields, entries, options))
    }

    fn cost(&self, fields: &[&Field], entries: &Range<u64>) -> Result<Cost> {
        let mut known = HashSet::new();
        let mut columns: Vec<ColumnOf<'_>> = fields.iter().copied().flat_map(plan::columns).collect();
        columns.retain(|column| known.insert((column.field.id, column.k)));
        self.in_any_store(&|ntuple| {
            let clusters = ntuple.source().first_clusters(entries.clone(), SAMPLED_CLUSTERS)?;
            let memory = ntuple.source().request_memory();
            let mut table = ColumnTable::new(ntuple.source(), &memory);
            let mut bytes = 0.0;
            for cluster in &clusters {
                for column in &columns {
                    bytes += table.decoded_bytes(column.field, column.k, cluster)?;
                }
            }
            Ok(Cost::of(bytes, clusters.iter().map(Cluster::entry_range), entries))
        })
    }

    fn batch_end(
        &self,
        fields: &[&Field],
        window: &Range<u64>,
        limit: u64,
        place: &dyn Fn(u64) -> u64,
    ) -> Result<Option<u64>> {
        self.in_any_store(&|ntuple| {
            let memory = ntuple.source().request_memory();
            let clusters = ntuple.source().clusters(window.start..limit)?;
            plan::batch_end(&mut ColumnTable::new(ntuple.source(), &memory), &clusters, fields, window, limit, place)
        })
    }

    fn zones(&self, fields: &[&str], entries: &Range<u64>, filtered: &BTreeSet<&str>) -> Vec<ZoneBounds> {
        match self.source_schema().runs_user_code() {
            // The values that are read are others.
            true => vec![ZoneBounds::unknown(fields, entries)],
            false => self.zone_bounds(fields, entries, filtered),
        }
    }

    fn stored_zone_bytes(&self, fields: &[&str], _: &Range<u64>, filtered: &BTreeSet<&str>) -> Result<u64> {
        match self.source_schema().runs_user_code() {
            true => Ok(0),
            false => self.stored_bytes_of_zones(fields, filtered),
        }
    }

    fn explain(&self, cut: &[Field], others: &[Field], entries: &EntrySet) -> Result<Explanation> {
        self.in_any_store(&|ntuple| explain(ntuple.source(), cut, others, entries))
    }

    fn sealed(&self, fields: &[Field], entries: &Range<u64>) -> Result<Sealed> {
        sealed::sealed(self, fields, entries)
    }

    fn sidecar(&self) -> &dyn Sidecar {
        self
    }
}

impl Cost {
    /// The cost of a range from the bytes of its first clusters, which are ranges of entries.
    fn of(bytes: f64, clusters: impl Iterator<Item = Range<u64>>, entries: &Range<u64>) -> Self {
        let (mut whole, mut chosen) = (0, 0);
        for cluster in clusters {
            whole += cluster.end - cluster.start;
            chosen += cluster.end.min(entries.end).saturating_sub(cluster.start.max(entries.start));
        }
        Self { entries: chosen, bytes_per_entry: bytes / whole.max(1) as f64 }
    }
}

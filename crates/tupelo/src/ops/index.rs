//! Manifests: what a program must know about many files to divide their entries among processes without opening them.
//! No page is read to make one.
//!
//! A manifest is a JSON object of version [`MANIFEST_VERSION`]:
//!
//! | key | value |
//! |---|---|
//! | `format` | [`MANIFEST_FORMAT`] |
//! | `version` | [`MANIFEST_VERSION`] |
//! | `schemas` | what the files have: `fields` is a list of pairs of the name and the C++ type of each top-level field; `arrow` is the Arrow schema that reading gives, as an Arrow IPC stream without batches, in base64 |
//! | `files` | the ntuples and trees, in the order in which they were added |
//! | `left_out` | only if there are any: `uri`, `ntuple` (or null) and `error` of each file that could not be read |
//!
//! and each of the `files` is an object:
//!
//! | key | value |
//! |---|---|
//! | `uri` | the file, by its absolute path, or its URL without credentials |
//! | `ntuple` | path of the ntuple or tree in the file |
//! | `size_bytes` | size of the file; null if not recorded |
//! | `identity` | [`Table::identity`] |
//! | `entries` | number of entries |
//! | `schema` | index of its schema in `schemas` |
//! | `field_bytes` | stored bytes of each top-level field of the schema, page checksums included; of a projected field, those of its source |
//! | `clusters` | for each cluster that has entries, in order: first entry, number of entries, stored bytes of all columns; of a tree those of the baskets that begin in it |

pub mod zones;

use std::ops::Range;
use std::path::{Path, absolute};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{FieldRef, Schema as ArrowSchema};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tupelo_format::descriptor::FieldId;
use tupelo_pages::source;
use tupelo_schema::evolution::binary_type;
use tupelo_schema::schema::Schema;
use tupelo_storage::local_path;

use super::inspect::{each_column, top_level};
use crate::reader::{Location, Ntuple, Table, Tree};
use crate::{Error, Result};

/// The format name in manifests.
pub const MANIFEST_FORMAT: &str = "tupelo-manifest";
/// Version of manifests. Readers refuse those of a later one.
pub const MANIFEST_VERSION: u32 = 1;

/// Memory for each cluster while a file is added: twice as numbers, and as text.
const MEMORY_PER_CLUSTER: u64 = 160;

/// Entries that are stored together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cluster {
    /// First entry.
    pub first_entry: u64,
    /// Number of entries.
    pub entries: u64,
    /// Stored bytes of the pages of all columns, checksums included.
    pub stored_bytes: u64,
}

/// The clusters that have entries, in order.
///
/// # Errors
/// Corrupt if a page list is damaged.
pub fn clusters(ntuple: &Ntuple) -> Result<Vec<Cluster>> {
    sizes(ntuple).map(|(clusters, _)| clusters)
}

/// Clusters, and stored bytes by field id, counted only for top-level fields.
fn sizes(ntuple: &Ntuple) -> Result<(Vec<Cluster>, Vec<u64>)> {
    let add_up = |ntuple: &Ntuple| {
        let source = ntuple.source();
        let descriptor = source.descriptor();
        let all = source.clusters(0..descriptor.entries())?;
        let empty = |c: &source::Cluster| Cluster { first_entry: c.first_entry, entries: c.entries, stored_bytes: 0 };
        let mut clusters: Vec<Cluster> = all.iter().map(empty).collect();
        let tops = descriptor
            .columns()
            .iter()
            .map(|column| top_level(descriptor, column.field))
            .collect::<Result<Vec<_>>>()?;
        let mut fields = vec![0; descriptor.fields().len()];
        let mut next = 0;
        each_column(source, |cluster, column, own| {
            fields[tops[column.index()].index()] += own.stored_bytes;
            // Those without entries are not in the list.
            while all.get(next).is_some_and(|known| known.number < cluster.number) {
                next += 1;
            }
            if all.get(next).is_some_and(|known| known.number == cluster.number) {
                clusters[next].stored_bytes += own.stored_bytes;
            }
        })?;
        Ok((clusters, fields))
    };
    ntuple.in_any_store(&add_up).map_err(|e| ntuple.context(e))
}

/// The clusters of a tree. A basket belongs to the cluster in which it begins.
fn tree_clusters(tree: &Tree) -> Vec<Cluster> {
    let empty =
        |range: Range<u64>| Cluster { first_entry: range.start, entries: range.end - range.start, stored_bytes: 0 };
    let mut clusters: Vec<Cluster> = tree.cluster_ranges().map(empty).collect();
    for basket in tree.metadata().branches.iter().flat_map(|branch| &branch.baskets) {
        let next = clusters.partition_point(|cluster| cluster.first_entry <= basket.entries.start);
        if let Some(cluster) = next.checked_sub(1).and_then(|index| clusters.get_mut(index)) {
            cluster.stored_bytes += basket.stored.bytes();
        }
    }
    clusters
}

/// What reading the fields that patterns choose gives, without entries: of the Arrow schema of an ntuple, which need
/// not be open. With `binary_strings` strings are bytes.
///
/// # Errors
/// Not found, with near names, for a pattern that fits no field; unsupported for types that no ntuple has.
pub fn choose(schema: &ArrowSchema, patterns: &[String], binary_strings: bool) -> Result<RecordBatch> {
    let chosen = Schema::from_arrow(schema)?.select(patterns)?.to_arrow(true);
    if !binary_strings {
        return Ok(RecordBatch::new_empty(Arc::new(chosen)));
    }
    let binary = |field: &FieldRef| field.as_ref().clone().with_data_type(binary_type(field.data_type()));
    Ok(RecordBatch::new_empty(Arc::new(ArrowSchema::new(chosen.fields().iter().map(binary).collect::<Vec<_>>()))))
}

/// A manifest under construction.
#[derive(Debug, Default)]
pub struct Manifest {
    schemas: Vec<ArrowSchema>,
    /// A JSON object of each: as text, a fraction of what values take for very many clusters.
    files: Vec<String>,
    left_out: Vec<Value>,
}

impl Manifest {
    /// One without files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an ntuple or a tree. It is not kept open.
    ///
    /// # Errors
    /// Corrupt if a page list is damaged; limit if there are more clusters than the memory budget allows; storage errors.
    pub fn add(&mut self, table: &Table) -> Result<()> {
        let several = || Error::unsupported("expected one file, found several: add each of them");
        let (count, session) = match table {
            Table::Ntuple(ntuple) => (ntuple.clusters(), ntuple.source().session()),
            Table::Tree(tree) => (tree.clusters(), tree.source().session()),
            Table::Chain(_) | Table::Join(_) => return Err(several()),
        };
        let memory = count.saturating_mul(MEMORY_PER_CLUSTER);
        let _reserved = session.budget().reserve(memory, "the clusters of a manifest")?;
        let schema = ArrowSchema::new(table.arrow_schema().fields().clone());
        let (clusters, size, field_bytes): (_, _, Vec<u64>) = match table {
            Table::Ntuple(ntuple) => {
                let (clusters, bytes) = sizes(ntuple)?;
                let own = schema.fields().iter().map(|field| field_bytes(ntuple, field.name(), &bytes));
                (clusters, ntuple.source().store().size(), own.collect())
            }
            Table::Tree(tree) => {
                let own = tree.sizes().into_iter().map(|sizes| sizes.stored_bytes);
                (tree_clusters(tree), Some(tree.source().file().size()), own.collect())
            }
            Table::Chain(_) | Table::Join(_) => return Err(several()),
        };
        let place = self.schemas.iter().position(|known| *known == schema).unwrap_or(self.schemas.len());
        let file = json!({
            "uri": uri(&table.file_name())?,
            "ntuple": table.path(),
            "size_bytes": size,
            "identity": table.identity()?,
            "entries": table.entries(),
            "schema": place,
            "field_bytes": field_bytes,
        });
        self.files.push(with_list(&file, "clusters", clusters.iter().copied().map(Cluster::to_json)));
        if place == self.schemas.len() {
            self.schemas.push(schema);
        }
        Ok(())
    }

    /// Notes a file that is not in the manifest because it could not be read.
    ///
    /// # Errors
    /// Invalid argument where the path of the file is not UTF-8.
    pub fn leave_out(&mut self, location: &Location, error: &str) -> Result<()> {
        self.left_out.push(json!({ "uri": uri(&location.file)?, "ntuple": location.object, "error": error }));
        Ok(())
    }

    /// The JSON document, without line breaks.
    ///
    /// # Errors
    /// Invalid argument if Arrow cannot write a schema.
    pub fn to_json(&self) -> Result<String> {
        let schemas = self.schemas.iter().map(schema_to_json).collect::<Result<Vec<_>>>()?;
        let mut manifest = json!({
            "format": MANIFEST_FORMAT,
            "version": MANIFEST_VERSION,
            "schemas": schemas,
        });
        if !self.left_out.is_empty() {
            manifest["left_out"] = self.left_out.as_slice().into();
        }
        Ok(with_list(&manifest, "files", self.files.iter()))
    }
}

/// The text of a JSON object, with a list of texts as its last member.
fn with_list(object: &Value, key: &str, items: impl Iterator<Item = impl AsRef<str>>) -> String {
    let mut text = object.to_string();
    text.truncate(text.len() - 1);
    text.push_str(&format!(",\"{key}\":["));
    for (number, item) in items.enumerate() {
        if number > 0 {
            text.push(',');
        }
        text.push_str(item.as_ref());
    }
    text.push_str("]}");
    text
}

impl Cluster {
    fn to_json(self) -> String {
        format!("[{},{},{}]", self.first_entry, self.entries, self.stored_bytes)
    }
}

/// Where the file lies, wherever the reader of the manifest works.
fn uri(file_name: &str) -> Result<String> {
    if local_path(file_name).is_none() {
        return Ok(file_name.to_owned());
    }
    let path = absolute(Path::new(file_name))
        .map_err(|e| Error::invalid_argument(format!("cannot make the path of {file_name} absolute: {e}")))?;
    path.into_os_string().into_string().map_err(|path| {
        Error::invalid_argument(format!("the path {} is not UTF-8, which JSON requires", path.display()))
    })
}

/// Stored bytes of a top-level field.
fn field_bytes(ntuple: &Ntuple, name: &str, bytes: &[u64]) -> u64 {
    let descriptor = ntuple.descriptor();
    let mut fields = descriptor.fields().iter().enumerate();
    let Some((index, field)) = fields.find(|(_, field)| field.parent.is_none() && field.record.name == name) else {
        return 0;
    };
    let mut id = field.record.source.map_or(index, |source| FieldId::from(source).index());
    while let Some(parent) = descriptor.fields()[id].parent {
        id = parent.index();
    }
    bytes[id]
}

fn schema_to_json(schema: &ArrowSchema) -> Result<Value> {
    let mut stream = StreamWriter::try_new(Vec::new(), schema)?;
    stream.finish()?;
    let types = Schema::from_arrow(schema)?;
    let fields = types.fields.iter().map(|field| json!([field.name, field.display_type()]));
    Ok(json!({ "fields": fields.collect::<Vec<_>>(), "arrow": STANDARD.encode(stream.into_inner()?) }))
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Int64Array, RecordBatchOptions, StringArray};
    use arrow_ipc::reader::StreamReader;

    use super::*;
    use crate::WriteOptions;
    use crate::ops::inspect;
    use crate::writer::TreeOptions;

    /// Clusters of 10, 20 and 30 entries.
    fn write(path: &Path, first: i64) -> Ntuple {
        let file = crate::create(path).unwrap();
        let batch = |range: std::ops::Range<i64>| {
            let column: ArrayRef = Arc::new(Int64Array::from_iter_values(range.map(|i| (i * i) ^ 0x5555)));
            RecordBatch::try_from_iter([("x", column.clone()), ("y", column)]).unwrap()
        };
        let schema = Schema::from_arrow(&batch(0..1).schema()).unwrap();
        let mut ntuple = file.ntuple("Events", &schema, WriteOptions::default()).unwrap();
        for range in [0..10, 10..30, 30..60] {
            ntuple.write(&batch(range.start + first..range.end + first)).unwrap();
            ntuple.flush_cluster().unwrap();
        }
        ntuple.finish().unwrap();
        file.finish().unwrap();
        crate::open(path.to_str().unwrap()).open().unwrap()
    }

    #[test]
    fn clusters_are_what_inspect_counts() {
        let folder = tempfile::tempdir().unwrap();
        let ntuple = write(&folder.path().join("a.root"), 0);
        let clusters = clusters(&ntuple).unwrap();
        let ranges: Vec<_> = clusters.iter().map(|c| (c.first_entry, c.entries)).collect();
        assert_eq!(ranges, [(0, 10), (10, 20), (30, 30)]);
        let total: u64 = clusters.iter().map(|c| c.stored_bytes).sum();
        assert_eq!(total, inspect::summary(&ntuple).unwrap().sizes.stored_bytes);
        assert!(clusters.iter().all(|c| c.stored_bytes > 0));
    }

    #[test]
    fn a_manifest_holds_each_schema_once_and_gives_it_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut manifest = Manifest::new();
        let ntuple = write(&folder.path().join("a.root"), 0);
        manifest.add(&ntuple.clone().into()).unwrap();
        manifest.add(&write(&folder.path().join("b.root"), 7).into()).unwrap();
        let json: Value = serde_json::from_str(&manifest.to_json().unwrap()).unwrap();
        assert_eq!((&json["format"], &json["version"]), (&json!("tupelo-manifest"), &json!(1)));
        assert_eq!(json["schemas"].as_array().unwrap().len(), 1);
        assert_eq!(json["schemas"][0]["fields"], json!([["x", "std::int64_t"], ["y", "std::int64_t"]]));
        let stream = STANDARD.decode(json["schemas"][0]["arrow"].as_str().unwrap()).unwrap();
        let schema = StreamReader::try_new(stream.as_slice(), None).unwrap().schema();
        assert_eq!(schema.fields(), ntuple.arrow_schema().fields());
        let file = &json["files"][1];
        assert_eq!((&file["ntuple"], &file["entries"], &file["schema"]), (&json!("Events"), &json!(60), &json!(0)));
        let fields: u64 = file["field_bytes"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum();
        let clusters: u64 = file["clusters"].as_array().unwrap().iter().map(|c| c[2].as_u64().unwrap()).sum();
        assert_eq!(fields, clusters);
        assert!(file["uri"].as_str().unwrap().starts_with('/') && file["identity"] != json["files"][0]["identity"]);
    }

    /// A tree has up to 2^20 clusters that cost its file nothing.
    #[test]
    fn the_clusters_of_a_manifest_count_against_the_budget() {
        const ENTRIES: usize = 1 << 20;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tree.root");
        let file = crate::create(&path).unwrap();
        let mut tree =
            file.tree("Events", &Schema { fields: Vec::new() }, TreeOptions::default().with_auto_flush(1)).unwrap();
        let options = RecordBatchOptions::new().with_row_count(Some(ENTRIES));
        let empty = Arc::new(ArrowSchema::empty());
        tree.write(&RecordBatch::try_new_with_options(empty, Vec::new(), &options).unwrap()).unwrap();
        tree.finish().unwrap();
        file.finish().unwrap();
        let open = |budget| crate::open(path.to_str().unwrap()).with_memory_budget(budget).table().unwrap();
        let table = open(1 << 30);
        assert_eq!(table.tree().unwrap().clusters(), ENTRIES as u64);
        let mut manifest = Manifest::new();
        manifest.add(&table).unwrap();
        let json = manifest.to_json().unwrap();
        assert!(json.len() < ENTRIES * 24 && json.contains("[1048575,1,0]]"), "{} bytes", json.len());
        let error = manifest.add(&open(64 << 20)).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Limit, "{error}");
    }

    #[test]
    fn fields_are_chosen_without_a_file() {
        let columns: [ArrayRef; 2] = [Arc::new(Int64Array::from(vec![1])), Arc::new(StringArray::from(vec!["a"]))];
        let [number, text] = columns;
        let batch = RecordBatch::try_from_iter([("number", number), ("text", text)]).unwrap();
        let schema = Schema::from_arrow(&batch.schema()).unwrap().to_arrow(true);
        let types = |patterns: &[&str], binary| {
            let patterns: Vec<String> = patterns.iter().map(|&pattern| pattern.to_owned()).collect();
            let batch = choose(&schema, &patterns, binary).unwrap();
            assert_eq!(batch.num_rows(), 0);
            batch
                .schema()
                .fields()
                .iter()
                .map(|field| format!("{} {}", field.name(), field.data_type()))
                .collect::<Vec<_>>()
        };
        assert_eq!(types(&[], false), ["number Int64", "text LargeUtf8"]);
        assert_eq!(types(&["t*"], true), ["text LargeBinary"]);
        let error = choose(&schema, &["txt".to_owned()], false).unwrap_err();
        assert!(error.is_not_found() && error.to_string().contains("'text'"), "{error}");
    }

    #[test]
    fn an_identity_outlives_a_copy_and_no_change() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("a.root"), folder.path().join("b.root"));
        let identity = write(&one, 0).identity().unwrap();
        assert_eq!(identity.len(), 16);
        std::fs::copy(&one, &other).unwrap();
        let reopen = |path: &Path| crate::open(path.to_str().unwrap()).open().unwrap().identity().unwrap();
        assert_eq!((reopen(&one), reopen(&other)), (identity.clone(), identity.clone()));
        // The same values, written again.
        assert_ne!(write(&one, 0).identity().unwrap(), identity);
        let file = crate::update(&other).unwrap();
        let mut ntuple = file.append("Events", WriteOptions::default()).unwrap();
        ntuple.set_metadata("generator", "none").unwrap();
        ntuple.finish().unwrap();
        file.finish().unwrap();
        assert_ne!(reopen(&other), identity);
    }
}

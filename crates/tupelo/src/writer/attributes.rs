//! Attribute sets: values for ranges of entries, stored as ntuples of their own (format specification, "Linked Attribute
//! Sets"), and application metadata as one of them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{ArrayRef, RecordBatch, StringArray, StructArray, UInt64Array};
use tupelo_format::container::AnchorLinks;
use tupelo_pages::sink::{PageSink, Stored};
use tupelo_schema::schema::{Field, Kind, Primitive, Schema};

use super::WriteOptions;
use super::cluster_builder::ClusterBuilder;
use super::committer::{AnchorPlace, Committer, LinkedSet};
use crate::reader::{METADATA_SET, Ntuple, RANGE_LENGTH, RANGE_START, USER_DATA, metadata_schema};
use crate::{Error, Result};

/// One attribute set being written.
#[derive(Debug)]
pub(super) struct Set {
    committer: Committer,
    builder: ClusterBuilder,
    /// Whether there are changes since the set was last linked.
    is_changed: bool,
}

impl Set {
    pub(super) fn new(
        sink: Arc<dyn PageSink>,
        name: &str,
        schema: &Schema,
        existing: Option<&Ntuple>,
        options: &WriteOptions,
    ) -> Result<Self> {
        let options = options.clone().for_attributes();
        let (sink, place) = (sink.attribute_set(), AnchorPlace::AttributeSet(name.to_owned()));
        let (committer, builder) = match existing {
            None => Committer::create(sink, place, &set_schema(schema)?, options)?,
            Some(ntuple) => Committer::reopen(sink, place, ntuple, 1, options)?,
        };
        Ok(Self { committer, builder, is_changed: existing.is_none() })
    }

    fn append(&mut self, ranges: &[Range<u64>], values: &RecordBatch) -> Result<()> {
        let Self { committer, builder, is_changed } = self;
        let mut check = || {
            committer.check_usable()?;
            let batch = [set_batch(ranges, values)?];
            builder.validate(&batch).map(|()| batch)
        };
        let batch = check().map_err(|e| committer.context(e))?;
        *is_changed = true;
        builder.append(&batch, |cluster| committer.commit(cluster)).map_err(|e| committer.poison(e))
    }
}

impl LinkedSet for Set {
    fn write(
        &mut self,
        _: &Arc<dyn PageSink>,
        _: u64,
        old: &mut Vec<Stored>,
    ) -> Result<Option<(AnchorLinks, Vec<Stored>)>> {
        let Self { committer, builder, is_changed } = self;
        if !std::mem::take(is_changed) {
            return Ok(None);
        }
        builder.flush(|cluster| committer.commit(cluster)).map_err(|e| committer.poison(e))?;
        committer.check_usable()?;
        old.append(&mut committer.take_superseded());
        let links = committer.put_footer()?;
        Ok(Some((links, committer.take_superseded())))
    }

    fn end(&mut self) {
        self.committer.end();
    }
}

/// Writes one attribute set. It becomes visible with its ntuple and does not need to be finished.
#[derive(Debug)]
pub struct AttributeSetWriter {
    set: Arc<Mutex<Set>>,
}

impl AttributeSetWriter {
    pub(super) fn new(set: Arc<Mutex<Set>>) -> Self {
        Self { set }
    }

    /// Appends values for ranges of entries: entry `i` of `values` belongs to `ranges[i]`. The columns are the fields
    /// of the set's schema, in order. Ranges may overlap, be empty, and extend past the entries written so far.
    ///
    /// # Errors
    /// Invalid argument if the numbers of ranges and values differ, a range is reversed or columns do not match the
    /// schema: then nothing is written. Storage errors, after which the ntuple cannot be finished.
    pub fn write(&mut self, ranges: &[Range<u64>], values: &RecordBatch) -> Result<()> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner).append(ranges, values)
    }
}

/// The schema of a set's own ntuple.
fn set_schema(schema: &Schema) -> Result<Schema> {
    fn check(field: &Field) -> Result<()> {
        let forbidden = match field.kind {
            Kind::Streamer => "a streamer field",
            Kind::Cardinality { .. } => "a cardinality",
            _ if field.projected_from.is_some() => "a projected field",
            _ => return field.children().iter().try_for_each(check),
        };
        Err(Error::invalid_argument(format!("'{}' is {forbidden}, which attribute sets do not support", field.name)))
    }
    schema.fields.iter().try_for_each(check)?;
    let number = |name| Field::new(name, "std::uint64_t", Kind::Primitive(Primitive::UInt64));
    let data = Field::new(USER_DATA, "", Kind::Record(schema.fields.clone()));
    Ok(Schema { fields: vec![number(RANGE_START), number(RANGE_LENGTH), data] })
}

fn set_batch(ranges: &[Range<u64>], values: &RecordBatch) -> Result<RecordBatch> {
    if ranges.len() != values.num_rows() {
        return Err(Error::invalid_argument(format!(
            "expected one range per entry, found {} ranges for {} entries",
            ranges.len(),
            values.num_rows()
        )));
    }
    if let Some(range) = ranges.iter().find(|range| range.start > range.end) {
        return Err(Error::invalid_argument(format!("range {range:?} ends before it begins")));
    }
    let starts = UInt64Array::from_iter_values(ranges.iter().map(|range| range.start));
    let lengths = UInt64Array::from_iter_values(ranges.iter().map(|range| range.end - range.start));
    let data = match values.num_columns() {
        0 => StructArray::new_empty_fields(values.num_rows(), None),
        _ => StructArray::from(values.clone()),
    };
    let columns: [(&str, ArrayRef); 3] =
        [(RANGE_START, Arc::new(starts)), (RANGE_LENGTH, Arc::new(lengths)), (USER_DATA, Arc::new(data))];
    Ok(RecordBatch::try_from_iter(columns)?)
}

/// Pairs of key and value for the whole ntuple.
#[derive(Debug, Default)]
pub(super) struct Metadata {
    values: BTreeMap<String, String>,
    /// Whether values were set or removed since the last write.
    is_changed: bool,
    /// The number of entries at the last write.
    written_for: Option<u64>,
    /// Whether a set of this name has another schema, or entries that are not metadata: it is not changed then.
    is_foreign: bool,
}

impl Metadata {
    /// The metadata of an existing ntuple.
    pub(super) fn existing(ntuple: &Ntuple) -> Result<Self> {
        let exists = ntuple.attribute_sets().any(|name| name == METADATA_SET);
        let own = ntuple.own_metadata()?;
        let is_foreign = own.is_none();
        let written_for = (exists && !is_foreign).then(|| ntuple.entries());
        Ok(Self { values: own.unwrap_or_default(), is_changed: false, written_for, is_foreign })
    }

    pub(super) fn values(&self) -> &BTreeMap<String, String> {
        &self.values
    }

    /// Whether the set of the name holds metadata, or will.
    pub(super) fn has_set(&self) -> bool {
        !self.values.is_empty() || self.written_for.is_some()
    }

    /// Sets or removes a value.
    pub(super) fn set(&mut self, key: &str, value: Option<&str>) -> Result<()> {
        if self.is_foreign {
            return Err(Error::invalid_argument(format!(
                "the ntuple has an attribute set '{METADATA_SET}' of another program, which is not a list of key-value \
                 pairs for all entries; use another name for the attribute set"
            )));
        }
        match value {
            Some(value) => drop(self.values.insert(key.to_owned(), value.to_owned())),
            None => drop(self.values.remove(key)),
        }
        self.is_changed = true;
        Ok(())
    }
}

/// The set is rewritten as a whole after each change: it is small, and entries of an attribute set cannot be removed.
impl LinkedSet for Metadata {
    fn write(
        &mut self,
        sink: &Arc<dyn PageSink>,
        entries: u64,
        _: &mut Vec<Stored>,
    ) -> Result<Option<(AnchorLinks, Vec<Stored>)>> {
        let is_new = std::mem::take(&mut self.is_changed) || self.written_for != Some(entries);
        // If all pairs of a file were removed, an empty set is written.
        if !is_new || self.values.is_empty() && self.written_for.is_none() {
            return Ok(None);
        }
        self.written_for = Some(entries);
        let keys: ArrayRef = Arc::new(StringArray::from_iter_values(self.values.keys()));
        let values: ArrayRef = Arc::new(StringArray::from_iter_values(self.values.values()));
        let pairs = RecordBatch::try_from_iter([("key", keys), ("value", values)])?;
        let schema = metadata_schema();
        let sink = Arc::clone(sink).attribute_set();
        let place = AnchorPlace::AttributeSet(METADATA_SET.to_owned());
        let options = WriteOptions::default().for_attributes();
        let (mut committer, mut builder) = Committer::create(sink, place, &set_schema(&schema)?, options)?;
        let ranges = vec![0..entries; pairs.num_rows()];
        builder.append(&[set_batch(&ranges, &pairs)?], |cluster| committer.commit(cluster))?;
        builder.flush(|cluster| committer.commit(cluster))?;
        // The next state uses none of these records.
        let mut stored = committer.stored_pages();
        let links = committer.put_footer()?;
        stored.extend(committer.stored_envelopes());
        Ok(Some((links, stored)))
    }

    fn end(&mut self) {}
}

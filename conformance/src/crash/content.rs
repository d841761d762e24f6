//! The content of an ntuple, to be compared; and made-up entries with known values.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_array::builder::{Float32Builder, LargeListBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Float64Array, Int32Array, Int64Array, LargeStringArray, RecordBatch};
use arrow_schema::{DataType, Field, FieldRef, Schema as ArrowSchema};
use arrow_select::concat::concat;
use tupelo::schema::Schema;
use tupelo::{Ntuple, Result};

/// Name of the field that [`events`] adds on request.
pub const LATE: &str = "w";

/// Everything that an ntuple holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Content {
    /// Top-level fields by name.
    pub columns: Vec<(String, ArrayRef)>,
    /// Attribute sets by name: entry ranges, and the columns of their attributes.
    pub sets: BTreeMap<String, (Vec<Range<u64>>, Vec<ArrayRef>)>,
    /// Pairs of text.
    pub metadata: BTreeMap<String, String>,
}

impl Content {
    /// The content of entries without attributes or metadata.
    pub fn of(batch: &RecordBatch) -> Self {
        let schema = batch.schema();
        let names = schema.fields().iter().map(|field| field.name().clone());
        let columns = names.zip(batch.columns().iter().cloned()).collect();
        Self { columns, sets: BTreeMap::new(), metadata: BTreeMap::new() }
    }

    /// All of an ntuple.
    ///
    /// # Errors
    /// Those of reading.
    pub fn read(ntuple: &Ntuple) -> Result<Self> {
        // By their names, as reading all leaves out what projected fields show.
        let names: Vec<_> = ntuple.schema().fields.iter().map(|field| &field.name).collect();
        let mut content = Self::of(&ntuple.read(names)?.to_batch()?);
        content.metadata = ntuple.metadata()?;
        for name in ntuple.attribute_sets().filter(|name| *name != tupelo::reader::METADATA_SET) {
            let set = ntuple.attributes(name)?;
            let _ = content.sets.insert(name.to_owned(), (set.ranges().to_vec(), set.values().columns().to_vec()));
        }
        Ok(content)
    }

    /// Goes on with the first entries once more.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn repeat(&mut self, entries: usize) {
        for (_, column) in &mut self.columns {
            *column = concat(&[&**column, &column.slice(0, entries)]).expect("the same type twice");
        }
    }

    /// How many entries there are.
    pub fn entries(&self) -> usize {
        self.columns.first().map_or(0, |(_, column)| column.len())
    }

    /// The sums of all top-level fields of type `std::int64_t` and `double`, by name.
    pub fn sums(&self) -> BTreeMap<&str, f64> {
        let sum = |column: &ArrayRef| match column.data_type() {
            DataType::Int64 => Some(column.as_primitive::<Int64Type>().values().iter().map(|&v| v as f64).sum()),
            DataType::Float64 => Some(column.as_primitive::<Float64Type>().values().iter().sum()),
            _ => None,
        };
        self.columns.iter().filter_map(|(name, column)| Some((name.as_str(), sum(column)?))).collect()
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| name.as_str()).collect();
        write!(f, "{} entries of {names:?}", self.entries())?;
        if !self.sets.is_empty() {
            let sets: Vec<_> = self.sets.iter().map(|(name, (ranges, _))| (name, ranges)).collect();
            write!(f, " with {sets:?}")?;
        }
        if !self.metadata.is_empty() {
            write!(f, " and {:?}", self.metadata)?;
        }
        write!(f, " (sums {:?})", self.sums())
    }
}

/// The entries of a range: `id` (`std::int64_t`), `x` (`double`), `tag` (`std::string`), `v` (`std::vector<float>`),
/// and with `late` the field [`LATE`] (`std::int32_t`), which is 0 before the entry of that number.
pub fn events(range: Range<u64>, salt: u64, late: Option<u64>) -> RecordBatch {
    let id: Int64Array = range.clone().map(|e| e as i64).collect();
    let x: Float64Array = range.clone().map(|e| ((e * 7919 + salt * 31) % 1000) as f64 / 8.0).collect();
    let tag: LargeStringArray =
        range.clone().map(|e| Some("tupelo"[..(e % 6) as usize].to_owned() + &e.to_string())).collect();
    let mut v = LargeListBuilder::new(Float32Builder::new()).with_field(item());
    for e in range.clone() {
        (0..e % 4).for_each(|k| v.values().append_value((e + k * salt) as f32 / 2.0));
        v.append(true);
    }
    let mut columns: Vec<(&str, ArrayRef)> =
        vec![("id", Arc::new(id)), ("x", Arc::new(x)), ("tag", Arc::new(tag)), ("v", Arc::new(v.finish()))];
    if let Some(start) = late {
        let w: Int32Array = range.map(|e| if e < start { 0 } else { (e * 3 + 1) as i32 }).collect();
        columns.push((LATE, Arc::new(w)));
    }
    named(columns)
}

/// The items of a list of floats, as a reader describes them.
fn item() -> FieldRef {
    static ITEM: OnceLock<FieldRef> = OnceLock::new();
    let read = || {
        let list = DataType::new_large_list(DataType::Float32, false);
        let schema = ArrowSchema::new(vec![Field::new("v", list, false)]);
        let read = Schema::from_arrow(&schema).expect("a schema").to_arrow(true);
        match read.field(0).data_type() {
            DataType::LargeList(item) => item.clone(),
            other => panic!("a list became {other}"),
        }
    };
    ITEM.get_or_init(read).clone()
}

/// A batch of columns.
///
/// # Panics
/// If they are not equally long.
pub fn named(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let field = |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), array.null_count() > 0);
    let schema = ArrowSchema::new(columns.iter().map(field).collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|(_, array)| array).collect()).expect("a batch")
}

/// The schema of [`events`] without or with the late field.
///
/// # Panics
/// If it is none.
pub fn schema(late: bool) -> Schema {
    Schema::from_arrow(&events(0..0, 0, late.then_some(0)).schema()).expect("a schema")
}

/// The schema of the late field alone.
///
/// # Panics
/// If it is none.
pub fn late_schema() -> Schema {
    let batch = events(0..0, 0, Some(0)).project(&[4]).expect("the last column");
    Schema::from_arrow(&batch.schema()).expect("a schema")
}

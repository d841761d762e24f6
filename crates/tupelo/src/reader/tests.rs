//! Reading from a source that is not an ntuple: reads, cuts, expressions and batches use nothing but its trait.

mod chain;
mod evolution;
mod rules;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::{Float32Builder, LargeListBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt64Type};
use arrow_array::{ArrayRef, Int32Array, RecordBatch, UInt64Array};
use arrow_cast::cast;
use arrow_schema::{DataType, Field as ArrowField, Schema as ArrowSchema};
use arrow_select::take::take;
use tupelo_format::container::FileLayout;
use tupelo_format::open::PRE_RELEASE_CLASS;
use tupelo_pages::plan::EntrySet;
use tupelo_schema::evolution::SourceSchema;
use tupelo_schema::schema::{Field, Schema, tighten};

use super::explain::Explanation;
use super::read::Read;
use super::sources::{Cost, DecodeOptions, EntrySource, Sidecar};
use crate::{Error, ErrorKind, File, Result};

const ENTRIES: u64 = 1000;

/// Entries in memory.
#[derive(Debug)]
struct Arrays {
    schema: SourceSchema,
    columns: RecordBatch,
}

impl Arrays {
    fn new() -> Arc<Self> {
        let mut lists = LargeListBuilder::new(Float32Builder::new());
        for entry in 0..ENTRIES {
            (0..entry % 3).for_each(|item| lists.values().append_value((entry + item) as f32));
            lists.append(true);
        }
        let x: ArrayRef = Arc::new(Int32Array::from_iter_values(0..ENTRIES as i32));
        let columns = RecordBatch::try_from_iter([("x", x), ("v", Arc::new(lists.finish()))]).unwrap();
        let schema = Schema::from_arrow(&tighten(&columns)).unwrap();
        let schema = SourceSchema::new(schema, true, HashMap::new());
        let promised = Arc::new(schema.to_arrow(schema.schema()));
        let cast = |(field, column): (&Arc<ArrowField>, &ArrayRef)| cast(column, field.data_type()).unwrap();
        let arrays = promised.fields().iter().zip(columns.columns()).map(cast).collect();
        Arc::new(Self { schema, columns: RecordBatch::try_new(promised, arrays).unwrap() })
    }

    fn read(self: &Arc<Self>, patterns: &[&str]) -> Read {
        Read::new(Arc::clone(self) as Arc<dyn EntrySource>, self.schema.select(patterns).unwrap())
    }
}

impl EntrySource for Arrays {
    fn schema(&self) -> &SourceSchema {
        &self.schema
    }

    fn entries(&self) -> u64 {
        ENTRIES
    }

    fn clusters(&self) -> u64 {
        1
    }

    fn file_name(&self) -> String {
        "arrays".to_owned()
    }

    fn path(&self) -> &str {
        "arrays"
    }

    fn context(&self, error: Error) -> Error {
        error.within("arrays")
    }

    fn identity(&self) -> Result<String> {
        Ok("arrays".to_owned())
    }

    fn decode(&self, fields: &[Field], entries: &EntrySet, _: DecodeOptions<'_>) -> Result<Vec<ArrayRef>> {
        let places = UInt64Array::from_iter_values(entries.iter());
        let columns = fields.iter().map(|field| self.columns.column_by_name(&field.name).unwrap());
        columns.map(|column| Ok(take(column, &places, None)?)).collect()
    }

    fn cost(&self, fields: &[&Field], entries: &Range<u64>) -> Result<Cost> {
        Ok(Cost { entries: (entries.end - entries.start).min(300), bytes_per_entry: 8.0 * fields.len() as f64 })
    }

    fn batch_end(&self, _: &[&Field], window: &Range<u64>, _: u64, place: &dyn Fn(u64) -> u64) -> Result<Option<u64>> {
        Ok(Some(place(window.end - 1)))
    }

    fn explain(&self, _: &[Field], _: &[Field], _: &EntrySet) -> Result<Explanation> {
        Err(Error::unsupported("arrays have no pages"))
    }

    fn sidecar(&self) -> &dyn Sidecar {
        self
    }
}

impl Sidecar for Arrays {
    fn description(&self) -> &str {
        "numbers"
    }
}

#[test]
fn any_source_is_read_by_entries() {
    let arrays = Arrays::new();
    assert_eq!(arrays.read(&[]).to_batch().unwrap().columns(), arrays.columns.columns());
    let some = arrays.read(&["x"]).entries(290..310).with_entry_numbers("n").to_batch().unwrap();
    assert_eq!(some.column(0).as_primitive::<Int32Type>().values(), &(290..310).collect::<Vec<i32>>()[..]);
    assert_eq!(some.column(1).as_primitive::<UInt64Type>().values(), &(290..310).collect::<Vec<u64>>()[..]);
    let taken = arrays.read(&["x"]).take(&[999, 0, 300, 299, 0]).unwrap();
    assert_eq!(taken.column(0).as_primitive::<Int32Type>().values(), &[999, 0, 300, 299, 0]);
}

#[test]
fn any_source_has_cuts_and_expressions() {
    let read = arrays_where("len(v) == 2 and x > 900").with_computed("s", &"sum(v) - 2 * x".parse().unwrap()).unwrap();
    let batch = read.to_batch().unwrap();
    let expected: Vec<i32> = (901..1000).filter(|x| x % 3 == 2).collect();
    assert_eq!(batch.column_by_name("x").unwrap().as_primitive::<Int32Type>().values(), &expected[..]);
    let sums = cast(batch.column_by_name("s").unwrap(), &DataType::Int32).unwrap();
    assert!(sums.as_primitive::<Int32Type>().values().iter().all(|&sum| sum == 1), "{sums:?}");
    let counts: Vec<usize> = read.batches(100).unwrap().map(|batch| batch.unwrap().num_rows()).collect();
    assert_eq!((counts.len(), counts.iter().sum::<usize>()), (10, expected.len()));
    let error = Arrays::new().read(&[]).with_where(&"y > 1".parse().unwrap()).unwrap_err();
    assert!(error.kind() == ErrorKind::NotFound && error.to_string().starts_with("arrays: "), "{error}");
}

fn arrays_where(condition: &str) -> Read {
    Arrays::new().read(&["x", "v"]).with_where(&condition.parse().unwrap()).unwrap()
}

#[test]
fn any_source_is_read_as_another_schema() {
    let wanted = ArrowSchema::new(vec![ArrowField::new("x", DataType::Int64, false)]);
    let read = Arrays::new().read(&[]).with_schema(&Schema::from_arrow(&wanted).unwrap()).unwrap();
    let batch = read.entries(..3).to_batch().unwrap();
    assert_eq!(batch.column(0).as_primitive::<Int64Type>().values(), &[0, 1, 2]);
}

/// A ROOT file that holds nothing but an object 'n'.
fn file_of(class_name: &str, payload: &[u8]) -> File {
    let (mut layout, mut file) = FileLayout::create("f.root", 0, [0; 16]).unwrap();
    layout.add("n", class_name, "", payload.to_vec()).unwrap();
    let tail = layout.finish(file.len() as u64).unwrap();
    file.extend_from_slice(&tail.append);
    for (at, bytes) in &tail.patches {
        file[*at as usize..][..bytes.len()].copy_from_slice(bytes);
    }
    File::of_bytes("f.root", file).unwrap()
}

#[test]
fn ntuples_from_before_format_1_are_refused_with_their_version() {
    let stated = [&[0x40, 0, 0, 0x42, 0, 4, 0, 0, 0, 2, 0, 1, 0, 3][..], &[0; 64]].concat();
    // Of ROOT 6.28: a class without a version, and then the checksum of its layout.
    let unstated =
        [&[0x40, 0, 0, 0x36, 0, 0, 0x65, 0x5b, 0x8f, 0x56, 0, 0, 0, 0, 0, 0, 0, 0x30][..], &[0; 40]].concat();
    for (payload, version) in [
        (stated, "it has the pre-release format 0.2.1.3;"),
        (unstated, "it has a pre-release format without a version"),
    ] {
        let file = file_of(PRE_RELEASE_CLASS, &payload);
        let errors = [
            file.ntuple(Some("n")).unwrap_err(),
            file.ntuple(None).unwrap_err(),
            file.table(Some("n")).unwrap_err(),
            file.table(None).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
            assert!(error.to_string().contains("f.root: ntuple 'n': "), "{error}");
            assert!(error.to_string().contains(version), "{error}");
        }
        // Regression: the anchor was copied without the ntuple.
        let sink = tupelo_storage::MemorySink::create(&tupelo_storage::MemoryFile::new());
        let out = crate::writer::FileWriter::create_in(Box::new(sink), "out.root").unwrap();
        let error = out.copy_object(&file, "n", crate::Compression::DEFAULT).unwrap_err();
        assert!(error.kind() == ErrorKind::Unsupported && error.to_string().contains("format 1.0"), "{error}");
        // Regression: it was called intact.
        let report = crate::ops::verify::verify(&file, None, &mut |_| {}).unwrap();
        assert_eq!((report.num_damages, report.num_unsupported, report.objects), (0, 1, 1));
        assert!(report.unsupported[0].what.contains(version), "{:?}", report.unsupported);
    }
    let cut = file_of(PRE_RELEASE_CLASS, &[0x40, 0, 0, 0x42, 0, 4, 0]).table(None).unwrap_err();
    assert_eq!(cut.kind(), ErrorKind::Corrupt, "{cut}");
}

/// Of uncompressed pages, single entries take only their own bytes where checksums are not compared.
#[test]
fn single_entries_read_only_their_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("takes.root");
    let columns = [("x", Arc::new(Int32Array::from_iter_values(0..100_000)) as ArrayRef)];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = crate::create(&path).unwrap();
    let options = crate::WriteOptions::default().with_compression(crate::Compression::NONE);
    let mut ntuple = file.ntuple("events", &Schema::from_arrow(&tighten(&batch)).unwrap(), options).unwrap();
    ntuple.write(&batch).unwrap();
    ntuple.finish().unwrap();
    file.finish().unwrap();
    let entries = [99_999, 5, 70_000, 5];
    for (verifies, most) in [(true, 500_000), (false, 100)] {
        let open = crate::open(path.to_str().unwrap()).with_metrics(true).with_page_checksums(verifies);
        let ntuple = open.open().unwrap();
        let read = ntuple.read(["x"]).unwrap();
        // The page list is read now.
        read.take(&[0]).unwrap();
        let before = ntuple.metrics().unwrap().read_bytes;
        let taken = read.take(&entries).unwrap();
        assert_eq!(taken.column(0).as_primitive::<Int32Type>().values(), &[99_999, 5, 70_000, 5]);
        let bytes = ntuple.metrics().unwrap().read_bytes - before;
        assert!(bytes <= most && bytes >= 12, "{bytes} bytes were read");
        assert_eq!(read.to_batch().unwrap().column(0).as_primitive::<Int32Type>().len(), 100_000);
    }
}

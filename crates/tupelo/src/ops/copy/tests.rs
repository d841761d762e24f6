//! Clusters are copied with their pages as they are, in whichever codec and encodings, and from whichever entry on.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Float32Array, LargeListArray, RecordBatch, StructArray};
use arrow_buffer::OffsetBuffer;
use arrow_select::concat::concat_batches;
use tupelo_format::compression::Compression;
use tupelo_storage::objects::ObjectMemory;
use tupelo_storage::{MemoryFile, MemorySink};

use tupelo_format::descriptor::ColumnId;
use tupelo_schema::schema::{Field, Kind, Primitive, Schema};

use super::*;
use crate::dataset::FieldPolicy;
use crate::reader::{File, Table};
use crate::writer::tests::{nested, nested_schema, open};
use crate::writer::{Mapping, ObjectOptions};

const ENTRIES: i32 = 1000;

/// One cluster of entries. The fields called `late_…` are added after `before` of them.
fn part(options: WriteOptions, before: i32) -> MemoryFile {
    let late = |batch: &RecordBatch| -> Vec<(String, ArrayRef)> {
        let fields = batch.schema().fields().iter().map(|field| format!("late_{}", field.name())).collect::<Vec<_>>();
        fields.into_iter().zip(batch.columns().iter().cloned()).collect()
    };
    let mut late_schema = nested_schema();
    late_schema.fields.iter_mut().for_each(|field| field.name = format!("late_{}", field.name));
    let target = MemoryFile::new();
    let file = FileWriter::create_in(Box::new(MemorySink::create(&target)), "x.root").unwrap();
    let mut ntuple = file.ntuple("events", &nested_schema(), options).unwrap();
    if before > 0 {
        ntuple.write(&nested(0..before, false)).unwrap();
    }
    ntuple.add_fields(&late_schema).unwrap();
    let batch = nested(before..ENTRIES, false);
    let names = batch.schema().fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
    let columns = names.into_iter().zip(batch.columns().iter().cloned()).chain(late(&batch));
    ntuple.write(&RecordBatch::try_from_iter(columns).unwrap()).unwrap();
    assert_eq!(ntuple.finish().unwrap().clusters, 1);
    file.finish().unwrap();
    target
}

fn all(table: &Table) -> RecordBatch {
    table.read_all().to_batch().unwrap()
}

/// The stored pages of the parts come one after the other in the copy: in a file, and in objects of every mapping.
#[test]
fn pages_stay_in_other_encodings_and_before_late_fields() {
    let options = || WriteOptions::default().with_page_bytes(512);
    let none = Compression::from_setting(0).unwrap();
    let parts = [
        part(options(), 0),
        part(options().with_compression(none), 0),
        part(options(), 1),
        part(options().with_compression(none), ENTRIES / 2),
        part(options(), ENTRIES - 1),
    ];
    let count = parts.len();
    let tables = parts.map(|file| Table::from(open(&file)));
    let batches: Vec<RecordBatch> = tables.iter().map(all).collect();
    let chain = Table::chain(count, 1, FieldPolicy::Common, move |number| Ok(Some(tables[number].clone()))).unwrap();
    let copy_to = |file: &FileWriter| {
        let copied = copy(chain.read_all(), file, "events", options(), Pages::Keep, &mut |_| ControlFlow::Continue(()));
        // Decoded entries would be in one cluster.
        assert_eq!(copied.unwrap().unwrap().written.clusters, count as u64);
    };
    let check = |ntuple: Ntuple, place: &str| {
        let copied = all(&Table::from(ntuple));
        let expected = concat_batches(&copied.schema(), batches.iter()).unwrap();
        assert_eq!(copied, expected, "{place}");
    };
    let target = MemoryFile::new();
    let file = FileWriter::create_in(Box::new(MemorySink::create(&target)), "x.root").unwrap();
    copy_to(&file);
    file.finish().unwrap();
    check(open(&target), "file");
    for mapping in ["page", "cage:700", "page-group", "cluster"] {
        let store = ObjectMemory::new();
        let how = ObjectOptions::default().with_mapping(mapping.parse::<Mapping>().unwrap());
        let file = FileWriter::create_objects_in(Arc::new(store.clone()), "events", "ntpl+memory:events", how).unwrap();
        copy_to(&file);
        file.finish().unwrap();
        let file = File::of_objects(Arc::new(store), "events", "ntpl+memory:events").unwrap();
        check(file.ntuple(None).unwrap(), mapping);
    }
}

/// Copies of stored pages notice what decoding notices. A cluster that was decoded in between changes nothing.
#[test]
fn columns_go_on_where_they_ended() {
    let [first, second] = [0, 1].map(ColumnId::from);
    let before = |second_start: u64| {
        let mut continuity = Continuity::default();
        let ranges = [(0, first, 0..10), (0, second, 0..3), (1, second, second_start..5), (1, first, 10..20)];
        ranges.into_iter().try_for_each(|(number, column, elements)| continuity.go_on(number, column, elements))
    };
    assert!(before(3).is_ok());
    assert!(Continuity::default().go_on(3, first, 7..9).is_ok());
    let error = before(4).unwrap_err().to_string();
    assert!(error.contains("begins at element 4 in cluster 1, expected element 3"), "{error}");
    let mut continuity = Continuity::default();
    assert!(continuity.go_on(0, first, 0..10).is_ok() && continuity.go_on(2, first, 15..20).is_ok());
}

/// ROOT up to 6.34 spells types as its dictionaries do, later versions by the rules of the format.
#[test]
fn types_in_older_spellings_are_the_same() {
    let part = |number: &str, class: &str| {
        let x = Field::new("x", number, Kind::Primitive(Primitive::Float));
        let item = Field::new("_0", class, Kind::Record(vec![x.clone()]));
        let list = Field::new("list", format!("std::vector<{class}>"), Kind::Collection(Box::new(item)));
        let target = MemoryFile::new();
        let file = FileWriter::create_in(Box::new(MemorySink::create(&target)), "x.root").unwrap();
        let mut ntuple = file.ntuple("events", &Schema { fields: vec![x, list] }, WriteOptions::default()).unwrap();
        let numbers = || Arc::new(Float32Array::from(vec![1.5, -2.0])) as ArrayRef;
        let items = StructArray::try_from(vec![("x", numbers())]).unwrap();
        let member = Arc::new(arrow_schema::Field::new("_0", items.data_type().clone(), false));
        let list = LargeListArray::new(member, OffsetBuffer::new(vec![0, 0, 2].into()), Arc::new(items), None);
        ntuple.write(&RecordBatch::try_from_iter([("x", numbers()), ("list", Arc::new(list))]).unwrap()).unwrap();
        ntuple.finish().unwrap();
        file.finish().unwrap();
        let ntuple = open(&target);
        assert_eq!(ntuple.schema().fields[1].type_name, format!("std::vector<{class}>"));
        Table::from(ntuple)
    };
    let tables =
        [part("float", "Box<std::uint32_t,std::vector<float>>"), part("Float_t", "Box<UInt_t,vector<Float_t> >")];
    for order in [[0, 1], [1, 0]] {
        for policy in [FieldPolicy::Common, FieldPolicy::Union, FieldPolicy::Defaults] {
            let tables = order.map(|number: usize| tables[number].clone());
            let chain = Table::chain(2, 1, policy, move |number| Ok(Some(tables[number].clone()))).unwrap();
            let target = MemoryFile::new();
            let file = FileWriter::create_in(Box::new(MemorySink::create(&target)), "x.root").unwrap();
            let options = WriteOptions::default();
            let copied =
                copy(chain.read_all(), &file, "events", options, Pages::Keep, &mut |_| ControlFlow::Continue(()));
            // Decoded entries would be in one cluster.
            assert_eq!(copied.unwrap().unwrap().written.clusters, 2);
            file.finish().unwrap();
            let copied = all(&Table::from(open(&target)));
            let numbers = Float32Array::from(vec![1.5, -2.0, 1.5, -2.0]);
            assert_eq!(copied.column(0).as_primitive(), &numbers);
            let list = copied.column(1).as_list::<i64>();
            assert_eq!(list.value_offsets(), [0, 0, 2, 2, 4]);
            assert_eq!(list.values().as_struct().column(0).as_primitive(), &numbers);
        }
    }
}

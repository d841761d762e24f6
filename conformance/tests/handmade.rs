//! Legal files that ROOT 6.40 does not write, made by hand from records.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int32Type};
use arrow_array::{Array, ArrayRef, Float32Array, Int32Array, LargeListArray, RecordBatch, StructArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::Field as ArrowField;
use bytes::Bytes;
use conformance::memory;
use conformance::model::{Column, Group, Model, Page, Stage};
use tupelo::ops::verify::verify;
use tupelo::schema::Schema;
use tupelo::{Compression, ErrorKind, WriteOptions};
use tupelo_format::compression::Algorithm;
use tupelo_format::envelope::{ColumnRecord, EnvelopeType, FeatureFlags, SchemaRecords, role};
use tupelo_format::locator::Locator;
use tupelo_format::wire::{Buffer, Cursor};

const ALL: [f32; 5] = [0.0, 0.5, 1.0, 1.5, 2.0];

/// Two clusters, 3 and 2 entries, of `i` = 0.. and `x` = i / 2, uncompressed.
fn numbers() -> Model {
    let batches: Vec<RecordBatch> = [0..3, 3..5]
        .into_iter()
        .map(|range| {
            let i: ArrayRef = Arc::new(Int32Array::from_iter_values(range.clone()));
            let x: ArrayRef = Arc::new(Float32Array::from_iter_values(range.map(|i| i as f32 / 2.0)));
            RecordBatch::try_from_iter([("i", i), ("x", x)]).unwrap()
        })
        .collect();
    load(&batches)
}

fn load(batches: &[RecordBatch]) -> Model {
    load_compressed(batches, Compression::NONE)
}

fn load_compressed(batches: &[RecordBatch], compression: Compression) -> Model {
    let schema = Schema::from_arrow(&batches[0].schema()).unwrap();
    let options = WriteOptions::default().with_compression(compression);
    Model::load(&memory::write(&schema, batches, options, true).unwrap()).unwrap()
}

fn floats(bytes: &Bytes, field: &str) -> Vec<f32> {
    let batch = memory::ntuple(bytes).unwrap().read([field]).unwrap().to_batch().unwrap();
    batch.column(0).as_primitive::<Float32Type>().values().to_vec()
}

fn page(values: &[f32]) -> Page {
    let stored: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Page { elements: values.len() as u32, stored, checksum: Some(None), locator: None, digest: None }
}

/// Moves `x` to the schema extension.
fn defer_x(model: &mut Model, first_element: i64) {
    let field = model.header.schema.fields.remove(1);
    let mut column = model.header.schema.columns.remove(1);
    column.first_element = Some(first_element);
    model.footer.extension = SchemaRecords { fields: vec![field], columns: vec![column], ..SchemaRecords::default() };
}

#[test]
fn a_field_added_in_the_middle_of_a_cluster_reads_as_zero_before() {
    let mut model = numbers();
    defer_x(&mut model, 2);
    *model.column(0, 1) = Column { pages: vec![page(&[1.0])], first_element: Some(2), compression: 0 };
    let bytes = model.build().unwrap();
    let expected = [0.0, 0.0, 1.0, 1.5, 2.0];
    assert_eq!(floats(&bytes, "x"), expected);
    let ntuple = memory::ntuple(&bytes).unwrap();
    for (start, end) in [(0, 1), (1, 3), (2, 4), (4, 5)] {
        let batch = ntuple.read(["x"]).unwrap().entries(start..end).to_batch().unwrap();
        let values = batch.column(0).as_primitive::<Float32Type>().values().to_vec();
        assert_eq!(values, expected[start as usize..end as usize]);
    }
}

#[test]
fn a_page_list_that_is_older_than_a_column_does_not_list_it() {
    let mut model = numbers();
    defer_x(&mut model, 3);
    let second = model.groups[0].clusters.remove(1);
    model.groups.push(Group { clusters: vec![second] });
    model.groups[0].clusters[0].columns.remove(1);
    assert_eq!(floats(&model.build().unwrap(), "x"), [0.0, 0.0, 0.0, 1.5, 2.0]);
}

/// Regression: such a column read as zeros.
#[test]
fn a_column_that_is_missing_but_not_deferred_is_an_error() {
    let late = |first_element: Option<i64>| {
        let mut model = numbers();
        defer_x(&mut model, 0);
        model.footer.extension.columns[0].first_element = first_element;
        let second = model.groups[0].clusters.remove(1);
        model.groups.push(Group { clusters: vec![second] });
        model.groups[0].clusters[0].columns.remove(1);
        let ntuple = memory::ntuple(&model.build().unwrap()).unwrap();
        let batch = ntuple.read(["x"]).unwrap().to_batch();
        batch.map(|batch| batch.column(0).as_primitive::<Float32Type>().values().to_vec())
    };
    assert_eq!(late(Some(3)).unwrap(), [0.0, 0.0, 0.0, 1.5, 2.0]);
    let why = [
        (None, "column 1 is not deferred"),
        (Some(0), "column 1 is not deferred"),
        (Some(2), "column 1 begins at element 2"),
        (Some(-3), "missing elements of column 1 are not zero"),
        (Some(i64::MIN), "column 1 is not deferred"),
    ];
    for (first_element, why) in why {
        let error = late(first_element).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        let expected = format!("field 'x': cluster 0 lacks the field, but {why}");
        assert!(error.to_string().ends_with(&expected), "{error}");
    }
}

/// The sign of the first element says "suppressed before": no zeros are made up then.
#[test]
fn a_suppressed_column_with_pages_has_no_zeros_in_front() {
    let read = |first_element: i64| {
        let mut model = numbers();
        defer_x(&mut model, first_element);
        *model.column(0, 1) = Column { pages: vec![page(&[1.0])], first_element: Some(2), compression: 0 };
        memory::ntuple(&model.build().unwrap()).unwrap().read(["x"]).unwrap().to_batch()
    };
    assert!(read(2).is_ok());
    let error = read(-2).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let what = "field 'x': column 1 begins at element 2, but cluster 0 stores it and lacks 2 elements, although \
                suppressed columns have no zeros";
    assert!(error.to_string().ends_with(what), "{error}");
}

#[test]
fn a_representation_that_is_deferred_and_suppressed_takes_over_later() {
    let mut model = numbers();
    // Real16 from the second cluster on; the sign marks "suppressed until then".
    let half =
        ColumnRecord { column_type: 0x0b, bits: 16, field: 1, representation: 1, first_element: Some(-3), range: None };
    model.footer.extension.columns.push(half);
    let suppressed = Column { pages: Vec::new(), first_element: None, compression: 0 };
    model.groups[0].clusters[0].columns.push(suppressed.clone());
    *model.column(1, 1) = suppressed;
    let halves =
        Page { elements: 2, stored: vec![0x00, 0x3e, 0x00, 0x40], checksum: Some(None), locator: None, digest: None };
    let half_column = Column { pages: vec![halves], first_element: Some(3), compression: 0 };
    model.groups[0].clusters[1].columns.push(half_column);
    assert_eq!(floats(&model.build().unwrap(), "x"), ALL);
}

#[test]
fn columns_below_collections_may_be_deferred_where_the_feature_flag_says_so() {
    let batch = |lengths: &[usize]| {
        let items = lengths.iter().sum::<usize>();
        let values: ArrayRef = Arc::new(Float32Array::from_iter_values((0..items).map(|i| 1.0 + i as f32)));
        let member = |name: &str| Arc::new(ArrowField::new(name, values.data_type().clone(), false));
        let structs = StructArray::from(vec![(member("a"), values.clone()), (member("b"), values.clone())]);
        let item = Arc::new(ArrowField::new("item", structs.data_type().clone(), false));
        let offsets = OffsetBuffer::from_lengths(lengths.iter().copied());
        let list = LargeListArray::new(item, offsets, Arc::new(structs), None);
        RecordBatch::try_from_iter([("v", Arc::new(list) as ArrayRef)]).unwrap()
    };
    let mut model = load(&[batch(&[2, 1]), batch(&[0, 3, 1])]);
    let mut word = Buffer::new();
    word.u64_le(1);
    model.header.feature_flags = FeatureFlags::read(&mut Cursor::new(word.as_slice(), 0)).unwrap();
    // Columns: index, a, b. The first cluster's three items and the first two of the second have no `b`.
    model.header.schema.columns[2].first_element = Some(5);
    *model.column(0, 2) = Column { pages: Vec::new(), first_element: Some(3), compression: 0 };
    *model.column(1, 2) = Column { pages: vec![page(&[7.0, 8.0])], first_element: Some(5), compression: 0 };
    let bytes = model.build().unwrap();
    let ntuple = memory::ntuple(&bytes).unwrap();
    let members = |entries: std::ops::Range<u64>| {
        let batch = ntuple.read(["v.b"]).unwrap().entries(entries).to_batch().unwrap();
        let list = batch.column(0).as_list::<i64>().clone();
        list.values().as_struct().column(0).as_primitive::<Float32Type>().values().to_vec()
    };
    assert_eq!(members(0..5), [0.0, 0.0, 0.0, 0.0, 0.0, 7.0, 8.0]);
    assert_eq!(members(1..2), [0.0]);
    assert_eq!(members(3..4), [0.0, 0.0, 7.0]);
    assert_eq!(members(4..5), [8.0]);
}

#[test]
fn an_unknown_column_type_drops_its_top_level_field_and_no_other() {
    let mut model = numbers();
    model.header.schema.columns[1].column_type = 0x99;
    let ntuple = memory::ntuple(&model.build().unwrap()).unwrap();
    assert_eq!(ntuple.warnings(), ["field 'x' is left out: column type 0x99 is unknown"]);
    let batch = ntuple.read_all().to_batch().unwrap();
    assert_eq!(batch.num_columns(), 1);
    assert_eq!(batch.column(0).as_primitive::<Int32Type>().values(), &[0, 1, 2, 3, 4]);
    assert_eq!(ntuple.read(["x"]).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn an_unknown_role_drops_its_field_too() {
    let mut model = numbers();
    model.header.schema.fields[1].role = role::STREAMER + 1;
    let ntuple = memory::ntuple(&model.build().unwrap()).unwrap();
    assert_eq!(ntuple.warnings(), ["field 'x' is left out: structural role 0x05 is unknown"]);
    assert_eq!(ntuple.schema().fields.len(), 1);
}

#[test]
fn unknown_bytes_after_all_known_ones_are_ignored() {
    for envelope in [EnvelopeType::Header, EnvelopeType::Footer, EnvelopeType::PageList] {
        let mut model = numbers();
        model.edit_bytes(Stage::Payload(envelope), |payload| payload.extend_from_slice(&[0xab; 40]));
        assert_eq!(floats(&model.build().unwrap(), "x"), ALL);
    }
}

#[test]
fn a_minor_version_of_the_future_is_read() {
    let mut model = numbers();
    model.version = [1, 7, 9, 3];
    let ntuple = memory::ntuple(&model.build().unwrap()).unwrap();
    assert_eq!((ntuple.entries(), ntuple.format_version().to_string()), (5, "1.7.9.3".to_owned()));
}

#[test]
fn a_locator_of_unknown_type_hurts_only_its_page() {
    let mut model = numbers();
    model.page(1, 1, 0).locator = Some(Locator::Unknown { kind: 0x55 });
    let ntuple = memory::ntuple(&model.build().unwrap()).unwrap();
    assert_eq!(ntuple.read(["i"]).unwrap().to_batch().unwrap().num_rows(), 5);
    assert_eq!(ntuple.read(["x"]).unwrap().entries(..3).to_batch().unwrap().num_rows(), 3);
    let error = ntuple.read(["x"]).unwrap().to_batch().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("locator of unknown type 0x55"), "{error}");
}

#[test]
fn large_locators_point_to_pages_like_small_ones() {
    // One cluster of one column of one page, listed by hand with a locator of type 0x01.
    let x: ArrayRef = Arc::new(Float32Array::from(vec![1.0, 2.0]));
    let mut model = load(&[RecordBatch::try_from_iter([("x", x)]).unwrap()]);
    model.edit_bytes(Stage::Payload(EnvelopeType::PageList), |payload| {
        // Header checksum; list of one summary (12 + 24 bytes); heads of the lists of clusters, columns and pages.
        let (known, inner) = payload.split_at(8 + 36);
        let mut page = Cursor::new(&inner[36..], 0);
        let (elements, size, offset) = (page.i32_le().unwrap(), page.i32_le().unwrap(), page.u64_le().unwrap());
        let tail = page.take(12).unwrap();
        let mut list = Buffer::new();
        list.put(known);
        for bytes in [-72i64, -60, -48] {
            list.i64_le(bytes);
            list.u32_le(1);
        }
        list.i32_le(elements);
        list.u32_le(1 << 31 | 1 << 24 | 20);
        list.u64_le(u64::from(size.unsigned_abs()));
        list.u64_le(offset);
        list.put(tail);
        *payload = list.into_vec();
    });
    assert_eq!(floats(&model.build().unwrap(), "x"), [1.0, 2.0]);
}

#[test]
fn half_precision_may_be_split() {
    let values = vec![1.5, -0.25, f32::INFINITY, 65504.0];
    let x: ArrayRef = Arc::new(Float32Array::from(values.clone()));
    let batch = RecordBatch::try_from_iter([("x", x)]).unwrap();
    let schema = Schema::from_arrow(&batch.schema()).unwrap();
    let options = WriteOptions::default().with_field_encoding("x", "SplitReal16").unwrap();
    let bytes = memory::write(&schema, &[batch], options, false).unwrap();
    let encoding = memory::ntuple(&bytes).unwrap().schema().fields[0].encoding.unwrap();
    assert_eq!(encoding.column_type().name(), "SplitReal16");
    assert_eq!(floats(&bytes, "x"), values);
}

#[test]
fn type_names_of_root_before_6_36_mean_the_same() {
    let mut model = numbers();
    model.header.schema.fields[0].type_name = "Int_t".into();
    model.header.schema.fields[1].type_name = "Float_t".into();
    assert_eq!(floats(&model.build().unwrap(), "x"), ALL);
}

#[test]
fn empty_clusters_and_empty_groups_hold_nothing() {
    let mut model = numbers();
    let mut empty = model.groups[0].clusters[1].clone();
    empty.summary.entries = 0;
    for column in &mut empty.columns {
        (column.pages, column.first_element) = (Vec::new(), Some(3));
    }
    model.groups[0].clusters.insert(1, empty);
    model.groups.push(Group::default());
    model.edit_footer(|footer| footer.cluster_groups[1].min_entry = 5);
    let bytes = model.build().unwrap();
    assert_eq!(floats(&bytes, "x"), ALL);
    assert_eq!(memory::ntuple(&bytes).unwrap().clusters(), 3);
}

/// Each lz4 block has its own checksum; comparing it takes as long as decompressing the block.
#[test]
fn checksums_of_blocks_are_compared_where_those_of_pages_are_not() {
    let x: ArrayRef = Arc::new(Float32Array::from(vec![1.5; 1000]));
    let batch = RecordBatch::try_from_iter([("x", x)]).unwrap();
    let mut model = load_compressed(&[batch], Compression::new(Algorithm::Lz4, 1).unwrap());
    // The first byte behind the header of the block; the checksum of the page is computed again.
    model.page(0, 0, 0).stored[9] ^= 1;
    let bytes = model.build().unwrap();
    assert_eq!(floats(&bytes, "x"), vec![1.5; 1000]);
    let file = memory::file(&bytes).unwrap();
    let trusting = file.clone().with_page_checksums(false).ntuple(None).unwrap();
    let error = trusting.read(["x"]).unwrap().to_batch().unwrap_err();
    assert!(error.is_corrupt() && error.to_string().contains("lz4: checksum mismatch"), "{error}");
    let damages = format!("{:?}", verify(&file, None, &mut |_| ()).unwrap().damages);
    assert!(damages.contains("lz4: checksum mismatch"), "{damages}");
}

//! Rules over a file of links in lists of lists.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt32Type};
use arrow_array::{
    Array, ArrayRef, Float32Array, Int32Array, Int64Array, LargeListArray, RecordBatch, StructArray, UInt32Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field as ArrowField, Schema as ArrowSchema};
use tempfile::TempDir;
use tupelo_schema::evolution::ReadRule;
use tupelo_schema::schema::{Field, Schema, metadata};

use crate::{Error, ErrorKind, Ntuple};

fn plain(name: &str, data_type: DataType) -> ArrowField {
    ArrowField::new(name, data_type, false)
}

fn class(name: &str, type_name: &str, version: u32, checksum: u32, data_type: DataType) -> ArrowField {
    let entries = [
        (metadata::TYPE, type_name.to_owned()),
        (metadata::VERSION, version.to_string()),
        (metadata::CHECKSUM, checksum.to_string()),
    ];
    let entries: HashMap<_, _> = entries.into_iter().map(|(key, text)| (key.to_owned(), text)).collect();
    plain(name, data_type).with_metadata(entries)
}

fn list(item: ArrowField, lengths: impl IntoIterator<Item = usize>, values: ArrayRef) -> LargeListArray {
    LargeListArray::new(Arc::new(item.with_name("item")), OffsetBuffer::from_lengths(lengths), values, None)
}

const LINKS: usize = 300;

/// `links`: lists of lists of `Link<Jet >` of version 3, with key and index in a base class; `one`: one of them an
/// entry, of version 7; `n`: a number.
fn written(folder: &TempDir) -> Ntuple {
    let links = |name: &str, version, count: usize| {
        let keys: ArrayRef = Arc::new(UInt32Array::from_iter_values((0..count as u32).map(|i| i % 4)));
        let indices: ArrayRef = Arc::new(UInt32Array::from_iter_values(0..count as u32));
        let base_members = vec![plain("m_key", DataType::UInt32), plain("m_index", DataType::UInt32)];
        let base = StructArray::new(base_members.into(), vec![keys, indices], None);
        let weights: ArrayRef = Arc::new(Float32Array::from_iter_values((0..count).map(|i| i as f32)));
        let base_field = class(":_0", "LinkBase", 1, 11, base.data_type().clone());
        let members = vec![base_field, plain("weight", DataType::Float32)];
        let array = StructArray::new(members.into(), vec![Arc::new(base), weights], None);
        (class(name, "Link<Jet >", version, 55, array.data_type().clone()), Arc::new(array) as ArrayRef)
    };
    let (item, values) = links("_0", 3, LINKS);
    let inner = list(item, (0..150).map(|i| i % 3 * 2), values);
    let outer_item = plain("item", inner.data_type().clone());
    let outer = list(outer_item, std::iter::repeat_n(3, 50), Arc::new(inner));
    let (one, ones) = links("one", 7, 50);
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..50));
    let fields = vec![plain("links", outer.data_type().clone()), one, plain("n", DataType::Int32)];
    let batch = RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), vec![Arc::new(outer), ones, numbers]).unwrap();
    let path = folder.path().join("links.root");
    let file = crate::create(&path).unwrap();
    let options = crate::WriteOptions::default().with_page_bytes(64).with_cluster_bytes(400);
    let mut ntuple = file.ntuple("n", &Schema::from_arrow(&batch.schema()).unwrap(), options).unwrap();
    ntuple.write(&batch).unwrap();
    ntuple.finish().unwrap();
    file.finish().unwrap();
    crate::open(path.to_str().unwrap()).open().unwrap()
}

fn target(name: &str, data_type: DataType) -> Field {
    Field::try_from(&plain(name, data_type)).unwrap()
}

/// `is_null` and `index` of key and index.
fn resolving() -> ReadRule {
    ReadRule::new("Link< Jet>")
        .with_sources(["m_key", "m_index"])
        .with_target(target("is_null", DataType::Boolean))
        .with_target(target("index", DataType::UInt32))
        .with_function(|sources, count| {
            let keys = sources[0].as_primitive::<UInt32Type>();
            assert_eq!(keys.len(), count);
            let mut is_null = BooleanBuilder::new();
            keys.values().iter().for_each(|&key| is_null.append_value(key == 0));
            Ok(vec![Arc::new(is_null.finish()), sources[1].clone()])
        })
}

fn paths(ntuple: &Ntuple) -> Vec<String> {
    ntuple.schema().paths().into_iter().map(|(path, _)| path).collect()
}

#[test]
fn computed_members_are_there_wherever_the_class_is() {
    let folder = tempfile::tempdir().unwrap();
    let ntuple = written(&folder).with_rules([resolving().with_hidden_sources(true)]).unwrap();
    let of = |name: &str| ["", ".weight", ".is_null", ".index"].map(|member| format!("{name}{member}"));
    assert_eq!(paths(&ntuple), [&of("links")[..], &of("one"), &["n".to_owned()]].concat());
    let batch = ntuple.read_all().to_batch().unwrap();
    assert_eq!(batch.schema(), ntuple.arrow_schema());
    let links = batch.column(0).as_list::<i64>().values().as_list::<i64>().values().as_struct().clone();
    assert_eq!(links.len(), LINKS);
    assert_eq!(links.column_by_name("is_null").unwrap().as_boolean().true_count(), LINKS / 4);
    assert_eq!(links.column_by_name("index").unwrap().as_primitive::<UInt32Type>().value(299), 299);
    assert_eq!(batch.column(1).as_struct().column_by_name("index").unwrap().len(), 50);
    // Reading a part gives a part.
    for (start, end) in [(0, 1), (7, 23), (49, 50), (50, 50)] {
        let part = ntuple.read_all().entries(start..end).to_batch().unwrap();
        assert_eq!(part, batch.slice(start as usize, (end - start) as usize));
    }
    // The ntuple that it was made of is as before, and the sources can be kept.
    let shown = written(&folder).with_rules([resolving()]).unwrap();
    assert!(paths(&shown).contains(&"links.:_0.m_key".to_owned()));
}

#[test]
fn a_computed_member_reads_its_sources_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let disk = written(&folder);
    let ntuple = disk.with_rules([resolving().with_hidden_sources(true)]).unwrap();
    let bytes = |ntuple: &Ntuple, path: &str| ntuple.read([path]).unwrap().bytes_per_entry().unwrap();
    assert_eq!(bytes(&ntuple, "links.is_null"), bytes(&disk, "links.:_0"));
    assert_eq!(bytes(&ntuple, "links.weight"), bytes(&disk, "links.weight"));
    let batch = ntuple.read(["links.is_null"]).unwrap().to_batch().unwrap();
    let record = batch.column(0).as_list::<i64>().values().as_list::<i64>().values().as_struct().clone();
    assert_eq!((record.num_columns(), record.len()), (1, LINKS));
    assert!(ntuple.read(["links.:_0"]).unwrap_err().is_not_found());
}

#[test]
fn rules_hold_for_versions_and_checksums() {
    let folder = tempfile::tempdir().unwrap();
    let disk = written(&folder);
    for (rule, in_links, in_one) in [
        (resolving().with_versions(2..=3), true, false),
        (resolving().with_versions(4..=9), false, true),
        (resolving().with_checksum(55), true, true),
        (resolving().with_checksum(56), false, false),
        (resolving().with_checksum(56).with_versions(7..=7), false, true),
    ] {
        let paths = paths(&disk.with_rules([rule]).unwrap());
        assert_eq!(paths.contains(&"links.index".to_owned()), in_links);
        assert_eq!(paths.contains(&"one.index".to_owned()), in_one);
    }
}

/// A rule for a class like the base class that gives whatever the function gives.
fn base_rule(
    class: &str,
    data_type: DataType,
    array: impl Fn(&ArrayRef) -> Vec<ArrayRef> + Send + Sync + 'static,
) -> ReadRule {
    ReadRule::new(class)
        .with_sources(["m_index"])
        .with_target(target("m_key", data_type))
        .with_function(move |sources, _| Ok(array(&sources[0])))
}

#[test]
fn a_target_takes_the_place_of_a_member() {
    let folder = tempfile::tempdir().unwrap();
    let disk = written(&folder);
    // Strings with narrow offsets are as good as wide ones.
    let name = |indices: &ArrayRef| -> Vec<ArrayRef> {
        let mut names = StringBuilder::new();
        indices.as_primitive::<UInt32Type>().values().iter().for_each(|i| names.append_value(format!("n{i}")));
        vec![Arc::new(names.finish())]
    };
    let ntuple = disk.with_rules([base_rule("LinkBase", DataType::Utf8, name)]).unwrap();
    assert_eq!(paths(&ntuple), paths(&disk));
    let read = ntuple.read(["one"]).unwrap();
    for binary in [false, true] {
        let read = read.clone().with_binary_strings(binary);
        let batch = read.to_batch().unwrap();
        assert_eq!(batch.schema(), read.arrow_schema());
        let keys = batch.column(0).as_struct().column(0).as_struct().column(0).clone();
        match binary {
            false => assert_eq!(keys.as_string::<i64>().value(49), "n49"),
            true => assert_eq!(keys.as_binary::<i64>().value(49), b"n49"),
        }
    }
    // Rules are added to the existing ones; a computed field is not a source for other rules.
    let twice = ntuple.with_rules([resolving().with_hidden_sources(true)]).unwrap();
    let batch = twice.read(["one.is_null", "one.index"]).unwrap().to_batch().unwrap();
    assert_eq!(batch.column(0).as_struct().column(0).as_boolean().true_count(), 13);
}

#[test]
fn computed_members_evolve_like_stored_ones() {
    let folder = tempfile::tempdir().unwrap();
    let ntuple = written(&folder).with_rules([resolving()]).unwrap();
    let members = vec![plain("index", DataType::Float64), plain("n", DataType::Int8)];
    let wanted = |members: Vec<ArrowField>| {
        let one = plain("one", DataType::Struct(members.into()));
        ntuple.read_all().with_schema(&Schema::from_arrow(&ArrowSchema::new(vec![one])).unwrap())
    };
    assert_eq!(wanted(members).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let members = vec![plain("index", DataType::Int64), plain("is_null", DataType::Int8), plain("k", DataType::Int8)];
    let batch = wanted(members).unwrap().to_batch().unwrap();
    let record = batch.column(0).as_struct();
    let indices: ArrayRef = Arc::new(Int64Array::from_iter_values(0..50));
    assert_eq!(record.column(0), &indices);
    assert_eq!(record.column(1).as_primitive::<arrow_array::types::Int8Type>().value(4), 1);
    // Fields without rules are read as ever.
    let numbers = ntuple.read(["n"]).unwrap().to_batch().unwrap();
    assert_eq!(numbers.column(0).as_primitive::<Int32Type>().value(49), 49);
}

#[test]
fn types_that_do_not_fit_are_errors_with_the_rule() {
    let folder = tempfile::tempdir().unwrap();
    let disk = written(&folder);
    for (data_type, function, expected) in [
        (DataType::UInt32, (|_| vec![]) as fn(&ArrayRef) -> Vec<ArrayRef>, "returned 0 arrays for 1 targets"),
        (DataType::UInt32, |array| vec![array.clone(), array.clone()], "returned 2 arrays for 1 targets"),
        (
            DataType::UInt32,
            |array| vec![array.slice(1, array.len() - 1)],
            "returned, for 'm_key', 49 values for 50 records",
        ),
        (
            DataType::Int64,
            |array| vec![array.clone()],
            "returned, for 'm_key', values of Arrow type UInt32, expected Int64",
        ),
        (DataType::UInt32, nulls_of, "returned, for 'm_key', 50 nulls, which its type 'std::uint32_t' does not allow"),
    ] {
        let ntuple = disk.with_rules([base_rule("LinkBase", data_type, function)]).unwrap();
        let error = ntuple.read(["one"]).unwrap().to_batch().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        let expected = format!("read rule for 'LinkBase': its function {expected}");
        assert!(error.to_string().contains(&expected), "{error}");
    }
    let optional = Field::try_from(&ArrowField::new("m_key", DataType::UInt32, true)).unwrap();
    let rule = ReadRule::new("LinkBase").with_sources(["m_index"]).with_target(optional);
    let ntuple = disk.with_rules([rule.with_function(|sources, _| Ok(nulls_of(&sources[0])))]).unwrap();
    assert!(ntuple.read(["one"]).unwrap().to_batch().is_ok());
    let failing = ReadRule::new("LinkBase").with_target(target("k", DataType::UInt32));
    let failing = failing.with_function(|_, _| Err(Error::invalid_argument("no luck")));
    let error = disk.with_rules([failing]).unwrap().read(["one.:_0.k"]).unwrap().to_batch().unwrap_err();
    assert!(error.to_string().ends_with("read rule for 'LinkBase': no luck"), "{error}");
}

fn nulls_of(array: &ArrayRef) -> Vec<ArrayRef> {
    vec![arrow_array::new_null_array(array.data_type(), array.len())]
}

#[test]
fn rules_that_cannot_work_are_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let disk = written(&folder);
    let refused = |rules: Vec<ReadRule>| disk.with_rules(rules).unwrap_err();
    assert!(
        refused(vec![ReadRule::new("A").with_target(target("k", DataType::Int8))])
            .to_string()
            .contains("lacks a function")
    );
    assert!(refused(vec![ReadRule::new("A").with_function(|_, _| Ok(vec![]))]).to_string().contains("lacks targets"));
    assert!(
        refused(vec![ReadRule::new("").with_target(target("k", DataType::Int8))])
            .to_string()
            .contains("lacks the name of a class")
    );
    let error = refused(vec![resolving().with_sources(["m_indx"])]);
    assert!(error.is_not_found() && error.to_string().contains("'m_index'"), "{error}");
    assert!(error.to_string().contains("field 'links': read rule for 'Link<Jet>'"), "{error}");
    let error = refused(vec![resolving(), resolving()]);
    assert!(error.to_string().contains("another rule also computes the member 'is_null'"), "{error}");
    // A class that is misspelt used to be a rule that did nothing.
    let other = base_rule("LinkBas", DataType::UInt32, nulls_of);
    let error = refused(vec![other.with_versions(1..=2)]);
    let expected = "read rule for 'LinkBas', versions 1 to 2: no class on disk named 'LinkBas' (";
    assert!(error.is_not_found() && error.to_string().contains(expected), "{error}");
    assert!(error.to_string().contains("'LinkBase'"), "{error}");
}

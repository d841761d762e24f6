use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{LargeBinaryBuilder, NullBufferBuilder};
use arrow_array::{
    ArrayRef, BooleanArray, FixedSizeListArray, Float32Array, Float64Array, Int8Array, Int32Array, Int64Array,
    LargeBinaryArray, LargeListArray, LargeStringArray, NullArray, RecordBatch, StructArray, UInt8Array, UInt64Array,
    UnionArray,
};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field as ArrowField, FieldRef, Fields, Schema as ArrowSchema, UnionFields};
use tupelo::schema::{Schema, metadata};

use super::*;

/// An Arrow field of a C++ type.
fn field(name: &str, array: &dyn Array, cpp: &str) -> ArrowField {
    let entries = [(metadata::TYPE.to_owned(), cpp.to_owned())];
    ArrowField::new(name, array.data_type().clone(), array.null_count() > 0)
        .with_metadata(entries.into_iter().filter(|(_, cpp)| !cpp.is_empty()).collect())
}

/// The JSON of a column of entries. The batch is a slice, like those of the engine.
fn json_of(field: ArrowField, array: ArrayRef) -> Vec<String> {
    let schema = Arc::new(ArrowSchema::new(vec![field]));
    let ours = Schema::from_arrow(&schema).unwrap();
    let batch = RecordBatch::try_new(schema, vec![array]).unwrap();
    let write = |batch: &RecordBatch| {
        let entries = Entries::new(&ours, batch).unwrap();
        let line = |entry: usize| {
            let mut text = Text::default();
            entries.write(entry, &mut text);
            let line = String::from_utf8(text.bytes).unwrap();
            serde_json::from_str::<serde_json::Value>(&line).expect("it is JSON");
            line.strip_prefix("{\"x\":").and_then(|line| line.strip_suffix('}')).unwrap().to_owned()
        };
        (0..batch.num_rows()).map(line).collect::<Vec<_>>()
    };
    let whole = write(&batch);
    if whole.len() > 2 {
        assert_eq!(write(&batch.slice(1, whole.len() - 2)), whole[1..whole.len() - 1], "a slice");
    }
    whole
}

fn json(array: impl Array + 'static, cpp: &str) -> Vec<String> {
    json_of(field("x", &array, cpp), Arc::new(array))
}

fn list(ends: &[i64], items: impl Array + 'static, item_cpp: &str) -> LargeListArray {
    let item = Arc::new(field("item", &items, item_cpp));
    LargeListArray::new(item, OffsetBuffer::new(ends.to_vec().into()), Arc::new(items), None)
}

fn record(members: Vec<(&str, &str, ArrayRef)>) -> StructArray {
    let fields: Fields = members.iter().map(|(name, cpp, array)| Arc::new(field(name, array, cpp))).collect();
    StructArray::new(fields, members.into_iter().map(|(_, _, array)| array).collect(), None)
}

#[test]
fn integers_are_exact() {
    assert_eq!(
        json(UInt64Array::from(vec![0, u64::MAX, 1 << 53 | 1]), ""),
        ["0", "18446744073709551615", "9007199254740993"]
    );
    assert_eq!(
        json(Int64Array::from(vec![i64::MIN, -1, i64::MAX]), ""),
        ["-9223372036854775808", "-1", "9223372036854775807"]
    );
    assert_eq!(json(Int8Array::from(vec![-128, 65, 127]), "char"), ["-128", "65", "127"]);
    assert_eq!(json(UInt8Array::from(vec![0, 200, 255]), "std::byte"), ["0", "200", "255"]);
    assert_eq!(json(UInt64Array::from(vec![3]), "ROOT::RNTupleCardinality<std::uint64_t>"), ["3"]);
    assert_eq!(json(BooleanArray::from(vec![true, false, true]), ""), ["true", "false", "true"]);
}

#[test]
fn floats_are_the_shortest_that_read_back() {
    let single = [0.1, 1.0, -0.0, 1e30, 16_777_216.0, f32::MIN_POSITIVE, f32::MAX, f32::NAN, f32::INFINITY];
    assert_eq!(
        json(Float32Array::from(single.to_vec()), ""),
        ["0.1", "1.0", "-0.0", "1e30", "16777216.0", "1.1754944e-38", "3.4028235e38", "\"NaN\"", "\"Infinity\""]
    );
    let double = [0.1 + 0.2, 1e-7, 123_456_789.0, 5e-324, f64::NEG_INFINITY];
    assert_eq!(
        json(Float64Array::from(double.to_vec()), ""),
        ["0.30000000000000004", "1e-7", "123456789.0", "5e-324", "\"-Infinity\""]
    );
    for text in json(Float64Array::from(vec![std::f64::consts::PI, 1e300, 9_007_199_254_740_993.0]), "") {
        let read: f64 = text.parse().unwrap();
        assert_eq!(format!("{read:?}").parse::<f64>().unwrap(), read);
    }
}

#[test]
fn strings_are_escaped() {
    let strings = vec!["", "a\"b\\c", "tab\tline\nreturn\r", "\u{0}\u{1f}\u{7f}", "Grüße, 😀"];
    assert_eq!(
        json(LargeStringArray::from(strings), ""),
        ["\"\"", r#""a\"b\\c""#, r#""tab\tline\nreturn\r""#, "\"\\u0000\\u001f\u{7f}\"", "\"Grüße, 😀\""]
    );
    let member = record(vec![("quote\"d", "", Arc::new(Int32Array::from(vec![1])))]);
    assert_eq!(json(member, ""), [r#"{"quote\"d":1}"#]);
}

#[test]
fn strings_that_are_not_utf8_are_not_lost() {
    let strings = LargeBinaryArray::from(vec!["plain".as_bytes(), &[0xff, 0x00], b""]);
    assert_eq!(json(strings.clone(), "std::string"), ["\"plain\"", r#"{"base64":"/wA="}"#, "\"\""]);
    let schema = Arc::new(ArrowSchema::new(vec![field("x", &strings, "std::string")]));
    let batch = RecordBatch::try_new(schema.clone(), vec![Arc::new(strings)]).unwrap();
    let ours = Schema::from_arrow(&schema).unwrap();
    let entries = Entries::new(&ours, &batch).unwrap();
    let mut text = Text::default();
    (0..3).for_each(|entry| entries.write(entry, &mut text));
    assert_eq!(text.odd_strings, 1);
}

#[test]
fn streamed_bytes_are_base64() {
    let mut bytes = LargeBinaryBuilder::new();
    bytes.append_value([0, 1, 2, 255]);
    let bytes = bytes.finish();
    let entries = [(metadata::TYPE, "TObject"), (metadata::ROLE, "streamer")];
    let entries: HashMap<_, _> = entries.into_iter().map(|(key, text)| (key.to_owned(), text.to_owned())).collect();
    let field = ArrowField::new("x", DataType::LargeBinary, false).with_metadata(entries);
    assert_eq!(json_of(field, Arc::new(bytes)), ["\"AAEC/w==\""]);
}

#[test]
fn collections_are_arrays() {
    let flat = list(&[0, 2, 2, 3, 5], Float32Array::from(vec![1.5, 2.0, -3.0, f32::NAN, 0.25]), "");
    assert_eq!(json(flat, "std::vector<float>"), ["[1.5,2.0]", "[]", "[-3.0]", "[\"NaN\",0.25]"]);
    let inner = list(&[0, 1, 3, 3], LargeStringArray::from(vec!["a", "b", "c"]), "");
    assert_eq!(json(list(&[0, 1, 1, 3], inner, ""), ""), [r#"[["a"]]"#, "[]", r#"[["b","c"],[]]"#]);
    let of_records = list(&[0, 0, 1, 2], record(vec![("pt", "", Arc::new(Int32Array::from(vec![7, 8])))]), "");
    assert_eq!(json(of_records, ""), ["[]", r#"[{"pt":7}]"#, r#"[{"pt":8}]"#]);
}

#[test]
fn fixed_arrays_and_bitsets_are_arrays() {
    let item = Arc::new(ArrowField::new("item", DataType::Int32, false));
    let numbers = Arc::new(Int32Array::from_iter_values(0..6));
    let array = FixedSizeListArray::new(item, 2, numbers, None);
    assert_eq!(json(array, "std::array<std::int32_t,2>"), ["[0,1]", "[2,3]", "[4,5]"]);
    let item = Arc::new(ArrowField::new("item", DataType::Boolean, false));
    let bits = Arc::new(BooleanArray::from(vec![true, false, false, false, true, true, true, true, true]));
    let bitset = FixedSizeListArray::new(item, 3, bits, None);
    assert_eq!(json(bitset, "std::bitset<3>"), ["[1,0,0]", "[0,1,1]", "[1,1,1]"]);
}

#[test]
fn records_are_objects_pairs_and_tuples_arrays() {
    let members = || -> Vec<(&str, &str, ArrayRef)> {
        let base = record(vec![("b", "", Arc::new(BooleanArray::from(vec![true, false, true])))]);
        vec![(":_0", "Base", Arc::new(base)), ("n", "", Arc::new(Int32Array::from(vec![1, 2, 3])))]
    };
    let expected = [r#"{":_0":{"b":true},"n":1}"#, r#"{":_0":{"b":false},"n":2}"#, r#"{":_0":{"b":true},"n":3}"#];
    assert_eq!(json(record(members()), "Derived"), expected);
    assert_eq!(json(StructArray::new_empty_fields(2, None), "Empty"), ["{}", "{}"]);
    let pair = |cpp: &str| {
        let second = Arc::new(LargeStringArray::from(vec!["a", "b", "c"]));
        json(record(vec![("_0", "", Arc::new(Int32Array::from(vec![1, 2, 3]))), ("_1", "", second)]), cpp)
    };
    for cpp in ["std::pair<std::int32_t,std::string>", "std::tuple<std::int32_t,std::string>"] {
        assert_eq!(pair(cpp), [r#"[1,"a"]"#, r#"[2,"b"]"#, r#"[3,"c"]"#]);
    }
}

#[test]
fn maps_are_arrays_of_pairs() {
    let keys = Arc::new(LargeStringArray::from(vec!["a", "b", "c"]));
    let pairs = record(vec![("key", "", keys), ("value", "", Arc::new(Int32Array::from(vec![1, 2, 3])))]);
    let map = list(&[0, 2, 2, 3], pairs, "std::pair<std::string,std::int32_t>");
    let cpp = "std::map<std::string,std::int32_t>";
    assert_eq!(json(map, cpp), [r#"[["a",1],["b",2]]"#, "[]", r#"[["c",3]]"#]);
}

#[test]
fn optionals_are_values_or_null() {
    let values = Int32Array::from(vec![Some(1), None, Some(3), None]);
    assert_eq!(json(values, "std::optional<std::int32_t>"), ["1", "null", "3", "null"]);
    // An optional whose value may be missing itself is a list of at most one item.
    let inner = Int32Array::from(vec![Some(7), None]);
    let item: FieldRef = Arc::new(field("item", &inner, "std::optional<std::int32_t>"));
    let outer = LargeListArray::new(item, OffsetBuffer::new(vec![0, 1, 1, 2].into()), Arc::new(inner), None);
    assert_eq!(json(outer, "std::optional<std::optional<std::int32_t>>"), ["7", "null", "null"]);
    // The members of a missing record do not matter.
    let mut nulls = NullBufferBuilder::new(2);
    nulls.append_null();
    nulls.append_non_null();
    let (fields, members, _) = record(vec![("a", "", Arc::new(Int32Array::from(vec![5, 6])))]).into_parts();
    let records = StructArray::new(fields, members, nulls.finish());
    let expected = ["null", r#"{"a":6}"#];
    assert_eq!(json(records, "Point"), expected);
}

#[test]
fn wrappers_have_the_value_of_their_item() {
    let entries = [("rntuple.type", "std::atomic<std::int32_t>"), ("rntuple.type/0", "std::int32_t")];
    let entries: HashMap<_, _> = entries.into_iter().map(|(key, text)| (key.to_owned(), text.to_owned())).collect();
    let field = ArrowField::new("x", DataType::Int32, false).with_metadata(entries);
    assert_eq!(json_of(field, Arc::new(Int32Array::from(vec![4, 5]))), ["4", "5"]);
}

#[test]
fn variants_have_the_value_of_their_alternative() {
    let child = |name: &str, data_type| Arc::new(ArrowField::new(name, data_type, false));
    let fields: UnionFields = [
        (0, Arc::new(ArrowField::new("valueless", DataType::Null, true))),
        (1, child("_0", DataType::Int32)),
        (2, child("_1", DataType::LargeUtf8)),
    ]
    .into_iter()
    .collect();
    let children: Vec<ArrayRef> = vec![
        Arc::new(NullArray::new(1)),
        Arc::new(Int32Array::from(vec![10, 20])),
        Arc::new(LargeStringArray::from(vec!["s"])),
    ];
    let (tags, places) = (ScalarBuffer::from(vec![1i8, 2, 0, 1]), ScalarBuffer::from(vec![0i32, 0, 0, 1]));
    let union = UnionArray::try_new(fields, tags, Some(places), children).unwrap();
    assert_eq!(json(union, "std::variant<std::int32_t,std::string>"), ["10", "\"s\"", "null", "20"]);
}

#[test]
fn plain_text_has_no_quotes() {
    let schema = Arc::new(ArrowSchema::new(vec![
        ArrowField::new("s", DataType::LargeUtf8, true),
        ArrowField::new("f", DataType::Float64, false),
    ]));
    let strings = Arc::new(LargeStringArray::from(vec![Some("a,b"), None]));
    let batch = RecordBatch::try_new(schema.clone(), vec![strings, Arc::new(Float64Array::from(vec![f64::NAN, 1.0]))]);
    let (batch, ours) = (batch.unwrap(), Schema::from_arrow(&schema).unwrap());
    let entries = Entries::new(&ours, &batch).unwrap();
    let plain = |column: usize, entry: usize| {
        let mut text = Text::default();
        entries.columns()[column].write_plain(entry, &mut text);
        String::from_utf8(text.bytes).unwrap()
    };
    assert_eq!([plain(0, 0), plain(0, 1), plain(1, 0), plain(1, 1)], ["a,b", "", "NaN", "1.0"]);
    assert!(entries.columns()[0].is_null(1) && !entries.columns()[0].is_null(0));
}

#[test]
fn arrays_of_unexpected_types_are_refused() {
    let schema = Schema::from_arrow(&ArrowSchema::new(vec![ArrowField::new("x", DataType::LargeUtf8, false)])).unwrap();
    let batch = RecordBatch::try_from_iter([("x", Arc::new(Int32Array::from(vec![1])) as ArrayRef)]).unwrap();
    let misfit = Entries::new(&schema, &batch).err().expect("a misfit");
    assert_eq!(misfit.to_string(), "field 'x' (std::string) has an unexpected type: Int32");
}

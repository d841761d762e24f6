//! Field tree → Arrow → field tree.

pub(crate) mod kinds;

use std::sync::Arc;

use arrow_array::{ArrayRef, Float32Array, RecordBatch, StructArray};
use arrow_schema::{DataType, Field as ArrowField, Schema as ArrowSchema, TimeUnit};
use tupelo_format::type_name::FUNDAMENTAL;

use self::kinds::{every_kind, primitive};
use super::arrow::{default_column_type, parse_encoding};
use super::*;
use crate::ErrorKind;

#[test]
fn every_kind_survives_arrow() {
    let schema = Schema { fields: every_kind() };
    for compressed in [false, true] {
        let back = Schema::from_arrow(&schema.to_arrow(compressed)).unwrap();
        for (field, back) in schema.fields.iter().zip(&back.fields) {
            assert_eq!(field, back);
        }
    }
}

#[test]
fn plain_arrow_types_get_cpp_types() {
    let item = |data_type| Arc::new(ArrowField::new("item", data_type, false));
    for (data_type, nullable, expected) in [
        (DataType::Int16, false, "std::int16_t"),
        (DataType::Float32, true, "std::optional<float>"),
        (DataType::Utf8View, false, "std::string"),
        (DataType::Binary, false, "std::vector<std::byte>"),
        (DataType::List(item(DataType::LargeUtf8)), false, "std::vector<std::string>"),
        (DataType::FixedSizeList(item(DataType::Boolean), 4), false, "std::array<bool,4>"),
        (DataType::List(item(DataType::Struct(vec![ArrowField::new("x", DataType::UInt8, false)].into()))), false, ""),
    ] {
        let schema = ArrowSchema::new(vec![ArrowField::new("f", data_type, nullable)]);
        assert_eq!(Schema::from_arrow(&schema).unwrap().fields[0].type_name, expected);
    }
}

#[test]
fn arrow_types_without_a_cpp_type_are_refused_by_name() {
    let time = DataType::Timestamp(TimeUnit::Second, None);
    let schema = ArrowSchema::new(vec![ArrowField::new("when", time, false)]);
    let error = Schema::from_arrow(&schema).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().starts_with("field 'when': Arrow type Timestamp"), "{error}");
    let record = DataType::Struct(vec![ArrowField::new("x", DataType::UInt8, false)].into());
    let array = DataType::FixedSizeList(Arc::new(ArrowField::new("item", record, false)), 2);
    let schema = ArrowSchema::new(vec![ArrowField::new("pairs", array, false)]);
    let error = Schema::from_arrow(&schema).unwrap_err().to_string();
    for part in ["field 'pairs'", "std::array", "ak.from_regular", "rntuple.type"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn optional_records_without_a_class_are_untyped_collections() {
    let record = DataType::Struct(vec![ArrowField::new("x", DataType::UInt8, false)].into());
    let lists = DataType::LargeList(Arc::new(ArrowField::new("item", record.clone(), true)));
    for data_type in [record, lists] {
        let schema = ArrowSchema::new(vec![ArrowField::new("maybe", data_type, true)]);
        let schema = Schema::from_arrow(&schema).unwrap();
        let field = &schema.fields[0];
        assert!(matches!(field.kind, Kind::Optional(_)));
        assert_eq!((field.type_name.as_str(), field.display_type()), ("", "collection"));
        for compressed in [false, true] {
            assert_eq!(Schema::from_arrow(&schema.to_arrow(compressed)).unwrap(), schema);
        }
    }
    let members = vec![ArrowField::new("x", DataType::UInt8, false)];
    let mut class = ArrowField::new("maybe", DataType::Struct(members.into()), true);
    class.set_metadata([(metadata::TYPE.to_owned(), "Muon".to_owned())].into());
    assert_eq!(Schema::from_arrow(&ArrowSchema::new(vec![class])).unwrap().fields[0].type_name, "std::optional<Muon>");
}

#[test]
fn nullable_without_nulls_is_not_optional() {
    let column = |values: Vec<Option<f32>>| Arc::new(Float32Array::from(values)) as ArrayRef;
    let inner = Arc::new(ArrowField::new("x", DataType::Float32, true));
    let record = StructArray::from(vec![(inner, column(vec![Some(1.0), Some(2.0)]))]);
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("full", column(vec![Some(1.0), Some(2.0)]), true),
        ("holes", column(vec![Some(1.0), None]), true),
        ("record", Arc::new(record) as ArrayRef, true),
    ]);
    let schema = Schema::from_arrow(&tighten(&batch.unwrap())).unwrap();
    let types: Vec<_> = schema.fields.iter().map(|field| field.type_name.as_str()).collect();
    assert_eq!(types, ["float", "std::optional<float>", ""]);
    assert_eq!(schema.fields[2].children()[0].type_name, "float");
}

#[test]
fn members_of_missing_records_are_not_optional() {
    let x = Float32Array::from(vec![Some(1.0), None, Some(2.0)]);
    let y = Float32Array::from(vec![None, None, Some(2.0)]);
    let fields = ["x", "y"].map(|name| ArrowField::new(name, DataType::Float32, true));
    let columns: Vec<ArrayRef> = vec![Arc::new(x), Arc::new(y)];
    let missing = Some(vec![true, false, true].into());
    let records: ArrayRef = Arc::new(StructArray::new(fields.to_vec().into(), columns, missing));
    let batch = RecordBatch::try_from_iter_with_nullable([("record", records, true)]).unwrap();
    let schema = Schema::from_arrow(&tighten(&batch)).unwrap();
    let types: Vec<_> = schema.paths().into_iter().map(|(_, field)| field.type_name.clone()).collect();
    assert_eq!(types, ["", "float", "std::optional<float>"]);
}

#[test]
fn encodings_are_spelt_as_the_format_does() {
    for good in ["Real16", "Real32Trunc(10)", "Real32Quant(1,0,1)", "SplitIndex32"] {
        parse_encoding(good).unwrap();
    }
    for bad in ["real16", "Real32Trunc", "Real32Trunc(9)", "Real32Quant(12)", "Real32Quant(12,1,1)", "Bit(", ""] {
        assert!(parse_encoding(bad).is_err(), "{bad}");
    }
    let mut wrong = ArrowField::new("i", DataType::Int32, false);
    wrong.set_metadata([(metadata::ENCODING.to_owned(), "Real16".to_owned())].into());
    assert!(Schema::from_arrow(&ArrowSchema::new(vec![wrong])).is_err());
}

#[test]
fn uncompressed_columns_are_not_split_but_for_double32() {
    let mut double = primitive("d", "double", Primitive::Double);
    assert_eq!(default_column_type(&double, false).map(|c| c.name()), Some("Real64"));
    double.type_alias = "Double32_t".into();
    assert_eq!(default_column_type(&double, false).map(|c| c.name()), Some("SplitReal32"));
}

/// Regression: `long int` was unknown to schemas, `vector<int>` no vector, and class names that streamer info spells
/// `Box<signed char>` were not found.
#[test]
fn all_spellings_of_a_type_are_accepted() {
    for (standard, others) in FUNDAMENTAL {
        let kind = Primitive::from_name(standard).map_or(Kind::String, Kind::Primitive);
        let data_type = match kind {
            Kind::Primitive(primitive) => primitive.data_type(),
            _ => DataType::LargeUtf8,
        };
        assert_eq!(standard_type_name(standard), Some(standard));
        for name in [standard].iter().chain(others) {
            let read = Schema::from_arrow(&typed_schema(data_type.clone(), name)).unwrap();
            assert_eq!((read.fields[0].type_name.as_str(), &read.fields[0].kind), (standard, &kind), "{name}");
            assert_eq!(read.projection("y", "x", Some(name)).unwrap().type_name, standard);
            assert_eq!(tupelo_format::type_name::normalised(&format!("Box<{name}>")), format!("Box<{standard}>"));
        }
    }
    // Regression: a rewritten file had other class names.
    let links = DataType::LargeList(Arc::new(ArrowField::new("item", DataType::Int32, false)));
    let spaced = Schema::from_arrow(&typed_schema(links, "std::vector<Link<Muon> >")).unwrap();
    assert_eq!(spaced.fields[0].type_name, "std::vector<Link<Muon> >");
    let alias = Schema::from_arrow(&typed_schema(DataType::Float64, "Double32_t")).unwrap();
    assert_eq!(alias.fields[0].type_alias, "Double32_t");
}

#[test]
fn templates_are_accepted_without_their_namespace() {
    let item = Arc::new(ArrowField::new("item", DataType::Int32, false));
    let pair = DataType::Struct(
        [("_0", DataType::Int32), ("_1", DataType::Float32)]
            .into_iter()
            .map(|(name, data_type)| ArrowField::new(name, data_type, false))
            .collect(),
    );
    let pairs = DataType::LargeList(Arc::new(ArrowField::new("item", pair.clone(), false)));
    let list = DataType::LargeList(Arc::clone(&item));
    for (data_type, name, standard) in [
        (list.clone(), "vector<int>", "std::vector<std::int32_t>"),
        (list.clone(), "RVec<int>", "ROOT::VecOps::RVec<std::int32_t>"),
        (list, "optional<int>", "std::optional<std::int32_t>"),
        (pairs, "map<int,Float_t>", "std::map<std::int32_t,float>"),
        (pair, "pair<int, float>", "std::pair<std::int32_t,float>"),
        (
            DataType::FixedSizeList(Arc::new(ArrowField::new("item", DataType::Boolean, false)), 3),
            "bitset<3>",
            "std::bitset<3>",
        ),
        (DataType::UInt32, "RNTupleCardinality<unsigned>", "ROOT::RNTupleCardinality<std::uint32_t>"),
    ] {
        let [plain, spelled] =
            [standard, name].map(|name| Schema::from_arrow(&typed_schema(data_type.clone(), name)).unwrap());
        assert_eq!(plain, spelled);
        assert_eq!(spelled.fields[0].type_name, standard);
    }
}

fn typed_schema(data_type: DataType, type_name: &str) -> ArrowSchema {
    let entries = [(metadata::TYPE.to_owned(), type_name.to_owned())];
    ArrowSchema::new(vec![ArrowField::new("x", data_type, false).with_metadata(entries.into())])
}

//! Fields for tests, also for those of the crates above.

use tupelo_schema::schema::arrow::parse_encoding;
use tupelo_schema::schema::{Field, Kind, Primitive};

/// A field of a number.
pub(crate) fn primitive(name: &str, type_name: &str, primitive: Primitive) -> Field {
    Field::new(name, type_name, Kind::Primitive(primitive))
}

/// A field with one field inside.
fn wrap(name: &str, type_name: &str, kind: fn(Box<Field>) -> Kind, item: Field) -> Field {
    Field::new(name, type_name, kind(Box::new(item)))
}

/// One field of every kind.
pub(crate) fn every_kind() -> Vec<Field> {
    let int = |name: &str| primitive(name, "std::int32_t", Primitive::Int32);
    let pair = |name: &str| {
        Field::new(
            name,
            "std::pair<std::int32_t,float>",
            Kind::Tuple(vec![int("_0"), primitive("_1", "float", Primitive::Float)]),
        )
    };
    let optional = |name: &str| wrap(name, "std::optional<std::int32_t>", Kind::Optional, int("_0"));
    let mut described = int("described");
    described.description = "how many".into();
    described.type_alias = "Int_t".into();
    let mut quantised = primitive("quantised", "float", Primitive::Float);
    quantised.encoding = Some(parse_encoding("Real32Quant(12,-1,1)").unwrap());
    let mut class =
        Field::new("class", "Derived", Kind::Record(vec![Field::new(":_0", "Base", Kind::Record(vec![int("i")]))]));
    (class.type_version, class.checksum) = (3, Some(77));
    let mut soa = wrap("soa", "PointsSoA", Kind::Collection, Field::new("_0", "Point", Kind::Record(vec![int("x")])));
    soa.soa = true;
    vec![
        described,
        quantised,
        class,
        soa,
        primitive("byte", "std::byte", Primitive::Byte),
        primitive("letter", "char", Primitive::Char),
        Field::new("text", "std::string", Kind::String),
        Field::new("streamed", "TH1F", Kind::Streamer),
        Field::new("bits", "std::bitset<5>", Kind::Bitset { size: 5 }),
        Field::new("array", "std::array<std::int32_t,3>", Kind::Array { size: 3, item: Box::new(int("_0")) }),
        wrap("atomic", "std::atomic<std::int32_t>", Kind::Wrapper, int("_0")),
        wrap("vector", "std::vector<std::int32_t>", Kind::Collection, int("_0")),
        wrap("map", "std::map<std::int32_t,float>", Kind::Map, pair("_0")),
        pair("pair"),
        optional("optional"),
        wrap("twice", "std::optional<std::optional<std::int32_t>>", Kind::Optional, optional("_0")),
        wrap("unique", "std::unique_ptr<std::string>", Kind::Optional, Field::new("_0", "std::string", Kind::String)),
        Field::new(
            "variant",
            "std::variant<std::int32_t,std::optional<std::int32_t>>",
            Kind::Variant(vec![int("_0"), optional("_1")]),
        ),
        Field::new("record", "", Kind::Record(vec![int("a"), Field::new("empty", "Empty", Kind::Record(Vec::new()))])),
        wrap("untyped", "", Kind::Collection, Field::new("_0", "", Kind::Record(vec![int("a")]))),
    ]
}

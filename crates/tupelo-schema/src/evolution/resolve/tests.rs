//! The rules against what ROOT does, and what is read of a field on disk.

use tupelo_format::type_name::{TypeName, fundamental};

use super::*;
use crate::ErrorKind;
use crate::schema::{Primitive, Schema};

fn int(name: &str) -> Field {
    Field::new(name, "std::int32_t", Kind::Primitive(Primitive::Int32))
}

fn float(name: &str) -> Field {
    Field::new(name, "float", Kind::Primitive(Primitive::Float))
}

fn record(name: &str, class: &str, members: Vec<Field>) -> Field {
    Field::new(name, class, Kind::Record(members))
}

/// The field of a type name; the classes and enums are those of conformance/test_evolution.py.
fn field(name: &str, type_name: &str) -> Field {
    let type_name = type_name.replace("ROOT::RVec<", "ROOT::VecOps::RVec<");
    if let Some(standard) = fundamental(&type_name) {
        let kind = Primitive::from_name(standard).map_or(Kind::String, Kind::Primitive);
        return Field::new(name, standard, kind);
    }
    let enumerated = |integer: &str| Kind::Wrapper(Box::new(field("_0", integer)));
    let parsed = TypeName::parse(&type_name).unwrap();
    let item = || Box::new(field("_0", parsed.arguments[0]));
    let number = || parsed.arguments.last().unwrap().parse().unwrap();
    let numbered = |names: &[&str]| -> Vec<Field> {
        names.iter().enumerate().map(|(i, argument)| field(&format!("_{i}"), argument)).collect()
    };
    let kind = match parsed.base {
        "EnumA" => enumerated("int"),
        "EnumB" => enumerated("short"),
        "EnumS" => enumerated("unsigned char"),
        "Cls" | "Cls2" => Kind::Record(vec![int("a"), float("b")]),
        "Derived" => Kind::Record(vec![field(":_0", "Cls"), int("c")]),
        "TObject" => Kind::Record(vec![field("fUniqueID", "unsigned"), field("fBits", "unsigned")]),
        "untyped record" => return record(name, "", vec![int("a"), float("b")]),
        "untyped record of a" => return record(name, "", vec![int("a")]),
        "untyped collection" => {
            let item = record("_0", "", vec![int("a"), float("b")]);
            return Field::new(name, "", Kind::Collection(Box::new(item)));
        }
        "untyped collection of int" => return Field::new(name, "", Kind::Collection(Box::new(int("_0")))),
        "std::atomic" => Kind::Wrapper(item()),
        "std::optional" | "std::unique_ptr" => Kind::Optional(item()),
        "std::array" => Kind::Array { size: number(), item: item() },
        "std::bitset" => Kind::Bitset { size: number() },
        "std::pair" | "std::tuple" => Kind::Tuple(numbered(&parsed.arguments)),
        "std::variant" => Kind::Variant(numbered(&parsed.arguments)),
        base if base.ends_with("map") => {
            let pair = format!("std::pair<{}>", parsed.arguments.join(","));
            Kind::Map(Box::new(field("_0", &pair)))
        }
        _ => Kind::Collection(item()),
    };
    Field::new(name, normalised(&type_name), kind)
}

const RULES: Evolution<'_> = Evolution { recipes: &[], compressed: true };

fn evolve(disk: &Field, wanted: &Field) -> Result<Evolved> {
    RULES.evolve(disk, wanted)
}

#[test]
fn types_can_be_read_as_in_root() {
    let mut parts = include_str!("root_6_40.txt").split("\n\n").skip(1);
    let wanted: Vec<&str> = parts.next().unwrap().lines().collect();
    let (mut cells, mut wrong) = (0, Vec::new());
    for line in parts.next().unwrap().lines() {
        let (disk, answers) = line.split_once(" | ").unwrap();
        let disk = disk.trim();
        assert_eq!(answers.len(), wanted.len(), "{disk}");
        for (wanted, answer) in wanted.iter().zip(answers.chars()) {
            cells += 1;
            let evolved = evolve(&field("x", disk), &field("x", wanted));
            match (&evolved, answer) {
                (Ok(_), 'x') => {}
                (Err(error), '.') => {
                    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
                    assert!(error.to_string().starts_with("field 'x"), "{error}");
                    assert!(error.to_string().contains("on disk cannot be read as"), "{error}");
                }
                _ => wrong.push(format!("{disk} as {wanted}: ROOT says {answer}, this {evolved:?}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(cells, 61 * 68);
}

#[test]
fn the_same_costs_nothing() {
    for name in include_str!("root_6_40.txt").split("\n\n").nth(1).unwrap().lines() {
        let field = field("x", name);
        let evolved = evolve(&field, &field).unwrap();
        assert_eq!(evolved, Evolved { source: field, transform: Transform::Same }, "{name}");
    }
}

#[test]
fn refusals_name_path_types_and_rule() {
    let disk = record("x", "", vec![Field::new("hits", "std::vector<Cls>", field("x", "std::vector<Cls>").kind)]);
    let mut item = field("_0", "Cls");
    item.children_mut()[0] = field("a", "float");
    let hits = Field::new("hits", "std::vector<Cls>", Kind::Collection(Box::new(item)));
    let error = evolve(&disk, &record("x", "", vec![hits])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "field 'x.hits.a': 'std::int32_t' on disk cannot be read as 'float': floating point can only be read from \
         floating point"
    );
}

#[test]
fn members_that_are_not_wanted_are_not_read() {
    let all = vec![int("a"), float("b"), field("c", "std::vector<Cls>")];
    let disk = record("x", "Big", all);
    let wanted = record("x", "Big", vec![float("new"), float("b")]);
    let Evolved { source, transform } = evolve(&disk, &wanted).unwrap();
    assert_eq!(source.children(), [float("b")]);
    let Transform::Members { members, .. } = transform else { panic!("{transform:?}") };
    assert_eq!(members[0].origin, Origin::Default);
    assert_eq!(members[1].origin, Origin::Read(0, Transform::Same));
    // Sizes need no items at all.
    let size = Field::new("x", "ROOT::RNTupleCardinality<std::uint32_t>", Kind::Cardinality { wide: false });
    let source = evolve(&field("x", "std::vector<Cls>"), &size).unwrap().source;
    assert_eq!(source.children()[0].children(), []);
}

#[test]
fn base_classes_come_and_go_together() {
    let base = |number: usize, class: &str| record(&format!(":_{number}"), class, vec![int("i")]);
    let class = |bases: &[&str]| {
        let mut members: Vec<Field> = bases.iter().enumerate().map(|(number, class)| base(number, class)).collect();
        members.push(int("own"));
        record("x", "A", members)
    };
    for (disk, wanted, is_allowed) in [
        (&["B1"][..], &[][..], true),
        (&[], &["B1", "B2"], true),
        (&["B1", "B2"], &["B1"], false),
        (&["B1"], &["B1", "B2"], false),
        (&["B1", "B2"], &["B2", "B1"], false),
        (&["B1"], &["B2"], false),
    ] {
        assert_eq!(evolve(&class(disk), &class(wanted)).is_ok(), is_allowed, "{disk:?} as {wanted:?}");
    }
}

#[test]
fn streamed_classes_stay_what_they_are_and_have_no_default() {
    let streamed = |class: &str| Field::new("s", class, Kind::Streamer);
    assert!(evolve(&streamed("TH1F"), &streamed("TH1F")).is_ok());
    assert!(evolve(&streamed("TH1F"), &streamed("TH1D")).is_err());
    let error = evolve(&record("x", "A", vec![]), &record("x", "A", vec![streamed("TH1F")])).unwrap_err();
    assert!(error.to_string().contains("'x.s': it is not on disk, and the streamed class 'TH1F'"), "{error}");
}

#[test]
fn names_are_compared_in_one_spelling() {
    for (one, other) in [
        ("ElementLink<DataVector<xAOD::Jet_v1> >", "ElementLink<DataVector<xAOD::Jet_v1>>"),
        ("::A<unsigned int, Float_t>", "A<std::uint32_t,float>"),
        (" Int_t ", "std::int32_t"),
    ] {
        assert_eq!(normalised(one), normalised(other));
    }
    assert_ne!(normalised("A<int>"), normalised("A<short>"));
    // A name that is not a template is left alone.
    assert_eq!(normalised("a<"), "a<");
}

#[test]
fn recipes_read_their_sources_and_nothing_else() {
    let base = record(":_0", "Base", vec![int("key"), int("rest")]);
    let disk = record("x", "Link", vec![base, float("weight")]);
    let recipe = Recipe {
        type_name: "Link".into(),
        versions: None,
        checksum: None,
        sources: vec!["key".into()],
        targets: vec![float("twice")],
        hides_sources: true,
    };
    let rules = Evolution { recipes: &[recipe], compressed: true };
    let shape = rules.shape(&disk).unwrap();
    let paths = |field: &Field| {
        let schema = Schema { fields: vec![field.clone()] };
        schema.paths().into_iter().map(|(path, _)| path).collect::<Vec<_>>()
    };
    assert_eq!(paths(&shape), ["x", "x.:_0", "x.:_0.rest", "x.weight", "x.twice"]);
    let selected = Schema { fields: vec![shape] }.select(&["x.twice"]).unwrap();
    let source = rules.evolve(&disk, &selected.fields[0]).unwrap().source;
    assert_eq!(paths(&source), ["x", "x.:_0", "x.:_0.key"]);
}

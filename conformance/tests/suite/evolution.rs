//! Read rules and other schemas over real files: the links of ATLAS's PHYSLITE, which stand in lists of lists.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_schema::{DataType, Field as ArrowField};
use bytes::Bytes;
use conformance::{memory, summary};
use tupelo::Ntuple;
use tupelo::reader::ReadRule;
use tupelo::schema::{Field, Kind, Schema};

/// The ntuple with links, where the file is there.
fn events() -> Option<Ntuple> {
    let path = summary::real_files().into_iter().find(|path| path.ends_with("atlas_daod_physlite_ntuple.root"))?;
    let bytes = Bytes::from(std::fs::read(path).expect("a file"));
    Some(memory::file(&bytes).expect("a ROOT file").ntuple(Some("EventData")).expect("an ntuple"))
}

fn target(name: &str, data_type: DataType) -> Field {
    Field::try_from(&ArrowField::new(name, data_type, false)).expect("a field")
}

/// Says which links are null, and calls their index by its name.
fn resolving(class: &str) -> ReadRule {
    ReadRule::new(class)
        .with_sources(["m_persKey", "m_persIndex"])
        .with_target(target("is_null", DataType::Boolean))
        .with_target(target("index", DataType::UInt32))
        .with_hidden_sources(true)
        .with_function(|sources, _| {
            let keys = sources[0].as_primitive::<UInt32Type>();
            let is_null: BooleanArray = keys.values().iter().map(|&key| Some(key == 0)).collect();
            Ok(vec![Arc::new(is_null) as ArrayRef, sources[1].clone()])
        })
}

/// The innermost array below all lists and the named struct fields.
fn drill(mut array: ArrayRef, names: &[&str]) -> ArrayRef {
    for name in names {
        while let Some(list) = array.as_list_opt::<i64>() {
            array = list.values().clone();
        }
        array = array.as_struct().column_by_name(name).expect("a member").clone();
    }
    array
}

#[test]
fn links_show_the_members_that_rules_compute() {
    let Some(disk) = events() else {
        summary::note("evolution", "read rules did not run over real links: the file of ATLAS is absent");
        return;
    };
    let field = "AnalysisJetsAuxDyn:GhostTrack";
    // By the class itself, whose sources are in its base class, and by the base class of all links.
    let own = disk.with_rules([resolving("ElementLink<DataVector<xAOD::IParticle>>")]).expect("a rule");
    let paths: Vec<String> = own.schema().paths().into_iter().map(|(path, _)| path).collect();
    assert!(
        paths.contains(&format!("{field}.is_null")) && !paths.iter().any(|path| path.contains(&format!("{field}.:_0")))
    );
    let all = disk.with_rules([resolving("ElementLinkBase")]).expect("a rule");

    let read =
        |ntuple: &Ntuple, path: &str| ntuple.read([path]).expect("a path").to_batch().expect("data").column(0).clone();
    let keys = drill(read(&disk, &format!("{field}.:_0.m_persKey")), &[":_0", "m_persKey"]);
    let keys = keys.as_primitive::<UInt32Type>();
    let indices = drill(read(&disk, &format!("{field}.:_0.m_persIndex")), &[":_0", "m_persIndex"]);
    let is_null = drill(read(&own, &format!("{field}.is_null")), &["is_null"]);
    assert_eq!(is_null.as_boolean().true_count(), keys.values().iter().filter(|&&key| key == 0).count());
    assert_eq!(&drill(read(&own, &format!("{field}.index")), &["index"]), &indices);
    assert_eq!(&drill(read(&all, &format!("{field}.:_0.index")), &[":_0", "index"]), &indices);

    let all_data = all.read_all().to_batch().expect("all data");
    assert_eq!(all_data.schema(), all.arrow_schema());
    let links = all.schema().paths().into_iter().filter(|(path, _)| path.ends_with(".is_null")).count();
    assert_eq!(links, 80);
    let line = format!("read rules made something of {links} fields of real links, {} of one", keys.len());
    summary::note("evolution", &line);
}

/// The same schema with all floats as doubles, all integers of 32 bits as those of 64, and no members left out.
/// Quantised values stay: as doubles they are others, in ROOT too.
fn widened(field: &Field) -> Field {
    use tupelo::schema::Primitive;
    let mut field = field.clone();
    let primitive = match field.kind {
        Kind::Primitive(Primitive::Float) if field.encoding.is_none_or(|encoding| encoding.range().is_none()) => {
            Some((Primitive::Double, "double"))
        }
        Kind::Primitive(Primitive::Int32) => Some((Primitive::Int64, "std::int64_t")),
        Kind::Primitive(Primitive::UInt32) => Some((Primitive::UInt64, "std::uint64_t")),
        _ => None,
    };
    if let Some((primitive, name)) = primitive {
        (field.kind, field.type_name, field.encoding) = (Kind::Primitive(primitive), name.to_owned(), None);
        return field;
    }
    field.kind = match field.kind {
        Kind::Collection(item) => Kind::Collection(Box::new(widened(&item))),
        Kind::Record(members) => Kind::Record(members.iter().map(widened).collect()),
        other => other,
    };
    field
}

/// Whether wide values are the plain ones.
fn agrees(wide: &ArrayRef, plain: &ArrayRef) -> bool {
    match (wide.data_type(), plain.data_type()) {
        (DataType::Float64, DataType::Float32) => {
            let (wide, plain) = (wide.as_primitive::<Float64Type>(), plain.as_primitive::<Float32Type>());
            wide.iter().zip(plain).all(|(wide, plain)| wide.map(f64::to_bits) == plain.map(|f| f64::from(f).to_bits()))
        }
        (DataType::Int64, DataType::Int32) => {
            let (wide, plain) = (wide.as_primitive::<Int64Type>(), plain.as_primitive::<Int32Type>());
            wide.iter().zip(plain).all(|(wide, plain)| wide == plain.map(i64::from))
        }
        (DataType::UInt64, DataType::UInt32) => {
            let (wide, plain) = (wide.as_primitive::<UInt64Type>(), plain.as_primitive::<UInt32Type>());
            wide.iter().zip(plain).all(|(wide, plain)| wide == plain.map(u64::from))
        }
        (DataType::LargeList(_), DataType::LargeList(_)) => {
            let (wide, plain) = (wide.as_list::<i64>(), plain.as_list::<i64>());
            wide.offsets() == plain.offsets() && agrees(wide.values(), plain.values())
        }
        (DataType::Struct(_), DataType::Struct(_)) => {
            let (wide, plain) = (wide.as_struct(), plain.as_struct());
            wide.len() == plain.len()
                && wide.columns().iter().zip(plain.columns()).all(|(wide, plain)| agrees(wide, plain))
        }
        _ => wide == plain,
    }
}

#[test]
fn real_ntuples_can_be_read_wider_than_they_are() {
    let (mut ntuples, mut fields) = (0, 0);
    for path in summary::real_files() {
        let file = memory::file(&Bytes::from(std::fs::read(&path).expect("a file"))).expect("a ROOT file");
        for name in file.ntuple_names().expect("its directories") {
            let ntuple = file.ntuple(Some(&name)).expect("an ntuple");
            let plain = ntuple.read_all().to_batch().expect("all data");
            let schema = ntuple.read_all().schema().clone();
            let same = ntuple.read_all().with_schema(&schema).expect("its own schema");
            assert_eq!(same.to_batch().expect("the same"), plain);
            let wanted = Schema { fields: schema.fields.iter().map(widened).collect() };
            let wide = ntuple.read_all().with_schema(&wanted).expect("a wider schema").to_batch().expect("its data");
            for (wide, plain) in wide.columns().iter().zip(plain.columns()) {
                assert!(agrees(wide, plain), "{}:{name}", path.display());
            }
            ntuples += 1;
            fields += wide.num_columns();
        }
    }
    summary::note("evolution-wider", &format!("{fields} fields of {ntuples} real ntuples read as wider types"));
}

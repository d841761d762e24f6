//! Fields, columns, projections, schema extensions.

use tupelo_format::encoding::ColumnType;
use tupelo_format::envelope::{AliasColumnRecord, ColumnRecord, ExtraTypeInfo, FieldRecord, role};

use super::{Bad, flat, nested};
use crate::model::{Column, Model, Page};

fn field(model: &mut Model, id: usize) -> &mut FieldRecord {
    &mut model.header.schema.fields[id]
}

fn column(model: &mut Model, id: usize) -> &mut ColumnRecord {
    &mut model.header.schema.columns[id]
}

fn stored_as(model: &mut Model, id: usize, column_type: ColumnType, bits: u16, range: Option<(f64, f64)>) {
    let record = column(model, id);
    (record.column_type, record.bits, record.range) = (column_type.code(), bits, range);
}

fn plain(name: &str, type_name: &str, parent: u32) -> FieldRecord {
    FieldRecord { name: name.into(), type_name: type_name.into(), parent, ..FieldRecord::default() }
}

/// A field that shows another one's columns.
fn project(model: &mut Model, source: u32, type_name: &str, aliases: &[u32]) {
    let fields = &mut model.header.schema.fields;
    let id = fields.len() as u32;
    let role = fields.get(source as usize).map_or(role::PLAIN, |source| source.role);
    fields.push(FieldRecord { source: Some(source), role, ..plain("p", type_name, id) });
    let alias = |&column: &u32| AliasColumnRecord { column, field: id };
    model.header.schema.alias_columns.extend(aliases.iter().map(alias));
}

/// A field `late` of 32-bit integers that the footer adds.
fn extend(model: &mut Model, name: &str, parent: Option<u32>, field: u32) {
    model.footer.extension.fields.push(plain(name, "std::int32_t", parent.unwrap_or(2)));
    let column_type = ColumnType::Int32.code();
    model.footer.extension.columns.push(ColumnRecord { column_type, bits: 32, field, ..ColumnRecord::default() });
}

/// Lists a column with these numbers in each cluster of [`flat`]; `None` lists it as suppressed.
fn list(model: &mut Model, pages: [Option<&[i32]>; 2], first: [u64; 2]) {
    for ((cluster, numbers), first) in model.groups[0].clusters.iter_mut().zip(pages).zip(first) {
        let page = |numbers: &[i32]| Page {
            elements: numbers.len() as u32,
            stored: numbers.iter().flat_map(|n| n.to_le_bytes()).collect(),
            checksum: Some(None),
            locator: None,
            digest: None,
        };
        let pages = numbers.filter(|numbers| !numbers.is_empty()).map(page).into_iter().collect();
        cluster.columns.push(Column { pages, first_element: numbers.map(|_| first), compression: 0 });
    }
}

/// Another representation of column 0, without pages.
fn represent(model: &mut Model, representation: u16, column_type: ColumnType) {
    let record = ColumnRecord { column_type: column_type.code(), bits: 32, representation, ..ColumnRecord::default() };
    model.header.schema.columns.push(record);
    list(model, [None, None], [0, 0]);
}

const ANY: &[i32] = &[1, 2, 3, 4];

pub(super) const BAD: &[Bad] = &[
    flat("24-field-name-empty", |m| field(m, 0).name.clear()),
    flat("24-field-name-dot", |m| field(m, 0).name = ".".into()),
    flat("24-field-name-backslash", |m| field(m, 0).name = "a\\b".into()),
    flat("24-field-name-zero-byte", |m| field(m, 0).name = "a\0b".into()),
    flat("24-field-name-of-1-mib", |m| field(m, 0).name = "x".repeat(1 << 20)),
    flat("24-field-name-of-64-kib", |m| field(m, 0).name = "x".repeat(64 << 10)),
    flat("24-field-name-of-64-kib-and-1", |m| field(m, 0).name = "x".repeat((64 << 10) + 1)),
    flat("24-ntuple-name-empty", |m| m.header.name.clear()),
    flat("24-ntuple-name-slash", |m| m.header.name = "/".into()),
    flat("24-ntuple-name-of-1-mib", |m| m.header.name = "x".repeat(1 << 20)),
    flat("24-description-of-1-mib", |m| m.header.description = "x".repeat(1 << 20)),
    flat("24-description-of-17-mib", |m| m.header.description = "x".repeat(17 << 20)),
    flat("24-field-name-parent-folder", |m| field(m, 0).name = "..".into()),
    flat("24-field-name-slash", |m| field(m, 0).name = "/".into()),
    flat("24-field-name-escape", |m| field(m, 0).name = "\x1b[31m".into()),
    flat("24-ntuple-name-escape", |m| m.header.name = "\x1b[31m".into()),
    flat("25-same-name-twice", |m| field(m, 1).name = "i".into()),
    nested("25-items-renamed", |m| field(m, 1).name = "x".into()),
    nested("25-alternatives-of-one-name", |m| field(m, 7).name = "_0".into()),
    flat("28-parent-max", |m| field(m, 1).parent = u32::MAX),
    flat("28-parent-missing", |m| field(m, 1).parent = 7),
    flat("29-parent-comes-later", |m| field(m, 0).parent = 1),
    flat("29-parent-is-a-streamer", |m| {
        field(m, 0).role = role::STREAMER;
        field(m, 1).parent = 0;
    }),
    flat("29-parent-is-a-leaf", |m| field(m, 1).parent = 0),
    flat("30-parents-in-a-circle", |m| {
        field(m, 0).parent = 1;
        field(m, 1).parent = 0;
    }),
    nested("30-parents-in-a-circle-of-3", |m| {
        field(m, 1).parent = 2;
        field(m, 2).parent = 4;
        field(m, 4).parent = 1;
    }),
    nested("30-all-below-one-collection", |m| {
        for id in 1..9 {
            field(m, id).parent = 0;
            field(m, id).name = format!("_{id}");
        }
    }),
    flat("31-role-unknown", |m| field(m, 0).role = 9),
    flat("31-role-collection", |m| field(m, 0).role = role::COLLECTION),
    flat("31-role-record-with-a-column", |m| field(m, 0).role = role::RECORD),
    flat("31-role-streamer", |m| field(m, 0).role = role::STREAMER),
    flat("31-field-version-7", |m| field(m, 0).field_version = 7),
    nested("31-variant-as-record", |m| field(m, 5).role = role::RECORD),
    nested("32-array-0", |m| array(m, 0)),
    nested("32-array-3", |m| array(m, 3)),
    nested("32-array-1", |m| array(m, 1)),
    nested("32-array-2-40", |m| array(m, 1 << 40)),
    nested("32-array-2-63", |m| array(m, 1 << 63)),
    nested("32-array-max", |m| array(m, u64::MAX)),
    nested("32-array-10-9-and-its-type", |m| {
        array(m, 1_000_000_000);
        field(m, 8).type_name = "std::array<float,1000000000>".into();
    }),
    flat("32-bitset-2-40", |m| {
        stored_as(m, 0, ColumnType::Bit, 1, None);
        field(m, 0).type_name = "std::bitset<1099511627776>".into();
        field(m, 0).array_size = Some(1 << 40);
    }),
    flat("32-bitset-max", |m| {
        stored_as(m, 0, ColumnType::Bit, 1, None);
        field(m, 0).array_size = Some(u64::MAX);
    }),
    flat("33-type-empty", |m| field(m, 0).type_name.clear()),
    flat("33-type-of-control-characters", |m| field(m, 0).type_name = "\0\x1b[31m<\n>".into()),
    flat("33-type-of-brackets", |m| field(m, 0).type_name = ">><<".into()),
    nested("33-type-of-an-empty-argument", |m| field(m, 0).type_name = "std::vector<,,>".into()),
    flat("33-type-unknown", |m| field(m, 0).type_name = "No::Such<Type>".into()),
    flat("33-type-unbalanced", |m| field(m, 0).type_name = "std::vector<<".into()),
    nested("33-type-of-a-collection", |m| field(m, 0).type_name = "std::map<int,".into()),
    flat("34-type-nested-200", |m| field(m, 0).type_name = format!("{}int{}", "a<".repeat(200), ">".repeat(200))),
    flat("34-type-nested-10000", |m| {
        field(m, 0).type_name = format!("{}int{}", "std::vector<".repeat(10_000), ">".repeat(10_000));
    }),
    flat("34-type-of-100000-brackets", |m| field(m, 0).type_name = "<".repeat(100_000)),
    nested("34-type-nested-64-kib", |m| {
        field(m, 0).type_name = format!("std::optional<{}{}>", "<".repeat(32 << 10), ">".repeat(32 << 10));
    }),
    flat("34-type-of-17-mib", |m| field(m, 0).type_name = "a<".repeat(17 << 19)),
    flat("36-fields-nested-66", |m| {
        let fields = &mut m.header.schema.fields;
        let first = fields.len() as u32;
        let record = |id: u32| FieldRecord { role: role::RECORD, ..plain("r", "", id.saturating_sub(1).max(first)) };
        fields.extend((first..first + 66).map(record));
    }),
    flat("38-column-type-unknown", |m| column(m, 0).column_type = 0x1e),
    flat("38-column-type-unknown-and-wide", |m| (column(m, 0).column_type, column(m, 0).bits) = (0xffff, 0xffff)),
    flat("39-bits-0", |m| column(m, 0).bits = 0),
    flat("39-bits-7", |m| column(m, 0).bits = 7),
    flat("39-bits-max", |m| column(m, 0).bits = u16::MAX),
    flat("39-bits-64", |m| column(m, 0).bits = 64),
    flat("40-trunc-0", |m| stored_as(m, 1, ColumnType::Real32Trunc, 0, None)),
    flat("40-trunc-33", |m| stored_as(m, 1, ColumnType::Real32Trunc, 33, None)),
    flat("40-quant-max", |m| stored_as(m, 1, ColumnType::Real32Quant, u16::MAX, Some((0.0, 1.0)))),
    flat("40-trunc-9", |m| stored_as(m, 1, ColumnType::Real32Trunc, 9, None)),
    flat("40-quant-0", |m| stored_as(m, 1, ColumnType::Real32Quant, 0, Some((0.0, 1.0)))),
    flat("40-quant-33", |m| stored_as(m, 1, ColumnType::Real32Quant, 33, Some((0.0, 1.0)))),
    flat("41-quant-without-range", |m| stored_as(m, 1, ColumnType::Real32Quant, 32, None)),
    flat("41-quant-nan", |m| stored_as(m, 1, ColumnType::Real32Quant, 32, Some((f64::NAN, 1.0)))),
    flat("41-quant-infinite", |m| stored_as(m, 1, ColumnType::Real32Quant, 32, Some((0.0, f64::INFINITY)))),
    flat("41-quant-empty", |m| stored_as(m, 1, ColumnType::Real32Quant, 32, Some((1.0, 1.0)))),
    flat("41-range-of-nan-where-none-belongs", |m| column(m, 1).range = Some((f64::NAN, f64::NAN))),
    flat("41-quant-inverted", |m| stored_as(m, 1, ColumnType::Real32Quant, 32, Some((1.0, 0.0)))),
    flat("41-quant-too-wide", |m| stored_as(m, 1, ColumnType::Real32Quant, 32, Some((-f64::MAX, f64::MAX)))),
    flat("41-quant-beyond-float", |m| stored_as(m, 1, ColumnType::Real32Quant, 32, Some((0.0, 1e300)))),
    flat("42-column-of-no-field", |m| column(m, 1).field = 7),
    flat("42-columns-of-one-field", |m| column(m, 1).field = 0),
    flat("42-columns-swapped", |m| (column(m, 0).field, column(m, 1).field) = (1, 0)),
    flat("43-representation-1-alone", |m| column(m, 0).representation = 1),
    flat("43-representation-max", |m| column(m, 0).representation = u16::MAX),
    flat("43-representation-never-used", |m| represent(m, 1, ColumnType::SplitInt32)),
    flat("43-representation-2-without-1", |m| represent(m, 2, ColumnType::SplitInt32)),
    flat("43-representation-not-listed", |m| {
        let record = ColumnRecord { representation: 1, ..m.header.schema.columns[0].clone() };
        m.header.schema.columns.push(record);
    }),
    nested("43-representation-of-one-column-of-two", |m| {
        let record = ColumnRecord { representation: 1, ..m.header.schema.columns[2].clone() };
        m.header.schema.columns.push(record);
        m.groups[0].clusters[0].columns.push(Column { pages: Vec::new(), first_element: None, compression: 0 });
    }),
    flat("43-representation-of-another-type", |m| represent(m, 1, ColumnType::Real32)),
    flat("43-representation-stored-twice", |m| {
        represent(m, 1, ColumnType::SplitInt32);
        let pages = m.column(0, 0).clone();
        *m.column(0, 2) = pages;
    }),
    flat("43-representation-stored-never", |m| {
        represent(m, 1, ColumnType::SplitInt32);
        *m.column(1, 0) = Column { pages: Vec::new(), first_element: None, compression: 0 };
    }),
    flat("44-deferred-at-2-40", |m| column(m, 0).first_element = Some(1 << 40)),
    flat("44-deferred-at-2-62-and-short", |m| {
        column(m, 0).first_element = Some(1 << 62);
        m.column(0, 0).pages.pop();
    }),
    flat("44-deferred-at-2-and-short", |m| {
        column(m, 0).first_element = Some(2);
        m.column(0, 0).pages.remove(0);
    }),
    flat("44-deferred-negative", |m| column(m, 0).first_element = Some(-1)),
    flat("44-deferred-min", |m| column(m, 0).first_element = Some(i64::MIN)),
    flat("45-column-missing", |m| m.header.schema.columns.truncate(1)),
    flat("45-column-extra", |m| {
        let extra = m.header.schema.columns[0].clone();
        m.header.schema.columns.push(extra);
    }),
    flat("45-column-char-for-int", |m| stored_as(m, 0, ColumnType::Char, 8, None)),
    nested("45-index-is-real", |m| stored_as(m, 0, ColumnType::Real64, 64, None)),
    nested("45-switch-is-index", |m| stored_as(m, 6, ColumnType::Index64, 64, None)),
    flat("46-column-wider-than-its-pages", |m| stored_as(m, 0, ColumnType::Int64, 64, None)),
    flat("46-bit-for-int", |m| stored_as(m, 0, ColumnType::Bit, 1, None)),
    flat("46-int-narrower-than-its-pages", |m| stored_as(m, 0, ColumnType::Int16, 16, None)),
    flat("46-bytes-for-an-unknown-type", |m| {
        field(m, 0).type_name = "No::Such".into();
        stored_as(m, 0, ColumnType::Byte, 8, None);
    }),
    flat("46-double-for-float", |m| {
        field(m, 1).type_name = "double".into();
        stored_as(m, 1, ColumnType::Real64, 64, None);
    }),
    nested("46-index-32-for-64", |m| stored_as(m, 0, ColumnType::Index32, 32, None)),
    flat("47-split-tag-on-plain-floats", |m| stored_as(m, 1, ColumnType::SplitReal32, 32, None)),
    nested("47-split-tag-on-a-plain-index", |m| stored_as(m, 0, ColumnType::SplitIndex64, 64, None)),
    flat("48-alias-to-no-column", |m| project(m, 0, "std::int32_t", &[9])),
    flat("48-alias-to-another-column", |m| project(m, 0, "std::int32_t", &[1])),
    flat("48-alias-missing", |m| project(m, 0, "std::int32_t", &[])),
    flat("48-alias-of-no-field", |m| {
        m.header.schema.alias_columns.push(AliasColumnRecord { column: 0, field: 9 });
    }),
    flat("48-alias-twice", |m| project(m, 0, "std::int32_t", &[0, 0])),
    flat("48-column-of-a-projection", |m| {
        project(m, 0, "std::int32_t", &[0]);
        let record = ColumnRecord { field: 2, ..m.header.schema.columns[0].clone() };
        m.header.schema.columns.push(record);
    }),
    flat("48-alias-of-a-plain-field", |m| {
        m.header.schema.alias_columns.push(AliasColumnRecord { column: 0, field: 1 });
    }),
    flat("49-projection-good", |m| project(m, 0, "std::int32_t", &[0])),
    flat("49-projection-of-itself", |m| project(m, 2, "std::int32_t", &[0])),
    flat("49-projection-of-nothing", |m| project(m, 9, "std::int32_t", &[0])),
    flat("49-projection-of-another-type", |m| project(m, 0, "float", &[0])),
    flat("49-projection-of-a-projection", |m| {
        project(m, 0, "std::int32_t", &[0]);
        project(m, 2, "std::int32_t", &[0]);
        field(m, 3).name = "q".into();
    }),
    flat("49-projections-in-a-circle", |m| {
        project(m, 3, "std::int32_t", &[]);
        project(m, 2, "std::int32_t", &[]);
        field(m, 3).name = "q".into();
    }),
    flat("49-projection-of-itself-later", |m| project(m, u32::MAX, "std::int32_t", &[0])),
    flat("49-projection-of-another-role", |m| {
        project(m, 0, "std::int32_t", &[0]);
        field(m, 2).role = role::STREAMER;
    }),
    nested("49-projection-of-a-variant", |m| project(m, 5, "std::variant<std::int32_t,float>", &[6])),
    nested("49-projection-of-an-array", |m| {
        project(m, 8, "std::array<float,2>", &[]);
        field(m, 10).array_size = Some(2);
    }),
    nested("49-projection-out-of-a-collection", |m| project(m, 1, "float", &[1])),
    nested("49-cardinality-of-a-number", |m| project(m, 3, "ROOT::RNTupleCardinality<std::uint32_t>", &[4])),
    flat("50-type-information-unknown", |m| m.header.schema.extra_type_info.push(information(77))),
    flat("50-type-information-garbage", |m| m.header.schema.extra_type_info.push(information(0))),
    flat("50-type-information-cut", |m| {
        m.header.schema.extra_type_info.push(information(0));
        m.edit_bytes(crate::model::Stage::Payload(tupelo_format::envelope::EnvelopeType::Header), |payload| {
            let content = super::find(payload, &[0xff; 20], 0);
            super::set(payload, content - 4, &(1u32 << 31).to_le_bytes());
        });
    }),
    nested("51-variant-of-126", |m| {
        let fields = &mut m.header.schema.fields;
        let first = fields.len();
        fields.extend((first..first + 124).map(|id| plain(&format!("_{id}"), "float", 5)));
    }),
    nested("51-variant-of-nothing", |m| {
        for id in 6..8 {
            field(m, id).parent = id as u32;
            field(m, id).name = format!("v{id}");
        }
    }),
    flat("60-late-field", |m| extend(m, "late", None, 2)),
    flat("60-late-field-from-entry-7", |m| {
        extend(m, "late", None, 2);
        m.footer.extension.columns[0].first_element = Some(7);
        list(m, [Some(&[]), Some(&[7, 8, 9])], [7, 7]);
    }),
    flat("60-late-field-from-another-entry", |m| {
        extend(m, "late", None, 2);
        m.footer.extension.columns[0].first_element = Some(8);
        list(m, [Some(&[]), Some(&[7, 8, 9])], [8, 8]);
    }),
    flat("60-late-field-too-long", |m| {
        extend(m, "late", None, 2);
        m.footer.extension.columns[0].first_element = Some(5);
        list(m, [Some(&[1, 2, 3, 4, 5, 6, 7]), Some(ANY)], [0, 6]);
    }),
    flat("60-late-field-too-short", |m| {
        extend(m, "late", None, 2);
        list(m, [Some(ANY), Some(ANY)], [0, 6]);
    }),
    flat("60-late-field-stored-never", |m| {
        extend(m, "late", None, 2);
        list(m, [None, None], [0, 0]);
    }),
    flat("60-late-field-of-a-known-name", |m| extend(m, "f", None, 2)),
    flat("60-late-field-without-its-parent", |m| extend(m, "late", Some(9), 2)),
    flat("60-late-column-of-no-field", |m| extend(m, "late", None, 9)),
    flat("60-late-column-of-an-old-field", |m| extend(m, "late", None, 0)),
];

/// The size of `a`.
fn array(model: &mut Model, size: u64) {
    let fields = &mut model.header.schema.fields;
    let array = fields.iter_mut().find(|field| field.array_size.is_some()).expect("an array");
    array.array_size = Some(size);
}

fn information(content_id: u32) -> ExtraTypeInfo {
    ExtraTypeInfo { content_id, type_version: 0, type_name: String::new(), content: vec![0xff; 20] }
}

//! Every check of header, footer and page lists: what is just legal, and what is just not.

use super::*;
use crate::ErrorKind;
use crate::encoding::ColumnType;
use crate::envelope::{
    AliasColumnRecord, AttributeSetRecord, ClusterGroupRecord, ClusterSummary, ColumnPages, ColumnRecord, PageInfo,
    SchemaRecords, role,
};

const CHECKSUM: u64 = 77;
/// Ids of the sample's fields.
const STRING: u32 = 0;
const VECTOR: u32 = 1;
const ITEM: u32 = 2;
const PROJECTED: u32 = 3;
const PROJECTED_ITEM: u32 = 4;
const SIZE: u32 = 5;
const VARIANT: u32 = 6;

fn field(name: &str, type_name: &str, parent: u32, role: u16) -> FieldRecord {
    FieldRecord { name: name.into(), type_name: type_name.into(), parent, role, ..FieldRecord::default() }
}

fn projected(source: u32, field: FieldRecord) -> FieldRecord {
    FieldRecord { source: Some(source), ..field }
}

fn column(field: u32, column_type: ColumnType) -> ColumnRecord {
    let bits = *column_type.bits_range().start();
    ColumnRecord { column_type: column_type as u16, bits, field, ..ColumnRecord::default() }
}

fn index(field: u32) -> ColumnRecord {
    column(field, ColumnType::Index64)
}

fn chars(field: u32) -> ColumnRecord {
    column(field, ColumnType::Char)
}

fn float(field: u32) -> ColumnRecord {
    column(field, ColumnType::Real32)
}

fn group(min_entry: u64, entry_span: u64, clusters: u32) -> ClusterGroupRecord {
    let page_list = EnvelopeLink { length: 16, locator: Locator::File { offset: 1, bytes: 16 } };
    ClusterGroupRecord { min_entry, entry_span, clusters, page_list }
}

fn set(schema_major: u16, name: &str) -> AttributeSetRecord {
    let anchor = Locator::File { offset: 9, bytes: 78 };
    AttributeSetRecord { schema_major, schema_minor: 5, anchor_length: 78, anchor, name: name.into() }
}

/// A string, a vector with a projection and a cardinality, a variant; in the extension a late float. Two groups of
/// 3 + 2 entries in 2 + 1 clusters.
fn sample() -> (Header, Footer) {
    let header = SchemaRecords {
        fields: vec![
            field("s", "std::string", STRING, role::PLAIN),
            field("v", "std::vector<float>", VECTOR, role::COLLECTION),
            field("_0", "float", VECTOR, role::PLAIN),
            projected(VECTOR, field("p", "ROOT::VecOps::RVec<float>", PROJECTED, role::COLLECTION)),
            projected(ITEM, field("_0", "float", PROJECTED, role::PLAIN)),
            projected(VECTOR, field("n", "ROOT::RNTupleCardinality<std::uint32_t>", SIZE, role::PLAIN)),
            field("u", "std::variant<float,float>", VARIANT, role::VARIANT),
            field("_0", "float", VARIANT, role::PLAIN),
            field("_1", "float", VARIANT, role::PLAIN),
        ],
        columns: vec![
            index(STRING),
            chars(STRING),
            index(VECTOR),
            float(ITEM),
            column(VARIANT, ColumnType::Switch),
            float(7),
            float(8),
        ],
        alias_columns: vec![
            AliasColumnRecord { column: 2, field: PROJECTED },
            AliasColumnRecord { column: 3, field: PROJECTED_ITEM },
            AliasColumnRecord { column: 2, field: SIZE },
        ],
        ..SchemaRecords::default()
    };
    let extension = SchemaRecords {
        fields: vec![field("late", "float", 9, role::PLAIN)],
        columns: vec![ColumnRecord { first_element: Some(-4), ..float(9) }],
        ..SchemaRecords::default()
    };
    let footer = Footer {
        header_checksum: CHECKSUM,
        extension,
        cluster_groups: vec![group(0, 3, 2), group(3, 2, 1)],
        attribute_sets: vec![set(2, "later"), set(1, "known")],
        ..Footer::default()
    };
    (Header { name: "n".into(), schema: header, ..Header::default() }, footer)
}

fn built(edit: impl FnOnce(&mut Header, &mut Footer)) -> Result<Descriptor> {
    let (mut header, mut footer) = sample();
    edit(&mut header, &mut footer);
    Descriptor::new(header, CHECKSUM, footer)
}

fn with_schema(edit: impl FnOnce(&mut SchemaRecords)) -> Result<Descriptor> {
    built(|header, _| edit(&mut header.schema))
}

/// The schema is this, and nothing else.
fn only(fields: Vec<FieldRecord>, columns: Vec<ColumnRecord>) -> Result<Descriptor> {
    built(|header, footer| {
        header.schema = SchemaRecords { fields, columns, ..SchemaRecords::default() };
        footer.extension = SchemaRecords::default();
    })
}

fn ids<T: From<u32>>(numbers: &[u32]) -> Vec<T> {
    numbers.iter().map(|&number| number.into()).collect()
}

#[test]
fn a_whole_schema_is_joined() {
    let whole = built(|_, _| {}).unwrap();
    assert_eq!((whole.name(), whole.entries(), whole.clusters()), ("n", 5, 3));
    assert_eq!(whole.top_level(), ids(&[0, 1, 3, 5, 6, 9]));
    assert_eq!(whole.dropped(), []);
    let parents: Vec<_> = whole.fields().iter().map(|field| field.parent.map(|parent| parent.index())).collect();
    assert_eq!(parents, [None, None, Some(1), None, Some(3), None, None, Some(6), Some(6), None]);
    assert_eq!(whole.fields()[6].children, ids(&[7, 8]));
    let columns = |field: u32| whole.field(field.into()).unwrap().representations.clone();
    assert_eq!([STRING, VECTOR, ITEM].map(columns), [vec![ids(&[0, 1])], vec![ids(&[2])], vec![ids(&[3])]]);
    assert_eq!([PROJECTED, PROJECTED_ITEM, SIZE].map(columns), [vec![ids(&[2])], vec![ids(&[3])], vec![ids(&[2])]]);
    let late: Vec<_> = whole.columns().iter().map(|column| column.in_extension).collect();
    assert_eq!(late, [false, false, false, false, false, false, false, true]);
    let groups: Vec<_> = whole.cluster_groups().iter().map(|g| (g.first_entry, g.entries, g.first_cluster)).collect();
    assert_eq!(groups, [(0, 3, 0), (3, 2, 2)]);
    let sets: Vec<_> = whole.attribute_sets().iter().map(|set| set.name.as_str()).collect();
    assert_eq!(sets, ["known"]);
}

#[test]
fn the_sign_of_a_first_element_does_not_count() {
    let first =
        |stored| only(vec![field("x", "float", 0, 0)], vec![ColumnRecord { first_element: stored, ..float(0) }]);
    let first = |stored| first(stored).unwrap().columns()[0].first_element;
    let numbers = [None, Some(0), Some(5), Some(-5), Some(i64::MAX), Some(i64::MIN)];
    assert_eq!(numbers.map(first), [0, 0, 5, 5, i64::MAX as u64, 0]);
}

type SchemaCase = (&'static str, fn(&mut SchemaRecords));

#[test]
fn each_reference_that_leads_nowhere_is_refused() {
    let cases: &[SchemaCase] = &[
        ("field 0 '': its name is empty", |s| s.fields[0].name.clear()),
        ("field 0 'a.b': its name contains '.'", |s| s.fields[0].name = "a.b".into()),
        ("field 0 'a/b': its name contains '/'", |s| s.fields[0].name = "a/b".into()),
        ("field 0 'a\\\\b': its name contains '\\\\'", |s| s.fields[0].name = "a\\b".into()),
        ("field 0 'a\\nb': its name contains '\\n'", |s| s.fields[0].name = "a\nb".into()),
        ("field 0 's': its parent is the later field 1", |s| s.fields[0].parent = 1),
        ("field 1 's': a sibling field has the same name", |s| s.fields[1].name = "s".into()),
        ("field 0 's': repetitive field has size 0", |s| s.fields[0].array_size = Some(0)),
        ("field 4 '_0': its parent 's' may have at most 0 subfields", |s| {
            s.fields[0].role = role::STREAMER;
            s.fields[4].parent = STRING;
        }),
        ("field 4 'a': its parent 'v' may have at most 1 subfields", |s| {
            s.fields[4] = field("a", "float", VECTOR, role::PLAIN);
        }),
        ("field 4 'b': its parent '_0' may have at most 1 subfields", |s| {
            s.fields[3] = field("a", "float", ITEM, role::PLAIN);
            s.fields[4] = field("b", "float", ITEM, role::PLAIN);
        }),
        ("column 0: its field 10 does not exist", |s| s.columns[0].field = 10),
        ("column 0: its field 3 is projected and must not have columns", |s| s.columns[0].field = PROJECTED),
        ("column 0: found representation 1 of 's' after 0 others", |s| s.columns[0].representation = 1),
        ("column 1: found representation 2 of 's' after 1 others", |s| s.columns[1].representation = 2),
        ("column 3: found representation 0 of 'v' after 2 others", |s| {
            s.columns[1] = index(VECTOR);
            s.columns[2].representation = 1;
            s.columns[3] = index(VECTOR);
        }),
        ("field 0: its representations have different numbers of columns", |s| {
            s.columns[3] = ColumnRecord { representation: 1, ..index(STRING) };
            s.alias_columns.clear();
        }),
        ("alias column 0: column 8 does not exist", |s| s.alias_columns[0].column = 8),
        ("alias column 0: field 10 does not exist", |s| s.alias_columns[0].field = 10),
        ("alias column 0: field 1 is not projected", |s| s.alias_columns[0].field = VECTOR),
        ("alias column 0: column 3 belongs to field 2, but field 3 is projected from field 1", |s| {
            s.alias_columns[0].column = 3;
        }),
        ("alias column 3: found representation 0 of 'p' after 2 others", |s| {
            s.columns[3] = ColumnRecord { representation: 1, ..index(VECTOR) };
            let alias = |column| AliasColumnRecord { column, field: PROJECTED };
            s.alias_columns = [2, 2, 3, 2].map(alias).into();
        }),
        ("projected field 3 'p': its source does not exist", |s| s.fields[3].source = Some(10)),
        ("projected field 4 '_0': its source is itself a projected field", |s| s.fields[4].source = Some(PROJECTED)),
        ("projected field 5 'n': the source of a cardinality must be a collection", |s| s.fields[5].source = Some(0)),
        ("projected field 3 'p': its source has another structural role", |s| s.fields[3].source = Some(VARIANT)),
        ("projected field 4 '_0': its source has another type", |s| s.fields[4].type_name = "double".into()),
        ("projected field 5 'n': its source has another type", |s| {
            s.fields[0].role = role::STREAMER;
            s.fields[5] = projected(STRING, field("n", "std::wstring", SIZE, role::STREAMER));
        }),
        ("projected field 5 'n': variants and fixed arrays cannot be projected", |s| {
            s.fields[5].array_size = Some(3);
        }),
        ("projected field 5 'n': variants and fixed arrays cannot be projected", |s| {
            s.fields[5] = projected(VARIANT, field("n", "std::variant<float,float>", SIZE, role::VARIANT));
        }),
        ("projected field 5 'n': its source is in different collections", |s| {
            s.fields[5] = projected(ITEM, field("n", "float", SIZE, role::PLAIN));
        }),
        ("projected field 4 '_0': its source is in different collections", |s| {
            s.fields[3].source = None;
            s.fields[3].role = role::VARIANT;
        }),
    ];
    for (message, edit) in cases {
        let error = with_schema(edit).expect_err(message);
        assert_eq!((error.to_string().as_str(), error.kind()), (*message, ErrorKind::Corrupt));
    }
}

#[test]
fn subfields_and_their_depth_are_limited() {
    let nested = |levels: u32| {
        let parents = (0..levels).map(|id| id.saturating_sub(1));
        only(parents.map(|parent| field("r", "", parent, role::RECORD)).collect(), Vec::new())
    };
    assert!(nested(MAX_FIELD_DEPTH as u32 + 1).is_ok());
    let error = nested(MAX_FIELD_DEPTH as u32 + 2).unwrap_err();
    assert_eq!((error.what(), error.kind()), ("field 65: fields are nested more than 64 deep", ErrorKind::Limit));
    let wide = |role: u16, children: u32| {
        let children = (0..children).map(|number| field(&format!("_{number}"), "float", 0, role::PLAIN));
        only([field("u", "", 0, role)].into_iter().chain(children).collect(), Vec::new())
    };
    assert!(wide(role::RECORD, 1000).is_ok());
    assert!(wide(role::VARIANT, 125).is_ok());
    let error = wide(role::VARIANT, 126).unwrap_err();
    assert_eq!(error.what(), "field 126 '_125': its parent 'u' may have at most 125 subfields");
}

#[test]
fn representations_may_follow_each_other() {
    let second = |column: ColumnRecord| ColumnRecord { representation: 1, ..column };
    let string = vec![index(0), chars(0), second(column(0, ColumnType::Index32)), second(chars(0))];
    let whole = only(vec![field("s", "std::string", 0, role::PLAIN)], string).unwrap();
    assert_eq!(whole.fields()[0].representations, [ids(&[0, 1]), ids(&[2, 3])]);
}

#[test]
fn a_streamer_field_is_projected_from_its_like() {
    let streamer = |name: &str, id| field(name, "T", id, role::STREAMER);
    assert!(only(vec![streamer("a", 0), projected(0, streamer("b", 1))], Vec::new()).is_ok());
}

/// The top-level fields, and name and reason of each dropped field.
fn readable(edit: impl FnOnce(&mut SchemaRecords)) -> (Vec<FieldId>, Vec<(String, String)>) {
    let whole = with_schema(edit).unwrap();
    let dropped = whole.dropped().iter().map(|dropped| (dropped.field.clone(), dropped.reason.clone())).collect();
    (whole.top_level().to_vec(), dropped)
}

#[test]
fn unknown_items_are_dropped_with_their_dependents() {
    let said = |field: &str, reason: &str| (field.to_owned(), reason.to_owned());
    let role = readable(|s| s.fields[6].role = 5);
    assert_eq!(role, (ids(&[0, 1, 3, 5, 9]), vec![said("u", "structural role 0x05 is unknown")]));
    let version = readable(|s| s.fields[0].field_version = 1);
    assert_eq!(version, (ids(&[1, 3, 5, 6, 9]), vec![said("s", "field version 1 is unknown")]));
    // Two reasons are one dropped field; its projections go with it, once each.
    let item = readable(|s| {
        s.columns[3].column_type = 0x77;
        s.fields[2].field_version = 1;
    });
    let gone = "it is projected from the dropped field 'v'";
    let reasons = vec![said("v", "subfield '_0': field version 1 is unknown"), said("p", gone), said("n", gone)];
    assert_eq!(item, (ids(&[0, 6, 9]), reasons));
    let alone = readable(|s| {
        s.columns[4].column_type = 0x77;
        s.fields[0].role = role::STREAMER;
    });
    assert_eq!(alone, (ids(&[0, 1, 3, 5, 9]), vec![said("u", "column type 0x77 is unknown")]));
}

type FooterCase = (&'static str, fn(&mut Footer));

#[test]
fn cluster_groups_follow_each_other() {
    let cases: &[FooterCase] = &[
        ("footer: belongs to another header (expected checksum 000000000000004d, found 000000000000004c)", |f| {
            f.header_checksum -= 1;
        }),
        ("footer: cluster group 1: it begins at entry 4, expected entry 3", |f| f.cluster_groups[1].min_entry = 4),
        ("footer: cluster group 1: it begins at entry 2, expected entry 3", |f| f.cluster_groups[1].min_entry = 2),
        ("footer: cluster group 0: its page list of 15 bytes is too short", |f| {
            f.cluster_groups[0].page_list.length = 15
        }),
        ("footer: cluster group 1: it covers too many entries: 9223372036854775805", |f| {
            f.cluster_groups[1].entry_span = (1 << 63) - 3;
        }),
        ("footer: cluster group 1: it covers too many entries: 18446744073709551615", |f| {
            f.cluster_groups[1].entry_span = u64::MAX;
        }),
    ];
    for (message, edit) in cases {
        let error = built(|_, footer| edit(footer)).expect_err(message);
        assert_eq!((error.to_string().as_str(), error.kind()), (*message, ErrorKind::Corrupt));
    }
    let longest = built(|_, footer| footer.cluster_groups[1].entry_span = (1 << 63) - 4).unwrap();
    assert_eq!(longest.entries(), (1 << 63) - 1);
    assert!(built(|_, footer| footer.cluster_groups[0].page_list.length = 17).is_ok());
}

/// Checks a list of clusters, each `(first entry, entries, columns, elements of the last column)`, as that of a group.
fn check(group: usize, clusters: &[(u64, u64, usize, u32)]) -> Result<()> {
    let whole = built(|_, _| {}).unwrap();
    let stored = |&(first_entry, entries, columns, elements): &(u64, u64, usize, u32)| {
        let page = PageInfo { elements, has_checksum: false, locator: Locator::Unknown { kind: 9 }, digest: None };
        let mut listed = vec![ColumnPages { pages: Vec::new(), first_element: Some(0), compression: 0 }; columns];
        if let Some(last) = listed.last_mut() {
            last.pages.push(page);
        }
        (ClusterSummary { first_entry, entries, flags: 0 }, listed)
    };
    let listed: Vec<_> = clusters.iter().map(stored).collect();
    let bytes = PageList::write(CHECKSUM, listed.iter().map(|(summary, columns)| (*summary, columns.iter())));
    let list = PageList::read(bytes.into(), CHECKSUM).unwrap();
    whole.check_page_list(&whole.cluster_groups()[group], &list)
}

#[test]
fn a_page_list_must_match_its_group() {
    // Those of the extension need not be listed; a cluster may be empty, and list pages of nothing.
    assert_eq!(check(0, &[(0, 1, 7, 1), (1, 2, 8, 2)]), Ok(()));
    assert_eq!(check(0, &[(0, 3, 8, 1), (3, 0, 8, 0)]), Ok(()));
    assert_eq!(check(1, &[(3, 2, 8, 2)]), Ok(()));
    let refused = [
        (0, vec![(0, 3, 8, 3)], "found 1 clusters, but the footer says 2"),
        (1, vec![(3, 1, 8, 1), (4, 1, 8, 1)], "found 2 clusters, but the footer says 1"),
        (0, vec![(0, 1, 8, 1), (2, 1, 8, 1)], "cluster 1 begins at entry 2, expected entry 1"),
        (1, vec![(0, 5, 8, 1)], "cluster 2 begins at entry 0, expected entry 3"),
        (0, vec![(0, 1, 6, 1), (1, 2, 8, 2)], "cluster 0 lists 6 columns, but the schema has 8"),
        (0, vec![(0, 1, 8, 1), (1, 2, 9, 2)], "cluster 1 lists 9 columns, but the schema has 8"),
        (0, vec![(0, 3, 8, 3), (3, 0, 8, 1)], "cluster 1 has no entries, but column 7 has 1 elements"),
        (0, vec![(0, 1, 8, 1), (1, 1, 8, 1)], "its clusters end at entry 2, but the group ends at entry 3"),
        (1, vec![(3, 3, 8, 3)], "its clusters end at entry 6, but the group ends at entry 5"),
    ];
    for (group, clusters, message) in refused {
        let error = check(group, &clusters).expect_err(message);
        assert_eq!((error.to_string(), error.kind()), (format!("page list: {message}"), ErrorKind::Corrupt));
    }
}

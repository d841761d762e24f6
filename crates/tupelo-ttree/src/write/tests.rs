//! What is written is read again, without files.

use std::sync::Arc;

use arrow_array::builder::{Float32Builder, LargeListBuilder, LargeStringBuilder};
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeListArray, Float32Array, Int32Array, LargeListArray, LargeStringArray,
    StructArray, UInt16Array, UInt32Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field as ArrowField};
use tupelo_format::object::Basic;
use tupelo_format::streamer::class_checksum;
use tupelo_format::wire::Memory;

use super::plan::Planning;
use super::*;
use crate::basket::BasketHead;
use crate::fields::FieldKind;
use crate::tree::Stored;
use crate::{Column, Tree};

/// A tree in memory: its record and what lies at each offset.
struct Stage {
    plan: Plan,
    record: Vec<u8>,
    file: Vec<u8>,
}

const KEY_BYTES: u16 = 60;

fn stage(fields: &[Field], arrays: &[ArrayRef], planning: Planning, basket_bytes: u32) -> Stage {
    let plan = Plan::new("t", fields, planning).unwrap();
    let mut file = vec![0; 100];
    let mut written = Vec::new();
    let entries = arrays[0].len();
    for branch in &plan.branches {
        let mut state = Written { basket_bytes, ..Written::default() };
        if let Some((path, encoding)) = &branch.values {
            let array = column(&arrays[path[0]], &path[1..]).unwrap();
            let mut open = OpenBasket::new(branch);
            let (mut done, mut first) = (0, 0);
            while done < entries {
                let (taken, is_full) = open.append(encoding, &array, done..entries, basket_bytes as usize).unwrap();
                done += taken;
                if is_full || done == entries {
                    let basket = open.finish();
                    let offset = file.len() as u64;
                    let head = basket.head(offset, "t", &branch.name, basket.object.len(), 7).unwrap();
                    let bytes = (head.len() + basket.object.len()) as u32;
                    assert_eq!(head.len(), usize::from(basket.key_bytes));
                    file.extend(head);
                    file.extend(&basket.object);
                    state.baskets.push(BasketPlace { first_entry: first, offset, bytes });
                    first += u64::from(basket.entries);
                    state.bytes = state.bytes.map(|sum| sum + u64::from(bytes));
                }
            }
        }
        written.push(state);
    }
    let record = TreeRecord {
        name: "t",
        title: "title",
        entries: entries as u64,
        compression: 0,
        auto_flush: 3,
        flushed_bytes: 0,
        cluster_ranges: &[(4, 2)],
        weight: 1.0,
        aliases: &[],
        attached: [&tupelo_format::object::Value::Null; 3],
        branches: &plan.branches,
        written: &written,
    };
    let record = record.stream(KEY_BYTES);
    Stage { plan, record: record.unwrap(), file }
}

impl Stage {
    fn tree(&self) -> Tree {
        Tree::read(&self.record, KEY_BYTES, "TTree", &self.plan.infos, &Memory::unlimited()).unwrap()
    }

    /// Checks the values of a branch with a path.
    fn check(&self, path: &str, expected: &ArrayRef) {
        let tree = self.tree();
        let (fields, refused) = tree.fields(&self.plan.infos, &Memory::unlimited()).unwrap();
        assert!(refused.is_empty(), "{refused:?}");
        let mut fields = &fields;
        let mut names = path.split('.').peekable();
        loop {
            let name = names.next().unwrap();
            let field =
                fields.iter().find(|field| field.name == name).unwrap_or_else(|| panic!("{name} in {fields:?}"));
            match &field.kind {
                FieldKind::Record(members) | FieldKind::Collection { items: members, .. } => fields = members,
                FieldKind::Value { branch, layout } => {
                    assert_eq!(names.peek(), None);
                    let mut column = Column::new(layout);
                    for place in &tree.branches[*branch].baskets {
                        let Stored::InFile { offset, bytes } = place.stored else { panic!("{place:?}") };
                        let record = &self.file[offset as usize..][..bytes as usize];
                        let head = BasketHead::read(record, offset).unwrap();
                        let basket = head.open(&record[usize::from(head.key_bytes)..]).unwrap();
                        column.read(layout, &basket, 0..basket.entries, &Memory::new(u64::MAX)).unwrap();
                    }
                    let read = column.finish(layout, expected.data_type()).unwrap();
                    assert_eq!(read.to_data(), expected.to_data(), "{path}");
                    return;
                }
            }
        }
    }
}

fn lists() -> ArrayRef {
    let mut lists =
        LargeListBuilder::new(Float32Builder::new()).with_field(ArrowField::new("item", DataType::Float32, false));
    for length in [0_usize, 3, 1, 0, 2] {
        lists.values().append_slice(&[1.5, -2.0, 3.25][..length]);
        lists.append(true);
    }
    Arc::new(lists.finish())
}

fn texts() -> ArrayRef {
    let long = "x".repeat(300);
    Arc::new(LargeStringArray::from(vec!["", "a", &long, "äöü", "end"]))
}

fn field(name: &str, form: Form) -> Field {
    Field { name: name.to_owned(), form, title: String::new(), counter: None, jagged: None, spelling: None }
}

fn list_of(item: Form) -> Form {
    Form::List(Box::new(item))
}

fn flat() -> (Vec<Field>, Vec<ArrayRef>) {
    let fixed = FixedSizeListArray::new(
        Arc::new(ArrowField::new("item", DataType::Float32, false)),
        2,
        Arc::new(Float32Array::from_iter_values((0..10_u8).map(f32::from))),
        None,
    );
    let fields = vec![
        field("i", Form::Number(Basic::I32)),
        field("u", Form::Number(Basic::U16)),
        field("b", Form::Number(Basic::Bool)),
        field("s", Form::Text),
        field("a", Form::Fixed(2, Box::new(Form::Number(Basic::F32)))),
        field("x", list_of(Form::Number(Basic::F32))),
    ];
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(vec![1, -2, 3, i32::MIN, i32::MAX])),
        Arc::new(UInt16Array::from(vec![0, 1, 2, 3, u16::MAX])),
        Arc::new(BooleanArray::from(vec![true, false, true, true, false])),
        texts(),
        Arc::new(fixed),
        lists(),
    ];
    (fields, arrays)
}

const COUNTER: Planning = Planning { jagged: Jagged::Counter, split_level: 99, keeps_names: false };
const VECTOR: Planning = Planning { jagged: Jagged::Vector, split_level: 99, keeps_names: false };

#[test]
fn flat_branches_come_back_in_baskets_of_any_size() {
    let (fields, arrays) = flat();
    for planning in [COUNTER, VECTOR] {
        for basket_bytes in [1, 110, 400, 32_000] {
            let stage = stage(&fields, &arrays, planning, basket_bytes);
            fields.iter().zip(&arrays).for_each(|(field, array)| stage.check(&field.name, array));
        }
    }
}

#[test]
fn the_tree_says_what_it_is() {
    let (fields, arrays) = flat();
    let stage = stage(&fields, &arrays, COUNTER, 32_000);
    let tree = stage.tree();
    assert_eq!((tree.name.as_str(), tree.title.as_str(), tree.entries, tree.auto_flush), ("t", "title", 5, 3));
    let titles: Vec<&str> = tree.branches.iter().map(|branch| branch.title.as_str()).collect();
    assert_eq!(titles, ["i/I", "u/s", "b/O", "s/C", "a[2]/F", "nx/I", "x[nx]/F"]);
    assert_eq!(tree.cluster_ranges, [(4, 2)].into_iter().filter(|range| range.0 < 5).collect::<Vec<_>>());
    let lists = tree.branches.last().unwrap();
    assert_eq!(lists.leaves[0].counter, Some((5, 0)));
}

fn records() -> (Record, ArrayRef) {
    let mut names = LargeListBuilder::new(LargeStringBuilder::new()).with_field(ArrowField::new(
        "item",
        DataType::LargeUtf8,
        false,
    ));
    for length in [1, 0, 2, 0, 1] {
        (0..length).for_each(|index| names.values().append_value(format!("name {index}")));
        names.append(true);
    }
    let inner = Record::new("Inner", 1, vec![("x".into(), list_of(Form::Number(Basic::F32)))]);
    let outer = Record::new(
        "Outer",
        1,
        vec![
            ("id".into(), Form::Number(Basic::I32)),
            ("s".into(), Form::Text),
            ("names".into(), list_of(Form::Text)),
            ("inner".into(), Form::Record(inner)),
        ],
    );
    let column = |name: &str, array: &ArrayRef| Arc::new(ArrowField::new(name, array.data_type().clone(), false));
    let lists = lists();
    let inner: ArrayRef = Arc::new(StructArray::from(vec![(column("x", &lists), lists)]));
    let ids: ArrayRef = Arc::new(Int32Array::from(vec![5, 4, 3, 2, 1]));
    let (texts, names): (ArrayRef, ArrayRef) = (texts(), Arc::new(names.finish()));
    let members = [("id", ids), ("s", texts), ("names", names), ("inner", inner)];
    let members: Vec<_> = members.into_iter().map(|(name, array)| (column(name, &array), array)).collect();
    (outer, Arc::new(StructArray::from(members)))
}

#[test]
fn records_come_back_at_every_split_level() {
    let (record, array) = records();
    for (split_level, branches) in [(0, 1), (1, 5), (2, 6), (99, 6)] {
        let planning = Planning { split_level, ..COUNTER };
        let stage = stage(&[field("r", Form::Record(record.clone()))], std::slice::from_ref(&array), planning, 300);
        assert_eq!(stage.plan.branches.len(), branches, "{split_level}");
        let get = |path: &[usize]| column(&array, path).unwrap();
        match split_level {
            0 => stage.check("r", &array),
            1 => stage.check("r.inner", &get(&[3])),
            _ => stage.check("r.inner.x", &get(&[3, 0])),
        }
        if split_level > 0 {
            stage.check("r.id", &get(&[0]));
            stage.check("r.s", &get(&[1]));
            stage.check("r.names", &get(&[2]));
        }
    }
}

#[test]
fn lists_of_records_come_back_in_every_form() {
    let pt: ArrayRef = Arc::new(Float32Array::from(vec![1.0, 2.0, 3.0]));
    let ids: ArrayRef = Arc::new(Int32Array::from(vec![7, 8, 9]));
    let column = |name: &str, array: &ArrayRef| Arc::new(ArrowField::new(name, array.data_type().clone(), false));
    let items: ArrayRef = Arc::new(StructArray::from(vec![(column("pt", &pt), pt.clone()), (column("id", &ids), ids)]));
    let item = column("item", &items);
    let offsets = arrow_buffer::OffsetBuffer::new(vec![0_i64, 2, 2, 3].into());
    let array: ArrayRef = Arc::new(LargeListArray::new(item, offsets, items, None));
    let members = vec![("pt".into(), Form::Number(Basic::F32)), ("id".into(), Form::Number(Basic::I32))];
    let record = Form::Record(Record::new("Muon", 1, members));
    let fields = [field("m", list_of(record))];
    let arrays = [array.clone()];
    let get = |member: usize| super::column(&array, &[member]).unwrap();
    let counted = stage(&fields, &arrays, COUNTER, 32_000);
    counted.check("m_pt", &get(0));
    counted.check("m_id", &get(1));
    assert_eq!(counted.plan.branches.iter().filter(|branch| branch.is_counter()).count(), 1);
    stage(&fields, &arrays, Planning { split_level: 0, ..VECTOR }, 32_000).check("m", &array);
    let split = stage(&fields, &arrays, VECTOR, 32_000);
    split.check("m.pt", &get(0));
    let tree = split.tree();
    assert_eq!(tree.branches[1].leaves[0].counter, Some((0, 0)));
}

#[test]
fn lists_share_the_counter_that_they_name() {
    let counted = |name: &str| Field { counter: Some("n".into()), ..field(name, list_of(Form::Number(Basic::F32))) };
    let fields = [field("n", Form::Number(Basic::U32)), counted("x"), counted("y")];
    let titles = |planning| {
        let plan = Plan::new("t", &fields, planning).unwrap();
        plan.branches.into_iter().map(|branch| branch.title).collect::<Vec<_>>()
    };
    assert_eq!(titles(COUNTER), ["n/i", "x[n]/F", "y[n]/F"]);
    assert_eq!(titles(VECTOR), ["n/i", "x", "y"]);
    // A new counter does not take the name of another field.
    let fields = [field("nx", Form::Number(Basic::F32)), field("x", list_of(Form::Number(Basic::F32)))];
    let plan = Plan::new("t", &fields, COUNTER).unwrap();
    assert_eq!(plan.branches.iter().map(|branch| branch.name.as_str()).collect::<Vec<_>>(), ["nx", "nx_", "x"]);
}

#[test]
fn checksums_are_those_of_root() {
    // Computed by ROOT 6.40 for these classes.
    let point = Record::new(
        "WTPoint",
        1,
        vec![
            ("x".into(), Form::Number(Basic::F32)),
            ("n".into(), Form::Number(Basic::I32)),
            ("v".into(), list_of(Form::Number(Basic::F32))),
            ("s".into(), Form::Text),
            ("a".into(), Form::Fixed(3, Box::new(Form::Number(Basic::F64)))),
        ],
    );
    assert_eq!((point.checksum(), Form::Record(point.clone()).memory()), (2_607_787_748, (88, 8)));
    let outer = vec![("id".into(), Form::Number(Basic::I32)), ("p".into(), Form::Record(point))];
    assert_eq!(Record::new("WTOuter", 1, outer).checksum(), 987_040_485);
    assert_eq!(class_checksum("vector<vector<float> >", &[]), 2_170_935_584);
}

fn base(number: usize, class: &Record) -> (String, Form) {
    (format!(":_{number}"), Form::Record(class.clone()))
}

/// `struct I {virtual ~I();}; struct B1 : I {int b1; vector<float> bv;}; struct B2 {double b2;};
/// struct D : B1, B2 {float d; vector<int> dv; B2 inner;};`
fn derived() -> Record {
    let number = |name: &str, basic| (name.to_owned(), Form::Number(basic));
    let interface = Record::new("I0", 1, Vec::new());
    let floats = ("bv".to_owned(), list_of(Form::Number(Basic::F32)));
    let first = Record::new("B1", 1, vec![base(0, &interface), number("b1", Basic::I32), floats]);
    let second = Record::new("B2", 1, vec![number("b2", Basic::F64)]);
    let numbers = ("dv".to_owned(), list_of(Form::Number(Basic::I32)));
    let inner = ("inner".to_owned(), Form::Record(second.clone()));
    Record::new("D", 1, vec![base(0, &first), base(1, &second), number("d", Basic::F32), numbers, inner])
}

#[test]
fn classes_with_bases_are_those_of_root() {
    // Computed by ROOT 6.40.
    assert_eq!(derived().checksum(), 0xc80f_ccbc);
    let planned = |class: Record, split_level| {
        let planning = Planning { jagged: Jagged::Vector, split_level, keeps_names: false };
        Plan::new("t", &[field("x.", Form::Record(class))], planning).unwrap()
    };
    let branches = |class: Record, split_level| -> Vec<(String, i32, i32, i32)> {
        let about = |branch: Branch| {
            let object = branch.object.unwrap();
            (branch.name, object.kind, object.code, object.id)
        };
        planned(class, split_level).branches.into_iter().map(about).collect()
    };
    // Bases without members have no branches.
    let expected = [
        ("x.", 0, -1, -2),
        ("x.B1", 1, 0, 0),
        ("x.B1.b1", 0, 3, 1),
        ("x.B1.bv", 0, 300, 2),
        ("x.B2", 1, 0, 1),
        ("x.B2.b2", 0, 8, 0),
        ("x.d", 0, 5, 2),
        ("x.dv", 0, 300, 3),
        ("x.inner", 2, 62, 4),
        ("x.inner.b2", 0, 8, 0),
    ];
    assert_eq!(branches(derived(), 99), expected.map(|(name, kind, code, id)| (name.to_owned(), kind, code, id)));
    assert_eq!(branches(derived(), 0), [("x.".to_owned(), 0, -1, -1)]);
    let info = planned(derived(), 99).infos;
    let info = info.named("D").next().unwrap();
    assert_eq!((info.version, info.elements[0].code, info.elements[0].name.as_str()), (1, 0, "B1"));
}

/// ROOT computes where members are from the names of branches: only the first base of a whole object is a part of them.
#[test]
fn bases_of_bases_have_branches_named_as_those_of_root() {
    let number = |name: &str| (name.to_owned(), Form::Number(Basic::I32));
    let a = Record::new("A", 1, vec![number("a")]);
    let b = Record::new("B", 1, vec![base(0, &a)]);
    let c = Record::new("C", 1, vec![base(0, &Record::root_object()), number("c")]);
    let d = Record::new("D", 1, vec![base(0, &b), base(1, &c), number("d")]);
    let e = Record::new("E", 1, vec![base(0, &d)]);
    let of = |class: &Record| names(&[field("x.", Form::Record(class.clone()))], VECTOR);
    let expected = ["x.", "x.B", "x.B.A", "x.B.a", "x.C", "x.C.TObject", "x.C.fUniqueID", "x.C.fBits", "x.C.c", "x.d"];
    assert_eq!(of(&d), expected);
    let expected = [
        "x.",
        "x.D",
        "x.D.B",
        "x.D.A",
        "x.D.a",
        "x.D.C",
        "x.D.TObject",
        "x.D.fUniqueID",
        "x.D.fBits",
        "x.D.c",
        "x.D.d",
    ];
    assert_eq!(of(&e), expected);
}

#[test]
fn heirs_of_root_objects_come_back_at_every_split_level() {
    let heir = Record::new("Heir", 3, vec![base(0, &Record::root_object()), ("a".into(), Form::Number(Basic::I32))]);
    assert_eq!(heir.info().elements[0].code, 66);
    let numbers = |name: &str, values: [u32; 3]| {
        (
            Arc::new(ArrowField::new(name, DataType::UInt32, false)),
            Arc::new(UInt32Array::from(values.to_vec())) as ArrayRef,
        )
    };
    // References point to the second one.
    let object = StructArray::from(vec![numbers("fUniqueID", [0, 7, 0]), numbers("fBits", [0, 0x10, 8])]);
    let a: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
    let array: ArrayRef = Arc::new(StructArray::from(vec![
        (Arc::new(ArrowField::new(":_0", object.data_type().clone(), false)), Arc::new(object.clone()) as ArrayRef),
        (Arc::new(ArrowField::new("a", DataType::Int32, false)), Arc::clone(&a)),
    ]));
    let fields = [field("h", Form::Record(heir))];
    let split = stage(&fields, std::slice::from_ref(&array), VECTOR, 300);
    split.check("h.:_0.fBits", object.column(1));
    split.check("h.:_0.fUniqueID", object.column(0));
    split.check("h.a", &a);
    stage(&fields, std::slice::from_ref(&array), Planning { split_level: 0, ..VECTOR }, 300).check("h", &array);
}

/// Lists of pairs.
fn pairs(keys: &ArrayRef, values: ArrayRef, ends: [usize; 3]) -> ArrayRef {
    let part = |name: &str, array: ArrayRef| (Arc::new(ArrowField::new(name, array.data_type().clone(), false)), array);
    let pairs = StructArray::from(vec![part("_0", Arc::clone(keys)), part("_1", values)]);
    let item = Arc::new(ArrowField::new("item", pairs.data_type().clone(), false));
    let offsets = OffsetBuffer::from_lengths(ends);
    Arc::new(LargeListArray::new(item, offsets, Arc::new(pairs), None))
}

#[test]
fn maps_are_stored_as_by_root() {
    let pair = Record::pair([Form::Text, Form::Number(Basic::F32)]);
    let map = |pair| Form::Container(Box::new(Container::standard("map", pair).unwrap()));
    let keys: ArrayRef = Arc::new(LargeStringArray::from(vec!["a", "b"]));
    let array = pairs(&keys, Arc::new(Float32Array::from(vec![1.0, 2.0])), [2, 0, 0]);
    let form = map(Form::Record(pair));
    assert_eq!(form.type_name(), "map<string,float>");
    let mut out = Vec::new();
    values::member(&form).unwrap().put(&array, 0..2, &mut out).unwrap();
    // Written by ROOT 6.40, but for the version in the heads.
    let expected = [
        0x40, 0, 0, 0x1e, 0x40, 9, 0, 0, 0x6b, 0xd3, 0x2a, 0x5e, 0, 0, 0, 2, 0x40, 0, 0, 6, 0, 9, 1, b'a', 1, b'b',
        0x3f, 0x80, 0, 0, 0x40, 0, 0, 0, 0x40, 0, 0, 0x0c, 0x40, 9, 0, 0, 0x6b, 0xd3, 0x2a, 0x5e, 0, 0, 0, 0,
    ];
    assert_eq!(out, expected);
    stage(&[field("m", form.clone())], std::slice::from_ref(&array), COUNTER, 300).check("m", &array);
    let lists = Form::List(Box::new(form));
    let item = Arc::new(ArrowField::new("item", array.data_type().clone(), false));
    let nested: ArrayRef = Arc::new(LargeListArray::new(item, OffsetBuffer::from_lengths([1, 2]), array, None));
    stage(&[field("m", lists)], std::slice::from_ref(&nested), VECTOR, 300).check("m", &nested);
}

/// Defect: objects in a map had one head for all, which no reader could read.
#[test]
fn objects_in_maps_have_a_head_each() {
    let members = || vec![("x".to_owned(), Form::Number(Basic::F32)), ("s".to_owned(), Form::RootText)];
    let object = Record::new("Object", 3, members());
    let pair = Record::pair([Form::Number(Basic::I32), Form::Record(object)]);
    let form = Form::Container(Box::new(Container::standard("map", Form::Record(pair)).unwrap()));
    let keys: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
    let part = |name: &str, array: ArrayRef| (Arc::new(ArrowField::new(name, array.data_type().clone(), false)), array);
    let x: ArrayRef = Arc::new(Float32Array::from(vec![1.0, 2.0, 3.0]));
    let objects =
        StructArray::from(vec![part("x", x), part("s", Arc::new(LargeStringArray::from(vec!["a", "", "b"])))]);
    let array = pairs(&keys, Arc::new(objects), [2, 0, 1]);
    let mut out = Vec::new();
    values::member(&form).unwrap().put(&array, 0..1, &mut out).unwrap();
    let (head, objects) = out.split_at(6 + 6 + 4 + 8);
    assert_eq!(head[..6], [0x40, 0, 0, (head.len() + objects.len() - 4) as u8, 0x40, 9]);
    let expected = [0x40, 0, 0, 8, 0, 3, 0x3f, 0x80, 0, 0, 1, b'a', 0x40, 0, 0, 7, 0, 3, 0x40, 0, 0, 0, 0];
    assert_eq!(objects, expected);
    stage(&[field("m", form)], std::slice::from_ref(&array), COUNTER, 300).check("m", &array);
}

#[test]
fn other_containers_come_back() {
    let array = lists();
    for template in ["set", "list", "unordered_multiset"] {
        let of = || Form::Container(Box::new(Container::standard(template, Form::Number(Basic::F32)).unwrap()));
        assert_eq!(of().type_name(), format!("{template}<float>"));
        stage(&[field("s", of())], std::slice::from_ref(&array), COUNTER, 300).check("s", &array);
        assert_eq!(Form::List(Box::new(of())).type_name(), format!("vector<{template}<float> >"));
    }
    assert_eq!(Container::standard("vector", Form::Text), None);
}

/// Containers of ATLAS, whose objects have no members or few.
#[test]
fn classes_that_are_containers_come_back() {
    let empty = Record::new("Element", 1, Vec::new());
    let full = Record::new("Cluster", 1, vec![base(0, &empty), ("pattern".into(), Form::Number(Basic::I32))]);
    let kind = ContainerKind::Class { version: 1, checksum: Some(0x8148_a8af) };
    let container = |item: &Record| Container {
        class_name: format!("DataVector<{}>", item.class_name),
        kind,
        item: Form::Record(item.clone()),
    };
    let lists = |items: StructArray| -> ArrayRef {
        let item = Arc::new(ArrowField::new("item", items.data_type().clone(), false));
        Arc::new(LargeListArray::new(item, OffsetBuffer::from_lengths([2, 0, 1]), Arc::new(items), None))
    };
    let none = StructArray::new_empty_fields(3, None);
    let pattern: ArrayRef = Arc::new(Int32Array::from(vec![5, 6, 7]));
    let some = StructArray::from(vec![
        (Arc::new(ArrowField::new(":_0", none.data_type().clone(), false)), Arc::new(none.clone()) as ArrayRef),
        (Arc::new(ArrowField::new("pattern", DataType::Int32, false)), pattern),
    ]);
    for (item, items, bytes) in [(empty, none, 16), (full, some, 24)] {
        let array = lists(items);
        let form = Form::Container(Box::new(container(&item)));
        let stage = stage(&[field("c", form.clone())], std::slice::from_ref(&array), COUNTER, 300);
        stage.check("c", &array);
        let object = stage.plan.branches[0].object.clone().unwrap();
        assert_eq!((object.checksum, object.class_version), (0x8148_a8af, 1));
        let mut out = Vec::new();
        values::value(&form).unwrap().put(&array, 0..1, &mut out).unwrap();
        assert_eq!((out.len(), &out[..6]), (bytes, &[0x40, 0, 0, bytes as u8 - 4, 0x40, 9][..]));
    }
}

/// The members of a base class come first, behind its own head.
#[test]
fn bases_have_heads() {
    let numbers = |values: [i32; 2]| Arc::new(Int32Array::from(values.to_vec())) as ArrayRef;
    let member = |name: &str| (name.to_owned(), Form::Number(Basic::I32));
    let record = Record::new("E", 1, vec![base(0, &Record::new("E1", 1, vec![member("e1")])), member("e")]);
    let column =
        |name: &str, array: ArrayRef| (Arc::new(ArrowField::new(name, array.data_type().clone(), false)), array);
    let inner: ArrayRef = Arc::new(StructArray::from(vec![column("e1", numbers([1, 2]))]));
    let array = StructArray::from(vec![column(":_0", inner), column("e", numbers([3, 4]))]);
    let mut out = Vec::new();
    values::value(&Form::Record(record)).unwrap().put(&array, 0..2, &mut out).unwrap();
    assert_eq!(out.len(), 2 * (10 + 10 + 8));
}

#[test]
fn fields_without_a_branch_are_refused_by_name() {
    let refused = |fields: &[Field]| Plan::new("t", fields, COUNTER).unwrap_err().to_string();
    let number = || Form::Number(Basic::I32);
    assert!(refused(&[field("a b", number())]).contains("the name of a branch must not contain ' '"));
    assert!(refused(&[field("t", Form::Fixed(2, Box::new(Form::Text)))]).contains("field 't'"));
    assert!(refused(&[field("x", number()), field("x", number())]).contains("'x'"));
    let base = Record::new("R", 1, vec![("a-b".into(), number())]);
    assert!(refused(&[field("r", Form::Record(base))]).contains("'a-b'"));
}

#[test]
fn titles_and_unsigned_counters_are_kept() {
    let list = Field {
        counter: Some("n".into()),
        title: "momenta".into(),
        ..field("x", Form::List(Box::new(Form::Number(Basic::F32))))
    };
    let plan = Plan::new("t", &[field("n", Form::Number(Basic::U32)), list], COUNTER).unwrap();
    let titles: Vec<_> = plan.branches.iter().map(|branch| (branch.name.as_str(), branch.title.as_str())).collect();
    assert_eq!(titles, [("n", "n/i"), ("x", "momenta")]);
}

/// Defect: ROOT read the first number of a fixed array in the items of a vector again and again, since the streamer info
/// called it a single number.
#[test]
fn fixed_arrays_in_classes_are_described_as_arrays() {
    let class = Record::new("Point", 1, vec![("x".into(), Form::Fixed(3, Box::new(Form::Number(Basic::F32))))]);
    let plan = Plan::new("t", &[field("v", Form::List(Box::new(Form::Record(class))))], VECTOR).unwrap();
    let info = plan.infos.named("Point").next().unwrap();
    assert_eq!((info.elements[0].code, info.elements[0].array_length), (25, 3));
}

fn names(fields: &[Field], planning: Planning) -> Vec<String> {
    Plan::new("t", fields, planning).unwrap().branches.into_iter().map(|branch| branch.name).collect()
}

fn class(name: &str, member: &str, form: Form) -> Form {
    Form::Record(Record::new(name, 1, vec![(member.into(), form)]))
}

/// Defect: `GTT1_zvtx` beside a list of records `GTT1` with a member `zvtx` refused the whole tree.
#[test]
fn branches_of_members_and_counters_are_told_apart_from_fields() {
    let fields = [
        field("a", list_of(class("A", "b_c", Form::Number(Basic::F32)))),
        field("a_b", list_of(class("B", "c", Form::Number(Basic::F32)))),
        field("a_b_c", Form::Number(Basic::F32)),
        field("na", Form::Number(Basic::F32)),
    ];
    assert_eq!(names(&fields, COUNTER), ["na_", "a_b_c_", "na_b", "a_b_c__", "a_b_c", "na"]);
    assert_eq!(names(&fields, VECTOR), ["a", "a.b_c", "a_b", "a_b.c", "a_b_c", "na"]);
}

/// Defect: ROOT looked for the members of `a_` in `a`.
#[test]
fn leaves_of_split_vectors_are_told_apart_from_fields() {
    let fields = ["a", "a_"].map(|name| field(name, list_of(class(name, "x", Form::Number(Basic::F32)))));
    let plan = Plan::new("t", &fields, VECTOR).unwrap();
    let leaves: Vec<&str> = plan.branches.iter().map(|branch| branch.leaf.name.as_str()).collect();
    assert_eq!(leaves, ["a__", "a.x", "a___", "a_.x"]);
}

/// Defect: ROOT read zeros for a member `hit` of the vector `hits`, and cannot write it split itself.
#[test]
fn vectors_with_a_member_that_root_takes_for_them_are_not_split() {
    for (member, branches) in [("hit", 1), ("hi", 2), ("hits", 2), ("hitx", 2)] {
        let list = list_of(class("Hit", member, Form::Number(Basic::F32)));
        assert_eq!(names(&[field("hits", list)], VECTOR).len(), branches, "{member}");
    }
}

/// Defect: with vectors, the counter of fixed arrays was written beside the field that it stands for.
#[test]
fn lists_of_fixed_arrays_use_their_counters_with_vectors() {
    let item = Form::Fixed(2, Box::new(Form::Number(Basic::F32)));
    let list = Field { counter: Some("n".into()), ..field("x", list_of(item)) };
    let fields = [field("n", Form::Number(Basic::I32)), list];
    assert_eq!(names(&fields, COUNTER), ["n", "x"]);
    assert_eq!(names(&fields, VECTOR), ["n", "x"]);
}

/// Defect: only the counter was written.
#[test]
fn lists_of_records_without_members_are_vectors() {
    let record = Record::new("Empty", 1, Vec::new());
    let plan = Plan::new("t", &[field("v", list_of(Form::Record(record)))], COUNTER).unwrap();
    let classes = plan.branches.iter().filter_map(|branch| Some(branch.object.as_ref()?.class_name.as_str()));
    assert_eq!(classes.collect::<Vec<_>>(), ["vector<Empty>"]);
}

/// Defect: ROOT ended with a crash when it read them.
#[test]
fn texts_in_vectors_of_objects_are_refused() {
    let is_refused = |form: Form, planning| Plan::new("t", &[field("f", form)], planning).is_err();
    let with_text = || class("Text", "s", Form::Text);
    assert!(is_refused(list_of(with_text()), VECTOR));
    assert!(is_refused(list_of(class("Outer", "m", with_text())), COUNTER));
    assert!(is_refused(list_of(list_of(with_text())), COUNTER));
    assert!(is_refused(class("Outer", "m", list_of(with_text())), COUNTER));
    assert!(!is_refused(list_of(with_text()), COUNTER), "a vector of texts");
    assert!(!is_refused(class("Outer", "m", with_text()), COUNTER));
    assert!(!is_refused(list_of(class("Lists", "m", list_of(Form::Text))), VECTOR));
}

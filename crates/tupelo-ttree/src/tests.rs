//! The real trees, where they are at hand, and trees that say what cannot be true.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_schema::{DataType, Field as ArrowField};
use bytes::Bytes;
use tupelo_format::compression;
use tupelo_format::container::{self, Attempt, FetchedRanges, Interrupt};

use tupelo_format::ErrorKind;
use tupelo_format::object::Basic;
use tupelo_format::streamer::{ClassInfo, Counter, Element, ElementKind, StreamerInfos};
use tupelo_format::wire::Memory;

use crate::basket::{BasketHead, open_embedded};
use crate::classes::Classes;
use crate::fields::{Field, FieldKind};
use crate::layout::of_branch;
use crate::tree::{BasketPlace, BranchElement, Stored, TREE_CLASSES, check_places};
use crate::{Basket, Branch, Column, Tree, ValueLayout};

/// More than the fields of any real tree take.
const MEMORY: u64 = 32 << 20;

fn run<T>(file: &[u8], step: impl Fn(&FetchedRanges) -> Attempt<T>) -> T {
    let mut fetched = FetchedRanges::new(file.len() as u64);
    fetched.provide(0, Bytes::copy_from_slice(file));
    match step(&fetched) {
        Ok(done) => done,
        Err(Interrupt::Failed(error)) => panic!("{error}"),
        Err(Interrupt::Missing(ranges)) => panic!("{ranges:?}"),
    }
}

fn real_files() -> Vec<(String, Vec<u8>)> {
    let data = PathBuf::from(std::env::var("TUPELO_DATA").unwrap_or_default());
    let mut paths: Vec<PathBuf> = Vec::new();
    for folder in [data.clone(), data.join("trees")] {
        paths.extend(std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()));
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "root"));
    paths.sort();
    paths
        .into_iter()
        .map(|path| (path.file_name().unwrap().to_string_lossy().into(), std::fs::read(path).unwrap()))
        .collect()
}

/// What is not read in the real files.
const KNOWN: [&str; 5] = [
    "another branch has the same name",
    "pointers to objects of unknown classes are not supported",
    "pointers to several objects are not supported",
    "is not in the streamer info",
    "its entries are empty",
];

fn values<'f>(fields: &'f [Field], found: &mut Vec<(&'f Field, usize, &'f crate::ValueLayout)>) {
    for field in fields {
        match &field.kind {
            FieldKind::Value { branch, layout } => found.push((field, *branch, layout)),
            FieldKind::Record(members) | FieldKind::Collection { items: members, .. } => values(members, found),
        }
    }
}

#[test]
fn real_trees_are_read() {
    let mut wrong = BTreeMap::new();
    let (mut trees, mut branches) = (0, 0);
    for (name, file) in real_files() {
        let infos = run(&file, container::streamer_infos);
        for object in run(&file, container::list_objects) {
            if !TREE_CLASSES.contains(&object.key.class_name.as_str()) {
                continue;
            }
            let path = format!("{name}:{}", object.path);
            let bytes = run(&file, |fetched| container::object_bytes(fetched, &object.key));
            let (key, memory) = (&object.key, Memory::new(bytes.len() as u64 * 64));
            let tree = match Tree::read(&bytes, key.key_bytes, &key.class_name, &infos, &memory) {
                Ok(tree) => tree,
                Err(error) => {
                    wrong.insert(path, error.to_string());
                    continue;
                }
            };
            trees += 1;
            let (fields, refused) = tree.fields(&infos, &Memory::new(MEMORY)).unwrap();
            for refused in refused {
                wrong.insert(format!("{path}:{}", refused.path), refused.reason);
            }
            let mut found = Vec::new();
            values(&fields, &mut found);
            for (_, index, layout) in found {
                branches += 1;
                let branch = &tree.branches[index];
                let mut column = Column::new(layout);
                for (number, place) in branch.baskets.iter().enumerate() {
                    let basket = match &place.stored {
                        Stored::Embedded(bytes) => open_embedded(bytes),
                        Stored::InFile { offset, bytes } => {
                            let record = &file[*offset as usize..*offset as usize + *bytes as usize];
                            BasketHead::read(record, *offset).and_then(|head| {
                                let payload = &record[usize::from(head.key_bytes)..];
                                let payload = if head.is_compressed() {
                                    compression::decompress(payload, head.object_bytes.into(), 1 << 30)?
                                } else {
                                    payload.to_vec()
                                };
                                // The basket does not outlive the buffer.
                                head.open(payload.leak())
                            })
                        }
                    };
                    let entries = (place.entries.end - place.entries.start) as usize;
                    let read = basket.and_then(|basket| column.read(layout, &basket, 0..entries, &Memory::new(MEMORY)));
                    if let Err(error) = read {
                        wrong.insert(
                            format!("{path}:{} basket {number}", tree.path(index)),
                            format!("{error} [{layout:?}]"),
                        );
                        break;
                    }
                }
            }
        }
    }
    let is_known = |reason: &String| KNOWN.iter().any(|known| reason.contains(known));
    let unknown: Vec<_> = wrong.iter().filter(|(_, reason)| !is_known(reason)).collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
    assert_eq!(trees == 0, branches == 0);
    println!("{trees} trees, {branches} branches, {} not read", wrong.len());
}

fn branch(class_name: &str, baskets: Vec<BasketPlace>) -> Branch {
    let element = BranchElement {
        kind: 0,
        streamer_type: -1,
        id: -1,
        class_version: 1,
        checksum: 0,
        parent_class: String::new(),
        clones_class: String::new(),
        max_items: 0,
    };
    Branch {
        name: "b".into(),
        title: String::new(),
        branch_class: "TBranchElement".into(),
        class_name: class_name.into(),
        element: Some(element),
        parent: None,
        children: Vec::new(),
        leaves: Vec::new(),
        entries: 1,
        baskets,
        compression: 0,
        file_name: String::new(),
        bytes: [0; 2],
    }
}

fn tree(entries: u64, cluster_ranges: Vec<(u64, u64)>) -> Tree {
    Tree {
        name: "t".into(),
        title: String::new(),
        class_name: "TTree".into(),
        entries,
        bytes: [0; 2],
        auto_flush: 0,
        cluster_ranges,
        friends: Vec::new(),
        index: None,
        aliases: Vec::new(),
        user_info: Vec::new(),
        weight: 1.0,
        has_references: false,
        branches: Vec::new(),
        top_level: Vec::new(),
        unreadable: Vec::new(),
    }
}

/// A version of a class, whose checksum tells it apart from the others.
fn class(name: &str, version: i32, elements: Vec<Element>) -> ClassInfo {
    ClassInfo { version, elements, checksum: 70 + version as u32, ..ClassInfo::unknown(name) }
}

/// The layout of a branch that holds whole objects with their heads.
fn object_layout(class_name: &str, infos: &StreamerInfos) -> tupelo_format::Result<ValueLayout> {
    let whole = branch(class_name, vec![]);
    let element = BranchElement { kind: -1, ..whole.element.clone().unwrap() };
    let tree = Tree { branches: vec![Branch { element: Some(element), ..whole }], ..tree(1, Vec::new()) };
    of_branch(&tree, 0, &Classes::new(infos), &Memory::new(MEMORY))
}

/// Ranges that descend made the subtraction overflow, and many ranges made a million clusters each.
#[test]
fn ranges_of_clusters_are_bounded() {
    let clusters = tree(1000, vec![(100, 10), (5, 10), (200, 0), (300, 7)]).clusters(1 << 20);
    assert_eq!((clusters[0].clone(), clusters[11].clone(), clusters.last().unwrap().end), (0..10, 101..108, 1000));
    assert!(clusters.windows(2).all(|pair| pair[0].end == pair[1].start));
    let many = (1..=200).map(|range| (range << 20, 1)).collect();
    assert!(tree(1 << 40, many).clusters(1 << 20).len() < (1 << 20) + 300);
}

/// Many baskets at one place would make a small file any number of entries.
#[test]
fn baskets_share_no_bytes() {
    let place = |offset, bytes| BasketPlace { entries: 0..1, stored: Stored::InFile { offset, bytes } };
    let check = |places: Vec<BasketPlace>| check_places(&[branch("", places)]);
    assert_eq!(check(vec![place(300, 100), place(100, 200)]), Ok(()));
    for places in [vec![place(100, 201), place(300, 100)], vec![place(7, 1), place(7, 1)]] {
        assert!(check(places).unwrap_err().to_string().contains("two baskets overlap"));
    }
}

/// A place in one file is not one in another.
#[test]
fn baskets_of_other_files_share_no_bytes_either() {
    let place = |offset| BasketPlace { entries: 0..1, stored: Stored::InFile { offset, bytes: 10 } };
    let of = |file: &str, offset| Branch { file_name: file.into(), ..branch("", vec![place(offset)]) };
    assert_eq!(check_places(&[of("", 100), of("a.root", 100), of("b.root", 105), of("a.root", 110)]), Ok(()));
    let error = check_places(&[of("", 100), of("a.root", 100), of("b.root", 105), of("a.root", 109)]).unwrap_err();
    assert!(error.to_string().contains("two baskets overlap"), "{error}");
}

/// Another file may have been replaced.
#[test]
fn baskets_of_other_branches_are_refused() {
    let mut key = vec![0; 4];
    key.extend([0, 4]);
    key.extend([0; 20]);
    let named = |class: &str, name: &str| {
        let texts = [class, name, "t"].map(|text| [&[text.len() as u8], text.as_bytes()].concat());
        [&key[..], &texts.concat()].concat()
    };
    assert_eq!(BasketHead::check_branch(&named("TBasket", "b"), 0, "b"), Ok(()));
    for record in [named("TBasket", "c"), named("TTree", "b"), named("", "")] {
        let error = BasketHead::check_branch(&record, 0, "b").unwrap_err().to_string();
        assert!(error.contains("expected a basket of branch 'b', found a record with class"), "{error}");
    }
    let whole = named("TBasket", "b");
    for end in 0..whole.len() - 2 {
        assert!(BasketHead::check_branch(&whole[..end], 0, "b").is_err(), "{end}");
    }
}

/// Defect: one such member spoiled every read of the tree.
#[test]
fn members_of_collections_have_values_for_each_item() {
    let element = |kind, id| BranchElement { kind, id, streamer_type: 5, ..branch("", vec![]).element.unwrap() };
    let below = |name: &str, kind| {
        let element = Some(element(kind, 0));
        Branch { name: name.into(), parent: Some(0), element, entries: 1, ..branch("C", vec![]) }
    };
    let collection = Branch {
        name: "c".into(),
        element: Some(element(4, -1)),
        children: vec![1, 2],
        entries: 1,
        ..branch("vector<C>", vec![])
    };
    let branches = vec![collection, below("c.a", 41), below("c.b", 0)];
    let tree = Tree { branches, top_level: vec![0], ..tree(1, Vec::new()) };
    let (fields, refused) = tree.fields(&StreamerInfos::default(), &Memory::new(MEMORY)).unwrap();
    let FieldKind::Collection { items, .. } = &fields[0].kind else { panic!("{fields:?}") };
    assert_eq!(items.iter().map(|item| item.name.as_str()).collect::<Vec<_>>(), ["a"]);
    assert_eq!((refused.len(), refused[0].kind), (1, ErrorKind::Corrupt));
    assert_eq!(refused[0].path, "c/c.b");
    assert!(refused[0].reason.contains("it lacks values for the items of its collection"), "{refused:?}");
}

/// Sixteen classes with six members of the one before it have 6¹⁵ members.
#[test]
fn classes_in_classes_are_bounded() {
    let mut infos = StreamerInfos::default();
    for level in 0..16 {
        let (type_name, kind) = match level {
            0 => ("int".to_owned(), ElementKind::Basic),
            _ => (format!("L{}", level - 1), ElementKind::ObjectAny),
        };
        let member =
            |index| Element::new(&format!("m{index}"), &type_name, if level == 0 { 3 } else { 62 }, kind.clone());
        let elements = (0..6).map(member).collect();
        infos.push(ClassInfo { version: 1, elements, ..ClassInfo::unknown(&format!("L{level}")) });
    }
    let layout = |class| {
        let tree = Tree { branches: vec![branch(class, Vec::new())], ..tree(1, Vec::new()) };
        of_branch(&tree, 0, &Classes::new(&infos), &Memory::new(MEMORY))
    };
    assert_eq!(layout("L15").unwrap_err().kind(), ErrorKind::Memory);
    assert!(layout("L5").is_ok());
}

/// A thousand branches that cannot be read, below one with a name of 64 KiB, made messages of 64 MiB.
#[test]
fn names_of_parents_count_for_each_branch_below_them() {
    let tree = |children: usize| {
        let parent = Branch { name: "p".repeat(1 << 16), children: (1..=children).collect(), ..branch("", Vec::new()) };
        let child = Branch { parent: Some(0), element: None, branch_class: "TBranchOther".into(), ..parent.clone() };
        let child = Branch { name: "c".into(), children: Vec::new(), ..child };
        let branches = std::iter::once(parent).chain(vec![child; children]).collect();
        Tree { branches, top_level: vec![0], ..tree(1, Vec::new()) }
    };
    let refused = |children| {
        let fields = tree(children).fields(&StreamerInfos::default(), &Memory::new(MEMORY));
        fields.map(|(_, refused)| refused.len()).map_err(|error| error.kind())
    };
    assert_eq!((refused(9), refused(1000)), (Ok(9), Err(ErrorKind::Memory)));
}

/// The member of the version that a branch names, of the newest one that has it, and counters of the class itself.
#[test]
fn members_are_found_by_version_and_name() {
    let mut infos = StreamerInfos::default();
    for (version, names) in [(1, vec!["a", "b"]), (3, vec!["n", "c"]), (2, vec!["a", "c"])] {
        let member = |name: &&str| Element::new(name, &format!("v{version}"), 3, ElementKind::Basic);
        let (elements, checksum) = (names.iter().map(member).collect(), 70 + version as u32);
        infos.push(ClassInfo { version, checksum, elements, ..ClassInfo::unknown("C") });
    }
    let classes = Classes::new(&infos);
    let found = |name: &str, version, checksum, id| {
        let element = BranchElement { class_version: version, checksum, id, ..branch("C", vec![]).element.unwrap() };
        let branch = Branch { name: name.into(), ..branch("C", vec![]) };
        classes.member(&branch, &element).map(|member| member.element.type_name.clone())
    };
    assert_eq!(found("x.a[2]", 1, 0, 0).unwrap(), "v1");
    assert_eq!(found("a", 9, 71, 1).unwrap(), "v1");
    assert_eq!(found("a", 9, 0, 0).unwrap(), "v2");
    assert_eq!(found("c", 1, 0, 0).unwrap(), "v3");
    assert_eq!(found("d", 1, 0, 0), None);
    let class = infos.find("C", 3).unwrap();
    let place = |class_name: &str| {
        let counter = Counter { version: 3, name: "c".into(), class_name: class_name.into() };
        classes.counter_place(class, &counter)
    };
    assert_eq!((place("C"), place("Base")), (Some(1), None));
    assert_eq!(infos.newest("C").unwrap().version, 3);
}

/// The bits of an object take two more bytes where others refer to it.
#[test]
fn bits_of_referenced_objects_are_read() {
    let member = Branch {
        name: "a.fBits".into(),
        element: Some(BranchElement {
            kind: 31,
            streamer_type: 15,
            id: 1,
            ..branch("TObject", vec![]).element.unwrap()
        }),
        ..branch("TObject", vec![])
    };
    let tree = Tree { branches: vec![member], ..tree(2, Vec::new()) };
    let infos = StreamerInfos::default();
    let layout = of_branch(&tree, 0, &Classes::new(&infos), &Memory::new(MEMORY)).unwrap();
    let mut basket = Basket::of(&[0, 0, 0, 16, 0, 1, 0, 0, 0, 8, 0, 0, 0, 24, 0, 0], 2);
    basket.set_lengths([10, 6]).unwrap();
    let item = Arc::new(arrow_schema::Field::new("item", DataType::UInt32, false));
    for (entries, bits) in [(0..2, vec![vec![16, 8], vec![24]]), (1..2, vec![vec![24]])] {
        let mut column = Column::new(&layout);
        column.read(&layout, &basket, entries, &Memory::new(MEMORY)).unwrap();
        let lists = column.finish(&layout, &DataType::LargeList(Arc::clone(&item))).unwrap();
        let lists = lists.as_list::<i64>().iter().flatten();
        let read: Vec<Vec<u32>> = lists.map(|list| list.as_primitive::<UInt32Type>().values().to_vec()).collect();
        assert_eq!(read, bits);
    }
}

/// Members by name, of another type, and new; and the version without a byte count of what derives from `TObject`.
#[test]
fn objects_of_older_versions_are_read_as_the_newest() {
    let number = |name: &str, code| Element::new(name, "", code, ElementKind::Basic);
    let base = Element::new("TObject", "BASE", 66, ElementKind::Base { version: 1 });
    let mut infos = StreamerInfos::default();
    infos.push(class("C", 1, vec![number("dropped", 2), number("a", 3)]));
    infos.push(class("C", 2, vec![number("fresh", 2), number("a", 8)]));
    infos.push(class("Headless", 1, vec![base, number("a", 3)]));
    let read = |class_name: &str, data: &[u8]| {
        let layout = object_layout(class_name, &infos).unwrap();
        let mut basket = Basket::of(data, 1);
        basket.set_lengths([data.len()]).unwrap();
        let mut column = Column::new(&layout);
        column.read(&layout, &basket, 0..1, &Memory::new(MEMORY)).map(|()| match column {
            Column::Record(columns, 1) => columns,
            other => panic!("{other:?}"),
        })
    };
    let bytes = |column: &Column| match column {
        Column::Numbers(bytes) => bytes.to_vec(),
        other => panic!("{other:?}"),
    };
    let old = read("C", &[0x40, 0, 0, 8, 0, 1, 0, 9, 0xff, 0xff, 0xff, 0xfe]).unwrap();
    assert_eq!((bytes(&old[0]), bytes(&old[1])), (vec![0; 2], (-2.0_f64).to_le_bytes().to_vec()));
    let new = read("C", &[0x40, 0, 0, 12, 0, 2, 0, 9, 0x40, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    assert_eq!((bytes(&new[0]), bytes(&new[1])), (9_u16.to_le_bytes().to_vec(), 2.0_f64.to_le_bytes().to_vec()));
    let unknown = read("C", &[0x40, 0, 0, 8, 0, 3, 0, 9, 0, 0, 0, 1]).unwrap_err();
    assert!(
        unknown.to_string().contains("found version 3 of class C, the streamer info describes version 2"),
        "{unknown}"
    );
    let headless = [0, 1, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 7];
    assert_eq!(bytes(&read("Headless", &headless).unwrap()[1]), 7_i32.to_le_bytes());
    let custom = read("Headless", &[&headless[..], &[0, 0]].concat()).unwrap_err();
    assert_eq!(custom.kind(), ErrorKind::Unsupported, "{custom}");
}

/// Defects: members that an older version lacks were made without a limit, and versions and members that are not stored took
/// no memory.
#[test]
fn members_missing_in_a_version_count_against_the_budget() {
    let number = |name: &str, code| Element::new(name, "", code, ElementKind::Basic);
    let array = Element { array_length: i32::MAX, ..number("many", 23) };
    let bits = Element::new("bits", "bitset<1152921504606846976>", 500, ElementKind::Stl { container: 8, item: 0 });
    for missing in [array, bits] {
        let mut infos = StreamerInfos::default();
        infos.push(class("C", 1, vec![number("a", 3)]));
        infos.push(class("C", 2, vec![number("a", 3), missing]));
        let layout = object_layout("C", &infos).unwrap();
        let mut basket = Basket::of(&[0x40, 0, 0, 6, 0, 1, 0, 0, 0, 7], 1);
        basket.set_lengths([10]).unwrap();
        let read = Column::new(&layout).read(&layout, &basket, 0..1, &Memory::new(MEMORY));
        assert_eq!(read.unwrap_err().kind(), ErrorKind::Memory);
    }
    const COUNT: i32 = 3000;
    let member = |number| Element::new(&format!("m{number}"), "D", 62, ElementKind::ObjectAny);
    let members: Vec<Element> = (0..COUNT).map(member).collect();
    let not_stored: Vec<Element> = (0..20_000).map(|at| number(&format!("t{at}"), -1)).collect();
    let empty = (1..=COUNT).map(|version| class("D", version, Vec::new())).collect();
    for classes in [empty, vec![class("D", 1, not_stored)]] {
        let mut infos = StreamerInfos::default();
        infos.push(class("C", 1, members.clone()));
        assert!(classes.into_iter().all(|class| infos.push(class)));
        assert_eq!(object_layout("C", &infos).unwrap_err().kind(), ErrorKind::Memory);
    }
}

/// Defect: the newest version was taken for any, if its checksum was 0.
#[test]
fn versions_without_a_checksum_are_told_apart() {
    let member = |code| vec![Element::new("a", "", code, ElementKind::Basic)];
    let class = |version, checksum, elements| ClassInfo { version, checksum, elements, ..ClassInfo::unknown("C") };
    let mut infos = StreamerInfos::default();
    infos.push(class(1, 71, member(3)));
    infos.push(class(2, 0, member(5)));
    let layout = object_layout("C", &infos).unwrap();
    let mut basket = Basket::of(&[0x40, 0, 0, 6, 0, 1, 0, 0, 0, 7], 1);
    basket.set_lengths([10]).unwrap();
    let mut column = Column::new(&layout);
    column.read(&layout, &basket, 0..1, &Memory::new(MEMORY)).unwrap();
    let Column::Record(members, 1) = column else { panic!("{column:?}") };
    assert!(matches!(&members[0], Column::Numbers(number) if **number == 7.0_f32.to_le_bytes()), "{members:?}");
}

/// Defect: each object of an older version took as long as all members of all classes in it, though its lists were empty.
#[test]
fn objects_of_older_versions_take_no_longer_than_their_bytes() {
    const OBJECTS: usize = 50_000;
    let number = |name: &str| Element::new(name, "", 3, ElementKind::Basic);
    let list = Element::new("list", "vector<Large>", 300, ElementKind::Stl { container: 1, item: 61 });
    let large = (0..3000).map(|member| number(&format!("m{member}"))).collect();
    let mut infos = StreamerInfos::default();
    infos.push(class("Large", 1, large));
    infos.push(class("C", 1, vec![list.clone(), number("a")]));
    infos.push(class("C", 2, vec![number("b"), list]));
    let whole = branch("vector<C>", vec![]);
    let tree = Tree { branches: vec![whole], ..tree(1, Vec::new()) };
    let layout = of_branch(&tree, 0, &Classes::new(&infos), &Memory::new(MEMORY)).unwrap();
    let object = [0x40, 0, 0, 16, 0, 1, 0x40, 0, 0, 6, 0, 9, 0, 0, 0, 0, 0, 0, 0, 7];
    let body = [&(OBJECTS as u32).to_be_bytes()[..], &object.repeat(OBJECTS)].concat();
    let count = 0x4000_0000 | (body.len() as u32 + 2);
    let data = [&count.to_be_bytes()[..], &[0, 9], &body].concat();
    let mut basket = Basket::of(&data, 1);
    basket.set_lengths([data.len()]).unwrap();
    let mut column = Column::new(&layout);
    column.read(&layout, &basket, 0..1, &Memory::new(MEMORY)).unwrap();
    let Column::List(_, items) = column else { panic!("{column:?}") };
    let Column::Record(members, OBJECTS) = *items else { panic!("{items:?}") };
    assert!(matches!(&members[0], Column::Numbers(zeros) if zeros.len() == 4 * OBJECTS), "a member that is new");
}

#[test]
fn numbers_fill_their_basket() {
    let basket = |entries| Basket::of(&[0; 16], entries);
    assert_eq!(basket(4).fixed_range(&(1..3), 4), Ok(4..12));
    assert!(
        basket(9)
            .fixed_range(&(0..9), 4)
            .unwrap_err()
            .to_string()
            .contains("basket of 16 bytes does not match 9 entries of 4 bytes")
    );
    let mut uneven = basket(2);
    uneven.set_lengths([12, 4]).unwrap();
    for entries in [0..2, 0..1, 1..2] {
        assert_eq!(uneven.fixed_range(&entries, 8).unwrap_err().to_string(), "entry 0 has 12 bytes, expected 8");
    }
}

#[test]
fn lists_end_where_their_entries_do() {
    let numbers = |width: usize| match width {
        12 => ValueLayout::Fixed(3, Box::new(ValueLayout::Number(Basic::F32, None))),
        _ => ValueLayout::Number(Basic::F64, None),
    };
    let data = [0; 48];
    for width in [8, 12] {
        let layout = ValueLayout::Rest(Box::new(numbers(width)));
        let mut basket = Basket::of(&data, 4);
        basket.set_lengths([width, 0, 48 - width, 0]).unwrap();
        let ends = |ranges: &[std::ops::Range<usize>]| {
            let mut column = Column::new(&layout);
            for entries in ranges {
                column.read(&layout, &basket, entries.clone(), &Memory::new(MEMORY)).unwrap();
            }
            let item = match width {
                12 => DataType::FixedSizeList(Arc::new(ArrowField::new("item", DataType::Float32, false)), 3),
                _ => DataType::Float64,
            };
            let lists = column.finish(&layout, &DataType::LargeList(Arc::new(ArrowField::new("item", item, false))));
            lists.unwrap().as_list::<i64>().offsets().to_vec()
        };
        let all = (48 / width) as i64;
        assert_eq!(ends(std::slice::from_ref(&(0..4))), [0, 1, 1, all, all]);
        assert_eq!(ends(&[0..1, 1..1, 1..3, 3..4]), [0, 1, 1, all, all]);
        assert_eq!(ends(std::slice::from_ref(&(2..3))), [0, all - 1]);
        basket.set_lengths([0, width, 1, 47 - width]).unwrap();
        let refused = Column::new(&layout).read(&layout, &basket, 1..4, &Memory::new(MEMORY)).unwrap_err();
        assert_eq!(refused.to_string(), format!("entry 2 has 1 bytes, not a multiple of {width}"));
    }
}

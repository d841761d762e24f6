//! What streamed objects and the layouts of their classes refuse: bytes that are made by hand.

use tupelo_format::object::{self, EntryForm, Value};
use tupelo_format::streamer::{ClassInfo, Counter, Element, ElementKind, StreamerInfos};
use tupelo_format::wire::Memory;

/// Set in byte counts.
const BYTE_COUNT: u32 = 0x4000_0000;
/// Set in the version of a collection that is stored member by member.
const MEMBER_WISE: u16 = 0x4000;
/// "The name of the class follows."
const NEW_CLASS: [u8; 4] = [0xff; 4];
/// Set in references to classes.
const CLASS: u32 = 0x8000_0000;
/// A `TObject` without bits.
const OBJECT: [u8; 10] = [0, 1, 0, 0, 0, 0, 0, 0, 0, 0];

/// Bytes behind their own count.
fn counted(parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    [&(BYTE_COUNT | content.len() as u32).to_be_bytes()[..], &content].concat()
}

/// An object behind a pointer.
fn pointer(class: &str, content: &[u8]) -> Vec<u8> {
    counted(&[&NEW_CLASS, class.as_bytes(), &[0], content])
}

fn element(code: i32, type_name: &str, kind: ElementKind) -> Element {
    Element::new("member", type_name, code, kind)
}

/// A class `Class`, version 1, of these members.
fn class(elements: Vec<Element>) -> StreamerInfos {
    let mut infos = StreamerInfos::default();
    infos.push(ClassInfo { name: "Class".into(), title: Vec::new(), bits: 0, version: 1, checksum: 7, elements });
    infos
}

fn read(bytes: &[u8], class: &str, infos: &StreamerInfos) -> tupelo_format::Result<Value> {
    object::read(bytes, class, infos, &Memory::unlimited())
}

fn entry<'a>(bytes: &'a [u8], infos: &'a StreamerInfos, memory: &'a Memory) -> object::Entry<'a> {
    object::Entry { bytes, origin: 0, infos, memory }
}

/// Why an object is refused whose class is known without a layout.
fn refused(class: &str, bytes: &[u8]) -> String {
    read(bytes, class, &StreamerInfos::default()).expect_err(class).to_string()
}

/// Why a `Class` of one member is refused, which is what `bytes` hold.
fn refused_member(element: Element, bytes: &[u8]) -> String {
    let bytes = [&[0, 1], bytes].concat();
    read(&bytes, "Class", &class(vec![element])).expect_err("a member").to_string()
}

/// Why the value of a container, the only member of a `Class`, stays bytes: with this version of its head.
fn unread_container(type_name: &str, version: u16, content: &[u8]) -> String {
    let member = element(500, type_name, ElementKind::Stl { container: 1, item: 61 });
    let bytes = [&[0, 1], &counted(&[&version.to_be_bytes(), content])[..]].concat();
    let value = read(&bytes, "Class", &class(vec![member])).expect("an object");
    match value.as_object().and_then(|object| object.get("member")) {
        Some(Value::Opaque(opaque)) => opaque.reason.clone(),
        other => panic!("{other:?}"),
    }
}

fn assert_says(error: &str, what: &str) {
    assert!(error.contains(what), "'{error}' does not say '{what}'");
}

#[test]
pub(crate) fn what_objects_refuse() {
    let deep = format!("{}int{}", "vector<".repeat(40), ">".repeat(40));
    let array_of = |count: u32| [&[0, 3], &OBJECT[..], &[0], &count.to_be_bytes(), &[0; 4]].concat();
    let clones_of =
        |class: &[u8], count: u32| [&[0, 4], &OBJECT[..], &[0], class, &count.to_be_bytes(), &[0; 4]].concat();
    let long = "L".repeat(2 << 20);
    let cases: [(&str, &[u8], &str); 19] = [
        ("TClonesArray", &[0, 3], "version 3 of class TClonesArray is not supported"),
        ("TClonesArray", &clones_of(b"\x07Class;1", 100), "TClonesArray of 100 items is longer than the object"),
        ("TClonesArray", &clones_of(b"\0", 0), "TClonesArray lacks the class of its items"),
        (&long, &[], "object needs far more work than its stored size"),
        (&deep, &[], "templates in a type are nested more than 32 deep"),
        ("map<int>", &[], "type 'map<int>' lacks template arguments"),
        ("bool", &[1, 0, 0], "2 bytes follow the object of class bool"),
        ("vector<string>", &[0x7f, 0xff, 0xff, 0xff], "object needs far more memory than its stored size"),
        ("vector<int>", &[0xff; 4], "container has a negative number of items: -1"),
        ("vector<Float16_t>", &[0; 4], "containers of Float16_t are not supported"),
        ("Stranger", &[0, 9], "class Stranger is not in the streamer info"),
        ("TMatrixTSym<Class>", &[], "class TMatrixTSym<Class> is not supported"),
        ("TMap", &[0; 16], "class TMap has a custom format, which is not supported"),
        ("TH1D", &[0, 99], "class TH1D is not in the streamer info, and its version 99 is unknown"),
        ("TObjArray", &array_of(100), "expected a collection of 100 objects, 4 bytes left"),
        ("TArrayI", &[0xff; 4], "TArrayI has a negative number of items: -1"),
        ("Class*", &NEW_CLASS, "objects without a byte count, from before ROOT 3, are not supported"),
        ("Class*", &counted(&[&NEW_CLASS, b"Class"]), "class name is not terminated"),
        ("Class*", &pointer("Class", &[])[..6], "expected an object of 10 bytes, 2 left"),
    ];
    for (class, bytes, what) in cases {
        assert_says(&refused(class, bytes), what);
    }
    assert_says(&refused("Class*", &counted(&[&NEW_CLASS, b"Cl\xffss\0"])), "class name is not UTF-8");
    let lost = counted(&[&(CLASS | 5).to_be_bytes()]);
    assert_says(&refused("Class*", &lost), "reference to a missing class at 5");
    let none = read(&[0, 0, 0, 9], "Class*", &StreamerInfos::default()).expect("a reference");
    let Value::Opaque(none) = none else { panic!("{none:?}") };
    assert_says(&none.reason, "reference to a missing object at 9");
    let alone = entry(&[0; 9], &StreamerInfos::default(), &Memory::unlimited())
        .read(EntryForm::Alone("Stranger", None))
        .expect_err("no layout");
    assert_says(&alone.to_string(), "class Stranger is not in the streamer info");
    for (bytes, what) in [
        (&[0, 0, 0, 9, 0][..], "a part of the object cannot be read"),
        (&[0, 0, 0, 9], "a reference leads out of the entry"),
    ] {
        let refused = entry(bytes, &StreamerInfos::default(), &Memory::unlimited())
            .references(EntryForm::Alone("Class*", None))
            .expect_err(what);
        assert_says(&refused.to_string(), what);
    }
    let mut index = StreamerInfos::default();
    let base = ClassInfo {
        name: "TVirtualIndex".into(),
        title: Vec::new(),
        bits: 0,
        version: 1,
        checksum: 7,
        elements: Vec::new(),
    };
    index.push(base);
    let bytes = [&[0, 2, 0, 1, 0, 0][..], &[0xff; 8]].concat();
    let negative = read(&bytes, "TTreeIndex", &index).expect_err("a negative number").to_string();
    assert_says(&negative, "TTreeIndex has a negative number of entries: -1");
    let mut matrix = StreamerInfos::default();
    matrix.push(ClassInfo { name: "TMatrixTBase<double>".into(), ..ClassInfo::unknown("") });
    let version = matrix.named("TMatrixTBase<double>").next().expect("a layout").version as u8;
    let empty = read(&[0, version], "TMatrixTSym<double>", &matrix).expect_err("no rows").to_string();
    assert_says(&empty, "TMatrixTSym<double> lacks a valid number of rows");
    let unnamed = entry(b"\x01\xff\0", &StreamerInfos::default(), &Memory::unlimited())
        .read(EntryForm::Named)
        .expect_err("no name");
    assert_says(&unnamed.to_string(), "the name of a class is not UTF-8");
    let long = counted(&[&[0, 1, 0]]);
    let error = read(&long, "Class", &class(Vec::new())).expect_err("a byte too many").to_string();
    assert_says(&error, "object ends at byte 6, expected byte 7");
    let other = read(&[0, 2], "Class", &class(Vec::new())).expect_err("another version").to_string();
    assert_says(&other, "class Class: version 2 is not in the streamer info");
}

#[test]
pub(crate) fn what_members_refuse() {
    let int = || element(3, "int", ElementKind::Basic);
    assert_says(
        &refused_member(Element { array_length: -1, ..int() }, &[0; 4]),
        "array has a negative number of items: -1",
    );
    let other = ElementKind::Other { class_name: "TStreamerOfTomorrow".into(), version: 1, rest: Vec::new() };
    let error = refused_member(element(3, "int", other), &[0; 4]);
    assert_says(&error, "members described by a TStreamerOfTomorrow are not supported");
    assert_says(
        &refused_member(element(99, "odd", ElementKind::Basic), &[]),
        "member of type 'odd' (code 99) is not supported",
    );
    let counter = || Counter { version: 1, name: "n".into(), class_name: "Class".into() };
    for code in [i32::MIN, 40, 99, i32::MAX] {
        let error = refused_member(element(code, "odd*", ElementKind::BasicPointer(counter())), &[1]);
        assert_says(&error, &format!("member of type 'odd*' (code {code}) is not supported"));
    }
    let error = refused_member(element(43, "int*", ElementKind::BasicPointer(counter())), &[1]);
    assert_says(&error, "the counter Class::n is missing");
    let error = refused_member(element(62, "Class", ElementKind::ObjectAny), &[0, 1].repeat(100));
    assert_says(&error, "objects are nested more than 64 deep");
    let stl = ElementKind::Stl { container: 1, item: 3 };
    assert_says(
        &refused_member(element(500, "vector<int>*", stl), &[]),
        "pointers to containers are not supported: vector<int>*",
    );

    // What says how long it is does not spoil the rest.
    let early = unread_container("vector<Class>", MEMBER_WISE | 7, &[0, 0, 0, 1]);
    assert_says(&early, "member-wise collections from before ROOT 5.24 are not supported");
    let numbers = unread_container("vector<int>", MEMBER_WISE | 9, &[0, 1, 0, 0, 0, 1]);
    assert_says(&numbers, "'vector<int>' is stored member-wise, but its items have no members");
}

/// A list of this version with one object; there are bytes behind it, as there must be for a collection.
fn list(version: u8, item: &[u8]) -> Vec<u8> {
    [&[0, version], &OBJECT[..], &[0], &[0, 0, 0, 1], item, &[0; 5]].concat()
}

/// A list with the layout of `Class`, whose members are what `members` points to.
fn layout(members: &[u8]) -> Vec<u8> {
    let name = [&[0, 1], &OBJECT[..], b"\x05Class\x00"].concat();
    let info = [&[0, 9], &name[..], &[0, 0, 0, 7], &[0, 0, 0, 1], members].concat();
    list(5, &pointer("TStreamerInfo", &info))
}

/// The same with an array of this version that holds one thing.
fn layout_of(version: u8, item: &[u8]) -> Vec<u8> {
    let array = [&[0, version], &OBJECT[..], &[0], &[0, 0, 0, 1], &[0; 4], item].concat();
    layout(&pointer("TObjArray", &array))
}

/// A member `n`, by the first version of elements, which says how many dimensions it holds.
fn old_element(dimensions: u8) -> Vec<u8> {
    let base = [&[0, 1], &[0, 1], &OBJECT[..], b"\x01n\x00"].concat();
    let numbers = [3, 4, 0, 0, dimensions].map(|number| [0, 0, 0, number]).concat();
    let indices = [0; 4].repeat(dimensions.into());
    pointer("TStreamerBasicType", &[&[0, 2], &base[..], &numbers, &indices, b"\x03int"].concat())
}

#[test]
pub(crate) fn what_streamer_infos_refuse() {
    // What is refused below is otherwise read.
    let infos = StreamerInfos::read(&layout_of(3, &old_element(5)), 0).expect("a list");
    let known = infos.find("Class", 1).expect("a layout");
    assert_eq!((known.elements.len(), known.elements[0].name.as_str(), known.checksum), (1, "n", 7));

    let short = [&counted(&[&[0, 5]])[..], &OBJECT, &[0; 5]].concat();
    let cases = [
        (pointer("TObjArray", &[0; 20]), "expected a list of class layouts, found Object"),
        (list(3, &[0; 4]), "version 3 of the list is not supported"),
        (list(6, &[0; 4]), "version 6 of the list is not supported"),
        (short, "object extends past its own end"),
        (layout(&[0, 0, 0, 9]), "class 'Class': expected an array of members, found Reference"),
        (layout(&pointer("TList", &[0; 20])), "expected an array of members, found Object"),
        (layout_of(2, &old_element(5)), "version 2 of the array is not supported"),
        (layout_of(3, &[0, 0, 0, 9]), "members described elsewhere are not supported"),
        (layout_of(3, &old_element(6)), "member 'n' has an invalid number of dimensions: 6"),
    ];
    for (bytes, what) in cases {
        assert_says(&StreamerInfos::read(&bytes, 0).expect_err(what).to_string(), what);
    }
}

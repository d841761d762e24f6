//! Objects that were streamed by hand, those of the real files, and damaged ones. What ROOT writes into streamer fields
//! is compared in `conformance/test_objects.py`.

use std::collections::HashMap;
use std::sync::Arc;

use super::*;
use crate::ErrorKind;
use crate::container::tests::{real_files, run};
use crate::container::{list_objects, object_bytes, streamer_infos};
use crate::streamer::{ClassInfo, Counter, Element, ElementKind, Streaming, WHOLE_OBJECT};

fn element(name: &str, code: i32, type_name: &str, kind: ElementKind) -> Element {
    Element::new(name, type_name, code, kind)
}

fn class(name: &str, version: i32, elements: Vec<Element>) -> ClassInfo {
    ClassInfo { name: name.into(), title: Vec::new(), bits: 0, version, checksum: 77, elements }
}

/// `Point` with a counted array, a number with a range, a matrix and a text; `Line` with two of them, side by side and
/// behind a pointer; `Empty`.
fn infos() -> StreamerInfos {
    let counter = Counter { version: 3, name: "n".into(), class_name: "Point".into() };
    let mut range = element("range", 9, "Double32_t", ElementKind::Basic);
    (range.bits, range.title) = (1 << 6, b"[-1, pi/2, 8] a number".to_vec());
    let mut short = element("short", 9, "Double32_t", ElementKind::Basic);
    (short.bits, short.title) = (1 << 6, b"[0,0,10]".to_vec());
    let mut matrix = element("matrix", 23, "int", ElementKind::Basic);
    (matrix.array_length, matrix.array_dimensions, matrix.max_index) = (4, 2, [2, 2, 0, 0, 0]);
    let mut infos = StreamerInfos::default();
    infos.push(class(
        "Point",
        3,
        vec![
            element("TObject", 66, "BASE", ElementKind::Base { version: 1 }),
            element("n", 6, "int", ElementKind::Basic),
            element("values", 45, "float*", ElementKind::BasicPointer(counter)),
            range,
            short,
            matrix,
            element("text", 65, "TString", ElementKind::String),
        ],
    ));
    infos.push(class(
        "Line",
        1,
        vec![
            element("points", 500, "vector<Point>", ElementKind::Stl { container: 1, item: 61 }),
            element("last", 64, "Point*", ElementKind::ObjectPointer),
        ],
    ));
    infos.push(class("Empty", 1, Vec::new()));
    infos
}

fn point(out: &mut Streaming, text: &[u8]) {
    out.versioned(3, |out| {
        out.object(5);
        members(out, text);
    });
}

/// The members of a `Point`, which follow its base.
fn members(out: &mut Streaming, text: &[u8]) {
    let buffer = &mut out.buffer;
    buffer.i32_be(2);
    buffer.u8(1);
    buffer.f32_be(1.5);
    buffer.f32_be(-2.5);
    buffer.u32_be(0);
    // 1.5: exponent 127, sign 0, mantissa 100_0000_0000.
    buffer.u8(127);
    buffer.u16_be(1 << 9);
    (1..5).for_each(|i| buffer.i32_be(i));
    buffer.text_be(text);
}

fn streamed(content: impl FnOnce(&mut Streaming)) -> Vec<u8> {
    let mut out = Streaming::new(0);
    content(&mut out);
    out.buffer.into_vec()
}

fn get<'a>(value: &'a Value, name: &str) -> &'a Value {
    value.as_object().and_then(|object| object.get(name)).unwrap_or_else(|| panic!("{name} of {value:?}"))
}

#[test]
fn members_are_read_by_their_layout() {
    let value = read(&streamed(|out| point(out, b"text")), "Point", &infos()).unwrap();
    let object = value.as_object().unwrap();
    assert_eq!((object.class_name(), object.version()), ("Point", 3));
    let names: Vec<_> = object.members().map(|(name, _)| name).collect();
    assert_eq!(names, ["n", "values", "range", "short", "matrix", "text"]);
    assert_eq!(object.bases().map(|(name, _)| name).collect::<Vec<_>>(), ["TObject"]);
    assert_eq!(get(&value, "fBits"), &Value::UInt(5));
    assert_eq!(get(&value, "values"), &Value::Numbers(Numbers::F32(vec![1.5, -2.5])));
    assert_eq!(get(&value, "range"), &Value::Float(-1.0));
    assert_eq!(get(&value, "short"), &Value::Float(1.5));
    assert_eq!(get(&value, "matrix"), &Value::Grid(vec![2, 2], Numbers::I32(vec![1, 2, 3, 4])));
    assert_eq!(get(&value, "text"), &Value::Text("text".into()));
    let value = read(&streamed(|out| point(out, b"\xff")), "Point", &infos()).unwrap();
    assert_eq!(get(&value, "text"), &Value::Bytes(vec![0xff]));
}

/// A `Line` with its two points object by object, or member by member.
fn line(out: &mut Streaming, is_member_wise: bool) {
    out.versioned(1, |out| {
        out.versioned(if is_member_wise { 10 | 1 << 14 } else { 10 }, |out| {
            if !is_member_wise {
                out.buffer.i32_be(2);
                point(out, b"a");
                return point(out, b"b");
            }
            out.buffer.u16_be(3);
            out.buffer.i32_be(2);
            // Bases, counters, … of both.
            let half = |text: &[u8]| streamed(|out| members(out, text));
            let (a, b) = (half(b"a"), half(b"b"));
            (0..2).for_each(|_| out.object(5));
            let ends = [0, 4, 13, 17, 20, 36, a.len()];
            for range in ends.windows(2).map(|ends| ends[0]..ends[1]) {
                out.buffer.put(&a[range.clone()]);
                out.buffer.put(&b[range]);
            }
        });
        out.pointer("Point", |out| point(out, b"c"));
    });
}

#[test]
fn both_ways_to_store_a_collection_give_the_same() {
    let read = |is_member_wise| read(&streamed(|out| line(out, is_member_wise)), "Line", &infos()).unwrap();
    let value = read(false);
    assert_eq!(value, read(true));
    let Value::List(points) = get(&value, "points") else { panic!("{value:?}") };
    let texts: Vec<_> = points.iter().map(|point| get(point, "text").clone()).collect();
    assert_eq!(texts, [Value::Text("a".into()), Value::Text("b".into())]);
    assert_eq!(get(get(&value, "last"), "text"), &Value::Text("c".into()));
}

/// A `TObjArray` of what `content` streams.
fn array(count: u32, content: impl FnOnce(&mut Streaming)) -> Vec<u8> {
    streamed(|out| array_in(out, count, content))
}

fn array_in(out: &mut Streaming, count: u32, content: impl FnOnce(&mut Streaming)) {
    out.versioned(3, |out| {
        out.object(0);
        out.buffer.string_be("");
        out.buffer.u32_be(count);
        out.buffer.i32_be(0);
        content(out);
    });
}

fn items(value: &Value) -> &[Value] {
    match get(value, "fObjects") {
        Value::List(list) => list,
        other => panic!("{other:?}"),
    }
}

#[test]
fn pointers_lead_to_objects_and_unknown_classes_stay_bytes() {
    let bytes = array(6, |out| {
        let first = out.buffer.len() as u32 + 2;
        out.pointer("Point", |out| point(out, b"shared"));
        out.buffer.u32_be(0);
        out.buffer.u32_be(first);
        out.pointer("Stranger", |out| out.versioned(9, |out| out.buffer.put(b"???")));
        out.pointer("TMap", |out| out.buffer.put(b"!"));
        out.pointer("TObjArray", |out| {
            let around = out.buffer.len() as u32 - 4 - "TObjArray".len() as u32 - 1 - 4 + 2;
            array_in(out, 2, |out| {
                out.buffer.u32_be(around);
                out.reference(WHOLE_OBJECT);
            });
        });
    });
    let value = read(&bytes, "TObjArray", &infos()).unwrap();
    let [point, Value::Null, again, Value::Opaque(stranger), Value::Opaque(special), inner] = items(&value) else {
        panic!("{value:?}")
    };
    assert!(matches!((point, again), (Value::Object(a), Value::Object(b)) if std::sync::Arc::ptr_eq(a, b)));
    assert_eq!((stranger.class_name.as_str(), &stranger.bytes[4..]), ("Stranger", &b"\x00\x09???"[..]));
    assert_eq!(stranger.reason, "class Stranger is not in the streamer info");
    assert_eq!(special.reason, "class TMap has a custom format, which is not supported");
    assert_eq!(items(inner), [Value::Enclosing, Value::Whole]);
}

#[test]
fn errors_name_class_and_reason() {
    let stranger = streamed(|out| out.versioned(9, |_| {}));
    let error = |class: &str, bytes: &[u8]| read(bytes, class, &infos()).unwrap_err();
    assert_eq!(error("Stranger", &stranger).what(), "class Stranger is not in the streamer info");
    assert_eq!(error("Point", &stranger).what(), "class Point: version 9 is not in the streamer info");
    assert_eq!(error("Point", &stranger).kind(), ErrorKind::Unsupported);
    let mut long = streamed(|out| point(out, b""));
    long.push(0);
    assert_eq!(error("Point", &long).what(), "1 bytes follow the object of class Point");
    assert_eq!(error("TString", b"\x05ab").kind(), ErrorKind::Corrupt);
}

#[test]
fn classes_without_a_version_go_by_their_checksum() {
    let mut infos = StreamerInfos::default();
    infos.push(class("Box<int>", 1, vec![element("value", 3, "int", ElementKind::Basic)]));
    let bytes = streamed(|out| {
        out.versioned(0, |out| {
            out.buffer.u32_be(77);
            out.buffer.i32_be(-4);
        });
    });
    let value = read(&bytes, "Box<std::int32_t>", &infos).unwrap();
    assert_eq!(get(&value, "value"), &Value::Int(-4));
}

#[test]
fn containers_alone_are_read() {
    let infos = StreamerInfos::default();
    let numbers = streamed(|out| [2, -1, 7].into_iter().for_each(|n| out.buffer.i32_be(n)));
    assert_eq!(read(&numbers, "list<std::int32_t>", &infos), Ok(Value::Numbers(Numbers::I32(vec![-1, 7]))));
    let map = streamed(|out| {
        out.buffer.i32_be(1);
        out.buffer.string_be("key");
        out.buffer.i32_be(2);
        out.buffer.f64_be(0.5);
        out.buffer.f64_be(1.5);
    });
    let numbers = Value::Numbers(Numbers::F64(vec![0.5, 1.5]));
    assert_eq!(
        read(&map, "std::map<std::string,std::vector<double>>", &infos),
        Ok(Value::Map(vec![(Value::Text("key".into()), numbers)]))
    );
    assert_eq!(read(b"\x02ab", "std::string", &infos), Ok(Value::Text("ab".into())));
}

#[test]
fn nothing_asks_for_more_than_its_bytes_allow() {
    let limit = |bytes: &[u8], class: &str| read(bytes, class, &infos()).unwrap_err().kind();
    // A chain of arrays, each of which refers to the one before.
    let count = 200;
    let chain = array(count, |out| {
        let mut before = None;
        for _ in 0..count {
            let at = out.buffer.len() as u32 + 2;
            out.pointer("TObjArray", |out| array_in(out, 1, |out| out.buffer.u32_be(before.unwrap_or(0))));
            before = Some(at);
        }
    });
    assert_eq!(limit(&chain, "TObjArray"), ErrorKind::Limit);
    let mut nested = streamed(|out| out.buffer.u32_be(0));
    for _ in 0..100 {
        let inner = std::mem::take(&mut nested);
        nested = array(1, |out| out.pointer("TObjArray", |out| out.buffer.put(&inner)));
    }
    assert!(read(&nested, "TObjArray", &infos()).is_err());
    // Items without members cost no bytes.
    let mut infos = infos();
    infos.push(class(
        "Many",
        1,
        vec![element("all", 500, "vector<Empty>", ElementKind::Stl { container: 1, item: 61 })],
    ));
    let many = |count| {
        streamed(|out| {
            out.versioned(1, |out| {
                out.versioned(10 | 1 << 14, |out| {
                    out.buffer.u16_be(1);
                    out.buffer.i32_be(count);
                });
            });
        })
    };
    assert!(read(&many(3), "Many", &infos).is_ok());
    assert_eq!(read(&many(i32::MAX), "Many", &infos).unwrap_err().kind(), ErrorKind::Limit);
    // What a member says of itself wrongly spoils the member alone.
    let value = read(&many(-1), "Many", &infos).unwrap();
    assert!(
        matches!(get(&value, "all"), Value::Opaque(all) if all.reason.contains("container has a negative number of \
                                                                                items: -1"))
    );
}

/// Defects: names of classes were parsed and layouts of pairs made for each object, and counters looked for among all
/// members for each pointer.
#[test]
fn objects_take_no_longer_than_their_bytes() {
    const OBJECTS: usize = 300;
    let list = |infos: &mut StreamerInfos, item: &str| {
        let stl = ElementKind::Stl { container: 1, item: 61 };
        infos.push(class("Holder", 1, vec![element("all", 500, &format!("vector<{item}>"), stl)]));
    };
    let holder = |item: &dyn Fn(&mut Streaming)| {
        streamed(|out| {
            out.versioned(1, |out| {
                out.versioned(10, |out| {
                    out.buffer.i32_be(OBJECTS as i32);
                    (0..OBJECTS).for_each(|_| item(out));
                });
            });
        })
    };
    let long = "L".repeat(8000);
    let mut infos = infos();
    infos.push(class(&long, 1, Vec::new()));
    let limited = |item: &str, bytes: &[u8]| {
        let mut infos = infos.clone();
        list(&mut infos, item);
        assert_eq!(read(bytes, "Holder", &infos).unwrap_err().kind(), ErrorKind::Limit);
    };
    let object = |out: &mut Streaming| out.versioned(1, |_| ());
    limited(&long, &holder(&object));
    let pair = |out: &mut Streaming| {
        out.versioned(0, |out| {
            out.buffer.u32_be(0);
            object(out);
            out.buffer.u32_be(0);
        });
    };
    limited(&format!("pair<{long},int>"), &holder(&pair));
    let pairs = holder(&|out| out.versioned(0, |out| (0..3).for_each(|number| out.buffer.u32_be(number))));
    list(&mut infos, "pair<int,int>");
    let value = read(&pairs, "Holder", &infos).unwrap();
    let Value::List(pairs) = get(&value, "all") else { panic!("{value:?}") };
    let [first, .., last] = pairs.as_slice() else { panic!("{pairs:?}") };
    let (first, last) = (first.as_object().unwrap(), last.as_object().unwrap());
    assert!(Arc::ptr_eq(&first.class, &last.class));
    assert_eq!(last.members, [Value::Int(1), Value::Int(2)]);

    let mut infos = StreamerInfos::default();
    let unstored = (0..3000).map(|at| element(&format!("t{at}"), -1, "int", ElementKind::Basic));
    let counter = Counter { version: 1, name: "n".into(), class_name: "Wide".into() };
    let pointer = |at| element(&format!("p{at}"), 43, "int*", ElementKind::BasicPointer(counter.clone()));
    let number = element("n", 6, "int", ElementKind::Basic);
    infos.push(class("Wide", 1, unstored.chain([number]).chain((0..3000).map(pointer)).collect()));
    list(&mut infos, "Wide");
    let wide = holder(&|out| {
        out.versioned(1, |out| {
            out.buffer.i32_be(0);
            (0..3000).for_each(|_| out.buffer.u8(1));
        });
    });
    let value = read(&wide, "Holder", &infos).unwrap();
    assert!(matches!(get(&value, "all"), Value::List(list) if list.len() == OBJECTS));
}

/// All objects of the real files that are neither trees nor ntuples: class, bytes, bytes of the key, layouts.
fn real_objects() -> Vec<(String, Vec<u8>, u16, StreamerInfos)> {
    let mut all = Vec::new();
    for (_, file) in real_files() {
        let infos = run(&file, streamer_infos).unwrap();
        for object in run(&file, list_objects).unwrap() {
            let class = object.key.class_name.clone();
            if !matches!(class.as_str(), "TTree" | "TNtuple" | "ROOT::RNTuple" | "TDirectory" | "TDirectoryFile") {
                let bytes = run(&file, |fetched| object_bytes(fetched, &object.key)).unwrap();
                all.push((class, bytes, object.key.key_bytes, infos.clone()));
            }
        }
    }
    all
}

/// The first thing in a value that could not be read.
fn read(bytes: &[u8], class_name: &str, infos: &StreamerInfos) -> Result<Value> {
    super::read(bytes, class_name, infos, &Memory::unlimited())
}

fn read_behind_key(bytes: &[u8], key_bytes: u16, class_name: &str, infos: &StreamerInfos) -> Result<Value> {
    super::read_behind_key(bytes, key_bytes, class_name, infos, &Memory::unlimited())
}

fn unread(value: &Value) -> Option<&Opaque> {
    match value {
        Value::Opaque(opaque) => Some(opaque),
        Value::List(list) => list.iter().find_map(unread),
        Value::Map(map) => map.iter().find_map(|(key, value)| unread(key).or_else(|| unread(value))),
        Value::Object(object) => object.bases().chain(object.members()).find_map(|(_, value)| unread(value)),
        _ => None,
    }
}

#[test]
fn real_objects_are_read() {
    for (class, bytes, key_bytes, infos) in real_objects() {
        let value =
            read_behind_key(&bytes, key_bytes, &class, &infos).unwrap_or_else(|error| panic!("{class}: {error}"));
        assert_eq!(unread(&value), None, "{class}");
        if class.starts_with("TH1") || class.starts_with("TH2") {
            let bins = get(&value, "fNcells");
            assert_eq!(bins, get(&value, "fN"), "{class}");
            assert!(!matches!(get(get(&value, "fXaxis"), "fXmax"), Value::Null), "{class}");
        }
    }
}

/// A histogram of one bin with a labelled axis.
fn histogram(class: &str, bins: Numbers) -> crate::Result<Object> {
    let infos = StreamerInfos::histograms();
    let members = |members: &[(&str, Value)]| -> HashMap<String, Value> {
        members.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    };
    let made = |class: &str, of: &[(&str, Value)]| Object::new(class, members(of), &infos);
    let label = |text: &str, number| {
        let label = made("TObjString", &[("fString", Value::Text(text.to_owned())), ("fUniqueID", Value::Int(number))]);
        Value::Object(Arc::new(label.unwrap()))
    };
    let labels = made("THashList", &[("fObjects", Value::List(vec![label("a", 1), label("b", 2)]))])?;
    let edges = Value::Numbers(Numbers::F64(vec![0.0, 1.0, 4.0]));
    let axis = [("fNbins", Value::Int(2)), ("fXbins", edges), ("fLabels", Value::Object(Arc::new(labels)))];
    let axis = Value::Object(Arc::new(made("TAxis", &axis)?));
    let own = [
        ("fName", Value::Text("h".to_owned())),
        ("fNcells", Value::Int(4)),
        ("fXaxis", axis),
        ("fEntries", Value::Int(3)),
        ("fArray", Value::Numbers(bins)),
    ];
    made(class, &own)
}

#[test]
fn a_histogram_that_is_written_is_read() {
    let made = histogram("TH1I", Numbers::I32(vec![0, 1, 2, -3])).unwrap();
    let bytes = made.write().unwrap();
    for key_bytes in [0, 100] {
        let read = read_behind_key(&bytes, key_bytes, "TH1I", &made.layouts()).unwrap();
        assert_eq!(unread(&read), None);
        let axis = get(&read, "fXaxis");
        assert_eq!(get(get(axis, "fXbins"), "fArray"), &Value::Numbers(Numbers::F64(vec![0.0, 1.0, 4.0])));
        assert_eq!(get(&read, "fArray"), &Value::Numbers(Numbers::I32(vec![0, 1, 2, -3])));
        assert_eq!(get(&read, "fEntries"), &Value::Float(3.0));
        assert_eq!(get(get(&read, "fYaxis"), "fLabels"), &Value::Null);
        let labels = get(axis, "fLabels").as_object().unwrap();
        assert_eq!(labels.class_name(), "THashList");
        let Some(Value::List(labels)) = labels.get("fObjects") else { panic!("no labels") };
        assert_eq!(get(&labels[1], "fString"), &Value::Text("b".to_owned()));
        assert_eq!(get(&labels[1], "fUniqueID"), &Value::UInt(2));
    }
}

#[test]
fn members_that_do_not_fit_are_refused() {
    let write = |class: &str, bins: Numbers| histogram(class, bins).and_then(|made| made.write()).unwrap_err();
    let error = write("TH1D", Numbers::I32(vec![1; 4]));
    assert_eq!(error.what(), "TH1D::TArrayD: expected F64, found I32");
    assert_eq!(write("TH4D", Numbers::F64(Vec::new())).what(), "the layout of class TH4D is unknown");
    let infos = StreamerInfos::histograms();
    let with = |name: &str, value: Value| {
        let made = Object::new("TAxis", HashMap::from([(name.to_owned(), value)]), &infos);
        made.and_then(|made| made.write()).unwrap_err()
    };
    assert_eq!(with("fBins", Value::Int(1)).what(), "class TAxis has no member 'fBins'");
    assert_eq!(with("fNbins", Value::Int(1 << 31)).what(), "TAxis::fNbins: expected I32, found 2147483648");
    assert_eq!(with("fXmin", Value::Text(String::new())).what(), "TAxis::fXmin: expected F64, found a string");
}

/// Real histograms of one to three dimensions, and what is behind their pointers.
#[test]
fn real_histograms_are_the_same_after_writing() {
    let mut count = 0;
    for (class, bytes, key_bytes, infos) in real_objects() {
        let value = read_behind_key(&bytes, key_bytes, &class, &infos).unwrap();
        let Some(object) = value.as_object().filter(|_| class.starts_with("TH")) else { continue };
        // Functions in them may have members that are not written.
        let Ok(written) = object.write() else { continue };
        assert_eq!(read_behind_key(&written, 7, &class, &object.layouts()).as_ref(), Ok(&value), "{class}");
        assert!(written.len() >= bytes.len(), "{class}");
        count += 1;
    }
    println!("{count} real histograms are the same after writing");
}

#[test]
fn damaged_objects_do_no_harm() {
    let mut all = real_objects();
    all.truncate(40);
    for is_member_wise in [false, true] {
        all.push(("Line".into(), streamed(|out| line(out, is_member_wise)), 0, infos()));
    }
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random as usize % below
    };
    for (class, bytes, key_bytes, infos) in &all {
        for length in (0..bytes.len()).rev().take(200) {
            let _ = read_behind_key(&bytes[..length], *key_bytes, class, infos).is_err();
        }
        for _ in 0..200 {
            let mut damaged = bytes.clone();
            for _ in 0..=next(3) {
                let at = next(damaged.len());
                damaged[at] = [0, 0x40, 0x80, 0xff, damaged[at] ^ 1 << next(8)][next(5)];
            }
            let _ = read_behind_key(&damaged, *key_bytes, class, infos).is_err();
        }
    }
}

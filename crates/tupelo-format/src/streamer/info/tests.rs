use super::*;
use crate::container::tests::{real_files, run};
use crate::container::{object_bytes, read_header, read_key};

/// The lists of the real files, with the lengths of their keys and whether ROOT wrote them compressed or not.
fn real_lists() -> Vec<(String, Vec<u8>, u16)> {
    let mut lists = Vec::new();
    for (name, file) in real_files() {
        let header = run(&file, read_header).unwrap();
        if header.seek_info != 0 && header.nbytes_info != 0 {
            let key = run(&file, |fetched| read_key(fetched, header.seek_info)).unwrap();
            let list = run(&file, |fetched| object_bytes(fetched, &key)).unwrap();
            lists.push((name, list, key.key_bytes));
        }
    }
    lists
}

fn rule(text: &str) -> StreamerInfos {
    StreamerInfos { rules: vec![text.into()], ..StreamerInfos::default() }
}

/// Every kind of element once.
fn all_kinds() -> StreamerInfos {
    let counter = Counter { version: 3, name: "n".into(), class_name: "Class".into() };
    let kinds = [
        ElementKind::Base { version: -1 },
        ElementKind::Basic,
        ElementKind::BasicPointer(counter.clone()),
        ElementKind::Loop(counter),
        ElementKind::Object,
        ElementKind::ObjectAny,
        ElementKind::ObjectPointer,
        ElementKind::ObjectAnyPointer,
        ElementKind::String,
        ElementKind::Stl { container: 1, item: 3 },
        ElementKind::StlString { container: 365, item: 365 },
        ElementKind::Other { class_name: "TStreamerOfTomorrow".into(), version: 7, rest: vec![1, 2, 3] },
    ];
    let element = |(index, kind)| Element {
        name: format!("member{index}"),
        title: vec![b'[', 0xb5, b']'],
        bits: OBJECT_BITS | HAS_RANGE,
        code: 23,
        size: 24,
        array_length: 6,
        array_dimensions: 2,
        max_index: [2, 3, 0, 0, -1],
        type_name: "t".repeat(300),
        kind,
    };
    let mut infos = StreamerInfos::anchor();
    let elements = kinds.into_iter().enumerate().map(element).collect();
    let info =
        ClassInfo { name: "Class".into(), title: Vec::new(), bits: 0, version: 3, checksum: 0xffff_fff0, elements };
    assert!(infos.push(info));
    infos.merge(&rule("type=Class version=\"[-2]\""));
    infos
}

#[test]
fn written_records_are_read_back() {
    for infos in [StreamerInfos::default(), StreamerInfos::anchor(), all_kinds()] {
        for key_bytes in [0, 64, 30_000] {
            let bytes = infos.write(key_bytes);
            assert_eq!(StreamerInfos::read(&bytes, key_bytes).as_ref(), Ok(&infos));
        }
    }
    let class = &all_kinds().classes[1];
    assert_eq!(class.elements[1].dimensions(), [2, 3]);
    assert_eq!((class.elements[0].base_checksum(), class.elements[1].base_checksum()), (Some(3), None));
}

#[test]
fn lists_unite_by_name_version_and_checksum() {
    let mut infos = StreamerInfos::anchor();
    assert!(!infos.merge(&StreamerInfos::anchor()));
    let version = |version, checksum| ClassInfo { version, checksum, ..(*infos.classes[0]).clone() };
    let (newer, other) = (version(3, ANCHOR_CHECKSUM), version(2, 5));
    assert!(infos.push(newer.clone()) && infos.push(other.clone()) && !infos.push(newer.clone()));
    let mut united = all_kinds();
    assert!(united.merge(&infos) && united.merge(&rule("another")) && !united.merge(&rule("another")));
    assert_eq!((united.classes().len(), united.rules().len()), (4, 2));
    assert_eq!(united.find(ANCHOR, 3).map(|info| &**info), Some(&newer));
    assert_eq!(united.find_by_checksum(ANCHOR, 5).map(|info| &**info), Some(&other));
    assert_eq!(united.find(ANCHOR, 2).map(|info| info.checksum), Some(ANCHOR_CHECKSUM));
    assert_eq!(united.find("Klass", 2), None);
}

#[test]
fn the_real_files_have_the_same_layouts_after_writing() {
    let lists = real_lists();
    let mut classes = 0;
    let mut same = 0;
    for (name, list, key_bytes) in &lists {
        let infos = StreamerInfos::read(list, *key_bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        let written = infos.write(*key_bytes);
        assert_eq!(StreamerInfos::read(&written, *key_bytes).as_ref(), Ok(&infos), "{name}");
        assert_eq!(infos.write(7), StreamerInfos::read(&written, *key_bytes).unwrap().write(7));
        classes += infos.classes().len();
        same += usize::from(written.len() == list.len());
    }
    println!("{} lists with {classes} layouts; {same} have the same length", lists.len());
}

#[test]
fn damaged_lists_are_refused_or_read() {
    let own = all_kinds().write(64);
    for length in 0..own.len() {
        assert!(StreamerInfos::read(&own[..length], 64).is_err(), "{length} bytes");
    }
    let mut lists = real_lists();
    lists.push(("own".into(), own, 64));
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random as usize % below
    };
    for (_, list, key_bytes) in &lists {
        for _ in 0..60 {
            let _ = StreamerInfos::read(&list[..next(list.len())], *key_bytes).is_err();
            let mut damaged = list.clone();
            for _ in 0..=next(4) {
                let at = next(damaged.len());
                damaged[at] = [0, 0x40, 0x80, 0xff, damaged[at] ^ 1 << next(8)][next(5)];
            }
            if let Ok(infos) = StreamerInfos::read(&damaged, *key_bytes) {
                let written = infos.write(*key_bytes);
                assert_eq!(StreamerInfos::read(&written, *key_bytes), Ok(infos));
            }
        }
    }
}

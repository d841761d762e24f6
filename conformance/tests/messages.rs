//! Error messages for files and objects of the wrong kind.

use arrow_schema::{DataType, Field, Schema as ArrowSchema};
use bytes::Bytes;
use conformance::{memory, samples};
use tupelo::schema::Schema;
use tupelo::{ErrorKind, File};
use tupelo_format::container::FileLayout;

/// A ROOT file with objects of these paths and classes, which hold nothing.
fn file(objects: &[(&str, &str)]) -> File {
    let (mut layout, head) = FileLayout::create("f", 0, [0; 16]).expect("a file");
    for (path, class) in objects {
        layout.add(path, class, "", vec![0]).expect("an object");
    }
    let tail = layout.finish(head.len() as u64).expect("a tail");
    let mut bytes = [&head[..], &tail.append[..]].concat();
    for (offset, patch) in &tail.patches {
        bytes[*offset as usize..][..patch.len()].copy_from_slice(patch);
    }
    memory::file(&bytes.into()).expect("a file")
}

fn said(file: &File, name: Option<&str>) -> String {
    let error = file.ntuple(name).expect_err("no ntuple").to_string();
    error.strip_prefix(&format!("{}: ", file.name())).unwrap_or(&error).to_owned()
}

#[test]
fn the_error_for_an_object_that_is_not_an_ntuple_names_its_class() {
    let trees = file(&[("Events", "TTree"), ("Runs", "TTree"), ("h", "TH1D"), ("dir/g", "TGraph")]);
    assert_eq!(
        said(&trees, Some("Events")),
        "'Events' is a TTree, not an RNTuple; the file contains no ntuple; `tupelo import` converts a tree to an ntuple"
    );
    assert_eq!(
        said(&trees, Some("Events;1")),
        "'Events' is a TTree, not an RNTuple; the file contains no ntuple; `tupelo import` converts a tree to an ntuple"
    );
    assert_eq!(said(&trees, Some("dir")), "'dir' is a directory; it contains no ntuple and no tree");
    assert_eq!(
        said(&trees, Some("h")),
        "'h' is a TH1D, neither an RNTuple nor a tree; the file contains the trees 'Events', 'Runs'"
    );
    let none = "the file contains no ntuple; it contains 2 TTree ('Events', …), a TGraph 'dir/g', a TH1D 'h'";
    assert_eq!(said(&trees, None), none);
    assert_eq!(said(&file(&[]), None), "the file contains no ntuple");
    let mixed = file(&[("t", "TTree"), ("a", "ROOT::RNTuple"), ("dir/b", "ROOT::RNTuple")]);
    assert_eq!(
        said(&mixed, Some("t")),
        "'t' is a TTree, not an RNTuple; the file contains the ntuples 'a', 'dir/b'; `tupelo import` converts a tree \
         to an ntuple"
    );
    assert_eq!(said(&mixed, Some("dir")), "'dir' is a directory; it contains the ntuples 'dir/b'");
    let missing = mixed.ntuple(Some("c")).expect_err("no ntuple");
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

#[test]
fn the_error_for_another_file_names_its_format() {
    let refused = |bytes: &[u8], kind: ErrorKind| {
        let error = File::of_bytes("x", bytes.to_vec()).expect_err("no ROOT file");
        assert_eq!(error.kind(), kind);
        error.to_string()
    };
    let said = |bytes: &[u8]| refused(bytes, ErrorKind::OtherFormat);
    let long = |magic: &[u8]| [magic, &[7; 100]].concat();
    assert_eq!(said(&long(b"PAR1")), "memory:x: not a ROOT file: it is a Parquet file (at byte 0)");
    assert_eq!(said(&long(b"\x1f\x8b")), "memory:x: not a ROOT file: it is a file compressed with gzip (at byte 0)");
    assert_eq!(said(b""), "memory:x: not a ROOT file: it is empty (at byte 0)");
    assert_eq!(said(b"pt,eta\n"), "memory:x: not a ROOT file: it is text (at byte 0)");
    let whole: Bytes = samples::flat().build().expect("a file");
    assert!(refused(&whole[..30], ErrorKind::CutOff).contains("the file was cut off: it has 30 bytes"));
    let half = memory::file(&whole.slice(..whole.len() / 2)).expect("the header is there");
    let cut = half.ntuple(None).expect_err("cut off").to_string();
    assert!(cut.contains("the file was cut off: its header says that it ends at byte"), "{cut}");
}

/// Readers go 64 levels deep, so nothing deeper is written.
#[test]
fn fields_nested_too_deep_to_be_read_are_not_written() {
    let nested = |depth: usize| {
        let list = |inner: DataType, _| DataType::LargeList(Field::new("item", inner, false).into());
        let deep = (0..depth).fold(DataType::Int32, list);
        Schema::from_arrow(&ArrowSchema::new(vec![Field::new("x", deep, false)]))
    };
    assert!(nested(63).is_ok() && nested(64).is_ok());
    // Levels of Arrow that fields do not have.
    let list = |inner: DataType, _| DataType::LargeList(Field::new("item", inner, false).into());
    let values = DataType::Dictionary(DataType::Int32.into(), DataType::LargeUtf8.into());
    let deep = ArrowSchema::new(vec![Field::new("x", (0..64).fold(values, list), false)]);
    assert!(Schema::from_arrow(&deep).is_ok());
    for depth in [65, 1000] {
        let error = nested(depth).expect_err("too deep").to_string();
        assert_eq!(error, format!("field 'x': its type is nested {depth} deep, limit is 64"));
    }
}

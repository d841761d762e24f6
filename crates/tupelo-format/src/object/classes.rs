//! Classes that ROOT streams by code of its own, and so differently from what their streamer info says.

use super::cpp::Basic;
use crate::streamer::{ClassInfo, Element, ElementKind};

/// Those that are not read: their streamer info would mislead.
const NOT_READ: [&str; 8] = ["TBits", "TBtree", "TDirectory", "TExMap", "TMap", "TQObject", "TBasket", "TUUID"];

const ARRAY: &[&str] = &["fN", "fArray"];
const LIST: &[&str] = &["TObject", "fName", "fObjects"];

/// Classes that ROOT streams by code of its own, which is known here, with their bases and members.
const SPECIAL: [(&str, &[&str]); 19] = [
    ("TArrayC", ARRAY),
    ("TArrayD", ARRAY),
    ("TArrayF", ARRAY),
    ("TArrayI", ARRAY),
    ("TArrayL", ARRAY),
    ("TArrayL64", ARRAY),
    ("TArrayS", ARRAY),
    ("TClonesArray", &["TObject", "fName", "fLowerBound", "fObjects"]),
    ("TDatime", &["fDatime"]),
    ("THashList", LIST),
    ("TList", LIST),
    ("TNamed", &["TObject", "fName", "fTitle"]),
    ("TObjArray", &["TObject", "fName", "fLowerBound", "fObjects"]),
    ("TObjString", &["TObject", "fString"]),
    ("TObject", &["fUniqueID", "fBits"]),
    ("TRef", &["TObject", "fPID"]),
    ("TRefArray", &["TObject", "fName", "fLowerBound", "fPID", "fUIDs"]),
    ("TSortedList", LIST),
    ("TTreeIndex", &["TVirtualIndex", "fMajorName", "fMinorName", "fN", "fIndexValues", "fIndexValuesMinor", "fIndex"]),
];

/// Whether ROOT streams a class by code of its own, which is known here.
pub(super) fn is_special(name: &str) -> bool {
    SPECIAL.iter().any(|(special, _)| *special == name)
}

/// The layout of a class that ROOT streams by code of its own; `None` for all others.
pub(super) fn special_layout(name: &str) -> Option<ClassInfo> {
    let (name, members) = SPECIAL.iter().find(|(special, _)| *special == name)?;
    let elements = members.iter().map(|member| {
        let kind = match *member {
            "TObject" | "TVirtualIndex" => ElementKind::Base { version: 1 },
            _ => ElementKind::Basic,
        };
        Element::new(member, "", 0, kind)
    });
    let (elements, title) = (elements.collect(), Vec::new());
    Some(ClassInfo { name: (*name).to_owned(), title, bits: 0, version: 1, checksum: 0, elements })
}

/// The type of the items of a `TArray`.
pub fn array_item(name: &str) -> Option<Basic> {
    Some(match name {
        "TArrayC" => Basic::I8,
        "TArrayS" => Basic::I16,
        "TArrayI" => Basic::I32,
        "TArrayL" | "TArrayL64" => Basic::I64,
        "TArrayF" => Basic::F32,
        "TArrayD" => Basic::F64,
        _ => return None,
    })
}

/// Whether ROOT streams a class by code of its own that is not known here.
pub fn has_own_format(name: &str) -> bool {
    NOT_READ.contains(&name)
}

/// Whether ROOT streams a class by code of its own, and its objects have no members of known types: collections of any
/// objects, and references.
pub fn holds_objects(name: &str) -> bool {
    let names = ["THashList", "TList", "TSortedList", "TClonesArray", "TObjArray", "TRef", "TRefArray"];
    names.contains(&name)
}

//! Classes that ROOT streams by custom code, and so differently from what their streamer info says.

use super::cpp::Basic;
use crate::streamer::{ClassInfo, Element, ElementKind};

/// Those that are not read: their streamer info would mislead.
const NOT_READ: [&str; 7] = ["TBtree", "TDirectory", "TExMap", "TMap", "TQObject", "TBasket", "TUUID"];

const ARRAY: &[&str] = &["fN", "fArray"];
const LIST: &[&str] = &["TObject", "fName", "fObjects"];

/// Classes that ROOT streams by custom code, which is known here, with their bases and members.
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

/// Whether ROOT streams a class by custom code that is known here.
pub(super) fn is_special(name: &str) -> bool {
    SPECIAL.iter().any(|(special, _)| *special == name)
}

/// The layout of a class that ROOT streams by custom code; `None` for all others.
pub(super) fn special_layout(name: &str) -> Option<ClassInfo> {
    let (name, members) = SPECIAL.iter().find(|(special, _)| *special == name)?;
    let is_base = |member: &str| matches!(member, "TObject" | "TVirtualIndex");
    let (bases, members): (Vec<&str>, Vec<&str>) = members.iter().copied().partition(|member| is_base(member));
    Some(layout_of(name, &bases, &members))
}

/// The layout of a class with these bases and members.
pub(super) fn layout_of(name: &str, bases: &[&str], members: &[&str]) -> ClassInfo {
    let bases = bases.iter().map(|base| Element::new(base, "", 0, ElementKind::Base { version: 1 }));
    let members = members.iter().map(|member| Element::new(member, "", 0, ElementKind::Basic));
    let (elements, title) = (bases.chain(members).collect(), Vec::new());
    ClassInfo { name: name.to_owned(), title, bits: 0, version: 1, checksum: 0, elements }
}

/// The type of the elements of a `TMatrixTSym`, whose upper triangle ROOT stores; `None` for other classes.
pub fn symmetric_matrix_item(name: &str) -> Option<&str> {
    name.strip_prefix("TMatrixTSym<")?.strip_suffix('>').map(str::trim)
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

/// Whether ROOT streams a class by custom code that is not known here.
pub fn has_own_format(name: &str) -> bool {
    NOT_READ.contains(&name)
}

/// Whether ROOT streams a class by custom code, and columns cannot hold its objects: collections of any objects.
pub fn has_no_columns(name: &str) -> bool {
    ["THashList", "TList", "TSortedList", "TClonesArray", "TObjArray"].contains(&name)
}

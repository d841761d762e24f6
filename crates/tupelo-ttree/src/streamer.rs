//! Layouts of ROOT's own classes of trees, for files that are written here.

use tupelo_format::streamer::{ClassInfo, Counter, Element, ElementKind, StreamerInfos};

use self::Member::{Any, Base, Counted, Number, Object, Pointer, Text};

/// Bits that ROOT gives to the objects of a streamer info.
const OBJECT_BITS: u32 = 1 << 16;

/// A base or a member of a class. Numbers are ROOT's codes of types (`TVirtualStreamerInfo::EReadWrite`), then bytes in
/// memory.
enum Member {
    /// Name, code, version, checksum.
    Base(&'static str, i32, i32, u32),
    /// Name, type, code, bytes.
    Number(&'static str, &'static str, i32, i32),
    /// The same for as many numbers as another member says.
    Counted(&'static str, &'static str, i32, i32, &'static str),
    /// A `TString`.
    Text(&'static str),
    /// An object of a class that derives from `TObject`.
    Object(&'static str, &'static str, i32, i32),
    /// An object of another class.
    Any(&'static str, &'static str, i32, i32),
    /// A pointer to an object.
    Pointer(&'static str, &'static str),
}

/// Name, version, checksum and members, as ROOT 6.40 writes them.
type Class = (&'static str, i32, u32, &'static [Member]);

/// The classes of trees and those that they consist of.
#[rustfmt::skip]
const CLASSES: [Class; 28] = [
    ("TObject", 1, 0x901bc02d, &[
        Number("fUniqueID", "unsigned int", 13, 4),
        Number("fBits", "unsigned int", 15, 4),
    ]),
    ("TNamed", 1, 0xdfb74a3c, &[
        Base("TObject", 66, 1, 0x901bc02d),
        Text("fName"),
        Text("fTitle"),
    ]),
    ("TString", 2, 0x00017419, &[
    ]),
    ("TCollection", 3, 0x57e3cb9c, &[
        Base("TObject", 66, 1, 0x901bc02d),
        Text("fName"),
        Number("fSize", "int", 3, 4),
    ]),
    ("TSeqCollection", 0, 0xfc6c3bc6, &[
        Base("TCollection", 0, 3, 0x57e3cb9c),
    ]),
    ("TObjArray", 3, 0xa99e6552, &[
        Base("TSeqCollection", 0, 0, 0xfc6c3bc6),
        Number("fLowerBound", "int", 3, 4),
        Number("fLast", "int", 3, 4),
    ]),
    ("TAttLine", 2, 0x94074549, &[
        Number("fLineColor", "short", 2, 2),
        Number("fLineStyle", "short", 2, 2),
        Number("fLineWidth", "short", 2, 2),
    ]),
    ("TAttFill", 2, 0xffd92a92, &[
        Number("fFillColor", "short", 2, 2),
        Number("fFillStyle", "short", 2, 2),
    ]),
    ("TAttMarker", 3, 0x291d8bec, &[
        Number("fMarkerColor", "short", 2, 2),
        Number("fMarkerStyle", "short", 2, 2),
        Number("fMarkerSize", "float", 5, 4),
    ]),
    ("ROOT::TIOFeatures", 1, 0x1aa12f10, &[
        Number("fIOBits", "unsigned char", 11, 1),
    ]),
    ("TTree", 20, 0x7264e07f, &[
        Base("TNamed", 67, 1, 0xdfb74a3c),
        Base("TAttLine", 0, 2, 0x94074549),
        Base("TAttFill", 0, 2, 0xffd92a92),
        Base("TAttMarker", 0, 3, 0x291d8bec),
        Number("fEntries", "long long", 16, 8),
        Number("fTotBytes", "long long", 16, 8),
        Number("fZipBytes", "long long", 16, 8),
        Number("fSavedBytes", "long long", 16, 8),
        Number("fFlushedBytes", "long long", 16, 8),
        Number("fWeight", "double", 8, 8),
        Number("fTimerInterval", "int", 3, 4),
        Number("fScanField", "int", 3, 4),
        Number("fUpdate", "int", 3, 4),
        Number("fDefaultEntryOffsetLen", "int", 3, 4),
        Number("fNClusterRange", "int", 6, 4),
        Number("fMaxEntries", "long long", 16, 8),
        Number("fMaxEntryLoop", "long long", 16, 8),
        Number("fMaxVirtualSize", "long long", 16, 8),
        Number("fAutoSave", "long long", 16, 8),
        Number("fAutoFlush", "long long", 16, 8),
        Number("fEstimate", "long long", 16, 8),
        Counted("fClusterRangeEnd", "long long*", 56, 8, "fNClusterRange"),
        Counted("fClusterSize", "long long*", 56, 8, "fNClusterRange"),
        Any("fIOFeatures", "ROOT::TIOFeatures", 62, 1),
        Object("fBranches", "TObjArray", 61, 64),
        Object("fLeaves", "TObjArray", 61, 64),
        Pointer("fAliases", "TList*"),
        Any("fIndexValues", "TArrayD", 62, 24),
        Any("fIndex", "TArrayI", 62, 24),
        Pointer("fTreeIndex", "TVirtualIndex*"),
        Pointer("fFriends", "TList*"),
        Pointer("fUserInfo", "TList*"),
        Pointer("fBranchRef", "TBranchRef*"),
    ]),
    ("TBranch", 13, 0x10978aac, &[
        Base("TNamed", 67, 1, 0xdfb74a3c),
        Base("TAttFill", 0, 2, 0xffd92a92),
        Number("fCompress", "int", 3, 4),
        Number("fBasketSize", "int", 3, 4),
        Number("fEntryOffsetLen", "int", 3, 4),
        Number("fWriteBasket", "int", 3, 4),
        Number("fEntryNumber", "long long", 16, 8),
        Any("fIOFeatures", "ROOT::TIOFeatures", 62, 1),
        Number("fOffset", "int", 3, 4),
        Number("fMaxBaskets", "int", 6, 4),
        Number("fSplitLevel", "int", 3, 4),
        Number("fEntries", "long long", 16, 8),
        Number("fFirstEntry", "long long", 16, 8),
        Number("fTotBytes", "long long", 16, 8),
        Number("fZipBytes", "long long", 16, 8),
        Object("fBranches", "TObjArray", 61, 64),
        Object("fLeaves", "TObjArray", 61, 64),
        Object("fBaskets", "TObjArray", 61, 64),
        Counted("fBasketBytes", "int*", 43, 4, "fMaxBaskets"),
        Counted("fBasketEntry", "long long*", 56, 8, "fMaxBaskets"),
        Counted("fBasketSeek", "long long*", 56, 8, "fMaxBaskets"),
        Text("fFileName"),
    ]),
    ("TBranchElement", 10, 0xe74f5e63, &[
        Base("TBranch", 0, 13, 0x10978aac),
        Text("fClassName"),
        Text("fParentName"),
        Text("fClonesName"),
        Number("fCheckSum", "unsigned int", 13, 4),
        Number("fClassVersion", "short", 2, 2),
        Number("fID", "int", 3, 4),
        Number("fType", "int", 3, 4),
        Number("fStreamerType", "int", 3, 4),
        Number("fMaximum", "int", 3, 4),
        Pointer("fBranchCount", "TBranchElement*"),
        Pointer("fBranchCount2", "TBranchElement*"),
    ]),
    ("TBranchObject", 1, 0xa4720f49, &[
        Base("TBranch", 0, 13, 0x10978aac),
        Text("fClassName"),
    ]),
    ("TLeafObject", 4, 0x26ba7c4c, &[
        Base("TLeaf", 0, 2, 0x6d1e8152),
        Number("fVirtual", "bool", 18, 1),
    ]),
    ("TLeaf", 2, 0x6d1e8152, &[
        Base("TNamed", 67, 1, 0xdfb74a3c),
        Number("fLen", "int", 3, 4),
        Number("fLenType", "int", 3, 4),
        Number("fOffset", "int", 3, 4),
        Number("fIsRange", "bool", 18, 1),
        Number("fIsUnsigned", "bool", 18, 1),
        Pointer("fLeafCount", "TLeaf*"),
    ]),
    ("TLeafElement", 1, 0xa04f8893, &[
        Base("TLeaf", 0, 2, 0x6d1e8152),
        Number("fID", "int", 3, 4),
        Number("fType", "int", 3, 4),
    ]),
    ("TLeafO", 1, 0x02ae48d3, &[
        Base("TLeaf", 0, 2, 0x6d1e8152),
        Number("fMinimum", "bool", 18, 1),
        Number("fMaximum", "bool", 18, 1),
    ]),
    ("TLeafB", 1, 0x0f1e4b5e, &[
        Base("TLeaf", 0, 2, 0x6d1e8152),
        Number("fMinimum", "char", 1, 1),
        Number("fMaximum", "char", 1, 1),
    ]),
    ("TLeafS", 1, 0x150ceecf, &[
        Base("TLeaf", 0, 2, 0x6d1e8152),
        Number("fMinimum", "short", 2, 2),
        Number("fMaximum", "short", 2, 2),
    ]),
    ("TLeafI", 1, 0x7e6aae19, &[
        Base("TLeaf", 0, 2, 0x6d1e8152),
        Number("fMinimum", "int", 3, 4),
        Number("fMaximum", "int", 3, 4),
    ]),
    ("TLeafL", 1, 0xde320862, &[
        Base("TLeaf", 0, 2, 0x6d1e8152),
        Number("fMinimum", "long long", 16, 8),
        Number("fMaximum", "long long", 16, 8),
    ]),
    ("TLeafG", 1, 0xeca71cb7, &[
        Base("TLeaf", 0, 2, 0x6d1e8152),
        Number("fMinimum", "long", 4, 8),
        Number("fMaximum", "long", 4, 8),
    ]),
    ("TLeafF", 1, 0x3add9d72, &[
        Base("TLeaf", 0, 2, 0x6d1e8152),
        Number("fMinimum", "float", 5, 4),
        Number("fMaximum", "float", 5, 4),
    ]),
    ("TLeafD", 1, 0x118e8776, &[
        Base("TLeaf", 0, 2, 0x6d1e8152),
        Number("fMinimum", "double", 8, 8),
        Number("fMaximum", "double", 8, 8),
    ]),
    ("TLeafF16", 2, 0xeb35f883, &[
        Base("TLeaf", 0, 2, 0x6d1e8152),
        Number("fMinimum", "Float16_t", 19, 4),
        Number("fMaximum", "Float16_t", 19, 4),
    ]),
    ("TLeafD32", 2, 0xe1dc6401, &[
        Base("TLeaf", 0, 2, 0x6d1e8152),
        Number("fMinimum", "Double32_t", 9, 8),
        Number("fMaximum", "Double32_t", 9, 8),
    ]),
    ("TLeafC", 1, 0xfbe3b2f3, &[
        Base("TLeaf", 0, 2, 0x6d1e8152),
        Number("fMinimum", "int", 3, 4),
        Number("fMaximum", "int", 3, 4),
    ]),
];

/// The layouts of the classes that are chosen by their names and versions.
pub fn classes(is_chosen: impl Fn(&str, i32) -> bool) -> StreamerInfos {
    let mut infos = StreamerInfos::default();
    for (name, version, checksum, members) in CLASSES.iter().filter(|class| is_chosen(class.0, class.1)) {
        infos.push(ClassInfo {
            name: (*name).to_owned(),
            title: Vec::new(),
            bits: OBJECT_BITS,
            version: *version,
            checksum: *checksum,
            elements: members.iter().map(|member| element(member, name, *version)).collect(),
        });
    }
    infos
}

fn element(member: &Member, class_name: &str, version: i32) -> Element {
    let new = |name, type_name, code, size, kind| Element {
        size,
        bits: OBJECT_BITS,
        ..Element::new(name, type_name, code, kind)
    };
    match *member {
        Base(name, code, version, checksum) => Element {
            max_index: [0, checksum.cast_signed(), 0, 0, 0],
            ..new(name, "BASE", code, 0, ElementKind::Base { version })
        },
        Number(name, type_name, code, size) => new(name, type_name, code, size, ElementKind::Basic),
        Counted(name, type_name, code, size, counter) => {
            let title = format!("[{counter}]").into_bytes();
            let counter = Counter { version, name: counter.to_owned(), class_name: class_name.to_owned() };
            Element { title, ..new(name, type_name, code, size, ElementKind::BasicPointer(counter)) }
        }
        Text(name) => new(name, "TString", 65, 24, ElementKind::String),
        Object(name, type_name, code, size) => new(name, type_name, code, size, ElementKind::Object),
        Any(name, type_name, code, size) => new(name, type_name, code, size, ElementKind::ObjectAny),
        Pointer(name, type_name) => new(name, type_name, 64, 8, ElementKind::ObjectPointer),
    }
}

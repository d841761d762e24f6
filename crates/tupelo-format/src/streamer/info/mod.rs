//! The layouts of classes as a ROOT file describes them (`TStreamerInfo`), in a list that each file with objects has.
//!
//! What other writers wrote is taken apart and put together again, so lists can be united; the result is the same list,
//! and in ROOT's own order the same bytes. A list may contain more than layouts: the rules by which ROOT converts old
//! classes, a list of strings, are kept; anything else, for which ROOT prints a warning, is left out.

mod checksum;
mod histograms;
mod known;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub use self::checksum::class_checksum;
use crate::type_name::comparable;

/// Maximum depth of base classes that are searched.
const MAX_BASES: usize = 64;
/// Bit of an element whose title contains its range of values: `[min,max,bits]` (`TStreamerElement::kHasRange`).
const HAS_RANGE: u32 = 1 << 6;
/// Bits of a `TObject` of its own.
const OBJECT_BITS: u32 = 0x0001_0000;

/// ROOT's codes of types (`TVirtualStreamerInfo::EReadWrite`).
pub mod code {
    /// `int`, and enums.
    pub const INT: i32 = 3;
    /// Bases and members that are not stored.
    pub const NOT_STORED: i32 = -1;
    /// `char*`.
    pub const CHARACTERS: i32 = 7;
    /// The bits of a `TObject`.
    pub const BITS: i32 = 15;
    /// Added to the code of a type for fixed arrays …
    pub const ARRAY: i32 = 20;
    /// … and for pointers to numbers.
    pub const POINTER: i32 = 40;
}

/// The anchor's class.
const ANCHOR: &str = "ROOT::RNTuple";
const ANCHOR_VERSION: i32 = 2;
/// The checksum that ROOT computes from names and types of the members.
const ANCHOR_CHECKSUM: u32 = 0x28e6_32ec;
const U16: (&str, i32, i32) = ("unsigned short", 12, 2);
const U64: (&str, i32, i32) = ("unsigned long", 14, 8);
/// Name; type's name, its code and its bytes in memory.
const ANCHOR_MEMBERS: [(&str, (&str, i32, i32)); 11] = [
    ("fVersionEpoch", U16),
    ("fVersionMajor", U16),
    ("fVersionMinor", U16),
    ("fVersionPatch", U16),
    ("fSeekHeader", U64),
    ("fNBytesHeader", U64),
    ("fLenHeader", U64),
    ("fSeekFooter", U64),
    ("fNBytesFooter", U64),
    ("fLenFooter", U64),
    ("fMaxKeySize", U64),
];

/// The layouts of a file's classes: several versions of a class are several layouts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamerInfos {
    classes: Vec<Arc<ClassInfo>>,
    by_name: HashMap<String, Versions>,
    /// The first class of each name, by a spelling in which those of all writers agree.
    by_spelling: HashMap<String, usize>,
    rules: Vec<Vec<u8>>,
}

/// The layouts of one class, by their places in the list. A file may have any number of them, and refer to each from
/// any number of objects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Versions {
    all: Vec<usize>,
    newest: usize,
    /// The first of each version and of each checksum.
    by_version: HashMap<i32, usize>,
    by_checksum: HashMap<u32, usize>,
    known: HashSet<(i32, u32)>,
}

/// The layout of one version of a class.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClassInfo {
    /// C++ name.
    pub name: String,
    /// Free text of unspecified encoding.
    pub title: Vec<u8>,
    /// ROOT's object bits.
    pub bits: u32,
    /// Class version; classes without one are identified by their checksums.
    pub version: i32,
    /// ROOT's checksum over bases and members.
    pub checksum: u32,
    /// Bases, then members, in the order in which they are stored.
    pub elements: Vec<Element>,
}

/// One base or member of a class (`TStreamerElement`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    /// Name of the member, or of the base class.
    pub name: String,
    /// The comment of the member, of unspecified encoding; contains counters and ranges in brackets.
    pub title: Vec<u8>,
    /// ROOT's object bits.
    pub bits: u32,
    /// ROOT's code of the type (`TVirtualStreamerInfo::EReadWrite`).
    pub code: i32,
    /// Bytes in memory.
    pub size: i32,
    /// Number of items of a fixed array, all dimensions together; else 0.
    pub array_length: i32,
    /// Number of dimensions.
    pub array_dimensions: i32,
    /// Length of each dimension. For a base class the second number is the base's checksum.
    pub max_index: [i32; 5],
    /// C++ type.
    pub type_name: String,
    /// What it is.
    pub kind: ElementKind,
}

/// The kind of an element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElementKind {
    /// A base class.
    Base {
        /// Its version; -1 for classes without one, 0 where the file does not say.
        version: i32,
    },
    /// A number, or a fixed array of them.
    Basic,
    /// A pointer to as many numbers as another member says.
    BasicPointer(Counter),
    /// A pointer to as many objects as another member says.
    Loop(Counter),
    /// An object of a class that derives from `TObject`.
    Object,
    /// An object of another class.
    ObjectAny,
    /// A pointer to an object of a class that derives from `TObject`.
    ObjectPointer,
    /// A pointer to an object of another class.
    ObjectAnyPointer,
    /// A `TString`.
    String,
    /// A container of the standard library.
    Stl {
        /// ROOT's number of the container (`ROOT::ESTLType`).
        container: i32,
        /// ROOT's code of the type of its items.
        item: i32,
    },
    /// A `std::string`, with the same two numbers.
    StlString {
        /// ROOT's number of the container.
        container: i32,
        /// ROOT's code of the type.
        item: i32,
    },
    /// An unknown kind of element, kept unchanged.
    Other {
        /// Class of the element.
        class_name: String,
        /// Its version.
        version: u16,
        /// The bytes after the part common to all elements.
        rest: Vec<u8>,
    },
}

/// The member that holds the number of values that a pointer refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    /// Version of the class that has the member.
    pub version: i32,
    /// Name of the member.
    pub name: String,
    /// Class that has the member: the pointer's own, or one of its bases.
    pub class_name: String,
}

impl ClassInfo {
    /// The layout of a class known only by its name.
    pub fn unknown(name: &str) -> Self {
        let (title, elements) = (Vec::new(), Vec::new());
        Self { name: name.to_owned(), title, bits: 0, version: 0, checksum: 0, elements }
    }

    fn member_names(&self) -> impl Iterator<Item = &str> {
        self.elements.iter().map(|element| element.name.as_str())
    }

    /// Whether ROOT streams objects as a container, by a collection proxy: the container itself is the only element, `This`.
    pub fn is_container(&self) -> bool {
        match self.elements.as_slice() {
            [element] => element.name == "This" && matches!(element.kind, ElementKind::Stl { .. }),
            _ => false,
        }
    }

    /// The position of a member among the elements.
    pub fn position(&self, member: &str) -> Option<usize> {
        self.elements.iter().position(|element| element.name == member)
    }
}

impl Element {
    /// A member that is neither an array nor commented, with ROOT's code of its type.
    pub fn new(name: &str, type_name: &str, code: i32, kind: ElementKind) -> Self {
        Self {
            name: name.to_owned(),
            title: Vec::new(),
            bits: 0,
            code,
            size: 0,
            array_length: 0,
            array_dimensions: 0,
            max_index: [0; 5],
            type_name: type_name.to_owned(),
            kind,
        }
    }

    /// The class of a member, also behind pointers.
    pub fn class_name(&self) -> &str {
        let name = self.type_name.trim_end_matches(['*', ' ']);
        name.strip_prefix("const ").unwrap_or(name)
    }

    /// Lengths of the dimensions of a fixed array; empty where it is none.
    pub fn dimensions(&self) -> &[i32] {
        let count = usize::try_from(self.array_dimensions).unwrap_or(0);
        self.max_index.get(..count).unwrap_or(&self.max_index)
    }

    /// The base class' checksum; `None` unless the element is a base class.
    pub fn base_checksum(&self) -> Option<u32> {
        match self.kind {
            ElementKind::Base { .. } => self.max_index.get(1).map(|checksum| checksum.cast_unsigned()),
            _ => None,
        }
    }

    /// Whether the values are stored as scaled integers or with fewer bits, as the title says.
    pub fn has_range(&self) -> bool {
        self.bits & HAS_RANGE != 0
    }
}

impl StreamerInfos {
    /// The layout of the anchor's class, which every file with an ntuple has.
    pub fn anchor() -> Self {
        let element = |(name, (type_name, code, size)): (&str, (&str, i32, i32))| {
            let element = Element::new(name, type_name, code, ElementKind::Basic);
            Element { bits: OBJECT_BITS, size, ..element }
        };
        let mut infos = Self::default();
        infos.push(ClassInfo {
            name: ANCHOR.to_owned(),
            title: Vec::new(),
            bits: OBJECT_BITS,
            version: ANCHOR_VERSION,
            checksum: ANCHOR_CHECKSUM,
            elements: ANCHOR_MEMBERS.into_iter().map(element).collect(),
        });
        infos
    }

    /// All layouts, in the order of the list.
    pub fn classes(&self) -> impl ExactSizeIterator<Item = &ClassInfo> {
        self.classes.iter().map(Arc::as_ref)
    }

    /// The same.
    pub fn shared(&self) -> impl ExactSizeIterator<Item = &Arc<ClassInfo>> {
        self.classes.iter()
    }

    /// The rules by which ROOT converts old classes, as it wrote them.
    pub fn rules(&self) -> &[Vec<u8>] {
        &self.rules
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.classes.is_empty() && self.rules.is_empty()
    }

    /// Adds a layout, unless there is one of the same name, version and checksum. Says whether it was added.
    pub fn push(&mut self, info: ClassInfo) -> bool {
        self.push_shared(&Arc::new(info))
    }

    fn push_shared(&mut self, info: &Arc<ClassInfo>) -> bool {
        let index = self.classes.len();
        if !self.by_name.contains_key(&info.name) {
            self.by_spelling.entry(comparable(&info.name)).or_insert(index);
        }
        let versions = self.by_name.entry(info.name.clone()).or_default();
        if !versions.known.insert((info.version, info.checksum)) {
            return false;
        }
        let newest = self.classes.get(versions.newest).filter(|_| !versions.all.is_empty());
        if newest.is_none_or(|newest| newest.version <= info.version) {
            versions.newest = index;
        }
        versions.all.push(index);
        versions.by_version.entry(info.version).or_insert(index);
        versions.by_checksum.entry(info.checksum).or_insert(index);
        self.classes.push(Arc::clone(info));
        true
    }

    /// Adds what another list has more than this one. Says whether that was anything.
    pub fn merge(&mut self, other: &Self) -> bool {
        let mut is_changed = false;
        for info in &other.classes {
            is_changed |= self.push_shared(info);
        }
        for rule in &other.rules {
            if !self.rules.contains(rule) {
                self.rules.push(rule.clone());
                is_changed = true;
            }
        }
        is_changed
    }

    /// A class of another list that has other members here, in the same version. Files differ in the codes of some members.
    pub fn contradiction<'o>(&self, other: &'o Self) -> Option<&'o ClassInfo> {
        let contradicts = |info: &&Arc<ClassInfo>| {
            let own = self.named(&info.name).find(|own| own.version == info.version);
            own.is_some_and(|own| !own.member_names().eq(info.member_names()))
        };
        other.classes.iter().find(contradicts).map(|info| &**info)
    }

    /// All versions of a class, in the order of the list.
    pub fn named(&self, name: &str) -> impl Iterator<Item = &Arc<ClassInfo>> {
        let indices = self.by_name.get(name).map_or(&[][..], |versions| &versions.all);
        indices.iter().filter_map(|&index| self.classes.get(index))
    }

    /// The newest version of a class; the last of them in the list.
    pub fn newest(&self, name: &str) -> Option<&Arc<ClassInfo>> {
        self.classes.get(self.by_name.get(name)?.newest)
    }

    /// Whether objects of a class without a byte count have no version either. ROOT reads classes that derive from
    /// `TObject` that way, except those that it defines itself (`TBufferFile::ReadClassEmulated`).
    pub fn may_lack_head(&self, class: &ClassInfo) -> bool {
        if Self::known().newest(&class.name).is_some() {
            return false;
        }
        let mut class = class;
        for _ in 0..MAX_BASES {
            let bases = class.elements.iter().filter(|element| matches!(element.kind, ElementKind::Base { .. }));
            let names: Vec<&str> = bases.map(|base| base.name.as_str()).collect();
            if names.contains(&"TObject") {
                return true;
            }
            let first = names.first().and_then(|name| self.newest(self.spelling(name)?));
            let Some(base) = first else { return false };
            class = base;
        }
        false
    }

    /// The name under which a class is listed, which may be spelt differently.
    pub fn spelling(&self, name: &str) -> Option<&str> {
        let listed = self.by_name.get(name).and_then(|versions| versions.all.first());
        let index = listed.or_else(|| self.by_spelling.get(&comparable(name)))?;
        self.classes.get(*index).map(|info| info.name.as_str())
    }

    /// The layout of a version of a class.
    pub fn find(&self, name: &str, version: i32) -> Option<&Arc<ClassInfo>> {
        self.classes.get(*self.by_name.get(name)?.by_version.get(&version)?)
    }

    /// The layout of a class by its checksum.
    pub fn find_by_checksum(&self, name: &str, checksum: u32) -> Option<&Arc<ClassInfo>> {
        self.classes.get(*self.by_name.get(name)?.by_checksum.get(&checksum)?)
    }
}

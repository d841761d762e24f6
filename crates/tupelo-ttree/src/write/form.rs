//! The values of the fields of a tree, and their names in C++ and ROOT.

use tupelo_format::object::Basic;
use tupelo_format::streamer::Counter;
use tupelo_format::streamer::code::{ARRAY, BITS, POINTER};

/// How lists of numbers are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Jagged {
    /// As arrays whose length is in a separate branch: `nx/I` and `x[nx]/F`.
    #[default]
    Counter,
    /// As `std::vector`s.
    Vector,
    /// As arrays if the list has a counter that is known, otherwise as vectors.
    Same,
}

impl Jagged {
    /// The form of one list.
    #[must_use]
    pub fn of(self, has_counter: bool) -> Self {
        match self {
            Self::Same if has_counter => Self::Counter,
            Self::Same => Self::Vector,
            other => other,
        }
    }
}

/// The form of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Form {
    /// A number or `bool`.
    Number(Basic),
    /// `std::string`.
    Text,
    /// `TString`, in classes and containers.
    RootText,
    /// A fixed array.
    Fixed(usize, Box<Form>),
    /// `std::vector`.
    List(Box<Form>),
    /// Another container.
    Container(Box<Container>),
    /// An object with members.
    Record(Record),
    /// A `TClonesArray`.
    Clones(Box<Clones>),
    /// A pointer to numbers, in classes.
    Pointed(Box<Pointed>),
    /// The bits of a `TObject`.
    ObjectBits,
}

/// A container that is not a `std::vector`.
#[derive(Debug, Clone, PartialEq)]
pub struct Container {
    /// C++ name.
    pub class_name: String,
    /// Its kind.
    pub kind: ContainerKind,
    /// The items; of a map pairs of key and value.
    pub item: Form,
}

/// Kinds of containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainerKind {
    /// Of the standard library, by ROOT's number (`ROOT::ESTLType`).
    Standard(i32),
    /// A class that ROOT takes for a container.
    Class {
        /// Its version.
        version: i32,
        /// Its checksum. It is that of its members, which a file does not describe.
        checksum: Option<u32>,
    },
}

/// Names of the containers of the standard library, and ROOT's numbers of them.
const STANDARD: [(&str, i32); 11] = [
    ("list", 2),
    ("deque", 3),
    ("map", 4),
    ("multimap", 5),
    ("set", 6),
    ("multiset", 7),
    ("forward_list", 9),
    ("unordered_set", 10),
    ("unordered_multiset", 11),
    ("unordered_map", 12),
    ("unordered_multimap", 13),
];
/// ROOT's numbers of maps.
const MAPS: [i32; 4] = [4, 5, 12, 13];

impl Container {
    /// A container of the standard library but for `std::vector`, by its name without arguments.
    pub fn standard(template: &str, item: Form) -> Option<Self> {
        let &(template, number) = STANDARD.iter().find(|(name, _)| *name == template)?;
        let arguments = match &item {
            Form::Record(pair) if MAPS.contains(&number) => {
                pair.members.iter().map(|(_, part)| part.type_name()).collect::<Vec<_>>().join(",")
            }
            item => item.type_name(),
        };
        Some(Self { class_name: template_of(template, &arguments), kind: ContainerKind::Standard(number), item })
    }

    /// Whether it is of the standard library.
    pub fn is_standard(&self) -> bool {
        matches!(self.kind, ContainerKind::Standard(_))
    }

    /// Whether it is of the standard library, and no map.
    pub fn is_sequence(&self) -> bool {
        matches!(self.kind, ContainerKind::Standard(number) if !MAPS.contains(&number))
    }

    /// Version and checksum of a class that is a container.
    pub(super) fn class(&self) -> Option<(i32, Option<u32>)> {
        match self.kind {
            ContainerKind::Class { version, checksum } => Some((version, checksum)),
            ContainerKind::Standard(_) => None,
        }
    }

    /// The pair of key and value of a map.
    pub(super) fn pair(&self) -> Option<&Record> {
        match (&self.kind, &self.item) {
            (ContainerKind::Standard(number), Form::Record(pair)) if MAPS.contains(number) => Some(pair),
            _ => None,
        }
    }
}

/// ROOT's array of objects of one class, which inherits from `TObject`.
#[derive(Debug, Clone, PartialEq)]
pub struct Clones {
    /// The class of the items.
    pub item: Record,
    /// ROOT's code of the member: [the array itself](CLONES_MEMBER), or a pointer to it.
    pub code: i32,
}

/// ROOT's class of such arrays.
pub const CLONES: &str = "TClonesArray";
/// ROOT's code of members that are such an array.
pub const CLONES_MEMBER: i32 = ROOT_OBJECT_MEMBER;

impl Clones {
    /// Whether the member is a pointer.
    pub(super) fn is_pointer(&self) -> bool {
        self.code != CLONES_MEMBER
    }
}

/// A pointer to as many numbers as another member of the class says.
#[derive(Debug, Clone, PartialEq)]
pub struct Pointed {
    /// The numbers.
    pub item: Basic,
    /// The member that has their number.
    pub counter: Counter,
}

/// A class with members.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// C++ name.
    pub class_name: String,
    /// Version; 1 for classes that have none.
    pub version: i32,
    /// Names and forms. [Base classes](is_base) are the first ones.
    pub members: Vec<(String, Form)>,
    /// Whether the entries of a tree are written again, whose readers know the class.
    pub is_known: bool,
    /// The checksum, if a source describes the class with other spellings of the same types.
    pub stated_checksum: Option<u32>,
}

/// A member of a class or of one of its bases.
#[derive(Debug)]
pub(super) struct FlatMember<'r> {
    /// Where its values are.
    pub(super) path: Vec<usize>,
    /// The class that has it, and its number there.
    pub(super) owner: &'r Record,
    pub(super) id: usize,
    pub(super) name: &'r str,
    pub(super) form: &'r Form,
}

impl Record {
    /// A class.
    pub fn new(class_name: &str, version: i32, members: Vec<(String, Form)>) -> Self {
        Self { class_name: class_name.to_owned(), version, members, is_known: false, stated_checksum: None }
    }

    /// `std::pair`, whose class ROOT describes as any other.
    pub fn pair(parts: [Form; 2]) -> Self {
        let [first, second] = parts;
        let arguments = format!("{},{}", first.type_name(), second.type_name());
        Self::new(&template_of("pair", &arguments), 1, vec![("first".to_owned(), first), ("second".to_owned(), second)])
    }

    /// The members with those of base classes, which come first.
    pub(super) fn flat_members(&self) -> Vec<FlatMember<'_>> {
        let mut found = Vec::new();
        self.add_flat(&[], &mut found);
        found
    }

    fn add_flat<'r>(&'r self, path: &[usize], found: &mut Vec<FlatMember<'r>>) {
        for (id, (name, form)) in self.members.iter().enumerate() {
            let path = [path, &[id]].concat();
            match form {
                Form::Record(base) if is_base(name) => base.add_flat(&path, found),
                _ => found.push(FlatMember { path, owner: self, id, name, form }),
            }
        }
    }

    /// Whether a member has the number of items of another one.
    pub(super) fn counts(&self, member: &str) -> bool {
        self.members.iter().any(|(_, form)| match form {
            Form::Pointed(pointed) => pointed.counter.class_name == self.class_name && pointed.counter.name == member,
            _ => false,
        })
    }

    /// Whether it is a `std::pair`.
    pub(super) fn is_pair(&self) -> bool {
        self.class_name.starts_with("pair<")
    }

    /// ROOT's base class `TObject`.
    pub fn root_object() -> Self {
        let members = vec![("fUniqueID".to_owned(), Form::Number(Basic::U32)), ("fBits".to_owned(), Form::ObjectBits)];
        Self::new(ROOT_OBJECT, 1, members)
    }

    /// Whether it is `TObject`, which streams itself.
    pub(super) fn is_root_object(&self) -> bool {
        self.class_name == ROOT_OBJECT
    }

    /// Whether the class is `TObject` or inherits from it.
    pub fn has_root_object(&self) -> bool {
        let is_heir = |(name, form): &(String, Form)| match form {
            Form::Record(base) => is_base(name) && base.has_root_object(),
            _ => false,
        };
        self.is_root_object() || self.members.iter().any(is_heir)
    }

    /// ROOT's code of members with this class.
    pub(super) fn code(&self) -> i32 {
        if self.has_root_object() { ROOT_OBJECT_MEMBER } else { OBJECT }
    }

    /// ROOT's code of this base class.
    pub(super) fn base_code(&self) -> i32 {
        if self.is_root_object() { ROOT_OBJECT_BASE } else { BASE }
    }

    /// Whether objects consist of more than base classes without members.
    pub fn has_values(&self) -> bool {
        self.members.iter().any(|(name, form)| match form {
            Form::Record(base) if is_base(name) => base.has_values(),
            _ => true,
        })
    }
}

/// Whether a member is a base class, which has the name `:_0` and so on.
pub fn is_base(member: &str) -> bool {
    member.starts_with(":_")
}

/// A top-level field.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Name.
    pub name: String,
    /// The form of its values.
    pub form: Form,
    /// Free text; empty for the usual title of its branch.
    pub title: String,
    /// Of a list: the field with the number of its items, which may count other lists too. By default a counter of its
    /// own, `nNAME`.
    pub counter: Option<String>,
    /// How its lists are stored, if not as those of other fields.
    pub jagged: Option<Jagged>,
    /// The class of a whole container in another spelling.
    pub spelling: Option<String>,
}

/// ROOT's base class whose heirs have separate codes.
pub const ROOT_OBJECT: &str = "TObject";
/// ROOT's code of base classes (`TVirtualStreamerInfo::kBase`), and of `TObject` as one (`kTObject`).
const BASE: i32 = 0;
const ROOT_OBJECT_BASE: i32 = 66;
/// ROOT's code of members whose class inherits from `TObject` (`kObject`), and of objects in a container.
pub(super) const ROOT_OBJECT_MEMBER: i32 = 61;
/// ROOT's class of texts, and its code of members (`kTString`).
const ROOT_TEXT: &str = "TString";
pub(super) const ROOT_TEXT_MEMBER: i32 = 65;
/// ROOT's code of objects in a branch that have a member's head (`TVirtualStreamerInfo::kAny`) …
pub(super) const OBJECT: i32 = 62;
/// … and of containers and texts (`kSTL`).
pub(super) const CONTAINER: i32 = 300;

/// ROOT's code and C++ name of a number, the letter of its leaf, and its bytes.
pub(super) fn number(basic: Basic) -> (i32, &'static str, char, usize) {
    match basic {
        Basic::Bool => (18, "bool", 'O', 1),
        Basic::I8 => (1, "char", 'B', 1),
        Basic::U8 => (11, "unsigned char", 'b', 1),
        Basic::I16 => (2, "short", 'S', 2),
        Basic::U16 => (12, "unsigned short", 's', 2),
        Basic::I32 => (3, "int", 'I', 4),
        Basic::U32 => (13, "unsigned int", 'i', 4),
        Basic::I64 => (16, "Long64_t", 'L', 8),
        Basic::U64 => (17, "ULong64_t", 'l', 8),
        Basic::F32 | Basic::Float16 => (5, "float", 'F', 4),
        Basic::F64 | Basic::Double32 => (8, "double", 'D', 8),
    }
}

impl Form {
    /// The number and the dimensions of a number or of fixed arrays of numbers.
    pub(super) fn numbers(&self) -> Option<(Basic, Vec<usize>)> {
        match self.dimensions() {
            (sizes, Self::Number(basic)) => Some((*basic, sizes)),
            _ => None,
        }
    }

    /// The sizes of fixed arrays, and what their items are.
    pub(super) fn dimensions(&self) -> (Vec<usize>, &Self) {
        let (mut sizes, mut item) = (Vec::new(), self);
        while let Self::Fixed(size, inner) = item {
            sizes.push(*size);
            item = inner;
        }
        (sizes, item)
    }

    /// C++ name; of fixed arrays that of the items.
    pub fn type_name(&self) -> String {
        match self {
            Self::Number(basic) => number(*basic).1.to_owned(),
            Self::Text => "string".to_owned(),
            Self::RootText => ROOT_TEXT.to_owned(),
            Self::ObjectBits => number(Basic::U32).1.to_owned(),
            Self::Container(container) => container.class_name.clone(),
            Self::Fixed(_, item) => item.type_name(),
            Self::List(item) => vector(&item.type_name()),
            Self::Record(record) => record.class_name.clone(),
            Self::Clones(clones) => format!("{CLONES}{}", if clones.is_pointer() { "*" } else { "" }),
            Self::Pointed(pointed) => format!("{}*", number(pointed.item).1),
        }
    }

    /// ROOT's code of a branch that holds a member.
    pub(super) fn branch_code(&self) -> i32 {
        match self {
            Self::Number(basic) => number(*basic).0,
            Self::Fixed(..) => self.dimensions().1.branch_code() + ARRAY,
            Self::Text | Self::List(_) => CONTAINER,
            Self::Container(container) => match container.kind {
                ContainerKind::Standard(_) => CONTAINER,
                ContainerKind::Class { .. } => OBJECT,
            },
            Self::Record(record) => record.code(),
            Self::ObjectBits => BITS,
            Self::Clones(clones) => clones.code,
            Self::Pointed(pointed) => number(pointed.item).0 + POINTER,
            Self::RootText => ROOT_TEXT_MEMBER,
        }
    }

    /// Bytes in memory, and their alignment.
    pub(super) fn memory(&self) -> (usize, usize) {
        match self {
            Self::Number(basic) => (number(*basic).3, number(*basic).3),
            Self::Text => (32, 8),
            Self::List(_) | Self::RootText => (24, 8),
            Self::Clones(clones) if clones.is_pointer() => (8, 8),
            Self::Pointed(_) => (8, 8),
            Self::Clones(_) => (96, 8),
            Self::Container(_) => (48, 8),
            Self::ObjectBits => (4, 4),
            Self::Fixed(size, item) => {
                let (bytes, alignment) = item.memory();
                (bytes.saturating_mul(*size), alignment)
            }
            Self::Record(record) => {
                let (mut end, mut most) = (0_usize, 1_usize);
                for (_, member) in &record.members {
                    let (bytes, alignment) = member.memory();
                    end = end.next_multiple_of(alignment).saturating_add(bytes);
                    most = most.max(alignment);
                }
                (end.next_multiple_of(most), most)
            }
        }
    }
}

/// The name of a `std::vector`, as ROOT spells it.
pub(super) fn vector(item: &str) -> String {
    template_of("vector", item)
}

/// The name of a class with template arguments, as ROOT spells it.
fn template_of(template: &str, arguments: &str) -> String {
    let space = if arguments.ends_with('>') { " " } else { "" };
    format!("{template}<{arguments}{space}>")
}

//! The values of the fields of a tree, and their names in C++ and ROOT.

use tupelo_format::object::Basic;
use tupelo_format::streamer::code::ARRAY;

/// The form of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Form {
    /// A number or `bool`.
    Number(Basic),
    /// `std::string`.
    Text,
    /// A fixed array.
    Fixed(usize, Box<Form>),
    /// Any number of items.
    List(Box<Form>),
    /// An object with members.
    Record(Record),
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
    /// Whether the values of base classes are beside those of the other members, as in split collections of a tree that is
    /// read.
    pub is_flat: bool,
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
    /// A class whose values are as its members.
    pub fn new(class_name: &str, version: i32, members: Vec<(String, Form)>) -> Self {
        Self { class_name: class_name.to_owned(), version, members, is_flat: false }
    }

    /// The members with those of base classes, which come first.
    pub(super) fn flat_members(&self) -> Vec<FlatMember<'_>> {
        let mut found = Vec::new();
        self.add_flat(&[], &mut found);
        if self.is_flat {
            found.iter_mut().enumerate().for_each(|(place, member)| member.path = vec![place]);
        }
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

    /// Whether objects consist of more than base classes without members.
    pub(super) fn has_values(&self) -> bool {
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
}

/// ROOT's code of base classes (`TVirtualStreamerInfo::kBase`).
pub(super) const BASE: i32 = 0;
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
        match self {
            Self::Number(basic) => Some((*basic, Vec::new())),
            Self::Fixed(size, item) => {
                let (basic, mut sizes) = item.numbers()?;
                sizes.insert(0, *size);
                Some((basic, sizes))
            }
            _ => None,
        }
    }

    /// C++ name; of fixed arrays that of the items.
    pub fn type_name(&self) -> String {
        match self {
            Self::Number(basic) => number(*basic).1.to_owned(),
            Self::Text => "string".to_owned(),
            Self::Fixed(_, item) => item.type_name(),
            Self::List(item) => vector(&item.type_name()),
            Self::Record(record) => record.class_name.clone(),
        }
    }

    /// ROOT's code of a branch that holds a member.
    pub(super) fn branch_code(&self) -> i32 {
        match self {
            Self::Number(basic) => number(*basic).0,
            Self::Fixed(_, item) => item.branch_code() % ARRAY + ARRAY,
            Self::Text | Self::List(_) => CONTAINER,
            Self::Record(_) => OBJECT,
        }
    }

    /// Bytes in memory, and their alignment.
    pub(super) fn memory(&self) -> (usize, usize) {
        match self {
            Self::Number(basic) => (number(*basic).3, number(*basic).3),
            Self::Text => (32, 8),
            Self::List(_) => (24, 8),
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
    if item.ends_with('>') { format!("vector<{item} >") } else { format!("vector<{item}>") }
}

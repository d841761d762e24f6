//! How the values of a branch are stored, compiled from its leaves and the file's streamer info.
//!
//! A layout says how several values follow each other. For most that is one value after the other; members of the items
//! of a collection are stored for all items together, so that one head serves them all.

mod objects;

use std::ops::Range;

use tupelo_format::object::{self, Basic, EntryForm, Opaque, Packing, Type, Value};
use tupelo_format::streamer::code::{ARRAY, BITS, CHARACTERS, POINTER};
use tupelo_format::streamer::{ClassInfo, Counter, Element, ElementKind};
use tupelo_format::wire::Memory;
use tupelo_format::{Error, ErrorKind, Result};

pub use self::objects::{ObjectLayout, OtherVersion};
use crate::Basket;
use crate::classes::{Classes, Member, member_name};
use crate::tree::{Branch, BranchElement, Leaf, Tree};

/// Types nested deeper than this are refused.
const MAX_DEPTH: usize = 40;
/// Bytes that a member takes beside its name and its type.
const MEMBER_BYTES: usize = size_of::<(String, ValueLayout)>();
/// Names of base classes begin like this, and a number follows.
pub const BASE: &str = ":_";
/// `fType` of a branch whose objects are written by the streamer of their class, and so with a head.
const OWN_STREAMER: i32 = -1;

/// How values are stored.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueLayout {
    /// Big-endian numbers.
    Number(Basic, Option<Packing>),
    /// Length in one byte, or 255 and 32 bits, then the bytes.
    Text,
    /// The same in a leaf, where an empty text may take no bytes.
    Leaf,
    /// Length in 32 bits, then the bytes.
    Characters,
    /// This number of items for each value; several dimensions are nested.
    Fixed(usize, Box<ValueLayout>),
    /// A number of items in 32 bits, then the items.
    Counted(Box<ValueLayout>),
    /// The items up to the end of the entry.
    Rest(Box<ValueLayout>),
    /// A byte that says whether there are any items, then as many as are left to the end of the entry.
    FlaggedRest(Box<ValueLayout>),
    /// A byte that says whether there are any items, then as many as another member says.
    Pointed {
        /// The member.
        counter: CounterPlace,
        /// The items.
        item: Box<ValueLayout>,
    },
    /// The same without the byte: leaves of one branch.
    CountedBy {
        /// Number of the leaf in its branch.
        counter: usize,
        /// The items.
        item: Box<ValueLayout>,
    },
    /// An item of a split collection: a byte that says whether there are any items, then as many as another branch says
    /// for the same item of the collection.
    CountedInBranch {
        /// Number of the branch that counts.
        counter: usize,
        /// The items.
        item: Box<ValueLayout>,
    },
    /// A `std::bitset`: the number of bits in 32 bits, then a byte for each.
    Bits(usize),
    /// Byte count and version once, then the values. If the version says so, the members of the items of each value are
    /// stored together.
    Headed(Box<ValueLayout>),
    /// Key and value of a map, as members of a `std::pair`; without their heads where one pair follows the other.
    Pair(Box<[ValueLayout; 2]>),
    /// The leaves of a branch, or the members of a class without a head.
    Members(Vec<(String, ValueLayout)>),
    /// An object with a head.
    Object(Box<ObjectLayout>),
    /// An object in a branch of the old form, behind the name of its class.
    Named {
        /// The class that all objects must have.
        class_name: String,
        /// The object with its head.
        item: Box<ValueLayout>,
    },
    /// `TObject`, which has a special form: number and bits.
    RootObject,
    /// The bits of a `TObject`, which take two more bytes where other objects refer to it.
    ObjectBits,
    /// `TRef`: a `TObject` with the number of the object that it refers to, and the number of its process.
    Reference,
    /// `TMatrixTSym`: its base, then the upper triangle, row by row.
    Triangle {
        /// Number of the member of the base that says how many rows there are.
        rows: usize,
        /// Names and layouts of the base and the elements.
        members: Vec<(String, ValueLayout)>,
    },
    /// Bytes that are decoded as objects: values without columns.
    Opaque,
}

/// The member with the number of items behind a pointer.
#[derive(Debug, Clone, PartialEq)]
pub enum CounterPlace {
    /// Its number in the record of the pointer.
    Own(usize),
    /// A member of a base class.
    InBase(Box<Counter>),
}

impl ValueLayout {
    /// The members of values that are records.
    pub fn members(&self) -> Option<Vec<(&str, &Self)>> {
        static NUMBER: ValueLayout = ValueLayout::Number(Basic::U32, None);
        static PROCESS: ValueLayout = ValueLayout::Number(Basic::U16, None);
        static OBJECT: ValueLayout = ValueLayout::RootObject;
        fn named(members: &[(String, ValueLayout)]) -> Vec<(&str, &ValueLayout)> {
            members.iter().map(|(name, member)| (name.as_str(), member)).collect()
        }
        Some(match self {
            Self::Members(members) | Self::Triangle { members, .. } => named(members),
            Self::Object(object) => named(&object.members),
            Self::Reference => vec![(":_0", &OBJECT), ("fPID", &PROCESS)],
            Self::RootObject => vec![("fUniqueID", &NUMBER), ("fBits", &NUMBER)],
            Self::Pair(parts) => ["_0", "_1"].into_iter().zip(parts.iter()).collect(),
            _ => return None,
        })
    }

    /// Bytes of a value, where all have the same number.
    pub fn fixed_bytes(&self) -> Option<usize> {
        match self {
            Self::Number(basic, packing) => Some(packing.map_or_else(|| stored_bytes(*basic), Packing::item_bytes)),
            Self::Fixed(count, item) => item.fixed_bytes()?.checked_mul(*count),
            Self::Members(members) => {
                members.iter().try_fold(0_usize, |sum, (_, member)| sum.checked_add(member.fixed_bytes()?))
            }
            _ => None,
        }
    }
}

/// Bytes of a number that is not packed.
pub(crate) fn stored_bytes(basic: Basic) -> usize {
    match basic {
        Basic::Bool | Basic::I8 | Basic::U8 => 1,
        Basic::I16 | Basic::U16 => 2,
        Basic::I32 | Basic::U32 | Basic::F32 | Basic::Double32 | Basic::Float16 => 4,
        Basic::I64 | Basic::U64 | Basic::F64 => 8,
    }
}

/// The layout of the values in the baskets of a branch.
///
/// # Errors
/// Unsupported for types that the streamer info does not describe and for forms of branches that only ROOT 2 wrote;
/// memory for classes whose members, with the members of these, take more than is left.
pub fn of_branch(tree: &Tree, index: usize, classes: &Classes<'_>, memory: &Memory) -> Result<ValueLayout> {
    let branch = tree.branches.get(index).ok_or_else(|| Error::corrupt("the branch does not exist"))?;
    let mut compiler = Compiler { tree, classes, depth: 0, path_bytes: 0, memory };
    match (&branch.element, branch.branch_class.as_str()) {
        (Some(_), _) => compiler.branch_element(branch),
        (None, "TBranch") => of_leaves(index, branch),
        (None, "TBranchObject") => match compiler.old_object(branch) {
            Err(error) if error.kind() == ErrorKind::Memory => Err(error),
            // Values without columns are left as bytes.
            layout => Ok(layout.unwrap_or(ValueLayout::Opaque)),
        },
        (None, other) => Err(Error::unsupported(format!("branches of class {other} are not supported"))),
    }
}

fn of_leaves(index: usize, branch: &Branch) -> Result<ValueLayout> {
    if let [leaf] = branch.leaves.as_slice() {
        return of_leaf(leaf, branch);
    }
    let mut members = Vec::with_capacity(branch.leaves.len());
    for leaf in &branch.leaves {
        let layout = match (of_leaf(leaf, branch)?, leaf.counter) {
            (ValueLayout::Rest(item), Some((counted_in, counter)))
                if counted_in == index && counter < members.len() =>
            {
                ValueLayout::CountedBy { counter, item }
            }
            (ValueLayout::Rest(_), _) => {
                return Err(Error::unsupported(format!(
                    "leaf '{}' has siblings and a counter in another branch, which is not supported",
                    leaf.name
                )));
            }
            (layout, _) => layout,
        };
        members.push((leaf.name.clone(), layout));
    }
    Ok(ValueLayout::Members(members))
}

fn of_leaf(leaf: &Leaf, branch: &Branch) -> Result<ValueLayout> {
    let basic = match (leaf.leaf_class.as_str(), leaf.is_unsigned) {
        ("TLeafC", _) => return Ok(ValueLayout::Leaf),
        ("TLeafO", _) => Basic::Bool,
        ("TLeafB", false) => Basic::I8,
        ("TLeafB", true) => Basic::U8,
        ("TLeafS", false) => Basic::I16,
        ("TLeafS", true) => Basic::U16,
        ("TLeafI", false) => Basic::I32,
        ("TLeafI", true) => Basic::U32,
        ("TLeafL" | "TLeafG", false) => Basic::I64,
        ("TLeafL" | "TLeafG", true) => Basic::U64,
        ("TLeafF", _) => Basic::F32,
        ("TLeafD", _) => Basic::F64,
        ("TLeafF16", _) => Basic::Float16,
        ("TLeafD32", _) => Basic::Double32,
        (other, _) => return Err(Error::unsupported(format!("leaves of class {other} are not supported"))),
    };
    let packing = Packing::of_title(range_of(&leaf.title, &branch.title), basic);
    let number = ValueLayout::Number(basic, packing);
    let length = usize::try_from(leaf.length).unwrap_or(usize::MAX);
    let (is_counted, sizes) = dimensions(&leaf.title, length);
    let item = nested(number, &sizes);
    Ok(if is_counted || leaf.counter.is_some() { ValueLayout::Rest(Box::new(item)) } else { item })
}

/// The text that has the range of a packed number: the title of the leaf or of its branch.
fn range_of<'t>(leaf: &'t str, branch: &'t str) -> &'t str {
    if leaf.contains(',') { leaf } else { branch.rsplit_once('/').map_or("", |(_, kind)| kind) }
}

/// Whether the first dimension in `x[n][3]` is a counter, and the sizes of the others, which together are `length`.
fn dimensions(title: &str, length: usize) -> (bool, Vec<usize>) {
    let mut sizes = Vec::new();
    let mut is_counted = false;
    for part in title.split('[').skip(1) {
        let Some((inside, _)) = part.split_once(']') else { break };
        match inside.trim().parse() {
            Ok(size) => sizes.push(size),
            Err(_) if inside.contains(',') => break,
            Err(_) => is_counted = true,
        }
    }
    if sizes.contains(&0) {
        return (is_counted, vec![0]);
    }
    let product = sizes.iter().try_fold(1_usize, |product, &size| product.checked_mul(size));
    match (product == Some(length), length) {
        (true, _) => (is_counted, sizes),
        (false, 1) => (is_counted, Vec::new()),
        (false, _) => (is_counted, vec![length]),
    }
}

fn nested(item: ValueLayout, sizes: &[usize]) -> ValueLayout {
    sizes.iter().rev().fold(item, |item, &size| ValueLayout::Fixed(size, Box::new(item)))
}

/// Whether a branch holds a base of a class; `None` where that is not described.
pub fn is_base(branch: &Branch, classes: &Classes<'_>) -> Option<bool> {
    let element = branch.element.as_ref().filter(|element| element.id >= 0)?;
    Some(matches!(classes.member(branch, element)?.element.kind, ElementKind::Base { .. }))
}

/// The type of the member of a class that a branch holds; `None` for whole objects and where it is not described.
pub fn member_type<'i>(branch: &Branch, classes: &Classes<'i>) -> Option<&'i str> {
    let element = branch.element.as_ref().filter(|element| element.id >= 0)?;
    let member = classes.member(branch, element)?.element;
    Some(match member.kind {
        ElementKind::Base { .. } => &member.name,
        _ => member.class_name(),
    })
}

/// How the objects in the entries of a branch are streamed.
pub fn form_of<'a, 'i: 'a>(branch: &'a Branch, classes: &Classes<'i>) -> Result<EntryForm<'a>> {
    let member = branch.element.as_ref().and_then(|element| classes.member(branch, element));
    match (&branch.element, member) {
        (Some(element), Some(Member { class, element: member })) if element.id >= 0 && element.kind < 30 => {
            Ok(EntryForm::Member(class, member))
        }
        (None, _) if branch.branch_class == "TBranchObject" => {
            match branch.leaves.first().is_none_or(|leaf| leaf.is_virtual) {
                true => Ok(EntryForm::Named),
                false => Ok(EntryForm::Headed(&branch.class_name)),
            }
        }
        (Some(element), _) if element.id < 0 && element.kind == OWN_STREAMER => {
            Ok(EntryForm::Headed(&branch.class_name))
        }
        (Some(element), _) if element.id < 0 => {
            Ok(EntryForm::Alone(&branch.class_name, classes.of_branch(branch, element)))
        }
        _ => Err(Error::unsupported(format!("objects in branches of class {} are not supported", branch.branch_class))),
    }
}

/// Decodes the entries of a branch as objects, whatever its layout is. Objects that cannot be decoded are a
/// [`Value::Opaque`] with the reason.
///
/// # Errors
/// Memory if the values exceed the memory left.
pub fn objects(
    branch: &Branch,
    classes: &Classes<'_>,
    basket: &Basket<'_>,
    entries: Range<usize>,
    memory: &Memory,
) -> Result<Vec<Value>> {
    let infos = classes.infos();
    let form = form_of(branch, classes);
    let opaque = |bytes: &[u8], reason: Error| {
        let (class_name, reason) = (branch.class_name.clone(), reason.to_string());
        memory.take((bytes.len() + class_name.len() + reason.len()) as u64, "objects")?;
        Ok(Value::Opaque(Box::new(Opaque { class_name, bytes: bytes.to_vec(), reason })))
    };
    let value = |index: usize| {
        let range = match (basket.entry(index), basket.entries) {
            (Some(range), _) => range,
            (None, 1) => 0..basket.data.len(),
            (None, _) => return opaque(&[], Error::unsupported("entries of unknown length")),
        };
        let origin = basket.origin(index).unwrap_or(basket.key_bytes.into());
        let bytes = basket.data.get(range).unwrap_or_default();
        memory.take_items::<Value>(1, "objects")?;
        let entry = object::Entry { bytes, origin, infos, memory };
        match form.clone().and_then(|form| entry.read(form)) {
            Err(error) if error.kind() == ErrorKind::Memory => Err(error),
            Err(reason) => opaque(bytes, reason),
            Ok(value) => Ok(value),
        }
    };
    entries.map(value).collect()
}

/// Compiles types and classes to layouts.
struct Compiler<'c, 'i> {
    tree: &'c Tree,
    classes: &'c Classes<'i>,
    depth: usize,
    /// Bytes of the names of the members around this one.
    path_bytes: usize,
    /// Classes in classes can have more members than the file has bytes.
    memory: &'c Memory,
}

impl<'i> Compiler<'_, 'i> {
    fn take(&self, bytes: usize) -> Result<()> {
        self.memory.take(bytes as u64, "members of classes")
    }

    fn deeper<T>(&mut self, compile: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return Err(Error::limit(format!("types are nested more than {MAX_DEPTH} deep")));
        }
        self.depth += 1;
        let layout = compile(self);
        self.depth -= 1;
        layout
    }

    fn branch_element(&mut self, branch: &Branch) -> Result<ValueLayout> {
        let Some(element) = &branch.element else { return Ok(ValueLayout::Opaque) };
        match element.kind {
            // Numbers of items.
            3 | 4 => return Ok(ValueLayout::Number(Basic::I32, None)),
            31 | 41 => {
                let member = match self.member_of(branch)? {
                    ValueLayout::Pointed { item, .. } => {
                        ValueLayout::CountedInBranch { counter: self.counter_branch(branch, element)?, item }
                    }
                    member => member,
                };
                return Ok(ValueLayout::Rest(Box::new(member)));
            }
            _ => {}
        }
        if element.id >= 0 {
            return match self.member_of(branch)? {
                // The counter is in another branch.
                ValueLayout::Pointed { item, .. } => Ok(ValueLayout::FlaggedRest(item)),
                layout => Ok(layout),
            };
        }
        if element.kind == OWN_STREAMER {
            return self.item(&Type::parse(&branch.class_name)?);
        }
        self.alone(branch, element)
    }

    /// A whole object in a branch of the old form (`TBranchObject`).
    fn old_object(&mut self, branch: &Branch) -> Result<ValueLayout> {
        let (class_name, item) = (branch.class_name.clone(), self.typed(&branch.class_name)?);
        Ok(match branch.leaves.first().is_none_or(|leaf| leaf.is_virtual) {
            true => ValueLayout::Named { class_name, item: Box::new(item) },
            false => item,
        })
    }

    /// A whole object in a separate branch, which states the version of its class.
    fn alone(&mut self, branch: &Branch, element: &BranchElement) -> Result<ValueLayout> {
        let of = Type::parse(&branch.class_name)?;
        let special = match &of {
            Type::Class(name) => self.special(name)?,
            _ => None,
        };
        let layout = match (special, self.classes.of_branch(branch, element)) {
            (Some(layout), _) => layout,
            (None, Some(info)) if matches!(of, Type::Class(_)) => self.object(info)?,
            (None, _) => self.item(&of)?,
        };
        Ok(match (of, layout) {
            (Type::Sequence(_) | Type::Map(..) | Type::Bits(_), layout) => ValueLayout::Headed(Box::new(layout)),
            // Members and bases without a head.
            (_, ValueLayout::Object(object)) => ValueLayout::Members(object.members),
            (_, layout) => layout,
        })
    }

    /// The member of a class that a branch holds.
    fn member_of(&mut self, branch: &Branch) -> Result<ValueLayout> {
        let Some(element) = &branch.element else { return Ok(ValueLayout::Opaque) };
        if let Some(Member { class, element }) = self.classes.member(branch, element) {
            return self.element(class, element);
        }
        let name = member_name(&branch.name);
        for class in [&branch.class_name, &element.parent_class] {
            match (object::pair(class), name) {
                (Some([first, _]), "first") => return self.pair_member(&Type::parse(first)?),
                (Some([_, second]), "second") => return self.pair_member(&Type::parse(second)?),
                _ => {}
            }
        }
        if element.streamer_type == BITS {
            return Ok(ValueLayout::ObjectBits);
        }
        let class = &branch.class_name;
        match Basic::from_code(element.streamer_type) {
            // A number needs no more than its type.
            Some(basic) if !matches!(basic, Basic::Double32 | Basic::Float16) => Ok(ValueLayout::Number(basic, None)),
            _ => Err(Error::unsupported(format!("class {class} of member '{name}' is not in the streamer info"))),
        }
    }

    /// The branch beside another one that counts the items behind the pointers in it.
    fn counter_branch(&self, branch: &Branch, element: &BranchElement) -> Result<usize> {
        let member = self.classes.member(branch, element);
        let Some(ElementKind::BasicPointer(counter)) = member.map(|member| &member.element.kind) else {
            return Err(Error::corrupt("pointer lacks a counter"));
        };
        let name = branch.name.split('[').next().unwrap_or_default();
        let name = format!("{}{}", name.strip_suffix(member_name(name)).unwrap_or_default(), counter.name);
        let parent = branch.parent.and_then(|parent| self.tree.branches.get(parent));
        let beside = parent.map_or(&self.tree.top_level, |parent| &parent.children);
        let counter = beside.iter().find(|&&at| self.tree.branches.get(at).is_some_and(|other| other.name == name));
        counter.copied().ok_or_else(|| Error::unsupported(format!("the counter '{name}' of a pointer is not a branch")))
    }

    /// The values of a type in a container.
    fn item(&mut self, of: &Type) -> Result<ValueLayout> {
        self.deeper(|this| {
            Ok(match of {
                Type::Basic(basic) => ValueLayout::Number(*basic, None),
                Type::Text | Type::RootText => ValueLayout::Text,
                Type::Sequence(item) => ValueLayout::Counted(Box::new(this.item(item)?)),
                Type::Map(key, value) => ValueLayout::Counted(Box::new(ValueLayout::Pair(Box::new([
                    this.pair_member(key)?,
                    this.pair_member(value)?,
                ])))),
                Type::Bits(size) => ValueLayout::Bits(usize::try_from(*size).unwrap_or(0)),
                Type::Class(name) => this.class(name)?,
                Type::Pointer => {
                    return Err(Error::unsupported("pointers to objects of unknown classes are not supported"));
                }
            })
        })
    }

    /// Objects of the type of a member, which may be a container in a fixed array: that has no head.
    fn typed(&mut self, name: &str) -> Result<ValueLayout> {
        match Type::parse(name)? {
            Type::Class(name) => self.class(&name),
            container_or_text => self.item(&container_or_text),
        }
    }

    /// A part of a `std::pair`, as a member of it.
    fn pair_member(&mut self, of: &Type) -> Result<ValueLayout> {
        let layout = self.item(of)?;
        Ok(match of {
            Type::Text | Type::Sequence(_) | Type::Map(..) | Type::Bits(_) => ValueLayout::Headed(Box::new(layout)),
            _ => layout,
        })
    }

    /// Values of a member or base of a class.
    fn element(&mut self, info: &'i ClassInfo, element: &'i Element) -> Result<ValueLayout> {
        // Types in types are named each for itself, and members by their whole path.
        let types = element.type_name.bytes().filter(|&byte| byte == b'<').take(MAX_DEPTH).count() + 1;
        self.take(MEMBER_BYTES + self.path_bytes + element.type_name.len().saturating_mul(types))?;
        let length = usize::try_from(element.array_length)
            .map_err(|_| Error::corrupt(format!("array has a negative number of items: {}", element.array_length)))?;
        let sizes: Vec<usize> = match length {
            0 => Vec::new(),
            1 if element.array_dimensions == 0 => Vec::new(),
            _ => sizes(element, length),
        };
        match &element.kind {
            ElementKind::Base { version } => self.base(element, *version),
            ElementKind::Basic => basic(element, &sizes),
            ElementKind::BasicPointer(counter) => {
                let Some(basic) = element.code.checked_sub(POINTER).and_then(Basic::from_code) else {
                    return Err(unknown(element));
                };
                if length > 1 {
                    return Err(Error::unsupported("arrays of pointers to numbers are not supported"));
                }
                let item = Box::new(ValueLayout::Number(basic, Packing::of(element, basic)));
                let own = self.classes.counter_place(info, counter).map(CounterPlace::Own);
                let counter = own.unwrap_or_else(|| CounterPlace::InBase(Box::new(counter.clone())));
                Ok(ValueLayout::Pointed { counter, item })
            }
            ElementKind::Stl { .. } | ElementKind::StlString { .. } => {
                if element.type_name.ends_with('*') {
                    return Err(Error::unsupported(format!(
                        "pointers to containers are not supported: {}",
                        element.type_name
                    )));
                }
                let of = self.with_enums(Type::parse(&element.type_name)?, &element.kind);
                let layout = self.item(&of)?;
                Ok(ValueLayout::Headed(Box::new(nested(layout, &sizes))))
            }
            ElementKind::Loop(_) => Err(Error::unsupported("pointers to several objects are not supported")),
            ElementKind::Other { class_name, .. } => {
                Err(Error::unsupported(format!("members described by a {class_name} are not supported")))
            }
            ElementKind::Object
            | ElementKind::ObjectAny
            | ElementKind::ObjectPointer
            | ElementKind::ObjectAnyPointer
            | ElementKind::String => {
                let code = element.code;
                let class = element.class_name();
                match if (81..=90).contains(&code) { code - ARRAY } else { code } {
                    61 | 62 | 63 | 66..=68 if code != 86 && code != 87 => {
                        let layout = self.deeper(|this| this.typed(class))?;
                        Ok(nested(layout, &sizes))
                    }
                    65 if code == 85 => Ok(ValueLayout::Headed(Box::new(nested(ValueLayout::Text, &sizes)))),
                    65 => Ok(ValueLayout::Text),
                    64 | 69 | 70 => Err(Error::unsupported("pointers to objects of unknown classes are not supported")),
                    _ => Err(unknown(element)),
                }
            }
        }
    }

    /// Enums are named by their own type; only the element says that they are integers.
    fn with_enums(&self, of: Type, kind: &ElementKind) -> Type {
        match (&of, kind) {
            (Type::Sequence(item), ElementKind::Stl { item: code, .. }) => match (&**item, Basic::from_code(*code)) {
                (Type::Class(name), Some(basic)) if self.classes.newest(name).is_none() => {
                    Type::Sequence(Box::new(Type::Basic(basic)))
                }
                _ => of,
            },
            _ => of,
        }
    }
}

fn basic(element: &Element, sizes: &[usize]) -> Result<ValueLayout> {
    match element.code {
        CHARACTERS => return Ok(ValueLayout::Characters),
        BITS => return Ok(ValueLayout::ObjectBits),
        _ => {}
    }
    let code = if (21..=39).contains(&element.code) { element.code - ARRAY } else { element.code };
    let Some(basic) = Basic::from_code(code) else { return Err(unknown(element)) };
    Ok(nested(ValueLayout::Number(basic, Packing::of(element, basic)), sizes))
}

/// The lengths of the dimensions of a member, which together are `length`.
fn sizes(element: &Element, length: usize) -> Vec<usize> {
    let sizes: Option<Vec<usize>> = element.dimensions().iter().map(|&size| usize::try_from(size).ok()).collect();
    let sizes = sizes.unwrap_or_default();
    match sizes.iter().try_fold(1_usize, |product, &size| product.checked_mul(size)) {
        Some(product) if product == length => sizes,
        _ => vec![length],
    }
}

fn unknown(element: &Element) -> Error {
    Error::unsupported(format!("member of type '{}' (code {}) is not supported", element.type_name, element.code))
}

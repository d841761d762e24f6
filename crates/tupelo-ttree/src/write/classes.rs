//! Streamer info of the classes in a tree: ROOT's own, and the records that are written as objects.

use tupelo_format::container::streamed_key;
use tupelo_format::streamer::code::{ARRAY, BITS};
use tupelo_format::streamer::{ClassInfo, Element, ElementKind, StreamerInfos, class_checksum};
use tupelo_format::{Error, Result};

use super::form::{
    Container, ContainerKind, Form, OBJECT, ROOT_OBJECT_MEMBER, ROOT_TEXT_MEMBER, Record, is_base, number,
};

/// ROOT's class of baskets.
pub(super) const BASKET: &str = "TBasket";
/// Bytes of a basket's head, which ROOT counts as part of the key.
pub(super) const BASKET_HEAD_BYTES: u16 = 19;

/// Bytes of the key of a basket with its head.
///
/// # Errors
/// Limit for names longer than keys can hold.
pub fn basket_key_bytes(tree: &str, branch: &str) -> Result<u16> {
    let key = streamed_key(0, [BASKET, branch, tree], [0, 0], 0)?;
    let key_bytes = u16::try_from(key.len()).ok().and_then(|bytes| bytes.checked_add(BASKET_HEAD_BYTES));
    key_bytes.ok_or_else(|| Error::limit(format!("the name of branch '{branch}' is too long for a key")))
}

/// ROOT's code of members that a class streams itself (`TVirtualStreamerInfo::kStreamer`), as which it lists containers.
const STREAMER: i32 = 500;
/// ROOT's numbers of `std::vector` and of `std::string` (`ROOT::ESTLType`).
const VECTOR: i32 = 1;
const STRING: i32 = 365;
/// The checksum of `TObject`.
const ROOT_OBJECT_CHECKSUM: u32 = 0x901b_c02d;

impl Record {
    /// The checksum of the class.
    pub fn checksum(&self) -> u32 {
        match self.stated_checksum {
            Some(checksum) => checksum,
            None if self.is_root_object() => ROOT_OBJECT_CHECKSUM,
            None => class_checksum(&self.class_name, &self.elements()),
        }
    }

    /// What ROOT describes the class as.
    pub fn info(&self) -> ClassInfo {
        ClassInfo {
            name: self.class_name.clone(),
            title: Vec::new(),
            bits: 0,
            version: self.version,
            checksum: self.checksum(),
            elements: self.elements(),
        }
    }

    fn elements(&self) -> Vec<Element> {
        self.members.iter().map(|(name, form)| element(name, form)).collect()
    }

    /// Adds the class and those of its members.
    pub(super) fn add_to(&self, infos: &mut StreamerInfos) {
        if self.is_root_object() {
            return;
        }
        self.members.iter().for_each(|(_, member)| add(member, infos));
        infos.push(self.info());
    }
}

impl Container {
    /// The checksum of a class.
    pub(super) fn checksum(&self) -> u32 {
        match self.kind {
            ContainerKind::Class { checksum: Some(checksum), .. } => checksum,
            _ => class_checksum(&self.class_name, &self.elements()),
        }
    }

    /// What ROOT describes a class as that is a container: the class itself is the only member.
    fn elements(&self) -> Vec<Element> {
        let kind = ElementKind::Stl { container: VECTOR, item: ROOT_OBJECT_MEMBER };
        vec![Element::new("This", &self.class_name, STREAMER, kind)]
    }
}

/// Adds the classes of a form.
pub(super) fn add(form: &Form, infos: &mut StreamerInfos) {
    match form {
        Form::Record(record) => record.add_to(infos),
        Form::Clones(clones) => clones.item.add_to(infos),
        Form::List(item) | Form::Fixed(_, item) => add(item, infos),
        Form::Container(container) => {
            add(&container.item, infos);
            if let ContainerKind::Class { version, .. } = container.kind {
                let (name, elements) = (container.class_name.clone(), container.elements());
                let checksum = container.checksum();
                infos.push(ClassInfo { name, title: Vec::new(), bits: 0, version, checksum, elements });
            }
        }
        Form::Number(_) | Form::Text | Form::RootText | Form::ObjectBits | Form::Pointed(_) => {}
    }
}

/// ROOT's code of the items of a container.
fn item_code(item: &Form) -> i32 {
    if let Form::Number(basic) = item { number(*basic).0 } else { ROOT_OBJECT_MEMBER }
}

fn element(name: &str, form: &Form) -> Element {
    let small = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    if let Form::Record(base) = form
        && is_base(name)
    {
        let kind = ElementKind::Base { version: base.version };
        let mut element =
            Element { size: small(form.memory().0), ..Element::new(&base.class_name, "BASE", base.base_code(), kind) };
        element.max_index[1] = base.checksum().cast_signed();
        return element;
    }
    let type_name = form.type_name();
    let (code, kind) = match form {
        Form::Number(basic) => (number(*basic).0, ElementKind::Basic),
        Form::Fixed(..) => match form.dimensions().1 {
            Form::Number(basic) => (number(*basic).0 + ARRAY, ElementKind::Basic),
            Form::Record(record) if record.has_root_object() => (ROOT_OBJECT_MEMBER + ARRAY, ElementKind::Object),
            _ => (OBJECT + ARRAY, ElementKind::ObjectAny),
        },
        Form::RootText => (ROOT_TEXT_MEMBER, ElementKind::String),
        Form::Text => (STREAMER, ElementKind::StlString { container: STRING, item: STRING }),
        Form::List(item) => (STREAMER, ElementKind::Stl { container: VECTOR, item: item_code(item) }),
        Form::Container(container) => match container.kind {
            ContainerKind::Standard(number) => {
                (STREAMER, ElementKind::Stl { container: number, item: item_code(&container.item) })
            }
            ContainerKind::Class { .. } => (OBJECT, ElementKind::ObjectAny),
        },
        Form::ObjectBits => (BITS, ElementKind::Basic),
        Form::Pointed(pointed) => (form.branch_code(), ElementKind::BasicPointer(pointed.counter.clone())),
        Form::Clones(clones) if clones.is_pointer() => (clones.code, ElementKind::ObjectPointer),
        Form::Clones(clones) => (clones.code, ElementKind::Object),
        Form::Record(record) => match record.code() {
            ROOT_OBJECT_MEMBER => (ROOT_OBJECT_MEMBER, ElementKind::Object),
            code => (code, ElementKind::ObjectAny),
        },
    };
    let (sizes, _) = form.dimensions();
    let mut element = Element { size: small(form.memory().0), ..Element::new(name, &type_name, code, kind) };
    if !sizes.is_empty() {
        element.array_length = small(sizes.iter().product());
        element.array_dimensions = small(sizes.len());
        for (place, &size) in element.max_index.iter_mut().zip(&sizes) {
            *place = small(size);
        }
    }
    element
}

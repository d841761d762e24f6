//! Layouts of the objects of a class, of each version that a file describes.

use std::collections::HashMap;
use std::sync::Arc;

use tupelo_format::object::{self, Basic, Type};
use tupelo_format::streamer::code::NOT_STORED;
use tupelo_format::streamer::{ClassInfo, Element, ElementKind};
use tupelo_format::type_name::TypeName;
use tupelo_format::{Error, ErrorKind, Result};

use super::{BASE, Compiler, ValueLayout};

/// How the objects of a class are stored.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectLayout {
    /// The layout in the streamer info.
    pub class: Arc<ClassInfo>,
    /// Names and layouts of its bases and members.
    pub members: Vec<(String, ValueLayout)>,
    /// The other versions of the class in the streamer info.
    pub others: Vec<OtherVersion>,
    /// Whether objects without a byte count have no version either: see
    /// [`StreamerInfos::may_lack_head`](tupelo_format::streamer::StreamerInfos::may_lack_head).
    pub may_lack_head: bool,
}

/// Objects of a version of a class whose values become those of another one.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherVersion {
    /// The layout in the streamer info.
    pub class: Arc<ClassInfo>,
    /// Names and layouts of its bases and members.
    pub members: Vec<(String, ValueLayout)>,
    /// For each member of the other one its counterpart in this one, if it has one.
    pub counterparts: Vec<Option<Counterpart>>,
}

/// A member of one version of a class as one of another version.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counterpart {
    /// Its place among the members.
    pub place: usize,
    /// Whether the layouts are equal.
    pub is_equal: bool,
}

impl ObjectLayout {
    /// The layout of a class known only by its name.
    pub(super) fn unknown(name: &str, members: Vec<(String, ValueLayout)>) -> Self {
        let class = Arc::new(ClassInfo::unknown(name));
        Self { class, members, others: Vec::new(), may_lack_head: false }
    }
}

impl OtherVersion {
    fn new(class: &Arc<ClassInfo>, members: Vec<(String, ValueLayout)>, newest: &[(String, ValueLayout)]) -> Self {
        let mut places = HashMap::with_capacity(members.len());
        for (place, (name, layout)) in members.iter().enumerate() {
            places.entry(key(name, layout)).or_insert((place, layout));
        }
        let counterpart = |(name, layout): &(String, ValueLayout)| {
            let &(place, other) = places.get(&key(name, layout))?;
            Some(Counterpart { place, is_equal: layout == other })
        };
        let counterparts = newest.iter().map(counterpart).collect();
        Self { class: Arc::clone(class), members, counterparts }
    }
}

/// The key of a member in another version: its name, or the class of a base.
fn key<'l>(name: &'l str, layout: &'l ValueLayout) -> (bool, &'l str) {
    match layout.class_name().filter(|_| name.starts_with(BASE)) {
        Some(base) => (true, base),
        None => (false, name),
    }
}

impl ValueLayout {
    /// The class of objects.
    fn class_name(&self) -> Option<&str> {
        match self {
            Self::Object(object) => Some(&object.class.name),
            Self::RootObject => Some("TObject"),
            _ => None,
        }
    }
}

impl<'i> Compiler<'_, 'i> {
    /// Objects of a class.
    pub(super) fn class(&mut self, name: &str) -> Result<ValueLayout> {
        if let Some(layout) = self.special(name)? {
            return Ok(layout);
        }
        let Some(info) = self.classes.newest(name) else {
            let Some([first, second]) = object::pair(name) else {
                return Err(Error::unsupported(format!("class {name} is not in the streamer info")));
            };
            let members = vec![
                ("_0".to_owned(), self.pair_member(&Type::parse(first)?)?),
                ("_1".to_owned(), self.pair_member(&Type::parse(second)?)?),
            ];
            return Ok(ValueLayout::Object(Box::new(ObjectLayout::unknown(name, members))));
        };
        self.object(info)
    }

    /// Objects of a class that ROOT takes for a container. The file does not state the class of its items; those of ATLAS
    /// have it in the name of the container, `DataVector<ITEM>`, `ITEMContainer_v1` and `ITEMMap_v1`.
    fn container(&mut self, info: &ClassInfo) -> Result<ValueLayout> {
        let of_name = ["Container_v", "Map_v"].into_iter().find_map(|end| {
            let (item, version) = info.name.rsplit_once(end)?;
            self.classes.newest(&format!("{item}_v{version}"))
        });
        let name = TypeName::parse(&info.name);
        let argument = name.as_ref().and_then(|name| name.arguments.first());
        let unknown = |name: &str| ValueLayout::Object(Box::new(ObjectLayout::unknown(name, Vec::new())));
        let item = match (argument.map(|item| Type::parse(item)).transpose()?, of_name) {
            // Items without members need no description.
            (Some(Type::Class(name)), _) if self.classes.newest(&name).is_none() => unknown(&name),
            (Some(of), _) => self.deeper(|this| this.item(&of))?,
            (None, Some(item)) => self.object(item)?,
            (None, None) => unknown(""),
        };
        Ok(ValueLayout::Headed(Box::new(ValueLayout::Counted(Box::new(item)))))
    }

    /// Classes that ROOT stores differently from their streamer info.
    pub(super) fn special(&mut self, name: &str) -> Result<Option<ValueLayout>> {
        Ok(Some(match name {
            "TObject" => ValueLayout::RootObject,
            "TString" => ValueLayout::Text,
            "TDatime" => ValueLayout::Members(vec![("fDatime".into(), ValueLayout::Number(Basic::U32, None))]),
            "TRef" => ValueLayout::Reference,
            "TRefArray" => references(),
            _ => {
                if let Some(item) = object::symmetric_matrix_item(name) {
                    return self.symmetric_matrix(item).map(Some);
                }
                if object::has_own_format(name) || object::has_no_columns(name) {
                    return Err(Error::unsupported(format!(
                        "class {name} has a custom format, which is not supported"
                    )));
                }
                let Some(item) = object::array_item(name) else { return Ok(None) };
                let item = ValueLayout::Counted(Box::new(ValueLayout::Number(item, None)));
                ValueLayout::Members(vec![("fArray".into(), item)])
            }
        }))
    }

    /// A `TMatrixTSym`.
    fn symmetric_matrix(&mut self, item: &str) -> Result<ValueLayout> {
        let base = self.deeper(|this| this.class(&format!("TMatrixTBase<{item}>")))?;
        let rows = match &base {
            ValueLayout::Object(object) => object.members.iter().position(|(name, _)| name == "fNrows"),
            _ => None,
        };
        let (Some(rows), Type::Basic(item)) = (rows, Type::parse(item)?) else {
            return Err(Error::unsupported(format!("class TMatrixTSym<{item}> is not supported")));
        };
        let elements = ValueLayout::Counted(Box::new(ValueLayout::Number(item, None)));
        Ok(ValueLayout::Triangle { rows, members: vec![(format!("{BASE}0"), base), ("fElements".into(), elements)] })
    }

    /// A base class, in the version that the derived class states.
    pub(super) fn base(&mut self, element: &Element, version: i32) -> Result<ValueLayout> {
        self.deeper(|this| match (this.special(&element.name)?, this.classes.base(element, version)) {
            (Some(layout), _) => Ok(layout),
            (None, Some(info)) => this.object(info),
            (None, None) => this.class(&element.name),
        })
    }

    /// Objects of a class whose values have the members of one version.
    pub(super) fn object(&mut self, info: &'i Arc<ClassInfo>) -> Result<ValueLayout> {
        if info.is_container() {
            return self.container(info);
        }
        self.deeper(|this| {
            let members = this.members(info)?;
            let mut others = Vec::new();
            for class in this.classes.other_versions(info) {
                this.take(size_of::<OtherVersion>() + members.len() * size_of::<Option<Counterpart>>())?;
                match this.members(class) {
                    Ok(other) => others.push(OtherVersion::new(class, other, &members)),
                    Err(error) if error.kind() == ErrorKind::Memory => return Err(error),
                    // It is refused if objects of this version are found.
                    Err(_) => {}
                }
            }
            let may_lack_head = this.classes.may_lack_head(info);
            let class = Arc::clone(info);
            Ok(ValueLayout::Object(Box::new(ObjectLayout { class, members, others, may_lack_head })))
        })
    }

    /// Bases and members of a class.
    fn members(&mut self, info: &'i Arc<ClassInfo>) -> Result<Vec<(String, ValueLayout)>> {
        // Those that are not stored are looked at too.
        self.take(info.name.len() + info.elements.len())?;
        let mut members = Vec::new();
        let mut bases = 0;
        for element in info.elements.iter().filter(|element| element.code != NOT_STORED) {
            let name = match element.kind {
                ElementKind::Base { .. } => {
                    bases += 1;
                    format!("{BASE}{}", bases - 1)
                }
                _ => element.name.clone(),
            };
            let within = |error: Error| error.within(format_args!("{}::{}", info.name, element.name));
            self.path_bytes += name.len();
            let layout = self.element(info, element);
            self.path_bytes -= name.len();
            members.push((name, layout.map_err(within)?));
        }
        Ok(members)
    }
}

/// A `TRefArray`.
fn references() -> ValueLayout {
    let number = |basic| ValueLayout::Number(basic, None);
    let members = vec![
        (format!("{BASE}0"), ValueLayout::RootObject),
        ("fName".into(), ValueLayout::Text),
        ("fSize".into(), number(Basic::I32)),
        ("fLowerBound".into(), number(Basic::I32)),
        ("fPID".into(), number(Basic::U16)),
        ("fUIDs".into(), ValueLayout::CountedBy { counter: 2, item: Box::new(number(Basic::U32)) }),
    ];
    ValueLayout::Object(Box::new(ObjectLayout::unknown("TRefArray", members)))
}

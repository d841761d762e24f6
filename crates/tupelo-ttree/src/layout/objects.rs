//! Layouts of the objects of a class, of each version that a file describes.

use std::sync::Arc;

use tupelo_format::object::{self, Basic, Type};
use tupelo_format::streamer::code::NOT_STORED;
use tupelo_format::streamer::{ClassInfo, Element, ElementKind};
use tupelo_format::{Error, ErrorKind, Result};

use super::{BASE, Compiler, Layout};

/// How the objects of a class are stored.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectLayout {
    /// The layout in the streamer info.
    pub class: Arc<ClassInfo>,
    /// Names and layouts of its bases and members.
    pub members: Vec<(String, Layout)>,
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
    pub members: Vec<(String, Layout)>,
}

impl ObjectLayout {
    /// The layout of a class of which nothing else is known.
    pub(super) fn unknown(name: &str, members: Vec<(String, Layout)>) -> Self {
        let class = Arc::new(ClassInfo::unknown(name));
        Self { class, members, others: Vec::new(), may_lack_head: false }
    }
}

/// The place of a member or base of one version of a class among those of another version.
pub fn place_of(name: &str, member: &Layout, others: &[(String, Layout)]) -> Option<usize> {
    others.iter().position(|(other, layout)| match name.starts_with(BASE) {
        true => other.starts_with(BASE) && layout.class_name() == member.class_name(),
        false => other == name,
    })
}

impl Layout {
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
    pub(super) fn class(&mut self, name: &str) -> Result<Layout> {
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
            return Ok(Layout::Object(Box::new(ObjectLayout::unknown(name, members))));
        };
        self.object(info)
    }

    /// Classes that ROOT does not store as their streamer info says.
    pub(super) fn special(&mut self, name: &str) -> Result<Option<Layout>> {
        Ok(Some(match name {
            "TObject" => Layout::RootObject,
            "TString" => Layout::Text,
            "TDatime" => Layout::Members(vec![("fDatime".into(), Layout::Number(Basic::U32, None))]),
            "TRef" => Layout::Reference,
            "TRefArray" => references(),
            _ => {
                if let Some(item) = object::symmetric_matrix_item(name) {
                    return self.symmetric_matrix(item).map(Some);
                }
                if object::has_own_format(name) || object::has_no_columns(name) {
                    return Err(Error::unsupported(format!("class {name}, which has a custom format")));
                }
                let Some(item) = object::array_item(name) else { return Ok(None) };
                let item = Layout::Counted(Box::new(Layout::Number(item, None)));
                Layout::Members(vec![("fArray".into(), item)])
            }
        }))
    }

    /// A `TMatrixTSym`.
    fn symmetric_matrix(&mut self, item: &str) -> Result<Layout> {
        let base = self.deeper(|this| this.class(&format!("TMatrixTBase<{item}>")))?;
        let rows = match &base {
            Layout::Object(object) => object.members.iter().position(|(name, _)| name == "fNrows"),
            _ => None,
        };
        let (Some(rows), Type::Basic(item)) = (rows, Type::parse(item)?) else {
            return Err(Error::unsupported(format!("class TMatrixTSym<{item}>")));
        };
        let elements = Layout::Counted(Box::new(Layout::Number(item, None)));
        Ok(Layout::Triangle { rows, members: vec![(format!("{BASE}0"), base), ("fElements".into(), elements)] })
    }

    /// A base class, in the version that the derived class states.
    pub(super) fn base(&mut self, element: &Element, version: i32) -> Result<Layout> {
        self.deeper(|this| match (this.special(&element.name)?, this.classes.base(element, version)) {
            (Some(layout), _) => Ok(layout),
            (None, Some(info)) => this.object(info),
            (None, None) => this.class(&element.name),
        })
    }

    /// Objects of a class whose values have the members of one version.
    pub(super) fn object(&mut self, info: &'i Arc<ClassInfo>) -> Result<Layout> {
        self.deeper(|this| {
            let members = this.members(info)?;
            let mut others = Vec::new();
            for class in this.classes.other_versions(info) {
                match this.members(class) {
                    Ok(members) => others.push(OtherVersion { class: Arc::clone(class), members }),
                    Err(error) if error.kind() == ErrorKind::Memory => return Err(error),
                    // It is refused if objects of this version are found.
                    Err(_) => {}
                }
            }
            let may_lack_head = this.classes.infos().may_lack_head(info);
            let class = Arc::clone(info);
            Ok(Layout::Object(Box::new(ObjectLayout { class, members, others, may_lack_head })))
        })
    }

    /// Bases and members of a class.
    fn members(&mut self, info: &'i Arc<ClassInfo>) -> Result<Vec<(String, Layout)>> {
        self.take(info.name.len())?;
        let mut members = Vec::with_capacity(info.elements.len());
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
fn references() -> Layout {
    let number = |basic| Layout::Number(basic, None);
    let members = vec![
        (format!("{BASE}0"), Layout::RootObject),
        ("fName".into(), Layout::Text),
        ("fSize".into(), number(Basic::I32)),
        ("fLowerBound".into(), number(Basic::I32)),
        ("fPID".into(), number(Basic::U16)),
        ("fUIDs".into(), Layout::CountedBy { counter: 2, item: Box::new(number(Basic::U32)) }),
    ];
    Layout::Object(Box::new(ObjectLayout::unknown("TRefArray", members)))
}

//! Members of base classes. Records have each base class as a member (`:_0`, format specification, "Class field"); split
//! collections of trees have the members of bases beside those of the class.

use std::slice;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, LargeListArray, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, FieldRef, Fields};
use tupelo_format::streamer::code::NOT_STORED;
use tupelo_format::streamer::{ClassInfo, Element, ElementKind};
use tupelo_format::type_name::normalised;
use tupelo_ttree::layout::BASE;
use tupelo_ttree::write::is_base;

use super::{Field, Kind, with_data_type};
use crate::{Error, Result};

/// Most base classes of a class, those of its bases included.
const MAX_BASES: usize = 1000;

/// Layouts of classes.
pub trait Layouts {
    /// That of a class.
    fn class(&self, type_name: &str) -> Option<&ClassInfo>;

    /// Whether a record may have this member, which is not a base class.
    fn accepts(&self, member: &Element) -> bool;
}

/// The members of a class in its bases, where they are beside those of the class; as they are where the bases are members.
/// `None` if they are not all members of the class, in its order.
pub fn nested(class: &ClassInfo, members: &[Field], layouts: &impl Layouts) -> Option<Vec<Field>> {
    let is_flat = !members.iter().any(|member| is_base(&member.name));
    let mut nesting = Nesting { layouts, members: members.iter(), is_flat, bases_left: MAX_BASES };
    let found = nesting.class(class)?;
    nesting.members.next().is_none().then_some(found)
}

struct Nesting<'m, L> {
    layouts: &'m L,
    members: slice::Iter<'m, Field>,
    is_flat: bool,
    bases_left: usize,
}

impl<L: Layouts> Nesting<'_, L> {
    /// The members of a class, from the next one on.
    fn class(&mut self, class: &ClassInfo) -> Option<Vec<Field>> {
        let (mut found, mut bases) = (Vec::new(), 0);
        for element in class.elements.iter().filter(|element| element.code != NOT_STORED) {
            let is_base = matches!(element.kind, ElementKind::Base { .. });
            let name = if is_base { format!("{BASE}{bases}") } else { element.name.clone() };
            bases += usize::from(is_base);
            if is_base && self.is_flat {
                self.bases_left = self.bases_left.checked_sub(1)?;
                found.push(self.base(name, element)?);
            } else if is_base {
                let of_base = |member: &&Field| {
                    self::is_base(&member.name) && normalised(&member.type_name) == normalised(&element.name)
                };
                match self.members.as_slice().first().filter(of_base) {
                    Some(member) => {
                        self.members.next();
                        found.push(Field { name, ..member.clone() });
                    }
                    // Trees have no branch of a base without members.
                    None => {
                        self.bases_left = self.bases_left.checked_sub(1)?;
                        found.push(self.base(name, element).filter(|base| !has_values(&base.kind))?);
                    }
                }
            } else {
                let member = self.members.next().filter(|member| member.name == name)?;
                found.push(member.clone());
                if !is_base && !self.layouts.accepts(element) {
                    return None;
                }
            }
        }
        Some(found)
    }

    /// A base class. One without members needs no description.
    fn base(&mut self, name: String, element: &Element) -> Option<Field> {
        let class = self.layouts.class(&element.name);
        let members = class.map_or_else(|| Some(Vec::new()), |class| self.class(class))?;
        let mut base = Field::new(name, normalised(&element.name), Kind::Record(members));
        class.into_iter().for_each(|class| base.identify(class));
        Some(base)
    }
}

/// Whether objects consist of more than bases without members.
fn has_values(kind: &Kind) -> bool {
    match kind {
        Kind::Record(members) => members.iter().any(|member| has_values(&member.kind)),
        _ => true,
    }
}

impl Field {
    /// States the version and checksum of the class.
    pub fn identify(&mut self, class: &ClassInfo) {
        if let Kind::Record(_) = self.kind {
            self.type_version = u32::try_from(class.version).unwrap_or(self.type_version);
        }
        self.checksum = Some(class.checksum).filter(|&checksum| checksum != 0);
    }
}

/// An array in the type of a field: members that are beside those of a class in the [bases](nested) that have them.
pub fn in_bases(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    let has_bases = |fields: &Fields| fields.iter().any(|member| is_base(member.name()));
    Ok(match (array.data_type(), data_type) {
        (DataType::Struct(from), DataType::Struct(to)) => {
            let record = array.as_struct();
            let columns = match has_bases(to) && !has_bases(from) {
                true => columns_in_bases(to, &mut record.columns().iter(), record.len())?,
                false => columns_with_bases(to, record)?,
            };
            Arc::new(records(to, columns, record.nulls().cloned(), record.len())?)
        }
        (DataType::LargeList(_), DataType::LargeList(item)) => {
            let list = array.as_list::<i64>();
            let items = in_bases(list.values(), item.data_type())?;
            let item = with_data_type(item, items.data_type().clone());
            Arc::new(LargeListArray::try_new(item, list.offsets().clone(), items, list.nulls().cloned())?)
        }
        (DataType::FixedSizeList(..), DataType::FixedSizeList(item, size)) => {
            let list = array.as_fixed_size_list();
            let items = in_bases(list.values(), item.data_type())?;
            let item = with_data_type(item, items.data_type().clone());
            Arc::new(FixedSizeListArray::try_new(item, *size, items, list.nulls().cloned())?)
        }
        _ => Arc::clone(array),
    })
}

/// The columns of the members of a class, with the bases without members that the record lacks.
fn columns_with_bases(members: &Fields, record: &StructArray) -> Result<Vec<ArrayRef>> {
    let mut lacking = members.len().saturating_sub(record.num_columns());
    let mut columns = record.columns().iter().peekable();
    let mut found = Vec::with_capacity(members.len());
    for member in members {
        let is_lacking = is_base(member.name())
            && is_empty(member.data_type())
            && columns.peek().is_none_or(|column| !is_empty(column.data_type()));
        found.push(match member.data_type() {
            DataType::Struct(inner) if lacking > 0 && is_lacking => {
                lacking -= 1;
                Arc::new(records(inner, columns_in_bases(inner, &mut [].iter(), record.len())?, None, record.len())?)
            }
            data_type => match columns.next() {
                Some(column) => in_bases(column, data_type)?,
                None => return Err(Error::corrupt(format!("class lacks values for member '{}'", member.name()))),
            },
        });
    }
    Ok(found)
}

/// Whether values are records without members, or with such ones only.
fn is_empty(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Struct(members) if members.iter().all(|member| is_empty(member.data_type())))
}

/// The columns of the members of a class, from the next one of flat ones.
fn columns_in_bases(members: &Fields, flat: &mut slice::Iter<'_, ArrayRef>, count: usize) -> Result<Vec<ArrayRef>> {
    let column = |member: &FieldRef| match member.data_type() {
        DataType::Struct(inner) if is_base(member.name()) => {
            let columns = columns_in_bases(inner, flat, count)?;
            Ok(Arc::new(records(inner, columns, None, count)?) as ArrayRef)
        }
        data_type => match flat.next() {
            Some(array) => in_bases(array, data_type),
            None => Err(Error::corrupt(format!("class lacks values for member '{}'", member.name()))),
        },
    };
    members.iter().map(column).collect()
}

fn records(fields: &Fields, columns: Vec<ArrayRef>, nulls: Option<NullBuffer>, count: usize) -> Result<StructArray> {
    let fields = with_types_of(&columns, fields);
    Ok(StructArray::try_new_with_length(fields, columns, nulls, count)?)
}

/// Fields in the types of arrays, in which texts may be bytes.
pub fn with_types_of(arrays: &[ArrayRef], fields: &Fields) -> Fields {
    fields.iter().zip(arrays).map(|(field, array)| with_data_type(field, array.data_type().clone())).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use arrow_array::Int32Array;

    use super::*;
    use crate::schema::{Primitive, Schema};

    struct Known(HashMap<String, ClassInfo>);

    impl Layouts for Known {
        fn class(&self, type_name: &str) -> Option<&ClassInfo> {
            self.0.get(type_name)
        }

        fn accepts(&self, _: &Element) -> bool {
            true
        }
    }

    fn number(name: &str) -> Field {
        Field::new(name, "std::int32_t", Kind::Primitive(Primitive::Int32))
    }

    /// A class with bases and with a number for each other member.
    fn class(name: &str, bases: &[&str], members: &[&str]) -> (String, ClassInfo) {
        let base = |name: &&str| Element::new(name, "BASE", 0, ElementKind::Base { version: 1 });
        let member = |name: &&str| Element::new(name, "int", 3, ElementKind::Basic);
        let elements = bases.iter().map(base).chain(members.iter().map(member)).collect();
        (name.to_owned(), ClassInfo { version: 1, elements, ..ClassInfo::unknown(name) })
    }

    fn known() -> Known {
        let classes = [class("D", &["B", "E"], &["d"]), class("B", &[], &["b"]), class("E", &[], &[])];
        Known(classes.into_iter().collect())
    }

    /// What is nested is given by the file, which may not dictate the time that it takes.
    #[test]
    fn flat_members_return_to_their_bases() {
        let mut known = known();
        for level in 0..40 {
            let next = format!("L{}", level + 1);
            known.0.extend([class(&format!("L{level}"), &[&next, &next], &[])]);
        }
        known.0.extend([class("L40", &[], &[]), class("F", &["E", "B"], &["f"])]);
        let of = |name: &str, members: &[Field]| nested(&known.0[name], members, &known);
        let whole = of("D", &[number("b"), number("d")]).unwrap();
        let names: Vec<&str> = whole.iter().map(|member| member.name.as_str()).collect();
        assert_eq!(names, [":_0", ":_1", "d"]);
        assert_eq!((whole[0].type_name.as_str(), whole[0].children()), ("B", &[number("b")][..]));
        assert_eq!(of("D", &whole).as_ref(), Some(&whole));
        assert_eq!(of("L0", &[]), None);
        assert_eq!(of("D", &[number("b")]), None);
        // A tree has no branches of the base without members.
        let base = |name: &str| Field { name: name.to_owned(), ..whole[0].clone() };
        let found = of("F", &[base(":_0"), number("f")]).unwrap();
        assert_eq!((found[0].type_name.as_str(), &found[1..]), ("E", &[base(":_1"), number("f")][..]));
        assert_eq!(of("D", &[number("d"), number("b")]), None);
        assert_eq!(of("D", &[number("b"), number("d"), number("e")]), None);
    }

    #[test]
    fn arrays_follow() {
        let known = known();
        let types = |members: Vec<Field>| {
            let record = Field::new("x", "D", Kind::Record(members));
            Schema { fields: vec![record] }.to_arrow(true).field(0).data_type().clone()
        };
        let flat = vec![number("b"), number("d")];
        let whole = types(nested(&known.0["D"], &flat, &known).unwrap());
        let DataType::Struct(fields) = types(flat) else { panic!("not a struct") };
        let columns: Vec<ArrayRef> =
            [[1, 2], [3, 4]].map(|values| Arc::new(Int32Array::from(values.to_vec())) as ArrayRef).to_vec();
        let array: ArrayRef = Arc::new(StructArray::try_new(fields, columns.clone(), None).unwrap());
        let found = in_bases(&array, &whole).unwrap();
        assert_eq!(found.data_type(), &whole);
        assert_eq!(found.as_struct().column(0).as_struct().column(0), &columns[0]);
        assert_eq!((found.as_struct().column(1).len(), found.as_struct().column(2)), (2, &columns[1]));
        assert_eq!(&in_bases(&found, &whole).unwrap(), &found);
    }
}

//! Which classes keep their names in an ntuple, and their members where ROOT looks for them: in the bases that have them.

use std::collections::HashSet;
use std::slice;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, LargeListArray, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, FieldRef, Fields};
use tupelo_format::object::{Basic, Type};
use tupelo_format::streamer::code::{ARRAY, CHARACTERS, INT, NOT_STORED};
use tupelo_format::streamer::{ClassInfo, ElementKind, IS_REFERENCED, StreamerInfos};
use tupelo_format::type_name::{normalised, without_arguments};
use tupelo_ttree::layout::BASE;
use tupelo_ttree::write::ROOT_OBJECT;

use super::with_types_of;
use crate::reader::Read;
use crate::schema::{Field, Kind};
use crate::{Error, Result};

/// Templates and classes of ROOT that it describes as plain, but streams by code of their own, and so not to ntuples.
const NOT_IN_NTUPLES: [&str; 10] = [
    "TDatime",
    "TLorentzVector",
    "TMatrixT",
    "TMatrixTBase",
    "TMatrixTSparse",
    "TMatrixTSym",
    "TParticle",
    "TVector2",
    "TVector3",
    "TVectorT",
];
/// Most base classes of a class, those of its bases included.
const MAX_BASES: usize = 1000;

/// The classes that keep their names: those of a streamer info whose members ROOT stores in an ntuple as they are here.
#[derive(Default)]
pub(in super::super) struct ClassNames {
    infos: StreamerInfos,
    /// The top-level fields whose classes do not.
    without: HashSet<String>,
}

impl ClassNames {
    /// The classes that the file of a tree describes.
    ///
    /// # Errors
    /// Those of opening the first file of several.
    pub(in super::super) fn of_source(read: &Read) -> Result<Self> {
        Ok(Self { infos: read.source().sidecar().classes()?, without: HashSet::new() })
    }

    /// Without the names of classes in some top-level fields.
    pub(super) fn without(self, fields: HashSet<String>) -> Self {
        Self { without: fields, ..self }
    }

    /// What `name` gives with the classes that keep their names in a top-level field.
    pub(super) fn of_field<T>(&self, field: &str, name: impl FnOnce(&Self) -> T) -> T {
        if self.without.contains(field) { name(&Self::default()) } else { name(self) }
    }

    fn class(&self, type_name: &str) -> Option<&ClassInfo> {
        self.infos.newest(self.infos.spelling(type_name)?).map(|class| &**class)
    }

    /// The members of a class in its bases, if a record with these members keeps its name: as they were, and with the types that
    /// ROOT reads.
    pub(super) fn members(&self, type_name: &str, before: &[Field], after: &[Field]) -> Option<Vec<Field>> {
        let same = |(before, after): (&Field, &Field)| {
            // Trees do not tell the two apart.
            let words = |field: &Field| field.type_name.replace(' ', "").replace("std::int8_t", "char");
            !after.type_name.is_empty() && words(before) == words(after)
        };
        let is_root_only = NOT_IN_NTUPLES.contains(&without_arguments(type_name));
        if type_name.is_empty() || type_name.starts_with("std::") || is_root_only || !before.iter().zip(after).all(same)
        {
            return None;
        }
        let Some(class) = self.class(type_name) else {
            // Base classes without members need no description.
            return (!self.infos.is_empty() && before.is_empty()).then(Vec::new);
        };
        let is_flat = !after.iter().any(|member| member.name.starts_with(BASE));
        let (mut members, mut bases_left) = (after.iter(), MAX_BASES);
        let found = self.nest(class, &mut members, is_flat, &mut bases_left)?;
        members.next().is_none().then_some(found)
    }

    /// The members of a class, and its bases: in records, or beside them if the members are `flat`.
    fn nest(
        &self,
        class: &ClassInfo,
        members: &mut slice::Iter<'_, Field>,
        is_flat: bool,
        bases_left: &mut usize,
    ) -> Option<Vec<Field>> {
        let (mut found, mut bases) = (Vec::new(), 0);
        for element in class.elements.iter().filter(|element| element.code != NOT_STORED) {
            let is_base = matches!(element.kind, ElementKind::Base { .. });
            let name = if is_base { format!("{BASE}{bases}") } else { element.name.clone() };
            bases += usize::from(is_base);
            if is_flat && is_base {
                *bases_left = bases_left.checked_sub(1)?;
                let inner = match self.class(&element.name) {
                    Some(base) => self.nest(base, members, true, bases_left)?,
                    None => Vec::new(),
                };
                let mut base = Field::new(name, normalised(&element.name), Kind::Record(inner));
                self.identify(&mut base);
                found.push(base);
                continue;
            }
            let is_like_stored = match element.kind {
                ElementKind::Base { .. } | ElementKind::Object | ElementKind::ObjectAny => true,
                // ROOT needs the dictionary of an enum to read it from an ntuple. A streamer info does not tell enums and
                // typedefs apart.
                ElementKind::Basic => {
                    let is_enum = element.code % ARRAY == INT && Basic::from_name(&element.type_name).is_none();
                    element.code != CHARACTERS && !is_enum
                }
                ElementKind::Stl { .. } | ElementKind::StlString { .. } => !element.type_name.ends_with('*'),
                _ => false,
            };
            found.push(members.next().filter(|member| is_like_stored && member.name == name)?.clone());
        }
        Some(found)
    }

    /// Whether a collection is one by its class.
    pub(super) fn is_container(&self, type_name: &str) -> bool {
        // ROOT describes containers of the standard library too.
        let is_class = matches!(Type::parse(type_name), Ok(Type::Class(_)));
        is_class && self.class(type_name).is_some_and(ClassInfo::is_container)
    }

    /// States the version and checksum of a class, as the file has them.
    pub(super) fn identify(&self, field: &mut Field) {
        if let Some(class) = self.class(&field.type_name) {
            if let Kind::Record(_) = field.kind {
                field.type_version = u32::try_from(class.version).unwrap_or(field.type_version);
            }
            field.checksum = Some(class.checksum).filter(|&checksum| checksum != 0);
        }
    }
}

/// An array in the type of a field: members that are beside those of a class in the bases that have them.
pub(super) fn in_bases(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    Ok(match (array.data_type(), data_type) {
        (DataType::Struct(from), DataType::Struct(to)) => {
            let record = array.as_struct();
            let is_flat = !from.iter().any(|member| member.name().starts_with(BASE));
            let columns = match is_flat && to.iter().any(|member| member.name().starts_with(BASE)) {
                true => nested(to, &mut record.columns().iter(), record.len())?,
                false => {
                    let columns = record.columns().iter().zip(to);
                    columns.map(|(column, field)| in_bases(column, field.data_type())).collect::<Result<_>>()?
                }
            };
            Arc::new(records(to, columns, record.nulls().cloned(), record.len())?)
        }
        (DataType::LargeList(_), DataType::LargeList(item)) => {
            let list = array.as_list::<i64>();
            let items = in_bases(list.values(), item.data_type())?;
            let item = Arc::new(item.as_ref().clone().with_data_type(items.data_type().clone()));
            Arc::new(LargeListArray::try_new(item, list.offsets().clone(), items, list.nulls().cloned())?)
        }
        (DataType::FixedSizeList(..), DataType::FixedSizeList(item, size)) => {
            let list = array.as_fixed_size_list();
            let items = in_bases(list.values(), item.data_type())?;
            let item = Arc::new(item.as_ref().clone().with_data_type(items.data_type().clone()));
            Arc::new(FixedSizeListArray::try_new(item, *size, items, list.nulls().cloned())?)
        }
        _ => Arc::clone(array),
    })
}

/// The columns of the members of a class, from the next one of flat ones.
fn nested(members: &Fields, flat: &mut slice::Iter<'_, ArrayRef>, count: usize) -> Result<Vec<ArrayRef>> {
    let column = |member: &FieldRef| match member.data_type() {
        DataType::Struct(inner) if member.name().starts_with(BASE) => {
            let columns = nested(inner, flat, count)?;
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

/// Whether objects in an array are `TObject`s that references point to.
pub(super) fn is_referenced(array: &ArrayRef, field: &Field) -> bool {
    match array.data_type() {
        DataType::Struct(_) if field.type_name == ROOT_OBJECT => {
            let bits = array.as_struct().columns().last().and_then(|bits| bits.as_primitive_opt::<UInt32Type>());
            bits.is_some_and(|bits| bits.values().iter().any(|bits| bits & IS_REFERENCED != 0))
        }
        DataType::Struct(_) => {
            let mut members = array.as_struct().columns().iter().zip(field.children());
            members.any(|(member, field)| is_referenced(member, field))
        }
        DataType::LargeList(_) => {
            field.children().first().is_some_and(|item| is_referenced(array.as_list::<i64>().values(), item))
        }
        DataType::FixedSizeList(..) => {
            field.children().first().is_some_and(|item| is_referenced(array.as_fixed_size_list().values(), item))
        }
        _ => false,
    }
}

/// Whether a field has objects that derive from `TObject`.
pub(super) fn has_root_object(field: &Field) -> bool {
    field.type_name == ROOT_OBJECT || field.children().iter().any(has_root_object)
}

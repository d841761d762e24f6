//! Which classes keep their names in an ntuple, and their members where ROOT looks for them: in the bases that have them.

use std::collections::HashSet;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use tupelo_format::object::{Basic, Type};
use tupelo_format::streamer::code::{ARRAY, CHARACTERS, INT};
use tupelo_format::streamer::{ClassInfo, Element, ElementKind, IS_REFERENCED, StreamerInfos};
use tupelo_format::type_name::without_arguments;
use tupelo_schema::schema::{Field, Layouts, nested};
use tupelo_ttree::write::ROOT_OBJECT;

use crate::Result;
use crate::reader::Read;

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
        nested(class, after, self)
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
            field.identify(class);
        }
    }
}

impl Layouts for ClassNames {
    fn class(&self, type_name: &str) -> Option<&ClassInfo> {
        self.infos.newest(self.infos.spelling(type_name)?).map(|class| &**class)
    }

    /// Whether ROOT stores it in an ntuple as it is here.
    fn accepts(&self, member: &Element) -> bool {
        match member.kind {
            ElementKind::Base { .. } | ElementKind::Object | ElementKind::ObjectAny => true,
            // ROOT needs the dictionary of an enum to read it from an ntuple. A streamer info does not tell enums and
            // typedefs apart.
            ElementKind::Basic => {
                let is_enum = member.code % ARRAY == INT && Basic::from_name(&member.type_name).is_none();
                member.code != CHARACTERS && !is_enum
            }
            ElementKind::Stl { .. } | ElementKind::StlString { .. } => !member.type_name.ends_with('*'),
            _ => false,
        }
    }
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

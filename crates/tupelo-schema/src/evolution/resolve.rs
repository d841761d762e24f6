//! Which fields can be read as which others, and how: ROOT's automatic schema evolution (`tree/ntuple/doc/
//! SchemaEvolution.md`), on Arrow arrays.
//!
//! [`Evolution::evolve`] compares a field on disk with a wanted one, outside in, and gives what must be read and the
//! [`Transform`] that makes one of the other. Where the document and ROOT 6.40 differ, this does what ROOT 6.40 does.
//!
#![doc = include_str!("evolution.md")]

mod layers;
mod recipes;
mod tables;
#[cfg(test)]
mod tests;

use arrow_schema::DataType;
pub(crate) use tupelo_format::type_name::normalised;

pub(crate) use layers::ItemLayout;
pub(crate) use recipes::Recipe;
use recipes::{names, only, way_to};
use tables::{Family, Rule, collections, numbers};

use crate::schema::{Field, Kind, Primitive, arrow};
use crate::{Error, Result};

/// How an Arrow array of the stored field becomes one of the wanted field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Transform {
    /// The array as it is.
    Same,
    /// Numbers of another type.
    Number {
        to: DataType,
        /// Path and C++ type of the wanted field, for errors.
        path: String,
        type_name: String,
    },
    /// Items with another layout, another type, or both.
    Items { from: ItemLayout, to: ItemLayout, label: Box<Field>, item: Box<Transform> },
    /// The number of items, in 64 or 32 bits.
    Sizes { from: ItemLayout, wide: bool, path: String },
    /// The members of a record, by the calls of read rules first.
    Members { calls: Vec<Call>, members: Vec<Member> },
    /// The alternatives of a variant.
    Alternatives(Vec<(Field, Transform)>),
}

/// One member of a wanted record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Member {
    pub(crate) label: Field,
    /// Its name in Arrow.
    pub(crate) name: String,
    pub(crate) origin: Origin,
}

/// Where a member comes from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Origin {
    /// The member of that index of the record that was read.
    Read(usize, Transform),
    /// Not on disk: zero, empty or null.
    Default,
    /// An output of a call.
    Computed { call: usize, output: usize, transform: Transform },
}

/// One use of a read rule.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    /// Index of the rule.
    pub(crate) rule: usize,
    /// For each of its sources, the path of names from the record that was read.
    pub(crate) sources: Vec<Vec<String>>,
}

/// What to read for a wanted field, and how to transform it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Evolved {
    /// The field on disk, with only the parts that are needed.
    pub(crate) source: Field,
    pub(crate) transform: Transform,
}

impl Evolved {
    fn same(disk: &Field) -> Self {
        Self { source: disk.clone(), transform: Transform::Same }
    }
}

/// By what rules fields evolve: the automatic ones, and recipes for the computed members of records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Evolution<'r> {
    pub(crate) recipes: &'r [Recipe],
    /// Whether the source is compressed, which decides what encodings need no mention in the metadata.
    pub(crate) compressed: bool,
}

/// The parts of a field needed in addition to the wanted field: the paths, by member indices, to the sources of
/// recipes.
type Ways<'w> = [&'w [usize]];

/// A place in the field tree.
#[derive(Clone, Copy)]
struct FieldContext<'p> {
    path: &'p str,
    /// Whether what is not needed may be left out and numbers may be read as others: not for what rules get and give.
    may_project: bool,
    /// Whether these are the pairs of maps, on disk and wanted: Arrow calls their members otherwise.
    in_map: [bool; 2],
}

impl<'p> FieldContext<'p> {
    fn new(path: &'p str, may_project: bool) -> Self {
        Self { path, may_project, in_map: [false; 2] }
    }
}

impl Evolution<'_> {
    /// What to read for a wanted field, and how to transform it.
    ///
    /// # Errors
    /// Invalid argument, with path, types and rule, if the stored field cannot be read as the wanted one.
    pub(crate) fn evolve(&self, disk: &Field, wanted: &Field) -> Result<Evolved> {
        self.step(FieldContext::new(&wanted.name, true), disk, wanted, &[])
    }

    fn step(&self, at: FieldContext<'_>, disk: &Field, wanted: &Field, ways: &Ways<'_>) -> Result<Evolved> {
        match (&disk.kind, &wanted.kind) {
            (_, Kind::Wrapper(wanted_item)) if wanted.is_atomic() => self.step(at, disk, wanted_item, ways),
            (Kind::Wrapper(item), _) if disk.is_atomic() => self.unwrapped(at, disk, item, wanted),
            (Kind::Optional(item), Kind::Optional(wanted_item)) => self.items(at, disk, item, wanted, wanted_item),
            (_, Kind::Optional(wanted_item)) => {
                let Evolved { source, transform } = self.step(at, disk, wanted_item, ways)?;
                let (from, to) = (ItemLayout::One, ItemLayout::of(wanted));
                let same = to == ItemLayout::Nullable && transform == Transform::Same;
                let items = Transform::Items { from, to, label: wanted_item.clone(), item: Box::new(transform) };
                Ok(Evolved { source, transform: if same { Transform::Same } else { items } })
            }
            (Kind::Wrapper(item), Kind::Wrapper(wanted_item)) => self.unwrapped(at, disk, item, wanted_item),
            (Kind::Wrapper(item), Kind::Primitive(_)) => self.unwrapped(at, disk, item, wanted),
            (_, Kind::Wrapper(_)) => Err(at.refuse(disk, wanted, "an enum can only be read from an enum")),
            (Kind::Primitive(from), Kind::Primitive(to)) => self.number(at, disk, *from, wanted, *to),
            (Kind::String, Kind::String) => Ok(Evolved::same(disk)),
            (Kind::Cardinality { wide }, Kind::Cardinality { wide: wanted_wide }) => {
                Ok(Evolved { source: disk.clone(), transform: at.cast(wide == wanted_wide, wanted) })
            }
            (_, Kind::Cardinality { wide }) if disk.is_collection() => self.sizes(at, disk, *wide),
            (Kind::Streamer, Kind::Streamer) => {
                at.demand(normalised(&disk.type_name) == normalised(&wanted.type_name), disk, wanted, SAME_STREAMED)?;
                Ok(Evolved::same(disk))
            }
            (Kind::Bitset { size }, Kind::Bitset { size: wanted_size }) => {
                at.demand(size == wanted_size, disk, wanted, SAME_LENGTH)?;
                Ok(Evolved::same(disk))
            }
            (Kind::Array { size, item }, Kind::Array { size: wanted_size, item: wanted_item }) => {
                at.demand(size == wanted_size, disk, wanted, SAME_LENGTH)?;
                self.items(at, disk, item, wanted, wanted_item)
            }
            (_, Kind::Collection(wanted_item) | Kind::Map(wanted_item)) => {
                let (from, to) = (Family::of(disk), Family::of(wanted));
                let (Some(from), Some(to)) = (from, to) else { return Err(at.refuse(disk, wanted, NO_RULE)) };
                collections(from, to).map_err(|rule| at.refuse(disk, wanted, rule))?;
                let Some(item) = disk.children().first() else { return Err(at.refuse(disk, wanted, NO_RULE)) };
                self.items(at, disk, item, wanted, wanted_item)
            }
            (Kind::Tuple(members), Kind::Tuple(wanted_members)) => {
                at.demand(members.len() == wanted_members.len(), disk, wanted, SAME_LENGTH)?;
                self.members(at, disk, wanted, ways)
            }
            (Kind::Record(_) | Kind::Tuple(_), Kind::Record(_)) if wanted.type_name.is_empty() => {
                self.members(at, disk, wanted, ways)
            }
            (Kind::Record(_), Kind::Record(_)) => {
                at.demand(normalised(&disk.type_name) == normalised(&wanted.type_name), disk, wanted, SAME_CLASS)?;
                let (bases, wanted_bases) = (disk.bases().count(), wanted.bases().count());
                let all_or_none = bases == 0 || wanted_bases == 0 || bases == wanted_bases;
                at.demand(all_or_none, disk, wanted, SAME_BASES)?;
                self.members(at, disk, wanted, ways)
            }
            (Kind::Variant(alternatives), Kind::Variant(wanted_alternatives)) => {
                at.demand(alternatives.len() == wanted_alternatives.len(), disk, wanted, SAME_ALTERNATIVES)?;
                self.alternatives(at, disk, wanted)
            }
            _ => Err(at.refuse(disk, wanted, NO_RULE)),
        }
    }

    /// What an atomic or an enum holds, which in Arrow is the same.
    fn unwrapped(&self, at: FieldContext<'_>, disk: &Field, item: &Field, wanted: &Field) -> Result<Evolved> {
        let Evolved { source, transform } = self.step(at, item, wanted, &[])?;
        Ok(Evolved { source: disk.with_item(source), transform })
    }

    fn number(
        &self,
        at: FieldContext<'_>,
        disk: &Field,
        from: Primitive,
        wanted: &Field,
        to: Primitive,
    ) -> Result<Evolved> {
        numbers(from, to).map_err(|rule| at.refuse(disk, wanted, rule))?;
        // Column types that are made for the wanted type too are decoded as it at once, as in ROOT.
        let in_range = |(min, max): (f64, f64)| (min as f32).is_finite() && (max as f32).is_finite();
        let fits = disk.encoding.is_some_and(|encoding| {
            to.can_be_stored_as(encoding.column_type()) && encoding.range().is_none_or(in_range)
        });
        if at.may_project && disk.id.is_some() && from != to && fits {
            return Ok(Evolved { source: wanted.in_place_of(disk), transform: Transform::Same });
        }
        let same = from.data_type() == to.data_type();
        Ok(Evolved { source: disk.clone(), transform: at.cast(same, wanted) })
    }

    /// Collections, arrays and optionals.
    fn items(
        &self,
        at: FieldContext<'_>,
        disk: &Field,
        item: &Field,
        wanted: &Field,
        wanted_item: &Field,
    ) -> Result<Evolved> {
        let in_map = [disk, wanted].map(|field| matches!(field.kind, Kind::Map(_)));
        let Evolved { source, transform: inner } = self.step(FieldContext { in_map, ..at }, item, wanted_item, &[])?;
        let source = disk.with_item(source);
        let (from, to) = (ItemLayout::of(&source), ItemLayout::of(wanted));
        let same = from == to && inner == Transform::Same && self.reads_alike(&source, wanted);
        let items = Transform::Items { from, to, label: Box::new(wanted_item.clone()), item: Box::new(inner) };
        Ok(Evolved { source, transform: if same { Transform::Same } else { items } })
    }

    /// The items themselves are not needed: they are read as records without members.
    fn sizes(&self, at: FieldContext<'_>, disk: &Field, wide: bool) -> Result<Evolved> {
        let source = match disk.children() {
            [item] if at.may_project => disk.with_item(Field { kind: Kind::Record(Vec::new()), ..item.clone() }),
            _ => disk.clone(),
        };
        let from = ItemLayout::of(&source);
        Ok(Evolved { source, transform: Transform::Sizes { from, wide, path: at.path.to_owned() } })
    }

    fn alternatives(&self, at: FieldContext<'_>, disk: &Field, wanted: &Field) -> Result<Evolved> {
        let (mut sources, mut alternatives) = (Vec::new(), Vec::new());
        for (number, (alternative, wanted)) in disk.children().iter().zip(wanted.children()).enumerate() {
            let path = format!("{}._{number}", at.path);
            let evolved = self.step(FieldContext::new(&path, at.may_project), alternative, wanted, &[])?;
            sources.push(evolved.source);
            alternatives.push((wanted.clone(), evolved.transform));
        }
        let source = Field { kind: Kind::Variant(sources), ..disk.clone() };
        let same = alternatives.iter().all(|(_, transform)| *transform == Transform::Same);
        let same = same && self.reads_alike(&source, wanted);
        let transform = if same { Transform::Same } else { Transform::Alternatives(alternatives) };
        Ok(Evolved { source, transform })
    }

    /// Records and tuples. What is read are the members that are wanted and those to which ways lead.
    fn members(&self, at: FieldContext<'_>, disk: &Field, wanted: &Field, ways: &Ways<'_>) -> Result<Evolved> {
        let computed = self.computed(at, disk)?;
        let needed = |name: &str| computed.iter().find(|target| target.name == name);
        let mut calls: Vec<Call> = Vec::new();
        let mut own_ways: Vec<Vec<usize>> = ways.iter().map(|way| way.to_vec()).collect();
        for target in wanted.children().iter().filter_map(|member| needed(&member.name)) {
            if !calls.iter().any(|call| call.rule == target.rule) {
                let found = self.recipes[target.rule].sources.iter().map(|name| way_to(disk, name));
                let found = found.collect::<Option<Vec<_>>>().unwrap_or_default();
                calls.push(Call { rule: target.rule, sources: found.iter().map(|way| names(disk, way)).collect() });
                own_ways.extend(found);
            }
        }
        let by_position = matches!((&disk.kind, &wanted.kind), (Kind::Tuple(_), Kind::Tuple(_)));
        let twice = |(index, member): (usize, &Field)| wanted.children()[..index].iter().any(|m| m.name == member.name);
        at.demand(!wanted.children().iter().enumerate().any(twice), disk, wanted, NAMED_TWICE)?;
        let mut origins: Vec<Option<Origin>> = vec![None; wanted.children().len()];
        let mut sources = Vec::new();
        for (index, member) in disk.children().iter().enumerate() {
            let mine: Vec<&[usize]> = own_ways
                .iter()
                .filter_map(|way| way.split_first())
                .filter(|(i, _)| **i == index)
                .map(|(_, w)| w)
                .collect();
            let position = match by_position {
                true => Some(index),
                false => wanted.children().iter().position(|wanted| wanted.name == member.name),
            };
            let position = position.filter(|&position| needed(&wanted.children()[position].name).is_none());
            if position.is_none() && mine.is_empty() && at.may_project {
                continue;
            }
            // A rule must get its sources as they are on disk.
            let is_source = mine.iter().any(|way| way.is_empty());
            let source = match position {
                None if is_source || !at.may_project => member.clone(),
                None => only(member, &mine),
                Some(position) => {
                    let wanted = &wanted.children()[position];
                    let path = format!("{}.{}", at.path, wanted.name);
                    let place = FieldContext::new(&path, at.may_project && !is_source);
                    let evolved = self.step(place, member, wanted, &mine)?;
                    origins[position] = Some(Origin::Read(sources.len(), evolved.transform));
                    evolved.source
                }
            };
            sources.push(source);
        }
        let source = match at.may_project {
            true => disk.with_members(sources),
            false => disk.clone(),
        };
        let mut members = Vec::with_capacity(origins.len());
        for (index, (member, origin)) in wanted.children().iter().zip(origins).enumerate() {
            let path = format!("{}.{}", at.path, member.name);
            let name = if at.in_map[1] { arrow::PAIR[index % 2].to_owned() } else { member.name.clone() };
            let origin = match (needed(&member.name), origin) {
                (Some(target), _) => {
                    let call = calls.iter().position(|call| call.rule == target.rule).unwrap_or_default();
                    let output = &self.recipes[target.rule].targets[target.output];
                    let place = FieldContext::new(&path, false);
                    // Rules see what is on disk, not what other rules have computed.
                    let transform = Evolution { recipes: &[], ..*self }.step(place, output, member, &[])?.transform;
                    Origin::Computed { call, output: target.output, transform }
                }
                (None, Some(origin)) => origin,
                (None, None) => {
                    layers::check_default(member).map_err(|e| e.within(format!("field '{path}'")))?;
                    Origin::Default
                }
            };
            members.push(Member { label: member.clone(), name, origin });
        }
        let in_order = |(index, member): (usize, &Member)| member.origin == Origin::Read(index, Transform::Same);
        let same = source.children().len() == members.len() && members.iter().enumerate().all(in_order);
        let same = same && at.in_map[0] == at.in_map[1] && self.reads_alike(&source, wanted);
        let transform = if same { Transform::Same } else { Transform::Members { calls, members } };
        Ok(Evolved { source, transform })
    }

    fn reads_alike(&self, source: &Field, wanted: &Field) -> bool {
        arrow::data_type(source, self.compressed) == arrow::data_type(wanted, self.compressed)
    }
}

const NO_RULE: Rule = "no conversion exists";
const SAME_LENGTH: Rule = "the lengths must be the same";
const SAME_STREAMED: Rule = "streamed bytes can only be read as the same class";
const SAME_CLASS: Rule = "a class can only be read from the same class; a record without a type name, from any";
const SAME_BASES: Rule = "base classes can only be added or removed all together";
const NAMED_TWICE: Rule = "two of the wanted members have the same name";
const SAME_ALTERNATIVES: Rule = "the number of alternatives must be the same";

impl FieldContext<'_> {
    fn cast(&self, same: bool, wanted: &Field) -> Transform {
        match same {
            true => Transform::Same,
            false => Transform::Number {
                to: arrow::data_type(wanted, true),
                path: self.path.to_owned(),
                type_name: wanted.type_name.clone(),
            },
        }
    }

    fn demand(&self, holds: bool, disk: &Field, wanted: &Field, rule: Rule) -> Result<()> {
        if holds { Ok(()) } else { Err(self.refuse(disk, wanted, rule)) }
    }

    #[cold]
    fn refuse(&self, disk: &Field, wanted: &Field, rule: Rule) -> Error {
        let (disk, wanted) = (disk.display_type(), wanted.display_type());
        Error::invalid_argument(format!("'{disk}' on disk cannot be read as '{wanted}': {rule}")).within(self)
    }
}

impl std::fmt::Display for FieldContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "field '{}'", self.path)
    }
}

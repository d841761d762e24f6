//! The fields of several sources as those of one.

use std::collections::{BTreeSet, HashMap};

use tupelo_format::descriptor::FieldId;
use tupelo_format::encoding::Encoding;

use super::{Field, Kind, Primitive, Schema};

/// Which fields to read where sources differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FieldPolicy {
    /// Those that all have. Records have the members that all have.
    #[default]
    Common,
    /// Those that any has, with nulls for sources that lack them.
    Union,
    /// Those that any has, with zeros, empty texts and empty lists for sources that lack them: what fields of an ntuple have
    /// that were added late, as by ROOT's merger. Lists whose counter counts other lists of a tree have as many zeros there as
    /// the counter says.
    Defaults,
}

/// Most representations of a field. Each takes space in every cluster, and there may be thousands of sources.
const MAX_REPRESENTATIONS: usize = 8;

/// The fields of several sources as those of one.
#[derive(Debug, Default)]
pub struct CombinedSchema {
    /// The fields.
    pub schema: Schema,
    /// Fields that some sources lack, each with the name of one of these.
    pub partial: HashMap<String, String>,
    /// What is left out.
    pub differing: Vec<Differing>,
    /// What some sources have in a narrower type: one sentence each.
    pub promoted: Vec<String>,
}

/// A field that is left out because sources differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Differing {
    /// Its dotted path.
    pub path: String,
    /// How the sources differ.
    pub reason: String,
    /// Whether some sources lack it, and have no other type.
    pub is_missing: bool,
}

/// Collects the fields of sources, one source after the other.
#[derive(Debug, Default)]
pub struct Combination {
    policy: FieldPolicy,
    fields: Vec<Combined>,
    places: HashMap<String, usize>,
    /// The schemas of the last sources: most sources have equal ones.
    seen: Vec<Schema>,
    sources: usize,
    /// Name of the source that was added last.
    last: Option<String>,
    differing: Vec<Differing>,
    promoted: Vec<String>,
}

#[derive(Debug)]
struct Combined {
    field: Field,
    /// The number of sources that have it.
    sources: usize,
    /// Name of the first source that has it.
    first: String,
    /// Whether it is left out, which is listed already.
    is_left_out: bool,
    /// Name of a source that lacks it.
    lacking: Option<String>,
}

/// Schemas that later ones are compared with.
const SEEN_SCHEMAS: usize = 4;

impl Combination {
    /// No sources yet.
    pub fn new(policy: FieldPolicy) -> Self {
        Self { policy, ..Self::default() }
    }

    /// Number of fields so far.
    pub fn num_fields(&self) -> usize {
        self.fields.len()
    }

    /// The names of the fields from one on, in the order in which they were found.
    pub fn names_from(&self, first: usize) -> impl Iterator<Item = &str> {
        self.fields.iter().skip(first).map(|combined| combined.field.name.as_str())
    }

    /// Adds the fields of another source.
    pub fn add(&mut self, schema: &Schema, source: &str) {
        self.sources += 1;
        if self.seen.contains(schema) {
            for field in &schema.fields {
                if let Some(&place) = self.places.get(&field.name) {
                    self.fields[place].sources += 1;
                }
            }
            self.note_missing(source);
            return;
        }
        for field in &schema.fields {
            match self.places.get(&field.name) {
                Some(&place) => self.combine(place, field.clone(), source),
                None => {
                    self.places.insert(field.name.clone(), self.fields.len());
                    let (field, lacking, first) = (field.clone(), self.last.clone(), source.to_owned());
                    self.fields.push(Combined { field, sources: 1, first, is_left_out: false, lacking });
                }
            }
        }
        self.note_missing(source);
        self.seen.truncate(SEEN_SCHEMAS - 1);
        self.seen.insert(0, schema.clone());
    }

    fn combine(&mut self, place: usize, mut field: Field, source: &str) {
        let known = &mut self.fields[place];
        known.sources += 1;
        if known.is_left_out {
            return;
        }
        // A field that only some sources project has its own values.
        if !known.field.is_projected_like(&field) {
            known.field.store();
            field.store();
        }
        let mut missing = BTreeSet::new();
        match combined(&known.field, &field, self.policy, &field.name, &mut missing) {
            Ok(both) => {
                if [&known.field, &field].iter().any(|own| own.is_narrower(&both)) {
                    let told = [&known.field, &field].map(|field| field.display_type().to_owned());
                    let [own, other] = told;
                    let what =
                        format!("field '{}' has type {own} in {} and {other} in {source}", both.name, known.first);
                    self.promoted.push(what);
                }
                known.field = both;
            }
            // It is read under the names of its projected fields.
            Err(_) if known.field.hidden => known.is_left_out = true,
            Err(difference) => {
                known.is_left_out = true;
                let Difference { path, own, other } = *difference;
                let reason = format!("has type {other} in {source}, expected {own} as in {}", known.first);
                self.differing.push(Differing { path, reason, is_missing: false });
            }
        }
        let reason = || format!("some of {} and {source} lack it", known.first);
        for path in missing {
            if !self.differing.iter().any(|known| known.path == path) {
                self.differing.push(Differing { path, reason: reason(), is_missing: true });
            }
        }
    }

    /// Notes which fields the source lacks that was added last, or earlier ones.
    fn note_missing(&mut self, source: &str) {
        self.last = Some(source.to_owned());
        for known in self.fields.iter_mut().filter(|known| known.sources < self.sources && !known.is_left_out) {
            let lacking = known.lacking.get_or_insert_with(|| source.to_owned());
            if self.policy == FieldPolicy::Common {
                known.is_left_out = true;
                if !known.field.hidden {
                    let reason = format!("{lacking} lacks it");
                    self.differing.push(Differing { path: known.field.name.clone(), reason, is_missing: true });
                }
            }
        }
    }

    /// The fields to read. Those that some sources lack are optional, unless they have defaults.
    pub fn finish(self) -> CombinedSchema {
        let (mut fields, mut partial): (Vec<Field>, _) = (Vec::with_capacity(self.fields.len()), HashMap::new());
        for mut known in self.fields {
            if let Some(source) = known.lacking {
                partial.insert(known.field.name.clone(), source);
                known.field.store();
                if self.policy == FieldPolicy::Union && known.field.takes_nulls() {
                    known.field = known.field.optional();
                }
            }
            if !known.is_left_out {
                let id = u32::try_from(fields.len()).map(FieldId::from).ok();
                fields.push(Field { id, ..known.field });
            }
        }
        let is_whole = |path: &String| {
            let top = path.split('.').next().unwrap_or_default();
            stored_path(&fields, path) && !partial.contains_key(top)
        };
        let is_lost = |field: &Field| field.projections().into_iter().any(|path| !is_whole(path));
        let lost: Vec<bool> = fields.iter().map(is_lost).collect();
        fields.iter_mut().zip(lost).filter(|(_, lost)| *lost).for_each(|(field, _)| field.store());
        CombinedSchema { schema: Schema { fields }, partial, differing: self.differing, promoted: self.promoted }
    }
}

/// Whether there is a field of a path in which items of collections are called `_0`.
fn stored_path(fields: &[Field], path: &str) -> bool {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    let found = fields.iter().find(|field| field.name == name);
    found.is_some_and(|field| rest.is_none_or(|rest| stored_path(field.children(), rest)))
}

impl Field {
    /// The paths of the fields that it is projected from, itself and its subfields in order.
    fn projections(&self) -> Vec<&String> {
        let below = self.children().iter().flat_map(Self::projections);
        self.projected_from.iter().chain(below).collect()
    }

    fn is_projected_like(&self, other: &Self) -> bool {
        self.projections() == other.projections()
    }
}

/// Where two fields of the same name differ, and what they are.
struct Difference {
    path: String,
    own: String,
    other: String,
}

/// How one or the other of the fields stores its first column.
fn representations(own: &Field, other: &Field) -> Vec<Encoding> {
    let mut all = own.representations.clone();
    all.extend(other.representations.iter().filter(|encoding| !own.representations.contains(encoding)));
    all.truncate(MAX_REPRESENTATIONS);
    all
}

/// The field whose values both fields have. `missing` receives the members that one of them lacks.
fn combined(
    own: &Field,
    other: &Field,
    policy: FieldPolicy,
    path: &str,
    missing: &mut BTreeSet<String>,
) -> Result<Field, Box<Difference>> {
    let differ = || {
        let told = |field: &Field| field.display_type().to_owned();
        let (mut names, path) = ((told(own), told(other)), path.to_owned());
        if names.0 == names.1 {
            let members =
                |field: &Field| field.children().iter().map(|it| it.name.clone()).collect::<Vec<_>>().join(", ");
            names = (format!("{} of {}", names.0, members(own)), format!("{} of {}", names.1, members(other)));
        }
        Box::new(Difference { path, own: names.0, other: names.1 })
    };
    let mut item = |own: &Field, other: &Field| combined(own, other, policy, path, missing).map(Box::new);
    let kind = match (&own.kind, &other.kind) {
        (Kind::Optional(ours), Kind::Optional(theirs)) => Kind::Optional(item(ours, theirs)?),
        (Kind::Optional(ours), _) => Kind::Optional(item(ours, other)?),
        (_, Kind::Optional(theirs)) => {
            let value = item(own, theirs)?;
            let kind = Kind::Optional(Box::new(Field { name: theirs.name.clone(), ..*value }));
            let type_name = other.type_name_of(&kind).ok_or_else(differ)?;
            return Ok(Field { name: own.name.clone(), type_name, kind, ..other.clone() });
        }
        (Kind::Wrapper(ours), Kind::Wrapper(theirs)) => Kind::Wrapper(item(ours, theirs)?),
        (Kind::Collection(ours) | Kind::Map(ours), Kind::Collection(theirs) | Kind::Map(theirs)) => {
            let both = item(ours, theirs)?;
            match &container(own, other).kind {
                Kind::Map(_) => Kind::Map(both),
                _ => Kind::Collection(both),
            }
        }
        (Kind::Array { size, item: ours }, Kind::Array { size: theirs, item: other }) if size == theirs => {
            Kind::Array { size: *size, item: item(ours, other)? }
        }
        (Kind::Record(ours), Kind::Record(theirs)) => match members(ours, theirs, policy, path, missing)? {
            Some(members) => Kind::Record(members),
            None => return Err(differ()),
        },
        (Kind::Tuple(ours), Kind::Tuple(theirs)) if ours.len() == theirs.len() => {
            let pairs = ours.iter().zip(theirs);
            let both = pairs.map(|(own, other)| combined(own, other, policy, &format!("{path}.{}", own.name), missing));
            Kind::Tuple(both.collect::<Result<_, _>>()?)
        }
        (Kind::Primitive(ours), Kind::Primitive(theirs)) => match ours.common(*theirs) {
            Some(common) if common == *ours => own.kind.clone(),
            Some(common) if common == *theirs => return Ok(Field { name: own.name.clone(), ..other.clone() }),
            Some(common) => {
                let wider = Field::new(own.name.clone(), common.type_name(), Kind::Primitive(common));
                return Ok(Field { description: own.description.clone(), hidden: own.hidden, ..wider });
            }
            None => return Err(differ()),
        },
        (Kind::Streamer, Kind::Streamer) if own.type_name != other.type_name => return Err(differ()),
        (Kind::Variant(ours), Kind::Variant(theirs)) if ours.len() == theirs.len() => {
            // A variant is only itself with all its alternatives as they are.
            let pairs = ours.iter().zip(theirs);
            let both = pairs.map(|(own, other)| combined(own, other, FieldPolicy::Union, path, missing));
            Kind::Variant(both.collect::<Result<_, _>>()?)
        }
        (ours, theirs) if ours == theirs => own.kind.clone(),
        _ => return Err(differ()),
    };
    let type_name = match container(own, other).type_name_of(&kind) {
        Some(name) => name,
        // A class may have other items in another version.
        None if own.type_name == other.type_name => own.type_name.clone(),
        None => return Err(differ()),
    };
    let type_alias = if type_name == own.type_name { own.type_alias.clone() } else { String::new() };
    // Values that one source stores more exactly are not those of another encoding.
    let encoding = own.encoding.filter(|_| own.encoding == other.encoding);
    let representations = match own.is_stored_like(other) {
        true => representations(own, other),
        false => own.representations.clone(),
    };
    Ok(Field { type_name, type_alias, encoding, representations, kind, ..own.clone() })
}

/// Of two collections, the one whose type keeps the values of both: a set would lose those that a vector has twice.
fn container<'f>(own: &'f Field, other: &'f Field) -> &'f Field {
    if other.retention() > own.retention() { other } else { own }
}

/// Which items a collection keeps of those that are put into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Retention {
    /// One of those that are equal.
    Distinct,
    /// All, in no order of their own.
    All,
    AllInOrder,
}

/// The members that records have in common; `None` if there is none, or not all and all are wanted.
fn members(
    ours: &[Field],
    theirs: &[Field],
    policy: FieldPolicy,
    path: &str,
    missing: &mut BTreeSet<String>,
) -> Result<Option<Vec<Field>>, Box<Difference>> {
    let by_name: HashMap<&str, &Field> = theirs.iter().map(|field| (field.name.as_str(), field)).collect();
    let mut both = Vec::with_capacity(ours.len());
    let mut lacking = Vec::new();
    for own in ours {
        let below = format!("{path}.{}", own.name);
        match by_name.get(own.name.as_str()) {
            Some(other) => both.push(combined(own, other, policy, &below, missing)?),
            None => lacking.push(below),
        }
    }
    let known: BTreeSet<&str> = ours.iter().map(|field| field.name.as_str()).collect();
    let added = theirs.iter().filter(|field| !known.contains(field.name.as_str()));
    lacking.extend(added.map(|field| format!("{path}.{}", field.name)));
    if !lacking.is_empty() && (policy != FieldPolicy::Common || both.is_empty()) {
        return Ok(None);
    }
    missing.extend(lacking);
    Ok(Some(both))
}

impl Primitive {
    /// Whether all values of another, narrower type are values of this one. As in ROOT, booleans and characters are integers.
    fn holds(self, other: Self) -> bool {
        use Primitive::{Bool, Char, Double, Float, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
        match self {
            Char | UInt8 => other == Bool,
            Int8 => matches!(other, Bool | Char),
            Int16 => matches!(other, UInt8 | Int8) || Int8.holds(other),
            UInt16 => matches!(other, Bool | UInt8),
            Int32 => matches!(other, UInt16 | Int16) || Int16.holds(other),
            UInt32 => other == UInt16 || UInt16.holds(other),
            Int64 => matches!(other, UInt32 | Int32) || Int32.holds(other),
            UInt64 => other == UInt32 || UInt32.holds(other),
            Double => other == Float,
            _ => false,
        }
    }

    /// The narrowest type with all values of both.
    fn common(self, other: Self) -> Option<Self> {
        let holds = |wide: Self, own: Self| wide == own || wide.holds(own);
        let types = [self, other, Self::Int16, Self::Int32, Self::Int64];
        types.into_iter().find(|&wide| holds(wide, self) && holds(wide, other))
    }
}

impl Field {
    /// The name of its type with other subfields. `None` where the name does not tell the types of subfields that differ.
    fn type_name_of(&self, kind: &Kind) -> Option<String> {
        let arguments = |kind: &Kind| {
            let fields: &[Self] = match kind {
                Kind::Map(pair) => pair.children(),
                Kind::Collection(item) | Kind::Optional(item) | Kind::Array { item, .. } | Kind::Wrapper(item) => {
                    std::slice::from_ref(item)
                }
                Kind::Tuple(fields) | Kind::Variant(fields) => fields,
                // The name of a class stays when members change.
                _ => &[],
            };
            fields.iter().map(|field| field.type_name.as_str()).collect::<Vec<_>>().join(",")
        };
        let (before, after) = (arguments(&self.kind), arguments(kind));
        if before == after || self.type_name.is_empty() {
            return Some(self.type_name.clone());
        }
        let (template, rest) = self.type_name.split_once('<')?;
        Some(format!("{template}<{after}{}", rest.strip_prefix(&before)?))
    }

    fn retention(&self) -> Retention {
        if !matches!(self.kind, Kind::Collection(_) | Kind::Map(_)) {
            return Retention::AllInOrder;
        }
        let (template, _) = self.type_name.split_once('<').unwrap_or_default();
        let template = template.strip_prefix("std::").unwrap_or(template);
        match template.strip_prefix("unordered_").unwrap_or(template) {
            "set" | "map" => Retention::Distinct,
            "multiset" | "multimap" => Retention::All,
            _ => Retention::AllInOrder,
        }
    }

    /// Whether numbers or collections in a field have another type than those of the combined field, which holds more.
    fn is_narrower(&self, combined: &Self) -> bool {
        let combined = match (&self.kind, &combined.kind) {
            (Kind::Optional(_), _) => combined,
            (_, Kind::Optional(item)) => item,
            _ => combined,
        };
        let of_child = |own: &Field| {
            let child = combined.children().iter().find(|child| child.name == own.name);
            child.is_some_and(|child| own.is_narrower(child))
        };
        let is_own = matches!((&self.kind, &combined.kind), (Kind::Primitive(own), Kind::Primitive(it)) if own != it);
        let is_collection = self.retention() < combined.retention();
        is_own || is_collection || self.children().iter().any(of_child)
    }

    /// Of a field of a source, what a field combined of several has of it. `None` if it is not of the same kind.
    pub fn restricted(&self, stored: &Self) -> Option<Self> {
        let item = |own: &Field, stored: &Field| own.restricted(stored).map(Box::new);
        let each = |own: &[Field], stored: &[Field]| -> Option<Vec<Field>> {
            own.iter().zip(stored).map(|(own, stored)| own.restricted(stored)).collect()
        };
        let kind = match (&self.kind, &stored.kind) {
            (Kind::Optional(own), Kind::Optional(theirs)) => Kind::Optional(item(own, theirs)?),
            (Kind::Optional(own), _) => {
                let field = own.restricted(stored)?;
                return Some(Field { name: stored.name.clone(), ..field });
            }
            (Kind::Wrapper(own), Kind::Wrapper(theirs)) => Kind::Wrapper(item(own, theirs)?),
            (Kind::Collection(own) | Kind::Map(own), Kind::Collection(theirs)) => Kind::Collection(item(own, theirs)?),
            (Kind::Collection(own) | Kind::Map(own), Kind::Map(theirs)) => Kind::Map(item(own, theirs)?),
            (Kind::Array { item: own, .. }, Kind::Array { size, item: theirs }) => {
                Kind::Array { size: *size, item: item(own, theirs)? }
            }
            (Kind::Record(own), Kind::Record(theirs)) => {
                let member = |own: &Field| {
                    theirs.iter().find(|stored| stored.name == own.name).and_then(|stored| own.restricted(stored))
                };
                Kind::Record(own.iter().map(member).collect::<Option<_>>()?)
            }
            (Kind::Tuple(own), Kind::Tuple(theirs)) => Kind::Tuple(each(own, theirs)?),
            (Kind::Variant(own), Kind::Variant(theirs)) => Kind::Variant(each(own, theirs)?),
            (Kind::Primitive(own), Kind::Primitive(theirs)) if own.holds(*theirs) => stored.kind.clone(),
            // The size of a collection is combined as a number.
            (Kind::Primitive(_), Kind::Cardinality { .. }) => stored.kind.clone(),
            (own, theirs) if own == theirs => stored.kind.clone(),
            _ => return None,
        };
        Some(Field { kind, ..stored.clone() })
    }
}

//! The effect of read rules on the schema: the members that they compute, and their sources.

use std::fmt;
use std::ops::RangeInclusive;

use super::{Evolution, FieldContext, Ways, normalised};
use crate::schema::{Field, Kind};
use crate::{Error, Result};

/// The effect of a read rule on the schema.
#[derive(Debug, Clone)]
pub(crate) struct Recipe {
    /// Normalised.
    pub(crate) type_name: String,
    pub(crate) versions: Option<RangeInclusive<u32>>,
    pub(crate) checksum: Option<u32>,
    pub(crate) sources: Vec<String>,
    pub(crate) targets: Vec<Field>,
    pub(crate) hides_sources: bool,
}

impl Recipe {
    pub(super) fn fits(&self, record: &Field) -> bool {
        let any = self.versions.is_none() && self.checksum.is_none();
        let version = self.versions.as_ref().is_some_and(|versions| versions.contains(&record.type_version));
        let checksum = self.checksum.is_some() && self.checksum == record.checksum;
        (any || version || checksum) && self.type_name == normalised(&record.type_name)
    }
}

/// The rule, as errors name it: by its class, and the versions and the checksum where it is for some only.
impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "read rule for '{}'", self.type_name)?;
        match self.versions.as_ref().map(|versions| (versions.start(), versions.end())) {
            Some((first, last)) if first == last => write!(f, ", version {first}")?,
            Some((first, last)) => write!(f, ", versions {first} to {last}")?,
            None => {}
        }
        match self.checksum {
            Some(checksum) => write!(f, ", checksum {checksum}"),
            None => Ok(()),
        }
    }
}

/// A member that a recipe computes.
pub(super) struct Target<'r> {
    pub(super) name: &'r str,
    pub(super) rule: usize,
    pub(super) output: usize,
}

impl<'r> Evolution<'r> {
    /// The members of a record that recipes compute.
    pub(super) fn computed(&self, at: FieldContext<'_>, record: &Field) -> Result<Vec<Target<'r>>> {
        let mut targets: Vec<Target<'_>> = Vec::new();
        if !matches!(record.kind, Kind::Record(_)) {
            return Ok(targets);
        }
        for (rule, recipe) in self.recipes.iter().enumerate().filter(|(_, recipe)| recipe.fits(record)) {
            let error = |e: Error| e.within(recipe).within(at);
            for source in &recipe.sources {
                if way_to(record, source).is_none() {
                    let known = record.children().iter().chain(record.bases().flat_map(Field::children));
                    return Err(error(Error::no_such("member", source, known.map(|field| field.name.as_str()))));
                }
            }
            for (output, target) in recipe.targets.iter().enumerate() {
                if targets.iter().any(|other| other.name == target.name) {
                    let what = format!("another rule also computes the member '{}'; remove one", target.name);
                    return Err(error(Error::invalid_argument(what)));
                }
                targets.push(Target { name: &target.name, rule, output });
            }
        }
        Ok(targets)
    }

    /// The field as it looks once the recipes are applied: with the computed members, without the hidden ones.
    ///
    /// # Errors
    /// Not found for a source that a record does not have, invalid argument where two rules compute the same.
    pub(crate) fn shape(&self, field: &Field) -> Result<Field> {
        self.shape_at(&field.name, field)
    }

    fn shape_at(&self, path: &str, field: &Field) -> Result<Field> {
        let targets = self.computed(FieldContext::new(path, true), field)?;
        let mut hidden: Vec<Vec<usize>> = Vec::new();
        for (_, recipe) in self.recipes.iter().enumerate().filter(|(i, _)| targets.iter().any(|t| t.rule == *i)) {
            if recipe.hides_sources {
                hidden.extend(recipe.sources.iter().filter_map(|name| way_to(field, name)));
            }
        }
        let mut shaped = field.clone();
        for child in shaped.children_mut() {
            let below = if field.is_transparent() { path.to_owned() } else { format!("{path}.{}", child.name) };
            *child = self.shape_at(&below, child)?;
        }
        if let Kind::Record(members) = &mut shaped.kind {
            hide(members, &hidden.iter().map(Vec::as_slice).collect::<Vec<_>>());
            for target in targets {
                let computed = self.recipes[target.rule].targets[target.output].clone();
                match members.iter_mut().find(|member| member.name == target.name) {
                    Some(member) => *member = computed,
                    None => members.push(computed),
                }
            }
        }
        Ok(shaped)
    }
}

/// Removes the members at the ends of paths, and base classes that have none left, if that leaves no base class.
fn hide(members: &mut Vec<Field>, ways: &Ways<'_>) {
    let mut index = 0;
    members.retain_mut(|member| {
        let mine: Vec<&[usize]> =
            ways.iter().filter_map(|way| way.split_first()).filter(|(i, _)| **i == index).map(|(_, way)| way).collect();
        index += 1;
        if let Kind::Record(inner) = &mut member.kind
            && !mine.is_empty()
        {
            hide(inner, &mine);
        }
        !mine.iter().any(|way| way.is_empty())
    });
    let is_emptied = |member: &Field| member.is_base() && member.children().is_empty();
    if !ways.is_empty() && members.iter().filter(|member| member.is_base()).all(is_emptied) {
        members.retain(|member| !member.is_base());
    }
}

/// The member of that name, of the record itself or of its base classes, as ROOT looks it up.
pub(super) fn way_to(record: &Field, name: &str) -> Option<Vec<usize>> {
    let members = record.children();
    if let Some(index) = members.iter().position(|member| member.name == name) {
        return Some(vec![index]);
    }
    members.iter().enumerate().filter(|(_, member)| member.is_base()).find_map(|(index, base)| {
        let mut way = way_to(base, name)?;
        way.insert(0, index);
        Some(way)
    })
}

/// The names along a path.
pub(super) fn names(record: &Field, way: &[usize]) -> Vec<String> {
    let mut at = record;
    way.iter()
        .map(|&index| {
            at = &at.children()[index];
            at.name.clone()
        })
        .collect()
}

/// A record with only the members at the ends of paths.
pub(super) fn only(record: &Field, ways: &Ways<'_>) -> Field {
    let below = |index: usize| ways.iter().filter_map(move |way| way.split_first().filter(|(i, _)| **i == index));
    let members = record.children().iter().enumerate().filter_map(|(index, member)| {
        let mine: Vec<&[usize]> = below(index).map(|(_, way)| way).collect();
        match mine.iter().any(|way| way.is_empty()) {
            true => Some(member.clone()),
            false => (!mine.is_empty()).then(|| only(member, &mine)),
        }
    });
    record.with_members(members.collect())
}

//! Operations on whole ntuples and files.

pub mod copy;
pub mod index;
pub mod inspect;
pub mod layout;
pub mod repair;
pub mod verify;

use tupelo_format::open::ANCHOR_CLASS;

use crate::reader::{File, Ntuple};
use crate::{Error, Result};

/// Attribute sets have none of their own (format specification, "Linked Attribute Sets"): what a file says deeper down
/// is not followed, for it may go in circles.
const MAX_DEPTH: usize = 1;

/// An ntuple or an attribute set, as far as it can be opened.
struct Found {
    /// Path in the file, with the cycle if it is not the newest, and behind `@` the attribute set.
    name: String,
    ntuple: Result<Ntuple>,
}

/// One ntuple, or all of a file with all their cycles; each with its attribute sets behind it.
fn ntuples(file: &File, name: Option<&str>) -> Result<Vec<Found>> {
    let mut all = Vec::new();
    if let Some(name) = name {
        let ntuple = file.ntuple(Some(name));
        match ntuple {
            Err(error) if error.is_not_found() => return Err(error),
            ntuple => with_attribute_sets(name.to_owned(), ntuple, MAX_DEPTH, &mut all),
        }
        return Ok(all);
    }
    let mut anchors = file.objects()?;
    anchors.retain(|object| object.class_name == ANCHOR_CLASS);
    for object in &anchors {
        let newest = anchors.iter().filter(|other| other.path == object.path).map(|other| other.cycle).max();
        let name = match newest == Some(object.cycle) {
            true => object.path.clone(),
            false => format!("{};{}", object.path, object.cycle),
        };
        let ntuple = file.ntuple(Some(&name));
        with_attribute_sets(name, ntuple, MAX_DEPTH, &mut all);
    }
    Ok(all)
}

fn with_attribute_sets(name: String, ntuple: Result<Ntuple>, depth: usize, all: &mut Vec<Found>) {
    let mut sets = Vec::new();
    if let (Ok(ntuple), 1..) = (&ntuple, depth) {
        sets.extend(ntuple.attribute_sets().map(|set| (format!("{name}@{set}"), ntuple.attribute_set(set))));
    }
    all.push(Found { name, ntuple });
    for (name, set) in sets {
        with_attribute_sets(name, set, depth - 1, all);
    }
}

/// The text of an error without the names that `found` has anyway.
fn reason(error: &Error, file: &File, name: &str) -> String {
    let text = error.to_string();
    let text = text.strip_prefix(&format!("{}: ", file.name())).unwrap_or(&text);
    let path = name.split(['@', ';']).next().unwrap_or(name);
    text.strip_prefix(&format!("ntuple '{path}': ")).unwrap_or(text).to_owned()
}

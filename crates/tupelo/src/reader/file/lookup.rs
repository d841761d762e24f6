//! Which ntuple or tree of a file is meant, and what an error says of the others.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tupelo_core::error::Remedy;
use tupelo_format::container::{self, Rule};
use tupelo_format::open::{self, PRE_RELEASE_CLASS};
use tupelo_pages::source;
use tupelo_ttree::tree::TREE_CLASSES;

use super::File;
use crate::{Error, Result};

/// Classes that a message names.
const MAX_SHOWN_CLASSES: usize = 3;
/// Ntuples that a message names.
const MAX_SHOWN_NAMES: usize = 5;

impl File {
    /// The error for an object that is not an ntuple: says what it is, and which ntuples exist.
    #[cold]
    pub(super) fn not_an_ntuple(&self, object: &container::Object) -> Error {
        let (path, class) = (object.path.escape_debug(), object.key.class_name.escape_debug());
        let is_tree = TREE_CLASSES.contains(&object.key.class_name.as_str());
        let (what, inside) = match object.key.is_directory() {
            true => (format!("'{path}' is a directory"), format!("{}/", object.path)),
            false if is_tree => (format!("'{path}' is a {class}, not an RNTuple"), String::new()),
            false => (format!("'{path}' is a {class}, neither an RNTuple nor a tree"), String::new()),
        };
        let listed = |kind: &str, names: Result<Vec<String>>| {
            let mut near = names.unwrap_or_default();
            near.retain(|name| name.starts_with(&inside));
            let more = if near.len() > MAX_SHOWN_NAMES { ", …" } else { "" };
            let near: Vec<_> = near.iter().take(MAX_SHOWN_NAMES).map(|it| format!("'{}'", it.escape_debug())).collect();
            (!near.is_empty()).then(|| format!("the {kind} {}{more}", near.join(", ")))
        };
        let trees = if is_tree { None } else { listed("trees", self.tree_names()) };
        let names = [listed("ntuples", self.ntuple_names()), trees];
        let names: Vec<String> = names.into_iter().flatten().collect();
        let place = if inside.is_empty() { "the file" } else { "it" };
        let hint = match names.is_empty() {
            true if is_tree => format!("{place} contains no ntuple"),
            true => format!("{place} contains no ntuple and no tree"),
            false => format!("{place} contains {}", names.join(" and ")),
        };
        let of_tree = match is_tree {
            true => "; `tupelo import` converts a tree to an ntuple",
            false => "",
        };
        Error::unsupported(format!("{what}; {hint}{of_tree}"))
    }
}

/// The ntuple with this name, or the only one without.
pub(super) fn find(file: &source::File, name: Option<&str>) -> Result<container::Object> {
    let Some(name) = name else {
        return only(file, ntuples(file)?, "ntuples", "the file contains no ntuple");
    };
    if let Some(object) = file.find_object(name)? {
        return Ok(object);
    }
    let (known, trees) = (ntuples(file)?, trees(file)?);
    let what = if trees.is_empty() { "ntuple" } else { "ntuple or tree" };
    Err(Error::no_such(what, name, known.iter().chain(&trees).map(|object| object.path.as_str())))
}

/// The only tree of a file without ntuples.
pub(super) fn only_tree(file: &source::File) -> Result<container::Object> {
    only(file, trees(file)?, "trees", "the file contains no ntuple and no tree")
}

/// The only one of the objects; `kind` names several, and `none` says that there are none.
fn only(file: &source::File, mut objects: Vec<container::Object>, kind: &str, none: &str) -> Result<container::Object> {
    if objects.len() > 1 {
        let names: Vec<_> = objects.iter().map(|object| format!("'{}'", object.path)).collect();
        return Err(Error::invalid_argument(format!(
            "the file contains {} {kind}; specify one as FILE:NAME: {}",
            names.len(),
            names.join(", ")
        )));
    }
    match objects.pop() {
        Some(object) => Ok(object),
        None => Err(without(file, none)?),
    }
}

pub(super) fn ntuples(file: &source::File) -> Result<Vec<container::Object>> {
    Ok(open::newest_ntuples(file.listing()?.objects().map(|(object, _)| object.clone())))
}

/// The newest cycles of the trees.
pub(super) fn trees(file: &source::File) -> Result<Vec<container::Object>> {
    let listing = file.listing()?;
    let is_tree = |object: &container::Object| TREE_CLASSES.contains(&object.key.class_name.as_str());
    Ok(listing.objects().filter(|(object, is_newest)| *is_newest && is_tree(object)).map(|it| it.0.clone()).collect())
}

/// The error of an ntuple from before format 1.0.
#[cold]
pub(super) fn pre_release(file: &source::File, object: &container::Object) -> Result<Error> {
    let error = Error::from(file.attempt(|fetched| open::pre_release(fetched, object))?);
    Ok(error.in_object("ntuple", &object.path))
}

/// The error of a file without ntuples that can be read: `what`, and what there is instead.
#[cold]
fn without(file: &source::File, what: &str) -> Result<Error> {
    check_saved(file)?;
    let is_old = |object: &container::Object| object.key.class_name == PRE_RELEASE_CLASS;
    match file.listing()?.objects().find(|(object, is_newest)| *is_newest && is_old(object)) {
        Some((object, _)) => pre_release(file, object),
        None => Ok(Error::not_found(format!("{what}{}", other_objects(file)?))),
    }
}

/// Refuses a file whose directories, which were read, lead to no object since they were not saved.
pub(super) fn check_saved(file: &source::File) -> Result<()> {
    match file.session().deviations().list().iter().any(|deviation| deviation.rule == Rule::Saved) {
        true => {
            let what = "its objects cannot be found, because its writer did not save the directories";
            Err(Error::corrupt(what).with_remedy(Remedy::Recover))
        }
        false => Ok(()),
    }
}

/// The contents of a file without ntuples, for a message: the classes, most frequent first.
fn other_objects(file: &source::File) -> Result<String> {
    let mut classes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (object, is_newest) in file.listing()?.objects() {
        if is_newest && !object.key.is_directory() {
            classes.entry(&object.key.class_name).or_default().push(&object.path);
        }
    }
    let mut classes: Vec<_> = classes.into_iter().collect();
    // Classes most similar to ntuples first.
    classes.sort_by_key(|(class, paths)| (!TREE_CLASSES.contains(class), Reverse(paths.len())));
    let shown = classes.iter().take(MAX_SHOWN_CLASSES).map(|(class, paths)| match paths.as_slice() {
        [path] => format!("a {} '{}'", class.escape_debug(), path.escape_debug()),
        [first, ..] => format!("{} {} ('{}', …)", paths.len(), class.escape_debug(), first.escape_debug()),
        [] => String::new(),
    });
    let shown: Vec<_> = shown.collect();
    let more = if classes.len() > MAX_SHOWN_CLASSES { " and objects of other classes" } else { "" };
    Ok(if shown.is_empty() { String::new() } else { format!("; it contains {}{more}", shown.join(", ")) })
}

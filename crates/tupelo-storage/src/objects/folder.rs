//! The data sets in a folder. One of the name `K` is an object `K`, which makes it visible, and a folder `K.objects/`. In a
//! DAOS container, data sets have records with their names.

use std::collections::HashSet;

use super::NamespaceAddress;
use super::address::folder;
use super::container::{ContainerNamespace, names_in_container};
use crate::daos::Access;
use crate::error::Result;
use crate::local::ObjectFiles;
use crate::net::{Entry, Options};
use crate::remote;

/// Suffix of the names of folders with the objects of a data set.
const OBJECTS: &str = ".objects/";

/// The data sets and folders in a folder, in order of their names, and `with_unfinished` the names under which there are objects
/// only. The size of a data set is that of its first object; in a DAOS container it is not known.
pub(super) fn list(uri: &str, options: &Options, with_unfinished: bool) -> Result<Vec<Entry>> {
    let (place, base) = folder(uri, "list")?;
    let entries = match place {
        NamespaceAddress::Directory(path) => {
            let names = ObjectFiles::new(&path, base.clone())?.names()?;
            let entry = |(name, size): (String, Option<u64>)| {
                let end = if size.is_none() { "/" } else { "" };
                Entry { url: format!("{base}{name}{end}"), size }
            };
            names.into_iter().map(entry).collect()
        }
        NamespaceAddress::Server(url) => remote::list_folder(&url, &base, options)?,
        NamespaceAddress::Container(place) => {
            let container = ContainerNamespace::open(&place, &base, options, Access::Read, "list", "")?;
            let names = names_in_container(&container)?.into_iter();
            let mut entries: Vec<Entry> =
                names.map(|name| Entry { url: format!("{base}{name}"), size: None }).collect();
            entries.sort();
            return Ok(entries);
        }
    };
    Ok(data_sets(entries, with_unfinished))
}

/// The data sets and folders among objects and folders.
fn data_sets(entries: Vec<Entry>, with_unfinished: bool) -> Vec<Entry> {
    let mut with_objects: HashSet<String> =
        entries.iter().filter_map(|entry| Some(entry.url.strip_suffix(OBJECTS)?.to_owned())).collect();
    let is_shown = |entry: &Entry| match entry.size {
        Some(_) => with_objects.contains(&entry.url),
        None => !entry.url.ends_with(OBJECTS),
    };
    let mut shown: Vec<Entry> = entries.into_iter().filter(is_shown).collect();
    if with_unfinished {
        for entry in &shown {
            with_objects.remove(&entry.url);
        }
        let unfinished = with_objects.into_iter().filter(|name| !name.ends_with('/'));
        shown.extend(unfinished.map(|url| Entry { url, size: None }));
    }
    shown.sort();
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_set_has_an_object_and_a_folder() {
        let entry = |url: &str, size| Entry { url: url.to_owned(), size };
        let entries = vec![
            entry("b/x", Some(7)),
            entry("b/x.objects/", None),
            entry("b/y", Some(8)),
            entry("b/z.objects/", None),
            entry("b/.objects/", None),
            entry("b/a/", None),
        ];
        let shown = [entry("b/a/", None), entry("b/x", Some(7))];
        assert_eq!(data_sets(entries.clone(), false), shown);
        let [folder, complete] = shown;
        assert_eq!(data_sets(entries, true), [folder, complete, entry("b/z", None)]);
    }
}

//! Files by pattern.

use std::path::Path;

use tupelo_schema::schema::Glob;
use tupelo_storage::{ErrorKind, Storage, display_name, is_mirror, is_object_uri, local, local_path};

use crate::reader::Location;
use crate::{Error, Result};

/// Remote files that are opened at the same time.
const OPENED_AT_ONCE: usize = 8;

/// How many of these files or URLs [`Table::chain`](crate::Table::chain) opens at the same time: several if some are
/// remote, because servers answer late.
pub fn opened_at_once<'f>(files: impl IntoIterator<Item = &'f str>) -> usize {
    if files.into_iter().any(|file| local_path(file).is_none()) { OPENED_AT_ONCE } else { 1 }
}

/// Resolves `FILE`, `FILE:NAME` and patterns of these to locations, in order. `*`, `?`, `[…]`, `{…,…}` and `**` (any
/// folders) in a file name are wildcards, unless a local file of that name exists. Matches are sorted; hidden files match
/// only a pattern that starts with a dot. URLs of stores and XRootD servers may have wildcards too, the latter without
/// `?`; those of HTTP servers may not, because they have no listings. In object stores, ntuples match, and no folders.
///
/// # Errors
/// Not found for a pattern without a match; invalid argument for an invalid pattern; storage errors.
pub fn find<S: AsRef<str>>(arguments: impl IntoIterator<Item = S>, storage: &Storage) -> Result<Vec<Location>> {
    let mut locations = Vec::new();
    for argument in arguments {
        let Location { file: pattern, object } = Location::parse(argument.as_ref());
        match matching_files(&pattern, storage)? {
            None => locations.push(Location { file: pattern, object }),
            Some(found) if found.is_empty() => {
                return Err(Error::not_found(format!("no file matches '{}'", display_name(&pattern))));
            }
            Some(found) => {
                locations.extend(found.into_iter().map(|file| Location { file, object: object.clone() }));
            }
        }
    }
    Ok(locations)
}

/// The files and folders that match a pattern of [`find`], sorted. `None` if it is the name of a file, or has no
/// wildcards.
///
/// # Errors
/// Invalid argument for an invalid pattern; storage errors.
pub fn matching_files(pattern: &str, storage: &Storage) -> Result<Option<Vec<String>>> {
    matching(pattern, storage, false)
}

/// As [`matching_files`], for URIs in object stores. Names with objects but no data set match too: their writers have
/// not finished or were killed.
///
/// # Errors
/// As [`matching_files`].
pub fn matching_objects(pattern: &str, storage: &Storage) -> Result<Option<Vec<String>>> {
    matching(pattern, storage, true)
}

fn matching(pattern: &str, storage: &Storage, with_unfinished: bool) -> Result<Option<Vec<String>>> {
    let (root, rest, query) = match local_path(pattern) {
        // Its members have none.
        None if is_mirror(pattern) => return Ok(None),
        Some(path) => ("", path.to_str().unwrap_or(pattern), ""),
        None => match split_url(pattern) {
            Some(parts) => parts,
            None if pattern.split('?').next().is_some_and(|path| path.contains('*')) => {
                let name = display_name(pattern);
                let what =
                    format!("'{name}' contains a wildcard, but web servers do not list files: specify their names");
                return Err(Error::invalid_argument(what));
            }
            None => return Ok(None),
        },
    };
    let has_wildcard = |part: &str| Glob::new(part, '/').map_or(true, |glob| glob.is_some());
    let is_on_disk = root.is_empty() || root.starts_with(IN_DIRECTORY);
    if !has_wildcard(rest) || is_on_disk && Path::new(rest).exists() {
        return Ok(None);
    }
    let has_objects = is_object_uri(pattern);
    let tree = Tree { storage, query, is_local: root.is_empty(), has_objects, with_unfinished };
    let start = if rest.starts_with('/') { "/" } else { "" };
    let mut found = vec![format!("{root}{start}")];
    let mut parts = rest.split('/').filter(|part| !part.is_empty() && *part != ".").collect::<Vec<_>>();
    if has_objects && parts.last() == Some(&"**") {
        parts.push("*");
    }
    // Only folders that match the beginning of the pattern are searched.
    for (index, part) in parts.iter().enumerate() {
        let glob = Glob::new(part, '/')?;
        if *part != "**" && part.contains("**") {
            let what =
                format!("'{}' is not a valid pattern: ** must stand alone between slashes", display_name(pattern));
            return Err(Error::invalid_argument(what));
        }
        let is_match = |glob: &Glob, child: &str| glob.is_match(child) && (!is_hidden(child) || is_hidden(part));
        let is_last = index + 1 == parts.len();
        let mut next = Vec::new();
        for folder in &found {
            match &glob {
                None => next.extend(tree.child(folder, part, is_last)?),
                Some(_) if *part == "**" => next.extend(tree.folders_below(folder)?),
                Some(glob) => {
                    let children = tree.children(folder)?;
                    // Local files are left out when a folder in them does not exist.
                    let may_be = |child: &Child| match is_last {
                        true => tree.may_be_last(child),
                        false => tree.is_local || child.is_folder,
                    };
                    let matching = children.iter().filter(|child| may_be(child) && is_match(glob, &child.name));
                    next.extend(matching.map(|child| join(folder, &child.name)));
                }
            }
        }
        found = next;
    }
    found.sort();
    found.dedup();
    let with_query = |file: String| if query.is_empty() { file } else { format!("{file}?{query}") };
    Ok(Some(found.into_iter().map(with_query).collect()))
}

/// How the URIs of ntuples in a directory begin, and those with a relative path.
const IN_DIRECTORY: &str = "ntpl+file:";
const HERE: &str = "ntpl+file:./";

/// Scheme and host, path, and query string of a URL that may have wildcards; `None` for HTTP.
fn split_url(url: &str) -> Option<(&str, &str, &str)> {
    if let Some(path) = url.strip_prefix(IN_DIRECTORY).filter(|path| !path.starts_with("//")) {
        return Some((if path.starts_with('/') { IN_DIRECTORY } else { HERE }, path, ""));
    }
    let (scheme, rest) = url.split_once("://")?;
    if scheme.to_ascii_lowercase().starts_with("http") {
        return None;
    }
    let host = url.len() - rest.len() + rest.find('/')?;
    let (root, path) = url.split_at(host);
    // Keys of stores may have a question mark.
    let has_query = scheme.to_ascii_lowercase().contains("root");
    let (path, query) = path.split_once('?').filter(|_| has_query).unwrap_or((path, ""));
    Some((root, path, query))
}

/// Whether a folder of objects in a directory is a link, which could lead back.
fn is_link(folder: &str) -> bool {
    let path = folder.strip_prefix(IN_DIRECTORY).map(|path| path.strip_prefix("//").unwrap_or(path));
    path.is_some_and(|path| Path::new(path).is_symlink())
}

fn is_hidden(name: &str) -> bool {
    name.starts_with('.')
}

fn join(folder: &str, name: &str) -> String {
    match folder.is_empty() || folder.ends_with('/') {
        true => format!("{folder}{name}"),
        false => format!("{folder}/{name}"),
    }
}

/// Folders of one back end.
struct Tree<'a> {
    storage: &'a Storage,
    /// Of all URLs.
    query: &'a str,
    is_local: bool,
    /// Whether this is an object store, where folders are not ntuples.
    has_objects: bool,
    with_unfinished: bool,
}

struct Child {
    name: String,
    is_folder: bool,
}

impl Tree<'_> {
    /// The child of a folder, if there is one. Remote folders are not looked up: their listings show whether they
    /// exist.
    fn child(&self, folder: &str, name: &str, is_last: bool) -> Result<Option<String>> {
        let exists = match (self.is_local, is_last) {
            (true, _) => Path::new(&join(folder, name)).exists(),
            (false, true) => self.children(folder)?.iter().any(|child| child.name == name && self.may_be_last(child)),
            (false, false) => true,
        };
        Ok(exists.then(|| join(folder, name)))
    }

    /// Whether a pattern can end with it.
    fn may_be_last(&self, child: &Child) -> bool {
        !(self.has_objects && child.is_folder)
    }

    /// The content of a folder; empty if it is not a folder.
    fn children(&self, folder: &str) -> Result<Vec<Child>> {
        if self.is_local {
            let names = local::names_in(Path::new(if folder.is_empty() { "." } else { folder }))?;
            // A name that is not Unicode cannot be an argument: the file that its pattern matches is not found, by name.
            let names = names.into_iter().map(|name| name.to_string_lossy().into_owned());
            let child = |name: String| {
                let path = join(folder, &name);
                let path = Path::new(&path);
                Child { is_folder: path.is_dir() && !path.is_symlink(), name }
            };
            return Ok(names.map(child).collect());
        }
        let slash = if folder.ends_with('/') { "" } else { "/" };
        let mark = if self.query.is_empty() { "" } else { "?" };
        let url = format!("{folder}{slash}{mark}{}", self.query);
        let listed = match self.with_unfinished {
            true => self.storage.list_with_unfinished(&url),
            false => self.storage.list(&url),
        };
        let entries = match listed {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let child = |url: &str| {
            let url = url.split_once('?').filter(|_| !self.query.is_empty()).map_or(url, |(url, _)| url);
            let (is_folder, url) = (url.ends_with('/'), url.trim_end_matches('/'));
            Child { name: url.rsplit('/').next().unwrap_or(url).to_owned(), is_folder }
        };
        Ok(entries.iter().map(|entry| child(&entry.url)).filter(|child| !child.name.is_empty()).collect())
    }

    /// A folder and all folders below it, without hidden ones and links.
    fn folders_below(&self, folder: &str) -> Result<Vec<String>> {
        let mut found = vec![folder.to_owned()];
        let mut next = 0;
        while let Some(folder) = found.get(next).cloned() {
            let below = self.children(&folder)?.into_iter().filter(|child| child.is_folder && !is_hidden(&child.name));
            found.extend(below.map(|child| join(&folder, &child.name)).filter(|below| !is_link(below)));
            next += 1;
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_are_expanded() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        for name in ["b.root", "a.root", ".hidden.root", "x[1].root", "other.txt"] {
            // FS: a test file.
            std::fs::write(path(name), "").unwrap();
        }
        let names = |argument: &str| {
            let found = find([path(argument)], &Storage::default()).map_err(|error| error.to_string())?;
            Ok(found.iter().map(|location| location.to_string().rsplit('/').next().unwrap().to_owned()).collect())
        };
        assert_eq!(names("*.root"), Ok::<Vec<_>, String>(vec!["a.root".into(), "b.root".into(), "x[1].root".into()]));
        assert_eq!(names("[ab].root:Events"), Ok(vec!["a.root:Events".into(), "b.root:Events".into()]));
        assert_eq!(names("x[1].root"), Ok(vec!["x[1].root".into()]));
        assert_eq!(names("{b,a,c}.root"), Ok(vec!["a.root".into(), "b.root".into()]));
        // FS: test files.
        std::fs::create_dir_all(folder.path().join("deep/.git/er")).unwrap();
        for name in ["deep/d.root", "deep/.git/er/e.root"] {
            // FS: a test file.
            std::fs::write(path(name), "").unwrap();
        }
        assert_eq!(names("**/[b-d].root"), Ok(vec!["b.root".into(), "d.root".into()]));
        assert_eq!(names("d*p/./d.root"), Ok(vec!["d.root".into()]));
        assert!(names("[a.root").unwrap_err().contains("is not a valid pattern"));
        assert_eq!(names("none.root"), Ok(vec!["none.root".into()]));
        assert!(names("c*.root").unwrap_err().starts_with("no file matches"));
        assert!(names("a***.root").unwrap_err().contains("is not a valid pattern"));
    }
}

//! Files by pattern.

use std::path::{Path, PathBuf};

use tupelo_storage::local;

use crate::reader::Location;
use crate::schema::Glob;
use crate::{Error, Result};

/// Resolves `FILE`, `FILE:NAME` and patterns of these to locations, in order. `*`, `?`, `[…]`, `{…,…}` and `**` (any
/// folders) in a file name are wildcards, unless a file of that name exists. Matches are sorted; hidden files match
/// only a pattern that starts with a dot.
///
/// # Errors
/// Not found for a pattern without a match; invalid argument for an invalid pattern; storage errors.
pub fn find<S: AsRef<str>>(arguments: impl IntoIterator<Item = S>) -> Result<Vec<Location>> {
    let mut locations = Vec::new();
    for argument in arguments {
        let location = Location::parse(argument.as_ref());
        let pattern = location.path.to_string_lossy().into_owned();
        match matching_paths(&pattern)? {
            None => locations.push(location),
            Some(found) if found.is_empty() => {
                return Err(Error::not_found(format!("no file matches '{pattern}'")));
            }
            Some(found) => {
                locations.extend(found.into_iter().map(|path| Location { path, object: location.object.clone() }));
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
pub fn matching_paths(pattern: &str) -> Result<Option<Vec<PathBuf>>> {
    let is_plain = Glob::new(pattern, '/').is_ok_and(|glob| glob.is_none());
    if is_plain || Path::new(pattern).exists() {
        return Ok(None);
    }
    let mut found = vec![PathBuf::new()];
    // Only folders that match the beginning of the pattern are searched.
    for part in Path::new(pattern).components() {
        let name = part.as_os_str().to_string_lossy();
        let glob = Glob::new(&name, '/')?;
        if name != "**" && name.contains("**") {
            let what = format!("'{pattern}' is not a valid pattern: ** must stand alone between slashes");
            return Err(Error::invalid_argument(what));
        }
        let is_match = |glob: &Glob, child: &str| glob.is_match(child) && (!is_hidden(child) || is_hidden(&name));
        let mut next = Vec::new();
        for folder in &found {
            match &glob {
                None => next.extend(Some(folder.join(part)).filter(|path| path.exists())),
                Some(_) if name == "**" => next.extend(folders_below(folder)?),
                Some(glob) => next.extend(children(folder, |child| is_match(glob, child))?),
            }
        }
        found = next;
    }
    found.sort();
    found.dedup();
    Ok(Some(found))
}

fn is_hidden(name: &str) -> bool {
    name.starts_with('.')
}

/// The children of a folder with such names; none if it is not a folder.
fn children(folder: &Path, is_match: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>> {
    let names = local::names_in(folder)?;
    Ok(names.iter().filter(|name| is_match(&name.to_string_lossy())).map(|name| folder.join(name)).collect())
}

/// A folder and all folders below it, without hidden ones and links.
fn folders_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = vec![folder.to_owned()];
    let mut next = 0;
    while let Some(folder) = found.get(next) {
        let below = children(folder, |name| !is_hidden(name))?;
        found.extend(below.into_iter().filter(|path| path.is_dir() && !path.is_symlink()));
        next += 1;
    }
    Ok(found)
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
            let found = find([path(argument)]).map_err(|error| error.to_string())?;
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

//! Input files: wildcards, duplicates, and the check that no input is overwritten.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use tupelo::reader::Location;
use tupelo::schema::Glob;

use crate::failure::Failure;

/// Input files, which the command must not overwrite.
#[derive(Debug, Default)]
pub(crate) struct Inputs(Vec<PathBuf>);

impl Inputs {
    /// The files of locations.
    pub(crate) fn of(locations: &[Location]) -> Self {
        Self(locations.iter().map(|location| location.path.clone()).collect())
    }

    /// Whether a path refers to one of the files, also as a relative path or by a link.
    pub(crate) fn contain(&self, path: &Path) -> bool {
        let identity = Identity::of(path);
        identity.is_some() && self.0.iter().any(|input| Identity::of(input) == identity)
    }

    /// Refuses an output that is also an input.
    pub(crate) fn check_output(&self, path: &Path) -> Result<(), Failure> {
        match self.contain(path) {
            true => {
                let refused = Failure::usage(format_args!("{} is both input and output", path.display()));
                Err(refused.with_hint("write to another file"))
            }
            false => Ok(()),
        }
    }
}

/// The first duplicate in a list of locations.
pub(crate) fn repeated(locations: &[Location]) -> Option<&Location> {
    let mut seen = HashSet::new();
    let mut is_new = |location: &Location| {
        Identity::of(&location.path).is_none_or(|identity| seen.insert((identity, location.object.clone())))
    };
    locations.iter().find(|location| !is_new(location))
}

/// Identity of an existing file.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Identity {
    /// Device and inode.
    #[cfg(unix)]
    Inode(u64, u64),
    /// The path without links.
    #[cfg(not(unix))]
    Path(PathBuf),
}

impl Identity {
    /// `None` if the file does not exist.
    fn of(path: &Path) -> Option<Self> {
        #[cfg(unix)]
        // FS: metadata only.
        return std::fs::metadata(path).ok().map(|metadata| Self::of_metadata(&metadata));
        #[cfg(not(unix))]
        return path.canonicalize().ok().map(Self::Path);
    }

    #[cfg(unix)]
    // FS: metadata only.
    fn of_metadata(metadata: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self::Inode(metadata.dev(), metadata.ino())
    }
}

/// Refuses an input that stdout is redirected to, as in `tupelo ls x.root >> x.root`.
pub(crate) fn check_not_standard_output(path: &Path) -> Result<(), Failure> {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        // FS: a duplicate of stdout, for its metadata.
        let stdout = std::io::stdout().as_fd().try_clone_to_owned().map(std::fs::File::from);
        let metadata = stdout.and_then(|stdout| stdout.metadata()).ok().filter(|metadata| metadata.is_file());
        let stdout = metadata.as_ref().map(Identity::of_metadata);
        if stdout.is_some() && stdout == Identity::of(path) {
            let what = format_args!("stdout is redirected to the input {}", path.display());
            return Err(Failure::usage(what).with_hint("redirect the output to another file"));
        }
    }
    let _ = path;
    Ok(())
}

/// Locations of the arguments, in order. `*`, `?`, `[…]`, `{…,…}` and `**` (any folders) in a file name are wildcards,
/// unless a file of that name exists. Matches are sorted; hidden files match only a pattern that starts with a dot.
pub(crate) fn expand(arguments: &[String]) -> Result<Vec<Location>, Failure> {
    let mut locations = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let location = Location::parse(argument);
        let pattern = location.path.to_string_lossy().into_owned();
        if Glob::new(&pattern, '/').is_ok_and(|glob| glob.is_none()) || location.path.exists() {
            locations.push(location);
            continue;
        }
        let found = matching(&pattern)?;
        if found.is_empty() {
            return Err(Failure::new(format_args!("no file matches '{pattern}'")));
        }
        locations.extend(found.into_iter().map(|path| Location { path, object: location.object.clone() }));
    }
    Ok(locations)
}

/// The files and folders that match a pattern. Only folders that match its beginning are searched.
fn matching(pattern: &str) -> Result<Vec<PathBuf>, Failure> {
    let mut found = vec![PathBuf::new()];
    for part in Path::new(pattern).components() {
        let name = part.as_os_str().to_string_lossy();
        let glob = Glob::new(&name, '/')?;
        if name != "**" && name.contains("**") {
            let wrong = format_args!("'{pattern}' is not a valid pattern: ** must stand alone between slashes");
            return Err(Failure::usage(wrong));
        }
        let is_match = |glob: &Glob, child: &OsStr| {
            let child = child.to_string_lossy();
            glob.is_match(&child) && (!child.starts_with('.') || name.starts_with('.'))
        };
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
    Ok(found)
}

/// The children of a folder with such names; none if it is not a folder.
fn children(folder: &Path, is_match: impl Fn(&OsStr) -> bool) -> Result<Vec<PathBuf>, Failure> {
    let readable = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let failed = |e: io::Error| Failure::new(format_args!("cannot search {}: {e}", readable.display()));
    // FS: names of files for a pattern.
    let entries = match std::fs::read_dir(readable) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotADirectory | io::ErrorKind::NotFound) => {
            return Ok(vec![]);
        }
        Err(error) => return Err(failed(error)),
    };
    let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
    let names: Vec<_> = names.collect::<io::Result<_>>().map_err(failed)?;
    Ok(names.iter().filter(|name| is_match(name)).map(|name| folder.join(name)).collect())
}

/// A folder and all folders below it, without hidden ones and links.
fn folders_below(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = vec![folder.to_owned()];
    let mut next = 0;
    while next < found.len() {
        let below = children(&found[next], |name| !name.as_encoded_bytes().starts_with(b"."))?;
        found.extend(below.into_iter().filter(|path| path.is_dir() && !path.is_symlink()));
        next += 1;
    }
    Ok(found)
}

/// The location of an argument that must name a single file.
pub(crate) fn one(argument: &str) -> Result<Location, Failure> {
    let mut found = expand(&[argument.to_owned()])?;
    let count = found.len();
    match (found.pop(), found.is_empty()) {
        (Some(only), true) => Ok(only),
        _ => {
            let first = found.first().map(Location::to_string).unwrap_or_default();
            let several =
                Failure::usage(format_args!("{count} files match '{argument}', but the command reads only one"));
            Err(several.with_hint(format!("name one of them, for example {first}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_are_expanded() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        // FS: test files.
        for name in ["b.root", "a.root", ".hidden.root", "x[1].root", "other.txt"] {
            // FS: a test file.
            std::fs::write(path(name), "").unwrap();
        }
        let names = |argument: &str| {
            let found = expand(&[path(argument)]).map_err(|failure| failure.message.unwrap_or_default())?;
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
        assert!(one(&path("*.root")).unwrap_err().message.unwrap().starts_with("3 files match"));
    }
}

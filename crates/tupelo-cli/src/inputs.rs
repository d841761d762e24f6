//! Input files: wildcards, duplicates, and the check that no input is overwritten.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use tupelo::reader::Location;

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

/// Locations of the arguments, in order. `*`, `?`, `[…]` and `**` (any folders) in a file name are wildcards,
/// unless a file of that name exists. Matches are sorted; hidden files match only a pattern that starts with a dot.
pub(crate) fn expand(arguments: &[String]) -> Result<Vec<Location>, Failure> {
    let mut locations = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let location = Location::parse(argument);
        let pattern = location.path.to_string_lossy().into_owned();
        if !pattern.contains(['*', '?', '[']) || location.path.exists() {
            locations.push(location);
            continue;
        }
        let options = glob::MatchOptions { require_literal_leading_dot: true, ..glob::MatchOptions::new() };
        let wrong = |e: &dyn std::fmt::Display| Failure::usage(format_args!("'{pattern}' is not a valid pattern: {e}"));
        let found = glob::glob_with(&pattern, options).map_err(|e| wrong(&e))?;
        let before = locations.len();
        for path in found {
            let path = path.map_err(|e| Failure::new(format_args!("cannot search for '{pattern}': {e}")))?;
            locations.push(Location { path, object: location.object.clone() });
        }
        if locations.len() == before {
            return Err(Failure::new(format_args!("no file matches '{pattern}'")));
        }
    }
    Ok(locations)
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
        assert_eq!(names("none.root"), Ok(vec!["none.root".into()]));
        assert!(names("c*.root").unwrap_err().starts_with("no file matches"));
        assert!(names("a***.root").unwrap_err().contains("is not a valid pattern"));
        assert!(one(&path("*.root")).unwrap_err().message.unwrap().starts_with("3 files match"));
    }
}

//! The files that a command reads: named, several, by wildcards; and the one check that none of them is overwritten.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use tupelo::reader::Location;

use crate::failure::Failure;

/// Files that a command reads and must not overwrite.
#[derive(Debug, Default)]
pub(crate) struct Inputs(Vec<PathBuf>);

impl Inputs {
    /// The files of some locations.
    pub(crate) fn of(locations: &[Location]) -> Self {
        Self(locations.iter().map(|location| location.path.clone()).collect())
    }

    /// Whether a path leads to one of the files, however it is spelled: relative, over links, by a hard link.
    pub(crate) fn contain(&self, path: &Path) -> bool {
        let identity = Identity::of(path);
        identity.is_some() && self.0.iter().any(|input| Identity::of(input) == identity)
    }

    /// Refuses to replace a file that is read.
    pub(crate) fn check_output(&self, path: &Path) -> Result<(), Failure> {
        match self.contain(path) {
            true => {
                let refused = Failure::usage(format_args!("{} is the file that is read", path.display()));
                Err(refused.with_hint("write into another file"))
            }
            false => Ok(()),
        }
    }
}

/// The first of some locations that names the same as an earlier one, however it is spelled.
pub(crate) fn repeated(locations: &[Location]) -> Option<&Location> {
    let mut seen = HashSet::new();
    let mut is_new = |location: &Location| {
        Identity::of(&location.path).is_none_or(|identity| seen.insert((identity, location.object.clone())))
    };
    locations.iter().find(|location| !is_new(location))
}

/// What tells one existing file from another.
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
    /// None of what does not exist.
    fn of(path: &Path) -> Option<Self> {
        #[cfg(unix)]
        // FS: only asks which file it is.
        return std::fs::metadata(path).ok().map(|metadata| Self::of_metadata(&metadata));
        #[cfg(not(unix))]
        return path.canonicalize().ok().map(Self::Path);
    }

    #[cfg(unix)]
    // FS: what the system says of a file.
    fn of_metadata(metadata: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self::Inode(metadata.dev(), metadata.ino())
    }
}

/// Refuses a file to which standard output goes, as in `tupelo ls x.root >> x.root`.
pub(crate) fn check_not_standard_output(path: &Path) -> Result<(), Failure> {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        // FS: a second handle of standard output, to ask which file it is.
        let stdout = std::io::stdout().as_fd().try_clone_to_owned().map(std::fs::File::from);
        let metadata = stdout.and_then(|stdout| stdout.metadata()).ok().filter(|metadata| metadata.is_file());
        let stdout = metadata.as_ref().map(Identity::of_metadata);
        if stdout.is_some() && stdout == Identity::of(path) {
            let what = format_args!("{} is the file to which standard output goes", path.display());
            return Err(Failure::usage(what).with_hint("send the output into another file"));
        }
    }
    let _ = path;
    Ok(())
}

/// What the arguments of a command name, in order. `*`, `?`, `[…]` and `**` (any folders) in a file name are wildcards,
/// unless there is a file of that very name; what they fit comes sorted. Hidden files need a dot.
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
        let wrong = |e: &dyn std::fmt::Display| Failure::usage(format_args!("'{pattern}' is no pattern: {e}"));
        let found = glob::glob_with(&pattern, options).map_err(|e| wrong(&e))?;
        let before = locations.len();
        for path in found {
            let path = path.map_err(|e| Failure::new(format_args!("cannot search for '{pattern}': {e}")))?;
            locations.push(Location { path, object: location.object.clone() });
        }
        if locations.len() == before {
            return Err(Failure::new(format_args!("no file fits '{pattern}'")));
        }
    }
    Ok(locations)
}

/// The one location that an argument names.
pub(crate) fn one(argument: &str) -> Result<Location, Failure> {
    let mut found = expand(&[argument.to_owned()])?;
    let count = found.len();
    match (found.pop(), found.is_empty()) {
        (Some(only), true) => Ok(only),
        _ => {
            let first = found.first().map(Location::to_string).unwrap_or_default();
            let several = Failure::usage(format_args!("{count} files fit '{argument}', and this command reads one"));
            Err(several.with_hint(format!("name one of them, for example {first}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_name_files_and_one_object_in_each() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        // FS: files to be found.
        for name in ["b.root", "a.root", ".hidden.root", "x[1].root", "other.txt"] {
            // FS: as above.
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
        assert!(names("c*.root").unwrap_err().starts_with("no file fits"));
        assert!(names("a***.root").unwrap_err().contains("is no pattern"));
        assert!(one(&path("*.root")).unwrap_err().message.unwrap().starts_with("3 files fit"));
    }
}

//! Input files: duplicates, and the check that no input is overwritten.

use std::collections::HashSet;
use std::path::Path;

use tupelo::Storage;
use tupelo::dataset::find;
use tupelo::reader::Location;
use tupelo::storage::display_name;

use crate::failure::Failure;

/// Input files, which the command must not overwrite.
#[derive(Debug, Default)]
pub(crate) struct Inputs(Vec<Location>);

impl Inputs {
    /// The files of locations.
    pub(crate) fn of(locations: &[Location]) -> Self {
        Self(locations.to_vec())
    }

    /// Whether a location refers to one of the files, also as a relative path or by a link.
    pub(crate) fn contain(&self, location: &Location) -> bool {
        self.have(Identity::of(location))
    }

    fn have(&self, identity: Option<Identity>) -> bool {
        identity.is_some() && self.0.iter().any(|input| Identity::of(input) == identity)
    }

    /// Refuses an output that is also an input.
    pub(crate) fn check_output(&self, path: &Path) -> Result<(), Failure> {
        match self.have(Identity::of_path(path)) {
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
        Identity::of(location).is_none_or(|identity| seen.insert((identity, location.object.clone())))
    };
    locations.iter().find(|location| !is_new(location))
}

/// Identity of a remote file, or of an existing local one.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Identity {
    Url(String),
    /// Device and inode.
    #[cfg(unix)]
    Inode(u64, u64),
    /// The path without links.
    #[cfg(not(unix))]
    Path(std::path::PathBuf),
}

impl Identity {
    /// `None` if a local file does not exist.
    fn of(location: &Location) -> Option<Self> {
        match location.local_path() {
            Some(path) => Self::of_path(path),
            None => Some(Self::Url(location.file.clone())),
        }
    }

    fn of_path(path: &Path) -> Option<Self> {
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
pub(crate) fn check_not_standard_output(location: &Location) -> Result<(), Failure> {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        // FS: a duplicate of stdout, for its metadata.
        let stdout = std::io::stdout().as_fd().try_clone_to_owned().map(std::fs::File::from);
        let metadata = stdout.and_then(|stdout| stdout.metadata()).ok().filter(|metadata| metadata.is_file());
        let stdout = metadata.as_ref().map(Identity::of_metadata);
        if stdout.is_some() && stdout == Identity::of(location) {
            let what = format!("stdout is redirected to the input {}", display_name(&location.file));
            return Err(Failure::usage(what).with_hint("redirect the output to another file"));
        }
    }
    let _ = location;
    Ok(())
}

/// The location of an argument that must name a single file.
pub(crate) fn one(argument: &str, storage: &Storage) -> Result<Location, Failure> {
    let mut found = find([argument], storage)?;
    let count = found.len();
    match (found.pop(), found.is_empty()) {
        (Some(only), true) => Ok(only),
        _ => {
            let first = found.first().map(Location::to_string).unwrap_or_default();
            let several =
                Failure::usage(format_args!("{count} files match '{argument}', but the command reads only one"));
            Err(several.with_hint(format!("specify one of them, for example {first}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_file_is_required() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.root", "b.root"] {
            // FS: a test file.
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let failure = one(folder.path().join("*.root").to_str().unwrap(), &Storage::default()).unwrap_err();
        assert!(failure.message.unwrap().starts_with("2 files match"));
    }
}

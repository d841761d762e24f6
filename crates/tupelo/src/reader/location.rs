//! `FILE` and `FILE:NAME`.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// A file and, perhaps, the name of an object inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The file.
    pub path: PathBuf,
    /// The object's path in the file's directories, with `;CYCLE` if the newest is not meant.
    pub object: Option<String>,
}

impl Location {
    /// Splits `FILE:NAME`. Colons may be part of either side: the longest prefix that is an existing file wins; where
    /// none exists, the text is split behind `.root`, or else taken as a file name whole. `file:` in front is dropped.
    pub fn parse(text: &str) -> Self {
        let text = text.strip_prefix("file://").or_else(|| text.strip_prefix("file:")).unwrap_or(text);
        let whole = Self { path: text.into(), object: None };
        let split = |position: usize| Self {
            path: text[..position].into(),
            object: Some(text[position + 1..].to_owned()).filter(|name| !name.is_empty()),
        };
        if whole.path.is_file() {
            return whole;
        }
        let colons = || text.match_indices(':').map(|(position, _)| position);
        colons()
            .rev()
            .find(|&position| Path::new(&text[..position]).is_file())
            .or_else(|| colons().find(|&position| text[..position].ends_with(".root")))
            .map_or(whole, split)
    }
}

/// Refuses URLs, which would otherwise be missing files. `file:` is for [`Location::parse`].
///
/// # Errors
/// Unsupported for `SCHEME://…`.
pub fn check_local(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref().to_string_lossy();
    let scheme = path.split_once("://").map_or("", |(scheme, _)| scheme);
    let is_url = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c));
    match is_url {
        true => Err(Error::unsupported(format!("{path}: only local files can be read and written yet"))),
        false => Ok(()),
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        match &self.object {
            Some(object) => write!(f, ":{object}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_behind_the_file() {
        let parse = |text| {
            let location = Location::parse(text);
            (location.path.to_str().unwrap().to_owned(), location.object)
        };
        assert_eq!(parse("a.root:Events"), ("a.root".into(), Some("Events".into())));
        assert_eq!(parse("a.root:dir/Jets:x;2"), ("a.root".into(), Some("dir/Jets:x;2".into())));
        assert_eq!(parse("file:///tmp/a.root"), ("/tmp/a.root".into(), None));
        assert_eq!(parse("a.root:"), ("a.root".into(), None));
        assert_eq!(parse("no such file"), ("no such file".into(), None));
    }

    #[test]
    fn urls_are_refused() {
        for url in ["https://host/a.root", "s3://bucket/key", "root://eos//a.root", "x-y+z.1://a"] {
            let error = check_local(url).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Unsupported);
            assert!(error.to_string().starts_with(&format!("{url}: only local files")), "{error}");
        }
        for path in ["a.root", "C:/a.root", "dir/a://b", "://a", "1a://b"] {
            assert!(check_local(path).is_ok(), "{path}");
        }
    }
}

//! `FILE` and `FILE:NAME`.

use std::fmt;
use std::path::{Path, PathBuf};

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
}

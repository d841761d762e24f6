//! Wildcards in field paths and file names.

use globset::{GlobBuilder, GlobMatcher};

use crate::{Error, Result};

/// A pattern with wildcards: `*` matches any characters, `?` one, `[…]` one of a set, and `{…,…}` alternatives. In paths with
/// slashes, of files and of objects, they match within a name, and `**` matches any number of names. In dotted paths of
/// fields they match dots, too, as the filters of uproot do.
#[derive(Debug, Clone)]
pub struct Glob {
    matcher: GlobMatcher,
    separator: char,
}

impl Glob {
    /// Compiles a pattern; `None` if it has no wildcards.
    ///
    /// # Errors
    /// Invalid argument for a pattern that is not valid.
    pub fn new(pattern: &str, separator: char) -> Result<Option<Self>> {
        if !pattern.contains(['*', '?', '[', '{']) {
            return Ok(None);
        }
        // The separator of globset is a slash.
        let slashed = pattern.replace(separator, "/");
        match GlobBuilder::new(&slashed)
            .literal_separator(separator == '/')
            .backslash_escape(false)
            .empty_alternates(true)
            .build()
        {
            Ok(glob) => Ok(Some(Self { matcher: glob.compile_matcher(), separator })),
            Err(error) => Err(Error::invalid_argument(format!("'{pattern}' is not a valid pattern: {error}"))),
        }
    }

    /// Whether the pattern matches all of a path.
    pub fn is_match(&self, path: &str) -> bool {
        self.matcher.is_match(path.replace(self.separator, "/"))
    }
}

/// A name as a pattern that matches only itself.
/// ```
/// assert_eq!(tupelo::schema::escaped("x[0]*"), "x[[]0[]][*]");
/// ```
pub fn escaped(name: &str) -> String {
    name.chars()
        .flat_map(|c| if matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\') { vec!['[', c, ']'] } else { vec![c] })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternatives_may_be_empty() {
        for (pattern, names) in [("run{,2}.root", ["run.root", "run2.root"]), ("a{b,}", ["ab", "a"])] {
            let glob = Glob::new(pattern, '/').unwrap().unwrap();
            assert!(names.iter().all(|name| glob.is_match(name)), "{pattern}");
            assert!(!glob.is_match("run3.root") && !glob.is_match("ac"), "{pattern}");
        }
    }
}

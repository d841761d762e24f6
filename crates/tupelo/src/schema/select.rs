//! Projections: which fields of a schema a caller wants.

use std::collections::HashSet;

use globset::{GlobBuilder, GlobMatcher};

use super::{Field, Kind, Schema};
use crate::{Error, Result};

impl Schema {
    /// The part of the schema that dotted paths or globs name: `Muon_pt`, `Muon_*`, `jets.pt`, `jets.*`. A path
    /// selects everything below it; what lies above it stays as a frame around it. Without patterns, everything.
    ///
    /// # Errors
    /// Not found, with near names, for a pattern that selects nothing.
    pub fn select<S: AsRef<str>>(&self, patterns: &[S]) -> Result<Self> {
        if patterns.is_empty() {
            return Ok(self.clone());
        }
        let paths = self.paths();
        let mut wanted = HashSet::new();
        for pattern in patterns {
            let pattern = pattern.as_ref();
            let glob = glob(pattern)?;
            let matches = |path: &str| match &glob {
                None => path == pattern,
                Some(glob) => glob.is_match(path.replace('.', "/")),
            };
            let mut found = paths.iter().map(|(path, _)| path.as_str()).filter(|path| matches(path)).peekable();
            if found.peek().is_none() {
                return Err(Error::no_such("field", pattern, paths.iter().map(|(path, _)| path.as_str())));
            }
            wanted.extend(found);
        }
        let fields = self.fields.iter().filter_map(|field| prune(field, &field.name, &wanted)).collect();
        Ok(Self { fields })
    }

    /// The field at a dotted path.
    ///
    /// # Errors
    /// Not found, with near names.
    pub fn get(&self, path: &str) -> Result<&Field> {
        let paths = self.paths();
        match paths.iter().find(|(known, _)| known == path) {
            Some((_, field)) => Ok(field),
            None => Err(Error::no_such("field", path, paths.iter().map(|(path, _)| path.as_str()))),
        }
    }
}

/// A matcher for patterns that have wildcards. `*` stays within one name, `**` does not.
fn glob(pattern: &str) -> Result<Option<GlobMatcher>> {
    if !pattern.contains(['*', '?', '[', '{']) {
        return Ok(None);
    }
    // Names are joined by dots where globset knows slashes; neither can be part of a name.
    let glob = GlobBuilder::new(&pattern.replace('.', "/")).literal_separator(true).backslash_escape(false).build();
    match glob {
        Ok(glob) => Ok(Some(glob.compile_matcher())),
        Err(error) => Err(Error::invalid_argument(format!("'{pattern}' is no valid pattern: {error}"))),
    }
}

/// The field with only the wanted parts below it, or nothing.
fn prune(field: &Field, path: &str, wanted: &HashSet<&str>) -> Option<Field> {
    if wanted.contains(path) {
        return Some(field.clone());
    }
    let below = |child: &Field| prune(child, &format!("{path}.{}", child.name), wanted);
    let kind = match &field.kind {
        Kind::Record(fields) => Kind::Record(some(fields.iter().filter_map(below).collect())?),
        Kind::Tuple(fields) => Kind::Record(some(fields.iter().filter_map(below).collect())?),
        Kind::Array { size, item } => Kind::Array { size: *size, item: Box::new(prune(item, path, wanted)?) },
        Kind::Wrapper(item) => Kind::Wrapper(Box::new(prune(item, path, wanted)?)),
        Kind::Collection(item) => Kind::Collection(Box::new(prune(item, path, wanted)?)),
        Kind::Map(pair) => Kind::Collection(Box::new(prune(pair, path, wanted)?)),
        Kind::Optional(item) => Kind::Optional(Box::new(prune(item, path, wanted)?)),
        // A variant is only itself with all its alternatives.
        Kind::Variant(_) => return None,
        Kind::Primitive(_) | Kind::String | Kind::Streamer | Kind::Cardinality { .. } | Kind::Bitset { .. } => {
            return None;
        }
    };
    // What lost a member is not the class any more that its name promises.
    let untyped = matches!(kind, Kind::Record(_) | Kind::Collection(_));
    let type_name = if untyped { String::new() } else { field.type_name.clone() };
    Some(Field { kind, type_name, checksum: None, type_version: 0, soa: false, ..field.clone() })
}

fn some(fields: Vec<Field>) -> Option<Vec<Field>> {
    (!fields.is_empty()).then_some(fields)
}

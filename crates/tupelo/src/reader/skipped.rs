//! What a source has and is not read.

use tupelo_schema::schema::Glob;

/// A branch or field that is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    /// The path of the field, or the names of the branch and its parents, joined by slashes.
    pub name: String,
    /// Why it is left out.
    pub reason: String,
}

impl Skipped {
    /// Something that is left out.
    pub(crate) fn new(name: &str, reason: impl Into<String>) -> Self {
        Self { name: name.to_owned(), reason: reason.into() }
    }

    /// Whether a pattern names it, or something around it.
    pub(super) fn is_meant_by(&self, pattern: &str) -> bool {
        let dotted = self.name.replace('/', ".");
        let is_match = |glob: Glob| {
            dotted.match_indices('.').any(|(end, _)| glob.is_match(&dotted[..end])) || glob.is_match(&dotted)
        };
        let branch = self.name.rsplit('/').next().unwrap_or_default();
        [self.name.as_str(), branch].contains(&pattern)
            || format!("{dotted}.").starts_with(&format!("{pattern}."))
            || Glob::new(pattern, '.').ok().flatten().is_some_and(is_match)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_what_cannot_be_read_by_path_branch_or_parent() {
        let skipped = Skipped::new("Event/tracks.fX", "");
        for pattern in ["Event/tracks.fX", "Event.tracks.fX", "tracks.fX", "Event", "Event.tracks", "Ev*", "**.fX"] {
            assert!(skipped.is_meant_by(pattern), "{pattern}");
        }
        for pattern in ["Eve", "fX", "tracks", "Event.tracks.f", "X*"] {
            assert!(!skipped.is_meant_by(pattern), "{pattern}");
        }
    }
}

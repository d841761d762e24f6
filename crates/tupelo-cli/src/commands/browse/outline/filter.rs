//! Which names are shown.

use tupelo::schema::Glob;

use super::Label;

/// A pattern for names: with wildcards one that names or whole paths match, as elsewhere in the command; without, a part of names
/// in any case, or of paths if it has a separator.
#[derive(Debug)]
pub(in super::super) struct Filter {
    text: String,
    lowercase: String,
    /// For dotted paths of fields, and for paths of objects; none without wildcards, or while they are incomplete.
    globs: Option<[Glob; 2]>,
}

impl Filter {
    /// The filter for a text; none for an empty one, which shows all.
    pub(in super::super) fn new(text: &str) -> Option<Self> {
        let glob = |separator| Glob::new(text, separator).ok().flatten();
        let globs = glob('.').zip(glob('/')).map(|(fields, objects)| [fields, objects]);
        (!text.is_empty()).then(|| Self { text: text.to_owned(), lowercase: text.to_lowercase(), globs })
    }

    /// The text.
    pub(in super::super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn is_match(&self, label: &Label) -> bool {
        let Label { name, path, separator, .. } = label;
        match &self.globs {
            Some([fields, objects]) => {
                let glob = if *separator == '.' { fields } else { objects };
                glob.is_match(name) || glob.is_match(path)
            }
            None if self.text.contains(*separator) => path.to_lowercase().contains(&self.lowercase),
            None => name.to_lowercase().contains(&self.lowercase),
        }
    }
}

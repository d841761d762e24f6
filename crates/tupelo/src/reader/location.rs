//! `FILE` and `FILE:NAME`.

use std::fmt;
use std::path::Path;

use tupelo_storage::{display_name, is_object_uri, local_path, split_container};

/// A file and, perhaps, the name of an object inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// Path or URL of the file.
    pub file: String,
    /// The path of the object in the directories of the file, with `;CYCLE` unless the newest cycle is meant.
    pub object: Option<String>,
}

impl Location {
    /// Splits `FILE:NAME`. Colons may be part of either side: the longest prefix that is an existing local file wins;
    /// where none exists, and for URLs, the text is split after `.root`, or else is a file name as a whole. `file:` in
    /// front is dropped. The query string of a URL comes after the name of the object: `https://HOST/x.root:Events?a=b`.
    pub fn parse(text: &str) -> Self {
        if split_container(text).is_some() {
            return Self { file: text.to_owned(), object: None };
        }
        let is_local = local_path(text).is_some();
        let text = local_path(text).and_then(Path::to_str).unwrap_or(text);
        let whole = Self { file: text.to_owned(), object: None };
        // Names of objects in stores may have a question mark.
        let scheme = text.split("://").next().unwrap_or_default().to_ascii_lowercase();
        let has_query = !is_local && (scheme.starts_with("http") || scheme.contains("root"));
        let (text, query) = match text.find('?') {
            Some(start) if has_query => text.split_at(start),
            _ => (text, ""),
        };
        let split = |position: usize| Self {
            file: format!("{}{query}", &text[..position]),
            object: Some(text[position + 1..].to_owned()).filter(|name| !name.is_empty()),
        };
        if is_local && Path::new(text).is_file() {
            return whole;
        }
        let colons = || text.match_indices(':').map(|(position, _)| position);
        let is_file = |position: &usize| is_local && Path::new(&text[..*position]).is_file();
        let existing = colons().rev().find(is_file);
        existing.or_else(|| colons().find(|&position| text[..position].ends_with(".root"))).map_or(whole, split)
    }

    /// The name that an ntuple gets at this place, if it is given. In a DAOS container it is part of the URI.
    pub fn ntuple_name(&self) -> Option<&str> {
        self.object.as_deref().or_else(|| split_container(&self.file)?.1)
    }

    /// Whether it is the URL of a folder: it ends with a slash, or has no path. A DAOS container is one.
    pub fn is_remote_folder(&self) -> bool {
        if let Some((_, name)) = split_container(&self.file) {
            return name.is_none();
        }
        if is_object_uri(&self.file) {
            return self.file.ends_with('/');
        }
        let name = self.file.split('?').next().unwrap_or(&self.file);
        let path = name.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map_or("", |(_, path)| path);
        self.local_path().is_none() && (path.is_empty() || path.ends_with('/'))
    }

    /// The path of the file; `None` for a URL.
    pub fn local_path(&self) -> Option<&Path> {
        local_path(&self.file)
    }
}

/// Without credentials in URLs.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&display_name(&self.file))?;
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
    fn names_follow_the_file() {
        let parse = |text| {
            let location = Location::parse(text);
            (location.file, location.object)
        };
        assert_eq!(parse("a.root:Events"), ("a.root".into(), Some("Events".into())));
        assert_eq!(parse("a.root:dir/Jets:x;2"), ("a.root".into(), Some("dir/Jets:x;2".into())));
        assert_eq!(parse("file:///tmp/a.root"), ("/tmp/a.root".into(), None));
        assert_eq!(parse("a.root:"), ("a.root".into(), None));
        assert_eq!(parse("no such file"), ("no such file".into(), None));
    }

    #[test]
    fn urls_have_names_too() {
        let parse = |text| {
            let location = Location::parse(text);
            (location.file.clone(), location.object.clone(), location.local_path().is_some())
        };
        let remote = |file: &str, name: Option<&str>| (file.to_owned(), name.map(str::to_owned), false);
        assert_eq!(parse("https://host:80/a.root:Events"), remote("https://host:80/a.root", Some("Events")));
        assert_eq!(parse("root://eos//a.root:d/E;2"), remote("root://eos//a.root", Some("d/E;2")));
        assert_eq!(parse("s3://bucket/key"), remote("s3://bucket/key", None));
        let signed = "https://host/a.root?X-Signature=a:b.root";
        assert_eq!(parse(signed), remote(signed, None));
        let named = "https://host/a.root:d/E?X-Signature=a:b.root:c";
        assert_eq!(parse(named), remote("https://host/a.root?X-Signature=a:b.root:c", Some("d/E")));
        assert_eq!(Location::parse(signed).to_string(), "https://host/a.root");
        assert_eq!(parse("ntpl+s3://bucket/events"), remote("ntpl+s3://bucket/events", None));
        for (uri, is_folder) in
            [("ntpl+file:events", false), ("ntpl+file:///data/", true), ("ntpl+s3://bucket/a", false)]
        {
            assert_eq!(Location::parse(uri).is_remote_folder(), is_folder, "{uri}");
        }
        for (uri, name) in [("daos://pool/box.root:Events", Some("Events")), ("daos://pool/box", None)] {
            let location = Location::parse(uri);
            let is_folder = location.is_remote_folder();
            assert_eq!((location.ntuple_name().filter(|_| !is_folder), location.to_string().as_str()), (name, uri));
        }
        assert_eq!(Location::parse("a.root:Events").ntuple_name(), Some("Events"));
    }
}

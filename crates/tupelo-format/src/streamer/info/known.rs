//! Layouts of ROOT's classes of trees, histograms and graphs, for files that do not describe them.

use std::sync::OnceLock;

use super::code::{ARRAY, POINTER};
use super::{ClassInfo, Counter, Element, ElementKind, StreamerInfos};

/// Name and version of a class, then its bases (`^TNamed`) and members, in the order in which they are stored: numbers by
/// a letter (`fLen:i`), fixed arrays of them (`fX:d[3]`), as many as another member says (`fX:d*fN`), texts (`fOption:$`),
/// objects (`fXaxis:TAxis`) and pointers to them (`fFriends:TList*`). Lines that begin with blanks continue the last one.
const CLASSES: &str = include_str!("known.txt");

impl StreamerInfos {
    /// The layouts that ROOT's classes of trees, histograms and graphs had in all versions that can be read, without
    /// checksums.
    pub fn known() -> &'static Self {
        static KNOWN: OnceLock<StreamerInfos> = OnceLock::new();
        KNOWN.get_or_init(|| {
            let mut infos = Self::default();
            for line in CLASSES.replace("\n ", " ").lines() {
                if let Some(info) = class(line) {
                    infos.push(info);
                }
            }
            infos
        })
    }
}

fn class(line: &str) -> Option<ClassInfo> {
    let mut words = line.split_whitespace();
    let (name, version) = (words.next()?, words.next()?.parse().ok()?);
    let elements = words.map(|word| element(word, name, version)).collect::<Option<_>>()?;
    Some(ClassInfo { version, elements, ..ClassInfo::unknown(name) })
}

fn element(word: &str, class_name: &str, version: i32) -> Option<Element> {
    if let Some(base) = word.strip_prefix('^') {
        return Some(Element::new(base, "BASE", 0, ElementKind::Base { version: 0 }));
    }
    let (name, form) = word.split_once(':')?;
    let mut letters = form.chars();
    if let Some(code) = letters.next().and_then(number) {
        let rest = letters.as_str();
        if rest.is_empty() {
            return Some(Element::new(name, "", code, ElementKind::Basic));
        }
        if let Some(counter) = rest.strip_prefix('*') {
            let counter = Counter { version, name: counter.to_owned(), class_name: class_name.to_owned() };
            return Some(Element::new(name, "", code + POINTER, ElementKind::BasicPointer(counter)));
        }
        let length = rest.strip_prefix('[')?.strip_suffix(']')?.parse().ok()?;
        let (array_dimensions, max_index) = (1, [length, 0, 0, 0, 0]);
        let element = Element::new(name, "", code + ARRAY, ElementKind::Basic);
        return Some(Element { array_length: length, array_dimensions, max_index, ..element });
    }
    let (code, kind) = match form {
        "$" => (65, ElementKind::String),
        _ if form.starts_with("vector<") => (500, ElementKind::Stl { container: 1, item: 61 }),
        _ if form.ends_with('*') => (64, ElementKind::ObjectPointer),
        _ => (62, ElementKind::ObjectAny),
    };
    Some(Element::new(name, if form == "$" { "TString" } else { form }, code, kind))
}

/// ROOT's code of the type of a number.
fn number(letter: char) -> Option<i32> {
    Some(match letter {
        'b' => 18,
        'c' => 1,
        'C' => 11,
        's' => 2,
        'S' => 12,
        'i' => 3,
        'I' => 13,
        'l' => 16,
        'L' => 17,
        'f' => 5,
        'd' => 8,
        'h' => 19,
        'D' => 9,
        'B' => 15,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_class() {
        let lines = CLASSES.lines().filter(|line| !line.starts_with(' ')).count();
        assert_eq!(StreamerInfos::known().classes().len(), lines);
        let branch = StreamerInfos::known().find("TBranch", 13).unwrap();
        assert_eq!(branch.elements.len(), 22);
        assert!(branch.elements.iter().all(|element| element.name != "fEntries" || element.code == 16));
    }
}

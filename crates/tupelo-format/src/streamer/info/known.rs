//! Layouts of ROOT's classes of trees, histograms and graphs, and of ATLAS's links, for files that do not describe them.

use std::sync::OnceLock;

use super::code::{ARRAY, POINTER};
use super::{ClassInfo, Counter, Element, ElementKind, StreamerInfos};

/// Name and version of a class, its checksum if objects have that instead (`=1aa12f10`), then its bases (`^TNamed`) and
/// members, in the order in which they are stored: numbers by a letter (`fLen:i`), fixed arrays of them (`fX:d[3]`), as many
/// as another member says (`fX:d*fN`), texts (`fOption:$`), objects (`fXaxis:TAxis`) and pointers to them
/// (`fFriends:TList*`). Lines that begin with blanks continue the last one.
const CLASSES: &str = include_str!("known.txt");
const LINK: &str = "ElementLink<";
const LINK_BASE: &str = "ElementLinkBase";

impl StreamerInfos {
    /// The layouts that ROOT's classes of trees, histograms and graphs, and ATLAS's links, had in all versions that can be
    /// read, without checksums.
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

    /// Adds the layouts of ATLAS's links to items of containers (`ElementLink<T>`) in the name of a type. A file lacks those
    /// to which all its lists of links are empty.
    pub fn describe_links(&mut self, type_name: &str) {
        let mut rest = type_name;
        while let Some(at) = rest.find(LINK) {
            let (before, link) = rest.split_at(at);
            let is_whole = !before.ends_with(|last: char| last.is_alphanumeric() || matches!(last, '_' | ':'));
            let mut depth = 0;
            let end = link.char_indices().find_map(|(at, letter)| {
                depth += i32::from(letter == '<') - i32::from(letter == '>');
                (letter == '>' && depth == 0).then_some(at + 1)
            });
            let Some((name, behind)) = end.and_then(|end| link.split_at_checked(end)) else { return };
            if is_whole && self.spelling(name).is_none() {
                for (known, name) in [("ElementLink<>", name), (LINK_BASE, LINK_BASE)] {
                    if let (None, Some(known)) = (self.spelling(name), Self::known().newest(known)) {
                        self.push(ClassInfo { name: name.to_owned(), ..known.as_ref().clone() });
                    }
                }
            }
            rest = behind;
        }
    }
}

fn class(line: &str) -> Option<ClassInfo> {
    let mut words = line.split_whitespace();
    let (name, version) = (words.next()?, words.next()?.parse().ok()?);
    let mut words = words.peekable();
    let checksum =
        words.next_if(|word| word.starts_with('=')).and_then(|word| u32::from_str_radix(&word[1..], 16).ok());
    let elements = words.map(|word| element(word, name, version)).collect::<Option<_>>()?;
    let unknown = ClassInfo::unknown(name);
    Some(ClassInfo { version, elements, checksum: checksum.unwrap_or(unknown.checksum), ..unknown })
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

    #[test]
    fn links_that_a_file_does_not_describe_are_as_the_others() {
        let described = ClassInfo { version: 7, ..ClassInfo::unknown("ElementLink<DataVector<Jet> >") };
        let mut infos = StreamerInfos::default();
        infos.push(described);
        let names = ["map<ElementLink<DataVector<Jet>>,ElementLink<Cells>>", "MyElementLink<A>", "ElementLink<B", "x>"];
        names.iter().for_each(|name| infos.describe_links(name));
        let listed: Vec<(&str, i32)> = infos.classes().map(|info| (info.name.as_str(), info.version)).collect();
        let expected = [("ElementLink<DataVector<Jet> >", 7), ("ElementLink<Cells>", 1), ("ElementLinkBase", 1)];
        assert_eq!(listed, expected);
        // Nested links take no more than their names.
        let nested = ["ElementLink<".repeat(1000), ">".repeat(1000)].concat();
        infos.describe_links(&nested);
        assert_eq!(infos.classes().len(), 4);
    }
}

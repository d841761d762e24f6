//! The words in streamed objects that depend on the places of others.

use std::ops::Range;

/// Set in a byte count, to tell it from a class version.
pub(super) const BYTE_COUNT: u32 = 0x4000_0000;
/// "The name of the class follows", in place of a reference to an earlier mention.
pub(super) const NEW_CLASS: u32 = 0xffff_ffff;
/// Set in references to classes.
pub(super) const CLASS: u32 = 0x8000_0000;
/// The offset that ROOT adds to distances, so that none is 0 or 1.
pub(super) const MAP_OFFSET: usize = 2;
/// What a reference to the object of the whole record is (`TBufferFile::MapObject`).
pub const WHOLE_OBJECT: u32 = 1;

/// Whether streamed bytes mention a class for the first time, which they do where they point to an object of it.
pub fn mentions_class(bytes: &[u8], class_name: &str) -> bool {
    let mention = [&NEW_CLASS.to_be_bytes(), class_name.as_bytes(), &[0]].concat();
    bytes.windows(mention.len()).any(|window| window == mention)
}

/// Where the parts of streamed objects are that depend on the places of others: see [`Streamed::marks`].
///
/// [`Streamed::marks`]: super::Streamed::marks
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks {
    /// Byte counts, and the ends of what they count.
    pub(super) counts: Vec<(usize, usize)>,
    /// References, and the ids of the objects that they refer to.
    pub(super) references: Vec<(usize, usize)>,
    /// First mentions of classes, and their names.
    pub(super) classes: Vec<(usize, String)>,
    /// Other mentions, and the ids of the classes.
    pub(super) class_references: Vec<(usize, usize)>,
}

/// Numbers of marks of each kind, to which they can be [cut back](Marks::cut_back).
#[derive(Debug, Clone, Copy)]
pub struct MarkCounts([usize; 4]);

impl Marks {
    pub(super) fn count(&mut self, at: usize, end: usize) {
        self.counts.push((at, end));
    }

    /// A reference to an object. One to that of the whole record depends on no place.
    pub(super) fn reference(&mut self, at: usize, id: usize) {
        if id != WHOLE_OBJECT as usize {
            self.references.push((at, id));
        }
    }

    pub(super) fn class(&mut self, at: usize, name: &str) {
        self.classes.push((at, name.to_owned()));
    }

    pub(super) fn class_reference(&mut self, at: usize, id: usize) {
        self.class_references.push((at, id));
    }

    /// The places of all references, to objects and classes, ascending; `None` if one is to something outside of a range of
    /// positions, which count as references do.
    pub fn references_within(&self, positions: Range<usize>) -> Option<Vec<usize>> {
        let all = self.references.iter().chain(&self.class_references);
        let is_within = |id: usize| id.checked_sub(MAP_OFFSET).is_some_and(|position| positions.contains(&position));
        let mut places: Vec<usize> = all.map(|(at, id)| is_within(*id).then_some(*at)).collect::<Option<_>>()?;
        places.sort_unstable();
        // What is read a second time is marked again.
        places.dedup();
        Some(places)
    }

    /// Where the object begins that a reference at this place refers to, behind a key of `key_bytes`.
    pub fn target(&self, reference: usize, key_bytes: u16) -> Option<usize> {
        let found = self.references.binary_search_by_key(&reference, |(at, _)| *at).ok()?;
        let (_, id) = self.references.get(found)?;
        id.checked_sub(usize::from(key_bytes))?.checked_sub(MAP_OFFSET)
    }

    /// The name of the class that is first mentioned at this place.
    pub(super) fn class_at(&self, place: usize) -> Option<&str> {
        let found = self.classes.binary_search_by_key(&place, |(at, _)| *at).ok()?;
        self.classes.get(found).map(|(_, name)| name.as_str())
    }

    /// The numbers of marks so far.
    pub fn counts(&self) -> MarkCounts {
        MarkCounts([self.counts.len(), self.references.len(), self.classes.len(), self.class_references.len()])
    }

    /// Forgets later marks: those of an object that could not be read.
    pub fn cut_back(&mut self, MarkCounts(counts): MarkCounts) {
        self.counts.truncate(counts[0]);
        self.references.truncate(counts[1]);
        self.classes.truncate(counts[2]);
        self.class_references.truncate(counts[3]);
    }
}

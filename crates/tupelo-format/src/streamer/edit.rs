//! Changing some bytes of a streamed object, and all that depends on their places: byte counts and references.

use std::collections::HashMap;
use std::ops::Range;

use crate::wire::Buffer;
use crate::{Error, Result};

use super::marks::{BYTE_COUNT, CLASS, MAP_OFFSET, Marks, NEW_CLASS};

/// Replacements in the bytes of a streamed object.
#[derive(Debug)]
pub struct Edits<'a> {
    bytes: &'a [u8],
    /// Bytes before them from which references count.
    key_bytes: usize,
    marks: &'a Marks,
    /// What is replaced, and by what.
    replaced: Vec<(Range<usize>, Vec<u8>)>,
    /// What may have references that are not known.
    fixed: &'a [Range<usize>],
}

impl<'a> Edits<'a> {
    /// No replacements in bytes behind a key of `key_bytes`.
    pub fn new(bytes: &'a [u8], key_bytes: u16, marks: &'a Marks) -> Self {
        Self { bytes, key_bytes: key_bytes.into(), marks, replaced: Vec::new(), fixed: &[] }
    }

    /// The same with parts whose references are not known: they must be replaced or stay where they are.
    #[must_use]
    pub fn with_fixed(self, fixed: &'a [Range<usize>]) -> Self {
        Self { fixed, ..self }
    }

    /// Replaces bytes. Nothing in a range may be replaced twice, and what replaces it has no references.
    pub fn replace(&mut self, range: Range<usize>, bytes: Vec<u8>) {
        self.replaced.push((range, bytes));
    }

    /// The changed bytes, behind a key of another length.
    ///
    /// # Errors
    /// Unsupported if something refers to an object that was replaced, a fixed part would be moved, or replacements overlap;
    /// limit above 1 GiB.
    pub fn finish(mut self, key_bytes: u16) -> Result<Vec<u8>> {
        self.replaced.sort_by_key(|(range, _)| range.start);
        // What names classes that are mentioned later is kept elsewhere.
        let classes = self.first_mentions(&Places::of(&self.replaced)?);
        for (before, now) in classes.iter().filter(|(before, now)| before != now) {
            let Some(name) = self.marks.class_at(*before) else { continue };
            let mut named = NEW_CLASS.to_be_bytes().to_vec();
            named.extend_from_slice(name.as_bytes());
            named.push(0);
            self.replaced.push((*now..*now + 4, named));
        }
        self.replaced.sort_by_key(|(range, _)| range.start);
        let places = Places::of(&self.replaced)?;
        let is_moved = |part: &&Range<usize>| {
            let same = self.key_bytes == usize::from(key_bytes) && places.moved(part.start) == part.start;
            !same && !places.is_replaced(part.start)
        };
        if let Some(part) = self.fixed.iter().find(is_moved) {
            let what = "an object of an unknown class cannot be moved";
            return Err(Error::unsupported(what).at(part.start as u64));
        }
        let mut out = Vec::with_capacity(self.bytes.len());
        let mut done = 0;
        for (range, bytes) in &self.replaced {
            out.extend_from_slice(self.bytes.get(done..range.start).unwrap_or_default());
            out.extend_from_slice(bytes);
            done = range.end;
        }
        out.extend_from_slice(self.bytes.get(done..).unwrap_or_default());
        if out.len() >= BYTE_COUNT as usize {
            return Err(Error::limit(format!("object of {} bytes exceeds the limit of 1 GiB", out.len())));
        }
        let mut out = Buffer::from(out);
        // Below 1 GiB, all words fit.
        let mut put = |at: usize, word: usize, flag: u32| out.patch(at, &(word as u32 | flag).to_be_bytes());
        let id_of = |position: usize| usize::from(key_bytes) + position + MAP_OFFSET;
        for &(at, end) in self.marks.counts.iter().filter(|(at, _)| !places.is_replaced(*at)) {
            let at = places.moved(at);
            put(at, places.moved(end).saturating_sub(at + 4), BYTE_COUNT);
        }
        for &(at, id) in self.marks.references.iter().filter(|(at, _)| !places.is_replaced(*at)) {
            let target = self.position_of(id);
            if places.is_replaced(target) {
                return Err(Error::unsupported("an object is referred to that is left out").at(at as u64));
            }
            put(places.moved(at), id_of(places.moved(target)), 0);
        }
        for &(at, id) in self.marks.class_references.iter().filter(|(at, _)| !places.is_replaced(*at)) {
            if let Some(&first) = classes.get(&self.position_of(id)) {
                put(places.moved(at), id_of(places.moved(first)), CLASS);
            }
        }
        Ok(out.into_vec())
    }

    fn position_of(&self, id: usize) -> usize {
        id.saturating_sub(self.key_bytes).saturating_sub(MAP_OFFSET)
    }

    /// Where each class is named, by the position at which it was named before.
    fn first_mentions(&self, places: &Places) -> HashMap<usize, usize> {
        let mut found = HashMap::new();
        for (at, _) in self.marks.classes.iter().filter(|(at, _)| !places.is_replaced(*at)) {
            found.insert(*at, *at);
        }
        for &(at, id) in self.marks.class_references.iter().filter(|(at, _)| !places.is_replaced(*at)) {
            found.entry(self.position_of(id)).or_insert(at);
        }
        found
    }
}

/// Where replacements move positions to.
struct Places {
    /// What is replaced, and how many bytes less than before are in front of what follows.
    ranges: Vec<(Range<usize>, i64)>,
}

impl Places {
    fn of(replaced: &[(Range<usize>, Vec<u8>)]) -> Result<Self> {
        let (mut ranges, mut shift, mut end) = (Vec::with_capacity(replaced.len()), 0, 0);
        for (range, bytes) in replaced {
            if range.start < end || range.end < range.start {
                return Err(Error::unsupported("parts of the object cannot be replaced separately"));
            }
            end = range.end;
            shift += bytes.len() as i64 - range.len() as i64;
            ranges.push((range.clone(), shift));
        }
        Ok(Self { ranges })
    }

    fn is_replaced(&self, position: usize) -> bool {
        let next = self.ranges.partition_point(|(range, _)| range.end <= position);
        self.ranges.get(next).is_some_and(|(range, _)| range.contains(&position))
    }

    /// The new place of a position between replacements, or at the start of one.
    fn moved(&self, position: usize) -> usize {
        let before = self.ranges.partition_point(|(range, _)| range.end <= position);
        let shift = before.checked_sub(1).and_then(|last| self.ranges.get(last)).map_or(0, |(_, shift)| *shift);
        (position as i64 + shift).max(0) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Pointer, Streamed, Streaming, WHOLE_OBJECT};
    use super::*;

    /// Two objects of a class, a reference to the whole record and one to the first, in a counted frame.
    fn streamed(key_bytes: u16, name: &str, first: &[u8]) -> Vec<u8> {
        let mut out = Streaming::new(key_bytes);
        out.versioned(1, |out| {
            let id = out.next_id();
            out.pointer(name, |out| out.buffer.put(first));
            out.pointer(name, |out| out.buffer.put(b"second"));
            out.reference(WHOLE_OBJECT);
            out.reference(id);
        });
        out.buffer.into_vec()
    }

    fn read(bytes: &[u8], key_bytes: usize) -> Result<(Marks, Vec<Range<usize>>)> {
        let mut stream = Streamed::new(bytes, key_bytes);
        stream.marks = Some(Marks::default());
        stream.version()?;
        let (mut objects, mut ids) = (Vec::new(), Vec::new());
        for _ in 0..4 {
            match stream.pointer()? {
                Pointer::Object { class_name, id, end } => {
                    assert_eq!(class_name, "Thing");
                    objects.push(stream.cursor.position()..end);
                    ids.push(id);
                    stream.skip_to(end)?;
                }
                Pointer::Reference(id) => assert!(id == ids[0] || id == WHOLE_OBJECT as usize, "{id}"),
                Pointer::Null => panic!("a null pointer"),
            }
        }
        Ok((stream.marks.unwrap_or_default(), objects))
    }

    #[test]
    fn counts_and_references_follow_what_is_replaced() {
        for (key_before, key_after) in [(60, 60), (60, 81), (81, 60)] {
            for content in [&b""[..], b"x", b"a longer text"] {
                let bytes = streamed(key_before, "Thing", b"first");
                let (marks, objects) = read(&bytes, key_before.into()).unwrap();
                let mut edits = Edits::new(&bytes, key_before, &marks);
                edits.replace(objects[0].clone(), content.to_vec());
                let edited = edits.finish(key_after).unwrap();
                assert_eq!(edited, streamed(key_after, "Thing", content));
                assert_eq!(read(&edited, key_after.into()).unwrap().1.len(), 2);
            }
        }
    }

    #[test]
    fn a_class_is_named_where_it_is_mentioned_first() {
        let bytes = streamed(50, "Thing", b"first");
        let (marks, objects) = read(&bytes, 50).unwrap();
        // The first object as a whole, and the reference to it.
        let mut edits = Edits::new(&bytes, 50, &marks);
        edits.replace(6..objects[0].end, 0_u32.to_be_bytes().to_vec());
        assert!(edits.finish(50).unwrap_err().what().contains("referred to"));
        let mut edits = Edits::new(&bytes, 50, &marks);
        edits.replace(6..objects[0].end, 0_u32.to_be_bytes().to_vec());
        edits.replace(bytes.len() - 4..bytes.len(), 0_u32.to_be_bytes().to_vec());
        let edited = edits.finish(50).unwrap();
        let mut out = Streaming::new(50);
        out.versioned(1, |out| {
            out.reference(0);
            out.pointer("Thing", |out| out.buffer.put(b"second"));
            out.reference(WHOLE_OBJECT);
            out.reference(0);
        });
        assert_eq!(edited, out.buffer.into_vec());
    }

    #[test]
    fn fixed_parts_stay_where_they_are() {
        let bytes = streamed(50, "Thing", b"first");
        let (marks, objects) = read(&bytes, 50).unwrap();
        let edited = |replaced: &Range<usize>, new: &[u8], key_bytes| {
            let mut edits = Edits::new(&bytes, 50, &marks).with_fixed(&objects[1..]);
            edits.replace(replaced.clone(), new.to_vec());
            edits.finish(key_bytes)
        };
        assert!(edited(&objects[0], b"other", 50).is_ok() && edited(&objects[1], b"longer than it", 60).is_ok());
        for moved in [edited(&objects[0], b"longer", 50), edited(&objects[0], b"other", 60)] {
            assert!(moved.unwrap_err().what().contains("cannot be moved"));
        }
    }

    #[test]
    fn what_is_replaced_twice_is_refused() {
        let bytes = streamed(50, "Thing", b"first");
        let (marks, objects) = read(&bytes, 50).unwrap();
        let mut edits = Edits::new(&bytes, 50, &marks);
        edits.replace(objects[0].clone(), Vec::new());
        edits.replace(objects[0].clone(), Vec::new());
        assert!(edits.finish(50).is_err());
    }
}

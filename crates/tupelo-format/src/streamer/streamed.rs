//! What all streamed objects have in common: byte counts, class versions, and pointers that name a class or refer back
//! (`TBufferFile.cxx`: `ReadVersion`, `ReadClass`, `ReadObjectAny`, `WriteObjectClass`).
//!
//! References are distances from the start of the buffer in which the object was streamed. For a record of a file that
//! is the start of its key, so the length of the key belongs to the meaning of the bytes.

use std::collections::HashMap;

use super::marks::{BYTE_COUNT, CLASS, MAP_OFFSET, Marks, NEW_CLASS};
use crate::wire::{Buffer, Cursor};
use crate::{Error, Result};

/// The same in the first half of it, and in a version: "member by member", not object by object.
const HIGH_BIT: u16 = 0x4000;
/// Bit of a `TObject` that a `TRef` points to (`TObject::kIsReferenced`): the number of a process follows.
pub const IS_REFERENCED: u32 = 1 << 4;
/// Bit of a `TRef` to an object that has a separate identifier (`kHasUUID`).
const HAS_UUID: u32 = 1 << 5;

/// A cursor over one buffer of streamed objects.
#[derive(Debug)]
pub struct Streamed<'a> {
    /// The unread bytes.
    pub cursor: Cursor<'a>,
    bytes: &'a [u8],
    key_bytes: usize,
    classes: HashMap<usize, &'a str>,
    /// Where byte counts and references are, if that is recorded.
    pub marks: Option<Marks>,
}

/// The head of an object.
#[derive(Debug, Clone, Copy)]
pub struct Version {
    /// Class version; 0 for classes that are identified by checksum.
    pub number: u16,
    /// Whether the members of a collection's items follow one member after the other.
    pub is_member_wise: bool,
    /// End position of the object, if it has a byte count.
    pub end: Option<usize>,
}

/// The target of a pointer to an object.
#[derive(Debug, Clone, Copy)]
pub enum Pointer<'a> {
    /// No object.
    Null,
    /// An object follows.
    Object {
        /// C++ class.
        class_name: &'a str,
        /// The value of references to it.
        id: usize,
        /// End position of the object.
        end: usize,
    },
    /// An object that was streamed before, or one around this place.
    Reference(usize),
}

impl<'a> Streamed<'a> {
    /// A buffer whose references count from `key_bytes` before it.
    pub fn new(bytes: &'a [u8], key_bytes: usize) -> Self {
        Self { cursor: Cursor::new(bytes, 0), bytes, key_bytes, classes: HashMap::new(), marks: None }
    }

    fn id(&self, position: usize) -> usize {
        self.key_bytes.saturating_add(position).saturating_add(MAP_OFFSET)
    }

    /// The end given by a byte count, which must lie within the buffer.
    fn end(&self, count: u32) -> Result<usize> {
        let count = (count & !BYTE_COUNT) as usize;
        match count <= self.cursor.remaining() {
            true => Ok(self.cursor.position().saturating_add(count)),
            false => {
                let what = format!("expected an object of {count} bytes, {} left", self.cursor.remaining());
                Err(Error::corrupt(what).at(self.cursor.offset()))
            }
        }
    }

    fn mark(&mut self, add: impl FnOnce(&mut Marks)) {
        if let Some(marks) = &mut self.marks {
            add(marks);
        }
    }

    /// The head of an object.
    pub fn version(&mut self) -> Result<Version> {
        let first = self.cursor.clone().u16_be()?;
        let end = match first & HIGH_BIT {
            0 => None,
            _ => {
                let at = self.cursor.position();
                let count = self.cursor.u32_be()?;
                let end = self.end(count)?;
                self.mark(|marks| marks.count(at, end));
                Some(end)
            }
        };
        let number = self.cursor.u16_be()?;
        let is_member_wise = end.is_some() && number & HIGH_BIT != 0;
        Ok(Version { number: if is_member_wise { number & !HIGH_BIT } else { number }, is_member_wise, end })
    }

    /// Skips the rest of an object.
    pub fn skip_to(&mut self, end: usize) -> Result<()> {
        match end.checked_sub(self.cursor.position()) {
            Some(rest) => self.cursor.take(rest).map(|_| ()),
            None => Err(Error::corrupt("object extends past its own end").at(self.cursor.offset())),
        }
    }

    /// Goes to a position, forwards or backwards.
    pub fn go_to(&mut self, position: usize) -> Result<()> {
        self.cursor = Cursor::new(self.bytes, 0);
        self.skip_to(position)
    }

    /// Checks that an object ends where its head says.
    pub fn check_end(&self, end: Option<usize>) -> Result<()> {
        match end {
            Some(end) if end != self.cursor.position() => {
                let what = format!("object ends at byte {}, expected byte {end}", self.cursor.position());
                Err(Error::corrupt(what).at(self.cursor.offset()))
            }
            _ => Ok(()),
        }
    }

    /// The target of a pointer to an object.
    pub fn pointer(&mut self) -> Result<Pointer<'a>> {
        let start = self.cursor.position();
        let word = self.cursor.u32_be()?;
        if word == NEW_CLASS || word & CLASS != 0 {
            return Err(Error::unsupported("objects without a byte count, from before ROOT 3, are not supported")
                .at(start as u64));
        }
        if word & BYTE_COUNT == 0 {
            return Ok(match word {
                0 => Pointer::Null,
                id => {
                    self.mark(|marks| marks.reference(start, id as usize));
                    Pointer::Reference(id as usize)
                }
            });
        }
        let end = self.end(word)?;
        self.mark(|marks| marks.count(start, end));
        let tag_at = self.cursor.position();
        let tag = self.cursor.u32_be()?;
        let class_name = match tag {
            NEW_CLASS => {
                let rest = self.bytes.get(self.cursor.position()..).unwrap_or_default();
                let length = rest.iter().position(|&byte| byte == 0);
                let length = length.ok_or_else(|| Error::corrupt("class name is not terminated").at(tag_at as u64))?;
                let name = std::str::from_utf8(self.cursor.take(length)?);
                let name = name.map_err(|_| Error::corrupt("class name is not UTF-8").at(tag_at as u64))?;
                self.cursor.take(1)?;
                self.classes.insert(self.id(tag_at), name);
                self.mark(|marks| marks.class(tag_at, name));
                name
            }
            _ if tag & CLASS != 0 => {
                let id = (tag & !CLASS) as usize;
                self.mark(|marks| marks.class_reference(tag_at, id));
                let known = self.classes.get(&id).copied();
                known.ok_or_else(|| {
                    let what = format!("reference to a missing class at {}", tag & !CLASS);
                    Error::unsupported(what).at(tag_at as u64)
                })?
            }
            0 => {
                self.skip_to(end)?;
                return Ok(Pointer::Null);
            }
            id => {
                self.mark(|marks| marks.reference(tag_at, id as usize));
                self.skip_to(end)?;
                return Ok(Pointer::Reference(id as usize));
            }
        };
        Ok(Pointer::Object { class_name, id: self.id(start), end })
    }

    /// The `TObject` part of an object: its number and its bits.
    pub fn object(&mut self) -> Result<(u32, u32)> {
        self.version()?;
        let number = self.cursor.u32_be()?;
        Ok((number, self.object_bits()?))
    }

    /// The bits of a `TObject`. The number of a process follows those of an object that is referred to from elsewhere.
    pub fn object_bits(&mut self) -> Result<u32> {
        let bits = self.cursor.u32_be()?;
        if bits & IS_REFERENCED != 0 {
            self.cursor.u16_be()?;
        }
        Ok(bits)
    }

    /// A `TRef`: number and bits as of a `TObject`, and the number of a process; `None` where a text follows instead of it.
    pub fn reference(&mut self) -> Result<(u32, u32, Option<u16>)> {
        let (number, bits) = self.object()?;
        let process = if bits & HAS_UUID == 0 { Some(self.cursor.u16_be()?) } else { None };
        Ok((number, bits, process))
    }

    /// Number of objects in a collection; each takes at least four bytes.
    pub fn count(&mut self) -> Result<usize> {
        let count = self.cursor.u32_be()? as usize;
        match count <= self.cursor.remaining() / 4 {
            true => Ok(count),
            false => {
                let what = format!("expected a collection of {count} objects, {} bytes left", self.cursor.remaining());
                Err(Error::corrupt(what).at(self.cursor.offset()))
            }
        }
    }

    /// The options that `TList` keeps behind every object, for drawing.
    pub fn option(&mut self, list_version: u16) -> Result<()> {
        let length = match (self.cursor.u8()?, list_version) {
            (255, 5..) => self.cursor.u32_be()? as usize,
            (short, _) => usize::from(short),
        };
        self.cursor.take(length).map(|_| ())
    }

    /// The bytes between two positions.
    pub fn bytes(&self, start: usize, end: usize) -> &'a [u8] {
        self.bytes.get(start..end).unwrap_or_default()
    }
}

/// A buffer into which objects are streamed.
#[derive(Debug)]
pub struct Streaming {
    /// The bytes streamed so far.
    pub buffer: Buffer,
    /// `None` if nothing refers to an earlier mention of a class.
    key_bytes: Option<usize>,
    classes: HashMap<String, u32>,
}

impl Streaming {
    /// A buffer that will follow a key of `key_bytes`.
    pub fn new(key_bytes: u16) -> Self {
        Self { buffer: Buffer::new(), key_bytes: Some(key_bytes.into()), classes: HashMap::new() }
    }

    /// A buffer that names the class of every object behind a pointer, so that its bytes may follow any key.
    pub fn without_references() -> Self {
        Self { buffer: Buffer::new(), key_bytes: None, classes: HashMap::new() }
    }

    /// Puts a byte count in front of what `content` writes.
    fn counted<T>(&mut self, content: impl FnOnce(&mut Self) -> T) -> T {
        let start = self.buffer.len();
        self.buffer.u32_be(0);
        let result = content(self);
        let mut count = Buffer::new();
        let bytes = self.buffer.len().saturating_sub(start).saturating_sub(4);
        count.u32_be(BYTE_COUNT | u32::try_from(bytes).unwrap_or(0));
        self.buffer.patch(start, count.as_slice());
        result
    }

    /// An object behind a pointer: byte count, class, content.
    pub fn pointer<T>(&mut self, class_name: &str, content: impl FnOnce(&mut Self) -> T) -> T {
        self.counted(|this| {
            match this.classes.get(class_name) {
                Some(&id) => this.buffer.u32_be(CLASS | id),
                None => {
                    if this.key_bytes.is_some() {
                        let id = this.next_id();
                        this.classes.insert(class_name.to_owned(), id);
                    }
                    this.buffer.u32_be(NEW_CLASS);
                    this.buffer.put(class_name.as_bytes());
                    this.buffer.u8(0);
                }
            }
            content(this)
        })
    }

    /// The value of a [`reference`](Self::reference) to the object that is streamed next.
    pub fn next_id(&self) -> u32 {
        let key_bytes = self.key_bytes.unwrap_or(0);
        let id = key_bytes.saturating_add(self.buffer.len()).saturating_add(MAP_OFFSET);
        u32::try_from(id).unwrap_or(0)
    }

    /// A pointer to an object that was streamed before, or to one around this place; 0 to none.
    pub fn reference(&mut self, id: u32) {
        self.buffer.u32_be(id);
    }

    /// A part of an object with a class version of its own.
    pub fn versioned<T>(&mut self, version: u16, content: impl FnOnce(&mut Self) -> T) -> T {
        self.counted(|this| {
            this.buffer.u16_be(version);
            content(this)
        })
    }

    /// A collection of a version of `TStreamerInfo` that stores its items member by member.
    pub(crate) fn member_wise<T>(&mut self, version: u16, content: impl FnOnce(&mut Self) -> T) -> T {
        self.versioned(version | HIGH_BIT, content)
    }

    /// A `TObject` with these bits.
    pub fn object(&mut self, bits: u32) {
        self.numbered_object(0, bits);
    }

    /// A `TObject` with a number (`fUniqueID`) and these bits.
    pub fn numbered_object(&mut self, number: u32, bits: u32) {
        self.buffer.u16_be(1);
        self.buffer.u32_be(number);
        self.buffer.u32_be(bits & !IS_REFERENCED);
    }

    /// The number of items of a collection. There are never more than bytes of a record, which fewer than 32 bits count.
    pub(crate) fn count(&mut self, count: usize) {
        self.buffer.u32_be(u32::try_from(count).unwrap_or(0));
    }

    /// An empty option behind an object of a `TList`.
    pub(crate) fn no_option(&mut self) {
        self.buffer.u8(0);
    }

    /// A `TNamed` with these bits.
    pub fn named(&mut self, bits: u32, name: &str, title: &[u8]) {
        self.versioned(1, |this| {
            this.object(bits);
            this.buffer.string_be(name);
            this.buffer.text_be(title);
        });
    }
}

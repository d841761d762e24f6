//! One streamed object after the other: classes, versions, pointers, and what memory they may take.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::classes::{has_own_format, is_special, special_layout};
use super::cpp::{self, Basic, Type};
use super::value::{Numbers, Object, Opaque, TracedObject, Value};
use super::{EntryForm, FREE_BYTES, FREE_WORK, MAX_DEPTH, MAX_EXPANSION, MAX_WORK};
use crate::streamer::{
    ClassInfo, Counter, Element, ElementKind, Marks, Pointer, Streamed, StreamerInfos, Version, WHOLE_OBJECT,
};
use crate::wire::Memory;
use crate::{Error, ErrorKind, Result};

/// Reads objects out of one buffer.
pub(super) struct Reader<'a> {
    pub(super) stream: Streamed<'a>,
    infos: &'a StreamerInfos,
    /// Objects behind pointers by what references call them, with the depth of what is in them; `None` while they are
    /// being read.
    known: HashMap<usize, Option<(Value, u32)>>,
    /// Layouts that no streamer info is needed for.
    built_in: HashMap<String, Arc<ClassInfo>>,
    /// Whether objects of a class may lack a head.
    headless: HashMap<*const ClassInfo, bool>,
    /// The positions of the counters of pointers among the members of their class.
    counters: HashMap<*const Counter, Option<usize>>,
    /// The remaining work besides the object: names of classes in bytes, and members in which counters are.
    work: usize,
    /// The memory limit of the object, and the memory that it shares with others.
    budget: usize,
    memory: &'a Memory,
    depth: u32,
    /// The deepest place within the object behind the innermost pointer.
    deepest: u32,
    /// Where the members of objects are, if that is recorded.
    pub(super) traced: Option<Vec<TracedObject>>,
    /// What could not be read.
    pub(super) opaque: Vec<Range<usize>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], key_bytes: usize, infos: &'a StreamerInfos, memory: &'a Memory) -> Self {
        Self {
            stream: Streamed::new(bytes, key_bytes),
            infos,
            known: HashMap::new(),
            built_in: HashMap::new(),
            headless: HashMap::new(),
            counters: HashMap::new(),
            work: bytes.len().saturating_mul(MAX_WORK).saturating_add(FREE_WORK),
            budget: bytes.len().saturating_mul(MAX_EXPANSION).saturating_add(FREE_BYTES),
            memory,
            depth: 0,
            deepest: 0,
            traced: None,
            opaque: Vec::new(),
        }
    }

    pub(super) fn remaining(&self) -> usize {
        self.stream.cursor.remaining()
    }

    /// An object that takes all bytes.
    pub(super) fn whole(&mut self, class_name: &str) -> Result<Value> {
        let value = self.item(&Type::parse(class_name)?)?;
        match self.remaining() {
            0 => Ok(value),
            rest => Err(Error::corrupt(format!("{rest} bytes follow the object of class {class_name}"))),
        }
    }

    /// The object in an entry of a branch.
    pub(super) fn entry(&mut self, form: EntryForm<'_>) -> Result<Value> {
        match form {
            EntryForm::Alone(name, described) => self.alone(name, described),
            EntryForm::Headed(name) => self.class(name),
            EntryForm::Named => {
                let name = self.class_name()?;
                self.class(&name)
            }
            EntryForm::Member(class, member) => self.member(class, member),
        }
    }

    /// Takes memory from the budget, before it is allocated.
    pub(super) fn spend(&mut self, count: usize, item_bytes: usize) -> Result<()> {
        match count.checked_mul(item_bytes).and_then(|bytes| self.budget.checked_sub(bytes)) {
            Some(rest) => {
                let bytes = self.budget.saturating_sub(rest) as u64;
                self.budget = rest;
                self.memory.take(bytes, "objects").map_err(|error| error.at(self.stream.cursor.offset()))
            }
            None => {
                Err(Error::limit("object needs far more memory than its stored size").at(self.stream.cursor.offset()))
            }
        }
    }

    /// Takes time from the budget: names of classes are parsed and looked up for each object of theirs.
    pub(super) fn work(&mut self, steps: usize) -> Result<()> {
        match self.work.checked_sub(steps) {
            Some(rest) => {
                self.work = rest;
                Ok(())
            }
            None => {
                Err(Error::limit("object needs far more work than its stored size").at(self.stream.cursor.offset()))
            }
        }
    }

    /// [`ClassInfo::position`], found once for each counter.
    pub(super) fn counter_place(&mut self, counter: &Counter, info: &ClassInfo) -> Option<usize> {
        *self.counters.entry(std::ptr::from_ref(counter)).or_insert_with(|| info.position(&counter.name))
    }

    /// An empty list with room for `count` values.
    pub(super) fn list(&mut self, count: usize) -> Result<Vec<Value>> {
        self.spend(count, size_of::<Value>())?;
        Ok(Vec::with_capacity(count))
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.reach(1)?;
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Records a nesting depth of `more` levels below the current one. References count too, because users of the value
    /// follow them.
    fn reach(&mut self, more: u32) -> Result<()> {
        let depth = self.depth.saturating_add(more);
        if depth > MAX_DEPTH {
            let what = format!("objects are nested more than {MAX_DEPTH} deep");
            return Err(Error::limit(what).at(self.stream.cursor.offset()));
        }
        self.deepest = self.deepest.max(depth);
        Ok(())
    }

    /// A value in a container or alone.
    pub(super) fn item(&mut self, of: &Type) -> Result<Value> {
        match of {
            Type::Basic(basic) => self.number(*basic),
            Type::Text | Type::RootText => self.text(),
            Type::Sequence(item) => self.deeper(|this| this.sequence(item)),
            Type::Map(key, value) => self.deeper(|this| this.map(key, value)),
            Type::Bits(_) => self.deeper(Self::bits),
            Type::Class(name) => self.class(name),
            Type::Pointer => self.pointer(),
        }
    }

    /// `TString` and `std::string`.
    pub(super) fn text(&mut self) -> Result<Value> {
        let bytes = self.stream.cursor.text_be()?;
        self.text_of(bytes)
    }

    pub(super) fn text_of(&mut self, bytes: &[u8]) -> Result<Value> {
        self.spend(bytes.len(), 1)?;
        Ok(match std::str::from_utf8(bytes) {
            Ok(text) => Value::Text(text.to_owned()),
            Err(_) => Value::Bytes(bytes.to_vec()),
        })
    }

    /// One number outside arrays.
    pub(super) fn number(&mut self, basic: Basic) -> Result<Value> {
        let cursor = &mut self.stream.cursor;
        Ok(match basic {
            Basic::Bool => Value::Bool(cursor.u8()? != 0),
            Basic::I8 => Value::Int(cursor.u8()?.cast_signed().into()),
            Basic::U8 => Value::UInt(cursor.u8()?.into()),
            Basic::I16 => Value::Int(cursor.i16_be()?.into()),
            Basic::U16 => Value::UInt(cursor.u16_be()?.into()),
            Basic::I32 => Value::Int(cursor.i32_be()?.into()),
            Basic::U32 => Value::UInt(cursor.u32_be()?.into()),
            Basic::I64 => Value::Int(cursor.i64_be()?),
            Basic::U64 => Value::UInt(cursor.u64_be()?),
            // Without a range, and outside arrays, both are stored as floats.
            Basic::F32 | Basic::Double32 | Basic::Float16 => Value::Float(cursor.f32_be()?.into()),
            Basic::F64 => Value::Float(cursor.f64_be()?),
        })
    }

    /// Numbers side by side.
    pub(super) fn numbers(&mut self, basic: Basic, count: usize) -> Result<Numbers> {
        macro_rules! take {
            ($variant:ident, $bytes:expr, $read:expr) => {{
                let bytes = count.saturating_mul($bytes);
                let mut cursor = self.stream.cursor.sub(bytes)?;
                // No number is longer in memory than twice its length here.
                self.spend(bytes, 2)?;
                let read = $read;
                Numbers::$variant((0..count).map(|_| read(&mut cursor)).collect::<Result<_>>()?)
            }};
        }
        use crate::wire::Cursor;
        Ok(match basic {
            Basic::Bool => take!(Bool, 1, |c: &mut Cursor<'_>| c.u8().map(|byte| byte != 0)),
            Basic::I8 => take!(I8, 1, |c: &mut Cursor<'_>| c.u8().map(u8::cast_signed)),
            Basic::U8 => take!(U8, 1, Cursor::u8),
            Basic::I16 => take!(I16, 2, Cursor::i16_be),
            Basic::U16 => take!(U16, 2, Cursor::u16_be),
            Basic::I32 => take!(I32, 4, Cursor::i32_be),
            Basic::U32 => take!(U32, 4, Cursor::u32_be),
            Basic::I64 => take!(I64, 8, Cursor::i64_be),
            Basic::U64 => take!(U64, 8, Cursor::u64_be),
            Basic::F32 => take!(F32, 4, Cursor::f32_be),
            Basic::F64 => take!(F64, 8, Cursor::f64_be),
            Basic::Double32 => take!(F64, 4, |c: &mut Cursor<'_>| c.f32_be().map(f64::from)),
            Basic::Float16 => return Err(Error::unsupported("containers of Float16_t are not supported")),
        })
    }

    /// An object of a known class where it stands: `TClass::Streamer`.
    pub(super) fn class(&mut self, name: &str) -> Result<Value> {
        self.work(name.len())?;
        self.deeper(|this| match this.special(name)? {
            Some(value) => Ok(value),
            None => match Type::parse(name)? {
                Type::Class(name) => this.versioned(&name, false),
                container_or_text => this.item(&container_or_text),
            },
        })
    }

    /// A base class where it stands.
    pub(super) fn base(&mut self, name: &str) -> Result<Value> {
        self.work(name.len())?;
        self.deeper(|this| match this.special(name)? {
            Some(value) => Ok(value),
            None => this.versioned(name, true),
        })
    }

    /// An object in a separate branch of a tree: containers have a head there, and classes have none.
    pub(super) fn alone(&mut self, name: &str, described: Option<&Arc<ClassInfo>>) -> Result<Value> {
        self.work(name.len())?;
        match Type::parse(name)? {
            Type::Sequence(_) | Type::Map(..) | Type::Bits(_) => {
                let container = Element::new("", name, 300, ElementKind::Stl { container: 0, item: 0 });
                self.member(&ClassInfo::unknown(name), &container)
            }
            Type::Class(class) => self.deeper(|this| {
                if let Some(value) = this.special(&class)? {
                    return Ok(value);
                }
                let spelling = this.spelling(&class);
                let newest = || this.infos.newest(spelling.unwrap_or(&class));
                let Some(info) = described.or_else(newest).cloned() else {
                    return Err(Error::unsupported(format!("class {class} is not in the streamer info")));
                };
                this.object_of_version(info)
            }),
            other => self.item(&other),
        }
    }

    /// One member of a class.
    pub(super) fn member(&mut self, info: &ClassInfo, member: &Element) -> Result<Value> {
        let mut objects = [Vec::new()];
        self.element(info, member, &mut objects, false)?;
        let [mut members] = objects;
        Ok(members.pop().unwrap_or(Value::Null))
    }

    /// An object as its streamer info describes it: `TBufferFile::ReadClassBuffer`.
    fn versioned(&mut self, name: &str, is_base: bool) -> Result<Value> {
        let start = self.stream.cursor.position();
        let version = self.stream.version()?;
        if !is_base
            && version.end.is_none()
            && let Some(info) = self.headless(name)
        {
            self.stream.go_to(start)?;
            return self.object_of_version(info);
        }
        let read = |this: &mut Self| {
            let info = this.layout(name, &version)?;
            let object = this.object_of_version(info)?;
            this.stream.check_end(version.end).map_err(|error| error.within(name))?;
            Ok(object)
        };
        match (version.end, self.depth) {
            (Some(end), 2..) => self.contained(name, start, end, read),
            _ => read(self),
        }
    }

    /// The members of an object without its head.
    fn object_of_version(&mut self, info: Arc<ClassInfo>) -> Result<Value> {
        let mut objects = self.members(&info, 1, false)?;
        Ok(self.object(info, objects.pop().unwrap_or_default()))
    }

    /// The class of objects that have no version where they have no byte count.
    fn headless(&mut self, name: &str) -> Option<Arc<ClassInfo>> {
        let infos = self.infos;
        let info = infos.newest(infos.spelling(name)?)?;
        let may_lack_head = || infos.may_lack_head(info);
        let is_headless = *self.headless.entry(std::ptr::from_ref(info.as_ref())).or_insert_with(may_lack_head);
        is_headless.then(|| Arc::clone(info))
    }

    /// Reads a part of an object that says how long it is: what cannot be read of it does not spoil the rest.
    pub(super) fn contained(
        &mut self,
        name: &str,
        start: usize,
        end: usize,
        read: impl FnOnce(&mut Self) -> Result<Value>,
    ) -> Result<Value> {
        let marks = self.stream.marks.as_ref().map(Marks::counts);
        let traced = self.traced.as_ref().map_or(0, Vec::len);
        let error = match read(self) {
            Err(error) if !matches!(error.kind(), ErrorKind::Limit | ErrorKind::Memory) => error,
            result => return result,
        };
        self.stream.go_to(end)?;
        if let (Some(marks), Some(counts)) = (&mut self.stream.marks, marks) {
            marks.cut_back(counts);
            // A basket in the record of its tree has no references to what is around it.
            if name != "TBasket" {
                self.opaque.push(start..end);
            }
        }
        if let Some(objects) = &mut self.traced {
            objects.truncate(traced);
        }
        let bytes = self.stream.bytes(start, end);
        self.spend(bytes.len() + name.len() + error.what().len(), 1)?;
        let opaque = Opaque { class_name: name.to_owned(), bytes: bytes.to_vec(), reason: error.to_string() };
        Ok(Value::Opaque(Box::new(opaque)))
    }

    pub(super) fn object(&self, class: Arc<ClassInfo>, members: Vec<Value>) -> Value {
        Value::Object(Arc::new(Object { class, members }))
    }

    /// The layout that fits the head of an object. Classes without a version have their checksum behind it.
    pub(super) fn layout(&mut self, name: &str, version: &Version) -> Result<Arc<ClassInfo>> {
        let spelling = self.spelling(name);
        // ROOT reads its own classes without a description too.
        let described = if spelling.is_some() { self.infos } else { StreamerInfos::known() };
        let known = spelling.unwrap_or(name);
        if version.number == 0 {
            let checksum = self.stream.cursor.clone().u32_be().ok();
            if let Some(info) = checksum.and_then(|checksum| described.find_by_checksum(known, checksum)) {
                self.stream.cursor.take(4)?;
                return Ok(Arc::clone(info));
            }
        }
        if let Some(info) = described.find(known, i32::from(version.number.cast_signed())) {
            return Ok(Arc::clone(info));
        }
        if let Some(types) = cpp::pair(name) {
            // Pairs are the same everywhere, whether or not the file has their checksum.
            if version.number == 0 {
                self.stream.cursor.take(4)?;
            }
            return self.pair(types, name);
        }
        Err(Error::unsupported(match spelling.is_some() {
            true => format!("class {name}: version {} is not in the streamer info", version.number),
            false if described.newest(name).is_some() => {
                format!("class {name} is not in the streamer info, and its version {} is unknown", version.number)
            }
            false => format!("class {name} is not in the streamer info"),
        }))
    }

    /// The layout of a base class; `None` for classes that ROOT streams by custom code.
    pub(super) fn base_layout(&mut self, element: &Element, version: i32) -> Option<Arc<ClassInfo>> {
        if is_special(&element.name) || has_own_format(&element.name) {
            return None;
        }
        let spelling = self.spelling(&element.name)?;
        let by_checksum = element.base_checksum().and_then(|checksum| self.infos.find_by_checksum(spelling, checksum));
        by_checksum.or_else(|| self.infos.find(spelling, version)).cloned()
    }

    /// The name under which the streamer info has a class.
    fn spelling(&self, name: &str) -> Option<&'a str> {
        self.infos.spelling(name)
    }

    /// Whether the streamer info knows a class.
    pub(super) fn knows(&mut self, name: &str) -> bool {
        self.spelling(name).is_some()
    }

    /// An object behind a pointer: `TBufferFile::ReadObjectAny`.
    pub(super) fn pointer(&mut self) -> Result<Value> {
        let at = self.stream.cursor.offset();
        let (class_name, id, end) = match self.stream.pointer()? {
            Pointer::Null => return Ok(Value::Null),
            Pointer::Reference(id) => {
                return match self.known.get(&id).cloned() {
                    Some(Some((value, height))) => self.reach(height).map(|()| value),
                    Some(None) => Ok(Value::Enclosing),
                    None if id == WHOLE_OBJECT as usize => Ok(Value::Whole),
                    // The object is unknown, because it could not be read.
                    None => {
                        let reason = Error::unsupported(format!("reference to a missing object at {id}"));
                        let (class_name, bytes, reason) = (String::new(), Vec::new(), reason.at(at).to_string());
                        self.spend(1, size_of::<Opaque>() + reason.len())?;
                        Ok(Value::Opaque(Box::new(Opaque { class_name, bytes, reason })))
                    }
                };
            }
            Pointer::Object { class_name, id, end } => (class_name, id, end),
        };
        let start = self.stream.cursor.position();
        self.spend(1, size_of::<(usize, Option<(Value, u32)>)>() + size_of::<Object>())?;
        self.known.insert(id, None);
        let outside = std::mem::replace(&mut self.deepest, self.depth);
        let value = self.contained(class_name, start, end, |this| {
            let value = this.class(class_name)?;
            this.stream.check_end(Some(end)).map_err(|error| error.within(class_name))?;
            Ok(value)
        })?;
        let height = self.deepest.saturating_sub(self.depth);
        self.deepest = self.deepest.max(outside);
        // Only objects are shared without a copy.
        match &value {
            Value::Object(object) => self.known.insert(id, Some((Value::Object(Arc::clone(object)), height))),
            _ => self.known.remove(&id),
        };
        Ok(value)
    }

    /// The layout of the items of a type, as ROOT makes it up too.
    pub(super) fn pair(&mut self, types: [&str; 2], name: &str) -> Result<Arc<ClassInfo>> {
        if let Some(known) = self.built_in.get(name) {
            return Ok(Arc::clone(known));
        }
        let layout = pair(types)?;
        self.spend(1, size_of::<ClassInfo>() + 2 * size_of::<Element>() + 4 * name.len())?;
        self.built_in.insert(name.to_owned(), Arc::clone(&layout));
        Ok(layout)
    }

    /// The layout of a class that ROOT streams by custom code.
    pub(super) fn built_in(&mut self, name: &str) -> Arc<ClassInfo> {
        if let Some(known) = self.built_in.get(name) {
            return Arc::clone(known);
        }
        let layout = Arc::new(special_layout(name).unwrap_or_default());
        self.built_in.insert(name.to_owned(), Arc::clone(&layout));
        layout
    }
}

/// The layout of a `std::pair`.
fn pair([first, second]: [&str; 2]) -> Result<Arc<ClassInfo>> {
    let elements = vec![member("first", first)?, member("second", second)?];
    let (title, bits, version, checksum) = (Vec::new(), 0, 0, 0);
    Ok(Arc::new(ClassInfo { name: format!("pair<{first},{second}>"), title, bits, version, checksum, elements }))
}

/// A member of a type, as ROOT would describe it.
fn member(name: &str, type_name: &str) -> Result<Element> {
    let (code, kind) = match Type::parse(type_name)? {
        Type::Basic(basic) => (basic.code(), ElementKind::Basic),
        Type::RootText => (65, ElementKind::String),
        Type::Text => (300, ElementKind::StlString { container: 365, item: 365 }),
        Type::Class(_) => (62, ElementKind::ObjectAny),
        Type::Pointer => (69, ElementKind::ObjectAnyPointer),
        Type::Sequence(_) | Type::Map(..) | Type::Bits(_) => (300, ElementKind::Stl { container: 0, item: 0 }),
    };
    Ok(Element::new(name, type_name, code, kind))
}

//! Reading objects of the classes that ROOT streams by custom code.

use std::sync::Arc;

use super::classes::{array_item, has_own_format, layout_of, symmetric_matrix_item};
use super::cpp::{Basic, Type};
use super::reader::Reader;
use super::value::{ITEM, TracedMember, Value};
use crate::streamer::Version;
use crate::{Error, Result};

/// Codes of types.
const INT: i32 = 3;
const LONG: i32 = 16;
const LONGS: i32 = 56;
const OBJECT_POINTER: i32 = 64;
const STRING: i32 = 65;
/// Bit of a `TClonesArray` whose items are stored member by member (`TClonesArray::kBypassStreamer`).
const IS_MEMBER_WISE: u32 = 1 << 12;

impl Reader<'_> {
    /// An object of a class that is known here; `None` for all others.
    pub(super) fn special(&mut self, name: &str) -> Result<Option<Value>> {
        if let Some(basic) = array_item(name) {
            return self.number_array(name, basic).map(Some);
        }
        if let Some(item) = symmetric_matrix_item(name) {
            return self.symmetric_matrix(name, item).map(Some);
        }
        Ok(Some(match name {
            "TObject" => self.root_object()?,
            "TNamed" => self.named()?,
            "TObjString" => self.text_object()?,
            "TObjArray" => self.array()?,
            "TClonesArray" => self.clones()?,
            "TRef" => self.reference()?,
            "TRefArray" => self.references()?,
            "TTreeIndex" => self.tree_index()?,
            "TList" | "THashList" | "TSortedList" => self.linked_list(name)?,
            "TDatime" => {
                let datime = Value::UInt(self.stream.cursor.u32_be()?.into());
                let info = self.built_in("TDatime");
                self.object(info, vec![datime])
            }
            _ if has_own_format(name) => {
                return Err(Error::unsupported(format!("class {name} has a custom format, which is not supported")));
            }
            _ => return Ok(None),
        }))
    }

    fn root_object(&mut self) -> Result<Value> {
        let (number, bits) = self.stream.object()?;
        self.spend(3, size_of::<Value>())?;
        Ok(self.object_of(number, bits))
    }

    fn object_of(&mut self, number: u32, bits: u32) -> Value {
        let info = self.built_in("TObject");
        self.object(info, vec![Value::UInt(number.into()), Value::UInt(bits.into())])
    }

    fn named(&mut self) -> Result<Value> {
        let version = self.stream.version()?;
        self.spend(4, size_of::<Value>())?;
        let info = self.built_in("TNamed");
        let traced = self.trace(&info)?;
        let object = self.root_object()?;
        let start = self.stream.cursor.position();
        let name = self.text()?;
        self.trace_member(traced, "fName", STRING, start);
        let title = self.text()?;
        self.stream.check_end(version.end)?;
        Ok(self.object(info, vec![object, name, title]))
    }

    fn text_object(&mut self) -> Result<Value> {
        let version = self.stream.version()?;
        self.spend(3, size_of::<Value>())?;
        let members = vec![self.root_object()?, self.text()?];
        self.stream.check_end(version.end)?;
        let info = self.built_in("TObjString");
        Ok(self.object(info, members))
    }

    /// What precedes the objects of a collection: a `TObject` and a name, except before ROOT 3.
    fn head_of_collection(&mut self, version: u16) -> Result<(Value, Value)> {
        let object = if version > 2 { self.root_object()? } else { self.object_of(0, 0) };
        let name = if version > 1 { self.text()? } else { Value::Text(String::new()) };
        Ok((object, name))
    }

    fn array(&mut self) -> Result<Value> {
        let version = self.stream.version()?;
        self.spend(5, size_of::<Value>())?;
        let (object, name) = self.head_of_collection(version.number)?;
        let info = self.built_in("TObjArray");
        let traced = self.trace(&info)?;
        let start = self.stream.cursor.position();
        let count = self.stream.count()?;
        self.trace_member(traced, "fSize", INT, start);
        let lower_bound = Value::Int(self.stream.cursor.i32_be()?.into());
        let mut list = self.list(count)?;
        if traced.is_some() {
            self.spend(count, size_of::<TracedMember>() + ITEM.len())?;
        }
        for _ in 0..count {
            let start = self.stream.cursor.position();
            list.push(self.pointer()?);
            self.trace_member(traced, ITEM, OBJECT_POINTER, start);
        }
        self.stream.check_end(version.end)?;
        Ok(self.object(info, vec![object, name, lower_bound, Value::List(list)]))
    }

    /// A `TClonesArray`: the name and version of the class of all items, then the items, usually member by member.
    fn clones(&mut self) -> Result<Value> {
        let version = self.stream.version()?;
        if version.number < 4 {
            return Err(Error::unsupported(format!(
                "version {} of class TClonesArray is not supported",
                version.number
            )));
        }
        self.spend(5, size_of::<Value>())?;
        let (number, bits) = self.stream.object()?;
        let name = self.text()?;
        let described = self.stream.cursor.text_be()?;
        let count = self.stream.cursor.i32_be()?.unsigned_abs() as usize;
        let lower_bound = Value::Int(self.stream.cursor.i32_be()?.into());
        if count > self.remaining() {
            return Err(Error::corrupt(format!("TClonesArray of {count} items is longer than the object"))
                .at(self.stream.cursor.offset()));
        }
        let described = std::str::from_utf8(described).ok().and_then(|text| text.rsplit_once(';'));
        let Some((class, class_version)) = described.and_then(|(class, it)| Some((class, it.parse::<i16>().ok()?)))
        else {
            return Err(Error::corrupt("TClonesArray lacks the class of its items").at(self.stream.cursor.offset()));
        };
        let mut list = self.list(count)?;
        if bits & IS_MEMBER_WISE != 0 {
            let head = Version { number: class_version.cast_unsigned(), is_member_wise: true, end: None };
            let info = self.layout(class, &head)?;
            let items = self.members(&info, count, true)?;
            list.extend(items.into_iter().map(|members| self.object(info.clone(), members)));
        } else {
            for _ in 0..count {
                let is_there = self.stream.cursor.u8()? != 0;
                list.push(if is_there { self.class(class)? } else { Value::Null });
            }
        }
        self.stream.check_end(version.end)?;
        let (object, info) = (self.object_of(number, bits), self.built_in("TClonesArray"));
        Ok(self.object(info, vec![object, name, lower_bound, Value::List(list)]))
    }

    /// A `TRef`: the number of an object, and of the process that made it.
    fn reference(&mut self) -> Result<Value> {
        let (number, bits, process) = self.stream.reference()?;
        self.spend(4, size_of::<Value>())?;
        let process = match process {
            Some(process) => Value::UInt(process.into()),
            None => self.text()?,
        };
        let (object, info) = (self.object_of(number, bits), self.built_in("TRef"));
        Ok(self.object(info, vec![object, process]))
    }

    fn references(&mut self) -> Result<Value> {
        let version = self.stream.version()?;
        self.spend(6, size_of::<Value>())?;
        let (object, name) = (self.root_object()?, self.text()?);
        let count = self.stream.count()?;
        let lower_bound = Value::Int(self.stream.cursor.i32_be()?.into());
        let process = Value::UInt(self.stream.cursor.u16_be()?.into());
        let numbers = Value::Numbers(self.numbers(Basic::U32, count)?);
        self.stream.check_end(version.end)?;
        let info = self.built_in("TRefArray");
        Ok(self.object(info, vec![object, name, lower_bound, process, numbers]))
    }

    /// A `TTreeIndex`: the expressions, their values in ascending order, and the entries that have them.
    fn tree_index(&mut self) -> Result<Value> {
        let version = self.stream.version()?;
        self.spend(7, size_of::<Value>())?;
        let info = self.built_in("TTreeIndex");
        let traced = self.trace(&info)?;
        let base = self.class("TVirtualIndex")?;
        let (major, minor) = (self.text()?, self.text()?);
        let start = self.stream.cursor.position();
        let count = self.stream.cursor.i64_be()?;
        self.trace_member(traced, "fN", LONG, start);
        let wanted = usize::try_from(count)
            .map_err(|_| Error::corrupt(format!("TTreeIndex has a negative number of entries: {count}")))?;
        let mut longs = |name| {
            let start = self.stream.cursor.position();
            let numbers = self.numbers(Basic::I64, wanted)?;
            self.trace_member(traced, name, LONGS, start);
            Ok(Value::Numbers(numbers))
        };
        let values = longs("fIndexValues")?;
        // Both values were one number.
        let minor_values = if version.number < 2 { Value::Null } else { longs("fIndexValuesMinor")? };
        let entries = longs("fIndex")?;
        self.stream.check_end(version.end)?;
        Ok(self.object(info, vec![base, major, minor, Value::Int(count), values, minor_values, entries]))
    }

    /// A `TMatrixTSym`: its base, whose head it has, then the upper triangle, row by row (`TMatrixTSym::Streamer`).
    fn symmetric_matrix(&mut self, name: &str, item: &str) -> Result<Value> {
        let Type::Basic(basic) = Type::parse(item)? else {
            return Err(Error::unsupported(format!("class {name} is not supported")));
        };
        let base_name = format!("TMatrixTBase<{item}>");
        let version = self.stream.version()?;
        self.spend(2, size_of::<Value>())?;
        let info = self.layout(&base_name, &version)?;
        let mut bases = self.members(&info, 1, false)?;
        self.stream.check_end(version.end).map_err(|error| error.within(name))?;
        let base = self.object(info, bases.pop().unwrap_or_default());
        let rows = match base.as_object().and_then(|base| base.get("fNrows")) {
            Some(&Value::Int(rows)) => usize::try_from(rows).ok(),
            _ => None,
        };
        let count = rows.and_then(|rows| Some(rows.checked_mul(rows.checked_add(1)?)? / 2));
        let count = count.ok_or_else(|| Error::corrupt(format!("{name} lacks a valid number of rows")))?;
        let elements = Value::Numbers(self.numbers(basic, count)?);
        let info = Arc::new(layout_of(name, &[&base_name], &["fElements"]));
        Ok(self.object(info, vec![base, elements]))
    }

    /// The name of a class, with a zero behind it that its length does not count.
    pub(super) fn class_name(&mut self) -> Result<String> {
        let length = self.stream.cursor.u8()?;
        let name = self.stream.cursor.take(length.into())?;
        self.stream.cursor.u8()?;
        let name = std::str::from_utf8(name).map_err(|_| Error::corrupt("the name of a class is not UTF-8"))?;
        Ok(name.to_owned())
    }

    fn linked_list(&mut self, name: &str) -> Result<Value> {
        let version = self.stream.version()?;
        self.spend(4, size_of::<Value>())?;
        let (object, title) = self.head_of_collection(version.number)?;
        let count = self.stream.count()?;
        let mut list = self.list(count)?;
        for _ in 0..count {
            list.push(self.pointer()?);
            if version.number >= 4 {
                self.stream.option(version.number)?;
            }
        }
        self.stream.check_end(version.end)?;
        let info = self.built_in(name);
        Ok(self.object(info, vec![object, title, Value::List(list)]))
    }

    fn number_array(&mut self, name: &str, basic: Basic) -> Result<Value> {
        let count = self.stream.cursor.i32_be()?;
        let length = usize::try_from(count)
            .map_err(|_| Error::corrupt(format!("{name} has a negative number of items: {count}")))?;
        self.spend(3, size_of::<Value>())?;
        let numbers = Value::Numbers(self.numbers(basic, length)?);
        let info = self.built_in(name);
        Ok(self.object(info, vec![Value::Int(count.into()), numbers]))
    }
}

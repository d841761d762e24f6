//! Classes that ROOT streams by code of its own, and so differently from what their streamer info says.

use super::cpp::Basic;
use super::reader::Reader;
use super::value::Value;
use crate::{Error, Result};

/// Further classes of that sort, which are not read: their streamer info would mislead.
const NOT_READ: [&str; 11] = [
    "TBits",
    "TBtree",
    "TClonesArray",
    "TDirectory",
    "TExMap",
    "TMap",
    "TQObject",
    "TRef",
    "TRefArray",
    "TTree",
    "TUUID",
];

impl Reader<'_> {
    /// An object of a class that is known here; `None` for all others.
    pub(super) fn special(&mut self, name: &str) -> Result<Option<Value>> {
        Ok(Some(match name {
            "TObject" => self.root_object()?,
            "TNamed" => self.named()?,
            "TObjString" => self.text_object()?,
            "TObjArray" => self.array()?,
            "TList" | "THashList" | "TSortedList" => self.linked_list()?,
            "TDatime" => {
                let datime = Value::UInt(self.stream.cursor.u32_be()?.into());
                let info = self.built_in("TDatime", &["fDatime"]);
                self.object(info, vec![datime])
            }
            "TArrayC" => self.number_array("TArrayC", Basic::I8)?,
            "TArrayS" => self.number_array("TArrayS", Basic::I16)?,
            "TArrayI" => self.number_array("TArrayI", Basic::I32)?,
            "TArrayL" => self.number_array("TArrayL", Basic::I64)?,
            "TArrayL64" => self.number_array("TArrayL64", Basic::I64)?,
            "TArrayF" => self.number_array("TArrayF", Basic::F32)?,
            "TArrayD" => self.number_array("TArrayD", Basic::F64)?,
            _ if NOT_READ.contains(&name) => {
                return Err(Error::unsupported(format!("class {name}, which has a format of its own")));
            }
            _ => return Ok(None),
        }))
    }

    fn root_object(&mut self) -> Result<Value> {
        let (number, bits) = self.stream.object()?;
        self.spend(3, size_of::<Value>())?;
        let info = self.built_in("TObject", &["fUniqueID", "fBits"]);
        Ok(self.object(info, vec![Value::UInt(number.into()), Value::UInt(bits.into())]))
    }

    fn named(&mut self) -> Result<Value> {
        let version = self.stream.version()?;
        self.spend(4, size_of::<Value>())?;
        let members = vec![self.root_object()?, self.text()?, self.text()?];
        self.stream.check_end(version.end)?;
        let info = self.built_in("TNamed", &["TObject", "fName", "fTitle"]);
        Ok(self.object(info, members))
    }

    fn text_object(&mut self) -> Result<Value> {
        let version = self.stream.version()?;
        self.spend(3, size_of::<Value>())?;
        let members = vec![self.root_object()?, self.text()?];
        self.stream.check_end(version.end)?;
        let info = self.built_in("TObjString", &["TObject", "fString"]);
        Ok(self.object(info, members))
    }

    fn array(&mut self) -> Result<Value> {
        let version = self.stream.version()?;
        if version.number < 3 {
            return Err(Error::unsupported(format!("class TObjArray, version {}", version.number)));
        }
        self.spend(5, size_of::<Value>())?;
        let (object, name) = (self.root_object()?, self.text()?);
        let count = self.stream.count()?;
        let lower_bound = Value::Int(self.stream.cursor.i32_be()?.into());
        let mut list = self.list(count)?;
        for _ in 0..count {
            list.push(self.pointer()?);
        }
        self.stream.check_end(version.end)?;
        let info = self.built_in("TObjArray", &["TObject", "fName", "fLowerBound", "fObjects"]);
        Ok(self.object(info, vec![object, name, lower_bound, Value::List(list)]))
    }

    fn linked_list(&mut self) -> Result<Value> {
        let version = self.stream.version()?;
        if version.number < 4 {
            return Err(Error::unsupported(format!("class TList, version {}", version.number)));
        }
        self.spend(4, size_of::<Value>())?;
        let (object, name) = (self.root_object()?, self.text()?);
        let count = self.stream.count()?;
        let mut list = self.list(count)?;
        for _ in 0..count {
            list.push(self.pointer()?);
            self.stream.option(version.number)?;
        }
        self.stream.check_end(version.end)?;
        let info = self.built_in("TList", &["TObject", "fName", "fObjects"]);
        Ok(self.object(info, vec![object, name, Value::List(list)]))
    }

    fn number_array(&mut self, name: &'static str, basic: Basic) -> Result<Value> {
        let count = self.stream.cursor.i32_be()?;
        let length = usize::try_from(count).map_err(|_| Error::corrupt(format!("{name} of {count} items")))?;
        self.spend(3, size_of::<Value>())?;
        let numbers = Value::Numbers(self.numbers(basic, length)?);
        let info = self.built_in(name, &["fN", "fArray"]);
        Ok(self.object(info, vec![Value::Int(count.into()), numbers]))
    }
}

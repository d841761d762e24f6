//! Objects of files as JSON, with the names of ROOT's `TBufferJSON`.
//!
//! | value | JSON |
//! |---|---|
//! | object | object: its class as `_typename`, then the members of its bases, then its own |
//! | the same object again | `{"$ref": n}`: the object number n, counted from 0 as they begin |
//! | a pointer to an object around this place | `{"$ref": null}` |
//! | a pointer to the object of the whole record | `{"$ref": 0}` |
//! | `TArray*`, fixed arrays, sequences | array |
//! | `TList`, `TObjArray` and alike | object with `name` and the objects as `arr` |
//! | map | array of `[key, value]` |
//! | number, string | as of [entries](super) |
//! | object that cannot be read | object with `_typename`, the reason as `unreadable`, and its bytes as `base64` |

use std::collections::HashMap;
use std::sync::Arc;

use tupelo::object::{Numbers, Object, Opaque, Value, array_item};

use super::{Text, separated};

/// Class of an object.
const CLASS: &str = "_typename";
/// What `TBufferJSON` calls the members of collections of objects.
const COLLECTION: [(&str, &str); 2] = [("fName", "name"), ("fObjects", "arr")];
const COLLECTIONS: [&str; 5] = ["TList", "THashList", "TSortedList", "TObjArray", "TClonesArray"];

/// The text of an object is longer than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong;

/// One value as JSON, of at most about `max_bytes` bytes.
pub(crate) fn to_json(value: &Value, max_bytes: u64) -> Result<Text, TooLong> {
    let mut writer = Writer { out: Text::default(), max_bytes, shared: HashMap::new(), objects: 0 };
    writer.value(value)?;
    Ok(writer.out)
}

struct Writer {
    out: Text,
    /// The names of members, which a file has once for each class, repeat in the text.
    max_bytes: u64,
    /// The numbers of objects that several pointers lead to.
    shared: HashMap<*const Object, u64>,
    objects: u64,
}

/// The members that a JSON object has so far, by name.
type Names = HashMap<String, usize>;

impl Writer {
    fn value(&mut self, value: &Value) -> Result<(), TooLong> {
        match value {
            Value::Null => self.out.put("null"),
            Value::Bool(value) => self.out.put(if *value { "true" } else { "false" }),
            Value::Int(value) => self.out.integer(*value),
            Value::UInt(value) => self.out.integer(*value),
            Value::Float(value) => self.out.float(*value),
            Value::Text(text) => self.out.string(text),
            Value::Bytes(bytes) => {
                self.objects += 1;
                self.out.odd_strings += 1;
                self.out.put("{\"base64\":");
                self.out.base64(bytes);
                self.out.byte(b'}');
            }
            Value::Numbers(numbers) => self.numbers(numbers),
            // However many empty arrays there are.
            Value::Grid(_, numbers) if numbers.is_empty() => self.out.put("[]"),
            Value::Grid(lengths, numbers) => {
                let mut texts = Vec::new();
                each_number(numbers, |text| texts.push(text));
                self.grid(lengths, &mut texts.into_iter());
            }
            Value::List(items) => self.list(items, Self::value)?,
            Value::Map(pairs) => self.list(pairs, |this, (key, value)| {
                this.out.byte(b'[');
                this.value(key)?;
                this.out.byte(b',');
                this.value(value)?;
                this.out.byte(b']');
                Ok(())
            })?,
            Value::Object(object) => self.object(object)?,
            Value::Enclosing => self.out.put("{\"$ref\":null}"),
            Value::Whole => self.out.put("{\"$ref\":0}"),
            Value::Opaque(opaque) => self.opaque(opaque),
        }
        match self.out.bytes.len() as u64 > self.max_bytes {
            true => Err(TooLong),
            false => Ok(()),
        }
    }

    fn list<T>(&mut self, items: &[T], write: impl Fn(&mut Self, &T) -> Result<(), TooLong>) -> Result<(), TooLong> {
        self.out.byte(b'[');
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.out.byte(b',');
            }
            write(self, item)?;
        }
        self.out.byte(b']');
        Ok(())
    }

    fn object(&mut self, object: &Arc<Object>) -> Result<(), TooLong> {
        if array_item(object.class_name()).is_some()
            && let Some(numbers) = object.get("fArray")
        {
            return self.value(numbers);
        }
        // Only objects behind pointers have several owners.
        if Arc::strong_count(object) > 1 {
            if let Some(number) = self.shared.get(&Arc::as_ptr(object)) {
                self.out.put("{\"$ref\":");
                self.out.integer(*number);
                self.out.byte(b'}');
                return Ok(());
            }
            self.shared.insert(Arc::as_ptr(object), self.objects);
        }
        self.objects += 1;
        let mut names = Names::new();
        self.name(CLASS, "", &mut names);
        self.out.string(object.class_name());
        self.members(object, &mut names)?;
        self.out.byte(b'}');
        Ok(())
    }

    /// The members of bases, then those of the class itself.
    fn members(&mut self, object: &Object, names: &mut Names) -> Result<(), TooLong> {
        let class = object.class_name();
        for (name, base) in object.bases() {
            match base {
                Value::Object(base) if array_item(base.class_name()).is_none() => self.members(base, names)?,
                // A base of numbers is called as its member.
                Value::Object(base) => {
                    self.name("fArray", base.class_name(), names);
                    self.object(base)?;
                }
                other => {
                    self.name(name, class, names);
                    self.value(other)?;
                }
            }
        }
        for (name, value) in object.members() {
            let renamed = COLLECTION.iter().find(|(known, _)| *known == name && COLLECTIONS.contains(&class));
            self.name(renamed.map_or(name, |(_, new)| new), class, names);
            self.value(value)?;
        }
        Ok(())
    }

    /// Begins a member. If a base has another one of the same name, it is called `CLASS::NAME`.
    fn name(&mut self, name: &str, class: &str, names: &mut Names) {
        self.out.byte(if names.is_empty() { b'{' } else { b',' });
        let times = names.entry(name.to_owned()).or_default();
        *times += 1;
        match *times {
            1 => self.out.string(name),
            2 => self.out.string(&format!("{class}::{name}")),
            times => self.out.string(&format!("{class}::{name};{times}")),
        }
        self.out.byte(b':');
    }

    fn opaque(&mut self, opaque: &Opaque) {
        self.objects += 1;
        self.out.put("{\"_typename\":");
        self.out.string(&opaque.class_name);
        self.out.put(",\"unreadable\":");
        self.out.string(&opaque.reason);
        self.out.put(",\"base64\":");
        self.out.base64(&opaque.bytes);
        self.out.byte(b'}');
    }

    fn numbers(&mut self, numbers: &Numbers) {
        self.out.byte(b'[');
        let out = &mut self.out;
        match numbers {
            Numbers::Bool(values) => {
                separated(values, out, |value, out| out.put(if *value { "true" } else { "false" }))
            }
            Numbers::I8(values) => separated(values, out, |value, out| out.integer(*value)),
            Numbers::U8(values) => separated(values, out, |value, out| out.integer(*value)),
            Numbers::I16(values) => separated(values, out, |value, out| out.integer(*value)),
            Numbers::U16(values) => separated(values, out, |value, out| out.integer(*value)),
            Numbers::I32(values) => separated(values, out, |value, out| out.integer(*value)),
            Numbers::U32(values) => separated(values, out, |value, out| out.integer(*value)),
            Numbers::I64(values) => separated(values, out, |value, out| out.integer(*value)),
            Numbers::U64(values) => separated(values, out, |value, out| out.integer(*value)),
            Numbers::F32(values) => separated(values, out, |value, out| out.float(*value)),
            Numbers::F64(values) => separated(values, out, |value, out| out.float(*value)),
        }
        self.out.byte(b']');
    }

    /// Arrays in arrays; the last length is that of the innermost ones.
    fn grid(&mut self, lengths: &[usize], texts: &mut std::vec::IntoIter<Vec<u8>>) {
        let Some((length, inner)) = lengths.split_first() else {
            self.out.bytes.extend(texts.next().unwrap_or_default());
            return;
        };
        self.out.byte(b'[');
        for index in 0..*length {
            if index > 0 {
                self.out.byte(b',');
            }
            self.grid(inner, texts);
        }
        self.out.byte(b']');
    }
}

/// Visits numbers as texts.
fn each_number(numbers: &Numbers, mut visit: impl FnMut(Vec<u8>)) {
    let mut writer = Writer { out: Text::default(), max_bytes: u64::MAX, shared: HashMap::new(), objects: 0 };
    writer.numbers(numbers);
    let text = writer.out.bytes;
    let inside = text.get(1..text.len() - 1).filter(|inside| !inside.is_empty());
    inside.into_iter().flat_map(|inside| inside.split(|byte| *byte == b',')).for_each(|text| visit(text.to_vec()));
}

#[cfg(test)]
mod tests {
    use tupelo::StreamerInfos;

    use super::*;

    fn object(class: &str, members: Vec<(&str, Value)>) -> Arc<Object> {
        let members = members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Arc::new(Object::new(class, members, &StreamerInfos::default()).expect("an object"))
    }

    fn json(value: &Value) -> String {
        String::from_utf8(to_json(value, 1 << 20).expect("a short text").bytes).expect("UTF-8")
    }

    /// A list, and in it two times the same list, and so on: two to the power of the depth.
    fn nested(depth: u32) -> Value {
        let below = || Value::List(Vec::new());
        (0..depth).fold(Value::Object(object("TList", vec![("fObjects", below())])), |inner, _| {
            Value::Object(object("TList", vec![("fObjects", Value::List(vec![inner.clone(), inner]))]))
        })
    }

    #[test]
    fn shared_objects_are_written_once() {
        let text = json(&nested(2));
        let list = |items: &str| format!(r#"{{"_typename":"TList","arr":[{items}]}}"#);
        let inner = list("");
        let expected = list(&format!(r#"{},{{"$ref":1}}"#, list(&format!(r#"{inner},{{"$ref":2}}"#))));
        let plain = |text: &str| {
            let mut value: serde_json::Value = serde_json::from_str(text).expect("JSON");
            fn strip(value: &mut serde_json::Value) {
                if let Some(members) = value.as_object_mut() {
                    members.retain(|name, _| ["_typename", "arr", "$ref"].contains(&name.as_str()));
                    members.values_mut().for_each(strip);
                }
                value.as_array_mut().into_iter().flatten().for_each(strip);
            }
            strip(&mut value);
            value
        };
        assert_eq!(plain(&text), plain(&expected), "{text}");
        assert!(json(&nested(60)).len() < 60 * 200);
    }

    #[test]
    fn values_have_forms_of_json() {
        for (value, expected) in [
            (Value::Null, "null"),
            (Value::UInt(u64::MAX), "18446744073709551615"),
            (Value::Float(f64::NAN), "\"NaN\""),
            (Value::Float(0.1), "0.1"),
            (Value::Bytes(vec![0xff]), "{\"base64\":\"/w==\"}"),
            (Value::Numbers(Numbers::F32(vec![0.1, f32::NEG_INFINITY])), "[0.1,\"-Infinity\"]"),
            (Value::Grid(vec![2, 3], Numbers::I8(vec![1, 2, 3, 4, 5, -6])), "[[1,2,3],[4,5,-6]]"),
            (Value::Grid(vec![1 << 40, 0], Numbers::I8(Vec::new())), "[]"),
            (Value::Map(vec![(Value::Text("a".into()), Value::Bool(true))]), "[[\"a\",true]]"),
            (Value::Enclosing, "{\"$ref\":null}"),
            (Value::Whole, "{\"$ref\":0}"),
        ] {
            assert_eq!(json(&value), expected);
        }
        let array = object("TArrayI", vec![("fArray", Value::Numbers(Numbers::I32(vec![1, 2])))]);
        assert_eq!(json(&Value::Object(array)), "[1,2]");
        assert_eq!(to_json(&Value::Text("x".repeat(9)), 8).err(), Some(TooLong));
    }

    #[test]
    fn members_of_the_same_name_are_told_apart() {
        let mut writer = Writer { out: Text::default(), max_bytes: 99, shared: HashMap::new(), objects: 0 };
        let mut names = Names::new();
        for class in ["A", "B", "B"] {
            writer.name("x", class, &mut names);
        }
        assert_eq!(writer.out.bytes, br#"{"x":,"B::x":,"B::x;3":"#);
    }
}

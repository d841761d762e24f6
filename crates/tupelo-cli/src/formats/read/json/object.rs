//! One JSON object whose keys are all different.
//!
//! `serde_json` itself keeps the last of several members with the same key.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::map::{Entry, Map};
use serde_json::{Number, Value};

/// Why a text is not one JSON object.
#[derive(Debug)]
pub(super) enum Wrong {
    /// It is invalid, or something else.
    Text(String),
    /// An object in it has this key more than once.
    Repeated(String),
}

/// Parses a text that is one object.
pub(super) fn object(text: &[u8]) -> Result<Map<String, Value>, Wrong> {
    let mut repeated = None;
    let mut input = serde_json::Deserializer::from_slice(text);
    let parsed = Unique(&mut repeated).deserialize(&mut input).and_then(|value| input.end().map(|()| value));
    match (parsed, repeated) {
        (_, Some(key)) => Err(Wrong::Repeated(key)),
        (Ok(Value::Object(object)), None) => Ok(object),
        (Ok(_), None) => Err(Wrong::Text("found another value".to_owned())),
        (Err(error), None) => Err(Wrong::Text(error.to_string())),
    }
}

/// Any value; notes a key that an object in it repeats.
struct Unique<'k>(&'k mut Option<String>);

impl<'de> DeserializeSeed<'de> for Unique<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Value, D::Error> {
        input.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unique<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = items.next_element_seed(Unique(self.0))? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            match object.entry(key) {
                Entry::Vacant(place) => {
                    place.insert(members.next_value_seed(Unique(self.0))?);
                }
                Entry::Occupied(place) => {
                    *self.0 = Some(place.key().clone());
                    return Err(A::Error::custom("a key is repeated"));
                }
            }
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_crate() {
        let text = br#"{"a":[1,-2,18446744073709551615,0.1,1e300,null,true,{"b":"\u00e9","c":{}}],"b":[],"d":"x"}"#;
        let parsed = object(text).expect("an object");
        assert_eq!(Value::Object(parsed.clone()), serde_json::from_slice::<Value>(text).expect("a value"));
        assert_eq!(parsed.keys().collect::<Vec<_>>(), ["a", "b", "d"]);
    }

    /// Defect: the last of the members was taken.
    #[test]
    fn repeated_keys_are_named() {
        for (text, repeated) in [
            (r#"{"a":1,"b":2,"a":3}"#, "a"),
            (r#"{"a":{"b":1,"b":1}}"#, "b"),
            (r#"{"a":[{"b":1},{"c":1,"\u0063":2}]}"#, "c"),
        ] {
            assert!(matches!(object(text.as_bytes()), Err(Wrong::Repeated(key)) if key == repeated), "{text}");
        }
        assert!(object(br#"{"a":{"b":1},"b":{"a":1}}"#).is_ok());
        for text in ["[1]", "{} {}", "{", "", "{\"a\":1e999}", &"[".repeat(100_000)] {
            assert!(matches!(object(text.as_bytes()), Err(Wrong::Text(_))), "{text}");
        }
    }
}

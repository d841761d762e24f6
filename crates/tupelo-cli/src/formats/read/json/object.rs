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
    /// This integer in it does not fit in 64 bits.
    Large(String),
}

/// What parsing noticed.
#[derive(Default)]
struct Seen {
    /// A key that an object repeats.
    repeated: Option<String>,
    /// Whether a number is beyond the integers of 64 bits, which the crate then rounds.
    has_large: bool,
}

/// Parses a text that is one object.
pub(super) fn object(text: &[u8]) -> Result<Map<String, Value>, Wrong> {
    let mut seen = Seen::default();
    let mut input = serde_json::Deserializer::from_slice(text);
    let parsed = Unique(&mut seen).deserialize(&mut input).and_then(|value| input.end().map(|()| value));
    match (parsed, seen.repeated) {
        (_, Some(key)) => Err(Wrong::Repeated(key)),
        (Ok(Value::Object(object)), None) => match large_integer(text).filter(|_| seen.has_large) {
            Some(integer) => Err(Wrong::Large(integer)),
            None => Ok(object),
        },
        (Ok(_), None) => Err(Wrong::Text("found another value".to_owned())),
        (Err(error), None) => Err(Wrong::Text(error.to_string())),
    }
}

/// The first integer of a JSON text that does not fit in 64 bits.
fn large_integer(text: &[u8]) -> Option<String> {
    let (mut in_text, mut is_escaped) = (false, false);
    let mut outside = |byte: &u8| {
        let was_in_text = in_text;
        in_text ^= *byte == b'"' && !is_escaped;
        is_escaped = was_in_text && *byte == b'\\' && !is_escaped;
        !was_in_text && matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
    };
    let kept: Vec<u8> = text.iter().map(|byte| if outside(byte) { *byte } else { b' ' }).collect();
    let text = String::from_utf8(kept).unwrap_or_default();
    let is_integer = |word: &&str| word.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
    let is_large = |word: &&str| word.parse::<i64>().is_err() && word.parse::<u64>().is_err();
    text.split_whitespace().filter(is_integer).find(|word| word.len() > 1 && is_large(word)).map(str::to_owned)
}

/// Any value.
struct Unique<'k>(&'k mut Seen);

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
        self.0.has_large |= value.abs() >= i64::MAX as f64;
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
                    self.0.repeated = Some(place.key().clone());
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

    /// Defect: they were rounded to doubles.
    #[test]
    fn integers_of_more_than_64_bits_are_named() {
        for (text, large) in [
            (r#"{"a":18446744073709551616}"#, Some("18446744073709551616")),
            (r#"{"a":[1,-9223372036854775809],"b":"99999999999999999999"}"#, Some("-9223372036854775809")),
            (r#"{"a":1e20,"b":18446744073709551615,"c":-9223372036854775808,"d\"":"1\\","e":1e19}"#, None),
            (r#"{"a":100000000000000000000.0,"b":"\\\"99999999999999999999"}"#, None),
        ] {
            match (object(text.as_bytes()), large) {
                (Err(Wrong::Large(found)), Some(expected)) => assert_eq!(found, expected),
                (found, expected) => assert!(found.is_ok() && expected.is_none(), "{text}: {found:?}"),
            }
        }
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

//! Headers of NumPy arrays: a Python literal.

use std::io::Read;

use super::values::{Dtype, Member};

/// The first bytes of an array.
const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Maximum length of the text of a header.
const MAX_HEADER_BYTES: u64 = 1 << 20;
/// Maximum number of brackets around a value.
const MAX_DEPTH: usize = 32;

/// What precedes the values of an array.
#[derive(Debug)]
pub(in crate::formats::read) struct Header {
    /// The type of an entry, which is everything below the first dimension.
    pub(in crate::formats::read) entry: Dtype,
    /// The first dimension.
    pub(in crate::formats::read) entries: u64,
    /// Bytes before the first value.
    pub(in crate::formats::read) length: u64,
}

/// A Python literal.
#[derive(Debug, Clone, PartialEq)]
enum Literal {
    Text(String),
    Number(u64),
    Bool(bool),
    /// A list or tuple.
    Sequence(Vec<Literal>),
    Dict(Vec<(String, Literal)>),
}

impl Header {
    /// Reads a header.
    ///
    /// # Errors
    /// Those of the reader, and a text for invalid headers and for arrays that are not supported.
    pub(in crate::formats::read) fn read(input: &mut impl Read) -> Result<Self, String> {
        let truncated = |error: std::io::Error| format!("the header of the array is incomplete: {error}");
        let mut start = [0; 8];
        input.read_exact(&mut start).map_err(|_| "is not a NumPy array".to_owned())?;
        if !start.starts_with(MAGIC) {
            return Err("is not a NumPy array".to_owned());
        }
        let [.., major, minor] = start;
        let (length, before) = match major {
            1 => {
                let mut bytes = [0; 2];
                input.read_exact(&mut bytes).map_err(truncated)?;
                (u64::from(u16::from_le_bytes(bytes)), 10)
            }
            2 | 3 => {
                let mut bytes = [0; 4];
                input.read_exact(&mut bytes).map_err(truncated)?;
                (u64::from(u32::from_le_bytes(bytes)), 12)
            }
            _ => return Err(format!("version {major}.{minor} of NumPy's format is not supported")),
        };
        if length > MAX_HEADER_BYTES {
            return Err(format!("the header of the array has {length} bytes, the limit is {MAX_HEADER_BYTES}"));
        }
        let mut text = vec![0; length as usize];
        input.read_exact(&mut text).map_err(truncated)?;
        // Before version 3 the text is in Latin-1.
        let text = match (String::from_utf8(text), major) {
            (Ok(text), _) => text,
            (Err(wrong), 1 | 2) => wrong.into_bytes().into_iter().map(char::from).collect(),
            (Err(_), _) => return Err("the header of the array is not UTF-8".to_owned()),
        };
        let (entry, entries) = parse(&text)?;
        Ok(Self { entry, entries, length: before + length })
    }

    /// Bytes of an entry.
    ///
    /// # Errors
    /// A text for entries without values, and for those of more than `most` bytes.
    pub(in crate::formats::read) fn entry_bytes(&self, most: u64) -> Result<usize, String> {
        match self.entry.bytes() {
            Some(0) => Err("its entries have no values".to_owned()),
            Some(bytes) if bytes as u64 <= most => Ok(bytes),
            Some(bytes) => Err(format!("an entry has {bytes} bytes, the limit is {most} (--memory-budget SIZE)")),
            None => Err(self.entry.unsized_reason().to_owned()),
        }
    }
}

/// The type of an entry, and the number of entries.
fn parse(text: &str) -> Result<(Dtype, u64), String> {
    let wrong = |what: &str| format!("the header of the array is invalid: {what}");
    let mut parser = Parser { rest: text.trim() };
    let Some(Literal::Dict(pairs)) = parser.value(MAX_DEPTH) else { return Err(wrong("expected a dictionary")) };
    let get = |key: &str| pairs.iter().find(|(known, _)| known == key).map(|(_, value)| value);
    let Some(Literal::Sequence(shape)) = get("shape") else { return Err(wrong("it has no shape")) };
    let shape: Option<Vec<u64>> = shape.iter().map(Literal::number).collect();
    let shape = shape.ok_or_else(|| wrong("the shape is not a tuple of numbers"))?;
    let [entries, inner @ ..] = shape.as_slice() else {
        return Err("the array has no dimensions; its first dimension would be the entries".to_owned());
    };
    if get("fortran_order") == Some(&Literal::Bool(true)) && !inner.is_empty() {
        return Err("the array is in column-major order; save numpy.ascontiguousarray(array) instead".to_owned());
    }
    let described = get("descr").ok_or_else(|| wrong("it has no descr"))?;
    Ok((dtype(described, inner, MAX_DEPTH)?, *entries))
}

/// The type of an array of this shape.
fn dtype(described: &Literal, shape: &[u64], depth: usize) -> Result<Dtype, String> {
    let wrong = || "the header of the array is invalid: a type is wrong".to_owned();
    let depth = depth.checked_sub(1).ok_or_else(wrong)?;
    let one = match described {
        Literal::Text(text) => Dtype::parse(text),
        Literal::Sequence(members) => {
            let (mut found, mut offset) = (Vec::with_capacity(members.len()), 0usize);
            for member in members {
                let Literal::Sequence(parts) = member else { return Err(wrong()) };
                let (name, described, shape) = match parts.as_slice() {
                    [name, described] => (name, described, Vec::new()),
                    [name, described, Literal::Sequence(shape)] => {
                        let shape: Option<Vec<u64>> = shape.iter().map(Literal::number).collect();
                        (name, described, shape.ok_or_else(wrong)?)
                    }
                    _ => return Err(wrong()),
                };
                let name = match name {
                    Literal::Text(name) => name.clone(),
                    // A title and a name.
                    Literal::Sequence(both) => match both.as_slice() {
                        [_, Literal::Text(name)] => name.clone(),
                        _ => return Err(wrong()),
                    },
                    _ => return Err(wrong()),
                };
                let dtype = dtype(described, &shape, depth)?;
                let bytes = dtype.bytes().ok_or_else(|| format!("member '{name}': {}", dtype.unsized_reason()))?;
                // Bytes without a name are padding. Others get the name that NumPy gives them.
                let is_bytes = matches!(described, Literal::Text(text) if text.trim_start_matches(['|', '<', '>', '=']).starts_with('V'));
                match name.is_empty() {
                    true if is_bytes => {}
                    true => found.push(Member { name: format!("f{}", found.len()), offset, dtype }),
                    false => found.push(Member { name, offset, dtype }),
                }
                offset = offset.checked_add(bytes).ok_or_else(wrong)?;
            }
            Dtype::record(found, offset)
        }
        _ => return Err(wrong()),
    };
    if shape.len() > depth {
        return Err(format!("the array has {} dimensions, more than are supported", shape.len()));
    }
    let nested =
        shape.iter().rev().try_fold(one, |item, &size| Some(Dtype::Array(i32::try_from(size).ok()?, Box::new(item))));
    nested.ok_or_else(|| "a dimension has more than 2³¹−1 items".to_owned())
}

impl Literal {
    fn number(&self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }
}

/// Parses the literals that NumPy writes.
struct Parser<'t> {
    rest: &'t str,
}

impl Parser<'_> {
    fn take(&mut self, text: &str) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// A value; `None` for what is invalid or nested too deep.
    fn value(&mut self, depth: usize) -> Option<Literal> {
        let depth = depth.checked_sub(1)?;
        if self.take("{") {
            let mut pairs = Vec::new();
            while !self.take("}") {
                let Literal::Text(key) = self.value(depth)? else { return None };
                if !self.take(":") {
                    return None;
                }
                pairs.push((key, self.value(depth)?));
                if !self.take(",") && !self.rest.trim_start().starts_with('}') {
                    return None;
                }
            }
            return Some(Literal::Dict(pairs));
        }
        for (open, close) in [("(", ")"), ("[", "]")] {
            if self.take(open) {
                let mut values = Vec::new();
                while !self.take(close) {
                    values.push(self.value(depth)?);
                    if !self.take(",") && !self.rest.trim_start().starts_with(close) {
                        return None;
                    }
                }
                return Some(Literal::Sequence(values));
            }
        }
        for (word, value) in [("True", true), ("False", false)] {
            if self.take(word) {
                return Some(Literal::Bool(value));
            }
        }
        let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 {
            let (number, rest) = self.rest.split_at_checked(digits)?;
            // Python 2 wrote 3L.
            self.rest = rest.strip_prefix('L').unwrap_or(rest);
            return number.parse().ok().map(Literal::Number);
        }
        self.text()
    }

    fn text(&mut self) -> Option<Literal> {
        let quote = self.rest.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
        let mut letters = self.rest.char_indices().skip(1);
        let mut text = String::new();
        while let Some((at, letter)) = letters.next() {
            match letter {
                letter if letter == quote => {
                    self.rest = self.rest.get(at + 1..)?;
                    return Some(Literal::Text(text));
                }
                '\\' => match letters.next()?.1 {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'x' => text.push(code(&mut letters, 2)?),
                    'u' => text.push(code(&mut letters, 4)?),
                    'U' => text.push(code(&mut letters, 8)?),
                    other => text.push(other),
                },
                letter => text.push(letter),
            }
        }
        None
    }
}

/// A character by its number in hexadecimal digits.
fn code(letters: &mut impl Iterator<Item = (usize, char)>, digits: usize) -> Option<char> {
    let text: String = letters.take(digits).map(|(_, letter)| letter).collect();
    u32::from_str_radix(&text, 16).ok().and_then(char::from_u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(text: &str) -> Result<String, String> {
        let (dtype, entries) = parse(text)?;
        Ok(format!("{entries} × {} bytes", dtype.bytes().unwrap_or(0)))
    }

    #[test]
    fn headers_of_numpy_are_parsed() {
        let of = |descr: &str, shape: &str| {
            described(&format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}   \n"))
        };
        assert_eq!(of("'<f8'", "(3,)"), Ok("3 × 8 bytes".to_owned()));
        assert_eq!(of("'<f8'", "(3, 2, 5)"), Ok("3 × 80 bytes".to_owned()));
        let members = "[('a', '<i4'), ('', '|V4'), (('t', 'b'), '>f8', (2,))]";
        assert_eq!(of(members, "(1,)"), Ok("1 × 24 bytes".to_owned()));
        assert_eq!(of("[('a\\'\\u00e9', '|b1')]", "(0L,)"), Ok("0 × 1 bytes".to_owned()));
        assert!(of("'<f8'", "()").unwrap_err().contains("no dimensions"));
        assert!(of("'<f8'", "(99999999999999999999,)").is_err());
        assert!(of("'<f8'", "(-1,)").is_err());
        assert!(described(&"(".repeat(100_000)).is_err());
        assert!(described("{'descr': '<f8'").is_err());
        let column_major = "{'descr': '<f8', 'fortran_order': True, 'shape': (3, 2)}";
        assert!(described(column_major).unwrap_err().contains("ascontiguousarray"));
    }
}

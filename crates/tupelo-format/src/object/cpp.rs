//! What the names of C++ types say about how their values are stored.

use crate::{Error, Result};

/// Names nested deeper than this are refused.
const MAX_DEPTH: usize = 32;

/// A number as it is stored: big-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Basic {
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
    /// `Double32_t`: a `float` unless a range says otherwise.
    Double32,
    /// `Float16_t`: exponent and 12 bits of mantissa unless a range says otherwise.
    Float16,
}

/// A type of C++, as far as it matters to how values of it are stored in a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Type {
    Basic(Basic),
    /// `std::string`, `TString`.
    Text,
    /// Vectors, lists, sets.
    Sequence(Box<Type>),
    /// Maps.
    Map(Box<Type>, Box<Type>),
    /// `std::bitset`.
    Bits,
    Class(String),
    /// A pointer to an object of any class.
    Pointer,
}

impl Basic {
    /// By ROOT's code (`TVirtualStreamerInfo::EReadWrite`).
    pub(super) fn from_code(code: i32) -> Option<Self> {
        Some(match code {
            1 | 10 => Self::I8,
            2 => Self::I16,
            // Counters are integers.
            3 | 6 => Self::I32,
            // `long` has 64 bits in files, whatever the machine.
            4 | 16 => Self::I64,
            5 => Self::F32,
            8 => Self::F64,
            9 => Self::Double32,
            11 => Self::U8,
            12 => Self::U16,
            13 => Self::U32,
            14 | 17 => Self::U64,
            18 => Self::Bool,
            19 => Self::Float16,
            _ => return None,
        })
    }

    /// ROOT's code of the type.
    pub(super) fn code(self) -> i32 {
        match self {
            Self::Bool => 18,
            Self::I8 => 1,
            Self::U8 => 11,
            Self::I16 => 2,
            Self::U16 => 12,
            Self::I32 => 3,
            Self::U32 => 13,
            Self::I64 => 16,
            Self::U64 => 17,
            Self::F32 => 5,
            Self::F64 => 8,
            Self::Double32 => 9,
            Self::Float16 => 19,
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "bool" | "Bool_t" => Self::Bool,
            "char" | "signed char" | "int8_t" | "Char_t" => Self::I8,
            "unsigned char" | "uint8_t" | "byte" | "UChar_t" => Self::U8,
            "short" | "short int" | "int16_t" | "Short_t" => Self::I16,
            "unsigned short" | "unsigned short int" | "uint16_t" | "UShort_t" => Self::U16,
            "int" | "int32_t" | "Int_t" => Self::I32,
            "unsigned int" | "unsigned" | "uint32_t" | "UInt_t" => Self::U32,
            "long" | "long int" | "long long" | "int64_t" | "Long_t" | "Long64_t" => Self::I64,
            "unsigned long" | "unsigned long long" | "uint64_t" | "size_t" | "ULong_t" | "ULong64_t" => Self::U64,
            "float" | "Float_t" => Self::F32,
            "double" | "Double_t" => Self::F64,
            "Double32_t" => Self::Double32,
            "Float16_t" => Self::Float16,
            _ => return None,
        })
    }
}

impl Type {
    /// Reads a name as C++ or ROOT spell it.
    pub(super) fn parse(name: &str) -> Result<Self> {
        Self::parse_nested(name, MAX_DEPTH)
    }

    fn parse_nested(name: &str, depth: usize) -> Result<Self> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(Error::limit(format!("type with more than {MAX_DEPTH} templates inside each other")));
        };
        let name = bare(name);
        if name.ends_with('*') {
            return Ok(Self::Pointer);
        }
        if let Some(basic) = Basic::from_name(name) {
            return Ok(Self::Basic(basic));
        }
        let Some((template, arguments)) = split(name) else {
            return Ok(match name {
                "string" | "TString" => Self::Text,
                _ => Self::Class(name.to_owned()),
            });
        };
        let argument = |index: usize| match arguments.get(index) {
            Some(argument) => Self::parse_nested(argument, depth).map(Box::new),
            None => Err(Error::unsupported(format!("type '{}' without its arguments", name.escape_debug()))),
        };
        Ok(match template {
            "vector" | "list" | "deque" | "forward_list" | "set" | "multiset" | "unordered_set"
            | "unordered_multiset" | "ROOT::VecOps::RVec" | "ROOT::RVec" | "RVec" => Self::Sequence(argument(0)?),
            "map" | "multimap" | "unordered_map" | "unordered_multimap" => Self::Map(argument(0)?, argument(1)?),
            "bitset" => Self::Bits,
            "basic_string" => Self::Text,
            _ => Self::Class(name.to_owned()),
        })
    }
}

/// The names of the first and second type of a pair, or of the pairs in a map.
pub(super) fn pair(name: &str) -> Option<[&str; 2]> {
    match split(bare(name))? {
        ("pair" | "map" | "multimap" | "unordered_map" | "unordered_multimap", arguments) => {
            Some([bare(arguments.first()?), bare(arguments.get(1)?)])
        }
        _ => None,
    }
}

/// Without blanks at the ends, `const` and `std::`.
fn bare(name: &str) -> &str {
    let mut name = name.trim();
    while let Some(rest) = name.strip_prefix("const ").or_else(|| name.strip_suffix(" const")) {
        name = rest.trim();
    }
    name.strip_prefix("std::").unwrap_or(name)
}

/// Template and arguments.
fn split(name: &str) -> Option<(&str, Vec<&str>)> {
    let (template, rest) = name.split_once('<')?;
    let inside = rest.strip_suffix('>')?;
    let (mut arguments, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, letter) in inside.char_indices() {
        match letter {
            '<' | '(' => depth = depth.saturating_add(1),
            '>' | ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                arguments.push(inside.get(start..at)?);
                start = at.saturating_add(1);
            }
            _ => {}
        }
    }
    arguments.push(inside.get(start..)?);
    Some((template.trim(), arguments))
}

/// A spelling in which RNTuple's names of types and those of streamer info agree: `Box<std::int32_t>`, `Box<int>`.
pub(super) fn comparable(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let end = match is_word(first) {
            true => rest.find(|letter| !is_word(letter)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (word, tail) = rest.split_at(end);
        rest = tail;
        out.push_str(match word.strip_prefix("std::").unwrap_or(word) {
            " " => "",
            "int8_t" | "Char_t" => "char",
            "uint8_t" | "UChar_t" => "unsignedchar",
            "int16_t" | "Short_t" => "short",
            "uint16_t" | "UShort_t" => "unsignedshort",
            "int32_t" | "Int_t" => "int",
            "uint32_t" | "UInt_t" => "unsignedint",
            "int64_t" | "Long64_t" | "Long_t" => "long",
            "uint64_t" | "ULong64_t" | "ULong_t" | "size_t" => "unsignedlong",
            "Float_t" => "float",
            "Double_t" => "double",
            "Bool_t" => "bool",
            other => other,
        });
    }
    out.replace("longlong", "long")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_how_values_are_stored() {
        let parse = |name| Type::parse(name).unwrap();
        let sequence = |item| Type::Sequence(Box::new(item));
        assert_eq!(parse("std::vector<float>"), sequence(Type::Basic(Basic::F32)));
        assert_eq!(parse("vector<vector<unsigned short> >"), sequence(sequence(Type::Basic(Basic::U16))));
        assert_eq!(parse("list<std::int32_t>"), sequence(Type::Basic(Basic::I32)));
        assert_eq!(parse("set<string,greater<string>>"), sequence(Type::Text));
        assert_eq!(parse("const vector<const TH1*>"), sequence(Type::Pointer));
        assert_eq!(
            parse("map<pair<int,float>,vector<TString> >"),
            Type::Map(Box::new(Type::Class("pair<int,float>".into())), Box::new(sequence(Type::Text)))
        );
        assert_eq!(parse("bitset<17>"), Type::Bits);
        assert_eq!(parse("my::vector<int>"), Type::Class("my::vector<int>".into()));
        assert_eq!(pair("pair<const string,long>"), Some(["string", "long"]));
        assert_eq!(pair("std::map<int, vector<pair<int,int>>, less<int>>"), Some(["int", "vector<pair<int,int>>"]));
        assert_eq!(pair("pair<int>"), None);
        assert!(Type::parse("map<int>").is_err());
        let deep = format!("{}int{}", "vector<".repeat(40), ">".repeat(40));
        assert!(Type::parse(&deep).is_err());
        for broken in ["vector<", "<>", ">", "vector<>", "", "*", ",", "pair<,>"] {
            let _ = Type::parse(broken);
            let _ = pair(broken);
        }
    }

    #[test]
    fn spellings_agree() {
        assert_eq!(comparable("Box<std::int32_t>"), comparable("Box<int>"));
        assert_eq!(comparable("Pair<std::vector<unsigned long long> >"), comparable("Pair<vector<std::uint64_t>>"));
        assert_ne!(comparable("Box<int>"), comparable("Box<int*>"));
        assert_ne!(comparable("my::int32_t"), comparable("int"));
    }
}

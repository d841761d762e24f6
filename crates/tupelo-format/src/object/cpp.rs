//! The storage of values by the names of their C++ types.

use crate::type_name::{TypeName, fundamental};
use crate::{Error, Result};

/// Names nested deeper than this are refused.
const MAX_DEPTH: usize = 32;

/// A number as it is stored: big-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the types")]
pub enum Basic {
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
pub enum Type {
    /// A number.
    Basic(Basic),
    /// `std::string`.
    Text,
    /// `TString`, which never has a head.
    RootText,
    /// Vectors, lists, sets.
    Sequence(Box<Type>),
    /// Maps.
    Map(Box<Type>, Box<Type>),
    /// `std::bitset` of this many bits.
    Bits(u64),
    /// An object of a class, by name.
    Class(String),
    /// A pointer to an object of any class.
    Pointer,
}

impl Basic {
    /// By ROOT's code (`TVirtualStreamerInfo::EReadWrite`).
    pub fn from_code(code: i32) -> Option<Self> {
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
    pub fn code(self) -> i32 {
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

    /// By the name of the type.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "Double32_t" => Self::Double32,
            "Float16_t" => Self::Float16,
            _ => match fundamental(name)? {
                "bool" => Self::Bool,
                "char" | "std::int8_t" => Self::I8,
                "std::byte" | "std::uint8_t" => Self::U8,
                "std::int16_t" => Self::I16,
                "std::uint16_t" => Self::U16,
                "std::int32_t" => Self::I32,
                "std::uint32_t" => Self::U32,
                "std::int64_t" => Self::I64,
                "std::uint64_t" => Self::U64,
                "float" => Self::F32,
                "double" => Self::F64,
                _ => return None,
            },
        })
    }
}

impl Type {
    /// Reads a name as C++ or ROOT spell it.
    ///
    /// # Errors
    /// Unsupported for templates without their arguments, limit for too many inside each other.
    pub fn parse(name: &str) -> Result<Self> {
        Self::parse_nested(name, MAX_DEPTH)
    }

    fn parse_nested(name: &str, depth: usize) -> Result<Self> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(Error::limit(format!("templates in a type are nested more than {MAX_DEPTH} deep")));
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
                "string" => Self::Text,
                "TString" => Self::RootText,
                _ => Self::Class(name.to_owned()),
            });
        };
        let argument = |index: usize| match arguments.get(index) {
            Some(argument) => Self::parse_nested(argument, depth).map(Box::new),
            None => Err(Error::unsupported(format!("type '{}' lacks template arguments", name.escape_debug()))),
        };
        Ok(match template {
            "vector" | "list" | "deque" | "forward_list" | "set" | "multiset" | "unordered_set"
            | "unordered_multiset" | "ROOT::VecOps::RVec" | "ROOT::RVec" | "RVec" => Self::Sequence(argument(0)?),
            "map" | "multimap" | "unordered_map" | "unordered_multimap" => Self::Map(argument(0)?, argument(1)?),
            "bitset" => Self::Bits(arguments.first().and_then(|size| size.trim().parse().ok()).unwrap_or(0)),
            "basic_string" => Self::Text,
            _ => Self::Class(name.to_owned()),
        })
    }
}

/// The names of the first and second type of a pair, or of the pairs in a map.
pub fn pair(name: &str) -> Option<[&str; 2]> {
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
    let TypeName { base, arguments } = TypeName::parse(name)?;
    (!arguments.is_empty()).then_some((base, arguments))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::type_name::{FUNDAMENTAL, comparable};

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
            Type::Map(Box::new(Type::Class("pair<int,float>".into())), Box::new(sequence(Type::RootText)))
        );
        assert_eq!(parse("bitset<17>"), Type::Bits(17));
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
    fn all_spellings_are_stored_alike() {
        for (standard, others) in FUNDAMENTAL {
            for name in others.iter().filter(|name| **name != "Double32_t") {
                assert_eq!(Type::parse(name), Type::parse(standard), "{name}");
                assert_eq!(
                    comparable(&format!("Box<{name}*,const {name} >")),
                    comparable(&format!("Box<{standard}*,const {standard}>"))
                );
            }
        }
        assert_eq!(comparable("Box<signed char>"), comparable("Box<char>"));
    }

    #[test]
    fn spellings_agree() {
        assert_eq!(comparable("Box<std::int32_t>"), comparable("Box<int>"));
        assert_eq!(comparable("Pair<std::vector<unsigned long long> >"), comparable("Pair<vector<std::uint64_t>>"));
        assert_ne!(comparable("Box<int>"), comparable("Box<int*>"));
        assert_ne!(comparable("my::int32_t"), comparable("int"));
    }
}

//! C++ type names as RNTuple spells them (format specification, "Type Name Normalization").
//!
//! The structure of a field matters more than its type name: only templates and fundamental types are parsed. Users,
//! streamer info and files of ROOT up to 6.34 spell them in other ways too; all of these spellings are in this module.

/// Maximum length of a parsed type name; longer ones are opaque.
const MAX_TYPE_NAME_BYTES: usize = 64 << 10;
/// Names whose brackets are nested deeper are opaque: the limit for fields is lower.
const MAX_TYPE_DEPTH: usize = 128;

/// A type name split at its outermost template brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeName<'a> {
    /// What stands before `<`, or everything.
    pub base: &'a str,
    /// Template arguments, each untouched.
    pub arguments: Vec<&'a str>,
}

impl<'a> TypeName<'a> {
    /// Splits a name; `None` where brackets do not match or are nested more than 128 deep, or the name is longer than
    /// 64 KiB. So those who split the arguments again do not go deeper either.
    pub fn parse(text: &'a str) -> Option<Self> {
        let text = text.trim();
        if text.len() > MAX_TYPE_NAME_BYTES {
            return None;
        }
        let Some((base, rest)) = text.split_once('<') else {
            return (!text.contains('>')).then(|| Self { base: text, arguments: Vec::new() });
        };
        let inner = rest.strip_suffix('>')?;
        let mut arguments = Vec::new();
        let (mut depth, mut start) = (0usize, 0);
        for (position, byte) in inner.bytes().enumerate() {
            match byte {
                b'<' | b'(' if depth == MAX_TYPE_DEPTH => return None,
                b'<' | b'(' => depth += 1,
                b'>' | b')' => depth = depth.checked_sub(1)?,
                b',' if depth == 0 => {
                    arguments.push(inner.get(start..position)?.trim());
                    start = position + 1;
                }
                _ => {}
            }
        }
        arguments.push(inner.get(start..)?.trim());
        (depth == 0).then_some(Self { base: base.trim(), arguments })
    }
}

/// The standard names of the fundamental types, each with its other spellings. `long` has 64 bits, as in files.
pub const FUNDAMENTAL: [(&str, &[&str]); 14] = [
    ("bool", &["Bool_t"]),
    ("char", &["Char_t"]),
    ("std::byte", &["byte"]),
    ("std::int8_t", &["int8_t", "signed char"]),
    ("std::uint8_t", &["uint8_t", "unsigned char", "UChar_t", "Byte_t"]),
    ("std::int16_t", &["int16_t", "short", "short int", "signed short", "signed short int", "Short_t"]),
    ("std::uint16_t", &["uint16_t", "unsigned short", "unsigned short int", "UShort_t"]),
    ("std::int32_t", &["int32_t", "int", "signed", "signed int", "Int_t"]),
    ("std::uint32_t", &["uint32_t", "unsigned", "unsigned int", "UInt_t"]),
    (
        "std::int64_t",
        &[
            "int64_t",
            "long",
            "long int",
            "signed long",
            "signed long int",
            "long long",
            "long long int",
            "signed long long",
            "signed long long int",
            "Long_t",
            "Long64_t",
        ],
    ),
    (
        "std::uint64_t",
        &[
            "uint64_t",
            "unsigned long",
            "unsigned long int",
            "unsigned long long",
            "unsigned long long int",
            "size_t",
            "std::size_t",
            "ULong_t",
            "ULong64_t",
        ],
    ),
    ("float", &["Float_t"]),
    ("double", &["Double_t", "Double32_t"]),
    ("std::string", &["string"]),
];

/// Templates of the standard library that are types of fields.
const TEMPLATES: [&str; 17] = [
    "std::vector",
    "std::set",
    "std::unordered_set",
    "std::multiset",
    "std::unordered_multiset",
    "std::map",
    "std::unordered_map",
    "std::multimap",
    "std::unordered_multimap",
    "std::array",
    "std::bitset",
    "std::optional",
    "std::unique_ptr",
    "std::atomic",
    "std::pair",
    "std::tuple",
    "std::variant",
];

/// The standard name of a fundamental type; `None` for anything that is not fundamental.
pub fn fundamental(name: &str) -> Option<&'static str> {
    let standard = |name: &str| {
        let mut known = FUNDAMENTAL.iter().filter(|(standard, others)| *standard == name || others.contains(&name));
        known.next().map(|(standard, _)| *standard)
    };
    let name = name.trim().trim_start_matches("::");
    standard(name).or_else(|| {
        let spaced = name.contains(char::is_whitespace).then(|| name.split_whitespace().collect::<Vec<_>>().join(" "));
        standard(&spaced?)
    })
}

/// A spelling in which RNTuple's names of types and those of streamer info agree: `Box<std::int32_t>`, `Box<int>`.
pub(crate) fn comparable(name: &str) -> String {
    let is_outside = |letter: char| !(letter.is_alphanumeric() || matches!(letter, '_' | ':' | ' '));
    let mut out = String::with_capacity(name.len());
    for piece in name.split_inclusive(is_outside) {
        let (words, mark) = match piece.char_indices().next_back() {
            Some((at, last)) if is_outside(last) => piece.split_at(at),
            _ => (piece, ""),
        };
        let words = match words.trim_start().strip_prefix("const ") {
            Some(rest) => {
                out.push_str("const ");
                rest
            }
            None => words,
        };
        match fundamental(words) {
            // ROOT does not tell apart the two that are integers of 8 bits with a sign.
            Some("std::int8_t") => out.push_str("char"),
            Some(standard) => out.push_str(standard),
            None => words.split(' ').for_each(|word| out.push_str(word.strip_prefix("std::").unwrap_or(word))),
        }
        out.push_str(mark);
    }
    out
}

/// The standard name of a template that is a type of fields, without its arguments; `None` for others.
pub fn template(base: &str) -> Option<&'static str> {
    match base.trim().trim_start_matches("::") {
        "ROOT::VecOps::RVec" | "ROOT::RVec" | "RVec" => Some("ROOT::VecOps::RVec"),
        "ROOT::RNTupleCardinality" | "RNTupleCardinality" => Some("ROOT::RNTupleCardinality"),
        base => TEMPLATES.into_iter().find(|known| *known == base || known.strip_prefix("std::") == Some(base)),
    }
}

/// The name of a type without its template arguments, as it is spelt.
pub fn without_arguments(name: &str) -> &str {
    name.split('<').next().unwrap_or_default()
}

/// A type name with the standard names of templates and fundamental types, and without spaces that mean nothing.
pub fn normalised(name: &str) -> String {
    let name = name.trim();
    if let Some(standard) = fundamental(name) {
        return standard.to_owned();
    }
    match TypeName::parse(name) {
        Some(TypeName { base, arguments }) if !arguments.is_empty() => {
            let arguments: Vec<_> = arguments.into_iter().map(normalised).collect();
            let base = template(base).unwrap_or_else(|| base.trim_start_matches("::"));
            format!("{base}<{}>", arguments.join(","))
        }
        _ => name.trim_start_matches("::").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_split_at_the_outermost_brackets() {
        let name = TypeName::parse("std::map<std::string,std::vector<std::pair<int,float>>>").unwrap();
        assert_eq!(name.base, "std::map");
        assert_eq!(name.arguments, ["std::string", "std::vector<std::pair<int,float>>"]);
        assert_eq!(TypeName::parse("float").unwrap().arguments, Vec::<&str>::new());
        for garbage in ["a<", "a>", "a<b>>", "a<b>c", "a<b>,c>"] {
            assert_eq!(TypeName::parse(garbage), None, "{garbage}");
        }
    }

    #[test]
    fn names_that_only_open_brackets_cost_linear_time() {
        assert_eq!(TypeName::parse(&"a<".repeat(30_000)), None);
        assert_eq!(TypeName::parse(&"x".repeat(100_000)), None);
    }

    #[test]
    fn names_that_nest_a_thousand_templates_are_opaque() {
        let nested = |depth: usize| format!("{}int{}", "std::vector<".repeat(depth), ">".repeat(depth));
        assert!(TypeName::parse(&nested(MAX_TYPE_DEPTH + 1)).is_some());
        assert_eq!(TypeName::parse(&nested(MAX_TYPE_DEPTH + 2)), None);
        assert_eq!(TypeName::parse(&nested(1000)), None);
    }

    #[test]
    fn each_spelling_means_one_type() {
        let mut all: Vec<&str> = FUNDAMENTAL
            .iter()
            .flat_map(|(standard, others)| [*standard].into_iter().chain(others.iter().copied()))
            .collect();
        for (standard, others) in FUNDAMENTAL {
            for name in [standard].iter().chain(others) {
                assert_eq!(fundamental(name), Some(standard), "{name}");
                assert_eq!(fundamental(&format!(" ::{} ", name.replace(' ', "  "))), Some(standard), "{name}");
            }
        }
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        for other in ["MyClass", "", "unsigned float", "longlong", "std::int", "my::int32_t"] {
            assert_eq!(fundamental(other), None, "{other}");
        }
    }

    #[test]
    fn names_are_normalised_at_all_levels() {
        for (name, standard) in [
            ("vector< Int_t >", "std::vector<std::int32_t>"),
            ("::std::map<string, RVec<unsigned  short>>", "std::map<std::string,ROOT::VecOps::RVec<std::uint16_t>>"),
            ("array<double, 3>", "std::array<double,3>"),
            ("RNTupleCardinality<uint32_t>", "ROOT::RNTupleCardinality<std::uint32_t>"),
            ("my::vector<int>", "my::vector<std::int32_t>"),
            ("Jet", "Jet"),
            ("a<", "a<"),
        ] {
            assert_eq!(normalised(name), standard);
            assert_eq!(normalised(standard), standard);
        }
    }
}

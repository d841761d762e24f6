//! C++ type names as RNTuple spells them (format specification, "Type Name Normalization").
//!
//! A name decides little here: structure decides what a field is. Only the outermost template and the fundamental
//! type matter, so that is all that is parsed.

/// Longest type name that is looked at; longer ones are opaque.
const MAX_TYPE_NAME_BYTES: usize = 64 << 10;
/// Names whose brackets are nested deeper are opaque: fields are at most [`super::MAX_FIELD_DEPTH`] deep.
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

/// The standard spelling of a fundamental type, which files of ROOT up to 6.34 and users may spell differently;
/// `None` for anything that is not fundamental.
pub fn fundamental(name: &str) -> Option<&'static str> {
    Some(match name.trim().trim_start_matches("::") {
        "bool" | "Bool_t" => "bool",
        "char" | "Char_t" => "char",
        "std::byte" | "byte" => "std::byte",
        "std::int8_t" | "int8_t" | "signed char" => "std::int8_t",
        "std::uint8_t" | "uint8_t" | "unsigned char" | "UChar_t" => "std::uint8_t",
        "std::int16_t" | "int16_t" | "short" | "short int" | "Short_t" => "std::int16_t",
        "std::uint16_t" | "uint16_t" | "unsigned short" | "UShort_t" => "std::uint16_t",
        "std::int32_t" | "int32_t" | "int" | "Int_t" => "std::int32_t",
        "std::uint32_t" | "uint32_t" | "unsigned int" | "unsigned" | "UInt_t" => "std::uint32_t",
        "std::int64_t" | "int64_t" | "long" | "long long" | "Long64_t" | "Long_t" => "std::int64_t",
        "std::uint64_t" | "uint64_t" | "unsigned long" | "unsigned long long" | "ULong64_t" | "ULong_t" | "size_t"
        | "std::size_t" => "std::uint64_t",
        "float" | "Float_t" => "float",
        "double" | "Double_t" | "Double32_t" => "double",
        "std::string" | "string" => "std::string",
        _ => return None,
    })
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
    fn old_spellings_are_known() {
        assert_eq!(fundamental("Float_t"), Some("float"));
        assert_eq!(fundamental("unsigned long long"), Some("std::uint64_t"));
        assert_eq!(fundamental("MyClass"), None);
    }
}

//! The address of a value, and its text.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A value in a container. Its text is `CLASS/HI/LO/DKEY/AKEY`, with hexadecimal numbers without leading zeros.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct DaosKey {
    /// Name of the class of the object.
    pub(crate) class: Arc<str>,
    /// The user's bits of the upper half of the object's id.
    pub(crate) hi: u32,
    /// The lower half of the object's id.
    pub(crate) lo: u64,
    pub(crate) dkey: u64,
    pub(crate) akey: u64,
}

/// An object: a value without its keys.
pub(super) type ObjectName = (Arc<str>, u32, u64);

/// Maximum length of the name of a class, in bytes: `MAX_OBJ_CLASS_NAME_LEN` without the end of the C string.
const MAX_CLASS_BYTES: usize = 23;

impl DaosKey {
    pub(super) fn object(&self) -> ObjectName {
        (Arc::clone(&self.class), self.hi, self.lo)
    }

    /// Whether one update can write both.
    pub(crate) fn shares_dkey(&self, other: &Self) -> bool {
        (&self.class, self.hi, self.lo, self.dkey) == (&other.class, other.hi, other.lo, other.dkey)
    }
}

impl fmt::Display for DaosKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { class, hi, lo, dkey, akey } = self;
        write!(f, "{class}/{hi:x}/{lo:x}/{dkey:x}/{akey:x}")
    }
}

/// The text is not that of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotAKey;

impl FromStr for DaosKey {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let mut parts = text.split('/');
        let class = parts.next().filter(|class| is_class_name(class)).ok_or(NotAKey)?;
        let mut number = || parts.next().and_then(parse_number).ok_or(NotAKey);
        let hi = u32::try_from(number()?).map_err(|_| NotAKey)?;
        let (lo, dkey, akey) = (number()?, number()?, number()?);
        match parts.next() {
            None => Ok(Self { class: class.into(), hi, lo, dkey, akey }),
            Some(_) => Err(NotAKey),
        }
    }
}

/// Whether a text can be the name of a class.
pub(super) fn is_class_name(text: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=MAX_CLASS_BYTES).contains(&text.len()) && text.bytes().all(is_known)
}

/// A number, if this is how it is written.
pub(crate) fn parse_number(text: &str) -> Option<u64> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_short = text == "0" || !text.starts_with('0');
    let number = u64::from_str_radix(text, 16).ok();
    number.filter(|_| is_short && text.bytes().all(is_digit))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_have_one_text() {
        let key = DaosKey { class: "RP_2GX".into(), hi: 0x1f, lo: u64::MAX, dkey: 0, akey: 0xabc };
        assert_eq!(key.to_string(), "RP_2GX/1f/ffffffffffffffff/0/abc");
        assert_eq!(key.to_string().parse(), Ok(key));
        for bad in [
            "",
            "SX",
            "SX/1/2/3",
            "SX/1/2/3/4/",
            "SX/1/2/3/4/5",
            "/1/2/3/4",
            "sx/1/2/3/4",
            "S X/1/2/3/4",
            "SX/01/2/3/4",
            "SX/1/2/3/A",
            "SX/1/2//4",
            "SX/1/2/+3/4",
            "SX/-1/2/3/4",
            "SX/100000000/2/3/4",
            "SX/1/2/3/10000000000000000",
            "SX/1/2/../4",
            "SX/1/2/3/4\0",
            "ABCDEFGHIJKLMNOPQRSTUVWX/1/2/3/4",
        ] {
            assert_eq!(bad.parse::<DaosKey>(), Err(NotAKey), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn written_records_are_read_back(hi: u32, lo: u64, dkey: u64, akey: u64) {
            let key = DaosKey { class: "S1".into(), hi, lo, dkey, akey };
            prop_assert_eq!(key.to_string().parse(), Ok(key));
        }
    }
}

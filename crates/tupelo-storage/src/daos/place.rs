//! The names of pools and containers.

/// Maximum length of a label, in bytes: `DAOS_PROP_LABEL_MAX_LEN`.
const MAX_LABEL_BYTES: usize = 127;

/// A container of a pool, each by label or UUID.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct DaosPlace {
    pub(crate) pool: String,
    pub(crate) container: String,
}

impl DaosPlace {
    /// A container by the names of both; `None` for a name that DAOS does not allow.
    pub(crate) fn new(pool: &str, container: &str) -> Option<Self> {
        // A UUID has only letters, digits and dashes.
        let is_name = |name: &str| {
            let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
            (1..=MAX_LABEL_BYTES).contains(&name.len()) && name.bytes().all(is_known)
        };
        (is_name(pool) && is_name(container)).then(|| Self { pool: pool.to_owned(), container: container.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_those_that_daos_allows() {
        for good in ["a", "A.b_c:d-0", "01234567-89ab-cdef-0123-456789abcdef", &"x".repeat(127)] {
            assert!(DaosPlace::new(good, "c").is_some() && DaosPlace::new("p", good).is_some(), "{good}");
        }
        for bad in ["", "a b", "a/b", "é", "a\0", "a@b", "a%20", &"x".repeat(128)] {
            assert!(DaosPlace::new(bad, "c").is_none() && DaosPlace::new("p", bad).is_none(), "{bad}");
        }
    }
}

//! The index of trees that are moved (`TTreeIndex`): the values of two expressions, in ascending order, and the entries that
//! have them.

use tupelo_format::object::{Numbers, Object, Value};
use tupelo_format::streamer::Edits;
use tupelo_format::wire::Buffer;
use tupelo_format::{Error, Result};

use super::{MovableTree, put_number};

/// Largest number of entries in an index of several trees: with 24 bytes each, its record stays below 1 GiB.
const MAX_ENTRIES: usize = 40_000_000;

/// The index of several trees, or of some of their entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedIndex {
    /// The expressions of major and minor value.
    expressions: [String; 2],
    /// Major value, minor value and entry.
    items: Vec<[i64; 3]>,
}

impl MovedIndex {
    /// The index of a tree.
    ///
    /// # Errors
    /// Why it has none that can be moved.
    pub fn of(tree: &MovableTree) -> Result<Self, &'static str> {
        let record = tree.traced.value.as_object();
        let index = record.and_then(|tree| tree.get("fTreeIndex")?.as_object());
        index.and_then(Self::read).ok_or("which was written by an old version of ROOT")
    }

    fn read(index: &Object) -> Option<Self> {
        let expression = |name: &str| match index.get(name)? {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        };
        let numbers = |name: &str| match index.get(name)? {
            Value::Numbers(Numbers::I64(numbers)) => Some(numbers.iter().copied()),
            _ => None,
        };
        let values = numbers("fIndexValues")?.zip(numbers("fIndexValuesMinor")?);
        let items = values.zip(numbers("fIndex")?).map(|((major, minor), entry)| [major, minor, entry]).collect();
        Some(Self { expressions: [expression("fMajorName")?, expression("fMinorName")?], items })
    }

    /// The same entries under other numbers, without those that get none.
    #[must_use]
    pub fn renumbered(mut self, number: impl Fn(u64) -> Option<u64>) -> Self {
        self.items.retain_mut(|[.., entry]| match u64::try_from(*entry).ok().and_then(&number) {
            Some(new) => {
                *entry = new.cast_signed();
                true
            }
            None => false,
        });
        self
    }

    /// Adds the index of another tree.
    ///
    /// # Errors
    /// Why both cannot be one.
    pub fn append(&mut self, other: Self) -> Result<(), &'static str> {
        if self.expressions != other.expressions {
            return Err("whose expressions differ");
        }
        self.items.extend(other.items);
        match self.items.len() > MAX_ENTRIES {
            true => Err("which would have more than 40 million entries"),
            false => Ok(()),
        }
    }

    /// The values and the entries in the order of the values.
    fn columns(&self) -> [(&'static str, Vec<i64>); 3] {
        // Entries with the same values keep their order.
        let mut items: Vec<&[i64; 3]> = self.items.iter().collect();
        items.sort_by_key(|[major, minor, _]| (*major, *minor));
        let column = |of: fn(&[i64; 3]) -> i64| items.iter().map(|item| of(item)).collect();
        [
            ("fIndexValues", column(|[major, ..]| *major)),
            ("fIndexValuesMinor", column(|[_, minor, _]| *minor)),
            ("fIndex", column(|[.., entry]| *entry)),
        ]
    }

    /// Replaces the index in the record of a tree that has one.
    pub(super) fn put(&self, tree: &MovableTree, edits: &mut Edits<'_>) -> Result<()> {
        let index = tree.traced.objects.iter().find(|object| object.class_name == "TTreeIndex");
        let index = index.ok_or_else(|| Error::unsupported("the tree has no index"))?;
        put_number(edits, index, "fN", self.items.len() as i64)?;
        for (name, numbers) in self.columns() {
            let member = index.member(name).ok_or_else(|| Error::unsupported(format!("the index lacks {name}")))?;
            let mut out = Buffer::new();
            numbers.into_iter().for_each(|number| out.i64_be(number));
            edits.replace(member.bytes.clone(), out.into_vec());
        }
        Ok(())
    }

    /// The index as an object like that of a tree; null for another object.
    pub fn like(&self, index: &Value) -> Value {
        let Some(mut index) = index.as_object().cloned() else { return Value::Null };
        index.set("fN", Value::Int(self.items.len() as i64));
        for (name, numbers) in self.columns() {
            index.set(name, Value::Numbers(Numbers::I64(numbers)));
        }
        Value::Object(index.into())
    }
}

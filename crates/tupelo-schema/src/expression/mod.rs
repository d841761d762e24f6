//! Expressions over the fields of an entry, for filters and computed columns.
//!
//! Expressions use Python syntax. Names are dotted field paths; a path that is not a Python name, such as
//! `` `ElectronsAuxDyn:pt` ``, is quoted with backticks. Collections are computed item by item, and a value that an
//! entry has once is broadcast to every item of its collections.
//!
//! | precedence, low to high | |
//! |---|---|
//! | `or`, `\|\|` | of booleans |
//! | `and`, `&&` | |
//! | `not` | |
//! | `<` `<=` `>` `>=` `==` `!=` | in chains too: `80 < m < 100` |
//! | `in` `not in` | a list of literals, which is hashed: `run in [1, 2]`, `(run, event) in [(1, 2), (1, 3)]` |
//! | `\|`, then `^`, then `&` | of booleans; `\|` and `&` of the bits of integers too |
//! | `+` `-`, then `*` `/` `//` `%` | |
//! | `+x` `-x` `~x` `!x` | |
//! | `**` | |
//! | `x[0]` `x[-1]` `x[i]` `x[:, 0]` | the item at an index, missing where there is none |
//! | `x[:, :2]` `x[:2]` | the items of a slice of each list |
//! | `x[mask]` | the items where a list of booleans is true |
//! | `x.pt` | a member |
//!
//! Functions are named as in NumPy and Awkward Array, with or without the prefix `np.`, `ak.` or `math.`; they are
//! listed in `docs/guide/expressions.md`. Reductions apply to the innermost lists, which is also the meaning of
//! `axis=-1`; `len` is the number of items of the outermost list. `min` and `max` of an empty list are missing.
//! `is_missing(x)` is true where `x` is missing, and is never missing itself.
//!
//! Chains of operators may have any length; parentheses, calls, indexes and signs may be nested 128 levels deep.
//!
//! # Types
//! Integers are computed in 64 bits; overflow is an error. Single precision values are computed in single precision
//! with each other and with literals; all other operations with fractions, and `/` of integers, use double precision.
//! `//` and `%` of floating-point numbers follow NumPy. Other types are not converted to booleans. `&`, `|` and `^`
//! bind more strongly than comparisons, so `a > 1 & b < 3` is rejected and needs parentheses. Comparisons with NaN are
//! false, except `!=`; `min`, `max`, `argmin` and `argmax` propagate NaN as NumPy does. Unsigned integers of 2⁶³ and
//! more can be compared; arithmetic on them is an error. Fixed-length arrays keep their length in operations with
//! numbers and with each other.
//!
//! # Missing values
//! An operation on a missing value is missing, and a cut drops entries for which it is missing. `x and False` is false
//! and `x or True` is true even where `x` is missing, and `where` evaluates only the side that it selects. `//` and `%`
//! of integers by zero are missing, so `n > 0 and 10 // n > 2` and `where(n > 0, 10 // n, 0)` work as in Python.
//!
//! If a list is missing, its `len`, its `sum` and everything computed from its items are missing; `where` of items is a
//! missing list where one of its lists is missing. Functions of a list skip its missing items. `is_missing(x)` tests
//! the outermost level that is nullable by its type: once per entry for an optional list, once per item for a list of
//! optional items.

mod bloom;
mod bounds;
mod call;
mod evaluate;
mod functions;
mod items;
mod lexer;
mod members;
mod parse;
mod program;
mod reduce;
mod syntax;
mod table;
#[cfg(test)]
mod tests;
mod value;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::Field;
use arrow_select::concat::concat;

pub use bloom::Bloom;
pub use bounds::{Bounds, Known};
use tupelo_core::pool;

use crate::{Error, Result};
use program::{Op, Step};
use value::Kind;

/// Entries that are computed at once: intermediate values stay in the cache of a core, and several threads have work.
const BLOCK_ENTRIES: usize = 1 << 15;

/// A parsed expression.
/// ```
/// let hard: tupelo::Expression = "sum(Muon_pt[abs(Muon_eta) < 2.4]) > 50 and MET_pt < 20".parse()?;
/// assert_eq!(hard.fields().collect::<Vec<_>>(), ["MET_pt", "Muon_eta", "Muon_pt"]);
/// let error = "Muon_pt >".parse::<tupelo::Expression>().unwrap_err();
/// assert_eq!(error.to_string(), "expression 'Muon_pt >': expected a value at the end");
/// # Ok::<(), tupelo::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Expression {
    text: String,
    steps: Vec<Step>,
    fields: BTreeSet<String>,
}

impl FromStr for Expression {
    type Err = Error;

    /// # Errors
    /// Invalid argument, with the position in the text, if it is not an expression.
    fn from_str(text: &str) -> Result<Self> {
        let steps = parse::parse(text).map_err(|e| e.within(format!("expression '{}'", shorten(text))))?;
        let mut fields = BTreeSet::new();
        for step in &steps {
            if let Op::Field(path) = &step.op
                && !fields.contains(path)
            {
                fields.insert(path.clone());
            }
        }
        Ok(Self { text: text.to_owned(), steps, fields })
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Expression {
    /// Dotted paths of the fields that it names, in alphabetical order.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(String::as_str)
    }

    /// The same with other fields: `name` gives the path to use in place of one.
    /// ```
    /// let hard: tupelo::Expression = "pt > 20 and abs(eta) < 2.4".parse()?;
    /// let of_jets = hard.with_fields(|path| Some(format!("Jet_{path}")));
    /// assert_eq!(of_jets.fields().collect::<Vec<_>>(), ["Jet_eta", "Jet_pt"]);
    /// # Ok::<(), tupelo::Error>(())
    /// ```
    #[must_use]
    pub fn with_fields(mut self, name: impl Fn(&str) -> Option<String>) -> Self {
        for step in &mut self.steps {
            if let Op::Field(path) = &mut step.op
                && let Some(other) = name(path)
            {
                *path = other;
            }
        }
        self.fields = self.fields.into_iter().map(|path| name(&path).unwrap_or(path)).collect();
        self
    }

    /// Its value for each entry of a batch that has these fields: numbers, booleans or strings, or lists of them.
    ///
    /// # Errors
    /// Not found, with near names, for a field that is not in the batch; invalid argument, with the part of the
    /// expression, for types that do not go together, lists of different lengths, and integers that overflow.
    pub fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        self.column(batch).map(|(_, array)| array)
    }

    /// The same, with a field of its type. It is nullable where values may be missing, whether some are or not: so each
    /// batch of an ntuple gives the same.
    pub fn column(&self, batch: &RecordBatch) -> Result<(Field, ArrayRef)> {
        self.blocks(batch).map_err(|e| e.within(format!("expression '{}'", shorten(&self.text))))
    }

    /// The same block by block, where that makes a difference.
    fn blocks(&self, batch: &RecordBatch) -> Result<(Field, ArrayRef)> {
        let entries = batch.num_rows();
        // A field is there already, and of strings there is a limit for all entries together.
        let is_there = matches!(self.steps.last(), Some(Step { op: Op::Field(_) | Op::Member(_), .. }));
        let has_texts = || batch.schema().fields().iter().any(|field| value::holds_texts(field.data_type()));
        if entries <= BLOCK_ENTRIES || is_there || has_texts() {
            return self.block(batch);
        }
        let block = |start| batch.slice(start, BLOCK_ENTRIES.min(entries - start));
        let blocks = (0..entries).step_by(BLOCK_ENTRIES).map(block).collect();
        let made = pool::map(blocks, (entries * size_of::<f64>()) as u64, |block| self.block(&block))?;
        let (mut fields, arrays): (Vec<_>, Vec<_>) = made.into_iter().unzip();
        let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
        Ok((fields.swap_remove(0), concat(&arrays)?))
    }

    fn block(&self, batch: &RecordBatch) -> Result<(Field, ArrayRef)> {
        let value = evaluate::evaluate(&self.text, &self.steps, batch)?;
        let is_nullable = value.is_nullable();
        let array = value.into_array();
        Ok((Field::new(&self.text, array.data_type().clone(), is_nullable), array))
    }

    /// Whether to keep each entry of a batch.
    ///
    /// # Errors
    /// As [`Expression::evaluate`], and invalid argument unless the result is one boolean for each entry.
    pub fn mask(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        self.booleans(&self.evaluate(batch)?)
    }

    /// A value of the expression as the entries to keep.
    pub fn booleans(&self, value: &ArrayRef) -> Result<BooleanArray> {
        booleans(value, &self.text)
    }

    /// Whether it is only a name.
    pub fn is_name(&self) -> bool {
        matches!(&self.steps[..], [Step { op: Op::Field(_), .. }])
    }
}

/// The value of the field of this name as the entries to keep.
pub fn booleans(value: &ArrayRef, text: &str) -> Result<BooleanArray> {
    let booleans = value.as_any().downcast_ref::<BooleanArray>().cloned();
    booleans.ok_or_else(|| {
        let (text, found) = (shorten(text), value::describe(value.data_type()));
        let remedy = match (value.data_type(), value::leaf_kind(value.data_type())) {
            (list, Kind::Boolean) if list.is_nested() => "; reduce the list by any() or all()",
            (data_type, Kind::Integer | Kind::Single | Kind::Double) if !data_type.is_nested() => {
                "; compare it with a number"
            }
            _ => "",
        };
        Error::invalid_argument(format!(
            "expression '{text}': a cut must be one boolean for each entry, not {found}{remedy}"
        ))
    })
}

/// Longest text of an expression in a message, in characters.
const SHOWN_CHARS: usize = 200;

/// The text of an expression for a message: of a long one its beginning and its end.
pub fn shorten(text: &str) -> Cow<'_, str> {
    let place = |index: usize| text.char_indices().nth(index).map(|(place, _)| place);
    let Some(_) = place(SHOWN_CHARS) else { return Cow::Borrowed(text) };
    let count = text.chars().count();
    let (front, back) = (place(SHOWN_CHARS / 2).unwrap_or(0), place(count - SHOWN_CHARS / 4).unwrap_or(0));
    Cow::Owned(format!("{} … {}", &text[..front], &text[back..]))
}

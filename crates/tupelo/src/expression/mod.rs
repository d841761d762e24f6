//! Expressions over the fields of an entry: what to keep, and what to compute.
//!
//! An expression is written as in Python. Its names are fields by their dotted paths; others, as
//! `` `ElectronsAuxDyn:pt` ``, stand in backticks. Numbers in collections are computed item by item; what has one value
//! for each entry stands beside every item of a collection.
//!
//! | precedence, low to high | |
//! |---|---|
//! | `or`, `\|\|` | of truths |
//! | `and`, `&&` | |
//! | `not` | |
//! | `<` `<=` `>` `>=` `==` `!=` | in chains too: `80 < m < 100` |
//! | `in` `not in` | a list of literals, which is hashed: `run in [1, 2]`, `(run, event) in [(1, 2), (1, 3)]` |
//! | `\|`, then `^`, then `&` | of truths; `\|` and `&` of the bits of integers too |
//! | `+` `-`, then `*` `/` `//` `%` | |
//! | `+x` `-x` `~x` `!x` | |
//! | `**` | |
//! | `x[0]` `x[-1]` `x[i]` `x[:, 0]` | the item at an index, missing where there is none |
//! | `x[:, :2]` `x[:2]` | the items of a slice of each list |
//! | `x[mask]` | the items where a list of truths is true |
//! | `x.pt` | a member |
//!
//! Functions have the names of NumPy and Awkward Array, with `np.`, `ak.` or `math.` in front or without; all are listed in
//! `docs/guide/expressions.md`. Functions of a collection go over its innermost lists, which `axis=-1` may say; `len` is the
//! number of items of the outermost. `min` and `max` of nothing are missing. `is_missing(x)` is true where `x` is missing,
//! and never missing itself.
//!
//! Chains of operators may have any length; parentheses, calls, indexes and signs may be 128 deep.
//!
//! # Types
//! Integers are computed with 64 bits, and it is an error where they do not hold a result. Single precision stays single
//! with itself and with literals; all else that has a fraction, and `/`, is double. `//` and `%` of reals are those of
//! NumPy. Nothing is a truth that is not one: `&`, `|` or `^` between two comparisons, as in `a > 1 & b < 3`, asks for
//! parentheses, since they bind more strongly. Comparisons with NaN are false, but `!=`, as everywhere; `min`, `max`,
//! `argmin` and `argmax` of lists with NaN give it, as in NumPy. Unsigned integers of 2⁶³ and more, in fields and in the
//! text, are compared, and are an error where they are computed with. Arrays of a fixed length keep it where they are
//! computed with numbers and with each other.
//!
//! # What is missing
//! It makes missing what is computed with it, and is not kept by a cut. What is known decides: `x and False` is false and
//! `x or True` is true where `x` is missing, and `where` asks only for the side that it takes. `//` and `%` of integers by
//! zero are missing, so that `n > 0 and 10 // n > 2` and `where(n > 0, 10 // n, 0)` need no more than in Python.
//!
//! Lists may be missing as a whole, and so are their `len` and `sum` then, and all that is computed of their items: `where` of
//! items too is a missing list where one of its lists is. Missing items of a list that is there count for nothing in
//! functions of it. `is_missing(x)` asks of the outermost that may be missing by its type: of an optional list once for
//! each entry, of a list of optional items for each item.

mod call;
mod evaluate;
mod functions;
mod items;
mod lexer;
mod members;
mod parse;
mod program;
mod reduce;
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

use crate::{Error, Result, pool};
use program::{Op, Step};

/// Entries that are computed at once: what is made on the way stays in a core's cache, and several threads have work.
const BLOCK_ENTRIES: usize = 1 << 15;

/// A parsed expression.
/// ```
/// let hard: tupelo::Expression = "sum(Muon_pt[abs(Muon_eta) < 2.4]) > 50 and MET_pt < 20".parse()?;
/// assert_eq!(hard.fields().collect::<Vec<_>>(), ["MET_pt", "Muon_eta", "Muon_pt"]);
/// let error = "Muon_pt >".parse::<tupelo::Expression>().unwrap_err();
/// assert_eq!(error.to_string(), "expression 'Muon_pt >': a value is missing at its end");
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
    /// Invalid argument, with the place in the text, for what is no expression.
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

    /// Its value for each entry of a batch that has these fields: numbers, truths or texts, or lists of them.
    ///
    /// # Errors
    /// Not found, with near names, for a field that is not in the batch; invalid argument, with the part of the
    /// expression, for types that do not go together, lists of different lengths, and integers that overflow.
    pub fn evaluate(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        self.column(batch).map(|(_, array)| array)
    }

    /// The same, with a field of its type. It is nullable where values may be missing, whether some are or not: so each
    /// batch of an ntuple gives the same.
    pub(crate) fn column(&self, batch: &RecordBatch) -> Result<(Field, ArrayRef)> {
        self.blocks(batch).map_err(|e| e.within(format!("expression '{}'", shorten(&self.text))))
    }

    /// The same block by block, where that makes a difference.
    fn blocks(&self, batch: &RecordBatch) -> Result<(Field, ArrayRef)> {
        let entries = batch.num_rows();
        // A field is there already, and of texts there is a limit for all entries together.
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
    /// As of [`Expression::evaluate`], and invalid argument where it has not one truth for each entry.
    pub fn mask(&self, batch: &RecordBatch) -> Result<BooleanArray> {
        self.truths(&self.evaluate(batch)?)
    }

    /// A value of the expression as what to keep.
    pub(crate) fn truths(&self, value: &ArrayRef) -> Result<BooleanArray> {
        truths(value, &self.text)
    }

    /// Whether it is a name and nothing else.
    pub(crate) fn is_name(&self) -> bool {
        matches!(&self.steps[..], [Step { op: Op::Field(_), .. }])
    }
}

/// The value of what is called so as what to keep.
pub(crate) fn truths(value: &ArrayRef, text: &str) -> Result<BooleanArray> {
    let truths = value.as_any().downcast_ref::<BooleanArray>().cloned();
    truths.ok_or_else(|| {
        let (text, found) = (shorten(text), value::describe(value.data_type()));
        Error::invalid_argument(format!("expression '{text}': a cut is one truth for each entry, not {found}"))
    })
}

/// Longest text of an expression in a message, in characters.
const SHOWN_CHARS: usize = 200;

/// The text of an expression for a message: of a long one its beginning and its end.
pub(crate) fn shorten(text: &str) -> Cow<'_, str> {
    let place = |index: usize| text.char_indices().nth(index).map(|(place, _)| place);
    let Some(_) = place(SHOWN_CHARS) else { return Cow::Borrowed(text) };
    let count = text.chars().count();
    let (front, back) = (place(SHOWN_CHARS / 2).unwrap_or(0), place(count - SHOWN_CHARS / 4).unwrap_or(0));
    Cow::Owned(format!("{} … {}", &text[..front], &text[back..]))
}

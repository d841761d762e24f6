//! `x in [1, 2, 3]`: which values are members of a list of literals.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_buffer::NullBuffer;

use super::functions::wide;
use super::syntax::Literal;
use super::value::{Kind, as_bytes, describe};
use crate::{Error, Result};

/// Literals, or tuples of them.
#[derive(Debug)]
pub(super) struct Members {
    /// The literals at each position of the tuples.
    columns: Vec<Vec<Literal>>,
    /// Tables that were made, by the kinds of the values that are looked up: a literal is another key to each of them.
    tables: Mutex<Vec<(Vec<Kind>, Arc<Table>)>>,
}

/// Codes for the values at each place, and for the pairs of codes so far and of the next place.
#[derive(Debug)]
struct Table {
    columns: Vec<Codes>,
    pairs: Vec<HashMap<(u32, u32), u32>>,
}

/// A number for each different literal.
#[derive(Debug)]
enum Codes {
    Numbers(HashMap<i128, u32>),
    Strings(HashMap<Vec<u8>, u32>),
}

impl Members {
    /// # Errors
    /// The error if strings and numbers are mixed.
    pub(super) fn new(columns: Vec<Vec<Literal>>) -> Result<Self, &'static str> {
        let is_text = |literal: &Literal| matches!(literal, Literal::Text(_));
        if columns.iter().any(|column| column.iter().any(is_text) && !column.iter().all(is_text)) {
            return Err("the list after 'in' contains both strings and numbers; it ends");
        }
        Ok(Self { columns, tables: Mutex::new(Vec::new()) })
    }

    /// The literals at each position of the tuples.
    pub(super) fn columns(&self) -> &[Vec<Literal>] {
        &self.columns
    }

    /// How many values are looked up together.
    pub(super) fn width(&self) -> usize {
        self.columns.len()
    }

    /// Whether values are members of the list; null where one of the values is null.
    ///
    /// # Errors
    /// Invalid argument if numbers are looked up among strings or strings among numbers.
    pub(super) fn holds(&self, leaves: &[ArrayRef], count: usize, is_negated: bool) -> Result<BooleanArray> {
        let table = self.table(leaves)?;
        let (mut found, mut nulls) = (Vec::new(), None);
        for (index, (codes, leaf)) in table.columns.iter().zip(leaves).enumerate() {
            let mut own = codes.of(leaf)?;
            let mut own_nulls = leaf.nulls().cloned();
            if own.len() != count {
                // Broadcast the single value of a literal.
                (own, own_nulls) = (vec![own.first().copied().flatten(); count], None);
            }
            nulls = NullBuffer::union(nulls.as_ref(), own_nulls.as_ref());
            match index {
                0 => found = own,
                _ => found.iter_mut().zip(own).for_each(|(found, own): (&mut Option<u32>, _)| {
                    *found = found.zip(own).and_then(|pair| table.pairs[index - 1].get(&pair).copied());
                }),
            }
        }
        let booleans: Vec<bool> = found.iter().map(|code| code.is_some() != is_negated).collect();
        Ok(BooleanArray::new(booleans.into(), nulls))
    }

    /// The table for values of the kinds of these leaves.
    fn table(&self, leaves: &[ArrayRef]) -> Result<Arc<Table>> {
        let kinds: Vec<Kind> = leaves.iter().map(|leaf| Kind::of(leaf.data_type())).collect();
        for ((kind, leaf), literals) in kinds.iter().zip(leaves).zip(&self.columns) {
            let wanted = match literals.first() {
                Some(Literal::Text(_)) if *kind != Kind::Text => "strings",
                Some(Literal::Text(_)) | None => continue,
                Some(_) if matches!(kind, Kind::Text | Kind::Other) => "numbers",
                Some(_) => continue,
            };
            let what = format!("'in' expects {wanted} for this list, not {}", describe(leaf.data_type()));
            return Err(Error::invalid_argument(what));
        }
        // Threads wait for the one that makes the table.
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, table)) = tables.iter().find(|(known, _)| *known == kinds) {
            return Ok(Arc::clone(table));
        }
        let table = Arc::new(Table::new(&self.columns, &kinds));
        tables.push((kinds, Arc::clone(&table)));
        Ok(table)
    }
}

impl Table {
    fn new(literals: &[Vec<Literal>], kinds: &[Kind]) -> Self {
        let (mut columns, mut pairs, mut nodes) = (Vec::new(), Vec::new(), Vec::new());
        for (index, (literals, kind)) in literals.iter().zip(kinds).enumerate() {
            let (codes, own) = Codes::new(literals, *kind);
            columns.push(codes);
            if index == 0 {
                nodes = own;
                continue;
            }
            let mut joined = HashMap::with_capacity(literals.len());
            for (node, own) in nodes.iter_mut().zip(own) {
                *node = node.zip(own).map(|pair| code(&mut joined, pair));
            }
            pairs.push(joined);
        }
        Self { columns, pairs }
    }
}

impl Codes {
    /// Codes of literals, as far as values of this kind can equal them.
    fn new(literals: &[Literal], kind: Kind) -> (Self, Vec<Option<u32>>) {
        if kind == Kind::Text {
            let mut strings = HashMap::with_capacity(literals.len());
            let codes = literals.iter().map(|literal| match literal {
                Literal::Text(text) => Some(code(&mut strings, text.as_bytes().to_vec())),
                _ => None,
            });
            let codes = codes.collect();
            return (Self::Strings(strings), codes);
        }
        let mut numbers = HashMap::with_capacity(literals.len());
        let codes = literals.iter().map(|literal| Some(code(&mut numbers, key(literal, kind)?))).collect();
        (Self::Numbers(numbers), codes)
    }

    /// The code of each value; `None` if it is not a member.
    fn of(&self, leaf: &ArrayRef) -> Result<Vec<Option<u32>>> {
        Ok(match (self, Kind::of(leaf.data_type())) {
            (Self::Strings(codes), _) => {
                as_bytes(leaf)?.iter().map(|text| codes.get(text.unwrap_or_default()).copied()).collect()
            }
            (Self::Numbers(codes), _) if codes.is_empty() => vec![None; leaf.len()],
            (Self::Numbers(codes), Kind::Single) => {
                let values = leaf.as_primitive::<Float32Type>().values();
                values.iter().map(|&value| codes.get(&real_key(value.into())?).copied()).collect()
            }
            (Self::Numbers(codes), Kind::Double) => {
                let values = leaf.as_primitive::<Float64Type>().values();
                values.iter().map(|&value| codes.get(&real_key(value)?).copied()).collect()
            }
            (Self::Numbers(codes), _) => wide(leaf)?.iter().map(|value| codes.get(value).copied()).collect(),
        })
    }
}

/// A number for each key: the next one for a new key.
fn code<K: Hash + Eq>(codes: &mut HashMap<K, u32>, key: K) -> u32 {
    let next = codes.len() as u32;
    *codes.entry(key).or_insert(next)
}

/// The key of a number among values of a kind: the number itself for integers, otherwise its bits after rounding as in
/// a comparison.
fn key(literal: &Literal, kind: Kind) -> Option<i128> {
    // Rounded once, as in comparisons.
    let (integer, real, single) = match literal {
        Literal::Boolean(boolean) => {
            let number = u8::from(*boolean);
            (Some(i128::from(number)), f64::from(number), f32::from(number))
        }
        Literal::Integer(integer) => (Some(i128::from(*integer)), *integer as f64, *integer as f32),
        Literal::Unsigned(integer) => (Some(i128::from(*integer)), *integer as f64, *integer as f32),
        Literal::Real(real) => ((real.fract() == 0.0).then_some(*real as i128), *real, *real as f32),
        Literal::Text(_) => return None,
    };
    match kind {
        Kind::Single => real_key(f64::from(single)),
        Kind::Double => real_key(real),
        _ => integer,
    }
}

/// The same for both zeros, and none for NaN.
fn real_key(value: f64) -> Option<i128> {
    (!value.is_nan()).then(|| i128::from((value + 0.0).to_bits()))
}

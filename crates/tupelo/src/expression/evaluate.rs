//! The tree over a batch.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, UInt64Array};
use arrow_buffer::OffsetBuffer;
use arrow_select::filter::{filter, prep_null_mask_filter};
use arrow_select::take::take;

use super::functions::{self, Lane, Reduction, truths};
use super::parse::{Binary, Literal, Node, Term, Unary};
use super::value::{Aligned, Kind, Operand, Value, agree, align, describe, with_nulls};
use crate::{Error, Result, pool};

/// Functions, for those who misspell one.
const FUNCTIONS: &[&str] = &[
    "abs",
    "all",
    "any",
    "arccos",
    "arcsin",
    "arctan",
    "arctan2",
    "argmax",
    "argmin",
    "ceil",
    "cos",
    "cosh",
    "count",
    "exp",
    "expm1",
    "floor",
    "hypot",
    "is_missing",
    "isfinite",
    "isnan",
    "len",
    "log",
    "log10",
    "log1p",
    "log2",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "prod",
    "round",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "sum",
    "tan",
    "tanh",
    "where",
];

/// The value for each entry of a batch.
pub(super) fn evaluate(text: &str, root: &Term, batch: &RecordBatch) -> Result<Value> {
    match (Evaluator { text, batch }).operand(root)? {
        Operand::Value(value) => Ok(value),
        Operand::Literal(literal) => {
            let first = UInt64Array::from(vec![0; batch.num_rows()]);
            Ok(Value { lists: Vec::new(), leaf: take(&literal.array(), &first, None)?, is_optional: false })
        }
    }
}

struct Evaluator<'e> {
    text: &'e str,
    batch: &'e RecordBatch,
}

impl Evaluator<'_> {
    fn operand(&self, term: &Term) -> Result<Operand> {
        pool::check()?;
        match &term.node {
            Node::Literal(literal) => Ok(Operand::Literal(literal.clone())),
            Node::Field(path) => self.field(path).map(Operand::Value),
            Node::Member(inner, name) => match self.operand(inner)? {
                Operand::Value(value) => value.member(name).map(Operand::Value),
                Operand::Literal(_) => {
                    Err(Error::invalid_argument(format!("there is no member '{name}' in a literal")))
                }
            },
            Node::Unary(sign, inner) => {
                let operand = self.operand(inner)?;
                unary(*sign, &operand).map_err(|e| self.at(term, e))
            }
            Node::Binary(operator, left, right) => {
                let operands = [self.operand(left)?, self.operand(right)?];
                let sign = self.text.get(left.at.end..right.at.start).unwrap_or_default();
                let sign = sign.trim_matches(|c: char| c.is_whitespace() || matches!(c, '(' | ')'));
                binary(*operator, sign, &operands).map_err(|e| self.at(term, e))
            }
            Node::Call(name, arguments) => {
                let operands = arguments.iter().map(|argument| self.operand(argument)).collect::<Result<Vec<_>>>()?;
                call(name, &operands).map_err(|e| self.at(term, e))
            }
            Node::Index(inner, by) => {
                let (operand, by) = (self.operand(inner)?, self.operand(by)?);
                let Operand::Value(value) = operand else {
                    return Err(self.at(term, Error::invalid_argument("a literal has no items")));
                };
                index(&value, &by).map(Operand::Value).map_err(|e| self.at(term, e))
            }
        }
    }

    /// Puts the part of the expression in front of an error, where it is not all of it.
    #[cold]
    fn at(&self, term: &Term, error: Error) -> Error {
        match self.text.get(term.at.clone()) {
            Some(part) if part.len() < self.text.trim().len() => error.within(format!("'{part}'")),
            _ => error,
        }
    }

    /// The longest name in front that is a field, and members of it.
    fn field(&self, path: &str) -> Result<Value> {
        let mut ends = std::iter::once(path.len()).chain(path.rmatch_indices('.').map(|(at, _)| at));
        let schema = self.batch.schema();
        let found = ends.find_map(|end| Some((end, schema.column_with_name(&path[..end])?)));
        let Some((end, (index, field))) = found else {
            let known: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
            return Err(Error::no_such("field", path, known.iter().map(String::as_str)));
        };
        let members = path[end..].split('.').skip(1);
        members
            .fold(Value::of(self.batch.column(index), field.is_nullable()), |value, name| value?.member(name))
            .map_err(|e| e.within(format!("field '{path}'")))
    }
}

/// A leaf for all of what was aligned; a literal where all were.
fn joined(aligned: Aligned, leaf: ArrayRef) -> Operand {
    if !aligned.is_literal {
        return Operand::Value(Value { lists: aligned.lists, leaf, is_optional: aligned.is_optional });
    }
    Operand::Literal(match leaf.as_boolean_opt() {
        Some(truths) => Literal::Truth(truths.value(0)),
        None => match leaf.as_primitive_opt::<Int64Type>() {
            Some(integers) => Literal::Integer(integers.value(0)),
            None => Literal::Real(leaf.as_primitive::<Float64Type>().value(0)),
        },
    })
}

fn kind(operand: &Operand) -> Kind {
    match operand {
        Operand::Value(value) => value.kind(),
        Operand::Literal(literal) => Kind::of(literal.array().data_type()),
    }
}

fn unary(sign: Unary, operand: &Operand) -> Result<Operand> {
    let operands = std::slice::from_ref(operand);
    let aligned = align(operands)?;
    let leaf = &aligned.leaves[0];
    let leaf: ArrayRef = match sign {
        Unary::Not => Arc::new(inverted(&truths(leaf, "not")?)),
        Unary::Invert if kind(operand) == Kind::Truth => Arc::new(inverted(leaf.as_boolean())),
        Unary::Invert if kind(operand) == Kind::Integer => {
            functions::bits(Binary::BitXor, &[Arc::clone(leaf), Literal::Integer(-1).array()], aligned.count)?
        }
        Unary::Invert => {
            let found = describe(leaf.data_type());
            return Err(Error::invalid_argument(format!("~ takes truths and integers, not {found}")));
        }
        Unary::Plus | Unary::Minus => {
            let lane = Lane::of(operands, "a sign")?;
            match sign {
                Unary::Plus => return Ok(operand.clone()),
                _ => functions::signed(false, lane, leaf)?,
            }
        }
    };
    Ok(joined(aligned, leaf))
}

fn inverted(truths: &BooleanArray) -> BooleanArray {
    BooleanArray::new(!truths.values(), truths.nulls().cloned())
}

fn binary(operator: Binary, sign: &str, operands: &[Operand]) -> Result<Operand> {
    use Binary::*;
    let mut aligned = align(operands)?;
    let (leaves, count) = (&aligned.leaves, aligned.count);
    let leaf = match operator {
        Or | And => functions::logic(operator, sign, leaves, count),
        BitOr | BitXor | BitAnd if operands.iter().all(|operand| kind(operand) == Kind::Integer) => {
            functions::bits(operator, leaves, count)
        }
        BitOr | BitXor | BitAnd => functions::logic(operator, sign, leaves, count),
        Less | LessEqual | Greater | GreaterEqual | Equal | NotEqual => {
            functions::compare(operator, operands, leaves, count)
        }
        Add | Subtract | Multiply | Divide | FloorDivide | Remainder | Power => {
            let lane = Lane::of(operands, sign)?;
            let lane = match (operator, &operands[1]) {
                (Divide, _) => lane.real(),
                // Integers have no fractions: only what is known to be a natural number stays one.
                (Power, Operand::Literal(Literal::Integer(0..))) => lane,
                (Power, _) => lane.real(),
                _ => lane,
            };
            let by_zero = matches!(operator, FloorDivide | Remainder) && functions::may_be_zero(&operands[1]);
            if lane == Lane::Integer && by_zero {
                if aligned.is_literal {
                    return Err(Error::invalid_argument(format!("integers have no {sign} by 0")));
                }
                aligned.is_optional = true;
            }
            functions::arithmetic(operator, sign, lane, leaves, count)
        }
    }?;
    Ok(joined(aligned, leaf))
}

fn call(name: &str, operands: &[Operand]) -> Result<Operand> {
    let what = format!("{name}()");
    let wants = |wanted: &str| {
        let given = operands.len();
        Err(Error::invalid_argument(format!("{what} takes {wanted}, and was given {given}")))
    };
    match (name, operands) {
        ("where", [_, a, b]) => {
            let lane = Lane::of(&[a.clone(), b.clone()], &what)?;
            let aligned = align(operands)?;
            let leaf = functions::choose(lane, &aligned.leaves, aligned.count)?;
            Ok(joined(aligned, leaf))
        }
        ("where", _) => wants("a truth and two values"),
        ("len" | "count" | "any" | "all", [Operand::Value(value)]) => over_lists(name, value).map(Operand::Value),
        ("len" | "count" | "any" | "all", [_]) => Err(no_list(&what, &operands[0])),
        ("len" | "count" | "any" | "all", _) => wants("one collection"),
        (_, [operand]) if Reduction::named(name).is_some() => {
            let reduction = Reduction::named(name).unwrap_or(Reduction::Sum);
            let Operand::Value(value) = operand else { return Err(no_list(&what, operand)) };
            let Some((last, above)) = value.lists.split_last() else { return Err(no_list(&what, operand)) };
            let lane = Lane::of(operands, &what)?;
            let lane = if reduction == Reduction::Mean { lane.real() } else { lane };
            let leaf = functions::reduce(reduction, lane, last, &value.leaf)?;
            let is_optional = last.is_optional || !matches!(reduction, Reduction::Sum | Reduction::Product);
            Ok(Operand::Value(Value { lists: above.to_vec(), leaf, is_optional }))
        }
        ("is_missing", [Operand::Value(value)]) => Ok(Operand::Value(value.is_missing())),
        ("is_missing", [Operand::Literal(_)]) => Ok(Operand::Literal(Literal::Truth(false))),
        ("abs" | "isnan" | "isfinite", [operand]) => {
            let aligned = align(operands)?;
            let leaf = &aligned.leaves[0];
            let leaf: ArrayRef = match name {
                "abs" => functions::signed(true, Lane::of(operands, &what)?, leaf)?,
                _ => {
                    Lane::of(std::slice::from_ref(operand), &what)?;
                    functions::test(name, leaf)?
                }
            };
            Ok(joined(aligned, leaf))
        }
        ("abs" | "isnan" | "isfinite" | "is_missing", _) => wants("one value"),
        _ => {
            if let ([_], Some(f)) = (operands, functions::of_one(name)) {
                let lane = Lane::of(operands, &what)?;
                let lane = if matches!(name, "floor" | "ceil" | "round" | "sign") { lane } else { lane.real() };
                let aligned = align(operands)?;
                let leaf = match lane {
                    // They are whole already.
                    Lane::Integer if name != "sign" => return Ok(operands[0].clone()),
                    lane => functions::apply(f, lane, &aligned.leaves[0])?,
                };
                return Ok(joined(aligned, leaf));
            }
            if let ([_, _], Some(f)) = (operands, functions::of_two(name)) {
                let lane = Lane::of(operands, &what)?;
                let is_extreme = name.starts_with('m');
                let aligned = align(operands)?;
                let leaf = match (is_extreme, lane) {
                    (true, Lane::Integer) => extreme_integers(name, &aligned)?,
                    (true, lane) => functions::apply_two(f, lane, &aligned.leaves, aligned.count)?,
                    (false, lane) => functions::apply_two(f, lane.real(), &aligned.leaves, aligned.count)?,
                };
                return Ok(joined(aligned, leaf));
            }
            match (Reduction::named(name).is_some(), functions::of_one(name), functions::of_two(name)) {
                (true, _, Some(_)) => wants("a collection or two values"),
                (true, ..) => wants("one collection"),
                (_, Some(_), _) => wants("one value"),
                (_, _, Some(_)) => wants("two values"),
                _ => Err(Error::no_such("function", name, FUNCTIONS.iter().copied())),
            }
        }
    }
}

/// The smaller or the larger of two integers: doubles do not hold all of them.
fn extreme_integers(name: &str, aligned: &Aligned) -> Result<ArrayRef> {
    let operator = if name.starts_with("min") { Binary::Less } else { Binary::Greater };
    let value = |leaf: &ArrayRef| {
        Operand::Value(Value { lists: Vec::new(), leaf: Arc::clone(leaf), is_optional: aligned.is_optional })
    };
    let operands: Vec<Operand> = aligned.leaves.iter().map(value).collect();
    let first = functions::compare(operator, &operands, &aligned.leaves, aligned.count)?;
    let leaves = [first, Arc::clone(&aligned.leaves[0]), Arc::clone(&aligned.leaves[1])];
    functions::choose(Lane::Integer, &leaves, aligned.count)
}

#[cold]
fn no_list(what: &str, operand: &Operand) -> Error {
    let found = match operand {
        Operand::Value(value) => describe(value.leaf.data_type()),
        Operand::Literal(literal) => describe(literal.array().data_type()),
    };
    Error::invalid_argument(format!("{what} takes a collection, not {found} for each entry"))
}

/// Lengths of the outermost lists, and what truths or items the innermost have.
fn over_lists(name: &str, value: &Value) -> Result<Value> {
    let what = format!("{name}()");
    let (Some(first), Some((last, above))) = (value.lists.first(), value.lists.split_last()) else {
        return Err(no_list(&what, &Operand::Value(value.clone())));
    };
    let (counted, above) = if name == "len" { (first, &[][..]) } else { (last, above) };
    let leaf: ArrayRef = match name {
        "len" => Arc::new(Int64Array::from_iter_values(counted.bounds().map(|(from, to)| to - from))),
        "count" => {
            let there = |from: i64, to: i64| (from..to).filter(|&at| value.leaf.is_valid(at as usize)).count() as i64;
            Arc::new(Int64Array::from_iter_values(counted.bounds().map(|(from, to)| there(from, to))))
        }
        _ => {
            let truths = prep(&truths(&value.leaf, &what)?, name == "all");
            let found = counted.bounds().map(|(from, to)| {
                let mut mine = (from..to).map(|at| truths.value(at as usize));
                if name == "any" { mine.any(|truth| truth) } else { mine.all(|truth| truth) }
            });
            Arc::new(BooleanArray::from(found.collect::<Vec<bool>>()))
        }
    };
    let leaf = with_nulls(&leaf, counted.nulls.as_ref())?;
    Ok(Value { lists: above.to_vec(), leaf, is_optional: counted.is_optional })
}

/// Truths in which what is missing counts as `missing`.
fn prep(truths: &BooleanArray, missing: bool) -> BooleanArray {
    match (truths.nulls(), missing) {
        (None, _) => truths.clone(),
        (Some(_), false) => prep_null_mask_filter(truths),
        (Some(nulls), true) => BooleanArray::new(truths.values() | &!nulls.inner(), None),
    }
}

/// `value[by]`
fn index(value: &Value, by: &Operand) -> Result<Value> {
    if value.lists.is_empty() {
        let found = describe(value.leaf.data_type());
        return Err(Error::invalid_argument(format!("{found} for each entry has no items")));
    }
    match (by, kind(by)) {
        (Operand::Value(mask), Kind::Truth) => select(value, mask),
        (Operand::Literal(Literal::Integer(place)), _) => item(value, 0, |_| Some(*place)),
        (Operand::Literal(Literal::Unsigned(_)), _) => item(value, 0, |_| None),
        (Operand::Value(places), Kind::Integer) => {
            let depth = places.lists.len();
            let (mut value, mut places) = (value.clone(), places.clone());
            if value.lists.len() <= depth || agree(&mut [&mut value, &mut places]).is_err() {
                return Err(Error::invalid_argument("an index stands for one item of each list"));
            }
            let places = Lane::cast::<Int64Type>(&places.leaf)?;
            item(&value, depth, |list| (!places.is_null(list)).then(|| places.value(list)))
        }
        _ => Err(Error::invalid_argument("between brackets stands an integer, or a list of truths")),
    }
}

/// The items where the mask is true.
fn select(value: &Value, mask: &Value) -> Result<Value> {
    let (mut value, mut mask) = (value.clone(), mask.clone());
    let depth = mask.lists.len();
    if depth == 0 {
        return Err(Error::invalid_argument("a mask is a list of truths, one for each item; a cut keeps entries"));
    }
    if value.lists.len() < depth || agree(&mut [&mut value, &mut mask]).is_err() {
        return Err(Error::invalid_argument("a mask has one truth for each item of a list"));
    }
    let kept = prep(&truths(&mask.leaf, "a mask")?, false);
    let below = value.below(depth);
    let is_optional = below.is_nullable();
    let below = Value::of(&filter(&below.into_array(), &kept)?, is_optional)?;
    let mut lists = mask.lists;
    let last = &mut lists[depth - 1];
    let lengths = last.bounds().map(|(from, to)| (from..to).filter(|&at| kept.value(at as usize)).count());
    (last.offsets, last.fixed_len) = (OffsetBuffer::from_lengths(lengths), None);
    lists.extend(below.lists);
    Ok(Value { lists, ..below })
}

/// One item of each list of a level, from its front or, below zero, from its end; missing where there is none.
fn item(value: &Value, level: usize, place: impl Fn(usize) -> Option<i64>) -> Result<Value> {
    let places = value.lists[level].bounds().enumerate().map(|(list, (from, to))| {
        let place = place(list)?;
        let at = if place < 0 { to.checked_add(place)? } else { from.checked_add(place)? };
        (from..to).contains(&at).then_some(at as u64)
    });
    let places: UInt64Array = places.collect();
    let below = Value::of(&take(&value.below(level + 1).into_array(), &places, None)?, true)?;
    Ok(Value { lists: value.lists[..level].iter().cloned().chain(below.lists).collect(), ..below })
}

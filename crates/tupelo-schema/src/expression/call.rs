//! Operators and functions of whole operands, lists included.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array};
use arrow_cast::cast;
use arrow_schema::DataType;

use super::functions::{self, NumberType, booleans};
use super::reduce::{self, Reduction};
use super::syntax::{Binary, Literal, Unary};
use super::table::{Function, Kind};
use super::value::{self, Aligned, Lists, Operand, Value, align, describe, known, with_nulls};
use crate::{Error, Result};

/// The value of an operator before its operand.
pub(super) fn unary(sign: Unary, operand: &Operand) -> Result<Operand> {
    let operands = std::slice::from_ref(operand);
    let aligned = align(operands)?;
    let leaf = &aligned.leaves[0];
    let leaf: ArrayRef = match sign {
        Unary::Not => Arc::new(inverted(&booleans(leaf, "not")?)),
        Unary::Invert if operand.kind() == value::Kind::Boolean => Arc::new(inverted(leaf.as_boolean())),
        Unary::Invert if operand.kind() == value::Kind::Integer => {
            functions::bits(Binary::BitXor, &[Arc::clone(leaf), Literal::Integer(-1).array()], aligned.count)?
        }
        Unary::Invert => {
            let found = describe(leaf.data_type());
            return Err(Error::invalid_argument(format!("~ takes booleans and integers, not {found}")));
        }
        Unary::Plus | Unary::Minus => {
            let lane = NumberType::of(operands, "a sign")?;
            match sign {
                Unary::Plus => return Ok(operand.clone()),
                _ => functions::signed(false, lane, leaf)?,
            }
        }
    };
    Ok(aligned.operand(leaf))
}

fn inverted(booleans: &BooleanArray) -> BooleanArray {
    BooleanArray::new(!booleans.values(), booleans.nulls().cloned())
}

/// The value of an operator between its operands.
pub(super) fn binary(operator: Binary, sign: &str, operands: &[Operand]) -> Result<Operand> {
    use Binary::*;
    let mut aligned = align(operands)?;
    let (leaves, count) = (&aligned.leaves, aligned.count);
    let leaf = match operator {
        Or | And => functions::logic(operator, sign, leaves, count),
        BitOr | BitXor | BitAnd if operands.iter().all(|operand| operand.kind() == value::Kind::Integer) => {
            functions::bits(operator, leaves, count)
        }
        BitOr | BitXor | BitAnd => functions::logic(operator, sign, leaves, count),
        Less | LessEqual | Greater | GreaterEqual | Equal | NotEqual => {
            functions::compare(operator, operands, leaves, count)
        }
        Add | Subtract | Multiply | Divide | FloorDivide | Remainder | Power => {
            let lane = NumberType::of(operands, sign)?;
            let lane = match (operator, &operands[1]) {
                (Divide, _) => lane.real(),
                // Integers have no fractions: a power stays an integer only if the exponent is known to be a natural
                // number.
                (Power, Operand::Literal(Literal::Integer(0..))) => lane,
                (Power, _) => lane.real(),
                _ => lane,
            };
            let by_zero = matches!(operator, FloorDivide | Remainder) && functions::may_be_zero(&operands[1]);
            if lane == NumberType::Integer && by_zero {
                if aligned.is_literal {
                    return Err(Error::invalid_argument(format!("integer {sign} by 0 is undefined")));
                }
                aligned.is_optional = true;
            }
            functions::arithmetic(operator, sign, lane, leaves, count)
        }
    }?;
    Ok(aligned.operand(leaf))
}

/// The value of the function of this name, whose number of arguments is valid.
pub(super) fn call(name: &str, function: &Function, operands: &[Operand], axis: Option<i64>) -> Result<Operand> {
    let what = format!("{name}()");
    let what = what.as_str();
    match (function.kind, operands) {
        (Kind::Minimum | Kind::Reduce(Reduction::Min), [_, _]) => extreme(what, false, operands),
        (Kind::Maximum | Kind::Reduce(Reduction::Max), [_, _]) => extreme(what, true, operands),
        (Kind::Operator(operator), _) => binary(operator, what, operands),
        (Kind::Signed(sign), [operand]) => unary(sign, operand),
        (Kind::Square, [operand]) => binary(Binary::Multiply, what, &[operand.clone(), operand.clone()]),
        (Kind::Where, [_, a, b]) => {
            let lane = NumberType::of(&[a.clone(), b.clone()], what)?;
            let aligned = align(operands)?;
            let leaf = functions::choose(lane, &aligned.leaves, aligned.count)?;
            let are_booleans = [a, b].iter().all(|operand| operand.kind() == value::Kind::Boolean);
            Ok(aligned.operand(if are_booleans { cast(&leaf, &DataType::Boolean)? } else { leaf }))
        }
        (Kind::IsMissing, [Operand::Value(value)]) => Ok(Operand::Value(value.is_missing())),
        (Kind::IsMissing, _) => Ok(Operand::Literal(Literal::Boolean(false))),
        (Kind::Real(_) | Kind::Whole(_) | Kind::Sign(_) | Kind::Absolute | Kind::Test(_), [operand]) => {
            number(function.kind, what, operand)
        }
        (Kind::RealTwo(f), _) => {
            let lane = NumberType::of(operands, what)?.real();
            let aligned = align(operands)?;
            let leaf = functions::apply_two(f, lane, &aligned.leaves, aligned.count)?;
            Ok(aligned.operand(leaf))
        }
        (_, [Operand::Value(value)]) if !value.lists.is_empty() => {
            lists(function.kind, what, value, axis).map(Operand::Value)
        }
        (_, [operand, ..]) => Err(no_list(what, operand)),
        (_, []) => Err(Error::invalid_argument(format!("{what} takes {}", function.takes()))),
    }
}

/// A function of one number.
fn number(kind: Kind, what: &str, operand: &Operand) -> Result<Operand> {
    let operands = std::slice::from_ref(operand);
    let lane = NumberType::of(operands, what)?;
    let aligned = align(operands)?;
    let leaf = &aligned.leaves[0];
    let leaf: ArrayRef = match (kind, lane) {
        // They are integers already.
        (Kind::Whole(_), NumberType::Integer) => return Ok(operand.clone()),
        (Kind::Whole(f) | Kind::Sign(f), lane) => functions::apply(f, lane, leaf)?,
        (Kind::Real(f), lane) => functions::apply(f, lane.real(), leaf)?,
        (Kind::Test(f), _) => functions::test(f, leaf)?,
        _ => functions::signed(true, lane, leaf)?,
    };
    Ok(aligned.operand(leaf))
}

/// The smaller or the larger of two numbers. NaN goes through, as in NumPy.
fn extreme(what: &str, is_max: bool, operands: &[Operand]) -> Result<Operand> {
    let lane = NumberType::of(operands, what)?;
    let aligned = align(operands)?;
    let f: fn(f64, f64) -> f64 = match is_max {
        false => |a, b| if a.is_nan() || a < b { a } else { b },
        true => |a, b| if a.is_nan() || a > b { a } else { b },
    };
    let leaf = match lane {
        NumberType::Integer => extreme_integers(is_max, &aligned)?,
        lane => functions::apply_two(f, lane, &aligned.leaves, aligned.count)?,
    };
    Ok(aligned.operand(leaf))
}

/// The smaller or the larger of two integers: doubles do not hold all of them.
fn extreme_integers(is_max: bool, aligned: &Aligned) -> Result<ArrayRef> {
    let operator = if is_max { Binary::Greater } else { Binary::Less };
    let value = |leaf: &ArrayRef| {
        Operand::Value(Value { lists: Vec::new(), leaf: Arc::clone(leaf), is_optional: aligned.is_optional })
    };
    let operands: Vec<Operand> = aligned.leaves.iter().map(value).collect();
    let first = functions::compare(operator, &operands, &aligned.leaves, aligned.count)?;
    let leaves = [first, Arc::clone(&aligned.leaves[0]), Arc::clone(&aligned.leaves[1])];
    functions::choose(NumberType::Integer, &leaves, aligned.count)
}

#[cold]
fn no_list(what: &str, operand: &Operand) -> Error {
    let found = match operand {
        Operand::Value(value) => describe(value.leaf.data_type()),
        Operand::Literal(literal) => describe(literal.array().data_type()),
    };
    Error::invalid_argument(format!("{what} takes a collection, not {found} for each entry"))
}

/// The reduction of lists. Entries are axis 0, and the innermost lists the last axis.
fn lists(kind: Kind, what: &str, value: &Value, axis: Option<i64>) -> Result<Value> {
    let depth = value.lists.len();
    let level = match axis {
        None => {
            if let Kind::Length = kind {
                0
            } else {
                depth - 1
            }
        }
        Some(axis) => level(what, depth, axis)?,
    };
    if let Kind::Length = kind {
        let lengths = Int64Array::from_iter_values(value.lists[level].bounds().map(|(from, to)| to - from));
        return of_lists(value, level, &(Arc::new(lengths) as ArrayRef));
    }
    if level + 1 < depth {
        let what = format!(
            "{what} applies to the innermost lists, which are axis={depth} here, not axis={}: write axis=-1, and call \
             it again for the outer lists",
            level + 1
        );
        return Err(Error::invalid_argument(what));
    }
    if let Kind::Reduce(reduction) = kind {
        return reduced(reduction, what, value);
    }
    let last = &value.lists[level];
    let leaf: ArrayRef = if let Kind::Count = kind {
        let there = |from: i64, to: i64| (from..to).filter(|&at| value.leaf.is_valid(at as usize)).count() as i64;
        Arc::new(Int64Array::from_iter_values(last.bounds().map(|(from, to)| there(from, to))))
    } else {
        let is_all = matches!(kind, Kind::All);
        let booleans = known(&booleans(&value.leaf, what)?, is_all);
        let found = last.bounds().map(|(from, to)| {
            let mut mine = (from..to).map(|at| booleans.value(at as usize));
            if is_all { mine.all(|boolean| boolean) } else { mine.any(|boolean| boolean) }
        });
        Arc::new(BooleanArray::from(found.collect::<Vec<bool>>()))
    };
    of_lists(value, level, &leaf)
}

/// The level of lists of an axis.
fn level(what: &str, depth: usize, axis: i64) -> Result<usize> {
    let place = if axis < 0 { axis.saturating_add(depth as i64 + 1) } else { axis };
    match usize::try_from(place) {
        Ok(0) => Err(Error::invalid_argument(format!(
            "{what} applies to lists, but axis={axis} selects the entries, which are computed one by one"
        ))),
        Ok(place) if place <= depth => Ok(place - 1),
        _ => Err(Error::invalid_argument(format!(
            "axis={axis} of {what} does not exist: lists have {depth} level{}, and axis=-1 is the innermost",
            if depth == 1 { "" } else { "s" }
        ))),
    }
}

/// One leaf for each list of a level.
fn of_lists(value: &Value, level: usize, leaf: &ArrayRef) -> Result<Value> {
    let Lists { nulls, is_optional, .. } = &value.lists[level];
    let leaf = with_nulls(leaf, nulls.as_ref())?;
    Ok(Value { lists: value.lists[..level].to_vec(), leaf, is_optional: *is_optional })
}

fn reduced(reduction: Reduction, what: &str, value: &Value) -> Result<Value> {
    let Some((last, above)) = value.lists.split_last() else {
        return Err(no_list(what, &Operand::Value(value.clone())));
    };
    let lane = NumberType::of(&[Operand::Value(value.clone())], what)?;
    let lane = if reduction == Reduction::Mean { lane.real() } else { lane };
    let leaf = reduce::reduce(reduction, lane, last, &value.leaf)?;
    let is_optional = last.is_optional || !matches!(reduction, Reduction::Sum | Reduction::Product);
    Ok(Value { lists: above.to_vec(), leaf, is_optional })
}

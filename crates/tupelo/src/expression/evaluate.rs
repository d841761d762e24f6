//! The steps over a batch.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt64Array};
use arrow_select::take::take;

use super::functions::{self, NumberType, booleans};
use super::members::Members;
use super::program::{Binary, Literal, Op, Step, Unary};
use super::value::{Aligned, Kind, Operand, Value, align, describe};
use super::{call, items, shorten};
use crate::{Error, Result, pool};

/// The value for each entry of a batch.
pub(super) fn evaluate(text: &str, steps: &[Step], batch: &RecordBatch) -> Result<Value> {
    let mut evaluator = Evaluator { text, batch, fields: HashMap::new(), stack: Vec::new() };
    for step in steps {
        pool::check()?;
        evaluator.step(step)?;
    }
    match evaluator.pop()? {
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
    /// Fields that were named before.
    fields: HashMap<&'e str, Value>,
    stack: Vec<Operand>,
}

impl<'e> Evaluator<'e> {
    fn pop(&mut self) -> Result<Operand> {
        self.stack.pop().ok_or_else(|| Error::invalid_argument("a step of an expression has no value"))
    }

    /// The last values, in their order.
    fn pop_many(&mut self, count: usize) -> Vec<Operand> {
        self.stack.split_off(self.stack.len().saturating_sub(count))
    }

    fn step(&mut self, step: &'e Step) -> Result<()> {
        let made = match &step.op {
            // Errors about fields name them.
            Op::Field(path) => Operand::Value(self.known_field(path)?),
            Op::Compare { operator, is_chained, goes_on } => {
                let made = self.compare(*operator, *is_chained, *goes_on);
                return made.map_err(|e| self.at(step, e));
            }
            _ => self.value(&step.op).map_err(|e| self.at(step, e))?,
        };
        self.stack.push(made);
        Ok(())
    }

    /// The value of a step.
    fn value(&mut self, op: &Op) -> Result<Operand> {
        Ok(match op {
            Op::Literal(literal) => Operand::Literal(literal.clone()),
            Op::Member(name) => match self.pop()? {
                Operand::Value(value) => Operand::Value(value.member(name)?),
                Operand::Literal(_) => {
                    return Err(Error::invalid_argument(format!("there is no member '{name}' in a literal")));
                }
            },
            Op::Unary(sign) => unary(*sign, &self.pop()?)?,
            Op::Binary(operator, sign) => {
                let operands = self.pop_many(2);
                check_caret(*operator, &operands)?;
                binary(*operator, sign, &operands)?
            }
            Op::In { members, is_negated } => {
                let operands = self.pop_many(members.width());
                membership(members, *is_negated, &operands)?
            }
            Op::Call { name, function, count, axis } => call::call(name, function, &self.pop_many(*count), *axis)?,
            Op::Index { level } => {
                let by = self.pop()?;
                Operand::Value(items::index(&self.collection()?, &by, *level)?)
            }
            Op::Slice { level, slice } => Operand::Value(items::slice(&self.collection()?, *level, *slice)?),
            Op::Field(_) | Op::Compare { .. } => return Err(Error::invalid_argument("a step that is done elsewhere")),
        })
    }

    fn collection(&mut self) -> Result<Value> {
        match self.pop()? {
            Operand::Value(value) => Ok(value),
            Operand::Literal(_) => Err(Error::invalid_argument("a literal has no items")),
        }
    }

    /// One comparison of a chain: below its boolean there is no other value, and its right value is above it if the chain
    /// goes on.
    fn compare(&mut self, operator: Binary, is_chained: bool, goes_on: bool) -> Result<()> {
        let operands = self.pop_many(2);
        let mut boolean = binary(operator, "", &operands)?;
        if is_chained {
            boolean = binary(Binary::And, "and", &[self.pop()?, boolean])?;
        }
        self.stack.push(boolean);
        self.stack.extend(operands.into_iter().nth(1).filter(|_| goes_on));
        Ok(())
    }

    /// Puts the part of the expression in front of an error, where it is not all of it.
    #[cold]
    fn at(&self, step: &Step, error: Error) -> Error {
        match self.text.get(step.at.clone()) {
            Some(part) if part.len() < self.text.trim().len() => error.within(format!("'{}'", shorten(part))),
            _ => error,
        }
    }

    fn known_field(&mut self, path: &'e str) -> Result<Value> {
        if let Some(value) = self.fields.get(path) {
            return Ok(value.clone());
        }
        let value = self.field(path)?;
        self.fields.insert(path, value.clone());
        Ok(value)
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
pub(super) fn joined(aligned: Aligned, leaf: ArrayRef) -> Operand {
    if !aligned.is_literal {
        return Operand::Value(Value { lists: aligned.lists, leaf, is_optional: aligned.is_optional });
    }
    Operand::Literal(match leaf.as_boolean_opt() {
        Some(booleans) => Literal::Boolean(booleans.value(0)),
        None => match leaf.as_primitive_opt::<Int64Type>() {
            Some(integers) => Literal::Integer(integers.value(0)),
            None => Literal::Real(leaf.as_primitive::<Float64Type>().value(0)),
        },
    })
}

pub(super) fn kind(operand: &Operand) -> Kind {
    match operand {
        Operand::Value(value) => value.kind(),
        Operand::Literal(literal) => Kind::of(literal.array().data_type()),
    }
}

pub(super) fn unary(sign: Unary, operand: &Operand) -> Result<Operand> {
    let operands = std::slice::from_ref(operand);
    let aligned = align(operands)?;
    let leaf = &aligned.leaves[0];
    let leaf: ArrayRef = match sign {
        Unary::Not => Arc::new(inverted(&booleans(leaf, "not")?)),
        Unary::Invert if kind(operand) == Kind::Boolean => Arc::new(inverted(leaf.as_boolean())),
        Unary::Invert if kind(operand) == Kind::Integer => {
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
    Ok(joined(aligned, leaf))
}

fn inverted(booleans: &BooleanArray) -> BooleanArray {
    BooleanArray::new(!booleans.values(), booleans.nulls().cloned())
}

pub(super) fn binary(operator: Binary, sign: &str, operands: &[Operand]) -> Result<Operand> {
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
            let lane = NumberType::of(operands, sign)?;
            let lane = match (operator, &operands[1]) {
                (Divide, _) => lane.real(),
                // Integers have no fractions: only what is known to be a natural number stays one.
                (Power, Operand::Literal(Literal::Integer(0..))) => lane,
                (Power, _) => lane.real(),
                _ => lane,
            };
            let by_zero = matches!(operator, FloorDivide | Remainder) && functions::may_be_zero(&operands[1]);
            if lane == NumberType::Integer && by_zero {
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

/// `^` is a power in TTree formulas: between numbers it has no meaning that is not a mistake of somebody.
fn check_caret(operator: Binary, operands: &[Operand]) -> Result<()> {
    let number = operands.iter().find(|operand| !matches!(kind(operand), Kind::Boolean | Kind::Text | Kind::Other));
    match number {
        Some(_) if operator == Binary::BitXor => {
            let what = "^ takes booleans only: write ** for a power, and xor(a, b) for the bits of integers";
            Err(Error::invalid_argument(what))
        }
        _ => Ok(()),
    }
}

fn membership(members: &Members, is_negated: bool, operands: &[Operand]) -> Result<Operand> {
    let aligned = align(operands)?;
    let found = members.holds(&aligned.leaves, aligned.count, is_negated)?;
    Ok(joined(aligned, Arc::new(found)))
}

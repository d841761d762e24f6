//! The steps over a batch.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{RecordBatch, UInt64Array};
use arrow_select::take::take;
use tupelo_core::pool;

use super::call::{self, binary, unary};
use super::members::Members;
use super::program::{Op, Step};
use super::syntax::Binary;
use super::value::{Kind, Operand, Value, align};
use super::{items, shorten};
use crate::{Error, Result};

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
        self.stack.pop().ok_or_else(|| Error::invalid_argument("a step of an expression lacks a value"))
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
                    return Err(Error::invalid_argument(format!("a literal has no member '{name}'")));
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
            Op::Field(_) | Op::Compare { .. } => return Err(Error::invalid_argument("a step is evaluated elsewhere")),
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

    /// Prefixes an error with the part of the expression, unless it is the whole.
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

    /// The longest prefix that names a field, and members of it.
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

/// `^` is a power in TTree formulas: between numbers, any meaning would surprise somebody.
fn check_caret(operator: Binary, operands: &[Operand]) -> Result<()> {
    let number = operands.iter().find(|operand| !matches!(operand.kind(), Kind::Boolean | Kind::Text | Kind::Other));
    match number {
        Some(_) if operator == Binary::BitXor => {
            let what = "^ takes only booleans: write ** for powers and xor(a, b) for bits of integers";
            Err(Error::invalid_argument(what))
        }
        _ => Ok(()),
    }
}

fn membership(members: &Members, is_negated: bool, operands: &[Operand]) -> Result<Operand> {
    let aligned = align(operands)?;
    let found = members.holds(&aligned.leaves, aligned.count, is_negated)?;
    Ok(aligned.operand(Arc::new(found)))
}

//! Whether an expression can be true, judged by the bounds of the fields that it names.

use std::collections::BTreeSet;

use super::program::Op;
use super::syntax::{Binary, Literal, Unary};
use super::{Bloom, Expression, table};

/// What is known of all values of a field in some entries, of lists of all their items.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// No value is lower; infinity if there is none.
    pub lowest: f64,
    /// No value is higher; negative infinity if there is none.
    pub highest: f64,
    /// Whether a value may be NaN.
    pub has_nan: bool,
}

impl Bounds {
    /// Of no values.
    pub const NONE: Self = Self { lowest: f64::INFINITY, highest: f64::NEG_INFINITY, has_nan: false };

    /// Of these values and another one.
    pub fn with(self, value: f64) -> Self {
        match value.is_nan() {
            true => Self { has_nan: true, ..self },
            false => Self { lowest: self.lowest.min(value), highest: self.highest.max(value), ..self },
        }
    }

    /// Of these values and an integer. One that no double represents counts as both its neighbours.
    pub fn with_integer(self, value: i128) -> Self {
        let near = value as f64;
        let (low, high) = match (near as i128).cmp(&value) {
            std::cmp::Ordering::Less => (near, near.next_up()),
            std::cmp::Ordering::Equal => (near, near),
            std::cmp::Ordering::Greater => (near.next_down(), near),
        };
        self.with(low).with(high)
    }
}

/// What is known of the values of a field.
#[derive(Debug, Clone, Copy)]
pub struct Known<'z> {
    /// Between which values they are.
    pub bounds: Bounds,
    /// Whether some are null.
    pub has_nulls: bool,
    /// Which integers they may be.
    pub filter: Option<&'z Bloom>,
}

/// What a value of the expression may be. It may also be missing.
#[derive(Debug, Clone, Copy)]
enum Possible<'z> {
    Anything,
    Number(Bounds, Integers<'z>),
    Truth { yes: bool, no: bool },
}

/// Which integers numbers may be within their bounds.
#[derive(Debug, Clone, Copy)]
enum Integers<'z> {
    /// Any, or the numbers are not integers.
    Any,
    /// Those of a filter.
    Among(&'z Bloom),
    /// This one only. It equals no other integer, not even as a double.
    One(i64),
}

impl Integers<'_> {
    fn of(literal: &Literal) -> Self {
        let exact = |value: i64| value.unsigned_abs() < 1 << f64::MANTISSA_DIGITS;
        match literal {
            Literal::Integer(value) => Some(*value).filter(|value| exact(*value)).map_or(Self::Any, Self::One),
            _ => Self::Any,
        }
    }

    /// The numbers times -1.
    fn negated(self) -> Self {
        match self {
            Self::One(value) => Self::One(-value),
            Self::Any | Self::Among(_) => Self::Any,
        }
    }

    /// Whether a number of each may be equal.
    fn meet(self, other: Self) -> bool {
        match (self, other) {
            (Self::Among(filter), Self::One(value)) | (Self::One(value), Self::Among(filter)) => {
                filter.may_contain(value.into())
            }
            _ => true,
        }
    }
}

const EITHER: Possible<'_> = Possible::Truth { yes: true, no: true };

impl<'z> Possible<'z> {
    fn number(bounds: Bounds) -> Self {
        Self::Number(bounds, Integers::Any)
    }

    fn of(literal: &Literal) -> Self {
        let bounds = match literal {
            Literal::Boolean(yes) => return Self::Truth { yes: *yes, no: !yes },
            Literal::Text(_) => return Self::Anything,
            // Beside single precision literals are rounded.
            Literal::Integer(integer) => Bounds::NONE.with_integer((*integer).into()).with(f64::from(*integer as f32)),
            Literal::Unsigned(integer) => Bounds::NONE.with_integer((*integer).into()).with(f64::from(*integer as f32)),
            Literal::Real(real) => Bounds::NONE.with(*real).with(f64::from(*real as f32)),
        };
        Self::Number(bounds, Integers::of(literal))
    }

    /// As a boolean: whether it may be true, and false.
    fn truth(self) -> [bool; 2] {
        match self {
            Self::Truth { yes, no } => [yes, no],
            Self::Anything | Self::Number(..) => [true, true],
        }
    }

    fn unary(self, sign: Unary) -> Self {
        match (sign, self) {
            (Unary::Plus, same) => same,
            (Unary::Minus, Self::Number(Bounds { lowest, highest, has_nan }, integers)) => {
                let bounds = Bounds { lowest: -highest, highest: -lowest, has_nan };
                Self::Number(bounds, integers.negated())
            }
            (Unary::Not | Unary::Invert, Self::Truth { yes, no }) => Self::Truth { yes: no, no: yes },
            _ => Self::Anything,
        }
    }

    fn binary(operator: Binary, left: Self, right: Self) -> Self {
        let ([left_yes, left_no], [right_yes, right_no]) = (left.truth(), right.truth());
        let (both, either) = (
            Self::Truth { yes: left_yes && right_yes, no: left_no || right_no },
            Self::Truth { yes: left_yes || right_yes, no: left_no && right_no },
        );
        // `&` and `|` are also of the bits of integers.
        let are_booleans = matches!(left, Self::Truth { .. }) || matches!(right, Self::Truth { .. });
        match operator {
            Binary::And => both,
            Binary::Or => either,
            Binary::BitAnd if are_booleans => both,
            Binary::BitOr if are_booleans => either,
            _ => Self::Anything,
        }
    }

    fn comparison(operator: Binary, left: Self, right: Self) -> Self {
        let (Self::Number(a, first), Self::Number(b, second)) = (left, right) else { return EITHER };
        if a.lowest > a.highest && !a.has_nan || b.lowest > b.highest && !b.has_nan {
            // Nothing is compared.
            return Self::Truth { yes: false, no: false };
        }
        let is_one = |bounds: Bounds| bounds.lowest == bounds.highest;
        let (yes, no) = match operator {
            Binary::Less => (a.lowest < b.highest, a.highest >= b.lowest),
            Binary::LessEqual => (a.lowest <= b.highest, a.highest > b.lowest),
            Binary::Greater => (a.highest > b.lowest, a.lowest <= b.highest),
            Binary::GreaterEqual => (a.highest >= b.lowest, a.lowest < b.highest),
            Binary::Equal => (a.lowest <= b.highest && b.lowest <= a.highest && first.meet(second), true),
            Binary::NotEqual => (!(is_one(a) && is_one(b) && a.lowest == b.lowest), true),
            _ => (true, true),
        };
        let has_nan = a.has_nan || b.has_nan;
        match operator {
            Binary::NotEqual => Self::Truth { yes: yes || has_nan, no },
            _ => Self::Truth { yes, no: no || has_nan },
        }
    }

    fn call(function: &table::Function, arguments: &[Self]) -> Self {
        match (function.name, arguments) {
            ("any", [Self::Truth { yes, .. }]) => Self::Truth { yes: *yes, no: true },
            ("min" | "max", [same @ Self::Number(..)]) => *same,
            ("abs", [Self::Number(Bounds { lowest, highest, has_nan }, _)]) => {
                let (low, high) = (lowest.abs().min(highest.abs()), lowest.abs().max(highest.abs()));
                let lowest = if *lowest <= 0.0 && *highest >= 0.0 { 0.0 } else { low };
                Self::number(Bounds { lowest, highest: high, has_nan: *has_nan })
            }
            _ => Self::Anything,
        }
    }
}

impl Expression {
    /// False if the expression is true of no entry whose fields have values as they are known by their names; `None` is that
    /// nothing is known of a field.
    pub fn may_be_true<'z>(&self, known: &dyn Fn(&str) -> Option<Known<'z>>) -> bool {
        self.possible(known).is_none_or(|possible| possible.truth()[0])
    }

    /// The fields whose filters may rule out entries: those that it compares for equality.
    pub fn filtered_fields(&self) -> BTreeSet<&str> {
        self.equated_fields().unwrap_or_default()
    }

    /// The same; `None` for steps that do not fit together.
    fn equated_fields(&self) -> Option<BTreeSet<&str>> {
        let mut found = BTreeSet::new();
        // For each value the field whose values, or some of them, it is.
        let mut stack: Vec<Option<&str>> = Vec::new();
        for step in &self.steps {
            let made = match &step.op {
                Op::Field(path) => Some(path.as_str()),
                Op::Literal(_) => None,
                Op::Unary(Unary::Plus) | Op::Slice { .. } => stack.pop()?,
                Op::Index { .. } => {
                    stack.pop()?;
                    stack.pop()?
                }
                Op::Unary(_) | Op::Member(_) => {
                    stack.pop()?;
                    None
                }
                Op::Binary(..) => {
                    stack.truncate(stack.len().checked_sub(2)?);
                    None
                }
                Op::Compare { operator, is_chained, goes_on } => {
                    let (right, left) = (stack.pop()?, stack.pop()?);
                    if *operator == Binary::Equal {
                        found.extend(left.into_iter().chain(right));
                    }
                    if *is_chained {
                        stack.pop()?;
                    }
                    stack.push(None);
                    stack.extend(goes_on.then_some(right));
                    continue;
                }
                Op::In { members, .. } => {
                    found.extend(stack.split_off(stack.len().checked_sub(members.width())?).into_iter().flatten());
                    None
                }
                Op::Call { function, count, .. } => {
                    let arguments = stack.split_off(stack.len().checked_sub(*count)?);
                    match (function.name, &arguments[..]) {
                        ("min" | "max", [same]) => *same,
                        _ => None,
                    }
                }
            };
            stack.push(made);
        }
        Some(found)
    }

    /// The value; `None` for steps that do not fit together.
    fn possible<'z>(&self, known: &dyn Fn(&str) -> Option<Known<'z>>) -> Option<Possible<'z>> {
        let mut stack: Vec<Possible<'z>> = Vec::new();
        let mut before = None;
        for step in &self.steps {
            let last = before.replace(&step.op);
            let made = match &step.op {
                Op::Literal(literal) => Possible::of(literal),
                Op::Field(path) => known(path).map_or(Possible::Anything, |Known { bounds, filter, .. }| {
                    Possible::Number(bounds, filter.map_or(Integers::Any, Integers::Among))
                }),
                Op::Unary(sign) => stack.pop()?.unary(*sign),
                Op::Binary(operator, _) => {
                    let (right, left) = (stack.pop()?, stack.pop()?);
                    Possible::binary(*operator, left, right)
                }
                Op::Compare { operator, is_chained, goes_on } => {
                    let (right, left) = (stack.pop()?, stack.pop()?);
                    let mut truth = Possible::comparison(*operator, left, right);
                    if *is_chained {
                        truth = Possible::binary(Binary::And, stack.pop()?, truth);
                    }
                    stack.push(truth);
                    if *goes_on {
                        stack.push(right);
                    }
                    continue;
                }
                Op::In { members, is_negated } => {
                    let values = stack.split_off(stack.len().checked_sub(members.width())?);
                    let literals = members.columns();
                    let meets = |(value, literals): (&Possible<'_>, &Vec<Literal>)| match value {
                        Possible::Number(..) => literals.iter().any(|literal| {
                            Possible::comparison(Binary::Equal, *value, Possible::of(literal)).truth()[0]
                        }),
                        Possible::Anything | Possible::Truth { .. } => true,
                    };
                    let may_be = values.iter().zip(literals).all(meets);
                    if *is_negated { EITHER } else { Possible::Truth { yes: may_be, no: true } }
                }
                Op::Call { function, count, .. } => {
                    let arguments = stack.split_off(stack.len().checked_sub(*count)?);
                    match (function.name, last) {
                        ("is_missing", Some(Op::Field(path))) => {
                            Possible::Truth { yes: known(path).is_none_or(|known| known.has_nulls), no: true }
                        }
                        _ => Possible::call(function, &arguments),
                    }
                }
                Op::Index { .. } => {
                    let (_, items) = (stack.pop()?, stack.pop()?);
                    items
                }
                Op::Slice { .. } => stack.pop()?,
                Op::Member(_) => {
                    stack.pop()?;
                    Possible::Anything
                }
            };
            stack.push(made);
        }
        stack.pop().filter(|_| stack.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may_be_true(text: &str) -> bool {
        let of = |bounds, filter| Some(Known { bounds, has_nulls: true, filter });
        let bounds = |lowest, highest, has_nan| of(Bounds { lowest, highest, has_nan }, None);
        let filter = Bloom::of([-9, 400, 1 << 40]);
        let expression: Expression = text.parse().unwrap();
        expression.may_be_true(&|name| match name {
            "x" => bounds(-2.0, 3.0, false),
            "n" => bounds(5.0, 5.0, true),
            "none" => of(Bounds::NONE, None),
            "whole" => of(Bounds::NONE.with(1.0), None).map(|known| Known { has_nulls: false, ..known }),
            "few" => of(Bounds::NONE.with_integer(-9).with_integer(1 << 40), Some(&filter)),
            "single" => bounds(0.0, f64::from(0.7_f32), false),
            "large" => bounds(0.0, 16_777_216.0, false),
            _ => None,
        })
    }

    #[test]
    fn expressions_are_false_outside_of_bounds() {
        for text in [
            "x > 3",
            "x >= 3.5",
            "x < -2",
            "4 <= x",
            "x == 4",
            "not (x <= 3)",
            "x > 3 and y > 0",
            "y > 0 and x > 3",
            "x > 3 or x < -2",
            "5 < x < 9",
            "-4 < x < -3",
            "abs(x) > 3",
            "-x > 2",
            "x in [4, 5, -3]",
            "any(x > 3)",
            "max(x) > 3",
            "x[0] > 3",
            "x[:2] > 7",
            "n > 5",
            "n == 4",
            "none > 0",
            "none != 0",
            "(x > 3) & (y < 2)",
            "x != 3 and False",
            "(x, y) in [(7, 1), (8, 2)]",
            "x > 18446744073709551615",
            "few == 7",
            "few in [1, -2, 398]",
            "max(few) == 5 or few[2] == 401",
            "any(few == -8)",
            "is_missing(whole)",
            "any(is_missing(whole)) and y > 3",
        ] {
            assert!(!may_be_true(text), "{text}");
        }
    }

    #[test]
    fn what_is_not_known_may_be_true() {
        for text in [
            "x > 2",
            "x == 3",
            "y > 3",
            "x > 3 or y > 0",
            "not (x > 3)",
            "x != 3",
            "n != 5",
            "not (n == 5)",
            "x + 9 > 10",
            "large >= 16777217",
            "all(x > 3)",
            "sum(x) > 100",
            "len(x) > 3",
            "abs(x) < 1",
            "x not in [4]",
            "x in [4, 1]",
            "single >= 0.7",
            "where(y, x, 9) > 3",
            "y & 1 == 1",
            "is_missing(x)",
            "is_missing(y)",
            "not is_missing(whole)",
            "is_missing(whole + y)",
            "is_missing(whole[3])",
            "y == 'text'",
            "few == 400",
            "few == -9",
            "few == 7.0",
            "few > 7",
            "few != 7",
            "few + 1 == 7",
            "-few == 7",
        ] {
            assert!(may_be_true(text), "{text}");
        }
    }

    #[test]
    fn filters_are_for_fields_that_are_equated() {
        for (text, expected) in [
            ("a == 1 and b > 3", "a"),
            ("a in [1, 2] or not (b != 3)", "a"),
            ("any(a[:2] == 5) and 3 == max(b)", "a,b"),
            ("(a, b) in [(1, 2), (3, 4)]", "a,b"),
            ("1 < c == a", "a,c"),
            ("a // 1000 == 3 or -b == 4 or a + 1 == b[0]", "b"),
            ("a != 4", ""),
        ] {
            let expression: Expression = text.parse().unwrap();
            let found: Vec<&str> = expression.filtered_fields().into_iter().collect();
            assert_eq!(found.join(","), expected, "{text}");
        }
    }

    #[test]
    fn integers_are_within_their_bounds() {
        for value in [0, -7, (1_i128 << 53) + 1, i128::from(u64::MAX), i128::from(i64::MIN) + 1] {
            let Bounds { lowest, highest, .. } = Bounds::NONE.with_integer(value);
            assert!(lowest as i128 <= value && highest as i128 >= value, "{value}");
            assert!(highest - lowest <= 4096.0);
        }
    }
}

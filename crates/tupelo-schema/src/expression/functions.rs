//! Operators and functions on leaves: numbers in one of three number types, booleans and strings.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, BooleanArray, LargeBinaryArray, PrimitiveArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::DataType;

use super::syntax::{Binary, Literal};
use super::value::{Kind, Operand, as_bytes, describe};
use crate::{Error, Result};

/// The number types of computations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberType {
    Integer,
    Single,
    Double,
}

impl NumberType {
    /// The common type of operands: literals follow the others.
    pub(super) fn of(operands: &[Operand], what: &str) -> Result<Self> {
        let (mut integer, mut single, mut double, mut real_literal) = (false, false, false, false);
        for operand in operands {
            let kind = match operand {
                Operand::Literal(Literal::Real(_)) => {
                    real_literal = true;
                    continue;
                }
                Operand::Literal(Literal::Integer(_) | Literal::Unsigned(_) | Literal::Boolean(_)) => continue,
                Operand::Literal(Literal::Text(_)) => Kind::Text,
                Operand::Value(value) => value.kind(),
            };
            match kind {
                Kind::Boolean | Kind::Integer => integer = true,
                Kind::Single => single = true,
                Kind::Double => double = true,
                Kind::Text | Kind::Other => {
                    let found = match operand {
                        Operand::Value(value) => describe(value.leaf.data_type()),
                        Operand::Literal(_) => "a string".to_owned(),
                    };
                    return Err(Error::invalid_argument(format!("{what} takes numbers, not {found}")));
                }
            }
        }
        Ok(match (double, single, integer) {
            (false, true, false) => Self::Single,
            (false, false, _) if !real_literal => Self::Integer,
            _ => Self::Double,
        })
    }

    /// The type for results that have a fraction.
    pub(super) fn real(self) -> Self {
        if self == Self::Integer { Self::Double } else { self }
    }

    /// Leaves in this lane.
    pub(super) fn cast<T: ArrowPrimitiveType>(leaf: &ArrayRef) -> Result<PrimitiveArray<T>> {
        if let (Some(unsigned), DataType::Int64) = (leaf.as_primitive_opt::<UInt64Type>(), T::DATA_TYPE)
            && let Some(large) = unsigned.iter().flatten().find(|&value| i64::try_from(value).is_err())
        {
            let what = format!("{large} can only be compared: integers are computed with 64 bits including the sign");
            return Err(Error::invalid_argument(what));
        }
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        let cast = cast_with_options(leaf, &T::DATA_TYPE, &strict);
        Ok(cast.map_err(|error| Error::invalid_argument(error.to_string()))?.as_primitive::<T>().clone())
    }
}

/// Calls a generic function with the Arrow type of a lane.
macro_rules! in_lane {
    ($lane:expr, $function:ident($($argument:expr),*)) => {
        match $lane {
            NumberType::Integer => $function::<Int64Type>($($argument),*),
            NumberType::Single => $function::<Float32Type>($($argument),*),
            NumberType::Double => $function::<Float64Type>($($argument),*),
        }
    };
}

pub(super) use in_lane;

/// A number of a lane.
pub(super) trait Number: Copy + PartialOrd + Default {
    fn arithmetic(operator: Binary, a: Self, b: Self) -> Option<Self>;
    fn to_f64(self) -> f64;
    fn from_f64(value: f64) -> Self;
    fn negate(self) -> Option<Self>;
    fn absolute(self) -> Option<Self>;
}

impl Number for i64 {
    fn arithmetic(operator: Binary, a: Self, b: Self) -> Option<Self> {
        match operator {
            Binary::Add => a.checked_add(b),
            Binary::Subtract => a.checked_sub(b),
            Binary::Multiply => a.checked_mul(b),
            // As in Python: towards minus infinity, and with the sign of the divisor.
            Binary::FloorDivide => {
                let quotient = a.checked_div(b)?;
                Some(if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
            }
            Binary::Remainder => {
                let rest = if b == 0 { return None } else { a.wrapping_rem(b) };
                Some(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest })
            }
            Binary::Power => a.checked_pow(u32::try_from(b).ok()?),
            _ => None,
        }
    }
    fn to_f64(self) -> f64 {
        self as f64
    }
    fn from_f64(value: f64) -> Self {
        value as i64
    }
    fn negate(self) -> Option<Self> {
        self.checked_neg()
    }
    fn absolute(self) -> Option<Self> {
        self.checked_abs()
    }
}

macro_rules! real {
    ($real:ty) => {
        impl Number for $real {
            #[inline(always)]
            fn arithmetic(operator: Binary, a: Self, b: Self) -> Option<Self> {
                Some(match operator {
                    Binary::Add => a + b,
                    Binary::Subtract => a - b,
                    Binary::Multiply => a * b,
                    Binary::Divide => a / b,
                    // As NumPy and Python: the exact remainder first, since `a / b` may be rounded up to the next
                    // integer.
                    Binary::FloorDivide if b == 0.0 => a / b,
                    Binary::FloorDivide => {
                        let rest = a % b;
                        let is_below = rest != 0.0 && (rest < 0.0) != (b < 0.0);
                        let quotient = (a - rest) / b - if is_below { 1.0 } else { 0.0 };
                        let whole = quotient.floor();
                        match quotient {
                            0.0 => (0.0 as $real).copysign(a / b),
                            _ if quotient - whole > 0.5 => whole + 1.0,
                            _ => whole,
                        }
                    }
                    Binary::Remainder => match a % b {
                        0.0 => (0.0 as $real).copysign(b),
                        rest if (rest < 0.0) != (b < 0.0) => rest + b,
                        rest => rest,
                    },
                    Binary::Power => a.powf(b),
                    _ => return None,
                })
            }
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            fn from_f64(value: f64) -> Self {
                value as $real
            }
            fn negate(self) -> Option<Self> {
                Some(-self)
            }
            fn absolute(self) -> Option<Self> {
                Some(self.abs())
            }
        }
    };
}
real!(f32);
real!(f64);

/// Position of the value at an index. A literal has a single value, which is broadcast.
fn place(len: usize, count: usize, index: usize) -> usize {
    if len == count { index } else { 0 }
}

/// Applies `f` to pairs of values. The single value of a literal is broadcast.
fn pairs<A: Copy, B: Copy, R>(a: &[A], b: &[B], count: usize, mut f: impl FnMut(A, B) -> R) -> Vec<R> {
    match (a, b) {
        (a, b) if a.len() == count && b.len() == count => a.iter().zip(b).map(|(&a, &b)| f(a, b)).collect(),
        (a, &[b]) if a.len() == count => a.iter().map(|&a| f(a, b)).collect(),
        (&[a], b) if b.len() == count => b.iter().map(|&b| f(a, b)).collect(),
        _ => (0..count).map(|index| f(a[place(a.len(), count, index)], b[place(b.len(), count, index)])).collect(),
    }
}

/// Booleans as bits.
fn packed(booleans: &[bool]) -> BooleanBuffer {
    // Arrow's own way takes as long as ten comparisons. The product moves the lowest bits of eight bytes into its
    // highest byte, the first one lowest.
    let eight = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        (u64::from_le_bytes(word).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
    };
    let bits: Vec<u8> = bytemuck::cast_slice(booleans).chunks(8).map(eight).collect();
    BooleanBuffer::new(bits.into(), 0, booleans.len())
}

/// The union of the nulls of two arrays. The single value of a literal is never null.
fn nulls_of(a: &dyn Array, b: &dyn Array, count: usize) -> Option<NullBuffer> {
    let nulls = |array: &dyn Array| array.nulls().filter(|nulls| nulls.len() == count).cloned();
    NullBuffer::union(nulls(a).as_ref(), nulls(b).as_ref())
}

/// Computes `+ - * / // % **`. `//` and `%` of integers by zero are null.
pub(super) fn arithmetic(
    operator: Binary,
    sign: &str,
    lane: NumberType,
    leaves: &[ArrayRef],
    count: usize,
) -> Result<ArrayRef> {
    fn run<T: ArrowPrimitiveType>(operator: Binary, sign: &str, leaves: &[ArrayRef], count: usize) -> Result<ArrayRef>
    where
        T::Native: Number,
    {
        let (a, b) = (NumberType::cast::<T>(&leaves[0])?, NumberType::cast::<T>(&leaves[1])?);
        let mut is_whole = true;
        // One specialized loop for each operator.
        macro_rules! each {
            ($($known:ident)*) => {
                match operator {
                    $(Binary::$known => pairs(a.values(), b.values(), count, |a, b| {
                        let value = <T::Native as Number>::arithmetic(Binary::$known, a, b);
                        is_whole &= value.is_some();
                        value.unwrap_or_default()
                    }),)*
                    _ => return Err(Error::invalid_argument(format!("{sign} is not defined for numbers"))),
                }
            };
        }
        let values = each!(Add Subtract Multiply Divide FloorDivide Remainder Power);
        let mut nulls = nulls_of(&a, &b, count);
        if !is_whole && matches!(operator, Binary::FloorDivide | Binary::Remainder) {
            let is_there = |index| b.value(place(b.len(), count, index)) != T::Native::default();
            let divided: BooleanBuffer = (0..count).map(is_there).collect();
            nulls = NullBuffer::union(nulls.as_ref(), Some(&divided.into()));
        }
        // Null slots may hold any value.
        let is_there = |index: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(index));
        if !is_whole {
            let pair = |index| (a.value(place(a.len(), count, index)), b.value(place(b.len(), count, index)));
            let mut known = (0..count).filter(|&index| is_there(index)).map(pair);
            if let Some((a, b)) = known.find(|&(a, b)| <T::Native as Number>::arithmetic(operator, a, b).is_none()) {
                return Err(Error::invalid_argument(format!("{a:?} {sign} {b:?} is not a 64-bit integer")));
            }
        }
        Ok(Arc::new(PrimitiveArray::<T>::new(values.into(), nulls)))
    }
    in_lane!(lane, run(operator, sign, leaves, count))
}

/// Whether an integer may be zero: all but literals may.
pub(super) fn may_be_zero(divisor: &Operand) -> bool {
    !matches!(divisor, Operand::Literal(Literal::Integer(1.. | ..=-1) | Literal::Boolean(true)))
}

/// Compares numbers, booleans or strings.
pub(super) fn compare(operator: Binary, operands: &[Operand], leaves: &[ArrayRef], count: usize) -> Result<ArrayRef> {
    fn run<T: ArrowPrimitiveType>(operator: Binary, leaves: &[ArrayRef], count: usize) -> Result<Vec<bool>> {
        let (a, b) = (NumberType::cast::<T>(&leaves[0])?, NumberType::cast::<T>(&leaves[1])?);
        Ok(holds(operator, a.values(), b.values(), count))
    }
    let is_text = leaves.iter().filter(|leaf| Kind::of(leaf.data_type()) == Kind::Text).count();
    if is_text == leaves.len() {
        let (a, b) = (&as_bytes(&leaves[0])?, &as_bytes(&leaves[1])?);
        fn at(array: &LargeBinaryArray, index: usize) -> Option<&[u8]> {
            (!array.is_null(index)).then(|| array.value(index))
        }
        let fits = |ordering: Ordering| match operator {
            Binary::Equal => ordering.is_eq(),
            Binary::NotEqual => ordering.is_ne(),
            Binary::Less => ordering.is_lt(),
            Binary::LessEqual => ordering.is_le(),
            Binary::Greater => ordering.is_gt(),
            _ => ordering.is_ge(),
        };
        let both = |index| (at(a, place(a.len(), count, index)), at(b, place(b.len(), count, index)));
        let compared = (0..count).map(both).map(|(a, b)| Some(fits(a?.cmp(b?))));
        return Ok(Arc::new(compared.collect::<BooleanArray>()));
    }
    let lane = NumberType::of(operands, "a comparison")?;
    let booleans = match leaves.iter().any(|leaf| leaf.data_type() == &DataType::UInt64) {
        true if lane == NumberType::Integer => holds(operator, &wide(&leaves[0])?, &wide(&leaves[1])?, count),
        _ => in_lane!(lane, run(operator, leaves, count))?,
    };
    Ok(Arc::new(BooleanArray::new(packed(&booleans), nulls_of(&leaves[0], &leaves[1], count))))
}

/// Whether pairs compare so: a separate loop for each operator, which the compiler can optimise.
fn holds<T: Copy + PartialOrd>(operator: Binary, a: &[T], b: &[T], count: usize) -> Vec<bool> {
    match operator {
        Binary::Equal => pairs(a, b, count, |a, b| a == b),
        Binary::NotEqual => pairs(a, b, count, |a, b| a != b),
        Binary::Less => pairs(a, b, count, |a, b| a < b),
        Binary::LessEqual => pairs(a, b, count, |a, b| a <= b),
        Binary::Greater => pairs(a, b, count, |a, b| a > b),
        _ => pairs(a, b, count, |a, b| a >= b),
    }
}

/// Integers that may exceed the range of signed 64 bits.
pub(super) fn wide(leaf: &ArrayRef) -> Result<Vec<i128>> {
    match leaf.as_primitive_opt::<UInt64Type>() {
        Some(unsigned) => Ok(unsigned.values().iter().map(|&value| value.into()).collect()),
        None => Ok(NumberType::cast::<Int64Type>(leaf)?.values().iter().map(|&value| value.into()).collect()),
    }
}

/// Booleans with their nulls.
pub(super) fn booleans(leaf: &ArrayRef, what: &str) -> Result<BooleanArray> {
    leaf.as_boolean_opt().cloned().ok_or_else(|| {
        let found = describe(leaf.data_type());
        let remedy = match what {
            "&" | "|" | "^" => "; put comparisons beside & and | in parentheses",
            "and" | "or" | "not" if Kind::of(leaf.data_type()) != Kind::Text => "; compare it with a number",
            _ => "",
        };
        Error::invalid_argument(format!("{what} takes booleans, not {found}{remedy}"))
    })
}

/// `and`, `or`, `&`, `|` and `^` of booleans: false and what is missing is false, true or what is missing is true.
pub(super) fn logic(operator: Binary, sign: &str, leaves: &[ArrayRef], count: usize) -> Result<ArrayRef> {
    let (a, b) = (booleans(&leaves[0], sign)?, booleans(&leaves[1], sign)?);
    let at = |array: &BooleanArray, index: usize| {
        let index = place(array.len(), count, index);
        (!array.is_null(index)).then(|| array.value(index))
    };
    let is_whole = a.null_count() + b.null_count() == 0 && a.len() == count && b.len() == count;
    let joined: BooleanArray = match operator {
        Binary::And | Binary::BitAnd if is_whole => BooleanArray::new(a.values() & b.values(), None),
        Binary::Or | Binary::BitOr if is_whole => BooleanArray::new(a.values() | b.values(), None),
        _ => (0..count)
            .map(|index| match (operator, at(&a, index), at(&b, index)) {
                (Binary::And | Binary::BitAnd, Some(false), _) | (Binary::And | Binary::BitAnd, _, Some(false)) => {
                    Some(false)
                }
                (Binary::Or | Binary::BitOr, Some(true), _) | (Binary::Or | Binary::BitOr, _, Some(true)) => Some(true),
                (Binary::And | Binary::BitAnd, Some(a), Some(b)) => Some(a & b),
                (Binary::Or | Binary::BitOr, Some(a), Some(b)) => Some(a | b),
                (_, Some(a), Some(b)) => Some(a ^ b),
                _ => None,
            })
            .collect(),
    };
    Ok(Arc::new(joined))
}

/// `&`, `|` and `^` of the bits of integers.
pub(super) fn bits(operator: Binary, leaves: &[ArrayRef], count: usize) -> Result<ArrayRef> {
    let (a, b) = (NumberType::cast::<Int64Type>(&leaves[0])?, NumberType::cast::<Int64Type>(&leaves[1])?);
    let values = pairs(a.values(), b.values(), count, |a, b| match operator {
        Binary::BitAnd => a & b,
        Binary::BitOr => a | b,
        _ => a ^ b,
    });
    Ok(Arc::new(PrimitiveArray::<Int64Type>::new(values.into(), nulls_of(&a, &b, count))))
}

/// `-x` and `abs(x)`.
pub(super) fn signed(is_absolute: bool, lane: NumberType, leaf: &ArrayRef) -> Result<ArrayRef> {
    fn run<T: ArrowPrimitiveType>(is_absolute: bool, leaf: &ArrayRef) -> Result<ArrayRef>
    where
        T::Native: Number,
    {
        let array = NumberType::cast::<T>(leaf)?;
        let changed = array.iter().map(|value| match (value, is_absolute) {
            (None, _) => Ok(None),
            (Some(value), true) => value.absolute().map(Some).ok_or(()),
            (Some(value), false) => value.negate().map(Some).ok_or(()),
        });
        let changed: Result<PrimitiveArray<T>, ()> = changed.collect();
        Ok(Arc::new(changed.map_err(|()| Error::invalid_argument("-2^63 cannot be negated as a 64-bit integer"))?))
    }
    in_lane!(lane, run(is_absolute, leaf))
}

/// A function of one number for all.
pub(super) fn apply(f: fn(f64) -> f64, lane: NumberType, leaf: &ArrayRef) -> Result<ArrayRef> {
    fn run<T: ArrowPrimitiveType>(f: fn(f64) -> f64, leaf: &ArrayRef) -> Result<ArrayRef>
    where
        T::Native: Number,
    {
        let applied = NumberType::cast::<T>(leaf)?.unary::<_, T>(|value| T::Native::from_f64(f(value.to_f64())));
        Ok(Arc::new(applied))
    }
    in_lane!(lane, run(f, leaf))
}

/// A function of two numbers for all pairs.
pub(super) fn apply_two(
    f: fn(f64, f64) -> f64,
    lane: NumberType,
    leaves: &[ArrayRef],
    count: usize,
) -> Result<ArrayRef> {
    fn run<T: ArrowPrimitiveType>(f: fn(f64, f64) -> f64, leaves: &[ArrayRef], count: usize) -> Result<ArrayRef>
    where
        T::Native: Number,
    {
        let (a, b) = (NumberType::cast::<T>(&leaves[0])?, NumberType::cast::<T>(&leaves[1])?);
        let values = pairs(a.values(), b.values(), count, |a, b| T::Native::from_f64(f(a.to_f64(), b.to_f64())));
        Ok(Arc::new(PrimitiveArray::<T>::new(values.into(), nulls_of(&a, &b, count))))
    }
    in_lane!(lane, run(f, leaves, count))
}

/// A boolean for each number.
pub(super) fn test(f: fn(f64) -> bool, leaf: &ArrayRef) -> Result<ArrayRef> {
    let array = NumberType::cast::<Float64Type>(leaf)?;
    let booleans: Vec<bool> = array.values().iter().map(|&value| f(value)).collect();
    Ok(Arc::new(BooleanArray::new(booleans.into(), array.nulls().cloned())))
}

/// One of two numbers for each boolean.
pub(super) fn choose(lane: NumberType, leaves: &[ArrayRef], count: usize) -> Result<ArrayRef> {
    fn run<T: ArrowPrimitiveType>(leaves: &[ArrayRef], count: usize) -> Result<ArrayRef> {
        let which = booleans(&leaves[0], "where")?;
        let (a, b) = (NumberType::cast::<T>(&leaves[1])?, NumberType::cast::<T>(&leaves[2])?);
        let at = |array: &PrimitiveArray<T>, index: usize| {
            let index = place(array.len(), count, index);
            (!array.is_null(index)).then(|| array.value(index))
        };
        let boolean = |index: usize| place(which.len(), count, index);
        let chosen = (0..count).map(|index| match which.is_null(boolean(index)) {
            true => None,
            false if which.value(boolean(index)) => at(&a, index),
            false => at(&b, index),
        });
        Ok(Arc::new(chosen.collect::<PrimitiveArray<T>>()))
    }
    in_lane!(lane, run(leaves, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn booleans_are_packed_in_order() {
        for count in 0..70 {
            for step in 1..9 {
                let booleans: Vec<bool> = (0..count).map(|index| index % step == 0).collect();
                assert_eq!(packed(&booleans), BooleanBuffer::from(booleans.as_slice()));
            }
        }
    }
}

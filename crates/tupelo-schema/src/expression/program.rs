//! A parsed expression: steps in postfix order, so that nothing recurses over a long chain of operators.

use std::ops::Range;
use std::sync::Arc;

use super::members::Members;
use super::syntax::{Binary, Literal, Slice, Unary};
use super::table::Function;

/// One step, and the part of the text that it is the value of.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) op: Op,
    pub(super) at: Range<usize>,
}

/// The operation of a step on the values that the previous steps left on the stack.
#[derive(Debug, Clone)]
pub(super) enum Op {
    Literal(Literal),
    /// A dotted path.
    Field(String),
    Unary(Unary),
    /// An operator, and its spelling.
    Binary(Binary, &'static str),
    /// A comparison of a chain as `a < b < c`.
    Compare {
        operator: Binary,
        /// Whether the boolean of the comparisons before lies below the two values.
        is_chained: bool,
        /// Whether another comparison goes on with the right value.
        goes_on: bool,
    },
    /// Whether a value, or several together, are members of a list of literals.
    In {
        members: Arc<Members>,
        is_negated: bool,
    },
    Call {
        /// Its spelling.
        name: &'static str,
        function: &'static Function,
        /// Number of arguments.
        count: usize,
        axis: Option<i64>,
    },
    /// `x[y]`, of the lists of a level.
    Index {
        level: usize,
    },
    /// `x[start:stop:step]`, of the lists of a level.
    Slice {
        level: usize,
        slice: Slice,
    },
    /// `x.name` of something that is not a path.
    Member(String),
}

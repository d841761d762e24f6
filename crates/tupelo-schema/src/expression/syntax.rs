//! The elementary parts of an expression: literals, slices and operators.

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Literal {
    Boolean(bool),
    Integer(i64),
    /// An integer too large for signed 64 bits.
    Unsigned(u64),
    Real(f64),
    Text(String),
}

impl Literal {
    pub(super) fn of(integer: u64) -> Self {
        i64::try_from(integer).map_or(Self::Unsigned(integer), Self::Integer)
    }

    /// The negated literal, or `None` if it cannot be represented.
    pub(super) fn negated(&self) -> Option<Self> {
        match self {
            Self::Integer(integer) => integer.checked_neg().map(Self::Integer),
            // `-i64::MIN` does not fit in an `i64`.
            Self::Unsigned(unsigned) if *unsigned == 1 << 63 => Some(Self::Integer(i64::MIN)),
            Self::Real(real) => Some(Self::Real(-real)),
            Self::Unsigned(_) | Self::Boolean(_) | Self::Text(_) => None,
        }
    }
}

/// A slice as in Python.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slice {
    pub(super) start: Option<i64>,
    pub(super) stop: Option<i64>,
    /// Not 0.
    pub(super) step: i64,
}

impl Slice {
    pub(super) const ALL: Self = Self { start: None, stop: None, step: 1 };

    /// The indices that it takes of `len` items.
    pub(super) fn indices(self, len: i64) -> impl Iterator<Item = i64> {
        let (lowest, highest) = if self.step > 0 { (0, len) } else { (-1, len - 1) };
        let bound = |bound: Option<i64>, default: i64| match bound {
            None => default,
            Some(bound) if bound < 0 => bound.saturating_add(len).clamp(lowest, highest),
            Some(bound) => bound.clamp(lowest, highest),
        };
        let (first, last) = if self.step > 0 { (lowest, highest) } else { (highest, lowest) };
        let (start, stop, step) = (bound(self.start, first), bound(self.stop, last), self.step);
        std::iter::successors(Some(start), move |at| at.checked_add(step))
            .take_while(move |&at| if step > 0 { at < stop } else { at > stop })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unary {
    Plus,
    Minus,
    /// `~`
    Invert,
    Not,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binary {
    Or,
    And,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    BitOr,
    BitXor,
    BitAnd,
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
    Power,
}

/// How strongly comparisons bind, and `in`.
pub(super) const COMPARISON_STRENGTH: u8 = 4;
/// `not` binds between `and` and comparisons, signs between products and powers.
pub(super) const NOT_STRENGTH: u8 = 3;
pub(super) const SIGN_STRENGTH: u8 = 10;

impl Binary {
    pub(super) fn is_comparison(self) -> bool {
        self.strength() == COMPARISON_STRENGTH
    }

    /// Its precedence, as in Python.
    pub(super) fn strength(self) -> u8 {
        use Binary::*;
        match self {
            Or => 1,
            And => 2,
            Less | LessEqual | Greater | GreaterEqual | Equal | NotEqual => COMPARISON_STRENGTH,
            BitOr => 5,
            BitXor => 6,
            BitAnd => 7,
            Add | Subtract => 8,
            Multiply | Divide | FloorDivide | Remainder => 9,
            Power => 11,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_match_python() {
        let of = |start, stop, step, len| Slice { start, stop, step }.indices(len).collect::<Vec<_>>();
        assert_eq!(of(None, Some(1), 1, 3), [0]);
        assert_eq!(of(Some(-2), None, 1, 3), [1, 2]);
        assert_eq!(of(Some(-5), Some(-1), 1, 3), [0, 1]);
        assert_eq!(of(None, None, -1, 3), [2, 1, 0]);
        assert_eq!(of(Some(5), Some(0), -2, 4), [3, 1]);
        assert_eq!(of(None, None, i64::MAX, 3), [0]);
        assert_eq!(of(None, None, i64::MIN, 3), [2]);
        assert_eq!(of(Some(2), Some(1), 1, 3), [0; 0]);
        assert_eq!(of(Some(i64::MIN), Some(i64::MAX), 1, 0), [0; 0]);
    }
}

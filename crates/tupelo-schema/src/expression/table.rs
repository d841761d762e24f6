//! The functions of expressions: one table, from which calls are checked and the reference page is made.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::LazyLock;

use super::reduce::Reduction;
use super::syntax::{Binary, Unary};
use crate::{Error, Result};

/// A function, and its description in the reference.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) name: &'static str,
    /// Other names of the same function.
    pub(super) aliases: &'static [&'static str],
    /// How many arguments it takes.
    pub(super) arity: RangeInclusive<usize>,
    pub(super) kind: Kind,
    #[cfg_attr(not(test), expect(dead_code, reason = "for the reference page"))]
    pub(super) what: &'static str,
    /// Calls whose values the reference shows.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the reference page"))]
    pub(super) example: &'static str,
}

/// What a function does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// A number with a fraction of one number.
    Real(fn(f64) -> f64),
    /// An integer of one number; integers stay as they are.
    Whole(fn(f64) -> f64),
    /// The same, also of integers.
    Sign(fn(f64) -> f64),
    Absolute,
    Square,
    /// A boolean of one number.
    Test(fn(f64) -> bool),
    /// A number with a fraction of two numbers.
    RealTwo(fn(f64, f64) -> f64),
    Minimum,
    Maximum,
    /// The same as an operator between its arguments.
    Operator(Binary),
    /// The same as an operator in front of its argument.
    Signed(Unary),
    Where,
    IsMissing,
    /// The number of items of lists, the outermost if no axis is given.
    Length,
    /// The number of items that are not missing.
    Count,
    Any,
    All,
    Reduce(Reduction),
}

impl Function {
    /// Whether it may be called with an axis.
    pub(super) fn has_axis(&self) -> bool {
        matches!(self.kind, Kind::Length | Kind::Count | Kind::Any | Kind::All | Kind::Reduce(_))
    }

    /// What it takes, in words.
    pub(super) fn takes(&self) -> &'static str {
        match (self.has_axis(), &self.arity, self.kind) {
            (_, _, Kind::Where) => "a boolean and two values",
            (true, arity, _) if *arity.end() == 2 => "a collection or two values",
            (true, ..) => "one collection",
            (false, arity, _) if *arity.end() == 2 => "two values",
            _ => "one value",
        }
    }
}

/// Constants that follow a module name, such as `np.pi`.
const CONSTANTS: [(&str, f64); 4] =
    [("pi", std::f64::consts::PI), ("e", std::f64::consts::E), ("inf", f64::INFINITY), ("nan", f64::NAN)];

pub(super) fn constant(name: &str) -> Option<f64> {
    CONSTANTS.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

/// The function of a name, and that name, which messages use too.
///
/// # Errors
/// Not found, with near names.
pub(super) fn function(name: &str) -> Result<(&'static str, &'static Function)> {
    static BY_NAME: LazyLock<HashMap<&'static str, &'static Function>> = LazyLock::new(|| {
        FUNCTIONS
            .iter()
            .flat_map(|f| std::iter::once(f.name).chain(f.aliases.iter().copied()).map(move |n| (n, f)))
            .collect()
    });
    let found = BY_NAME.get_key_value(name).map(|(name, function)| (*name, *function));
    found.ok_or_else(|| Error::no_such("function", name, BY_NAME.keys().copied()))
}

/// The name here of a function or constant with this name elsewhere, ignoring case.
pub(super) fn near(name: &str) -> Option<&'static str> {
    let small = name.to_lowercase();
    match small.as_str() {
        "pi" => Some("np.pi"),
        small => function(small).ok().map(|(_, function)| function.name),
    }
}

const fn one(
    name: &'static str,
    aliases: &'static [&'static str],
    kind: Kind,
    what: &'static str,
    example: &'static str,
) -> Function {
    Function { name, aliases, arity: 1..=1, kind, what, example }
}

const fn two(
    name: &'static str,
    aliases: &'static [&'static str],
    kind: Kind,
    what: &'static str,
    example: &'static str,
) -> Function {
    Function { name, aliases, arity: 2..=2, kind, what, example }
}

/// All of them, in the order of the reference.
pub(super) static FUNCTIONS: &[Function] = &[
    one("abs", &["absolute", "fabs"], Kind::Absolute, "absolute value", "abs(eta)"),
    one("negative", &[], Kind::Signed(Unary::Minus), "`-x`", "negative(n)"),
    one("positive", &[], Kind::Signed(Unary::Plus), "`+x`", "positive(n)"),
    one("sign", &[], Kind::Sign(|x| if x == 0.0 || x.is_nan() { x } else { x.signum() }), "-1, 0 or 1", "sign(eta)"),
    one("square", &[], Kind::Square, "`x * x`", "square(n)"),
    one("sqrt", &[], Kind::Real(f64::sqrt), "square root", "sqrt(met)"),
    one("cbrt", &[], Kind::Real(f64::cbrt), "cube root", "cbrt(27)"),
    one("reciprocal", &[], Kind::Real(f64::recip), "`1 / x`", "reciprocal(4)"),
    one("exp", &[], Kind::Real(f64::exp), "power of e", "exp(1)"),
    one("exp2", &[], Kind::Real(f64::exp2), "power of 2", "exp2(3)"),
    one("expm1", &[], Kind::Real(f64::exp_m1), "`exp(x) - 1`, exact near 0", "expm1(0)"),
    one("log", &[], Kind::Real(f64::ln), "natural logarithm", "log(1)"),
    one("log2", &[], Kind::Real(f64::log2), "logarithm to base 2", "log2(8)"),
    one("log10", &[], Kind::Real(f64::log10), "logarithm to base 10", "log10(100)"),
    one("log1p", &[], Kind::Real(f64::ln_1p), "`log(1 + x)`, exact near 0", "log1p(0)"),
    one("sin", &[], Kind::Real(f64::sin), "sine of an angle in radians", "sin(0)"),
    one("cos", &[], Kind::Real(f64::cos), "cosine", "cos(0)"),
    one("tan", &[], Kind::Real(f64::tan), "tangent", "tan(0)"),
    one("arcsin", &["asin"], Kind::Real(f64::asin), "inverse sine", "arcsin(0)"),
    one("arccos", &["acos"], Kind::Real(f64::acos), "inverse cosine", "arccos(1)"),
    one("arctan", &["atan"], Kind::Real(f64::atan), "inverse tangent", "arctan(0)"),
    one("sinh", &[], Kind::Real(f64::sinh), "hyperbolic sine", "sinh(0)"),
    one("cosh", &[], Kind::Real(f64::cosh), "hyperbolic cosine", "cosh(0)"),
    one("tanh", &[], Kind::Real(f64::tanh), "hyperbolic tangent", "tanh(0)"),
    one("arcsinh", &["asinh"], Kind::Real(f64::asinh), "inverse hyperbolic sine", "arcsinh(0)"),
    one("arccosh", &["acosh"], Kind::Real(f64::acosh), "inverse hyperbolic cosine", "arccosh(1)"),
    one("arctanh", &["atanh"], Kind::Real(f64::atanh), "inverse hyperbolic tangent", "arctanh(0)"),
    one("deg2rad", &["radians"], Kind::Real(f64::to_radians), "degrees to radians", "deg2rad(180)"),
    one("rad2deg", &["degrees"], Kind::Real(f64::to_degrees), "radians to degrees", "rad2deg(np.pi)"),
    one("floor", &[], Kind::Whole(f64::floor), "largest integer not above it", "floor(eta)"),
    one("ceil", &[], Kind::Whole(f64::ceil), "smallest integer not below it", "ceil(eta)"),
    one("trunc", &["fix"], Kind::Whole(f64::trunc), "integer part", "trunc(eta)"),
    one(
        "round",
        &["rint", "around"],
        Kind::Whole(f64::round_ties_even),
        "nearest integer, halves to even",
        "round(eta)",
    ),
    one("isnan", &[], Kind::Test(f64::is_nan), "whether it is NaN", "isnan(met)"),
    one("isinf", &[], Kind::Test(f64::is_infinite), "whether it is infinite", "isinf(met)"),
    one("isfinite", &[], Kind::Test(f64::is_finite), "whether it is neither NaN nor infinite", "isfinite(met)"),
    one("signbit", &[], Kind::Test(f64::is_sign_negative), "whether its sign is negative", "signbit(eta)"),
    two("arctan2", &["atan2"], Kind::RealTwo(f64::atan2), "angle of the point (second, first)", "arctan2(0, 1)"),
    two("hypot", &[], Kind::RealTwo(f64::hypot), "`sqrt(x**2 + y**2)`", "hypot(3, 4)"),
    two("copysign", &[], Kind::RealTwo(f64::copysign), "the first with the sign of the second", "copysign(met, -1)"),
    two("logaddexp", &[], Kind::RealTwo(log_add_exp), "`log(exp(x) + exp(y))`", "logaddexp(0, 0)"),
    two("fmod", &[], Kind::RealTwo(|a, b| a % b), "remainder with the sign of the first, as in C", "fmod(-7, 3)"),
    two("minimum", &[], Kind::Minimum, "the smaller; NaN if one is", "minimum(pt, met)"),
    two("maximum", &[], Kind::Maximum, "the larger; NaN if one is", "maximum(pt, met)"),
    two("add", &[], Kind::Operator(Binary::Add), "`x + y`", "add(n, 1)"),
    two("subtract", &[], Kind::Operator(Binary::Subtract), "`x - y`", "subtract(n, 1)"),
    two("multiply", &[], Kind::Operator(Binary::Multiply), "`x * y`", "multiply(n, 2)"),
    two("divide", &["true_divide"], Kind::Operator(Binary::Divide), "`x / y`", "divide(n, 2)"),
    two("floor_divide", &[], Kind::Operator(Binary::FloorDivide), "`x // y`", "floor_divide(n, 2)"),
    two("remainder", &["mod"], Kind::Operator(Binary::Remainder), "`x % y`", "remainder(n, 2)"),
    two("power", &["pow"], Kind::Operator(Binary::Power), "`x ** y`", "power(n, 2)"),
    two("equal", &[], Kind::Operator(Binary::Equal), "`x == y`", "equal(n, 3)"),
    two("not_equal", &[], Kind::Operator(Binary::NotEqual), "`x != y`", "not_equal(n, 3)"),
    two("less", &[], Kind::Operator(Binary::Less), "`x < y`", "less(n, 3)"),
    two("less_equal", &[], Kind::Operator(Binary::LessEqual), "`x <= y`", "less_equal(n, 3)"),
    two("greater", &[], Kind::Operator(Binary::Greater), "`x > y`", "greater(n, 3)"),
    two("greater_equal", &[], Kind::Operator(Binary::GreaterEqual), "`x >= y`", "greater_equal(n, 3)"),
    two("logical_and", &[], Kind::Operator(Binary::And), "`x and y`", "logical_and(n > 1, trigger)"),
    two("logical_or", &[], Kind::Operator(Binary::Or), "`x or y`", "logical_or(n > 9, trigger)"),
    one("logical_not", &[], Kind::Signed(Unary::Not), "`not x`", "logical_not(trigger)"),
    two("bitwise_and", &[], Kind::Operator(Binary::BitAnd), "`x & y`; bitwise for integers", "bitwise_and(n, 5)"),
    two("bitwise_or", &[], Kind::Operator(Binary::BitOr), "`x | y`; bitwise for integers", "bitwise_or(n, 4)"),
    two(
        "xor",
        &["logical_xor", "bitwise_xor"],
        Kind::Operator(Binary::BitXor),
        "whether exactly one of two booleans is true; bitwise for integers",
        "xor(n, 1)",
    ),
    one("invert", &["bitwise_not"], Kind::Signed(Unary::Invert), "`~x`", "invert(n)"),
    Function {
        name: "where",
        aliases: &[],
        arity: 3..=3,
        kind: Kind::Where,
        what: "the second where the first is true, else the third",
        example: "where(pt > 20, pt, 0)",
    },
    one(
        "is_missing",
        &["is_none"],
        Kind::IsMissing,
        "whether it is missing; never missing itself",
        "is_missing(maybe)",
    ),
    one(
        "len",
        &["num"],
        Kind::Length,
        "number of items in the outermost lists, or in the lists of an axis (1 or more)",
        "len(hits)",
    ),
    one("count", &[], Kind::Count, "number of items that are not missing", "count(hits)"),
    one("sum", &[], Kind::Reduce(Reduction::Sum), "sum of the items; 0 if there are none", "sum(pt)"),
    one("prod", &[], Kind::Reduce(Reduction::Product), "product of the items; 1 if there are none", "prod(hits)"),
    one("mean", &[], Kind::Reduce(Reduction::Mean), "mean of the items; missing if there are none", "mean(pt)"),
    Function {
        name: "min",
        aliases: &[],
        arity: 1..=2,
        kind: Kind::Reduce(Reduction::Min),
        what: "smallest item, missing if there are none; with two values, `minimum`",
        example: "min(pt)",
    },
    Function {
        name: "max",
        aliases: &[],
        arity: 1..=2,
        kind: Kind::Reduce(Reduction::Max),
        what: "largest item, missing if there are none; with two values, `maximum`",
        example: "max(pt)",
    },
    one(
        "argmin",
        &[],
        Kind::Reduce(Reduction::ArgMin),
        "index of the smallest item; missing if there are none",
        "argmin(pt)",
    ),
    one(
        "argmax",
        &[],
        Kind::Reduce(Reduction::ArgMax),
        "index of the largest item; missing if there are none",
        "pt[argmax(eta)]",
    ),
    one("any", &[], Kind::Any, "whether any item is true", "any(pt > 30)"),
    one("all", &[], Kind::All, "whether all items are true", "all(pt > 30)"),
];

fn log_add_exp(a: f64, b: f64) -> f64 {
    if a == b {
        return a + std::f64::consts::LN_2;
    }
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    high + (low - high).exp().ln_1p()
}

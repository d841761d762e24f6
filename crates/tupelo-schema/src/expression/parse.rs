//! Tokens to steps.
//!
//! Operators are parsed by precedence climbing: a chain of operators of the same strength is a loop, and only what
//! really nests (parentheses, arguments, indexes, signs) recurses, up to [`MAX_DEPTH`].

use std::ops::Range;
use std::sync::Arc;

use super::lexer::{Token, behind_word, error, next_token};
use super::members::Members;
use super::program::{Op, Step};
use super::syntax::{Binary, COMPARISON_STRENGTH, Literal, NOT_STRENGTH, SIGN_STRENGTH, Slice, Unary};
use super::table::{self, Function};
use crate::{Error, Result};

/// Maximum nesting of terms, which limits the use of the stack.
const MAX_DEPTH: usize = 128;

/// Modules whose names may stand in front of functions and constants.
const MODULES: [&str; 5] = ["np", "numpy", "ak", "awkward", "math"];

/// A part of the text whose steps are the last ones.
struct Part {
    at: Range<usize>,
    /// The first of its steps.
    from: usize,
    /// Number of values of a tuple. Tuples are allowed only before `in`.
    tuple: Option<usize>,
}

/// An operator between two terms.
enum Infix {
    Binary(Binary, &'static str),
    In { is_negated: bool },
}

impl Infix {
    fn strength(&self) -> u8 {
        match self {
            Self::Binary(operator, _) => operator.strength(),
            Self::In { .. } => COMPARISON_STRENGTH,
        }
    }
}

struct Parser<'t> {
    text: &'t str,
    /// Start and end of the next token; `None` at the end.
    next: Option<(Token<'t>, Range<usize>)>,
    /// The end of the last token.
    end: usize,
    depth: usize,
    steps: Vec<Step>,
}

/// The steps of a string.
pub(super) fn parse(text: &str) -> Result<Vec<Step>> {
    let mut parser = Parser { text, next: None, end: 0, depth: 0, steps: Vec::new() };
    parser.advance()?;
    parser.term(0)?;
    match &parser.next {
        None => Ok(parser.steps),
        Some((Token::Sign("="), at)) => Err(error("'=' is not an operator; use '==' to compare", text, at.start)),
        Some((_, at)) => Err(error(&format!("unexpected '{}'", &text[at.clone()]), text, at.start)),
    }
}

impl<'t> Parser<'t> {
    /// Takes the next token.
    fn advance(&mut self) -> Result<Option<(Token<'t>, Range<usize>)>> {
        let taken = self.next.take();
        self.end = taken.as_ref().map_or(self.end, |(_, at)| at.end);
        self.next = next_token(self.text, self.end)?;
        Ok(taken)
    }

    fn push(&mut self, op: Op, at: &Range<usize>) {
        self.steps.push(Step { op, at: at.clone() });
    }

    /// A term whose operators all bind more strongly than `strength`.
    fn term(&mut self, strength: u8) -> Result<Part> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Error::limit(format!("terms are nested more than {MAX_DEPTH} deep")));
        }
        let mut left = self.operand()?;
        // The right side of the last comparison, and the step that compares it.
        let mut chained: Option<(Part, usize)> = None;
        loop {
            let infix = self.infix().filter(|infix| infix.strength() > strength);
            if left.tuple.is_some() && !matches!(infix, Some(Infix::In { .. })) {
                return Err(error("a tuple is allowed only before 'in'; unexpected ','", self.text, left.at.start));
            }
            let Some(infix) = infix else { break };
            let (operator, sign) = match infix {
                Infix::Binary(operator, sign) => (operator, sign),
                Infix::In { is_negated } => {
                    left = self.membership(left, is_negated, chained.is_some())?;
                    continue;
                }
            };
            self.advance()?;
            let below = if operator == Binary::Power { SIGN_STRENGTH - 1 } else { operator.strength() };
            let right = self.term(below)?;
            let whole = left.at.start..right.at.end;
            if operator.is_comparison() {
                let before = chained.take();
                let (is_chained, start) = match &before {
                    None => (false, left.at.start),
                    Some((middle, step)) => {
                        self.check_middle(middle, *step)?;
                        if let Op::Compare { goes_on, .. } = &mut self.steps[*step].op {
                            *goes_on = true;
                        }
                        (true, middle.at.start)
                    }
                };
                self.push(Op::Compare { operator, is_chained, goes_on: false }, &(start..right.at.end));
                chained = Some((right, self.steps.len() - 1));
            } else {
                chained = None;
                self.push(Op::Binary(operator, sign), &whole);
            }
            left = Part { at: whole, from: left.from, tuple: None };
        }
        self.depth -= 1;
        Ok(left)
    }

    /// `a > 1 & b < 3` is a chain through `1 & b` in Python, which is never intended. `compared` is the step behind
    /// the middle.
    fn check_middle(&self, middle: &Part, compared: usize) -> Result<()> {
        let Op::Binary(Binary::BitAnd | Binary::BitOr | Binary::BitXor, _) = self.steps[compared - 1].op else {
            return Ok(());
        };
        let text = &self.text[middle.at.clone()];
        let mut depth = 0;
        let closes = text.char_indices().find(|&(_, sign)| {
            depth += i32::from(sign == '(') - i32::from(sign == ')');
            depth == 0
        });
        if closes.is_some_and(|(at, sign)| sign == ')' && at + 1 == text.len()) {
            return Ok(());
        }
        let what = format!(
            "'{text}' binds more strongly than the comparisons beside it; put each comparison in parentheses, or write \
             'and' or 'or',"
        );
        Err(error(&what, self.text, middle.at.start))
    }

    fn infix(&self) -> Option<Infix> {
        use Binary::*;
        let (token, at) = self.next.as_ref()?;
        let (operator, sign) = match token {
            Token::Word("or") => (Or, "or"),
            Token::Sign("||") => (Or, "||"),
            Token::Word("and") => (And, "and"),
            Token::Sign("&&") => (And, "&&"),
            Token::Sign("<") => (Less, "<"),
            Token::Sign("<=") => (LessEqual, "<="),
            Token::Sign(">") => (Greater, ">"),
            Token::Sign(">=") => (GreaterEqual, ">="),
            Token::Sign("==") => (Equal, "=="),
            Token::Sign("!=") => (NotEqual, "!="),
            Token::Sign("|") => (BitOr, "|"),
            Token::Sign("^") => (BitXor, "^"),
            Token::Sign("&") => (BitAnd, "&"),
            Token::Sign("+") => (Add, "+"),
            Token::Sign("-") => (Subtract, "-"),
            Token::Sign("*") => (Multiply, "*"),
            Token::Sign("/") => (Divide, "/"),
            Token::Sign("//") => (FloorDivide, "//"),
            Token::Sign("%") => (Remainder, "%"),
            Token::Sign("**") => (Power, "**"),
            Token::Word("in") => return Some(Infix::In { is_negated: false }),
            Token::Word("not") => {
                return behind_word(&self.text[at.end..], "in").map(|_| Infix::In { is_negated: true });
            }
            _ => return None,
        };
        Some(Infix::Binary(operator, sign))
    }

    /// `left in [1, 2, 3]`, from `in` or `not in` on.
    fn membership(&mut self, left: Part, is_negated: bool, is_chained: bool) -> Result<Part> {
        let at = self.next.as_ref().map_or(self.end, |(_, at)| at.start);
        let alone = |parser: &Self, at| {
            Err(error("'in' cannot be chained with another comparison; put it in parentheses,", parser.text, at))
        };
        if is_chained {
            return alone(self, at);
        }
        for _ in 0..=usize::from(is_negated) {
            self.advance()?;
        }
        let members = self.members(left.tuple.unwrap_or(1))?;
        let at = left.at.start..self.end;
        self.push(Op::In { members: Arc::new(members), is_negated }, &at);
        if self.infix().is_some_and(|infix| infix.strength() == COMPARISON_STRENGTH) {
            return alone(self, self.next.as_ref().map_or(self.end, |(_, at)| at.start));
        }
        Ok(Part { at, from: left.from, tuple: None })
    }

    /// A list of literals, or of tuples of as many literals.
    fn members(&mut self, width: usize) -> Result<Members> {
        let close = self.open_list("expected a list of literals such as [1, 2, 3] after 'in'")?;
        let mut columns = vec![Vec::new(); width];
        while !self.is_next(close) {
            if width == 1 {
                columns[0].push(self.literal()?);
            } else {
                let what = format!("expected a tuple of {width} literals in this list");
                let inner = self.open_list(&what)?;
                for (index, column) in columns.iter_mut().enumerate() {
                    if index > 0 {
                        self.expect(",")?;
                    }
                    column.push(self.literal()?);
                }
                self.expect(inner)?;
            }
            if !self.is_next(close) {
                self.expect(if self.next.is_none() { close } else { "," })?;
            }
        }
        let from = self.end;
        self.expect(close)?;
        Members::new(columns).map_err(|what| error(what, self.text, from))
    }

    /// Begins a list; returns its closing token.
    fn open_list(&mut self, what: &str) -> Result<&'static str> {
        match self.advance()? {
            Some((Token::Sign("["), _)) => Ok("]"),
            Some((Token::Sign("("), _)) => Ok(")"),
            Some((_, at)) => Err(error(what, self.text, at.start)),
            None => Err(error(what, self.text, self.text.len())),
        }
    }

    /// A literal, with its sign.
    fn literal(&mut self) -> Result<Literal> {
        let missing = |text: &str, at| error("expected a literal (a number, string or boolean) after 'in'", text, at);
        let Some((token, at)) = self.advance()? else { return Err(missing(self.text, self.text.len())) };
        match token {
            Token::Literal(literal) => Ok(literal),
            Token::Sign(sign @ ("+" | "-")) => match self.advance()? {
                Some((
                    Token::Literal(literal @ (Literal::Integer(_) | Literal::Unsigned(_) | Literal::Real(_))),
                    _,
                )) => {
                    let signed = if sign == "-" { literal.negated() } else { Some(literal) };
                    signed.ok_or_else(|| error("integer exceeds 64 bits", self.text, at.start))
                }
                _ => Err(missing(self.text, at.end)),
            },
            _ => Err(missing(self.text, at.start)),
        }
    }

    /// A value, with the signs in front of it and the indexes behind it.
    fn operand(&mut self) -> Result<Part> {
        let from = self.steps.len();
        let Some((token, at)) = self.advance()? else {
            return Err(error("expected a value", self.text, self.text.len()));
        };
        let sign = match token {
            Token::Sign("+") => Some((Unary::Plus, SIGN_STRENGTH)),
            Token::Sign("-") => Some((Unary::Minus, SIGN_STRENGTH)),
            Token::Sign("~") => Some((Unary::Invert, SIGN_STRENGTH)),
            Token::Sign("!") => Some((Unary::Not, SIGN_STRENGTH)),
            Token::Word("not") => Some((Unary::Not, NOT_STRENGTH)),
            _ => None,
        };
        if let Some((sign, strength)) = sign {
            let term = self.term(strength)?;
            let at = at.start..term.at.end;
            match self.negated_literal(from).filter(|_| sign == Unary::Minus) {
                Some(literal) => self.steps[from] = Step { op: Op::Literal(literal), at: at.clone() },
                None => self.push(Op::Unary(sign), &at),
            }
            return Ok(Part { at, from, tuple: None });
        }
        let mut part = Part { at, from, tuple: None };
        let mut is_plain = false;
        match token {
            Token::Literal(literal) => self.push(Op::Literal(literal), &part.at),
            Token::Quoted(name) => self.push(Op::Field(name.to_owned()), &part.at),
            Token::Word(word @ ("and" | "or" | "in")) => {
                return Err(error(&format!("expected a value before '{word}'"), self.text, part.at.start));
            }
            Token::Word(name) if self.is_next("(") => self.call(name, &mut part)?,
            Token::Word(name) => {
                is_plain = true;
                self.push(Op::Field(name.to_owned()), &part.at);
            }
            Token::Sign("(") => {
                self.parentheses(&mut part)?;
                if part.tuple.is_some() {
                    return Ok(part);
                }
            }
            Token::Sign(sign) => {
                return Err(error(&format!("expected a value before '{sign}'"), self.text, part.at.start));
            }
        }
        while self.is_next("[") || self.is_next(".") {
            if self.is_next("[") {
                is_plain = false;
                self.subscripts(&mut part)?;
            } else {
                self.member(&mut part, &mut is_plain)?;
            }
        }
        if is_plain {
            self.name_constant(from);
        }
        Ok(part)
    }

    /// The literal behind a minus, if the steps from one on are a literal.
    fn negated_literal(&self, from: usize) -> Option<Literal> {
        match &self.steps[from..] {
            [Step { op: Op::Literal(literal), .. }] => literal.negated(),
            _ => None,
        }
    }

    /// The content of parentheses, after the first: a term or a tuple.
    fn parentheses(&mut self, part: &mut Part) -> Result<()> {
        self.term(0)?;
        let mut count = 1;
        while self.is_next(",") {
            self.advance()?;
            if self.is_next(")") {
                break;
            }
            self.term(0)?;
            count += 1;
        }
        self.expect(")")?;
        part.at.end = self.end;
        part.tuple = (count > 1).then_some(count);
        Ok(())
    }

    /// `.name`, or a call where a path is that of a function: `np.sqrt(x)`.
    fn member(&mut self, part: &mut Part, is_plain: &mut bool) -> Result<()> {
        self.advance()?;
        let (name, is_word, at) = match self.advance()? {
            Some((Token::Word(name), at)) => (name, true, at),
            Some((Token::Quoted(name), at)) => (name, false, at),
            _ => return Err(error("expected the name of a member", self.text, self.end)),
        };
        *is_plain &= is_word;
        let whole = part.at.start..at.end;
        match &mut self.steps[part.from..] {
            [Step { op: Op::Field(path), at }] => {
                if *is_plain && matches!(&self.next, Some((Token::Sign("("), _))) {
                    let module = std::mem::take(path);
                    self.steps.pop();
                    self.check_module(&module, name, part.at.start)?;
                    *is_plain = false;
                    return self.call(name, part);
                }
                path.push('.');
                path.push_str(name);
                *at = whole.clone();
            }
            _ => self.push(Op::Member(name.to_owned()), &whole),
        }
        part.at = whole;
        Ok(())
    }

    fn check_module(&self, module: &str, name: &str, at: usize) -> Result<()> {
        if MODULES.contains(&module) {
            return Ok(());
        }
        let hint = match table::near(if name == "size" { "len" } else { name }) {
            Some(function) => format!("write {function}({module})"),
            None => format!("available modules: {}", MODULES.join(", ")),
        };
        Err(error(&format!("'{module}.{name}' is not a function; {hint},"), self.text, at))
    }

    /// `np.pi` and so on, if the last step is that.
    fn name_constant(&mut self, from: usize) {
        if let [Step { op, .. }] = &mut self.steps[from..]
            && let Op::Field(path) = op
            && let Some((module, name)) = path.split_once('.')
            && MODULES.contains(&module)
            && let Some(value) = table::constant(name)
        {
            *op = Op::Literal(Literal::Real(value));
        }
    }

    fn is_next(&self, sign: &str) -> bool {
        matches!(&self.next, Some((Token::Sign(next), _)) if *next == sign)
    }

    fn expect(&mut self, sign: &'static str) -> Result<()> {
        match self.advance()? {
            Some((Token::Sign(next), _)) if next == sign => Ok(()),
            Some((_, at)) => Err(error(&format!("expected '{sign}'"), self.text, at.start)),
            None => Err(error(&format!("expected '{sign}'"), self.text, self.text.len())),
        }
    }

    /// The call of a function whose name is taken.
    fn call(&mut self, name: &str, part: &mut Part) -> Result<()> {
        let (name, function) = table::function(name)?;
        let (count, axis) = self.arguments(name, function)?;
        if !function.arity.contains(&count) {
            let takes = function.takes();
            return Err(Error::invalid_argument(format!("{name}() takes {takes}, found {count}")));
        }
        part.at.end = self.end;
        self.push(Op::Call { name, function, count, axis }, &part.at);
        Ok(())
    }

    /// The number of arguments, and the axis.
    fn arguments(&mut self, name: &str, function: &Function) -> Result<(usize, Option<i64>)> {
        self.expect("(")?;
        let (mut count, mut axis) = (0, None);
        while !self.is_next(")") {
            match self.keyword() {
                Some((keyword, at)) => axis = Some(self.axis(name, function, keyword, at)?),
                None => {
                    self.term(0)?;
                    count += 1;
                }
            }
            if !self.is_next(")") {
                self.expect(if self.next.is_none() { ")" } else { "," })?;
            }
        }
        self.expect(")")?;
        Ok((count, axis))
    }

    /// The next word and its place, if '=' is behind it.
    fn keyword(&self) -> Option<(&'t str, usize)> {
        let Some((Token::Word(word), at)) = &self.next else { return None };
        let behind = self.text[at.end..].trim_start().strip_prefix('=')?;
        (!behind.starts_with('=')).then_some((word, at.start))
    }

    /// The value of `axis=…`.
    fn axis(&mut self, name: &str, function: &Function, keyword: &str, at: usize) -> Result<i64> {
        if keyword != "axis" || !function.has_axis() {
            let known = if function.has_axis() { "only 'axis'" } else { "no keywords" };
            return Err(error(&format!("{name}() takes {known}, not '{keyword}'"), self.text, at));
        }
        self.advance()?;
        self.advance()?;
        if matches!(self.next, Some((Token::Word("None"), _))) {
            let what = "axis=None combines all entries, but values are computed entry by entry: write axis=-1,";
            return Err(error(what, self.text, at));
        }
        match self.literal() {
            Ok(Literal::Integer(axis)) => Ok(axis),
            _ => Err(error("an axis must be an integer,", self.text, at)),
        }
    }

    /// `[1]`, `[mask]`, `[:, :2]`.
    fn subscripts(&mut self, part: &mut Part) -> Result<()> {
        self.advance()?;
        let mut level = 0;
        for place in 0.. {
            let start = self.next.as_ref().map_or(self.end, |(_, at)| at.start);
            let by = self.subscript()?;
            let is_last = !self.is_next(",");
            if place == 0 && !is_last {
                // The axis of entries.
                if by != Some(Slice::ALL) {
                    let what = "the first of several indexes selects entries: write [:, …],";
                    return Err(error(what, self.text, start));
                }
            } else if let Some(slice) = by {
                let at = part.at.start..self.end;
                self.push(Op::Slice { level, slice }, &at);
                level += 1;
            } else {
                let is_literal = matches!(self.steps.last(), Some(Step { op: Op::Literal(_), .. }));
                if !(is_literal || level == 0 && is_last) {
                    let what = "an index beside slices and other indexes must be an integer,";
                    return Err(error(what, self.text, start));
                }
                let at = part.at.start..self.end;
                self.push(Op::Index { level }, &at);
            }
            if is_last {
                break;
            }
            self.advance()?;
        }
        self.expect("]")?;
        part.at.end = self.end;
        if let Some(step) = self.steps.last_mut() {
            step.at.end = self.end;
        }
        Ok(())
    }

    /// A slice; or none, and the steps of an index.
    fn subscript(&mut self) -> Result<Option<Slice>> {
        let mut bounds = [None; 3];
        let mut count = 0;
        loop {
            if !(self.is_next(":") || self.is_next("]") || self.is_next(",")) || count == 0 && !self.is_next(":") {
                let start = self.next.as_ref().map_or(self.end, |(_, at)| at.start);
                let from = self.steps.len();
                self.term(0)?;
                if count == 0 && !self.is_next(":") {
                    return Ok(None);
                }
                bounds[count] = match &self.steps[from..] {
                    [Step { op: Op::Literal(Literal::Integer(bound)), .. }] => Some(*bound),
                    _ => return Err(error("the bounds of a slice must be integers,", self.text, start)),
                };
                self.steps.truncate(from);
            }
            if count == 2 || !self.is_next(":") {
                break;
            }
            self.advance()?;
            count += 1;
        }
        let [start, stop, step] = bounds;
        match step {
            Some(0) => Err(error("the step of a slice must not be 0,", self.text, self.end)),
            step => Ok(Some(Slice { start, stop, step: step.unwrap_or(1) })),
        }
    }
}

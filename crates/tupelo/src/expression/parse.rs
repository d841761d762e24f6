//! Text to a tree.

use std::ops::Range;

use crate::{Error, Result};

/// Terms in terms; more are refused before the stack ends.
const MAX_DEPTH: usize = 128;

/// A part of an expression, and where in the text it stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Term {
    pub(super) node: Node,
    pub(super) at: Range<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Literal(Literal),
    /// A dotted path.
    Field(String),
    Unary(Unary, Box<Term>),
    Binary(Binary, Box<Term>, Box<Term>),
    /// Name and arguments.
    Call(String, Vec<Term>),
    /// `x[y]`
    Index(Box<Term>, Box<Term>),
    /// `x.name` of something that is no path.
    Member(Box<Term>, String),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Literal {
    Truth(bool),
    Integer(i64),
    /// One that is too large for 64 bits with a sign.
    Unsigned(u64),
    Real(f64),
    Text(String),
}

impl Literal {
    fn of(integer: u64) -> Self {
        i64::try_from(integer).map_or(Self::Unsigned(integer), Self::Integer)
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

impl Binary {
    fn is_comparison(self) -> bool {
        use Binary::*;
        matches!(self, Less | LessEqual | Greater | GreaterEqual | Equal | NotEqual)
    }

    /// How strongly it binds: as in Python.
    fn strength(self) -> u8 {
        use Binary::*;
        match self {
            Or => 1,
            And => 2,
            Less | LessEqual | Greater | GreaterEqual | Equal | NotEqual => 4,
            BitOr => 5,
            BitXor => 6,
            BitAnd => 7,
            Add | Subtract => 8,
            Multiply | Divide | FloorDivide | Remainder => 9,
            Power => 11,
        }
    }
}

/// `not` binds between `and` and comparisons, signs between products and powers.
const NOT_STRENGTH: u8 = 3;
const SIGN_STRENGTH: u8 = 10;

impl Term {
    /// Shows all nodes.
    pub(super) fn visit(&self, see: &mut impl FnMut(&Node)) {
        see(&self.node);
        match &self.node {
            Node::Literal(_) | Node::Field(_) => {}
            Node::Unary(_, term) | Node::Member(term, _) => term.visit(see),
            Node::Binary(_, left, right) | Node::Index(left, right) => {
                left.visit(see);
                right.visit(see);
            }
            Node::Call(_, arguments) => arguments.iter().for_each(|argument| argument.visit(see)),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Token<'t> {
    Literal(Literal),
    /// A name, or a word that is an operator.
    Word(&'t str),
    /// A name in backticks.
    Quoted(&'t str),
    Sign(&'static str),
}

/// Longer ones first.
const SIGNS: [&str; 29] = [
    "**", "//", "<=", ">=", "==", "!=", "&&", "||", "<", ">", "+", "-", "*", "/", "%", "&", "|", "^", "~", "!", "(",
    ")", "[", "]", ",", ".", "=", ":", ";",
];

struct Parser<'t> {
    text: &'t str,
    /// Where the next token begins, and behind it; none at the end.
    next: Option<(Token<'t>, Range<usize>)>,
    /// The end of the last token.
    end: usize,
    depth: usize,
}

/// The tree of a text.
pub(super) fn parse(text: &str) -> Result<Term> {
    let mut parser = Parser { text, next: None, end: 0, depth: 0 };
    parser.advance()?;
    let term = parser.term(0)?;
    match &parser.next {
        None => Ok(term),
        Some((Token::Sign("="), at)) => Err(error("one '=' compares nothing; write '=='", text, at.start)),
        Some((_, at)) => Err(error(&format!("'{}' is not expected", &text[at.clone()]), text, at.start)),
    }
}

#[cold]
fn error(what: &str, text: &str, at: usize) -> Error {
    let place = match text[at..].trim().is_empty() {
        true => "its end".to_owned(),
        false => format!("character {}", text[..at].chars().count() + 1),
    };
    Error::invalid_argument(format!("{what} at {place}"))
}

impl<'t> Parser<'t> {
    /// Takes the next token.
    fn advance(&mut self) -> Result<Option<(Token<'t>, Range<usize>)>> {
        let taken = self.next.take();
        let from = taken.as_ref().map_or(self.end, |(_, at)| at.end);
        self.end = from;
        let rest = self.text[from..].trim_start();
        let start = self.text.len() - rest.len();
        if !rest.is_empty() {
            let (token, len) = self.token(rest, start)?;
            self.next = Some((token, start..start + len));
        }
        Ok(taken)
    }

    fn token(&self, rest: &'t str, start: usize) -> Result<(Token<'t>, usize)> {
        let first = rest.chars().next().unwrap_or_default();
        let until = |is_part: fn(char) -> bool| rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        if first.is_alphabetic() || first == '_' {
            let len = until(|c| c.is_alphanumeric() || c == '_');
            self.check_colon(rest, start, len)?;
            return Ok((word(&rest[..len]), len));
        }
        if first.is_ascii_digit() || first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit()) {
            return self.number(rest, start);
        }
        if let '\'' | '"' | '`' = first {
            let Some(len) = rest[1..].find(first) else {
                return Err(error(&format!("a {first} is never closed"), self.text, start));
            };
            let inner = &rest[1..=len];
            let token =
                if first == '`' { Token::Quoted(inner) } else { Token::Literal(Literal::Text(inner.to_owned())) };
            return Ok((token, len + 2));
        }
        match SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            Some(sign) => Ok((Token::Sign(sign), sign.len())),
            None => Err(error(&format!("'{first}' means nothing"), self.text, start)),
        }
    }

    /// Names as `ElectronsAuxDyn:pt` are likelier than anything else that is written so, but slices.
    fn check_colon(&self, rest: &str, start: usize, word_len: usize) -> Result<()> {
        let is_name = |text: &str| text.starts_with(|c: char| c.is_alphabetic() || c == '_');
        if !rest[word_len..].strip_prefix(':').is_some_and(is_name) {
            return Ok(());
        }
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').unwrap_or(rest.len());
        let is_slice = self.text[..start].trim_end().ends_with('[') && rest[end..].trim_start().starts_with(']');
        match is_slice {
            true => Ok(()),
            false => {
                let name = rest[..end].trim_end_matches(':');
                Err(error(&format!("names with ':' stand in backticks: write `{name}`,"), self.text, start))
            }
        }
    }

    fn number(&self, rest: &'t str, start: usize) -> Result<(Token<'t>, usize)> {
        let wrong = |len: usize| error(&format!("'{}' is no number", &rest[..len]), self.text, start);
        if rest.starts_with("0x") || rest.starts_with("0X") {
            let len = rest[2..].find(|c: char| !c.is_ascii_alphanumeric()).map_or(rest.len(), |len| len + 2);
            let value = u64::from_str_radix(&rest[2..len], 16).map_err(|_| wrong(len))?;
            return Ok((Token::Literal(Literal::of(value)), len));
        }
        let bytes = rest.as_bytes();
        let digits = |mut at: usize| {
            while bytes.get(at).is_some_and(|b| b.is_ascii_digit() || *b == b'_') {
                at += 1;
            }
            at
        };
        let mut len = digits(0);
        let mut is_real = false;
        if bytes.get(len) == Some(&b'.') {
            (is_real, len) = (true, digits(len + 1));
        }
        if let Some(b'e' | b'E') = bytes.get(len) {
            let sign = usize::from(matches!(bytes.get(len + 1), Some(b'+' | b'-')));
            let end = digits(len + 1 + sign);
            (is_real, len) = (true, end);
        }
        if bytes.get(len).is_some_and(|b| b.is_ascii_alphanumeric()) {
            return Err(wrong(rest.find(|c: char| !c.is_alphanumeric() && c != '.').unwrap_or(rest.len())));
        }
        let text = rest[..len].replace('_', "");
        let literal = match is_real {
            true => Literal::Real(text.parse().map_err(|_| wrong(len))?),
            false => match text.parse() {
                Ok(integer) => Literal::of(integer),
                Err(_) => return Err(error(&format!("{text} is no integer of 64 bits"), self.text, start)),
            },
        };
        Ok((Token::Literal(literal), len))
    }

    /// A term whose operators all bind more strongly than `strength`.
    fn term(&mut self, strength: u8) -> Result<Term> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Error::limit(format!("terms nested deeper than {MAX_DEPTH}")));
        }
        let mut left = self.operand()?;
        // The right side of the last comparison, which a chain goes on with.
        let mut chained: Option<Term> = None;
        while let Some(operator) = self.operator() {
            if operator.strength() <= strength {
                break;
            }
            self.advance()?;
            let below = if operator == Binary::Power { SIGN_STRENGTH - 1 } else { operator.strength() };
            let right = self.term(below)?;
            let at = left.at.start..right.at.end;
            let binary = |left: Term, right: Term| Term {
                at: left.at.start..right.at.end,
                node: Node::Binary(operator, Box::new(left), Box::new(right)),
            };
            left = match chained.take().filter(|_| operator.is_comparison()) {
                None => binary(left, right.clone()),
                Some(middle) => {
                    self.check_middle(&middle)?;
                    let next = binary(middle, right.clone());
                    Term { node: Node::Binary(Binary::And, Box::new(left), Box::new(next)), at }
                }
            };
            chained = operator.is_comparison().then_some(right);
        }
        self.depth -= 1;
        Ok(left)
    }

    /// `a > 1 & b < 3` is a chain through `1 & b`, as in Python, and never what is meant.
    fn check_middle(&self, middle: &Term) -> Result<()> {
        let Node::Binary(Binary::BitAnd | Binary::BitOr | Binary::BitXor, _, _) = middle.node else { return Ok(()) };
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
            "'{text}' stands between two comparisons, which &, | and ^ bind more strongly than; put each comparison in \
             parentheses, or write 'and' or 'or',"
        );
        Err(error(&what, self.text, middle.at.start))
    }

    fn operator(&self) -> Option<Binary> {
        use Binary::*;
        Some(match &self.next.as_ref()?.0 {
            Token::Word("or") | Token::Sign("||") => Or,
            Token::Word("and") | Token::Sign("&&") => And,
            Token::Sign("<") => Less,
            Token::Sign("<=") => LessEqual,
            Token::Sign(">") => Greater,
            Token::Sign(">=") => GreaterEqual,
            Token::Sign("==") => Equal,
            Token::Sign("!=") => NotEqual,
            Token::Sign("|") => BitOr,
            Token::Sign("^") => BitXor,
            Token::Sign("&") => BitAnd,
            Token::Sign("+") => Add,
            Token::Sign("-") => Subtract,
            Token::Sign("*") => Multiply,
            Token::Sign("/") => Divide,
            Token::Sign("//") => FloorDivide,
            Token::Sign("%") => Remainder,
            Token::Sign("**") => Power,
            _ => return None,
        })
    }

    /// A value, with the signs in front of it and the indexes behind it.
    fn operand(&mut self) -> Result<Term> {
        let Some((token, at)) = self.advance()? else {
            return Err(error("a value is missing", self.text, self.text.len()));
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
            // The least integer has no opposite that has a sign.
            let is_least = sign == Unary::Minus && term.node == Node::Literal(Literal::Unsigned(1 << 63));
            let node = match is_least {
                true => Node::Literal(Literal::Integer(i64::MIN)),
                false => Node::Unary(sign, Box::new(term)),
            };
            return Ok(Term { at, node });
        }
        let mut term = match token {
            Token::Literal(literal) => Term { node: Node::Literal(literal), at },
            Token::Quoted(name) => Term { node: Node::Field(name.to_owned()), at },
            Token::Word(word @ ("and" | "or")) => {
                return Err(error(&format!("a value is missing in front of '{word}'"), self.text, at.start));
            }
            Token::Word(name) if self.is_next("(") => {
                let arguments = self.arguments()?;
                Term { node: Node::Call(name.to_owned(), arguments), at: at.start..self.end }
            }
            Token::Word(name) => Term { node: Node::Field(name.to_owned()), at },
            Token::Sign("(") => {
                let inner = self.term(0)?;
                self.expect(")")?;
                Term { node: inner.node, at: at.start..self.end }
            }
            Token::Sign(sign) => {
                return Err(error(&format!("a value is missing in front of '{sign}'"), self.text, at.start));
            }
        };
        loop {
            if self.is_next("[") {
                self.advance()?;
                let index = self.term(0)?;
                self.expect("]")?;
                term = Term { at: term.at.start..self.end, node: Node::Index(Box::new(term), Box::new(index)) };
            } else if self.is_next(".") {
                self.advance()?;
                let Some((Token::Word(name) | Token::Quoted(name), at)) = self.advance()? else {
                    return Err(error("the name of a member is missing", self.text, self.end));
                };
                let node = match term.node {
                    Node::Field(path) => Node::Field(format!("{path}.{name}")),
                    node => Node::Member(Box::new(Term { node, at: term.at.clone() }), name.to_owned()),
                };
                term = Term { node, at: term.at.start..at.end };
            } else {
                return Ok(term);
            }
        }
    }

    fn is_next(&self, sign: &str) -> bool {
        matches!(&self.next, Some((Token::Sign(next), _)) if *next == sign)
    }

    fn expect(&mut self, sign: &'static str) -> Result<()> {
        match self.advance()? {
            Some((Token::Sign(next), _)) if next == sign => Ok(()),
            Some((_, at)) => Err(error(&format!("'{sign}' is missing"), self.text, at.start)),
            None => Err(error(&format!("'{sign}' is missing"), self.text, self.text.len())),
        }
    }

    fn arguments(&mut self) -> Result<Vec<Term>> {
        self.expect("(")?;
        let mut arguments = Vec::new();
        while !self.is_next(")") {
            arguments.push(self.term(0)?);
            if !self.is_next(")") {
                self.expect(if self.next.is_none() { ")" } else { "," })?;
            }
        }
        self.expect(")")?;
        Ok(arguments)
    }
}

fn word(text: &str) -> Token<'_> {
    match text {
        "True" | "true" => Token::Literal(Literal::Truth(true)),
        "False" | "false" => Token::Literal(Literal::Truth(false)),
        _ => Token::Word(text),
    }
}

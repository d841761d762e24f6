//! Text to tokens.

use std::ops::Range;

use super::syntax::Literal;
use super::table;
use crate::{Error, Result};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token<'t> {
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

/// Special functions of `TTree::Draw`, and what to write instead.
const TREE_FORMULAS: [(&str, &str); 8] = [
    ("Sum$", "write sum(x) for Sum$(x)"),
    ("Length$", "write len(x) for Length$(x)"),
    ("Min$", "write min(x) for Min$(x)"),
    ("Max$", "write max(x) for Max$(x)"),
    ("MinIf$", "write min(x[mask]) for MinIf$(x, mask)"),
    ("MaxIf$", "write max(x[mask]) for MaxIf$(x, mask)"),
    ("Alt$", "write where(is_missing(x[1]), 0, x[1]) for Alt$(x[1], 0)"),
    ("Iteration$", "items are computed one by one; x[0] is the first item"),
];

/// `what`, and its position in the text.
#[cold]
pub(super) fn error(what: &str, text: &str, at: usize) -> Error {
    let place = match text[at..].trim().is_empty() {
        true => "the end".to_owned(),
        false => format!("character {}", text[..at].chars().count() + 1),
    };
    Error::invalid_argument(format!("{what} at {place}"))
}

/// The next token at or after a position, and its position.
pub(super) fn next_token(text: &str, from: usize) -> Result<Option<(Token<'_>, Range<usize>)>> {
    let rest = text[from..].trim_start();
    let start = text.len() - rest.len();
    if rest.is_empty() {
        return Ok(None);
    }
    let (token, len) = token(text, rest, start)?;
    Ok(Some((token, start..start + len)))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The text after the next word, if it is this one.
pub(super) fn behind_word<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    text.trim_start().strip_prefix(word).filter(|rest| !rest.starts_with(is_word))
}

fn token<'t>(text: &'t str, rest: &'t str, start: usize) -> Result<(Token<'t>, usize)> {
    let first = rest.chars().next().unwrap_or_default();
    if first.is_alphabetic() || first == '_' {
        let len = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        check_behind(text, rest, start, len)?;
        return Ok((word(&rest[..len]), len));
    }
    if first.is_ascii_digit() || first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit()) {
        return number(text, rest, start);
    }
    if let '\'' | '"' | '`' = first {
        let Some(len) = rest[1..].find(first) else {
            return Err(error("unterminated string", text, start));
        };
        let inner = &rest[1..=len];
        let token = if first == '`' { Token::Quoted(inner) } else { Token::Literal(Literal::Text(inner.to_owned())) };
        return Ok((token, len + 2));
    }
    match SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
        Some(sign) => Ok((Token::Sign(sign), sign.len())),
        None => Err(error(&format!("unexpected '{first}'"), text, start)),
    }
}

fn word(text: &str) -> Token<'_> {
    match text {
        "True" | "true" => Token::Literal(Literal::Boolean(true)),
        "False" | "false" => Token::Literal(Literal::Boolean(false)),
        _ => Token::Word(text),
    }
}

/// An error for text after a word that looks like a name of C++ or of a TTree formula, with the spelling to use.
fn check_behind(text: &str, rest: &str, start: usize, word_len: usize) -> Result<()> {
    let behind = &rest[word_len..];
    if behind.starts_with('$') {
        let name = &rest[..=word_len];
        let known = TREE_FORMULAS.iter().find(|(formula, _)| *formula == name);
        let hint = known.map_or("use functions of NumPy and Awkward Array", |(_, hint)| hint);
        return Err(error(&format!("'{name}' exists only in TTree formulas; {hint},"), text, start));
    }
    if let Some(behind) = behind.strip_prefix("::") {
        let name = &behind[..behind.find(|c| !is_word(c)).unwrap_or(behind.len())];
        let hint = match table::near(name) {
            Some(name) => format!("write {name}"),
            None => "use functions of NumPy and Awkward Array".to_owned(),
        };
        let what = format!("'{}::{name}' is C++; {hint},", &rest[..word_len]);
        return Err(error(&what, text, start));
    }
    // Names such as `ElectronsAuxDyn:pt` are the likeliest meaning, except for slices.
    let is_name = |text: &str| text.starts_with(|c: char| c.is_alphabetic() || c == '_');
    if !behind.strip_prefix(':').is_some_and(is_name) {
        return Ok(());
    }
    let end = rest.find(|c: char| !is_word(c) && c != ':').unwrap_or(rest.len());
    let is_slice = text[..start].trim_end().ends_with(['[', ',']) && rest[end..].trim_start().starts_with([']', ',']);
    match is_slice {
        true => Ok(()),
        false => {
            let name = rest[..end].trim_end_matches(':');
            Err(error(&format!("names with ':' must be in backticks: write `{name}`,"), text, start))
        }
    }
}

fn number<'t>(text: &'t str, rest: &'t str, start: usize) -> Result<(Token<'t>, usize)> {
    let wrong = |len: usize| error(&format!("'{}' is not a number", &rest[..len]), text, start);
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
    let digits = rest[..len].replace('_', "");
    let literal = match is_real {
        true => Literal::Real(digits.parse().map_err(|_| wrong(len))?),
        false => match digits.parse() {
            Ok(integer) => Literal::of(integer),
            Err(_) => return Err(error(&format!("{digits} does not fit in a 64-bit integer"), text, start)),
        },
    };
    Ok((Token::Literal(literal), len))
}

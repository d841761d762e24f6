//! Just enough of Rust's syntax to tell code from comments and strings, the product from its tests, and to read paths.

/// A Rust file taken apart. The three texts have the length and the line breaks of the original.
#[derive(Debug)]
pub(crate) struct Source {
    /// Code, with comments and the insides of literals blanked.
    pub(crate) code: String,
    /// Comments, with all else blanked.
    pub(crate) comments: String,
    /// Code without the items under `#[cfg(test)]`.
    pub(crate) product: String,
    /// Lines that those items take.
    pub(crate) test_lines: usize,
}

/// A word or a single punctuation character of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    /// The text.
    pub(crate) text: &'a str,
    /// From 1.
    pub(crate) line: usize,
    /// Byte offset of its first character.
    pub(crate) at: usize,
}

impl Source {
    /// Takes a file apart.
    pub(crate) fn parse(text: &str) -> Self {
        let (code, comments) = split(text);
        let (product, test_lines) = without_tests(&code);
        Self { code, comments, product, test_lines }
    }
}

/// A path as written, such as `crate::wire::Cursor`; groups are unfolded, one path a leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RustPath {
    /// `["crate", "wire", "Cursor"]`
    pub(crate) segments: Vec<String>,
    /// Of the last segment.
    pub(crate) line: usize,
    /// Names of the inline modules around it, outermost first.
    pub(crate) modules: Vec<String>,
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Splits a file into code and comments.
fn split(text: &str) -> (String, String) {
    let bytes = text.as_bytes();
    let blank = |&byte: &u8| if byte == b'\n' { b'\n' } else { b' ' };
    let mut code: Vec<u8> = bytes.iter().map(blank).collect();
    let mut comments = code.clone();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let end = at
            + if rest.starts_with(b"//") {
                rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len())
            } else if rest.starts_with(b"/*") {
                block_comment(rest)
            } else {
                literal(bytes, at)
            };
        if rest.starts_with(b"//") || rest.starts_with(b"/*") {
            comments[at..end].copy_from_slice(&bytes[at..end]);
            at = end;
        } else if end > at {
            // A literal: keep its first and last byte, so that it still parts the words around it.
            code[at] = b'"';
            code[end - 1] = b'"';
            at = end;
        } else {
            code[at] = bytes[at];
            at += 1;
        }
    }
    let text = |bytes| String::from_utf8(bytes).unwrap_or_default();
    (text(code), text(comments))
}

/// Bytes of the block comment that begins here; they nest.
fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match rest.get(at..at + 2) {
            Some(b"/*") => (depth, at) = (depth + 1, at + 2),
            Some(b"*/") => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// Bytes of the string or character literal that begins at `at`; 0 if none does.
fn literal(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let inside_word = at > 0 && is_word(bytes[at - 1]);
    let prefix = rest.iter().take_while(|byte| matches!(byte, b'b' | b'c' | b'r')).count();
    if prefix > 0 && !inside_word {
        let quoted = &rest[prefix..];
        let hashes = quoted.iter().take_while(|&&byte| byte == b'#').count();
        let raw = rest[..prefix].contains(&b'r');
        return match quoted.get(hashes) {
            Some(b'"') if raw => prefix + raw_string(quoted, hashes),
            Some(b'"') if hashes == 0 => prefix + escaped(quoted, b'"'),
            Some(b'\'') if hashes == 0 && !raw => prefix + escaped(quoted, b'\''),
            _ => 0,
        };
    }
    match rest[0] {
        b'"' => escaped(rest, b'"'),
        // 'a' and '\n' are characters; 'a in other places is a lifetime.
        b'\'' if rest.get(1) == Some(&b'\\') => escaped(rest, b'\''),
        b'\'' => {
            let width = rest.get(1).map_or(0, |&byte| utf8_width(byte));
            if rest.get(1 + width) == Some(&b'\'') { width + 2 } else { 0 }
        }
        _ => 0,
    }
}

fn utf8_width(first: u8) -> usize {
    match first {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    }
}

fn escaped(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

fn raw_string(quoted: &[u8], hashes: usize) -> usize {
    let mut end = vec![b'#'; hashes + 1];
    end[0] = b'"';
    let body = &quoted[hashes + 1..];
    let length = body.windows(end.len()).position(|window| window == end);
    length.map_or(quoted.len(), |length| hashes + 1 + length + end.len())
}

/// Blanks every item under `#[cfg(test)]`, and counts the lines of them.
fn without_tests(code: &str) -> (String, usize) {
    let mut product = code.as_bytes().to_vec();
    let tokens = tokens(code);
    let (mut next, mut lines) = (0, 0);
    while next < tokens.len() {
        let words: Vec<&str> = tokens[next..].iter().take(7).map(|token| token.text).collect();
        if words == ["#", "[", "cfg", "(", "test", ")", "]"] {
            let last = end_of_item(&tokens, next + 7);
            for byte in &mut product[tokens[next].at..=tokens[last].at] {
                if *byte != b'\n' {
                    *byte = b' ';
                }
            }
            lines += tokens[last].line + 1 - tokens[next].line;
            next = last;
        }
        next += 1;
    }
    (String::from_utf8(product).unwrap_or_default(), lines)
}

/// Index of the `;` or `}` that ends the item which begins at token `next`.
fn end_of_item(tokens: &[Token<'_>], next: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(next) {
        match token.text {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && matches!(token.text, ";" | "}") {
            return index;
        }
    }
    tokens.len() - 1
}

/// Words and punctuation of code that [`Source`] has freed from comments and literals.
pub(crate) fn tokens(code: &str) -> Vec<Token<'_>> {
    let bytes = code.as_bytes();
    let (mut found, mut at, mut line) = (Vec::new(), 0, 1);
    while at < bytes.len() {
        let length = bytes[at..].iter().take_while(|&&byte| is_word(byte)).count().max(1);
        match bytes[at] {
            b'\n' => line += 1,
            byte if byte.is_ascii_whitespace() => {}
            _ => found.push(Token { text: &code[at..at + length], line, at }),
        }
        at += length;
    }
    found
}

/// Every path in `code` that begins with one of `heads`, such as `crate`, `super` or `std`.
pub(crate) fn paths(code: &str, heads: &[&str]) -> Vec<RustPath> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    let mut modules: Vec<(String, usize)> = Vec::new();
    let mut depth = 0;
    let mut next = 0;
    while next < tokens.len() {
        let text = tokens[next].text;
        let word = |ahead: usize| tokens.get(next + ahead).map_or("", |token| token.text);
        let goes_on = next > 1 && tokens[next - 1].text == ":" && tokens[next - 2].text == ":";
        match text {
            "{" => depth += 1,
            "}" => {
                depth -= usize::from(depth > 0);
                modules.retain(|(_, outside)| *outside < depth);
            }
            "mod" if word(2) == "{" => modules.push((word(1).to_owned(), depth)),
            _ if heads.contains(&text) && word(1) == ":" && word(2) == ":" && !goes_on => {
                let names: Vec<String> = modules.iter().map(|(name, _)| name.clone()).collect();
                next = unfold(&tokens, next, &[], &names, &mut found);
                continue;
            }
            _ => {}
        }
        next += 1;
    }
    found
}

/// Reads the path or `use` tree that begins at token `next`; gives the token behind it.
fn unfold(
    tokens: &[Token<'_>],
    next: usize,
    prefix: &[String],
    modules: &[String],
    found: &mut Vec<RustPath>,
) -> usize {
    let text = |index: usize| tokens.get(index).map_or("", |token| token.text);
    let mut segments = prefix.to_vec();
    let mut at = next;
    loop {
        if text(at) == "{" {
            at += 1;
            while at < tokens.len() && text(at) != "}" {
                at = unfold(tokens, at, &segments, modules, found);
                // Behind the leaf: `as name` and the comma.
                while at < tokens.len() && !matches!(text(at), "," | "}") {
                    at += 1;
                }
                at += usize::from(text(at) == ",");
            }
            return at + 1;
        }
        let is_name = text(at).as_bytes().first().is_some_and(|&byte| is_word(byte)) || text(at) == "*";
        if !is_name {
            return at.max(next + 1);
        }
        segments.push(text(at).to_owned());
        if text(at + 1) != ":" || text(at + 2) != ":" || text(at + 3) == "<" {
            let line = tokens[at].line;
            found.push(RustPath { segments, line, modules: modules.to_vec() });
            return at + 1;
        }
        at += 3;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(code: &str, heads: &[&str]) -> Vec<String> {
        paths(&Source::parse(code).code, heads).iter().map(|path| path.segments.join("::")).collect()
    }

    #[test]
    fn comments_and_literals_are_not_code() {
        let source = Source::parse(
            "let a = \"unsafe // {\"; // FIXME\nlet b = 'x'; /* un /* sa */ fe */ let c: &'a str = r#\"\"}\"#;\n",
        );
        assert!(!source.code.contains("unsafe") && !source.code.contains("FIXME") && !source.code.contains("fe"));
        assert!(!source.code.contains('}') && source.code.contains("&'a str"));
        assert!(source.comments.contains("FIXME") && !source.comments.contains("let"));
        assert_eq!(source.code.lines().count(), 2);
    }

    #[test]
    fn odd_characters_and_escapes() {
        let source =
            Source::parse(r#"let a = ['"', '\'', '\\', 'é', '\u{7f}', b'{', b'"']; let b = b"}\""; let barb = br"}";"#);
        assert!(!source.code.contains('{') && !source.code.contains('}'));
        assert_eq!(source.code.matches("let").count(), 3);
        assert!(source.code.contains("barb"));
    }

    #[test]
    fn test_items_are_not_the_product() {
        let source = Source::parse(
            "fn a() {}\n#[cfg(test)]\nmod tests { fn b() { [1; 2]; } }\n#[cfg(test)]\nuse x::{y, z};\nfn c() {}\n",
        );
        assert!(source.product.contains("fn a") && source.product.contains("fn c"));
        assert!(!source.product.contains("fn b") && !source.product.contains('x'));
        assert_eq!(source.product.lines().count(), source.code.lines().count());
        assert_eq!(source.test_lines, 4);
    }

    #[test]
    fn paths_are_unfolded() {
        let code = "use crate::{wire::{Cursor, Buffer as B}, Error};\nfn f() -> crate::open::Step<u8> { super::super::x::<u8>() }";
        assert_eq!(
            names(code, &["crate", "super"]),
            ["crate::wire::Cursor", "crate::wire::Buffer", "crate::Error", "crate::open::Step", "super::super::x"]
        );
        assert_eq!(names("use std::{fs, io::{self, Read}};", &["std"]), ["std::fs", "std::io::self", "std::io::Read"]);
        assert_eq!(names("use other::std::fs; struct std2; use std::fs::*;", &["std"]), ["std::fs::*"]);
    }

    #[test]
    fn paths_know_their_inline_modules() {
        let found = paths("mod a { mod b { use super::c; } fn d() { super::e(); } }\nuse super::f;", &["super"]);
        let modules: Vec<String> = found.iter().map(|path| path.modules.join("::")).collect();
        assert_eq!(modules, ["a::b", "a", ""]);
        assert_eq!(found[2].line, 2);
    }
}

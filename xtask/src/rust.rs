//! What the checks need of a Rust file: its tokens, paths, comments and strings, with tests told apart by
//! `#[cfg(test)]`.

use std::ops::Range;

use proc_macro2::{Delimiter, Group, Literal, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, UseTree, Visibility};

/// A parsed Rust file.
#[derive(Debug)]
pub(crate) struct Source {
    /// All tokens, tests included, comments excluded.
    pub(crate) tokens: Vec<Token>,
    /// Imports and paths of more than one segment, in the order of the file, tests excluded.
    pub(crate) paths: Vec<RustPath>,
    /// Modules declared at the top level with their lines, tests excluded.
    pub(crate) modules: Vec<(String, usize)>,
    /// The file with everything but comments replaced by blanks.
    pub(crate) comments: String,
    /// The file with everything but string literals replaced by blanks.
    pub(crate) strings: String,
    /// Number of lines in items under `#[cfg(test)]`.
    pub(crate) test_lines: usize,
}

/// An identifier, a literal or one punctuation character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    /// From 1.
    pub(crate) line: usize,
    /// Whether it belongs to an item under `#[cfg(test)]`.
    pub(crate) is_test: bool,
}

/// A path as written, such as `crate::wire::Cursor`. A `use` group gives one path for each leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RustPath {
    /// `["crate", "wire", "Cursor"]`; the last one is `*` for a glob import.
    pub(crate) segments: Vec<String>,
    /// Line of the last segment.
    pub(crate) line: usize,
    /// Names of the inline modules around it, outermost first.
    pub(crate) modules: Vec<String>,
    /// How the path is used.
    pub(crate) role: Role,
}

/// How a path is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Role {
    /// `use a::b`, under the name `b` or an alias.
    Import(String),
    /// `pub use a::b`, of any visibility but private.
    ReExport(String),
    /// A path in an expression, a type, a pattern or a macro.
    Mention,
}

impl RustPath {
    /// The name that an import or a re-export defines.
    pub(crate) fn defines(&self) -> Option<&str> {
        match &self.role {
            Role::Import(name) | Role::ReExport(name) => Some(name),
            Role::Mention => None,
        }
    }
}

impl Source {
    /// Parses a file.
    pub(crate) fn parse(text: &str) -> syn::Result<Self> {
        let stream: TokenStream = text.parse()?;
        let mut visitor = Visitor::default();
        visitor.visit_file(&syn::parse2(stream.clone())?);
        let mut source = Self {
            tokens: Vec::new(),
            paths: visitor.paths,
            modules: visitor.declared,
            comments: text.to_owned(),
            strings: blank(text),
            test_lines: visitor.tests.iter().map(|(_, lines)| lines).sum(),
        };
        let tests: Vec<_> = visitor.tests.into_iter().map(|(bytes, _)| bytes).collect();
        source.flatten(stream, text, &tests);
        Ok(source)
    }

    /// Tokens that belong to the product and not to its tests.
    pub(crate) fn product(&self) -> impl Iterator<Item = &Token> {
        self.tokens.iter().filter(|token| !token.is_test)
    }

    fn flatten(&mut self, stream: TokenStream, text: &str, tests: &[Range<usize>]) {
        for tree in stream {
            // The tokens of a doc comment (`#[doc = "…"]`) have the span of the comment.
            if is_comment(&text[tree.span().byte_range()]) {
                continue;
            }
            match tree {
                TokenTree::Group(group) => {
                    let (open, close) = delimiters(&group);
                    self.token(open, group.span_open(), text, tests);
                    self.flatten(group.stream(), text, tests);
                    self.token(close, group.span_close(), text, tests);
                }
                TokenTree::Ident(ident) => self.token(&ident.to_string(), ident.span(), text, tests),
                TokenTree::Punct(punct) => self.token(&punct.to_string(), punct.span(), text, tests),
                TokenTree::Literal(literal) => {
                    self.token(&literal.to_string(), literal.span(), text, tests);
                    self.string(&literal, text);
                }
            }
        }
    }

    fn token(&mut self, token: &str, span: Span, text: &str, tests: &[Range<usize>]) {
        let bytes = span.byte_range();
        let blanks = blank(&text[bytes.clone()]);
        self.comments.replace_range(bytes.clone(), &blanks);
        let is_test = tests.iter().any(|test| test.contains(&bytes.start));
        self.tokens.push(Token { text: token.to_owned(), line: span.start().line, is_test });
    }

    fn string(&mut self, literal: &Literal, text: &str) {
        let bytes = literal.span().byte_range();
        let written = &text[bytes.clone()];
        if written.contains('"') {
            self.strings.replace_range(bytes, written);
        }
    }
}

/// Blanks of the same length, with the same line breaks.
fn blank(text: &str) -> String {
    text.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect()
}

fn is_comment(text: &str) -> bool {
    text.starts_with("//") || text.starts_with("/*")
}

fn delimiters(group: &Group) -> (&'static str, &'static str) {
    match group.delimiter() {
        Delimiter::Parenthesis => ("(", ")"),
        Delimiter::Brace => ("{", "}"),
        Delimiter::Bracket => ("[", "]"),
        Delimiter::None => ("", ""),
    }
}

/// Collects paths, and skips items under `#[cfg(test)]`.
#[derive(Default)]
struct Visitor {
    paths: Vec<RustPath>,
    declared: Vec<(String, usize)>,
    /// Bytes and number of lines of each test item.
    tests: Vec<(Range<usize>, usize)>,
    /// Inline modules around the current item.
    modules: Vec<String>,
}

impl Visitor {
    /// Whether an item is a test; then it is recorded as such.
    fn skips(&mut self, item: &(impl ToTokens + Spanned)) -> bool {
        let is_test = has_cfg_test(item);
        if is_test {
            let span = item.span();
            self.tests.push((span.byte_range(), span.end().line + 1 - span.start().line));
        }
        is_test
    }

    fn path(&mut self, segments: Vec<String>, span: Span, role: Role) {
        if segments.len() > 1 {
            self.paths.push(RustPath { segments, line: span.start().line, modules: self.modules.clone(), role });
        }
    }

    fn import(&mut self, tree: &UseTree, mut prefix: Vec<String>, role: fn(String) -> Role) {
        match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.import(&path.tree, prefix, role);
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.import(tree, prefix.clone(), role)),
            UseTree::Name(name) => {
                let last = name.ident.to_string();
                let defined = if last == "self" { prefix.last().cloned().unwrap_or_default() } else { last.clone() };
                prefix.push(last);
                self.path(prefix, name.ident.span(), role(defined));
            }
            UseTree::Rename(rename) => {
                prefix.push(rename.ident.to_string());
                self.path(prefix, rename.ident.span(), role(rename.rename.to_string()));
            }
            UseTree::Glob(glob) => {
                prefix.push("*".to_owned());
                self.path(prefix, glob.star_token.span(), role("*".to_owned()));
            }
        }
    }

    /// Paths in the arguments of macros and attributes, which have no syntax tree.
    fn scan(&mut self, stream: TokenStream) {
        let mut segments: Vec<String> = Vec::new();
        let mut colons = 0;
        let mut at = Span::call_site();
        for tree in stream {
            match tree {
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.path(std::mem::take(&mut segments), at, Role::Mention);
                    }
                    (colons, at) = (0, ident.span());
                    segments.push(ident.to_string());
                }
                tree => {
                    self.path(std::mem::take(&mut segments), at, Role::Mention);
                    colons = 0;
                    if let TokenTree::Group(group) = tree {
                        self.scan(group.stream());
                    }
                }
            }
        }
        self.path(segments, at, Role::Mention);
    }
}

impl<'ast> Visit<'ast> for Visitor {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !self.skips(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        if !self.skips(item) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_trait_item(&mut self, item: &'ast syn::TraitItem) {
        if !self.skips(item) {
            visit::visit_trait_item(self, item);
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !self.skips(field) {
            visit::visit_field(self, field);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let name = module.ident.to_string();
        if self.modules.is_empty() {
            self.declared.push((name.clone(), module.ident.span().start().line));
        }
        self.modules.push(name);
        visit::visit_item_mod(self, module);
        self.modules.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let role = if matches!(item.vis, Visibility::Inherited) { Role::Import } else { Role::ReExport };
        self.import(&item.tree, Vec::new(), role);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let last = path.segments.last().map_or_else(Span::call_site, |segment| segment.ident.span());
        self.path(segments, last, Role::Mention);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        visit::visit_macro(self, call);
        self.scan(call.tokens.clone());
    }

    fn visit_meta_list(&mut self, list: &'ast syn::MetaList) {
        visit::visit_meta_list(self, list);
        self.scan(list.tokens.clone());
    }
}

/// Whether one of the attributes of an item is `#[cfg(test)]`.
fn has_cfg_test(item: &impl ToTokens) -> bool {
    // The kinds of items have no method in common for their attributes.
    let attributes = |input: ParseStream<'_>| {
        let attributes = Attribute::parse_outer(input)?;
        input.parse::<TokenStream>()?;
        Ok(attributes)
    };
    let attributes = attributes.parse2(item.to_token_stream()).unwrap_or_default();
    attributes.iter().any(|attribute| {
        let inside = attribute.path().is_ident("cfg").then(|| attribute.parse_args::<syn::Ident>().ok()).flatten();
        inside.is_some_and(|word| word == "test")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(code: &str) -> Source {
        Source::parse(code).unwrap()
    }

    fn names(code: &str, heads: &[&str]) -> Vec<String> {
        let source = parse(code);
        let wanted = source.paths.iter().filter(|path| heads.contains(&path.segments[0].as_str()));
        wanted.map(|path| path.segments.join("::")).collect()
    }

    fn words(source: &Source) -> Vec<&str> {
        source.tokens.iter().map(|token| token.text.as_str()).collect()
    }

    #[test]
    fn comments_and_literals_are_not_code() {
        let source = parse(
            "/// doc unsafe\nfn f() { let a = \"unsafe // {\"; // FIXME\nlet b = 'x'; /* un /* sa */ fe */ let c: &'a str = r#\"\"}\"#; }\n",
        );
        assert!(!words(&source).iter().any(|word| ["unsafe", "FIXME", "fe", "doc"].contains(word)));
        assert!(words(&source).contains(&"c"));
        for part in ["doc unsafe", "FIXME", "un /* sa */ fe"] {
            assert!(source.comments.contains(part), "{part}");
        }
        assert!(!source.comments.contains("let") && !source.comments.contains('}'));
        assert!(source.strings.contains("unsafe // {") && source.strings.contains("r#\"\"}\"#"));
        assert!(!source.strings.contains("FIXME") && !source.strings.contains('x'));
        assert_eq!(source.comments.lines().count(), 3);
    }

    #[test]
    fn odd_characters_and_escapes() {
        let source = parse(
            r#"fn f() { let a = ['"', '\'', '\\', 'é', '\u{7f}', b'{', b'"']; let b = b"}\""; let barb = br"}"; }"#,
        );
        assert_eq!(words(&source).iter().filter(|word| **word == "{").count(), 1);
        assert_eq!(words(&source).iter().filter(|word| **word == "let").count(), 3);
        assert!(words(&source).contains(&"barb"));
    }

    #[test]
    fn test_items_are_not_the_product() {
        let source = parse(
            "fn a() {}\n#[cfg(test)]\nmod tests { fn b() { [1; 2]; } }\n/// Of tests.\n#[cfg(test)]\nuse x::{y, z};\nfn c() {}\n\
             impl A {\n#[cfg(test)]\nfn d() {}\n}\n",
        );
        let product: Vec<&str> = source.product().map(|token| token.text.as_str()).collect();
        assert!(product.contains(&"a") && product.contains(&"c") && product.contains(&"A"));
        assert!(["b", "x", "d"].iter().all(|word| !product.contains(word) && words(&source).contains(word)));
        assert!(source.paths.is_empty() && source.modules.is_empty());
        assert_eq!(source.test_lines, 7);
    }

    #[test]
    fn paths_are_unfolded() {
        let code = "use crate::{wire::{Cursor, Buffer as B}, Error};\n\
            fn f() -> crate::open::Step<u8> { super::super::x::<u8>() }";
        assert_eq!(
            names(code, &["crate", "super"]),
            ["crate::wire::Cursor", "crate::wire::Buffer", "crate::Error", "crate::open::Step", "super::super::x"]
        );
        assert_eq!(names("use std::{fs, io::{self, Read}};", &["std"]), ["std::fs", "std::io::self", "std::io::Read"]);
        assert_eq!(names("use other::std::fs; struct std2; use std::fs::*;", &["std"]), ["std::fs::*"]);
        let defined: Vec<_> = parse("use a::{b as c, d::{self}}; pub use e::*;").paths;
        let defined: Vec<_> = defined.iter().map(|path| path.role.clone()).collect();
        assert_eq!(defined, [Role::Import("c".into()), Role::Import("d".into()), Role::ReExport("*".into())]);
    }

    #[test]
    fn paths_in_macros_and_attributes_are_found() {
        let code = "#[arg(value = crate::a::B)]\nfn f() { println!(\"{}\", crate::c::d(x: super::e::F)); }";
        assert_eq!(names(code, &["crate", "super"]), ["crate::a::B", "crate::c::d", "super::e::F"]);
    }

    #[test]
    fn paths_know_their_inline_modules() {
        let found = parse("mod a { mod b { use super::c; } fn d() { super::e(); } }\nuse super::f;").paths;
        let modules: Vec<String> = found.iter().map(|path| path.modules.join("::")).collect();
        assert_eq!(modules, ["a::b", "a", ""]);
        assert_eq!(found[2].line, 2);
    }
}

use std::ops::RangeInclusive;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, UseTree};

use crate::File;

/// The parsed file; `None` if it is not valid Rust, which the compiler reports better.
pub(crate) fn parse(file: &File) -> Option<syn::File> {
    if file.extension() != "rs" { None } else { syn::parse_file(file.text()).ok() }
}

/// One token of a file, with groups flattened; a literal has its source text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) line: usize,
}

/// Every token in order, including macro bodies, without comments.
pub(crate) fn tokens(file: &File) -> Vec<Token> {
    let mut flat = Vec::new();
    if let Ok(stream) = file.text().parse::<TokenStream>() {
        flatten(stream, &mut flat);
    }
    flat
}

fn flatten(stream: TokenStream, flat: &mut Vec<Token>) {
    for tree in stream {
        let line = tree.span().start().line;
        let TokenTree::Group(group) = tree else {
            flat.push(Token { text: tree.to_string(), line });
            continue;
        };
        let (open, close) = match group.delimiter() {
            proc_macro2::Delimiter::Parenthesis => ("(", ")"),
            proc_macro2::Delimiter::Brace => ("{", "}"),
            proc_macro2::Delimiter::Bracket => ("[", "]"),
            proc_macro2::Delimiter::None => ("", ""),
        };
        flat.push(Token { text: open.to_owned(), line });
        flatten(group.stream(), flat);
        let line = group.span_close().start().line;
        flat.push(Token { text: close.to_owned(), line });
    }
}

/// Lines of a file that only its tests compile.
#[derive(Debug, Default)]
pub(crate) struct Lines(Vec<RangeInclusive<usize>>);

impl Lines {
    pub(crate) fn contains(&self, line: usize) -> bool {
        self.0.iter().any(|range| range.contains(&line))
    }
}

/// Lines of items under `#[cfg(test)]` or `#[test]`; every line of a test target.
pub(crate) fn test_lines(file: &File) -> Lines {
    if is_test_target(&file.path) {
        return Lines(vec![1..=usize::MAX]);
    }
    let mut lines = Lines::default();
    if let Some(parsed) = parse(file) {
        lines.visit_file(&parsed);
    }
    lines
}

/// True for integration tests, benchmarks and fuzz targets.
pub(crate) fn is_test_target(path: &str) -> bool {
    let mut folders = path.split('/').rev().skip(1);
    path.starts_with("fuzz/") || folders.any(|folder| folder == "tests" || folder == "benches")
}

/// True if the item with these attributes is compiled only for tests.
pub(crate) fn only_in_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is = |name| attribute.path().is_ident(name);
        let arguments = attribute.meta.require_list().map(|list| list.tokens.to_string());
        is("test") || (is("cfg") && arguments.is_ok_and(|arguments| arguments == "test"))
    })
}

impl<'ast> Visit<'ast> for Lines {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Fn(item) => &item.attrs,
            Item::Mod(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Struct(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            Item::Const(item) => &item.attrs,
            Item::Static(item) => &item.attrs,
            Item::Macro(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if only_in_tests(attributes) {
            self.0.push(extent(item));
        } else {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        match item {
            ImplItem::Fn(method) if only_in_tests(&method.attrs) => self.0.push(extent(method)),
            _ => visit::visit_impl_item(self, item),
        }
    }
}

fn extent(item: &impl syn::spanned::Spanned) -> RangeInclusive<usize> {
    let span = item.span();
    span.start().line..=span.end().line
}

/// Every name right after `crate::` in a file, with its line: in a `use`, or in code.
pub(crate) fn root_modules(file: &File) -> Vec<(String, usize)> {
    let imports = parse(file).map_or(Vec::new(), |parsed| imports(&parsed));
    let imported = imports.into_iter().filter_map(|(path, line)| {
        let below = path.strip_prefix("crate::")?;
        Some((below.split("::").next().unwrap_or(below).to_owned(), line))
    });
    let tokens = tokens(file);
    let spelt = tokens
        .windows(4)
        .filter(|words| words[0].text == "crate" && words[1].text == ":" && words[2].text == ":");
    let spelt = spelt.map(|words| (words[3].text.clone(), words[3].line));
    let mut found: Vec<(String, usize)> = imported.chain(spelt).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Every path that a `use` of the file imports, spelt out, with its line.
pub(crate) fn imports(parsed: &syn::File) -> Vec<(String, usize)> {
    #[derive(Default)]
    struct Imports(Vec<(String, usize)>);
    impl<'ast> Visit<'ast> for Imports {
        fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
            spell_out("", &item.tree, &mut self.0);
        }
    }
    let mut imports = Imports::default();
    imports.visit_file(parsed);
    imports.0
}

fn spell_out(prefix: &str, tree: &UseTree, paths: &mut Vec<(String, usize)>) {
    let mut name = |ident: &syn::Ident| {
        paths.push((format!("{prefix}{ident}"), ident.span().start().line));
    };
    match tree {
        UseTree::Name(tree) => name(&tree.ident),
        UseTree::Rename(tree) => name(&tree.ident),
        UseTree::Path(tree) => spell_out(&format!("{prefix}{}::", tree.ident), &tree.tree, paths),
        UseTree::Group(group) => {
            for tree in &group.items {
                spell_out(prefix, tree, paths);
            }
        }
        UseTree::Glob(glob) => {
            paths.push((format!("{prefix}*"), glob.star_token.spans[0].start().line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tree;

    fn file(path: &str, text: &str) -> File {
        Tree::from_files([(path, text)]).get(path).unwrap().clone()
    }

    #[test]
    fn lines_under_cfg_test_are_test_lines_and_no_others() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nimpl A {\n    \
                    #[cfg(test)]\n    fn c() {}\n    fn d() {}\n}\n#[cfg(not(test))]\nfn e() {}\n";
        let lines = test_lines(&file("crates/units/src/lib.rs", text));
        let tested: Vec<_> = (1..=12).filter(|&line| lines.contains(line)).collect();
        assert_eq!(tested, [2, 3, 4, 5, 7, 8]);
        assert!(test_lines(&file("crates/units/tests/a.rs", text)).contains(1));
    }

    #[test]
    fn grouped_imports_are_spelt_out() {
        let parsed = parse(&file("a.rs", "use std::{fs, io::{self, Read as R}, net::*};\n"));
        let paths: Vec<_> = imports(&parsed.unwrap()).into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, ["std::fs", "std::io::self", "std::io::Read", "std::net::*"]);
    }

    #[test]
    fn tokens_see_into_macros_and_not_into_comments_and_strings() {
        let seen = tokens(&file("a.rs", "// x.unwrap()\nf!(\"x.unwrap()\", y\n.unwrap());\n"));
        let at: Vec<_> = seen.iter().filter(|token| token.text == "unwrap").collect();
        assert_eq!(at, [&Token { text: "unwrap".into(), line: 3 }]);
    }
}

//! The length of functions, with a ratchet.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Block, Signature};

use crate::{Findings, Tree, rust};

/// Longest function in lines, from `fn` to the closing brace.
pub const LINES_MAX: usize = 70;

/// Functions over [`LINES_MAX`] that are still to be split: path, name and length.
///
/// The list only shrinks: an entry fails as soon as its function is longer, shorter or gone.
pub const TO_BE_SPLIT: &[(&str, &str, usize)] = &[];

/// Checks that every function fits on a screen.
#[must_use]
pub fn length(tree: &Tree) -> Findings {
    length_with(tree, TO_BE_SPLIT)
}

fn length_with(tree: &Tree, to_be_split: &[(&str, &str, usize)]) -> Findings {
    let mut findings = Findings::default();
    let mut met = vec![false; to_be_split.len()];
    for file in tree.rust() {
        let Some(parsed) = rust::parse(file) else {
            continue;
        };
        let mut functions = Functions::default();
        functions.visit_file(&parsed);
        for Function { name, line, lines } in functions.found {
            if lines <= LINES_MAX {
                continue;
            }
            let entry = (file.path.as_str(), name.as_str(), lines);
            match to_be_split.iter().position(|known| *known == entry) {
                Some(position) => met[position] = true,
                None => {
                    let message = format!("`{name}` has {lines} lines, {LINES_MAX} allowed");
                    findings.at(&file.path, line, format!("{message}; split it"));
                }
            }
        }
    }
    for ((path, name, lines), _) in to_be_split.iter().zip(met).filter(|(_, met)| !met) {
        let message = format!("`{name}` no longer has {lines} lines: lower or drop its entry");
        findings.file(path, message);
    }
    findings
}

struct Function {
    name: String,
    line: usize,
    lines: usize,
}

#[derive(Default)]
struct Functions {
    found: Vec<Function>,
}

impl Functions {
    fn add(&mut self, signature: &Signature, body: &Block) {
        let line = signature.span().start().line;
        let lines = body.brace_token.span.close().end().line + 1 - line;
        self.found.push(Function { name: signature.ident.to_string(), line, lines });
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.add(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.add(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(body) = &function.default {
            self.add(&function.sig, body);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function of `lines` lines, below a doc comment and an attribute that do not count.
    fn function(name: &str, lines: usize) -> String {
        format!("/// Doc.\n#[inline]\nfn {name}() {{\n{}}}\n", "    f();\n".repeat(lines - 2))
    }

    #[test]
    fn a_function_of_71_lines_fails_wherever_it_is() {
        let text = [
            function("fits", 70),
            function("free", 71),
            format!("impl A {{\n{}}}\n", function("method", 71)),
            format!("trait B {{\n{}}}\n", function("provided", 71)),
            format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function("test", 71)),
        ]
        .concat();
        let findings = length(&Tree::from_files([("a.rs", &*text)]));
        let names = ["`free`", "`method`", "`provided`", "`test`"];
        assert_eq!(findings.violations.len(), names.len());
        for (violation, name) in findings.violations.iter().zip(names) {
            assert!(violation.message.starts_with(name), "{violation}");
        }
        assert_eq!(findings.violations[0].line, Some(75));
    }

    #[test]
    fn the_ratchet_holds_a_length_and_only_shrinks() {
        let text = function("long", 80);
        let tree = Tree::from_files([("a.rs", &*text)]);
        assert_eq!(length_with(&tree, &[("a.rs", "long", 80)]), Findings::default());
        // The function has grown beyond its entry: both the function and the entry fail.
        assert_eq!(length_with(&tree, &[("a.rs", "long", 79)]).places(), ["a.rs:3", "a.rs"]);
        // The function was split: its entry must go.
        let split = Tree::from_files([("a.rs", "fn long() {}\n")]);
        assert_eq!(length_with(&split, &[("a.rs", "long", 80)]).places(), ["a.rs"]);
    }
}

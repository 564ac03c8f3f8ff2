//! No function grows beyond one screen: 70 lines from `fn` to the closing brace, 150 in tests.
//!
//! Reads syntax, so what a macro makes is not measured.

use syn::visit::{self, Visit};

use super::tree::{Tree, is_test};
use super::{Check, Finding};

pub(super) const CHECK: Check =
    Check { id: "functions", says: "A function has fewer than 70 lines, one of tests fewer than 150.", run };

/// One screen of code. At half, sequences that belong together are torn apart; at double, state hides.
const LINES_MAX: usize = 70;
/// A test may tell a longer story, top to bottom.
const TEST_LINES_MAX: usize = 150;

fn run(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, syntax) in tree.rust() {
        let mut walk = Walk { path, in_tests: is_test(path), findings: &mut findings };
        walk.visit_file(syntax);
    }
    findings
}

struct Walk<'a> {
    path: &'a str,
    in_tests: bool,
    findings: &'a mut Vec<Finding>,
}

// === impl Walk ===

impl Walk<'_> {
    fn measure(&mut self, attributes: &[syn::Attribute], signature: &syn::Signature, block: &syn::Block) {
        let in_tests = self.in_tests || attributes.iter().any(|a| a.path().is_ident("test"));
        let limit = if in_tests { TEST_LINES_MAX } else { LINES_MAX };
        let first = signature.fn_token.span.start().line;
        let lines = block.brace_token.span.close().end().line - first + 1;
        if lines >= limit {
            let name = &signature.ident;
            let advice = format!(
                "split `{name}`, one function choosing and others computing: {lines} lines, and fewer than {limit} are allowed"
            );
            self.findings.push(Finding::new(self.path, first, advice));
        }
    }
}

impl<'ast> Visit<'ast> for Walk<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let outer = self.in_tests;
        self.in_tests |= module.attrs.iter().any(is_cfg_test);
        visit::visit_item_mod(self, module);
        self.in_tests = outer;
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.measure(&function.attrs, &function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.measure(&function.attrs, &function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.measure(&function.attrs, &function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

fn is_cfg_test(attribute: &syn::Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test")
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    fn function(lines: usize) -> String {
        format!("fn f() {{\n{}}}\n", "    g();\n".repeat(lines - 2))
    }

    #[test]
    fn finds_a_long_function() {
        assert!(found(&CHECK, [("a.rs", &function(69))]).is_empty());
        assert_eq!(found(&CHECK, [("a.rs", &format!("\n{}", function(70)))]), ["a.rs:2"]);
    }

    #[test]
    fn finds_a_long_method_and_a_long_default() {
        let method = format!("impl A {{\n{}}}\n", function(70));
        let default = format!("trait A {{\n{}}}\n", function(70));
        assert_eq!(found(&CHECK, [("a.rs", &method), ("b.rs", &default)]), ["a.rs:2", "b.rs:2"]);
    }

    #[test]
    fn tests_may_be_longer() {
        let inside = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function(149));
        let marked = format!("#[test]\n{}", function(149));
        assert!(
            found(&CHECK, [("a.rs", &inside), ("b.rs", &marked), ("c/tests.rs", &function(149))]).is_empty()
        );
        assert_eq!(found(&CHECK, [("c/tests.rs", &function(150))]), ["c/tests.rs:1"]);
    }
}

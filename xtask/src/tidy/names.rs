//! Names say what a thing is. A word that fits everything says nothing, and a pure verb is never asynchronous.

use syn::visit::{self, Visit};

use super::tree::Tree;
use super::{Check, Finding};

pub(super) const CHECK: Check = Check {
    id: "names",
    says: "No type is named with an empty word and no pure verb is an `async fn`.",
    run,
};

/// Refused as whole words of a type's name.
static EMPTY_WORDS: &[&str] =
    &["Manager", "Helper", "Util", "Handler", "Impl", "Info", "Data", "Base", "Common", "Context"];

/// Types that carry an empty word for a reason: the name and why.
static EXCEPTIONS: &[(&str, &str)] = &[];

/// Verbs that mean "computes from its arguments": a function of that name must not wait for anything.
static PURE_VERBS: &[&str] = &["decide", "plan", "compile", "diff", "check", "step"];

fn run(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, syntax) in tree.rust() {
        Walk { path, findings: &mut findings }.visit_file(syntax);
    }
    findings
}

struct Walk<'a> {
    path: &'a str,
    findings: &'a mut Vec<Finding>,
}

// === impl Walk ===

impl Walk<'_> {
    fn name(&mut self, ident: &syn::Ident) {
        let name = ident.to_string();
        let empty = words(&name).into_iter().find(|word| EMPTY_WORDS.contains(word));
        let is_exception = EXCEPTIONS.iter().any(|(allowed, _)| *allowed == name);
        if let Some(word) = empty.filter(|_| !is_exception) {
            let advice = format!("rename `{name}` to what it is: `{word}` fits everything");
            self.findings.push(Finding::new(self.path, ident.span().start().line, advice));
        }
    }
}

impl<'ast> Visit<'ast> for Walk<'_> {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.name(&item.ident);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.name(&item.ident);
        visit::visit_item_enum(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.name(&item.ident);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.name(&item.ident);
        visit::visit_item_type(self, item);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        let name = signature.ident.to_string();
        if signature.asyncness.is_some() && PURE_VERBS.contains(&name.as_str()) {
            let advice = format!("rename or part `async fn {name}`: `{name}` computes and never waits");
            self.findings.push(Finding::new(self.path, signature.fn_token.span.start().line, advice));
        }
        visit::visit_signature(self, signature);
    }
}

/// The words of a CamelCase name.
fn words(name: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start = 0;
    for (at, c) in name.char_indices().skip(1) {
        if c.is_uppercase() {
            words.push(&name[start..at]);
            start = at;
        }
    }
    words.push(&name[start..]);
    words
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn finds_empty_words_and_only_whole_ones() {
        let bad = "struct PodManager;\nenum Info {}\ntrait ReadContext {}\ntype NodeData = u8;\n";
        assert_eq!(found(&CHECK, [("a.rs", bad)]), ["a.rs:1", "a.rs:2", "a.rs:3", "a.rs:4"]);
        assert!(
            found(&CHECK, [("a.rs", "struct Database;\nstruct Baseline;\nstruct Utility;\n")]).is_empty()
        );
    }

    #[test]
    fn finds_pure_verbs_that_wait() {
        let bad = "impl A {\n    async fn plan(&self) {}\n}\nasync fn check() {}\n";
        assert_eq!(found(&CHECK, [("a.rs", bad)]), ["a.rs:2", "a.rs:4"]);
        assert!(found(&CHECK, [("a.rs", "fn plan() {}\nasync fn observe() {}\n")]).is_empty());
    }
}

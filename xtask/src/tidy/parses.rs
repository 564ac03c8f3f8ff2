//! Every Rust file parses. The other checks read only files that do, so this one must not stay silent.

use super::tree::Tree;
use super::{Check, Finding};

pub(super) const CHECK: Check =
    Check { id: "parses", says: "Every Rust file parses, also one that no build reaches.", run };

fn run(tree: &Tree) -> Vec<Finding> {
    let finding = |(path, error): (&str, &syn::Error)| {
        Finding::new(path, error.span().start().line, format!("mend the syntax: {error}"))
    };
    tree.unparsed().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn finds_a_file_that_does_not_parse() {
        assert_eq!(found(&CHECK, [("a.rs", "fn a() {}\nfn {}\n")]), ["a.rs:2"]);
        assert!(found(&CHECK, [("a.rs", "fn a() {}\n"), ("b.txt", "fn {}")]).is_empty());
    }
}

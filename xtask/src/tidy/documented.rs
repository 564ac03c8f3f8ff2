//! What stands in one of the product's lists stands in the document of that list, and the other way round.
//!
//! A list is a static slice, such as `control::CONTROLLERS`. Its entries are read from the syntax: `&Detect`,
//! `&evict::Evict`, `&Evict { .. }` and `POD` are known by their last name. A list that does not exist yet is no
//! finding.

use std::collections::BTreeSet;

use super::markdown;
use super::tree::Tree;
use super::{Check, Finding};

pub(super) const CHECK: Check = Check {
    id: "documented",
    says: "Every controller has a row in docs/controllers.md, and every row there is a controller.",
    run,
};

struct List {
    name: &'static str,
    directory: &'static str,
    document: &'static str,
}

static LISTS: &[List] =
    &[List { name: "CONTROLLERS", directory: "control/src/", document: "docs/controllers.md" }];

fn run(tree: &Tree) -> Vec<Finding> {
    LISTS.iter().flat_map(|list| check(tree, list)).collect()
}

fn check(tree: &Tree, list: &List) -> Vec<Finding> {
    let mut sources = tree.rust().filter(|(path, _)| path.starts_with(list.directory));
    let Some((path, entries)) = sources.find_map(|(path, syntax)| Some((path, entries(syntax, list.name)?)))
    else {
        return Vec::new();
    };
    let rows = markdown::rows(tree.text(list.document).unwrap_or(""));
    // The first row is the heading of the table.
    let rows: Vec<_> = rows.iter().skip(1).collect();
    let documented: BTreeSet<&str> = rows.iter().map(|row| row.id()).collect();
    let listed: BTreeSet<&str> = entries.iter().map(|(_, name)| name.as_str()).collect();
    let missing = entries
        .iter()
        .filter(|(_, name)| !documented.contains(name.as_str()))
        .map(|(line, name)| Finding::new(path, *line, format!("add a row `{name}` to {}", list.document)));
    let stale = rows.iter().filter(|row| !listed.contains(row.id())).map(|row| {
        Finding::new(
            list.document,
            row.line,
            format!("take out `{}`: {} has no such entry", row.id(), list.name),
        )
    });
    missing.chain(stale).collect()
}

/// The entries of the static slice `name`, with their lines.
fn entries(syntax: &syn::File, name: &str) -> Option<Vec<(usize, String)>> {
    let is_list = |item: &&syn::ItemStatic| item.ident == name;
    let statics = syntax
        .items
        .iter()
        .filter_map(|item| if let syn::Item::Static(item) = item { Some(item) } else { None });
    let list = statics.into_iter().find(is_list)?;
    let syn::Expr::Array(array) = behind_reference(&list.expr) else { return None };
    Some(array.elems.iter().filter_map(named).collect())
}

/// The last name in the path of an entry.
fn named(entry: &syn::Expr) -> Option<(usize, String)> {
    let entry = behind_reference(entry);
    let path = if let syn::Expr::Struct(literal) = entry {
        &literal.path
    } else if let syn::Expr::Path(path) = entry {
        &path.path
    } else {
        return None;
    };
    let last = &path.segments.last()?.ident;
    Some((last.span().start().line, last.to_string()))
}

fn behind_reference(expression: &syn::Expr) -> &syn::Expr {
    if let syn::Expr::Reference(reference) = expression { &reference.expr } else { expression }
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    const SLICE: (&str, &str) = (
        "control/src/lib.rs",
        "pub static CONTROLLERS: &[&dyn Controller] = &[\n    &Detect,\n    &evict::Evict { a: 1 },\n];\n",
    );

    #[test]
    fn passes_a_list_that_is_documented_or_not_there() {
        let document =
            ("docs/controllers.md", "| name | job |\n|---|---|\n| `Detect` | a |\n| `Evict` | b |\n");
        assert!(found(&CHECK, [SLICE, document]).is_empty());
        assert!(found(&CHECK, [("control/src/lib.rs", "//! Control.\n")]).is_empty());
    }

    #[test]
    fn finds_what_either_side_lacks() {
        let document =
            ("docs/controllers.md", "| name | job |\n|---|---|\n| `Detect` | a |\n| `Fence` | b |\n");
        assert_eq!(found(&CHECK, [SLICE, document]), ["control/src/lib.rs:3", "docs/controllers.md:4"]);
    }
}

//! Every module says what it is for, and every Rust file belongs to a module.

use std::collections::BTreeSet;

use super::tree::{Tree, is_test};
use super::{Check, Finding};

pub(super) const HEADERS: Check =
    Check { id: "headers", says: "Every Rust file that is not a test starts with `//!`.", run: headers };

pub(super) const ORPHANS: Check = Check {
    id: "orphans",
    says: "Every Rust file is reached from a crate root by `mod` declarations.",
    run: orphans,
};

fn headers(tree: &Tree) -> Vec<Finding> {
    let is_code = |(path, _): &(&str, &str)| path.ends_with(".rs") && !is_test(path);
    tree.files()
        .filter(is_code)
        .filter(|(_, text)| !text.starts_with("//!"))
        .map(|(path, _)| {
            Finding::new(
                path,
                1,
                "start the file with `//!`: responsibility, what it leaves to others, invariants",
            )
        })
        .collect()
}

fn orphans(tree: &Tree) -> Vec<Finding> {
    let mut reached = BTreeSet::new();
    for (path, syntax) in tree.rust().filter(|(path, _)| is_root(path)) {
        reached.insert(path.to_owned());
        follow(tree, parent(path), &syntax.items, &mut reached);
    }
    tree.rust()
        .filter(|(path, _)| !reached.contains(*path))
        .map(|(path, _)| Finding::new(path, 1, "declare the file with `mod` or delete it: no build reads it"))
        .collect()
}

/// Whether cargo starts a crate at this file.
fn is_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let inner = match parts.as_slice() {
        [_, "src", inner @ ..] => inner,
        [_, "build.rs"] => return true,
        // Targets beside the main one: a file, or a directory with a main file.
        [_, "tests" | "benches" | "examples", inner @ ..] => return matches!(inner, [_] | [_, "main.rs"]),
        _ => return false,
    };
    matches!(inner, ["lib.rs" | "main.rs"] | ["bin", _] | ["bin", _, "main.rs"])
}

/// Adds what `items` declare, where `directory` is the place of the files they name.
fn follow(tree: &Tree, directory: &str, items: &[syn::Item], reached: &mut BTreeSet<String>) {
    for item in items {
        let syn::Item::Mod(module) = item else { continue };
        let inside = format!("{directory}/{}", module.ident);
        if let Some((_, items)) = &module.content {
            follow(tree, &inside, items, reached);
            continue;
        }
        let named =
            path_attribute(&module.attrs).map(|path| (format!("{directory}/{path}"), directory.to_owned()));
        let usual = [(format!("{inside}.rs"), inside.clone()), (format!("{inside}/mod.rs"), inside.clone())];
        for (path, directory) in named.into_iter().chain(usual) {
            let syntax = tree.syntax(&path).filter(|_| reached.insert(path.clone()));
            if let Some(syntax) = syntax {
                follow(tree, &directory, &syntax.items, reached);
            }
        }
    }
}

fn path_attribute(attributes: &[syn::Attribute]) -> Option<String> {
    let attribute = attributes.iter().find(|attribute| attribute.path().is_ident("path"))?;
    let value = &attribute.meta.require_name_value().ok()?.value;
    if let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = value {
        Some(text.value())
    } else {
        None
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn finds_a_file_without_a_header() {
        let files =
            [("a/src/lib.rs", "//! A.\n"), ("a/src/b.rs", "use x;\n"), ("a/src/b/tests.rs", "use x;\n")];
        assert_eq!(found(&HEADERS, files), ["a/src/b.rs:1"]);
        assert!(found(&HEADERS, [("a/src/lib.rs", "//! A.\n")]).is_empty());
    }

    #[test]
    fn finds_an_orphan() {
        let files = [("a/src/lib.rs", "mod b;\n"), ("a/src/b.rs", ""), ("a/src/c.rs", "")];
        assert_eq!(found(&ORPHANS, files), ["a/src/c.rs:1"]);
    }

    #[test]
    fn follows_every_form_of_declaration() {
        let files = [
            ("a/src/lib.rs", "mod b;\nmod e { mod f; }\n#[path = \"odd/g.rs\"]\nmod g;\n"),
            ("a/src/b.rs", "mod c;\n#[cfg(test)]\nmod tests;\n"),
            ("a/src/b/c.rs", "mod d;\n"),
            ("a/src/b/c/d/mod.rs", ""),
            ("a/src/b/tests.rs", ""),
            ("a/src/e/f.rs", ""),
            ("a/src/odd/g.rs", ""),
            ("a/tests/it/main.rs", "mod h;\n"),
            ("a/tests/it/h.rs", ""),
        ];
        assert!(found(&ORPHANS, files).is_empty());
    }
}

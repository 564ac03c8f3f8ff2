//! No file grows beyond what one sitting can read: 800 lines, 1,500 where it holds only tests.

use super::tree::{Tree, is_test};
use super::{Check, Finding};

pub(super) const CHECK: Check =
    Check { id: "size", says: "A Rust file has fewer than 800 lines, one of tests fewer than 1500.", run };

/// About twenty screens. At half, one concept would be torn over several files; at double, nobody reads a file whole.
const LINES_MAX: usize = 800;
/// Tests are lists: long, but not deep.
const TEST_LINES_MAX: usize = 1500;

fn run(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with(".rs")) {
        let limit = if is_test(path) { TEST_LINES_MAX } else { LINES_MAX };
        let lines = text.lines().count();
        if lines >= limit {
            let advice = format!(
                "split the file along its concepts: {lines} lines, and fewer than {limit} are allowed"
            );
            findings.push(Finding::new(path, limit, advice));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn finds_a_long_file() {
        let (short, long, longest) = ("\n".repeat(799), "\n".repeat(800), "\n".repeat(1500));
        assert!(
            found(&CHECK, [("a.rs", &short), ("tests/it/b.rs", &long), ("a/tests.rs", &long)]).is_empty()
        );
        assert_eq!(
            found(&CHECK, [("a.rs", &long), ("a/tests/it.rs", &longest)]),
            ["a.rs:800", "a/tests/it.rs:1500"]
        );
    }
}

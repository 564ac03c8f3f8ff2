//! What `docs/cases.md` says a case is shown by exists.
//!
//! The last cell of a case's row is `–`, or names between backticks scenario files of `sim/scenarios` (`p19-cut.txt`)
//! and test functions. A test that was renamed or a file that went makes the claim false, and nobody would notice.

use super::markdown;
use super::tree::Tree;
use super::{Check, Finding};

pub(super) const CHECK: Check = Check {
    id: "shown",
    says: "Every test and scenario file that docs/cases.md names in its last column exists.",
    run,
};

const DOCUMENT: &str = "docs/cases.md";

fn run(tree: &Tree) -> Vec<Finding> {
    let rows = markdown::rows(tree.text(DOCUMENT).unwrap_or(""));
    let mut findings = Vec::new();
    for row in rows.iter().filter(|row| row.cells.len() == 4) {
        for name in markdown::code_spans(row.cells[3]).into_iter().filter(|name| !exists(tree, name)) {
            let advice = format!("name what shows `{}` now: there is no `{name}`", row.id());
            findings.push(Finding::new(DOCUMENT, row.line, advice));
        }
    }
    findings
}

fn exists(tree: &Tree, name: &str) -> bool {
    let function = format!("fn {name}(");
    match name.ends_with(".txt") {
        true => tree.has(&format!("sim/scenarios/{name}")),
        false => tree.files().any(|(path, text)| path.ends_with(".rs") && text.contains(&function)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    const SCENARIO: (&str, &str) = ("sim/scenarios/p19-cut.txt", "# P19\n");
    const TEST: (&str, &str) = ("a/src/tests.rs", "fn p19_stops() {}\n");

    #[test]
    fn passes_what_exists() {
        let row = "| P19 | a | `b` | `p19-cut.txt`, `p19_stops` |\n| P20 | a | b | – |\n";
        assert!(found(&CHECK, [(DOCUMENT, row), SCENARIO, TEST]).is_empty());
    }

    #[test]
    fn finds_what_does_not() {
        let row = "| P19 | a | b | `p19-cut.txt`, `p19_goes` |\n| P20 | a | b | `p20.txt` |\n";
        assert_eq!(found(&CHECK, [(DOCUMENT, row), SCENARIO, TEST]), ["docs/cases.md:1", "docs/cases.md:2"]);
    }
}

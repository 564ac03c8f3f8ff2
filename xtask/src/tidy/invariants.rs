//! Every invariant is a row of `docs/invariants.md`, and what the row names really speaks for it.
//!
//! The row of an invariant has the cells `id | statement | code | oracle | test`. A cell of the last three is `–`
//! as long as nothing enforces, watches or tests the invariant there; otherwise it lists, each between backticks:
//! - code: files of the crates that must contain `Invariant <id>`;
//! - oracle: names under which the simulator knows it, in a file under `sim/src` that contains `Invariant <id>` or the id as a string;
//! - test: test functions, in a file that contains `Invariant <id>`, or scenario files with the id in a comment.
//!
//! One mark may name several: `Invariant P4 (C15)`, `Invariant C6, C8`.
//!
//! In the other direction every `Invariant <id>` in code must have its row.

use std::collections::BTreeSet;

use super::markdown::{self, Row};
use super::tree::Tree;
use super::{Check, Finding};

pub(super) const CHECK: Check = Check {
    id: "invariants",
    says: "Every invariant has a row in docs/invariants.md, and the places its row names speak of it.",
    run,
};

const DOCUMENT: &str = "docs/invariants.md";
const MARK: &str = "Invariant ";

fn run(tree: &Tree) -> Vec<Finding> {
    let rows = markdown::rows(tree.text(DOCUMENT).unwrap_or(""));
    let rows: Vec<&Row<'_>> = rows.iter().filter(|row| is_id(row.id())).collect();
    let mut findings = Vec::new();
    let mut ids = BTreeSet::new();
    for row in &rows {
        if !ids.insert(row.id()) {
            findings.push(Finding::new(
                DOCUMENT,
                row.line,
                format!("give one of the two rows `{}` another id", row.id()),
            ));
        }
        findings.extend(
            unsupported(tree, row).into_iter().map(|advice| Finding::new(DOCUMENT, row.line, advice)),
        );
    }
    for (path, line, id) in cited(tree) {
        if !ids.contains(id) {
            findings.push(Finding::new(
                path,
                line,
                format!("add a row `{id}` to {DOCUMENT} or cite another invariant"),
            ));
        }
    }
    findings
}

/// What the row claims and the tree does not bear out.
fn unsupported(tree: &Tree, row: &Row<'_>) -> Vec<String> {
    let &[_, _, code, oracle, test] = row.cells.as_slice() else {
        return vec![format!("give the row `{}` five cells: id, statement, code, oracle, test", row.id())];
    };
    let id = row.id();
    let mut advice = Vec::new();
    for file in markdown::code_spans(code) {
        if !tree.text(file).is_some_and(|text| speaks_of(text, id)) {
            advice.push(format!("write `{MARK}{id}` where `{file}` enforces it, or name another file"));
        }
    }
    for name in markdown::code_spans(oracle) {
        let mut sources = tree.files().filter(|(path, _)| path.starts_with("sim/src/"));
        let knows =
            |text: &str| text.contains(name) && (speaks_of(text, id) || text.contains(&format!("\"{id}\"")));
        if !sources.any(|(_, text)| knows(text)) {
            advice.push(format!("let the simulator's oracle `{name}` name {id}, or name another oracle"));
        }
    }
    for name in markdown::code_spans(test) {
        let shows = |(path, text): (&str, &str)| match path.ends_with(".rs") {
            true => text.contains(&format!("fn {name}(")) && speaks_of(text, id),
            false => path == name && comments_on(text, id),
        };
        if !tree.files().any(shows) {
            advice.push(format!("write `{MARK}{id}` beside the test `{name}`, or name another test"));
        }
    }
    let is_filled = |&cell: &&str| cell == "–" || !markdown::code_spans(cell).is_empty();
    if ![code, oracle, test].iter().all(is_filled) {
        advice.push(format!("fill the cells of `{id}` with names between backticks, or with `–`"));
    }
    advice
}

/// Every `Invariant <id>` in a Rust file.
fn cited(tree: &Tree) -> Vec<(&str, usize, &str)> {
    let mut cited = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with(".rs") && !path.starts_with("xtask/"))
    {
        for (index, line) in text.lines().enumerate() {
            let ids = line.split(MARK).skip(1).flat_map(leading_ids);
            cited.extend(ids.map(|id| (path, index + 1, id)));
        }
    }
    cited
}

fn speaks_of(text: &str, id: &str) -> bool {
    text.split(MARK).skip(1).any(|rest| leading_ids(rest).any(|found| found == id))
}

/// Whether a comment of a scenario file names the id.
fn comments_on(text: &str, id: &str) -> bool {
    let mut comments = text.lines().filter_map(|line| line.strip_prefix('#'));
    comments.any(|comment| comment.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == id))
}

/// The ids with which a text begins: `P4` and `C15` of `P4 (C15): a boot ...`.
fn leading_ids(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split([',', ' ', '(', ')', ':', '.', ';', '`', '"', '\n']);
    words.filter(|word| !word.is_empty()).take_while(|word| is_id(word))
}

/// One or two capitals and a number: `S1`, `C14`.
fn is_id(text: &str) -> bool {
    let digits = text.trim_start_matches(|c: char| c.is_ascii_uppercase());
    let letters = text.len() - digits.len();
    (1..=2).contains(&letters)
        && (1..=2).contains(&digits.len())
        && digits.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    const ROW: &str = "| id | statement | code | oracle | test |\n|---|---|---|---|---|\n\
                       | S1 | Never two. | `agent/src/a.rs` | `never-two` | `one_only`, `sim/scenarios/a.txt` |\n";
    const CODE: (&str, &str) = ("agent/src/a.rs", "// Invariant S1: never two.\n");
    const ORACLE: (&str, &str) = ("sim/src/oracle.rs", "(\"S1\", \"never-two\")\n");
    const TEST: (&str, &str) = ("agent/tests/it/a.rs", "// Invariant S1.\nfn one_only() {}\n");
    const SCENARIO: (&str, &str) = ("sim/scenarios/a.txt", "# P86, S1: a story.\n");

    #[test]
    fn passes_a_row_that_is_borne_out() {
        assert!(found(&CHECK, [(DOCUMENT, ROW), CODE, ORACLE, TEST, SCENARIO]).is_empty());
        assert!(found(&CHECK, [(DOCUMENT, "| V1 | Not yet. | – | – | – |\n")]).is_empty());
    }

    #[test]
    fn finds_a_cell_that_is_not_borne_out() {
        for (path, _) in [CODE, ORACLE, TEST, SCENARIO] {
            let files =
                [CODE, ORACLE, TEST, SCENARIO].map(|(p, text)| if p == path { (p, "") } else { (p, text) });
            let [a, b, c, d] = files;
            assert_eq!(found(&CHECK, [(DOCUMENT, ROW), a, b, c, d]), ["docs/invariants.md:3"], "{path}");
        }
    }

    #[test]
    fn one_mark_may_name_several() {
        let ids = |text| leading_ids(text).collect::<Vec<_>>();
        assert_eq!(ids("P4 (C15): a boot, S1"), ["P4", "C15"]);
        assert_eq!(ids("C6, C8.\nfn a() {}"), ["C6", "C8"]);
        assert!(ids("names are no ids").is_empty());
        assert!(speaks_of("/// Invariant C6, C8.", "C8") && !speaks_of("/// Invariant C6. C80", "C8"));
    }

    #[test]
    fn finds_an_invariant_without_a_row() {
        let code = ("agent/src/a.rs", "//! A.\n// Invariant S2: x. Invariant names are no ids.\n");
        assert_eq!(found(&CHECK, [(DOCUMENT, ""), code]), ["agent/src/a.rs:2"]);
    }

    #[test]
    fn finds_a_malformed_row() {
        let row = "| V1 | Not yet. | – |\n| V2 | Never. | soon | – | – |\n| V2 | Again. | – | – | – |\n";
        assert_eq!(
            found(&CHECK, [(DOCUMENT, row)]),
            ["docs/invariants.md:1", "docs/invariants.md:2", "docs/invariants.md:3"]
        );
    }
}

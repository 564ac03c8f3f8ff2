//! Whoever reads `TE-07` or `P86` in code, a test or a scenario finds it explained.
//!
//! Rules of Kubernetes that we keep are rows of `docs/rules.md`; cases of operators are rows of `docs/cases.md`.
//! Cited are ids in any text of a Rust or scenario file, and in names of test functions (`fn te07_...`, `fn p86_...`).

use std::collections::BTreeSet;

use super::markdown;
use super::tree::Tree;
use super::{Check, Finding};

pub(super) const CHECK: Check = Check {
    id: "citations",
    says: "Every rule and case that code, tests or scenarios cite has a row in docs/rules.md or docs/cases.md.",
    run,
};

static RULES: &[&str] = &["HB", "NLC", "TE", "GC", "AD", "GS", "KR", "CT", "KC", "VA", "V"];
const RULES_DOCUMENT: &str = "docs/rules.md";
const CASES_DOCUMENT: &str = "docs/cases.md";

fn run(tree: &Tree) -> Vec<Finding> {
    let explained: BTreeSet<String> = [RULES_DOCUMENT, CASES_DOCUMENT]
        .iter()
        .flat_map(|document| markdown::rows(tree.text(document).unwrap_or("")))
        .map(|row| row.id().to_owned())
        .collect();
    let mut findings = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| may_cite(path)) {
        for (index, line) in text.lines().enumerate() {
            for id in cited(line).into_iter().filter(|id| !explained.contains(id)) {
                let document = if is_case(&id) { CASES_DOCUMENT } else { RULES_DOCUMENT };
                findings.push(Finding::new(
                    path,
                    index + 1,
                    format!("explain `{id}` in a row of {document}"),
                ));
            }
        }
    }
    findings
}

fn may_cite(path: &str) -> bool {
    let is_scenario = path.starts_with("sim/scenarios/") && path.ends_with(".txt");
    is_scenario || path.ends_with(".rs") && !path.starts_with("xtask/")
}

/// The ids in one line.
fn cited(line: &str) -> BTreeSet<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let mut ids = BTreeSet::new();
    for word in line.split(|c| !is_word(c)) {
        if is_rule(word) {
            ids.insert(word.to_owned());
        }
        ids.extend(word.split('-').filter(|part| is_case(part)).map(str::to_owned));
    }
    let name = line.split("fn ").nth(1).and_then(|rest| rest.split('_').next());
    ids.extend(name.and_then(from_test_name));
    ids
}

/// `TE-07`, `KC-07b`.
fn is_rule(word: &str) -> bool {
    word.split_once('-').is_some_and(|(prefix, number)| RULES.contains(&prefix) && is_number(number))
}

/// `P86`, `P73b`.
fn is_case(word: &str) -> bool {
    word.strip_prefix('P').is_some_and(is_number)
}

/// The id that starts the name of a test: `te07` and `p86b` of `te07_...` and `p86b_...`.
fn from_test_name(start: &str) -> Option<String> {
    let at = start.find(|c: char| c.is_ascii_digit())?;
    let (prefix, number) = (start[..at].to_uppercase(), &start[at..]);
    let id = if prefix == "P" { format!("P{number}") } else { format!("{prefix}-{number}") };
    (is_case(&id) || is_rule(&id)).then_some(id)
}

/// Two or three digits and perhaps a letter. One digit is a version (`v1`), not an id.
fn is_number(text: &str) -> bool {
    let digits = text.strip_suffix(|c: char| c.is_ascii_lowercase()).unwrap_or(text);
    (2..=3).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    const RULES_TEXT: (&str, &str) = (RULES_DOCUMENT, "| TE-07 | a |\n| `V-05` | b |\n");
    const CASES_TEXT: (&str, &str) = (CASES_DOCUMENT, "| **P86** | a |\n| P73b | b |\n");

    #[test]
    fn passes_what_is_explained() {
        let code = "// Rule TE-07, case P86.\nfn v05_both_tainted() {}\nfn p73b_returns() {}\nfn v1_round_trip() {}\n";
        let scenario = ("sim/scenarios/a.txt", "# P86-P73b\n");
        assert!(found(&CHECK, [RULES_TEXT, CASES_TEXT, ("a/src/b.rs", code), scenario]).is_empty());
    }

    #[test]
    fn finds_what_is_not_explained() {
        let code = "// Rule TE-08.\nlet a = \"P87\";\nfn v06_x() {}\nfn p88_x() {}\n// p99 of latency, HTTP-200, TE-07x1\n";
        let scenario = ("sim/scenarios/a.txt", "# P01\n");
        assert_eq!(
            found(&CHECK, [RULES_TEXT, CASES_TEXT, ("a/src/b.rs", code), scenario]),
            ["a/src/b.rs:1", "a/src/b.rs:2", "a/src/b.rs:3", "a/src/b.rs:4", "sim/scenarios/a.txt:1"]
        );
    }
}

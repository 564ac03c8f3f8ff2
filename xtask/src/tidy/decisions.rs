//! A decision note can be found, dated and argued with: number, date, and the options that lost.

use std::collections::BTreeSet;

use super::markdown;
use super::tree::Tree;
use super::{Check, Finding};

pub(super) const CHECK: Check = Check {
    id: "decisions",
    says: "Every decision note has its number, its date and the options that lost.",
    run,
};

const DIRECTORY: &str = "docs/decisions/";
/// One page.
const LINES_MAX: usize = 80;

fn run(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut numbers = BTreeSet::new();
    for (path, text) in tree.files() {
        let Some(name) = path.strip_prefix(DIRECTORY) else { continue };
        let number = name.split('-').next().unwrap_or("");
        if number.len() != 4 || !number.bytes().all(|b| b.is_ascii_digit()) || !name.ends_with(".md") {
            findings.push(Finding::new(path, 1, "name the note `NNNN-what-was-decided.md`"));
            continue;
        }
        if !numbers.insert(number) {
            findings.push(Finding::new(path, 1, format!("take the next free number: {number} is taken")));
        }
        findings.extend(lacks(number, text).into_iter().map(|(line, what)| Finding::new(path, line, what)));
    }
    findings
}

fn lacks(number: &str, text: &str) -> Vec<(usize, String)> {
    let mut lacks = Vec::new();
    if !text.starts_with(&format!("# {number}: ")) {
        lacks.push((1, format!("start the note with `# {number}: title`")));
    }
    if !text.lines().any(|line| line.strip_prefix("Date: ").is_some_and(is_date)) {
        lacks.push((1, "add a line `Date: YYYY-MM-DD`".to_owned()));
    }
    if !text.contains("\n## Options that lost\n") || !has_items(text) {
        lacks.push((1, "add `## Options that lost`, each as a list item with why".to_owned()));
    }
    if text.lines().count() > LINES_MAX {
        lacks.push((LINES_MAX, format!("shorten the note to one page of {LINES_MAX} lines")));
    }
    lacks
}

/// Whether the section of lost options lists any.
fn has_items(text: &str) -> bool {
    markdown::prose(text)
        .iter()
        .skip_while(|(_, line)| line != "## Options that lost")
        .skip(1)
        .take_while(|(_, line)| !line.starts_with("## "))
        .any(|(_, line)| line.starts_with("- ") || line.starts_with("* "))
}

fn is_date(text: &str) -> bool {
    let shape = "0000-00-00";
    text.len() == shape.len()
        && text.chars().zip(shape.chars()).all(|(c, s)| if s == '-' { c == '-' } else { c.is_ascii_digit() })
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    const GOOD: &str = "# 0001: Shape\n\nDate: 2026-11-30\n\n## Options that lost\n\n- One crate: no.\n";

    #[test]
    fn passes_a_whole_note() {
        assert!(found(&CHECK, [("docs/decisions/0001-shape.md", GOOD)]).is_empty());
    }

    #[test]
    fn finds_what_a_note_lacks() {
        let path = "docs/decisions/0001-shape.md";
        for part in ["# 0001: Shape", "Date: 2026-11-30", "## Options that lost", "- One crate: no."] {
            assert_eq!(found(&CHECK, [(path, &GOOD.replace(part, ""))]), [format!("{path}:1")], "{part}");
        }
        assert_eq!(found(&CHECK, [(path, &GOOD.replace("2026-11-30", "soon"))]).len(), 1);
        assert_eq!(found(&CHECK, [(path, &format!("{GOOD}{}", "\n".repeat(80)))]).len(), 1);
    }

    #[test]
    fn finds_a_number_taken_twice_and_a_name_without_one() {
        let files = [
            ("docs/decisions/0001-a.md", GOOD),
            ("docs/decisions/0001-b.md", GOOD),
            ("docs/decisions/c.md", GOOD),
        ];
        assert_eq!(found(&CHECK, files), ["docs/decisions/0001-b.md:1", "docs/decisions/c.md:1"]);
    }
}

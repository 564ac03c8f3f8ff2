//! `cargo xtask tidy`: the rules of the house that a compiler does not know.
//!
//! Each check is a pure function from the [`Tree`] to findings; the list below is all there is. A finding names a
//! file and a line and says in one sentence what to do. A check states what it looks at in its own header.
//!
//! To add a check: one file in `tidy/`, one line in [`CHECKS`], one test that shows it failing and passing.

use std::fmt;
use std::path::Path;

use anyhow::Result;

use self::tree::Tree;

mod citations;
mod decisions;
mod dependencies;
mod documented;
mod functions;
mod invariants;
mod links;
mod markdown;
mod modules;
mod names;
mod parses;
mod shown;
mod size;
mod tree;
mod words;

/// One rule.
pub(crate) struct Check {
    pub(crate) id: &'static str,
    /// The rule, in one sentence.
    pub(crate) says: &'static str,
    pub(crate) run: fn(&Tree) -> Vec<Finding>,
}

/// One place where a rule does not hold.
pub(crate) struct Finding {
    pub(crate) path: String,
    pub(crate) line: usize,
    /// What to do, in one sentence.
    pub(crate) advice: String,
}

/// Every check, in the order in which they are reported.
pub(crate) static CHECKS: &[Check] = &[
    parses::CHECK,
    dependencies::CHECK,
    size::CHECK,
    functions::CHECK,
    names::CHECK,
    modules::HEADERS,
    modules::ORPHANS,
    words::CHECK,
    links::CHECK,
    invariants::CHECK,
    citations::CHECK,
    shown::CHECK,
    documented::CHECK,
    decisions::CHECK,
];

/// Runs every check on the repository at `root` and prints what was found. Returns the number of findings.
pub(crate) fn run(root: &Path) -> Result<usize> {
    let tree = Tree::load(root)?;
    let mut total = 0;
    for check in CHECKS {
        let findings = (check.run)(&tree);
        for finding in &findings {
            println!("{finding} [{}]", check.id);
        }
        total += findings.len();
    }
    println!("tidy: {} checks, {total} findings", CHECKS.len());
    Ok(total)
}

/// Prints the list of checks.
pub(crate) fn list() {
    for check in CHECKS {
        println!("{:<14}{}", check.id, check.says);
    }
}

// === impl Finding ===

impl Finding {
    pub(crate) fn new(path: impl Into<String>, line: usize, advice: impl Into<String>) -> Finding {
        Finding { path: path.into(), line, advice: advice.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.advice)
    }
}

/// Where `check` finds something in the given files, as `path:line`. For the tests of the checks.
#[cfg(test)]
fn found<const N: usize>(check: &Check, files: [(&str, &str); N]) -> Vec<String> {
    (check.run)(&Tree::of(files)).iter().map(|f| format!("{}:{}", f.path, f.line)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn checks_have_one_id_and_one_sentence() {
        let ids: BTreeSet<_> = CHECKS.iter().map(|check| check.id).collect();
        assert_eq!(ids.len(), CHECKS.len());
        for check in CHECKS {
            assert!(check.says.ends_with('.') && check.says.matches(". ").count() == 0, "{}", check.id);
        }
    }

    #[test]
    fn findings_print_as_file_line_advice() {
        let finding = Finding::new("a/b.rs", 7, "shorten it");
        assert_eq!(finding.to_string(), "a/b.rs:7: shorten it");
    }
}

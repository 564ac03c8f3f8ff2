//! Words that must not be committed: places of one machine, work left open without an issue, debugging leftovers.
//!
//! The words are put together from pieces here, so that this file may be checked like any other.

use super::markdown;
use super::tree::Tree;
use super::{Check, Finding};

pub(super) const CHECK: Check = Check {
    id: "words",
    says: "No file names a place of one machine, open work without an issue, or a debugging leftover.",
    run,
};

/// Where on a machine somebody worked. Only at the start of a path.
static PLACES: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/fa", "rm/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

/// Marks of open work. Each must name its issue: `#12` or `(#12)` follows.
static OPEN_WORK: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME")];

/// Leftovers, in Rust code.
static LEFTOVERS: &[&str] = &[concat!("to", "do!("), concat!("unimple", "mented!("), concat!("db", "g!(")];

fn run(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files() {
        let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
        for (number, line) in lines.clone() {
            let leftover = if path.ends_with(".rs") { leftover(line) } else { None };
            let advice = [place(line), leftover].into_iter().flatten();
            findings.extend(advice.map(|advice| Finding::new(path, number, advice)));
        }
        // In a document, what stands between backticks is a quotation.
        let statements = match path.ends_with(".md") {
            true => markdown::prose(text),
            false => lines.map(|(number, line)| (number, line.to_owned())).collect(),
        };
        for (number, line) in statements {
            findings.extend(open_work(&line).map(|advice| Finding::new(path, number, advice)));
        }
    }
    findings
}

fn place(line: &str) -> Option<String> {
    let starts_path =
        |at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-/}*".contains(c));
    let named = |place: &&&str| line.match_indices(**place).any(|(at, _)| starts_path(at));
    let place = PLACES.iter().find(named)?;
    Some(format!("take out `{place}`: it exists on one machine only"))
}

fn open_work(line: &str) -> Option<String> {
    for mark in OPEN_WORK {
        for (at, _) in line.match_indices(mark) {
            let is_word = !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            let rest = line[at + mark.len()..].trim_start_matches([' ', '(']);
            let names_issue =
                rest.strip_prefix('#').is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()));
            if is_word && !names_issue {
                return Some(format!("write `{mark} #number` with the number of an issue, or do it now"));
            }
        }
    }
    None
}

fn leftover(line: &str) -> Option<String> {
    let word = LEFTOVERS.iter().find(|word| line.contains(**word))?;
    Some(format!("take out `{word})`: code that is not there yet is not committed"))
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn finds_places_of_one_machine() {
        let bad = format!("see {}main\n", PLACES[0]);
        let quoted = format!("see `{}main`\n", PLACES[0]);
        let good = format!("a{0}b and url.example{0}x\n", PLACES[0]);
        assert_eq!(found(&CHECK, [("a.toml", &bad), ("b.md", &quoted)]), ["a.toml:1", "b.md:1"]);
        assert!(found(&CHECK, [("a.toml", &good)]).is_empty());
    }

    #[test]
    fn finds_open_work_without_an_issue() {
        let bad = format!("// {}: later\n", OPEN_WORK[0]);
        let good = format!("// {0} #12: later\n// {0}(#7)\n// {0}S\n", OPEN_WORK[0]).replace("S\n", "#3\n");
        assert_eq!(found(&CHECK, [("a.rs", &bad)]), ["a.rs:1"]);
        assert!(
            found(&CHECK, [("a.rs", &good), ("b.md", &format!("no `{}` here\n", OPEN_WORK[1]))]).is_empty()
        );
    }

    #[test]
    fn finds_leftovers_in_code_only() {
        for word in LEFTOVERS {
            let line = format!("    {word});\n");
            assert_eq!(found(&CHECK, [("a.rs", &line), ("a.txt", &line)]), ["a.rs:1"]);
        }
    }
}

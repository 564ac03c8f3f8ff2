//! Which crate may lean on which. The table is the architecture: a mind that reaches a body is no mind any more.
//!
//! Three rules, read from every `Cargo.toml` and from `Cargo.lock`:
//! 1. a workspace crate uses only the workspace crates and outside crates that [`table`] allows it;
//! 2. nothing that waits, reads files or reaches a network is among what a pure crate uses, however indirectly;
//! 3. `ARCHITECTURE.md` prints the same table under `## Dependencies`.
//!
//! What only tests use is allowed separately: it is not part of the product.

use super::tree::Tree;
use super::{Check, Finding};

mod lock;
mod manifest;
mod table;

use self::manifest::Use;
use self::table::{CRATES, Crate, HANDS, Kind, OUTSIDE};

pub(super) const CHECK: Check = Check {
    id: "dependencies",
    says: "A crate uses only what the dependency table allows, and ARCHITECTURE.md prints that table.",
    run,
};

const DOCUMENT: &str = "ARCHITECTURE.md";
const HEADING: &str = "## Dependencies";

fn run(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files() {
        let Some(name) = path.strip_suffix("/Cargo.toml") else { continue };
        let Some(entry) = CRATES.iter().find(|entry| entry.name == name) else {
            let advice = format!("enter `{name}` in the dependency table, with what it keeps out of what");
            findings.push(Finding::new(path, 1, advice));
            continue;
        };
        for used in manifest::uses(text) {
            let reason = refused(entry, &used).or_else(|| reaches_hands(tree, entry, &used));
            findings.extend(reason.map(|advice| Finding::new(path, used.line, advice)));
        }
    }
    findings.extend(tree.text(DOCUMENT).and_then(printed_wrong));
    findings
}

/// Why the table does not allow this use.
fn refused(entry: &Crate, used: &Use) -> Option<String> {
    let name = used.name.as_str();
    if used.is_renamed {
        return Some(format!("use `{name}` under its own name: a renamed crate escapes the table"));
    }
    let (inside, for_tests) = if used.for_tests { (entry.tests_use, " in tests") } else { (entry.uses, "") };
    let is_allowed = match CRATES.iter().any(|other| other.name == name) {
        true => entry.uses.contains(&name) || inside.contains(&name),
        false => OUTSIDE.iter().any(|outside| {
            outside.name == name
                && (outside.used_by.contains(&entry.name)
                    || used.for_tests && outside.tests_of.contains(&entry.name))
        }),
    };
    (!is_allowed).then(|| {
        format!("take `{name}` out of `{}`{for_tests}, or allow it in the table with a reason", entry.name)
    })
}

/// Which body a pure crate would reach through this use.
fn reaches_hands(tree: &Tree, entry: &Crate, used: &Use) -> Option<String> {
    // What a workspace crate uses is checked where that crate says so; the lock mixes it with what its tests use.
    let is_inside = CRATES.iter().any(|other| other.name == used.name);
    if entry.kind != Kind::Pure || used.for_tests || is_inside {
        return None;
    }
    let hand = lock::reach(tree.text("Cargo.lock")?, &used.name)
        .into_iter()
        .find(|name| HANDS.contains(&name.as_str()))?;
    Some(format!("take `{}` out of `{}`: through it a pure crate reaches `{hand}`", used.name, entry.name))
}

/// Where the printed table differs from ours.
fn printed_wrong(text: &str) -> Option<Finding> {
    let mut lines = text.lines().enumerate();
    let Some((heading, _)) = lines.find(|(_, line)| *line == HEADING) else {
        return Some(Finding::new(
            DOCUMENT,
            1,
            format!("add the section `{HEADING}` with the dependency table"),
        ));
    };
    let printed: Vec<(usize, &str)> = lines
        .take_while(|(_, line)| !line.starts_with("## "))
        .filter(|(_, line)| line.starts_with('|'))
        .collect();
    let expected = rendered();
    let differs =
        |at: &usize| printed.get(*at).map(|(_, line)| *line) != expected.get(*at).map(String::as_str);
    let at = (0..printed.len().max(expected.len())).find(differs)?;
    let line = printed.get(at).map_or(heading, |(line, _)| *line) + 1;
    let advice = expected.get(at).map_or_else(
        || "take out this row: the dependency table has no such row".to_owned(),
        |row| format!("print row {} of the dependency table as: {row}", at + 1),
    );
    Some(Finding::new(DOCUMENT, line, advice))
}

/// The lines of both tables as `ARCHITECTURE.md` must print them.
fn rendered() -> Vec<String> {
    let mut lines =
        vec!["| crate | kind | uses | tests also use |".to_owned(), "|---|---|---|---|".to_owned()];
    for entry in CRATES {
        let kind = entry.kind.word();
        lines.push(format!(
            "| `{}` | {kind} | {} | {} |",
            entry.name,
            list(entry.uses),
            list(entry.tests_use)
        ));
    }
    lines.extend([
        "| outside crate | used by | in tests of | why |".to_owned(),
        "|---|---|---|---|".to_owned(),
    ]);
    for outside in OUTSIDE {
        let (used_by, tests_of) = (list(outside.used_by), list(outside.tests_of));
        lines.push(format!("| `{}` | {used_by} | {tests_of} | {} |", outside.name, outside.why));
    }
    lines
}

fn list(names: &[&str]) -> String {
    if names.is_empty() { "–".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn passes_what_the_table_allows() {
        let control = "[dependencies]\napi.workspace = true\n[dev-dependencies]\nregistry.workspace = true\n";
        let api = "[dependencies]\nserde.workspace = true\n[dev-dependencies]\nproptest.workspace = true\n";
        assert!(found(&CHECK, [("control/Cargo.toml", control), ("api/Cargo.toml", api)]).is_empty());
    }

    #[test]
    fn finds_a_use_that_the_table_does_not_allow() {
        let control =
            "[dependencies]\nagent.workspace = true\nregistry = { path = \"../registry\" }\ntokio = \"1\"\n";
        let api = "[dependencies]\nproptest.workspace = true\n";
        assert_eq!(
            found(&CHECK, [("control/Cargo.toml", control), ("api/Cargo.toml", api)]),
            ["api/Cargo.toml:2", "control/Cargo.toml:2", "control/Cargo.toml:3", "control/Cargo.toml:4"]
        );
    }

    #[test]
    fn finds_a_crate_that_the_table_does_not_know_and_a_renamed_one() {
        let renamed = "[dependencies]\nserde = { package = \"tokio\", version = \"1\" }\n";
        assert_eq!(
            found(&CHECK, [("api/Cargo.toml", renamed), ("misc/Cargo.toml", "")]),
            ["api/Cargo.toml:2", "misc/Cargo.toml:1"]
        );
    }

    #[test]
    fn finds_a_body_behind_an_allowed_crate() {
        let lock = "[[package]]\nname = \"serde\"\ndependencies = [\n \"middle 1.0.0\",\n]\n\n\
                    [[package]]\nname = \"middle\"\ndependencies = [\n \"tokio\",\n]\n";
        let api = "[dependencies]\nserde.workspace = true\n";
        assert_eq!(found(&CHECK, [("Cargo.lock", lock), ("api/Cargo.toml", api)]), ["api/Cargo.toml:2"]);
        assert!(found(&CHECK, [("Cargo.lock", lock), ("mainstay/Cargo.toml", api)]).len() <= 1);
    }

    #[test]
    fn finds_a_printed_table_that_differs() {
        let whole = format!("# A\n\n{HEADING}\n\n{}\n\n## Next\n\n| x |\n", rendered().join("\n"));
        assert!(found(&CHECK, [(DOCUMENT, &whole)]).is_empty());
        assert_eq!(
            found(&CHECK, [(DOCUMENT, &whole.replacen("| pure |", "| body |", 1))]),
            ["ARCHITECTURE.md:7"]
        );
        assert_eq!(
            found(&CHECK, [(DOCUMENT, &whole.replace("\n\n## Next", "\n| more |\n\n## Next"))]).len(),
            1
        );
        assert_eq!(found(&CHECK, [(DOCUMENT, "# A\n")]), ["ARCHITECTURE.md:1"]);
    }

    #[test]
    fn the_table_agrees_with_itself() {
        for entry in CRATES {
            for used in entry.uses.iter().chain(entry.tests_use) {
                assert!(CRATES.iter().any(|other| other.name == *used), "{used}");
            }
            let touches = OUTSIDE.iter().filter(|o| o.used_by.contains(&entry.name)).map(|o| o.name);
            let hands: Vec<_> = touches.filter(|name| HANDS.contains(name)).collect();
            assert!(entry.kind != Kind::Pure || hands.is_empty(), "{} is pure: {hands:?}", entry.name);
        }
    }
}

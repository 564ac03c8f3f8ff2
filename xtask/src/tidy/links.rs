//! Every link in a document leads somewhere: to a file of the repository and to a heading in it.
//!
//! Links to other hosts are not followed: a check that needs a network is a check that fails for no fault of ours.

use super::markdown;
use super::tree::Tree;
use super::{Check, Finding};

pub(super) const CHECK: Check =
    Check { id: "links", says: "Every relative link in a document names a file, and a heading in it.", run };

fn run(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with(".md")) {
        for (line, target) in markdown::links(text) {
            if let Some(advice) = dead(tree, path, &target) {
                findings.push(Finding::new(path, line, advice));
            }
        }
    }
    findings
}

/// Why the link from `from` leads nowhere.
fn dead(tree: &Tree, from: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let Some(path) = (if file.is_empty() { Some(from.to_owned()) } else { resolve(from, file) }) else {
        return Some(format!("mend the link `{target}`: it leaves the repository"));
    };
    if !tree.has(&path) {
        return Some(format!("mend the link `{target}`: there is no `{path}`"));
    }
    let anchor = anchor.filter(|_| path.ends_with(".md"))?;
    let is_known = markdown::anchors(tree.text(&path)?).contains(anchor);
    (!is_known).then(|| format!("mend the link `{target}`: `{path}` has no heading `#{anchor}`"))
}

/// The path that `target` names in a file at `from`, unless it leaves the repository.
fn resolve(from: &str, target: &str) -> Option<String> {
    let directory = from.rsplit_once('/').map_or("", |(directory, _)| directory);
    let start = if target.starts_with('/') { "" } else { directory };
    let mut parts: Vec<&str> = start.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::*;

    #[test]
    fn finds_dead_links() {
        let text = "[a](gone.md)\n[b](b.md#gone)\n[c](#gone)\n[d](../../out.md)\n";
        let files = [("docs/a.md", text), ("docs/b.md", "# B\n")];
        assert_eq!(found(&CHECK, files), ["docs/a.md:1", "docs/a.md:2", "docs/a.md:3", "docs/a.md:4"]);
    }

    #[test]
    fn passes_live_links() {
        let text =
            "# A b\n[a](b.md) [b](b.md#b) [c](#a-b) [d](../src) [e](/README.md) [f](https://x.example/y#z)\n";
        let files = [("docs/a.md", text), ("docs/b.md", "# B\n"), ("src/c.rs", ""), ("README.md", "")];
        assert!(found(&CHECK, files).is_empty());
    }
}

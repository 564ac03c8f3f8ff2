//! What `Cargo.lock` says is behind a crate. Versions of one crate count as one: that errs towards a finding.

use std::collections::{BTreeMap, BTreeSet};

/// Every crate that `name` is built with, itself included.
pub(super) fn reach(lock: &str, name: &str) -> BTreeSet<String> {
    let edges = edges(lock);
    let mut reached = BTreeSet::from([name.to_owned()]);
    let mut open = vec![name];
    while let Some(next) = open.pop() {
        for &used in edges.get(next).into_iter().flatten() {
            if reached.insert(used.to_owned()) {
                open.push(used);
            }
        }
    }
    reached
}

fn edges(lock: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut edges: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut package = "";
    for line in lock.lines() {
        if let Some(name) = line.strip_prefix("name = ") {
            package = name.trim_matches('"');
        } else if let Some(used) = line.strip_prefix(" \"") {
            // A version follows the name where several are in use.
            let name = used.split([' ', '"']).next().unwrap_or("");
            edges.entry(package).or_default().push(name);
        }
    }
    edges
}

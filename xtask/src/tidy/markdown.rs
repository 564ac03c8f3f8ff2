//! The little of Markdown that the checks read: prose without code, table rows, headings, links.
//!
//! Not a Markdown parser. It knows what our own documents use: fenced code, code spans on one line, pipe tables,
//! `#` headings, and links written inline or by reference. Lines keep their numbers throughout.

use std::collections::BTreeSet;

/// A row of a pipe table.
pub(crate) struct Row<'a> {
    pub(crate) line: usize,
    pub(crate) cells: Vec<&'a str>,
}

impl Row<'_> {
    /// The first cell without the marks that make it bold or code.
    pub(crate) fn id(&self) -> &str {
        self.cells.first().map_or("", |cell| cell.trim_matches(['*', '`']))
    }
}

/// Every table row outside code fences, headings of tables included and rules left out.
pub(crate) fn rows(text: &str) -> Vec<Row<'_>> {
    let is_rule = |line: &str| line.chars().all(|c| "|-: ".contains(c));
    unfenced(text)
        .filter(|(_, line)| line.starts_with('|') && !is_rule(line))
        .map(|(number, line)| Row { line: number, cells: cells(line) })
        .collect()
}

/// The text with code fences and code spans blanked.
pub(crate) fn prose(text: &str) -> Vec<(usize, String)> {
    unfenced(text).map(|(number, line)| (number, without_spans(line))).collect()
}

/// The anchors that a link into this text may name, as GitHub derives them from the headings.
pub(crate) fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in unfenced(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let slug = slug(title.trim());
        let again = (1..).map(|n| format!("{slug}-{n}")).find(|anchor| !anchors.contains(anchor));
        let taken = anchors.contains(&slug);
        anchors.insert(if taken { again.unwrap_or(slug) } else { slug });
    }
    anchors
}

/// Every link target, with its line.
pub(crate) fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (number, line) in prose(text) {
        for piece in line.split("](").skip(1) {
            if let Some((target, _)) = piece.split_once(')') {
                // A title may follow the target: `[text](target "title")`.
                let target = target.split_whitespace().next().unwrap_or("");
                links.push((number, target.trim_matches(['<', '>']).to_owned()));
            }
        }
        if let Some((_, target)) = line.strip_prefix('[').and_then(|rest| rest.split_once("]: ")) {
            links.push((number, target.split_whitespace().next().unwrap_or("").to_owned()));
        }
    }
    links
}

/// The parts of a cell that stand between backticks.
pub(crate) fn code_spans(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

fn unfenced(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_fence = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_fence ^= is_fence;
        (!is_fence && !in_fence).then_some((index + 1, line))
    })
}

fn without_spans(line: &str) -> String {
    let mut in_span = false;
    let mut blank = |c| {
        in_span ^= c == '`';
        if in_span { ' ' } else { c }
    };
    line.chars().map(&mut blank).collect()
}

fn cells(line: &str) -> Vec<&str> {
    let inner = line.trim().trim_start_matches('|');
    let mut cells = Vec::new();
    let mut start = 0;
    for (at, _) in inner.match_indices('|') {
        if !inner[..at].ends_with('\\') {
            cells.push(inner[start..at].trim());
            start = at + 1;
        }
    }
    cells
}

fn slug(title: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || "-_ ".contains(*c);
    title.to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_leave_out_rules_and_fences() {
        let text = "| id | a |\n|---|:-:|\n| **S1** | x \\| y |\n```\n| no | no |\n```\n";
        let found: Vec<_> = rows(text).iter().map(|row| (row.line, row.id().to_owned())).collect();
        assert_eq!(found, [(1, "id".to_owned()), (3, "S1".to_owned())]);
        assert_eq!(rows(text)[1].cells, ["**S1**", "x \\| y"]);
    }

    #[test]
    fn anchors_follow_github() {
        let found = anchors("# Node death: what, when?\n## A\n## A\n#no\n```\n# code\n```\n## `a_b` c\n");
        assert_eq!(found, ["a", "a-1", "a_b-c", "node-death-what-when"].map(str::to_owned).into());
    }

    #[test]
    fn links_of_both_forms() {
        let text = "[a](b.md) and [c](d.md#e \"title\")\n`[no](no.md)`\n[ref]: x/y.md\n";
        let found = links(text);
        assert_eq!(found, [(1, "b.md".to_owned()), (1, "d.md#e".to_owned()), (3, "x/y.md".to_owned())]);
    }
}

//! What a `Cargo.toml` says it uses. Reads the form that our manifests have, not all of TOML.

/// One dependency as a manifest states it.
#[derive(Debug, PartialEq)]
pub(super) struct Use {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) for_tests: bool,
    /// The manifest gives the crate another name.
    pub(super) is_renamed: bool,
}

/// Every dependency: of the product, of its build, of its tests, and of single platforms.
pub(super) fn uses(text: &str) -> Vec<Use> {
    let mut uses: Vec<Use> = Vec::new();
    let mut section = Section::Other;
    let mut depth = 0_usize;
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        if depth == 0 && line.starts_with('[') {
            section = Section::of(line.trim_matches(['[', ']']));
            if let Section::One { for_tests, name } = &section {
                let (name, for_tests) = (name.clone(), *for_tests);
                uses.push(Use { name, line: index + 1, for_tests, is_renamed: false });
            }
            continue;
        }
        let key = line.split(['=', '.']).next().unwrap_or("").trim().trim_matches('"');
        match &section {
            Section::Many { for_tests } if depth == 0 && !key.is_empty() => {
                let (name, for_tests) = (key.to_owned(), *for_tests);
                uses.push(Use { name, line: index + 1, for_tests, is_renamed: line.contains("package") });
            }
            Section::One { .. } if key == "package" => {
                if let Some(last) = uses.last_mut() {
                    last.is_renamed = true;
                }
            }
            Section::Many { .. } | Section::One { .. } | Section::Other => {}
        }
        depth = (depth + line.matches(['[', '{']).count()).saturating_sub(line.matches([']', '}']).count());
    }
    uses
}

enum Section {
    /// `[dependencies]`
    Many {
        for_tests: bool,
    },
    /// `[dependencies.name]`
    One {
        for_tests: bool,
        name: String,
    },
    Other,
}

// === impl Section ===

impl Section {
    fn of(title: &str) -> Section {
        let mut parts = title.rsplit('.');
        let (last, before) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        match (tests_of(last), tests_of(before)) {
            (Some(for_tests), _) => Section::Many { for_tests },
            (None, Some(for_tests)) => Section::One { for_tests, name: last.to_owned() },
            (None, None) => Section::Other,
        }
    }
}

/// Whether a section of this name lists dependencies, and if so whether only tests use them.
fn tests_of(section: &str) -> Option<bool> {
    match section {
        "dependencies" | "build-dependencies" => Some(false),
        "dev-dependencies" => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_form() {
        let text = "[package]\nname = \"x\"\n[dependencies]\na.workspace = true\nb = { version = \"1\", features = [\n  \"c\",\n] }\n\
                    # no = 1\n[target.'cfg(unix)'.dependencies]\nd = \"1\"\n[dev-dependencies.e]\npackage = \"f\"\n[lints]\nworkspace = true\n";
        let found: Vec<_> =
            uses(text).into_iter().map(|u| (u.name, u.line, u.for_tests, u.is_renamed)).collect();
        let expected =
            [("a", 4, false, false), ("b", 5, false, false), ("d", 10, false, false), ("e", 11, true, true)];
        assert_eq!(
            found,
            expected.map(|(name, line, tests, renamed)| (name.to_owned(), line, tests, renamed))
        );
    }
}

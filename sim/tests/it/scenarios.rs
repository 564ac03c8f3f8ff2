//! Every scenario file: it runs as it says, its mutations are caught, and its golden trace agrees.
//!
//! A golden trace is rewritten with `UPDATE_EXPECT=1 cargo test -p sim`.

use std::path::{Path, PathBuf};

use expect_test::expect_file;
use sim::report::Report;
use sim::run::Keep;
use sim::scenario::shipped::SHIPPED;
use sim::scenario::{Scenario, parse, run};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")
}

#[allow(clippy::disallowed_methods, reason = "a test looks at files")]
fn files(ending: &str) -> Vec<String> {
    let entries = std::fs::read_dir(directory()).expect("the directory of scenarios is there");
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> =
        names.filter_map(|name| name.strip_suffix(ending).map(str::to_owned)).collect();
    names.sort();
    names
}

fn scenario(name: &str, text: &str) -> Scenario {
    parse::parse(text).unwrap_or_else(|error| panic!("{name}.txt: {error}"))
}

fn complaints(report: &Report) -> String {
    let findings = report.findings.iter().map(|f| format!("{} {}", f.oracle, f.text));
    let unmet = report.unmet.iter().map(|u| format!("line {}: {}", u.line, u.text));
    findings.chain(unmet).collect::<Vec<_>>().join("\n  ")
}

#[test]
fn every_file_is_shipped() {
    let shipped: Vec<&str> = SHIPPED.iter().map(|file| file.name).collect();
    assert_eq!(files(".txt"), shipped, "sim/src/scenario/shipped.rs lists the files by name");
}

#[test]
fn every_file_has_a_title() {
    for file in SHIPPED {
        assert!(!scenario(file.name, file.text).title.is_empty(), "{}.txt begins with a comment", file.name);
    }
}

/// All at once, so that one run shows everything that is wrong.
#[test]
fn every_file_runs_as_it_says() {
    let mut wrong = Vec::new();
    for file in SHIPPED {
        let scenario = scenario(file.name, file.text);
        let report = run::run(&scenario, file.name, scenario.seed, None, Keep::Last).report;
        if !report.is_clean() {
            wrong.push(format!("{}.txt:\n  {}", file.name, complaints(&report)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_mutation_is_caught() {
    let mut missed = Vec::new();
    for file in SHIPPED {
        let scenario = scenario(file.name, file.text);
        for mutation in &scenario.mutations {
            let mut seeds = scenario.seed..scenario.seed + mutation.seeds;
            let clean = |seed| {
                run::run(&scenario, file.name, seed, Some(mutation.flaw), Keep::Last).report.is_clean()
            };
            if seeds.all(clean) {
                missed.push(format!("{}.txt: {}", file.name, mutation.flaw.name()));
            }
        }
    }
    assert!(missed.is_empty(), "not caught:\n{}", missed.join("\n"));
}

/// Only some stories have a golden trace: those whose course people should read.
#[test]
fn golden_traces_agree() {
    let golden = files(".trace");
    assert!(!golden.is_empty(), "there are golden traces");
    for name in golden {
        let file = SHIPPED.iter().find(|file| file.name == name);
        let file = file.unwrap_or_else(|| panic!("{name}.trace belongs to {name}.txt"));
        let scenario = scenario(file.name, file.text);
        let outcome = run::run(&scenario, file.name, scenario.seed, None, Keep::Last);
        expect_file![directory().join(format!("{name}.trace"))].assert_eq(&outcome.story);
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    let file =
        SHIPPED.iter().find(|file| file.name == "p01-stateful-pod-moves-on-proof").expect("it is shipped");
    let scenario = scenario(file.name, file.text);
    let once = || run::run(&scenario, file.name, 7, None, Keep::All).report.last;
    assert_eq!(once(), once());
}

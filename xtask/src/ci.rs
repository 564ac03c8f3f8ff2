//! `cargo xtask ci`: everything that a change must pass. CI and developers run the same list.
//!
//! Parts run in the order of the list, all of them, also after one has failed: one run shows everything there is to
//! mend. At the end stand a table of the time each part took beside its budget, and the plain count.
//!
//! A part that cannot run here is *skipped* and says why. With `CI=true` a skip is a failure: a part that silently
//! stopped running would be missed by nobody. A part over its budget is marked and does not fail, because the
//! budget is a promise about a quiet machine with two cores.
//!
//! The simulator's parts need the release build. They bring the part `build` with them, and if it fails they fail
//! without running: an older binary would answer for code that it was not built from.

use std::env;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::{command, tidy};

mod simulator;

/// One part of the whole.
struct Part {
    name: &'static str,
    /// On a machine with two cores and nothing else to do.
    minutes: u64,
    job: Job,
}

/// What a part does.
enum Job {
    /// A cargo command, with the component of the toolchain that it needs.
    Cargo(&'static [&'static str], Option<&'static str>),
    Tidy,
    /// Unit and integration tests of every crate.
    Tests,
    /// `mainstay sim` with these arguments finds nothing.
    Seeds(&'static [&'static str]),
    /// Every file in `sim/scenarios` runs as it should.
    Scenarios,
    /// Every mutation of the rules is caught within this many seeds.
    Mutations(&'static str),
}

/// The part that makes what the simulator's parts run.
const BUILD: &str = "build";

static PARTS: &[Part] = &[
    Part { name: "format", minutes: 1, job: Job::Cargo(&["fmt", "--all", "--check"], Some("rustfmt")) },
    Part { name: "tidy", minutes: 1, job: Job::Tidy },
    Part {
        name: "lints",
        minutes: 5,
        job: Job::Cargo(
            &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
            Some("clippy"),
        ),
    },
    Part { name: BUILD, minutes: 12, job: Job::Cargo(&["build", "--release", "--locked"], None) },
    Part { name: "tests", minutes: 10, job: Job::Tests },
    Part { name: "scenarios", minutes: 1, job: Job::Scenarios },
    Part { name: "seeds", minutes: 4, job: Job::Seeds(&["--seeds", "5000"]) },
    Part { name: "seeds-fast", minutes: 1, job: Job::Seeds(&["--seeds", "500", "--profile", "fast"]) },
    Part {
        name: "seeds-kubernetes",
        minutes: 1,
        job: Job::Seeds(&["--seeds", "500", "--profile", "kubernetes"]),
    },
    Part { name: "mutations", minutes: 3, job: Job::Mutations("2000") },
];

/// How a part ended.
enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
}

/// A part that has run.
struct Done {
    part: &'static Part,
    outcome: Outcome,
    took: Duration,
}

/// Prints the parts and their budgets.
pub(crate) fn list() {
    for part in PARTS {
        println!("{:<18}{:>3} min", part.name, part.minutes);
    }
}

pub(crate) fn is_part(name: &str) -> bool {
    PARTS.iter().any(|part| part.name == name)
}

/// Runs the named parts, or all. True if none failed.
pub(crate) fn run(names: &[&str]) -> Result<bool> {
    let is_ci = env::var_os("CI").is_some_and(|value| value == "true");
    let mut done = Vec::new();
    let mut is_built = true;
    for part in chosen(names) {
        println!("\n=== {} ===", part.name);
        let start = Instant::now();
        let outcome = match part.job.needs_build() && !is_built {
            true => Outcome::Failed("not run: the build failed".to_owned()),
            // A part that cannot even start has failed; the others still have something to say.
            false => carry_out(part, is_ci).unwrap_or_else(|error| Outcome::Failed(format!("{error:#}"))),
        };
        is_built &= part.name != BUILD || matches!(outcome, Outcome::Passed);
        let done_now = Done { part, outcome: judged(outcome, is_ci), took: start.elapsed() };
        println!("{}", done_now.line());
        done.push(done_now);
    }
    println!("\n{}", table(&done));
    println!("{}", count(&done));
    Ok(!done.iter().any(|done| matches!(done.outcome, Outcome::Failed(_))))
}

/// The parts to run: the named ones and what they need, or all.
fn chosen(names: &[&str]) -> Vec<&'static Part> {
    let is_named = |part: &&Part| names.is_empty() || names.contains(&part.name);
    let needs_build = PARTS.iter().filter(is_named).any(|part| part.job.needs_build());
    PARTS.iter().filter(|part| is_named(part) || needs_build && part.name == BUILD).collect()
}

fn carry_out(part: &Part, is_ci: bool) -> Result<Outcome> {
    // A run that takes twice its budget is no longer slow, it hangs.
    let limit = Duration::from_secs(part.minutes * 60 * 2);
    match part.job {
        Job::Cargo(arguments, component) => cargo(arguments, component, is_ci),
        Job::Tidy => Ok(match tidy::run(&command::root())? {
            0 => Outcome::Passed,
            found => Outcome::Failed(format!("{found} findings")),
        }),
        Job::Tests => tests(),
        Job::Seeds(arguments) => simulator::seeds(arguments, limit),
        Job::Scenarios => simulator::scenarios(limit),
        Job::Mutations(seeds) => simulator::mutations(seeds, limit),
    }
}

/// In CI nothing may be left out.
fn judged(outcome: Outcome, is_ci: bool) -> Outcome {
    match outcome {
        Outcome::Skipped(ref why) if is_ci => {
            Outcome::Failed(format!("skipped, which CI does not allow: {why}"))
        }
        Outcome::Passed | Outcome::Failed(_) | Outcome::Skipped(_) => outcome,
    }
}

fn cargo(arguments: &[&str], component: Option<&str>, is_ci: bool) -> Result<Outcome> {
    if let Some(component) = component.filter(|_| !is_installed(arguments[0]).unwrap_or(false)) {
        if is_ci {
            let mut rustup = std::process::Command::new("rustup");
            rustup.args(["component", "add", component]);
            // Where there is no rustup either, the question below gives the answer.
            let _ = command::succeeds(rustup);
        }
        if !is_installed(arguments[0])? {
            return Ok(Outcome::Skipped(format!("the toolchain has no {component}")));
        }
    }
    passes(arguments)
}

fn tests() -> Result<Outcome> {
    if is_installed("nextest")? {
        return passes(&["nextest", "run", "--workspace", "--locked"]);
    }
    // Building nextest takes longer than all our tests, and cargo's own runner runs the same ones.
    println!("cargo-nextest is not installed: `cargo test` runs the tests, without a time limit for each");
    passes(&["test", "--workspace", "--locked", "--no-fail-fast"])
}

fn passes(arguments: &[&str]) -> Result<Outcome> {
    let is_clean = command::succeeds(command::cargo(arguments)?)?;
    Ok(if is_clean { Outcome::Passed } else { Outcome::Failed("see above".to_owned()) })
}

fn is_installed(subcommand: &str) -> Result<bool> {
    Ok(command::answers(command::cargo(&[subcommand, "--version"])?))
}

// === impl Job ===

impl Job {
    fn needs_build(&self) -> bool {
        match self {
            Job::Seeds(_) | Job::Scenarios | Job::Mutations(_) => true,
            Job::Cargo(..) | Job::Tidy | Job::Tests => false,
        }
    }
}

// === impl Done ===

impl Done {
    fn line(&self) -> String {
        let Done { part, outcome, took } = self;
        let over = if took.as_secs() > part.minutes * 60 { "  over budget" } else { "" };
        let words = match outcome {
            Outcome::Passed => "passed".to_owned(),
            Outcome::Failed(why) => format!("failed: {why}"),
            Outcome::Skipped(why) => format!("skipped: {why}"),
        };
        format!("{:<18}{:>8} of {:>2}m  {words}{over}", part.name, command::human(*took), part.minutes)
    }
}

fn table(done: &[Done]) -> String {
    let used: Duration = done.iter().map(|done| done.took).sum();
    let budget: u64 = done.iter().map(|done| done.part.minutes).sum();
    let total = format!("{:<18}{:>8} of {budget:>2}m", "total", command::human(used));
    done.iter().map(Done::line).chain([total]).collect::<Vec<_>>().join("\n")
}

/// The plain closing line.
fn count(done: &[Done]) -> String {
    let of = |is: fn(&Outcome) -> bool| done.iter().filter(|done| is(&done.outcome)).count();
    let passed = of(|outcome| matches!(outcome, Outcome::Passed));
    let failed = of(|outcome| matches!(outcome, Outcome::Failed(_)));
    match done.len() - passed - failed {
        0 => format!("{passed} passed, {failed} failed"),
        skipped => format!("{passed} passed, {failed} failed, {skipped} skipped"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(outcome: Outcome, seconds: u64) -> Done {
        Done { part: &PARTS[0], outcome, took: Duration::from_secs(seconds) }
    }

    #[test]
    fn the_closing_line_counts_parts() {
        let passed = || done(Outcome::Passed, 1);
        let failed = || done(Outcome::Failed("x".to_owned()), 1);
        assert_eq!(count(&[passed(), failed(), passed()]), "2 passed, 1 failed");
        assert_eq!(
            count(&[passed(), done(Outcome::Skipped("y".to_owned()), 1)]),
            "1 passed, 0 failed, 1 skipped"
        );
    }

    #[test]
    fn the_table_shows_time_beside_budget() {
        let done = [done(Outcome::Passed, 5), done(Outcome::Failed("see above".to_owned()), 61)];
        let expected = "format                5.0s of  1m  passed\n\
                        format               1m01s of  1m  failed: see above  over budget\n\
                        total                1m06s of  2m";
        assert_eq!(table(&done), expected);
    }

    #[test]
    fn a_skip_fails_in_ci_only() {
        let skip = || Outcome::Skipped("no clippy".to_owned());
        assert!(matches!(judged(skip(), true), Outcome::Failed(_)));
        assert!(matches!(judged(skip(), false), Outcome::Skipped(_)));
        assert!(matches!(judged(Outcome::Passed, true), Outcome::Passed));
    }

    #[test]
    fn the_simulator_brings_the_build_and_runs_after_it() {
        let names = |parts: Vec<&'static Part>| parts.iter().map(|part| part.name).collect::<Vec<_>>();
        for part in PARTS.iter().filter(|part| part.job.needs_build()) {
            assert_eq!(names(chosen(&[part.name])), [BUILD, part.name]);
        }
        assert_eq!(names(chosen(&["tidy"])), ["tidy"]);
        assert_eq!(chosen(&[]).len(), PARTS.len());
    }
}

//! `mainstay sim`: many runs, one verdict.
//!
//! Responsible for: which runs, their output, the exit code (docs/testing.md). Leaves the runs to `sim`.
//!
//! Invariant: what is printed depends on the arguments alone, except for members and words about wall time and memory.

use std::fs::File;
use std::io::{IsTerminal as _, Read as _, Write as _};
use std::ops::{ControlFlow, RangeInclusive};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow, bail};
use api::flaw::Flaw;
use api::timing::profile::Profile;
use serde_json::{Value, json};
use sim::config::START;
use sim::oracle::{Class, Finding};
use sim::report::{Report, Summary, Unmet, Verdict};
use sim::run::Keep;
use sim::scenario::{Scenario, parse, shipped};
use sim::{run, schedule, trace};

use crate::arguments::{Mutation, Output, Sim};
use crate::{machine, scale, series};

/// Seeds, unless the caller says how many.
const SEEDS: u64 = 100;
/// No story is longer; what is larger is no scenario.
const SCENARIO_BYTES_MAX: u64 = 1024 * 1024;
/// Runs with findings that are printed with their events.
const SHOWN_MAX: u64 = 3;
/// Runs with findings that are printed at all: what a hundred more found would be the same.
const TOLD_MAX: u64 = 20;

/// Runs what the arguments ask for. The exit code.
pub(crate) fn run(options: &Sim) -> Result<u8> {
    let flaw = match options.mutate {
        Some(Mutation::List) => {
            print_mutations();
            return Ok(0);
        }
        Some(Mutation::Leave(flaw)) => Some(flaw),
        None => None,
    };
    if let Some(nodes) = options.nodes {
        return scale::run(
            nodes,
            options.pods.unwrap_or(nodes.saturating_mul(10)),
            options.profile,
            options.output,
        );
    }
    let mut series = Series::new(options, flaw);
    match &options.scenario {
        Some(path) => series.scenario_file(path)?,
        None => series.seeds()?,
    }
    Ok(series.finish())
}

/// One name a line and nothing else: scripts read it. `--help` says what is broken.
fn print_mutations() {
    for (_, name, _) in Flaw::ALL {
        say!("{name}");
    }
}

/// The runs of one command.
struct Series<'o> {
    options: &'o Sim,
    flaw: Option<Flaw>,
    keep: Keep,
    summary: Summary,
    findings: Vec<Value>,
    shown: u64,
    began: Instant,
}

// === impl Series ===

impl<'o> Series<'o> {
    fn new(options: &'o Sim, flaw: Option<Flaw>) -> Self {
        Self {
            options,
            flaw,
            keep: if options.trace { Keep::All } else { Keep::Last },
            summary: Summary::default(),
            findings: Vec::new(),
            shown: 0,
            began: Instant::now(),
        }
    }

    /// Random runs. With a mutation, the stories that must fail with it come first, and the first catch is the end.
    fn seeds(&mut self) -> Result<()> {
        let numbers = self.numbers(1, SEEDS)?;
        if let Some(flaw) = self.flaw
            && self.shipped(flaw).is_break()
        {
            return Ok(());
        }
        let count = (numbers.end() - numbers.start()).saturating_add(1);
        let (profile, flaw, keep) = (self.options.profile, self.flaw, self.keep);
        let is_shown = std::io::stderr().is_terminal();
        let job = |seed: u64| {
            guarded(seed, || run::carry_out(&schedule::plan(seed, profile.timing, flaw), seed, keep))
        };
        series::in_order(numbers, job, |report| {
            let again = replay(report.seed, profile, flaw);
            let flow = self.take(&report, &again);
            if is_shown {
                self.show_progress(count);
            }
            flow
        });
        if is_shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
        Ok(())
    }

    /// The seeds that were asked for; `first` and at most `count` where the arguments say nothing.
    fn numbers(&self, first: u64, count: u64) -> Result<RangeInclusive<u64>> {
        let from = self.options.from.unwrap_or(first);
        let usual = || count.min((u64::MAX - from).saturating_add(1));
        let count = self.options.seeds.unwrap_or_else(usual);
        let last = from.checked_add(count - 1);
        let last = last.with_context(|| {
            format!("there are no {count} seeds from {from} on: the last is {}", u64::MAX)
        })?;
        Ok(from..=last)
    }

    fn show_progress(&self, count: u64) {
        if self.summary.seeds.is_multiple_of(10) || self.summary.seeds == count {
            let _ = write!(std::io::stderr(), "\r{} of {count} seeds", self.summary.seeds);
            let _ = std::io::stderr().flush();
        }
    }

    /// Stories that came with the simulator and name this flaw.
    fn shipped(&mut self, flaw: Flaw) -> ControlFlow<()> {
        for file in shipped::SHIPPED {
            let Ok(scenario) = parse::parse(file.text) else { continue };
            let Some(mutation) = scenario.mutations.iter().find(|m| m.flaw == flaw) else { continue };
            for seed in so_many(scenario.seed, mutation.seeds) {
                let report = scenario_report(&scenario, file.name, seed, Some(flaw), self.keep);
                let (name, flaw) = (file.name, flaw.name());
                let again = format!(
                    "mainstay sim --scenario sim/scenarios/{name}.txt --from {seed} --seeds 1 --mutate {flaw}"
                );
                self.take(&report, &again)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// A story from a file, as it is and with each flaw that it names.
    fn scenario_file(&mut self, path: &Path) -> Result<()> {
        let shown = path.display();
        let cannot = || format!("cannot read the scenario {shown}");
        let text = text_of(path).with_context(cannot)?;
        let scenario = parse::parse(&text).with_context(cannot)?;
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let quoted = quoted(&shown.to_string());
        for seed in self.numbers(scenario.seed, 1)? {
            let again = |flaw: Option<Flaw>| {
                let mutate = flaw.map(|flaw| format!(" --mutate {}", flaw.name())).unwrap_or_default();
                format!("mainstay sim --scenario {quoted} --from {seed} --seeds 1{mutate}")
            };
            let report = scenario_report(&scenario, &name, seed, self.flaw, self.keep);
            let _ = self.take(&report, &again(self.flaw));
            // Asked for one flaw, one asks how the story goes with it; else whether all are caught.
            let mutations = if self.flaw.is_none() { &scenario.mutations[..] } else { &[] };
            for mutation in mutations {
                let flaw = Some(mutation.flaw);
                let mut seeds = so_many(seed, mutation.seeds);
                if seeds.all(|seed| scenario_report(&scenario, &name, seed, flaw, Keep::Last).is_clean()) {
                    let text = format!("the mutation {} must fail here and did not", mutation.flaw.name());
                    let unmet = vec![Unmet { line: 0, class: Class::Safety, text }];
                    let missed = Report { seed, story: name.clone(), unmet, ..Report::default() };
                    let _ = self.take(&missed, &again(flaw));
                }
            }
        }
        Ok(())
    }

    /// Counts a run and prints what was found in it. Breaks at the first catch of a mutation.
    fn take(&mut self, report: &Report, again: &str) -> ControlFlow<()> {
        self.summary.fold(report);
        let is_text = self.options.output == Output::Text;
        if report.is_clean() {
            if is_text && self.keep == Keep::All {
                say!("seed {} ({}): nothing found", report.seed, report.story);
                print_lines(&report.last);
            }
            return ControlFlow::Continue(());
        }
        if is_text {
            self.print(report, again);
        } else {
            self.findings.extend(report.findings.iter().map(|finding| finding_json(report, finding, again)));
            self.findings.extend(report.unmet.iter().map(|unmet| unmet_json(report, unmet, again)));
        }
        if self.flaw.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn print(&mut self, report: &Report, again: &str) {
        self.shown += 1;
        if self.shown > TOLD_MAX {
            return;
        }
        let who = format!("seed {} ({})", report.seed, report.story);
        for finding in &report.findings {
            let Finding { at, oracle, class, text } = finding;
            say!("{who}: {} {oracle} at {}: {text}", word(*class), trace::clock(*at));
        }
        for unmet in &report.unmet {
            say!("{who}: {} line {}: {}", word(unmet.class), unmet.line, unmet.text);
        }
        say!("{who}: replay with: {again}");
        if self.shown <= SHOWN_MAX {
            print_lines(&report.last);
        }
    }

    /// Prints the end. The exit code.
    fn finish(&self) -> u8 {
        let verdict: Verdict = self.summary.verdict();
        let elapsed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        match self.options.output {
            Output::Json => say!("{}", self.json(elapsed)),
            Output::Text => {
                let Summary { apart, apart_max, .. } = &self.summary;
                if self.shown > TOLD_MAX {
                    say!("and {} more runs in which something was found", self.shown - TOLD_MAX);
                }
                if *apart > 0 {
                    say!(
                        "overlaps of machines that were suspended, within their bound: {apart}, longest {apart_max}"
                    );
                }
                say!("{}", self.summary.last_line());
            }
        }
        verdict.exit_code()
    }

    fn json(&self, elapsed: u64) -> Value {
        let Summary { seeds, safety, liveness, surplus, apart, apart_max, counters, span, whole_max, .. } =
            &self.summary;
        json!({
            "seeds": seeds,
            "safety": safety,
            "liveness": liveness,
            "surplus": surplus,
            "failovers": self.summary.failovers(),
            "failover_p50_ms": self.summary.failover_p50().ms(),
            "failover_max_ms": self.summary.failover_max().ms(),
            "overlaps_after_resume": apart,
            "overlap_after_resume_max_ms": apart_max.ms(),
            "whole_after_max_ms": whole_max.ms(),
            "virtual_ms": span.ms(),
            "events": counters.events,
            "decisions": counters.decisions,
            "messages": counters.messages,
            "writes": counters.writes,
            "refused": counters.refused,
            "findings": self.findings,
            "elapsed_ms": elapsed,
            "seeds_per_s": machine::per_second(*seeds, elapsed),
            "virtual_s_per_s": machine::per_second(span.secs(), elapsed),
            "rss_max_kib": machine::rss_max_kib(),
        })
    }
}

/// The text of a scenario file.
fn text_of(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(SCENARIO_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len())? > SCENARIO_BYTES_MAX {
        bail!("it is larger than {} KiB", SCENARIO_BYTES_MAX / 1024);
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        let good = String::from_utf8_lossy(good);
        let line = good.matches('\n').count() + 1;
        let column = good.chars().rev().take_while(|c| *c != '\n').count() + 1;
        anyhow!("line {line}, column {column}: here is something that is not text in UTF-8")
    })
}

/// `count` seeds from `first` on, or as many as there are.
fn so_many(first: u64, count: u64) -> RangeInclusive<u64> {
    first..=first.saturating_add(count.saturating_sub(1))
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,=@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A run whose panic is a finding of that run, not the end of all.
fn guarded(seed: u64, job: impl FnOnce() -> Report) -> Report {
    catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(|payload| {
        let message = payload.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message");
        let text = format!("the run panicked: {message}");
        let finding = Finding { at: START, oracle: "D1", class: Class::Safety, text };
        Report { seed, story: "panic".to_owned(), findings: vec![finding], ..Report::default() }
    })
}

fn scenario_report(scenario: &Scenario, name: &str, seed: u64, flaw: Option<Flaw>, keep: Keep) -> Report {
    guarded(seed, || sim::scenario::run::run(scenario, name, seed, flaw, keep).report)
}

/// The one command that repeats a run.
fn replay(seed: u64, profile: &Profile, flaw: Option<Flaw>) -> String {
    let mut command = format!("mainstay sim --from {seed} --seeds 1");
    if profile.name != "default" {
        command += &format!(" --profile {}", profile.name);
    }
    if let Some(flaw) = flaw {
        command += &format!(" --mutate {}", flaw.name());
    }
    command
}

fn word(class: Class) -> &'static str {
    match class {
        Class::Safety => "safety",
        Class::Liveness => "liveness",
        Class::Surplus => "surplus",
    }
}

fn finding_json(report: &Report, finding: &Finding, again: &str) -> Value {
    json!({
        "seed": report.seed,
        "story": report.story,
        "class": word(finding.class),
        "oracle": finding.oracle,
        "at_ms": finding.at.since(START).ms(),
        "text": finding.text,
        "replay": again,
    })
}

fn unmet_json(report: &Report, unmet: &Unmet, again: &str) -> Value {
    json!({
        "seed": report.seed,
        "story": report.story,
        "class": word(unmet.class),
        "line": unmet.line,
        "text": unmet.text,
        "replay": again,
    })
}

fn print_lines(lines: &[String]) {
    for line in lines {
        say!("{line}");
    }
}

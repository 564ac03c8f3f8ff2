//! What one run gave, and what many runs gave together.
//!
//! Responsible for: counting. Leaves to the binary: threads, printing, exit codes.
//!
//! Invariant: a summary depends on the reports and their order alone; integers only.

use api::Duration;

use crate::cluster::Counters;
use crate::oracle::{Class, Finding, Tally};

/// What one run gave.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// What kind of run it was: a story of the schedule, or the name of a scenario file.
    pub story: String,
    /// What the oracles said.
    pub findings: Vec<Finding>,
    /// Expectations of a scenario file that were not met.
    pub unmet: Vec<Unmet>,
    /// What was counted.
    pub tally: Tally,
    /// How much happened.
    pub counters: Counters,
    /// Virtual time that passed.
    pub span: Duration,
    /// From the end of the faults until everything was whole.
    pub whole_after: Option<Duration>,
    /// The last events; empty if nothing was found.
    pub last: Vec<String>,
}

/// An expectation that was not met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// Line of the scenario file.
    pub line: usize,
    /// How bad: something that should be and is not, or something that must not be and is.
    pub class: Class,
    /// What was expected and what was seen.
    pub text: String,
}

/// What many runs gave together.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Runs.
    pub seeds: u64,
    /// Runs with a finding of safety.
    pub safety: u64,
    /// Runs with a finding of liveness.
    pub liveness: u64,
    /// Runs with more of something than explained.
    pub surplus: u64,
    /// Overlaps after a resume, within their bounds.
    pub apart: u64,
    /// The longest of them.
    pub apart_max: Duration,
    /// How much happened.
    pub counters: Counters,
    /// Virtual time that passed, in all runs.
    pub span: Duration,
    /// The longest time from the end of the faults until everything was whole.
    pub whole_max: Duration,
    failovers: Vec<Duration>,
}

/// How a whole series of runs ended, as an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No oracle spoke.
    Clean,
    /// Something happened that must never happen. A surplus counts here: more copies than explained are no delay.
    Unsafe,
    /// Something did not happen in time.
    Stuck,
}

// === impl Report ===

impl Report {
    /// True if nothing was found.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.unmet.is_empty()
    }

    /// True if something of that class was found.
    pub fn has(&self, class: Class) -> bool {
        self.findings.iter().any(|f| f.class == class) || self.unmet.iter().any(|u| u.class == class)
    }
}

// === impl Summary ===

impl Summary {
    /// Adds one run.
    pub fn fold(&mut self, report: &Report) {
        self.seeds += 1;
        self.safety += u64::from(report.has(Class::Safety));
        self.liveness += u64::from(report.has(Class::Liveness));
        self.surplus += u64::from(report.has(Class::Surplus));
        self.apart += report.tally.apart;
        self.apart_max = self.apart_max.max(report.tally.apart_max);
        self.failovers.extend(&report.tally.failovers);
        self.span = self.span + report.span;
        self.whole_max = self.whole_max.max(report.whole_after.unwrap_or_default());
        let (all, one) = (&mut self.counters, &report.counters);
        all.events += one.events;
        all.decisions += one.decisions;
        all.panics += one.panics;
        all.messages += one.messages;
        all.writes += one.writes;
        all.refused += one.refused;
    }

    /// How many failovers were measured.
    pub fn failovers(&self) -> usize {
        self.failovers.len()
    }

    /// Half of the failovers took no longer than this; zero if there were none.
    pub fn failover_p50(&self) -> Duration {
        let mut sorted = self.failovers.clone();
        sorted.sort_unstable();
        // The upper of the two in the middle: a percentile that flatters is of no use.
        sorted.get(sorted.len() / 2).copied().unwrap_or_default()
    }

    /// The longest failover; zero if there were none.
    pub fn failover_max(&self) -> Duration {
        self.failovers.iter().copied().max().unwrap_or_default()
    }

    /// How it ended.
    pub fn verdict(&self) -> Verdict {
        if self.safety > 0 || self.surplus > 0 {
            Verdict::Unsafe
        } else if self.liveness > 0 {
            Verdict::Stuck
        } else {
            Verdict::Clean
        }
    }

    /// The last line of a run of the simulator.
    pub fn last_line(&self) -> String {
        format!(
            "seeds={} safety={} liveness={} surplus={} failover_p50_ms={} failover_max_ms={}",
            self.seeds,
            self.safety,
            self.liveness,
            self.surplus,
            self.failover_p50().ms(),
            self.failover_max().ms()
        )
    }
}

// === impl Verdict ===

impl Verdict {
    /// The exit code (docs/testing.md).
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::Unsafe => 3,
            Self::Stuck => 4,
        }
    }
}

//! One run: a plan carried out on a virtual cluster under the eyes of all oracles.
//!
//! Responsible for: moving the cluster through the plan, feeding the judge, ending the run when everything is whole or
//! its time is up. Leaves to [`crate::schedule`] and [`crate::scenario`] what is planned.

use std::collections::{BTreeSet, VecDeque};

use api::{Duration, Name, Namespace, NodeName, Time};

use crate::cluster::Cluster;
use crate::config::{Config, NAMESPACE, START};
use crate::fault::Fault;
use crate::observe::Fact;
use crate::oracle::{Judge, Promise, Setting};
use crate::report::Report;
use crate::trace::Line;

/// How many of the last events a report keeps.
pub const LAST_EVENTS: usize = 50;
/// How often it is looked whether everything is whole again.
const LOOK: Duration = Duration::from_secs(2);
/// Everything must be whole for this long: what is whole for a moment only is on its way somewhere else.
const WHOLE_FOR: Duration = Duration::from_secs(4);

/// What happens in a run, and what it promises.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What kind of run it is.
    pub story: &'static str,
    /// The cluster.
    pub config: Config,
    /// Acts by their time since the start, in order.
    pub acts: Vec<(Duration, Act)>,
    /// When everything stops going wrong.
    pub calm: Duration,
    /// How long it may take from then on until everything is whole.
    pub settle: Duration,
    /// What it promises.
    pub promises: BTreeSet<Promise>,
}

/// One thing that is done to the cluster.
#[derive(Clone, Debug)]
pub enum Act {
    /// This fault.
    Fault(Fault),
    /// A fault of the machine that a pod runs on when the time comes; nothing if it runs nowhere.
    ToHostOf {
        /// Name of the pod.
        pod: Name,
        /// Which fault.
        fault: fn(NodeName, Duration) -> Fault,
        /// Its duration, where it has one.
        span: Duration,
    },
}

/// Which events a report has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The last ones, and only if something was found.
    Last,
    /// All.
    All,
}

/// A cluster with its judge and the last events.
#[derive(Debug)]
pub struct Stage {
    /// The cluster.
    pub cluster: Cluster,
    /// The judge.
    pub judge: Judge,
    last: VecDeque<Fact>,
    kept: usize,
}

// === impl Stage ===

impl Stage {
    /// A cluster that has just been built.
    pub fn new(config: Config, promises: impl IntoIterator<Item = Promise>, seed: u64) -> Self {
        let setting = Setting::of(&config, promises);
        // Some facts make no line; four times as many are enough for the lines that are asked for.
        let kept = 4 * LAST_EVENTS;
        Self { cluster: Cluster::new(config, seed), judge: Judge::new(setting), last: VecDeque::new(), kept }
    }

    /// Keeps every event for the report, not only the last ones.
    pub fn keep_all(&mut self) {
        self.kept = usize::MAX;
    }

    /// Moves on to `until`.
    pub fn advance(&mut self, until: Time) {
        self.cluster.run_until(until);
        self.judge_new();
    }

    /// Shows the judge what happened since the last time.
    fn judge_new(&mut self) {
        for fact in self.cluster.drain_facts() {
            self.judge.see(&fact);
            self.keep(fact);
        }
    }

    /// The same, and hands out what happened.
    pub fn take_new(&mut self) -> Vec<Fact> {
        let facts = self.cluster.drain_facts();
        for fact in &facts {
            self.judge.see(fact);
            self.keep(fact.clone());
        }
        facts
    }

    fn keep(&mut self, fact: Fact) {
        if self.last.len() == self.kept {
            self.last.pop_front();
        }
        self.last.push_back(fact);
    }

    /// Makes a fault happen now.
    pub fn inject(&mut self, fault: Fault) {
        self.judge.fault(self.cluster.now(), &fault);
        self.cluster.inject(fault);
        self.judge_new();
    }

    /// From now on nothing goes wrong.
    pub fn calm(&mut self) {
        self.judge.calm(self.cluster.now());
        self.cluster.calm();
        self.judge_new();
    }

    /// Where a pod really runs.
    pub fn host_of(&self, namespace: &Namespace, pod: &Name) -> Option<NodeName> {
        let runs = |i: &&crate::observe::Instance| i.namespace == *namespace && i.name == *pod;
        let mut machines = self.judge.scene().machines();
        machines.find_map(|(name, m)| m.running.iter().find(runs).map(|_| name.clone()))
    }

    /// The last events, as lines.
    pub fn last_lines(&self) -> Vec<String> {
        let lines: Vec<String> = self.last.iter().filter_map(Line::of).map(|line| line.to_string()).collect();
        let most = if self.kept == usize::MAX { lines.len() } else { LAST_EVENTS };
        lines[lines.len().saturating_sub(most)..].to_vec()
    }

    /// Waits until everything is whole, for `settle` at most. How long it took, if it became whole.
    pub fn settle(&mut self, settle: Duration) -> Option<Duration> {
        let from = self.cluster.now();
        let mut whole_since = None;
        loop {
            let now = self.cluster.now();
            if self.judge.missing().is_empty() {
                let since = *whole_since.get_or_insert(now);
                if now.since(since) >= WHOLE_FOR {
                    return Some(since.since(from));
                }
            } else {
                whole_since = None;
            }
            if now.since(from) >= settle {
                return whole_since.map(|since| since.since(from));
            }
            self.advance((now + LOOK).min(from + settle));
        }
    }

    /// Ends the run and reports.
    pub fn report(mut self, seed: u64, story: String, whole_after: Option<Duration>) -> Report {
        let counters = self.cluster.counters();
        let now = self.cluster.now();
        self.judge.end(now, counters.panics);
        let findings = self.judge.findings().to_vec();
        let is_asked = !findings.is_empty() || self.kept == usize::MAX;
        let last = if is_asked { self.last_lines() } else { Vec::new() };
        Report {
            seed,
            story,
            findings,
            unmet: Vec::new(),
            tally: self.judge.tally().clone(),
            counters,
            span: now.since(START),
            whole_after,
            last,
        }
    }
}

/// Carries out a plan.
pub fn carry_out(plan: &Plan, seed: u64, keep: Keep) -> Report {
    let mut stage = Stage::new(plan.config.clone(), plan.promises.iter().copied(), seed);
    if keep == Keep::All {
        stage.keep_all();
    }
    for (at, act) in &plan.acts {
        stage.advance(START + *at);
        let fault = match act {
            Act::Fault(fault) => Some(fault.clone()),
            Act::ToHostOf { pod, fault, span } => {
                stage.host_of(&Namespace::from(NAMESPACE), pod).map(|host| fault(host, *span))
            }
        };
        if let Some(fault) = fault {
            stage.inject(fault);
        }
        if !stage.judge.findings().is_empty() {
            break;
        }
    }
    // A run in which something was found ends there: what follows from a broken promise explains nothing.
    let mut whole_after = None;
    if stage.judge.findings().is_empty() {
        stage.advance(START + plan.calm);
        stage.calm();
        whole_after = stage.settle(plan.settle);
    }
    stage.report(seed, plan.story.to_owned(), whole_after)
}

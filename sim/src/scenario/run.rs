//! Carries out a scenario and says what was not as expected.
//!
//! Responsible for: time, names for nodes, looking at expectations whenever something happened. Leaves to [`look`]
//! whether a state holds, to the oracles everything that always must.

mod cast;
mod look;

use std::collections::{BTreeMap, BTreeSet};

use api::flaw::Flaw;
use api::{Duration, NodeName, Time, Uid};

use super::{Expectation, Scenario, What, When, Who};
use crate::config::START;
use crate::observe::{Fact, Observation};
use crate::oracle::Class;
use crate::report::{Report, Unmet};
use crate::run::{Keep, Stage};
use crate::trace::{Line, clock};
use cast::Cast;
use look::Seen;

/// What a scenario gave.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The report.
    pub report: Report,
    /// The short account from the first act on, for the golden trace.
    pub story: String,
}

/// Carries out `scenario`, with a safeguard left out if there is a `flaw`.
pub fn run(scenario: &Scenario, name: &str, seed: u64, flaw: Option<Flaw>, keep: Keep) -> Outcome {
    let mut config = scenario.config.clone();
    config.flaw = flaw;
    let mut stage = Stage::new(config, scenario.promises.iter().copied(), seed);
    if keep == Keep::All {
        stage.keep_all();
    }
    let mut run = Run::new(scenario, stage);
    run.carry_out();
    run.outcome(name, seed)
}

struct Run<'s> {
    scenario: &'s Scenario,
    stage: Stage,
    seen: Seen,
    /// Expectations that are decided: met, or not.
    decided: BTreeSet<usize>,
    unmet: Vec<Unmet>,
    story: Vec<String>,
    first_deed: Option<Time>,
}

// === impl Run ===

impl<'s> Run<'s> {
    fn new(scenario: &'s Scenario, stage: Stage) -> Self {
        Self {
            scenario,
            stage,
            seen: Seen::default(),
            decided: BTreeSet::new(),
            unmet: Vec::new(),
            story: Vec::new(),
            first_deed: None,
        }
    }

    fn carry_out(&mut self) {
        self.take_new();
        for at in self.moments() {
            self.advance(START + at);
            self.at_moment(at);
            for deed in self.scenario.deeds.iter().filter(|deed| deed.at == at) {
                if self.first_deed.is_none() {
                    self.first_deed = Some(self.stage.cluster.now());
                    self.seen.remember(self.stage.judge.scene());
                }
                self.act(deed.line, &deed.what);
            }
            self.look(Begun::Now);
        }
    }

    /// Every moment at which something is done or looked at even if nothing happens.
    fn moments(&self) -> BTreeSet<Duration> {
        let mut moments: BTreeSet<Duration> = self.scenario.deeds.iter().map(|deed| deed.at).collect();
        for expectation in &self.scenario.expectations {
            match expectation.when {
                When::By(at) | When::NotBefore(at) => {
                    moments.insert(at);
                }
                When::Always(from, until) | When::Never(from, until) | When::Seen(from, until) => {
                    moments.extend([from, until]);
                }
            }
        }
        moments.insert(self.scenario.end);
        moments
    }

    fn advance(&mut self, until: Time) {
        while self.stage.cluster.step(until) {
            if self.take_new() {
                self.look(Begun::Before);
            }
        }
        self.stage.cluster.run_until(until);
    }

    /// Takes what happened into account; true if anything did.
    fn take_new(&mut self) -> bool {
        let facts = self.stage.take_new();
        for fact in &facts {
            self.fold(fact);
        }
        !facts.is_empty()
    }

    fn fold(&mut self, fact: &Fact) {
        if let Observation::Noted(note) = &fact.what {
            self.seen.note(note);
        } else if let Observation::Counted(count) = &fact.what {
            self.seen.count(count);
        }
        if self.first_deed.is_some_and(|at| fact.at >= at)
            && let Some(line) = Line::of(fact).filter(|line| line.is_story)
        {
            self.story.push(line.without_ids());
        }
    }

    fn act(&mut self, line: usize, what: &What) {
        match what {
            What::Faults(faults) => {
                // Resolved together: the first of them may depose the leader that the others mean.
                for fault in self.cast().resolve(faults) {
                    self.stage.judge.fault(self.stage.cluster.now(), &fault);
                    self.stage.cluster.inject(fault);
                }
            }
            What::Call(name, who) => match self.find(who) {
                Some(node) => {
                    self.seen.names.insert(name.clone(), node);
                }
                None => self.fail(line, Class::Liveness, format!("there is no node to call {name}")),
            },
            What::Calm => {
                self.stage.judge.calm(self.stage.cluster.now());
                self.stage.cluster.calm();
            }
        }
        self.take_new();
        self.look(Begun::Before);
    }

    /// What names mean now.
    fn cast(&self) -> Cast<'_> {
        let leader = self.stage.cluster.leader().map_or(0, |(server, _)| server);
        Cast { names: &self.seen.names, leader, servers: self.scenario.config.servers }
    }

    fn find(&self, who: &Who) -> Option<NodeName> {
        match who {
            Who::HostOf(pod) => self.stage.host_of(&pod.namespace, &pod.name),
            Who::Not(names) => {
                let cast = self.cast();
                let taken: Vec<NodeName> = names.iter().map(|name| cast.node(name)).collect();
                let nodes = self.scenario.config.nodes.iter().map(|node| &node.name);
                nodes.clone().find(|name| !taken.contains(name)).cloned()
            }
        }
    }

    /// Looks at what must hold all the time, or never, or once. A range that begins in the moment of an act begins
    /// after that act.
    fn look(&mut self, begun: Begun) {
        let now = self.stage.cluster.now().since(START);
        let inside = |from: Duration, until: Duration| {
            (from < now || from == now && begun == Begun::Now) && now <= until
        };
        for (index, expectation) in self.scenario.expectations.iter().enumerate() {
            let bad = match expectation.when {
                When::NotBefore(at) => now < at && self.holds(index, expectation),
                When::Always(from, until) => {
                    inside(from, until) && !self.is_decided(index) && !self.stage_holds(expectation)
                }
                When::Never(from, until) => inside(from, until) && self.holds(index, expectation),
                When::Seen(from, until) => {
                    if inside(from, until) && self.holds(index, expectation) {
                        self.decided.insert(index);
                    }
                    false
                }
                When::By(_) => false,
            };
            if bad {
                self.miss(index, expectation, Class::Safety);
            }
        }
    }

    /// Looks at what must hold at this very moment.
    fn at_moment(&mut self, at: Duration) {
        self.take_new();
        self.look(Begun::Before);
        for (index, expectation) in self.scenario.expectations.iter().enumerate() {
            let due = match expectation.when {
                When::By(by) => by == at && !self.stage_holds(expectation),
                When::Seen(_, until) => until == at && !self.is_decided(index),
                When::NotBefore(_) | When::Always(..) | When::Never(..) => false,
            };
            if due {
                self.miss(index, expectation, Class::Liveness);
            }
        }
    }

    fn is_decided(&self, index: usize) -> bool {
        self.decided.contains(&index)
    }

    /// True if it is still undecided and its state holds.
    fn holds(&self, index: usize, expectation: &Expectation) -> bool {
        !self.is_decided(index) && self.stage_holds(expectation)
    }

    fn stage_holds(&self, expectation: &Expectation) -> bool {
        self.seen.holds(&self.stage, &expectation.state)
    }

    fn miss(&mut self, index: usize, expectation: &Expectation, class: Class) {
        self.decided.insert(index);
        let seen = self.seen.describe(&self.stage, &expectation.state);
        let at = clock(self.stage.cluster.now());
        self.fail(expectation.line, class, format!("{}: at {at} {seen}", expectation.text));
    }

    fn fail(&mut self, line: usize, class: Class, text: String) {
        self.unmet.push(Unmet { line, class, text });
    }

    fn outcome(mut self, name: &str, seed: u64) -> Outcome {
        let mut story = self.story.join("\n");
        story.push('\n');
        let unmet = std::mem::take(&mut self.unmet);
        let last = self.stage.last_lines();
        let mut report = self.stage.report(seed, name.to_owned(), None);
        if !unmet.is_empty() {
            report.last = last;
        }
        report.unmet = unmet;
        Outcome { report, story }
    }
}

/// Which ranges are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    /// Those that began earlier.
    Before,
    /// Also those that begin now.
    Now,
}

/// Uids at the first act.
type Uids = BTreeMap<String, Uid>;

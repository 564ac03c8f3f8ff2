//! Carries out a scenario and says what was not as expected.
//!
//! Responsible for: time, names for nodes, looking at expectations whenever something happened. Leaves to [`look`]
//! whether a state holds, to the oracles everything that always must.

mod look;

use std::collections::{BTreeMap, BTreeSet};

use api::flaw::Flaw;
use api::{Duration, NodeName, Time, Uid};

use super::{Expectation, Scenario, What, When};
use crate::config::START;
use crate::fault::{Fault, Party};
use crate::observe::{Fact, Observation};
use crate::oracle::Class;
use crate::report::{Report, Unmet};
use crate::run::{Keep, Stage};
use crate::trace::{Line, clock};
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
                self.act(&deed.what);
            }
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
                self.look();
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
        match &fact.what {
            Observation::Noted(note) => self.seen.note(note),
            Observation::Counted(count) => self.seen.count(count),
            _ => {}
        }
        if self.first_deed.is_some_and(|at| fact.at >= at)
            && let Some(line) = Line::of(fact).filter(|line| line.is_story)
        {
            self.story.push(line.without_ids());
        }
    }

    fn act(&mut self, what: &What) {
        match what {
            What::Faults(faults) => {
                for fault in faults {
                    let fault = renamed(fault, &self.seen.names);
                    self.stage.judge.fault(self.stage.cluster.now(), &fault);
                    self.stage.cluster.inject(fault);
                }
            }
            What::Call { name, namespace, pod } => match self.stage.host_of(namespace, pod) {
                Some(host) => {
                    self.seen.names.insert(name.clone(), host);
                }
                None => self.fail(0, Class::Liveness, format!("pod {namespace}/{pod} runs nowhere: nothing to call {name}")),
            },
            What::Calm => {
                self.stage.judge.calm(self.stage.cluster.now());
                self.stage.cluster.calm();
            }
        }
        self.take_new();
        self.look();
    }

    /// Looks at what must hold all the time, or never, or once.
    fn look(&mut self) {
        let now = self.stage.cluster.now().since(START);
        for (index, expectation) in self.scenario.expectations.iter().enumerate() {
            let bad = match expectation.when {
                When::NotBefore(at) => now < at && self.holds(index, expectation),
                When::Always(from, until) => from <= now && now <= until && !self.is_decided(index) && !self.holds(index, expectation),
                When::Never(from, until) => from <= now && now <= until && self.holds(index, expectation),
                When::Seen(from, until) => {
                    if from <= now && now <= until && self.holds(index, expectation) {
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
        self.look();
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

/// Uids at the first act.
type Uids = BTreeMap<String, Uid>;

/// The fault with the names of nodes resolved.
fn renamed(fault: &Fault, names: &BTreeMap<NodeName, NodeName>) -> Fault {
    let node = |name: &NodeName| names.get(name).unwrap_or(name).clone();
    let party = |party: &Party| match party {
        Party::Node(name) => Party::Node(node(name)),
        Party::Server(_) | Party::Store => party.clone(),
    };
    match fault {
        Fault::PowerOff(n) => Fault::PowerOff(node(n)),
        Fault::PowerOn(n) => Fault::PowerOn(node(n)),
        Fault::Reboot(n, span) => Fault::Reboot(node(n), *span),
        Fault::AnnouncedReboot(n, span) => Fault::AnnouncedReboot(node(n), *span),
        Fault::Suspend { node: n, clock_runs } => Fault::Suspend { node: node(n), clock_runs: *clock_runs },
        Fault::Resume(n) => Fault::Resume(node(n)),
        Fault::KillAgent(n, span) => Fault::KillAgent(node(n), *span),
        Fault::KillGuard(n, span) => Fault::KillGuard(node(n), *span),
        Fault::Cut(a, b) => Fault::Cut(party(a), party(b)),
        Fault::Heal(a, b) => Fault::Heal(party(a), party(b)),
        Fault::Taint(n, taint) => Fault::Taint(node(n), taint.clone()),
        Fault::Untaint(n, key) => Fault::Untaint(node(n), key.clone()),
        Fault::DeleteNode(n) => Fault::DeleteNode(node(n)),
        Fault::HealAll
        | Fault::Loss(_)
        | Fault::Delay(_)
        | Fault::CrashServer(_)
        | Fault::StartServer(_)
        | Fault::PauseServer { .. }
        | Fault::ResumeServer(_)
        | Fault::LoseAnswers(_)
        | Fault::StaleView(..)
        | Fault::ForceDelete(..)
        | Fault::DeletePod(..)
        | Fault::DropFinalizers(..)
        | Fault::Scale(..) => fault.clone(),
    }
}

//! Oracles: what must hold, judged on what really happens.
//!
//! Responsible for: one list of oracles, each with its id from docs/invariants.md, and the judge that feeds them every
//! fact and asks them at the end. Leaves to [`scene`] the memory of the world that all of them share, to
//! [`crate::run`] when a run ends.
//!
//! Invariants: no oracle looks at a mind, only at facts. An oracle says one thing once. What a suspended machine may
//! do after it was resumed is bounded and counted apart ([`Tally`]); beyond its bound it is a finding like any other.

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "an oracle picks the facts that it judges; a new kind of fact concerns it as little as the rest"
)]

mod evidence;
mod failover;
mod identity;
pub mod scene;
mod still;
mod surplus;
mod twice;
mod whole;

use std::collections::BTreeSet;

use api::timing::{Automatic, Timing};
use api::{Duration, Time};

use crate::config::Config;
use crate::fault::Fault;
use crate::observe::Fact;
use scene::Scene;

/// How bad it is if an oracle speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Something happened that must never happen.
    Safety,
    /// Something did not happen in time.
    Liveness,
    /// There is more of something than anything explains.
    Surplus,
}

/// One oracle.
#[derive(Debug)]
pub struct Oracle {
    /// Its id in docs/invariants.md.
    pub id: &'static str,
    /// What must hold, in one sentence.
    pub says: &'static str,
    /// How bad it is if it speaks.
    pub class: Class,
    make: fn() -> Box<dyn Watch>,
}

/// Every oracle. The order is the order in which they are fed.
pub static ORACLES: &[Oracle] = &[
    // Invariant S1.
    Oracle {
        id: "S1",
        says: "an exclusive pod never runs twice at the same time",
        class: Class::Safety,
        make: || Box::new(twice::Pods::default()),
    },
    // Invariant V1.
    Oracle {
        id: "V1",
        says: "a volume for one node is never usable on two",
        class: Class::Safety,
        make: || Box::new(twice::Volumes::default()),
    },
    // Invariant E1.
    Oracle {
        id: "E1",
        says: "no irreversible act without evidence that is true",
        class: Class::Safety,
        make: || Box::new(evidence::Proofs::default()),
    },
    // Invariant T1.
    Oracle {
        id: "T1",
        says: "a tombstone goes only when its pod really does not run",
        class: Class::Safety,
        make: || Box::new(evidence::Tombstones),
    },
    // Invariant B1.
    Oracle {
        id: "B1",
        says: "while all nodes are silent at once, nothing is withdrawn or evicted",
        class: Class::Safety,
        make: || Box::new(still::Withdrawn::default()),
    },
    // Invariant O1.
    Oracle {
        id: "O1",
        says: "an outage of the control plane alone stops no workload",
        class: Class::Safety,
        make: || Box::new(still::Stopped::default()),
    },
    // Invariant F3.
    Oracle {
        id: "F3",
        says: "a node that reboots within the window keeps its pods",
        class: Class::Safety,
        make: || Box::new(still::Moved::default()),
    },
    // Invariant N1.
    Oracle {
        id: "N1",
        says: "at most one incident per node uid is open",
        class: Class::Safety,
        make: || Box::new(identity::Incidents),
    },
    // Invariant U1.
    Oracle {
        id: "U1",
        says: "a pod starts only under the node uid that it was bound to",
        class: Class::Safety,
        make: || Box::new(identity::Bindings),
    },
    // Invariant G1.
    Oracle {
        id: "G1",
        says: "a controller's write lands only while its server leads",
        class: Class::Safety,
        make: || Box::new(identity::Terms::default()),
    },
    // Invariant D1.
    Oracle {
        id: "D1",
        says: "no decision panics",
        class: Class::Safety,
        make: || Box::new(identity::Panics),
    },
    // Invariant W1.
    Oracle {
        id: "W1",
        says: "a workload never has more pods than it wishes and its dead nodes explain",
        class: Class::Surplus,
        make: || Box::new(surplus::Workloads::default()),
    },
    // Invariant F2.
    Oracle {
        id: "F2",
        says: "when one node dies, its StatefulSet pods run elsewhere within the budget",
        class: Class::Liveness,
        make: || Box::new(failover::Failovers::default()),
    },
    // Invariant L1.
    Oracle {
        id: "L1",
        says: "after the faults have stopped everything that should run runs, and nothing else",
        class: Class::Liveness,
        make: || Box::new(whole::Whole),
    },
];

/// What a run promises beyond what always holds. A schedule or a scenario file states it; the oracle of the same name
/// judges only runs that promise it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    /// B1: the control plane is the odd one out.
    NothingWithdrawn,
    /// O1: only the control plane fails, and the nodes can hear each other.
    NothingStops,
    /// F3: a node reboots within the window and nothing else happens.
    NothingMoves,
    /// F2: one node loses power and nothing else happens.
    FailsOver,
    /// L1: the run ends in calm for long enough.
    Whole,
}

/// What oracles are told about a run before it begins.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The times that the run is held against.
    pub timing: Timing,
    /// How far clocks really are off, at most.
    pub drift_ppm: u64,
    /// What this run promises.
    pub promises: BTreeSet<Promise>,
}

/// One word of one oracle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// When.
    pub at: Time,
    /// The oracle's id.
    pub oracle: &'static str,
    /// How bad.
    pub class: Class,
    /// What was seen.
    pub text: String,
}

/// What is counted although nothing is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Overlaps after a suspended machine was resumed, each within its bound.
    pub apart: u64,
    /// The longest of them, in running time.
    pub apart_max: Duration,
    /// Power cut to Running elsewhere, one per StatefulSet pod that moved.
    pub failovers: Vec<Duration>,
}

/// Where an oracle speaks.
#[derive(Debug)]
pub struct Voice<'j> {
    at: Time,
    oracle: &'static Oracle,
    findings: &'j mut Vec<Finding>,
    tally: &'j mut Tally,
}

/// One oracle at work in one run.
pub trait Watch: std::fmt::Debug {
    /// A fact was stated; `scene` holds it already.
    fn see(&mut self, scene: &Scene, fact: &Fact, voice: &mut Voice<'_>);

    /// The run is over.
    fn end(&mut self, _scene: &Scene, _voice: &mut Voice<'_>) {}
}

/// All oracles at work in one run.
#[derive(Debug)]
pub struct Judge {
    scene: Scene,
    watches: Vec<(&'static Oracle, Box<dyn Watch>)>,
    findings: Vec<Finding>,
    tally: Tally,
}

/// More findings than this of one run say nothing new.
const FINDINGS_MAX: usize = 20;

// === impl Setting ===

impl Setting {
    /// The setting of a run of `config` that promises `promises`.
    pub fn of(config: &Config, promises: impl IntoIterator<Item = Promise>) -> Self {
        Self {
            timing: config.timing,
            drift_ppm: u64::from(config.drift_ppm),
            promises: promises.into_iter().collect(),
        }
    }

    /// True if fencing and failover happen without a human.
    pub fn is_automatic(&self) -> bool {
        self.timing.automatic == Automatic::On
    }

    /// What a span by the clock of a slow machine may take in truth.
    fn slow(&self, span: Duration) -> Duration {
        const MILLION: u64 = 1_000_000;
        span.ratio_up(MILLION, MILLION.saturating_sub(self.drift_ppm).max(1))
    }

    /// How long work of the old time may run after a machine was resumed, in its own running time.
    pub fn afterlife(&self, clock_runs: bool) -> Duration {
        let kill = self.slow(self.timing.kill_bound);
        if clock_runs { kill } else { kill + self.slow(self.timing.grant.max(self.timing.council_answer)) }
    }
}

// === impl Voice ===

impl Voice<'_> {
    /// The oracle speaks.
    pub fn say(&mut self, text: impl Into<String>) {
        let finding =
            Finding { at: self.at, oracle: self.oracle.id, class: self.oracle.class, text: text.into() };
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        }
    }

    /// An overlap after a resume is over; it ran that long.
    pub fn count_apart(&mut self, ran: Duration) {
        self.tally.apart += 1;
        self.tally.apart_max = self.tally.apart_max.max(ran);
    }

    /// A pod runs elsewhere, that long after the power cut.
    pub fn count_failover(&mut self, took: Duration) {
        self.tally.failovers.push(took);
    }
}

// === impl Judge ===

impl Judge {
    /// All oracles, before the first fact.
    pub fn new(setting: Setting) -> Self {
        Self {
            scene: Scene::new(setting),
            watches: ORACLES.iter().map(|oracle| (oracle, (oracle.make)())).collect(),
            findings: Vec::new(),
            tally: Tally::default(),
        }
    }

    /// A fault is about to happen.
    pub fn fault(&mut self, at: Time, fault: &Fault) {
        self.scene.fault(at, fault);
    }

    /// From now on nothing goes wrong any more.
    pub fn calm(&mut self, at: Time) {
        self.scene.calm(at);
    }

    /// A fact was stated.
    pub fn see(&mut self, fact: &Fact) {
        self.scene.fold(fact);
        for (oracle, watch) in &mut self.watches {
            let mut voice =
                Voice { at: fact.at, oracle, findings: &mut self.findings, tally: &mut self.tally };
            watch.see(&self.scene, fact, &mut voice);
        }
    }

    /// The run is over; that many decisions panicked. A run that ended early because something was found is not asked
    /// what is missing.
    pub fn end(&mut self, now: Time, panics: u64) {
        self.scene.end(now, panics);
        if !self.findings.is_empty() {
            return;
        }
        for (oracle, watch) in &mut self.watches {
            let mut voice = Voice { at: now, oracle, findings: &mut self.findings, tally: &mut self.tally };
            watch.end(&self.scene, &mut voice);
        }
    }

    /// What is still missing until everything is whole.
    pub fn missing(&self) -> Vec<String> {
        whole::missing(&self.scene)
    }

    /// What was said so far.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// What was counted so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// What the oracles know.
    pub fn scene(&self) -> &Scene {
        &self.scene
    }
}

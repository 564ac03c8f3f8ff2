//! A whole cluster in virtual time: the one door of this crate.
//!
//! Responsible for: putting machines, servers, store, network and human together and moving them through time, event
//! by event. Leaves to the modules beside it what each of them does, to `oracle` to judge the facts.
//!
//! Invariant: a run depends on its config, its seed and the faults injected, and on nothing else.

use std::collections::BTreeSet;

use api::view::View;
use api::{BootId, Epoch, Name, NodeName, ObjectKey, Rev, Time};

use crate::config::Config;
use crate::fault::Fault;
use crate::observe::{Fact, Instance};

/// See the module's header.
#[derive(Debug)]
pub struct Cluster {
    config: Config,
}

/// What a machine really does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineTruth {
    /// Its name.
    pub name: NodeName,
    /// Its boot, while it has power.
    pub boot: Option<BootId>,
    /// Nothing on it moves.
    pub suspended: bool,
    /// What runs on it, also while it is suspended.
    pub running: BTreeSet<Instance>,
    /// PersistentVolumes that it can write to.
    pub mounted: BTreeSet<Name>,
}

/// How much happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Events handled.
    pub events: u64,
    /// Decisions made by all servers, in all their lives.
    pub decisions: u64,
    /// Decisions that panicked: each is a bug.
    pub panics: u64,
    /// Messages sent.
    pub messages: u64,
    /// Writes that changed the store.
    pub writes: u64,
    /// Writes that the law refused.
    pub refused: u64,
}

impl Cluster {
    /// A cluster at [`crate::config::START`]: servers and machines start now, workloads are created now.
    pub fn new(config: Config, seed: u64) -> Self {
        todo!("{config:?} {seed}")
    }

    /// What it was built from.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Virtual time.
    pub fn now(&self) -> Time {
        todo!()
    }

    /// Handles the next event if it is not later than `limit`; false if there is none. Time then is the event's.
    pub fn step(&mut self, limit: Time) -> bool {
        todo!("{limit:?}")
    }

    /// Handles every event up to `until`; time then is `until`.
    pub fn run_until(&mut self, until: Time) {
        todo!("{until:?}")
    }

    /// Makes a fault happen now. States `Observation::Fault` first, then what follows from it at once.
    pub fn inject(&mut self, fault: Fault) {
        todo!("{fault:?}")
    }

    /// States in the facts that from now on nothing goes wrong any more: heals the network, powers everything on,
    /// resumes and restarts what stands still.
    pub fn calm(&mut self) {
        todo!()
    }

    /// Takes the facts that were stated since the last call, in order.
    pub fn drain_facts(&mut self) -> Vec<Fact> {
        todo!()
    }

    /// An object as the store has it, with the revision of its last change.
    pub fn object(&self, key: &ObjectKey) -> Option<(Rev, &View)> {
        todo!("{key:?}")
    }

    /// All objects as the store has them, by key.
    pub fn objects(&self) -> impl Iterator<Item = (&ObjectKey, Rev, &View)> {
        std::iter::empty()
    }

    /// The head of the store.
    pub fn head(&self) -> Rev {
        todo!()
    }

    /// What each machine really does, by name.
    pub fn machines(&self) -> impl Iterator<Item = MachineTruth> {
        std::iter::empty()
    }

    /// What a machine really does.
    pub fn machine(&self, name: &NodeName) -> Option<MachineTruth> {
        todo!("{name}")
    }

    /// Who leads by the word of the store: index of the server and its term. The server may be dead.
    pub fn leader(&self) -> Option<(usize, Epoch)> {
        todo!()
    }

    /// Servers whose process runs and is not paused.
    pub fn servers_up(&self) -> BTreeSet<usize> {
        todo!()
    }

    /// What the leading server's decisions wait for: `(controller, key, reason, message)`.
    pub fn reasons(&self) -> Vec<(String, String, String, String)> {
        todo!()
    }

    /// How much happened.
    pub fn counters(&self) -> Counters {
        todo!()
    }
}

//! A whole cluster in virtual time: the one door of this crate.
//!
//! Responsible for: putting machines, servers, store, network and human together and moving them through time, event
//! by event. Leaves to the modules beside it what each of them does, to `oracle` to judge the facts.
//!
//! ```text
//!   agenda ─► step ─► server ── lease ─┐            facts ─► oracles
//!     ▲               machine: guardian, node, runtime   ▲
//!     │               attacher, human                    │
//!     └── later ◄──────── network, truth ◄── write ──────┘
//! ```
//!
//! Invariant: a run depends on its config, its seed and the faults injected, and on nothing else.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use api::view::View;
use api::{BootId, Duration, Epoch, Name, NodeName, ObjectKey, Rev, Time};
use control::mind::Sent;
use registry::Law;

use crate::agenda::Agenda;
use crate::attacher::Attacher;
use crate::chance::Chance;
use crate::config::{Config, START};
use crate::event::{Event, ToServer};
use crate::fault::Fault;
use crate::machine::Machine;
use crate::network::Network;
use crate::observe::{Fact, Instance, Observation};
use crate::server::{Flight, Server, Standing};
use crate::truth::Truth;

/// See the module's header.
#[derive(Debug)]
pub struct Cluster {
    pub(crate) config: Config,
    pub(crate) law: Law,
    pub(crate) chance: Chance,
    pub(crate) agenda: Agenda<Event>,
    pub(crate) now: Time,
    facts: Vec<Fact>,
    pub(crate) truth: Truth,
    pub(crate) network: Network,
    /// This share of the store's answers, per mille, is lost.
    pub(crate) lose_answers: u32,
    pub(crate) servers: Vec<Server>,
    pub(crate) flights: BTreeMap<u64, Flight>,
    pub(crate) last_flight: u64,
    pub(crate) machines: Vec<Machine>,
    pub(crate) names: BTreeMap<NodeName, usize>,
    pub(crate) attacher: Attacher,
    /// What a human typed and nobody answered yet, in order, with the tries that are left.
    pub(crate) commands: VecDeque<(Fault, u32)>,
    /// Uids are numbers in the order of creation.
    pub(crate) last_uid: u64,
    pub(crate) refused: u64,
    events: u64,
    /// What servers did in lives that are over.
    pub(crate) past: Counters,
    /// Lists that are filled and emptied all the time, kept for their memory.
    pub(crate) sent: Vec<Sent>,
    pub(crate) ops: Vec<Vec<agent::Op>>,
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

// === impl Cluster: time ===

impl Cluster {
    /// A cluster at [`START`]: servers and machines start now, workloads are created now.
    pub fn new(config: Config, seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let drift = config.drift_ppm;
        let server = |chance: &mut Chance| Server::new(chance, START, drift);
        let servers: Vec<Server> = (0..config.servers.max(1)).map(|_| server(&mut chance)).collect();
        let count = servers.len();
        let machines: Vec<Machine> =
            config.nodes.iter().map(|node| Machine::new(node, &mut chance, START, drift, count)).collect();
        let names =
            machines.iter().enumerate().map(|(index, machine)| (machine.name.clone(), index)).collect();
        let mut cluster = Self {
            law: law(&config),
            network: Network::new(config.delay),
            config,
            chance,
            agenda: Agenda::new(),
            now: START,
            facts: Vec::new(),
            truth: Truth::new(),
            lose_answers: 0,
            servers,
            flights: BTreeMap::new(),
            last_flight: 0,
            machines,
            names,
            attacher: Attacher::default(),
            commands: VecDeque::new(),
            last_uid: 0,
            refused: 0,
            events: 0,
            past: Counters::default(),
            sent: Vec::new(),
            ops: Vec::new(),
        };
        cluster.create_workloads();
        for index in 0..cluster.servers.len() {
            cluster.start_server(index);
        }
        for index in 0..cluster.machines.len() {
            cluster.power_on(index);
        }
        cluster
    }

    /// What it was built from.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Virtual time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Handles the next event if it is not later than `limit`; false if there is none. Time then is the event's.
    pub fn step(&mut self, limit: Time) -> bool {
        if self.agenda.next_at().is_none_or(|at| at > limit) {
            return false;
        }
        let Some((at, event)) = self.agenda.take() else { return false };
        debug_assert!(at >= self.now, "time does not go back");
        self.now = at;
        self.events += 1;
        self.handle(event);
        true
    }

    /// Handles every event up to `until`; time then is `until`.
    pub fn run_until(&mut self, until: Time) {
        while self.step(until) {}
        self.now = self.now.max(until);
    }

    /// Makes a fault happen now. States `Observation::Fault` first, then what follows from it at once.
    pub fn inject(&mut self, fault: Fault) {
        self.state(Observation::Fault(format!("{fault:?}")));
        self.make_happen(fault);
    }

    /// From now on nothing goes wrong any more: the network is whole, everything has power, runs and is on time.
    pub fn calm(&mut self) {
        self.state(Observation::Fault("calm".to_owned()));
        self.network.heal_all();
        self.network.set_loss(0);
        self.network.set_late(Duration::ZERO);
        self.lose_answers = 0;
        for index in 0..self.servers.len() {
            self.servers[index].stale = Duration::ZERO;
            self.resume_server(index);
            self.start_server(index);
        }
        for index in 0..self.machines.len() {
            self.resume(index);
            self.power_on(index);
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Server { server, life, .. } => {
                let current = self.servers[server].life == life;
                if current && let Some(Event::Server { what, .. }) = self.hold_for_server(server, event) {
                    self.server_event(server, what);
                }
            }
            Event::ToServer { server, message: ToServer::Call(mut call) } => {
                let standing = self.servers[server].standing;
                if standing != Standing::Up {
                    self.call_not_taken(&mut call, standing);
                }
                let event = Event::ToServer { server, message: ToServer::Call(call) };
                self.deliver_to_server(server, event);
            }
            Event::ToServer { server, message } => {
                self.deliver_to_server(server, Event::ToServer { server, message });
            }
            Event::Machine { machine, boot, .. } => {
                let current = self.machines[machine].boots == boot;
                if current && let Some(Event::Machine { what, .. }) = self.hold_for_machine(machine, event) {
                    self.machine_event(machine, what);
                }
            }
            Event::ToMachine { machine, message } => {
                let event = Event::ToMachine { machine, message };
                if let Some(Event::ToMachine { message, .. }) = self.hold_for_machine(machine, event) {
                    self.message_to_machine(machine, message);
                }
            }
            Event::AtStore { server, life, request } => self.at_store(server, life, request),
            Event::Attacher(event) => self.attacher_event(event),
            Event::Human => self.human_goes_on(),
            Event::PowerOn { machine, after } => {
                if self.machines[machine].boots == after {
                    self.power_on(machine);
                }
            }
        }
    }

    fn deliver_to_server(&mut self, server: usize, event: Event) {
        if let Some(Event::ToServer { message, .. }) = self.hold_for_server(server, event) {
            self.message_to_server(server, message);
        }
    }

    /// States a fact.
    pub(crate) fn state(&mut self, what: Observation) {
        self.facts.push(Fact { at: self.now, what });
    }
}

/// The law of the profile.
fn law(config: &Config) -> Law {
    let secs = i64::try_from(config.timing.default_toleration.secs()).unwrap_or(i64::MAX);
    let automatic = match config.timing.automatic {
        api::timing::Automatic::On => Law::default(),
        api::timing::Automatic::Off => Law::kubernetes(),
    };
    Law { flaw: config.flaw, not_ready_toleration_secs: secs, unreachable_toleration_secs: secs, ..automatic }
}

// === impl Cluster: looking ===

impl Cluster {
    /// Takes the facts that were stated since the last call, in order.
    pub fn drain_facts(&mut self) -> Vec<Fact> {
        std::mem::take(&mut self.facts)
    }

    /// An object as the store has it, with the revision of its last change.
    pub fn object(&self, key: &ObjectKey) -> Option<(Rev, &View)> {
        let object = self.truth.get(key)?;
        Some((object.rev, object.view.as_ref()?))
    }

    /// All objects as the store has them, by key.
    pub fn objects(&self) -> impl Iterator<Item = (&ObjectKey, Rev, &View)> {
        self.truth.objects().filter_map(|(key, object)| Some((key, object.rev, object.view.as_ref()?)))
    }

    /// The head of the store.
    pub fn head(&self) -> Rev {
        self.truth.head()
    }

    /// What each machine really does, in the order of the config.
    pub fn machines(&self) -> impl Iterator<Item = MachineTruth> {
        self.machines.iter().map(truth_of)
    }

    /// What a machine really does.
    pub fn machine(&self, name: &NodeName) -> Option<MachineTruth> {
        self.names.get(name).map(|index| truth_of(&self.machines[*index]))
    }

    /// Who leads by the word of the store: index of the server and its term. The server may be dead.
    pub fn leader(&self) -> Option<(usize, Epoch)> {
        self.truth.leader().map(|leader| (leader.server, leader.epoch))
    }

    /// What the leading server's decisions wait for: controller, key, reason, message.
    pub fn reasons(&self) -> Vec<(String, String, String, String)> {
        let leader = self.truth.leader().and_then(|leader| self.servers[leader.server].mind.as_ref());
        let say = |(name, key, note): (&str, &control::Key, &control::Note)| {
            (name.to_owned(), key.to_string(), note.reason.to_owned(), note.message.clone())
        };
        leader.map(|mind| mind.reasons().map(say).collect()).unwrap_or_default()
    }

    /// How much happened.
    pub fn counters(&self) -> Counters {
        let mut counters = self.past;
        for mind in self.servers.iter().filter_map(|server| server.mind.as_ref()) {
            counters.decisions += mind.tally().decisions;
            counters.panics += mind.tally().panics;
        }
        counters.events = self.events;
        counters.messages = self.network.sent();
        counters.writes = self.truth.writes();
        counters.refused = self.refused;
        counters
    }
}

fn truth_of(machine: &Machine) -> MachineTruth {
    MachineTruth {
        name: machine.name.clone(),
        boot: machine.powered.then(|| machine.boot.clone()),
        suspended: machine.suspended,
        running: machine.host.running().cloned().collect(),
        mounted: machine.host.mounted().cloned().collect(),
    }
}

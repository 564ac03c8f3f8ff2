//! The body of the agent: its process, its timer, its watch of the API, its beats and calls.
//!
//! Responsible for: driving the real `agent::Agent` by the machine's clock, and carrying out what it wants over the
//! network, the disk and the runtime. Leaves to the agent every decision, to [`crate::runtime`] what acts on pods do.
//!
//! Invariants: every op with an id gets exactly one outcome, or its process is no more; the guard hears an answer
//! before the agent does; a watch that broke is followed by a full list.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use agent::{Agent, Event as AgentEvent, Op, OpId, Outcome, Reach, Settings};
use api::message::{Answer, Beat, Closed};
use api::quantity::Quantity;
use api::view::{Pod, View};
use api::{Duration, Kind, Name, Namespace, ObjectKey, Time, Uid};

use crate::cluster::Cluster;
use crate::event::{Event, MachineEvent, ToMachine, ToServer};
use crate::machine::Line;
use crate::network::Site;
use crate::server::Standing;
use crate::truth::Change;
use crate::write::{CALL_PATIENCE, Call};

/// How often an agent looks whether its watch lives, or tries to open one.
const DIAL: (Duration, Duration) = (Duration::from_ms(700), Duration::from_ms(1300));
/// A session that was asked for and not given is asked for again after this long.
const HELLO_AGAIN: Duration = Duration::from_ms(900);
/// A delivery that found the way cut is tried again after this long; the stream may live on.
const STALLED: Duration = Duration::from_ms(300);

/// An agent's watch of the API: its Node, pods and tombstones, and the claims of its pods.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// The server it is open to, and the life of that server.
    server: Option<(usize, u32)>,
    tried: usize,
    queue: VecDeque<Change>,
    /// How many of the queue the delivery under way brings.
    bringing: Option<usize>,
    /// Pods that this process knows, from the API or from its ledger.
    pods: BTreeMap<Uid, Arc<Pod>>,
    told_pods: BTreeSet<Uid>,
    told_stones: BTreeSet<Name>,
    claims: BTreeSet<(Namespace, Name)>,
    synced: bool,
}

impl Watch {
    /// A pod as this machine knows it.
    pub(crate) fn pod(&self, uid: &Uid) -> Option<Arc<Pod>> {
        self.pods.get(uid).cloned()
    }
}

// === the process ===

impl Cluster {
    /// The supervisor starts the agent.
    pub(crate) fn start_agent(&mut self, index: usize) {
        if self.machines[index].agent.is_some() {
            return;
        }
        let settings = self.agent_settings(index);
        let machine = &mut self.machines[index];
        machine.agent_life += 1;
        let ledger = machine.read_disk();
        machine.watch = Watch::default();
        machine.watch.pods =
            ledger.pods_by_uid.iter().map(|(uid, entry)| (uid.clone(), Arc::clone(&entry.pod))).collect();
        let mut ops = Vec::new();
        machine.agent = Some(Box::new(Agent::start(machine.local(self.now), settings, ledger, &mut ops)));
        machine.agent_wake = None;
        let life = machine.agent_life;
        let list = machine.host.list();
        for op in ops {
            self.agent_op(index, op);
        }
        self.agent_step(index, AgentEvent::Observed(list));
        let soon = self.chance.span(Duration::from_ms(1), Duration::from_ms(100));
        self.in_machine(index, soon, MachineEvent::Dial { life });
        for server in 0..self.servers.len() {
            self.say_hello(index, server);
        }
    }

    /// The agent process dies. What runs goes on, acts under way end by themselves.
    pub(crate) fn kill_agent(&mut self, index: usize, back_after: Duration) {
        let machine = &mut self.machines[index];
        if machine.agent.take().is_none() {
            return;
        }
        machine.agent_wake = None;
        machine.watch.server = None;
        machine.watch.queue.clear();
        machine.sessions.fill(Line::Closed(Time::ZERO));
        self.in_machine(index, back_after, MachineEvent::AgentStart);
    }

    fn agent_settings(&self, index: usize) -> Settings {
        let machine = &self.machines[index];
        let amounts = [("cpu", "8"), ("memory", "16Gi"), ("pods", "250"), ("ephemeral-storage", "100Gi")];
        let capacity: BTreeMap<String, Quantity> = amounts
            .iter()
            .filter_map(|(name, amount)| Some(((*name).to_owned(), Quantity::parse(amount).ok()?)))
            .collect();
        let labels = [
            ("kubernetes.io/hostname", machine.name.as_str()),
            ("topology.kubernetes.io/zone", &machine.zone),
        ];
        Settings {
            node: machine.name.clone(),
            boot: machine.boot.clone(),
            machine: format!("machine-{}", machine.name),
            labels: labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            allocatable: capacity.clone(),
            capacity,
            timing: self.config.timing,
            kill_bound: self.config.timing.kill_bound,
            flaw: self.config.flaw,
        }
    }

    pub(crate) fn agent_wake(&mut self, index: usize) {
        let machine = &mut self.machines[index];
        if machine.agent_wake.is_some_and(|at| at <= self.now) {
            machine.agent_wake = None;
            self.agent_step(index, AgentEvent::Tick);
        }
    }

    /// Something happened to the agent: it decides, and what it wants is carried out.
    pub(crate) fn agent_step(&mut self, index: usize, event: AgentEvent) {
        let machine = &mut self.machines[index];
        let Some(agent) = &mut machine.agent else { return };
        let local = machine.clock.local(self.now);
        let mut ops = self.ops.pop().unwrap_or_default();
        agent.step(local, event, &mut ops);
        let wake = machine.clock.virtual_of(agent.next_wake()).max(self.now + Duration::from_ms(1));
        if machine.agent_wake.is_none_or(|set| wake < set) {
            machine.agent_wake = Some(wake);
            let life = machine.agent_life;
            self.in_machine(index, wake.since(self.now), MachineEvent::AgentWake { life });
        }
        for op in ops.drain(..) {
            self.agent_op(index, op);
        }
        self.ops.push(ops);
    }

    fn agent_op(&mut self, index: usize, op: Op) {
        match op {
            Op::Pod { id, uid, act } => self.begin_work(index, id, uid, act),
            Op::Call { id, call } => self.send_call(index, id, *call),
            Op::Keep { id, note } => self.keep(index, id, note),
            Op::Identify(uid) => {
                self.machines[index].identity = uid.clone();
                self.guard_step(index, agent::guard::Event::Identified(uid));
            }
            Op::Beat(beat) => self.send_beat(index, &beat),
            Op::Ask { to, ask } => {
                if let Some(member) = self.names.get(&to.node_name).copied() {
                    let from = self.machines[index].name.clone();
                    self.send_machine(Site::Machine(index), member, ToMachine::Ask { from, ask });
                }
            }
            Op::NoneHere { to, none } => match self.names.get(&to).copied() {
                Some(asker) if asker == index => self.guard_step(index, agent::guard::Event::NoneHere(none)),
                Some(asker) => self.send_machine(Site::Machine(index), asker, ToMachine::NoneHere(none)),
                None => {}
            },
            Op::Closed(closed) => self.send_closed(index, &closed),
        }
    }
}

// === beats ===

impl Cluster {
    /// Begins a session with a server: a round trip, after which beats of this boot are believed to be new.
    pub(crate) fn say_hello(&mut self, index: usize, server: usize) {
        let machine = &mut self.machines[index];
        machine.sessions[server] = Line::Closed(self.now);
        let boot = machine.boots;
        self.send_server(index, server, ToServer::Hello { machine: index, boot });
    }

    /// Beats that nobody answers are sent over new sessions too: a session that is older than a late beat of an earlier
    /// boot would never be believed (P5), and in life a stream may be dead without saying so.
    fn redial(&mut self, index: usize) {
        let timing = &self.config.timing;
        let quiet = timing.beat.times(2) + timing.delay.times(4);
        let machine = &mut self.machines[index];
        if self.now.since(machine.answered) < quiet || self.now.since(machine.redialled) < quiet {
            return;
        }
        machine.redialled = self.now;
        let boot = machine.boots;
        for server in 0..self.servers.len() {
            self.send_server(index, server, ToServer::Hello { machine: index, boot });
        }
    }

    fn send_beat(&mut self, index: usize, beat: &Beat) {
        self.redial(index);
        for server in 0..self.servers.len() {
            match self.machines[index].sessions[server] {
                Line::Open(session) => {
                    let message = ToServer::Beat { machine: index, session, beat: Box::new(beat.clone()) };
                    self.send_server(index, server, message);
                }
                Line::Closed(asked) if self.now.since(asked) >= HELLO_AGAIN => self.say_hello(index, server),
                Line::Closed(_) => {}
            }
        }
    }

    fn send_closed(&mut self, index: usize, closed: &Closed) {
        for server in 0..self.servers.len() {
            self.send_server(index, server, ToServer::Closed(closed.clone()));
        }
    }

    /// A leader answered: the guard hears it first.
    pub(crate) fn beat_answered(&mut self, index: usize, answer: Answer) {
        let (who, sent, recovering) = match &answer {
            Answer::Grant(grant) => (grant.who.clone(), grant.sent, grant.recovering),
            Answer::Denied { who, sent, .. } => (who.clone(), *sent, false),
        };
        self.guard_step(index, agent::guard::Event::Answer(answer));
        let machine = &mut self.machines[index];
        if who.boot == machine.boot && who.uid == machine.identity {
            machine.answered = self.now;
            self.agent_step(index, AgentEvent::LeaderHeard { sent, recovering });
        }
    }
}

// === calls ===

impl Cluster {
    fn send_call(&mut self, index: usize, op: OpId, what: agent::Call) {
        let machine = &self.machines[index];
        let server =
            machine.watch.server.map_or(machine.watch.tried % self.servers.len(), |(server, _)| server);
        let call = Call {
            machine: index,
            boot: machine.boots,
            life: machine.agent_life,
            op,
            uid: machine.identity.clone(),
            what,
            given_up: false,
        };
        let there = self.network.stream(&mut self.chance, Site::Machine(index), Site::Server(server));
        let behind = there.and_then(|there| Some(there + self.way_to_store(server)?));
        match behind {
            Some(delay) => {
                let message = ToServer::Call(Box::new(call));
                self.agenda.put(self.now + delay, Event::ToServer { server, message });
            }
            None => self.answer_call(&call, Outcome::Unreachable, CALL_PATIENCE),
        }
    }

    /// A call has come to a server that does not take it now: its process is gone, or its machine is paused.
    pub(crate) fn call_not_taken(&mut self, call: &mut Call, standing: Standing) {
        let wait = match standing {
            Standing::Down => Duration::from_ms(5),
            Standing::Up | Standing::Paused => CALL_PATIENCE,
        };
        self.answer_call(call, Outcome::Unreachable, wait);
        call.given_up = true;
    }
}

// === the watch ===

impl Cluster {
    fn watch_lives(&self, index: usize, server: usize, life: u32) -> bool {
        let s = &self.servers[server];
        s.life == life
            && s.standing == Standing::Up
            && self.network.connects(Site::Machine(index), Site::Server(server))
    }

    /// Looks after the watch: notices that it broke, opens another.
    pub(crate) fn dial(&mut self, index: usize) {
        let life = self.machines[index].agent_life;
        let again = self.chance.span(DIAL.0, DIAL.1);
        self.in_machine(index, again, MachineEvent::Dial { life });
        if let Some((server, server_life)) = self.machines[index].watch.server {
            if self.watch_lives(index, server, server_life) {
                return;
            }
            let watch = &mut self.machines[index].watch;
            watch.server = None;
            watch.queue.clear();
            watch.bringing = None;
            self.agent_step(index, AgentEvent::Api(Reach::No));
        }
        let server = self.machines[index].watch.tried % self.servers.len();
        let server_life = self.servers[server].life;
        let there = self.network.stream(&mut self.chance, Site::Machine(index), Site::Server(server));
        let reached = self.watch_lives(index, server, server_life) && self.store_connects(server);
        match there.filter(|_| reached) {
            Some(delay) => {
                let what = MachineEvent::Listed { life, server, server_life };
                self.in_machine(index, delay.times(2), what);
            }
            None => self.machines[index].watch.tried += 1,
        }
    }

    /// The lists are there; from here on the watch brings every change.
    pub(crate) fn listed(&mut self, index: usize, server: usize, server_life: u32) {
        if self.machines[index].watch.server.is_some() || !self.watch_lives(index, server, server_life) {
            return;
        }
        let name = self.machines[index].name.clone();
        let mut events = Vec::new();
        let node = ObjectKey::node(&name);
        match self.truth.get(&node).map(|object| (object.rev, &object.view)) {
            Some((rev, Some(View::Node(node)))) => {
                events.push(AgentEvent::Node { node: Arc::clone(node), rev })
            }
            Some(_) | None => events.push(AgentEvent::NodeAbsent),
        }
        self.list_tombstones(index, &mut events);
        self.list_pods(index, &mut events);
        let watch = &mut self.machines[index].watch;
        watch.server = Some((server, server_life));
        watch.queue.clear();
        watch.bringing = None;
        if !watch.synced {
            watch.synced = true;
            events.push(AgentEvent::Synced);
        }
        events.push(AgentEvent::Api(Reach::Yes));
        for event in events {
            self.agent_step(index, event);
        }
    }

    fn list_tombstones(&mut self, index: usize, events: &mut Vec<AgentEvent>) {
        let mut stones = BTreeSet::new();
        for (key, object) in self.truth.of_kind(Kind::Tombstone) {
            if let Some(View::Tombstone(stone)) = &object.view
                && stone.spec.node_name == self.machines[index].name
            {
                stones.insert(key.name.clone());
                events.push(AgentEvent::Tombstone(Arc::clone(stone)));
            }
        }
        let told = std::mem::replace(&mut self.machines[index].watch.told_stones, stones.clone());
        events.extend(told.difference(&stones).cloned().map(AgentEvent::TombstoneRemoved));
    }

    fn list_pods(&mut self, index: usize, events: &mut Vec<AgentEvent>) {
        let name = self.machines[index].name.clone();
        let mut pods = Vec::new();
        for object in self.truth.pods_on(&name) {
            if let Some(View::Pod(pod)) = &object.view {
                pods.push((Arc::clone(pod), object.rev));
            }
        }
        self.machines[index].watch.claims.clear();
        let uids: BTreeSet<Uid> = pods.iter().map(|(pod, _)| pod.metadata.uid.clone()).collect();
        for (pod, rev) in pods {
            self.tell_claims(index, &pod, events);
            self.machines[index].watch.pods.insert(pod.metadata.uid.clone(), Arc::clone(&pod));
            events.push(AgentEvent::Pod { pod, rev });
        }
        let told = std::mem::replace(&mut self.machines[index].watch.told_pods, uids.clone());
        events.extend(told.difference(&uids).cloned().map(AgentEvent::PodRemoved));
    }

    /// What is known of the claims of a pod that the agent has not been told of.
    fn tell_claims(&mut self, index: usize, pod: &Pod, events: &mut Vec<AgentEvent>) {
        for name in pod.claims() {
            let place = (pod.metadata.namespace.clone(), name.clone());
            if self.machines[index].watch.claims.insert(place.clone()) {
                events.push(self.claim_event(place));
            }
        }
    }

    fn claim_event(&self, (namespace, name): (Namespace, Name)) -> AgentEvent {
        let key = ObjectKey::namespaced(Kind::PersistentVolumeClaim, &namespace, name.clone());
        let claim = match self.truth.view(&key) {
            Some(View::PersistentVolumeClaim(claim)) => Some(Arc::clone(claim)),
            Some(_) | None => None,
        };
        let volume = claim.as_ref().and_then(|claim| {
            let key = ObjectKey::cluster(Kind::PersistentVolume, claim.spec.volume_name.clone());
            match self.truth.view(&key) {
                Some(View::PersistentVolume(volume)) => Some(Arc::clone(volume)),
                Some(_) | None => None,
            }
        });
        let claim = claim.filter(|_| volume.is_some());
        AgentEvent::Claim { namespace, name, claim, volume }
    }

    /// A change goes to the machines that watch it.
    pub(crate) fn notify_machines(&mut self, change: &Change) {
        let views = [change.old.as_ref(), change.new.as_ref()];
        let mut last = None;
        for view in views.into_iter().flatten() {
            let machine = match view {
                View::Pod(pod) => self.names.get(&pod.spec.node_name),
                View::Tombstone(stone) => self.names.get(&stone.spec.node_name),
                View::Node(node) => self.names.get(node.metadata.name.as_str()),
                View::PersistentVolumeClaim(_) | View::PersistentVolume(_) => {
                    return self.notify_claim(change);
                }
                View::Lease(_)
                | View::ReplicaSet(_)
                | View::Deployment(_)
                | View::StatefulSet(_)
                | View::DaemonSet(_)
                | View::VolumeAttachment(_)
                | View::Service(_)
                | View::EndpointSlice(_)
                | View::NodeIncident(_)
                | View::Council(_) => return,
            };
            if let Some(machine) = machine.copied().filter(|m| last != Some(*m)) {
                last = Some(machine);
                self.queue_change(machine, change);
            }
        }
    }

    fn notify_claim(&mut self, change: &Change) {
        let key = match (&change.new, &change.old) {
            (Some(View::PersistentVolume(pv)), _) | (None, Some(View::PersistentVolume(pv))) => {
                let Some(claim) = &pv.spec.claim_ref else { return };
                (claim.namespace.clone(), claim.name.clone())
            }
            _ => (change.key.namespace.clone(), change.key.name.clone()),
        };
        for machine in 0..self.machines.len() {
            if self.machines[machine].watch.claims.contains(&key) {
                self.queue_change(machine, change);
            }
        }
    }

    fn queue_change(&mut self, index: usize, change: &Change) {
        let watch = &mut self.machines[index].watch;
        if watch.server.is_some() {
            watch.queue.push_back(change.clone());
            self.bring_soon(index);
        }
    }

    /// Lets the watch bring what is queued now, unless a delivery is under way.
    fn bring_soon(&mut self, index: usize) {
        let machine = &self.machines[index];
        let (Some((server, _)), None) = (machine.watch.server, machine.watch.bringing) else { return };
        let (life, count) = (machine.agent_life, machine.watch.queue.len());
        let to_server = self.way_to_store(server).unwrap_or(STALLED) + self.servers[server].stale;
        let way = self.network.stream(&mut self.chance, Site::Server(server), Site::Machine(index));
        self.machines[index].watch.bringing = Some(count);
        self.in_machine(index, to_server + way.unwrap_or(STALLED), MachineEvent::Feed { life });
    }

    pub(crate) fn watch_feed(&mut self, index: usize) {
        let watch = &self.machines[index].watch;
        let (Some((server, server_life)), Some(count)) = (watch.server, watch.bringing) else { return };
        if !self.watch_lives(index, server, server_life) || !self.store_connects(server) {
            let life = self.machines[index].agent_life;
            self.in_machine(index, STALLED, MachineEvent::Feed { life });
            return;
        }
        self.machines[index].watch.bringing = None;
        let mut events = Vec::new();
        for _ in 0..count {
            let Some(change) = self.machines[index].watch.queue.pop_front() else { break };
            self.tell(index, change, &mut events);
        }
        if !self.machines[index].watch.queue.is_empty() {
            self.bring_soon(index);
        }
        for event in events {
            self.agent_step(index, event);
        }
    }

    fn tell(&mut self, index: usize, change: Change, events: &mut Vec<AgentEvent>) {
        let Change { rev, key, old, new } = change;
        match (old, new) {
            (_, Some(View::Pod(pod))) if pod.spec.node_name == self.machines[index].name => {
                self.tell_claims(index, &pod, events);
                let watch = &mut self.machines[index].watch;
                watch.told_pods.insert(pod.metadata.uid.clone());
                watch.pods.insert(pod.metadata.uid.clone(), Arc::clone(&pod));
                events.push(AgentEvent::Pod { pod, rev });
            }
            (Some(View::Pod(pod)), _) => {
                self.machines[index].watch.told_pods.remove(&pod.metadata.uid);
                events.push(AgentEvent::PodRemoved(pod.metadata.uid.clone()));
            }
            (_, Some(View::Tombstone(stone))) => {
                self.machines[index].watch.told_stones.insert(key.name.clone());
                events.push(AgentEvent::Tombstone(stone));
            }
            (Some(View::Tombstone(_)), None) => {
                self.machines[index].watch.told_stones.remove(&key.name);
                events.push(AgentEvent::TombstoneRemoved(key.name));
            }
            (_, Some(View::Node(node))) => events.push(AgentEvent::Node { node, rev }),
            (Some(View::Node(_)), None) => events.push(AgentEvent::NodeAbsent),
            (_, Some(View::PersistentVolumeClaim(_))) | (Some(View::PersistentVolumeClaim(_)), None) => {
                events.push(self.claim_event((key.namespace, key.name)));
            }
            (_, Some(View::PersistentVolume(pv))) | (Some(View::PersistentVolume(pv)), None) => {
                if let Some(claim) = &pv.spec.claim_ref {
                    events.push(self.claim_event((claim.namespace.clone(), claim.name.clone())));
                }
            }
            (_, _) => {}
        }
    }
}

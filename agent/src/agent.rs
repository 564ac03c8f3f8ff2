//! The agent: one step function for everything that a node decides.
//!
//! Responsible for: taking an event in, letting the part that it concerns look again, and handing out what is to be
//! done. The parts: [`crate::pod`] lives of pods, [`node`] the Node object and its Lease, [`crate::heartbeat`] beats,
//! [`crate::member`] the council. Leaves to the body: carrying ops out, and the guard, which is another process.
//!
//! Invariants: the same events at the same times give the same ops; every op with an id is remembered until its
//! outcome came, and no outcome comes without its op; at most one op per pod and one call per object is in flight.
//!
//! The failure it is for: a node that comes back and acts on what it believed before. Everything that is begun is
//! begun on what is observed, listed and granted *now*.

mod node;
mod pods;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::flaw::Flaw;
use api::message::{Armed, Ask, Beat, Incarnation};
use api::view::Tombstone;
use api::{Name, Time, Uid};

use crate::event::{Event, Outcome, Reach};
use crate::guard::{Phase, Status};
use crate::heartbeat::Heartbeat;
use crate::ledger::{GateEntry, Ledger, NodeEntry, Note};
use crate::member::{Member, Verdict};
use crate::op::{Call, Op, OpId};
use crate::pod::{Ground, Source, Worker};
use crate::settings::Settings;

/// The mind of a node.
#[derive(Clone, Debug)]
pub struct Agent {
    settings: Settings,
    ground: Ground,
    workers_by_uid: BTreeMap<Uid, Worker>,
    /// Tombstones about this node, or about one whose identity is not known yet, by name.
    tombstones_by_name: BTreeMap<Name, Grave>,
    node: node::Desk,
    member: Member,
    /// Identities that this machine had before, newest last.
    former: Vec<Uid>,
    heartbeat: Heartbeat,
    /// The host was observed at least once by this process.
    observed: bool,
    /// What each op in flight is for.
    targets_by_op: BTreeMap<OpId, Target>,
    next_op: OpId,
    /// Pods to be looked at again before the step ends.
    touched: BTreeSet<Uid>,
    ticked_at: Time,
}

/// A tombstone, and what is under way about it.
#[derive(Clone, Debug)]
struct Grave {
    tombstone: Arc<Tombstone>,
    call: Option<OpId>,
    call_at: Time,
}

/// What an op in flight is for.
#[derive(Clone, Debug)]
enum Target {
    /// An act on a pod, or its ledger entry.
    Pod(Uid),
    /// A pod goes out of the ledger.
    Forget(Uid),
    /// The status of a pod.
    Report(Uid),
    /// The final removal of a pod.
    Remove(Uid),
    /// A tombstone.
    Tombstone(Name),
    /// The Node object.
    Node(node::Errand),
    /// The Lease.
    Lease,
    /// A close or open on its way to disk.
    Gate(Uid, GateEntry),
    /// Nobody waits for it.
    Nobody,
}

/// Wait after an API call that got no answer. At half, a returning server is met by twice the calls; at double, a pod's
/// status is that much later after an outage.
const CALL_RETRY: api::Duration = api::Duration::from_secs(1);

// === impl Agent ===

impl Agent {
    /// The agent as its process starts, with what is on disk.
    pub fn start(now: Time, settings: Settings, ledger: Ledger, ops: &mut Vec<Op>) -> Self {
        let node_entry = ledger.node.unwrap_or_default();
        let ground = Ground {
            boot: settings.boot.clone(),
            started: now,
            automatic: settings.timing.automatic,
            beat: settings.timing.beat,
            uid: node_entry.uid,
            node: None,
            announced: BTreeSet::new(),
            node_is_current: false,
            node_gone: false,
            synced: false,
            plan_complete: node_entry.plan_complete,
            reach: None,
            guard: None,
            volumes_by_claim: BTreeMap::new(),
            doomed: BTreeSet::new(),
            shutting_down: false,
        };
        let workers = ledger.pods_by_uid.into_iter().map(|(uid, entry)| {
            let worker = Worker::from_ledger(&uid, entry);
            (uid, worker)
        });
        if !ground.uid.is_empty() {
            ops.push(Op::Identify(ground.uid.clone()));
        }
        Self {
            ground,
            workers_by_uid: workers.collect(),
            tombstones_by_name: BTreeMap::new(),
            node: node::Desk::default(),
            former: node_entry.former,
            member: Member::start(now, ledger.gates_by_uid, settings.timing, settings.flaw),
            heartbeat: Heartbeat::start(now, settings.timing),
            observed: false,
            targets_by_op: BTreeMap::new(),
            next_op: OpId(1),
            touched: BTreeSet::new(),
            ticked_at: now,
            settings,
        }
    }

    /// Something happened at `now`, by this machine's monotonic clock, anchored on the wall clock at start. The body
    /// empties `ops` between two steps.
    pub fn step(&mut self, now: Time, event: Event, ops: &mut Vec<Op>) {
        match event {
            Event::Observed(list) => self.observe_all(now, list),
            Event::PodObserved(seen) => self.observe(now, seen),
            Event::Pod { pod, rev } => self.wish(pod, rev),
            Event::PodRemoved(uid) => self.removed(&uid),
            Event::Synced => self.synced(now, ops),
            Event::Claim { namespace, name, claim, volume } => {
                let key = (namespace, name);
                self.touch_claim(&key.0, &key.1);
                match (claim, volume) {
                    (Some(claim), Some(volume)) => {
                        self.ground.volumes_by_claim.insert(key, (claim, volume));
                    }
                    (Some(_), None) | (None, Some(_) | None) => {
                        self.ground.volumes_by_claim.remove(&key);
                    }
                }
            }
            Event::Tombstone(tombstone) => self.bury(tombstone),
            Event::TombstoneRemoved(name) => {
                self.tombstones_by_name.remove(&name);
                self.count_doomed();
            }
            Event::Node { node, rev } => self.node_seen(now, node, rev, ops),
            Event::NodeAbsent => self.node_absent(now),
            Event::Api(reach) => self.reach(reach),
            Event::Guard(status) => self.guard(now, status),
            Event::LeaderHeard { sent: _, recovering } => {
                self.heartbeat.answered(now);
                self.member.heard(now, recovering);
            }
            Event::Asked { from, ask } => {
                if let Some(none) = self.member.answer(now, &self.ground.uid, &ask) {
                    ops.push(Op::NoneHere { to: from, none });
                }
            }
            Event::Gate(gate) => self.gate(now, &gate, ops),
            Event::Done { id, outcome } => self.done(now, id, outcome, ops),
            Event::RebootAnnounced => {
                self.ground.shutting_down = true;
                self.node.announce(now);
            }
            Event::Tick => self.tick(now),
        }
        self.settle(now, ops);
    }

    /// When a tick is due, if nothing happens before. Never later than a beat after the last tick.
    pub fn next_wake(&self) -> Time {
        let mut wake = self.ticked_at + self.settings.timing.beat;
        if self.is_held_or_granted() {
            wake = wake.min(self.heartbeat.next_wake().max(self.ticked_at + self.settings.timing.asking));
        }
        for worker in self.workers_by_uid.values() {
            wake = worker.wake.map_or(wake, |w| wake.min(w));
        }
        wake
    }

    /// True if nothing exclusive runs or is mounted here: what beats say.
    pub fn is_idle(&self) -> bool {
        self.observed && !self.workers_by_uid.values().any(|w| w.holds_exclusively(&self.ground.boot))
    }

    /// True if this machine may become another node: nothing exclusive is here, and nothing that was begun under the old
    /// identity would come up under the new one.
    fn may_change_identity(&self) -> bool {
        self.ground.uid.is_empty() || (self.is_idle() && !self.workers_by_uid.values().any(Worker::begins))
    }

    /// The worker of a pod, for explanations and tests.
    pub fn worker(&self, uid: &Uid) -> Option<&Worker> {
        self.workers_by_uid.get(uid)
    }

    /// Identity of this node; empty until it is known.
    pub fn uid(&self) -> &Uid {
        &self.ground.uid
    }

    // --- What happened ---

    fn tick(&mut self, now: Time) {
        self.ticked_at = now;
        self.heartbeat.ticked(now);
        for (uid, worker) in &self.workers_by_uid {
            if worker.wake.is_some_and(|w| w <= now) {
                self.touched.insert(uid.clone());
            }
        }
    }

    fn reach(&mut self, reach: Reach) {
        if self.ground.reach == Some(reach) {
            return;
        }
        self.ground.reach = Some(reach);
        if reach == Reach::Yes {
            self.node.retry_now();
            self.workers_by_uid.values_mut().for_each(|w| w.call_at = Time::ZERO);
            self.tombstones_by_name.values_mut().for_each(|g| g.call_at = Time::ZERO);
        }
        self.touch_all();
    }

    fn guard(&mut self, now: Time, status: Status) {
        // The guard of an identity that is no more: it has not been told yet.
        if status.who.uid != self.ground.uid {
            return;
        }
        let before = self.ground.guard.as_ref().map(|(s, _)| s);
        if before.is_some_and(|before| !status.is_news_after(before)) {
            return;
        }
        let broke = before.is_some_and(|b| b.phase == Phase::Live) && status.phase == Phase::Broken;
        self.ground.guard = Some((status.clone(), now));
        self.heartbeat.stamped(now, status);
        for (uid, worker) in &mut self.workers_by_uid {
            if broke && worker.exclusive {
                worker.forgive();
            }
            if worker.blocked {
                self.touched.insert(uid.clone());
            }
        }
    }

    fn bury(&mut self, tombstone: Arc<Tombstone>) {
        let name = tombstone.metadata.name.clone();
        let grave = Grave { tombstone, call: None, call_at: Time::ZERO };
        self.tombstones_by_name.entry(name).or_insert(grave);
        self.count_doomed();
    }

    /// Which pods have a tombstone that names this node. One that had is doomed until nobody wishes it any more: the
    /// watch of pods may be later than that of tombstones, and once the tombstone is gone another may run in its place.
    fn count_doomed(&mut self) {
        let ours = |g: &&Grave| !self.ground.uid.is_empty() && g.tombstone.spec.node_uid == self.ground.uid;
        let stones = self.tombstones_by_name.values().filter(ours).map(|g| g.tombstone.spec.pod_uid.clone());
        let wished = |uid: &&Uid| self.workers_by_uid.get(*uid).is_some_and(Worker::is_wished);
        let doomed: BTreeSet<Uid> = stones.chain(self.ground.doomed.iter().filter(wished).cloned()).collect();
        self.touched.extend(doomed.symmetric_difference(&self.ground.doomed).cloned());
        self.ground.doomed = doomed;
    }

    fn gate(&mut self, now: Time, gate: &api::message::Gate, ops: &mut Vec<Op>) {
        match self.member.gate(gate) {
            Verdict::Ignore => {}
            Verdict::Acknowledge => {
                if let Some(entry) = self.member.gate_of(&gate.uid) {
                    self.acknowledge(now, &gate.uid, entry, ops);
                }
            }
            Verdict::Keep(entry) => {
                let target = Target::Gate(gate.uid.clone(), entry);
                self.keep(Note::Gate(gate.uid.clone(), entry), target, ops);
            }
        }
        if let Some(old) = self.member.forget_one() {
            self.keep(Note::ForgetGate(old), Target::Nobody, ops);
        }
    }

    /// Says that the node is closed here, in the name of every identity that this machine has, or had: it never speaks
    /// as one of the old ones again, and an old membership knows it only by that. Without this a human who deletes the
    /// Node objects of a majority leaves a council that nobody can close any more.
    fn acknowledge(&self, now: Time, uid: &Uid, entry: GateEntry, ops: &mut Vec<Op>) {
        for me in self.former.iter().chain([&self.ground.uid]) {
            if let Some(closed) = self.member.acknowledge(now, me, uid, entry) {
                ops.push(Op::Closed(closed));
            }
        }
    }

    fn synced(&mut self, _now: Time, ops: &mut Vec<Op>) {
        self.ground.synced = true;
        for worker in self.workers_by_uid.values_mut() {
            match worker.source {
                // Only the ledger wanted it, and the list does not.
                Source::Ledger(_) | Source::Unknown => worker.source = Source::Nobody,
                Source::Api(..) | Source::Nobody => {}
            }
        }
        if !self.ground.plan_complete {
            self.ground.plan_complete = true;
            self.keep_node(ops);
        }
        self.touch_all();
    }

    fn done(&mut self, now: Time, id: OpId, outcome: Outcome, ops: &mut Vec<Op>) {
        let target = self.targets_by_op.remove(&id);
        debug_assert!(target.is_some(), "an outcome without its op: {id:?}");
        match target {
            None | Some(Target::Nobody) => {}
            Some(Target::Pod(uid)) => self.pod_done(now, &uid, outcome),
            Some(Target::Forget(uid)) => self.forgotten(&uid),
            Some(Target::Report(uid)) => self.report_done(now, &uid, &outcome),
            Some(Target::Remove(uid)) => self.remove_done(now, &uid, &outcome),
            Some(Target::Tombstone(name)) => {
                if let Some(grave) = self.tombstones_by_name.get_mut(&name) {
                    grave.call = None;
                    grave.call_at = now + CALL_RETRY;
                }
            }
            Some(Target::Node(errand)) => self.node_done(now, errand, &outcome),
            Some(Target::Lease) => self.lease_done(now, &outcome),
            Some(Target::Gate(uid, entry)) => self.acknowledge(now, &uid, entry, ops),
        }
    }

    // --- What follows ---

    /// The end of every step: everything that was touched is looked at again, then what is due goes out.
    fn settle(&mut self, now: Time, ops: &mut Vec<Op>) {
        // A pod is looked at once per step: what its op changes comes back as an event.
        while let Some(uid) = self.touched.pop_first() {
            self.look_at(&uid, now, ops);
        }
        self.settle_tombstones(now, ops);
        self.settle_node(now, ops);
        self.settle_lease(now, ops);
        self.settle_heartbeat(now, ops);
    }

    fn settle_heartbeat(&mut self, now: Time, ops: &mut Vec<Op>) {
        let silent = self.ground.uid.is_empty() || (self.ground.node_gone && self.is_idle());
        if silent {
            return;
        }
        // Invariant C18.
        let guardless = self.settings.flaw == Some(Flaw::GuardlessBeat);
        let due = match self.heartbeat.beat(now) {
            None if guardless => self.heartbeat.guardless_beat(now),
            due => due,
        };
        if let (Some(sent), Some((status, _))) = (due, &self.ground.guard) {
            ops.push(Op::Beat(Box::new(Beat {
                node: self.settings.node.clone(),
                who: self.who(),
                sent,
                council: status.council.as_ref().map(|c| c.epoch).unwrap_or_default(),
                kill_bound: self.settings.kill_bound,
                armed: status.armed,
                idle: self.is_idle(),
            })));
        }
        if let Some(sent) = self.heartbeat.ask(now) {
            self.ask_council(now, sent, ops);
        }
    }

    fn ask_council(&mut self, now: Time, sent: api::message::Stamp, ops: &mut Vec<Op>) {
        let Some(council) = self.ground.guard.as_ref().and_then(|(s, _)| s.council.clone()) else { return };
        let ask = Ask { who: self.who(), sent };
        for seat in &council.seats {
            if seat.node_uid != self.ground.uid {
                ops.push(Op::Ask { to: seat.clone(), ask: ask.clone() });
                continue;
            }
            // Its own vote, under the same rule as anybody's.
            if let Some(none) = self.member.answer(now, &self.ground.uid, &ask) {
                ops.push(Op::NoneHere { to: self.settings.node.clone(), none });
            }
        }
    }

    /// The node's word about pods whose objects went without it: nothing of them is here (any more).
    fn settle_tombstones(&mut self, now: Time, ops: &mut Vec<Op>) {
        if !self.observed {
            return;
        }
        let mut due = Vec::new();
        for (name, grave) in &self.tombstones_by_name {
            let uid = &grave.tombstone.spec.pod_uid;
            // 1. It is about this node. 2. Nothing of the pod is on the host or on its way there. 3. Nobody has
            // been told yet.
            let ours = self.ground.doomed.contains(uid);
            let here = self.workers_by_uid.get(uid).is_some_and(Worker::is_here);
            if ours && !here && grave.call.is_none() && now >= grave.call_at {
                due.push((name.clone(), grave.tombstone.metadata.uid.clone()));
            }
        }
        for (name, uid) in due {
            let key = api::ObjectKey::cluster(api::Kind::Tombstone, name.clone());
            let id = self.call(Call::Remove { key, uid }, Target::Tombstone(name.clone()), ops);
            if let Some(grave) = self.tombstones_by_name.get_mut(&name) {
                grave.call = Some(id);
            }
        }
    }

    fn keep_node(&mut self, ops: &mut Vec<Op>) {
        let entry = NodeEntry {
            uid: self.ground.uid.clone(),
            former: self.former.clone(),
            plan_complete: self.ground.plan_complete,
        };
        self.keep(Note::Node(entry), Target::Nobody, ops);
    }

    fn is_held_or_granted(&self) -> bool {
        self.ground.guard.as_ref().is_some_and(|(s, _)| s.phase == Phase::Live && s.armed == Armed::Yes)
    }

    fn who(&self) -> Incarnation {
        Incarnation { uid: self.ground.uid.clone(), boot: self.settings.boot.clone() }
    }

    fn touch_all(&mut self) {
        self.touched.extend(self.workers_by_uid.keys().cloned());
    }

    fn new_op(&mut self, target: Target) -> OpId {
        let id = self.next_op;
        self.next_op = OpId(id.0 + 1);
        self.targets_by_op.insert(id, target);
        id
    }

    fn keep(&mut self, note: Note, target: Target, ops: &mut Vec<Op>) -> OpId {
        let id = self.new_op(target);
        ops.push(Op::Keep { id, note });
        id
    }

    fn call(&mut self, call: Call, target: Target, ops: &mut Vec<Op>) -> OpId {
        let id = self.new_op(target);
        ops.push(Op::Call { id, call: Box::new(call) });
        id
    }
}

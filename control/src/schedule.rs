//! The scheduler: which pod runs where.
//!
//! Responsible for: binding pods that have no node, and saying why one is not bound. Leaves to [`filter`] which nodes
//! may be chosen, to [`score`] which of them is best, to [`board`] what is taken already. Making room by removing other
//! pods (preemption), topology constraints and affinity between pods are not done yet.
//!
//! One key for the whole cluster: one decision places many pods, each against what the ones before it took, and the
//! revision barrier holds the next decision until the world shows all of them. With a key per pod two decisions of the
//! same revision would both take a node's last place.
//!
//! Invariants:
//! - P13: under the automatic profiles nothing but daemon pods is bound to a node that is suspected, not Ready, about
//!   to reboot or out of service, whatever the pod tolerates or prefers.
//! - S1: a pod whose identity or claim may still be in use somewhere (a tombstone, or another pod object on another
//!   node that is not known to have stopped) is not bound.
//! - The binding of an exclusive pod holds only for the revision of its node that was looked at.

pub(crate) mod board;
pub(crate) mod filter;
mod score;

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use api::edit::Edit;
use api::view::{Condition, ConditionStatus, Node, Pod, View};
use api::{Kind, ObjectKey, Time, Uid};

use crate::controller::{Change, Controller, Key, Scope};
use crate::decision::{Action, Decision, Expect, Note};
use crate::workload::hash;
use crate::world::{Seen, World};
use board::Board;

/// Bindings in one decision. Most of its cost is to sum up the nodes that it looks at, whatever it binds: with a
/// quarter of these a thousand nodes are served half as fast. Twice as many would let a change of a node wait longer
/// before it is taken into account.
const BINDINGS_MAX: usize = 256;
/// Refusals that are written in one decision; the others follow in the next.
const REFUSALS_MAX: usize = 64;
/// With so many possible nodes the search ends: upstream's minimum. More find little better and cost a walk over a
/// large cluster for every pod.
const NODES_ENOUGH: usize = 100;

/// Upstream's name of the scheduler that we are.
const NAME: &str = "default-scheduler";

/// The scheduler.
pub struct Scheduler;

impl Controller for Scheduler {
    fn scope(&self) -> &'static Scope {
        static SCOPE: Scope = Scope {
            name: NAME,
            reads: &[
                Kind::Pod,
                Kind::Node,
                Kind::PersistentVolume,
                Kind::PersistentVolumeClaim,
                Kind::NodeIncident,
                Kind::Tombstone,
            ],
            writes: &[Kind::Pod],
        };
        &SCOPE
    }

    fn touched(&self, change: &Change, world: &World, keys: &mut Vec<Key>) {
        let Change::Object { key, old, new } = change else { return };
        let matters = match (old, new) {
            (Some(View::Pod(old)), Some(View::Pod(new))) => !old.is_bound() || takes_other(old, new),
            (Some(View::Node(old)), Some(View::Node(new))) => looks_other(old, new),
            (Some(View::NodeIncident(old)), Some(View::NodeIncident(new))) => {
                old.status.phase != new.status.phase
            }
            _ => self.scope().reads.contains(&key.kind),
        };
        if matters && world.pods_unbound().any(|p| is_ours(p)) {
            keys.push(Key::Cluster);
        }
    }

    fn decide(&self, world: &World, _key: &Key, now: Time) -> Decision {
        let mut pods: Vec<&Seen<Pod>> = world.pods_unbound().filter(|p| is_ours(p)).collect();
        if pods.is_empty() {
            return Decision::rest();
        }
        pods.sort_by_key(|p| (Reverse(p.spec.priority), p.metadata.creation_timestamp, &p.metadata.uid));
        let mut round = Round::new(world);
        for pod in pods {
            if round.strict.len() + round.bindings.len() >= BINDINGS_MAX {
                break;
            }
            round.place(pod, now);
        }
        round.decision()
    }
}

/// True if this scheduler is to bind the pod.
fn is_ours(pod: &Pod) -> bool {
    let named = pod.spec.scheduler_name.as_str();
    (named.is_empty() || named == NAME) && pod.is_active() && !pod.is_bound()
}

/// True if a bound pod began or ceased to stand in somebody's way.
fn takes_other(old: &Pod, new: &Pod) -> bool {
    old.is_terminal() != new.is_terminal() || old.has_running_container() != new.has_running_container()
}

/// What of a node the scheduler looks at. A heartbeat is nothing, and there are many.
fn looks_other(old: &Node, new: &Node) -> bool {
    old.metadata.uid != new.metadata.uid
        || old.metadata.labels != new.metadata.labels
        || old.metadata.annotations != new.metadata.annotations
        || old.spec != new.spec
        || old.ready() != new.ready()
        || old.status.allocatable != new.status.allocatable
}

/// One decision.
struct Round<'w> {
    world: &'w World,
    board: Board<'w>,
    /// Bindings that hold for one revision of their node only. They go out first: the node's agent writes, too.
    strict: Vec<Action>,
    bindings: Vec<Action>,
    refusals: Vec<Action>,
    /// Pods that could not be placed, by owner: its other pods cannot either, for what is taken only grows.
    hopeless: BTreeMap<&'w Uid, (&'w Pod, String)>,
    waiting: usize,
    why: Option<Note>,
}

impl<'w> Round<'w> {
    fn new(world: &'w World) -> Self {
        Self {
            world,
            board: Board::new(world),
            strict: Vec::new(),
            bindings: Vec::new(),
            refusals: Vec::new(),
            hopeless: BTreeMap::new(),
            waiting: 0,
            why: None,
        }
    }

    fn decision(mut self) -> Decision {
        if let Some(note) = &mut self.why
            && self.waiting > 1
        {
            note.message = format!("{} (and {} more pods wait)", note.message, self.waiting - 1);
        }
        let mut actions = self.strict;
        actions.extend(self.bindings);
        actions.extend(self.refusals);
        Decision { actions, wake: None, why: self.why }
    }

    fn place(&mut self, pod: &'w Seen<Pod>, now: Time) {
        match self.find(pod) {
            Ok(at) => {
                self.bind(pod, self.board.nodes[at]);
                self.board.take(pod, at);
            }
            Err(text) => self.refuse(pod, text, now),
        }
    }

    /// The best node for a pod, or why there is none.
    fn find(&mut self, pod: &'w Seen<Pod>) -> Result<usize, String> {
        if let Some(text) = self.known_hopeless(pod) {
            return Err(text);
        }
        let total = self.board.nodes.len();
        if total == 0 {
            return Err("no nodes available to schedule pods".to_owned());
        }
        let wish = filter::wish(&self.board, pod)
            .map_err(|text| format!("0/{total} nodes are available: {text}."))?;
        let mut possible = Vec::new();
        let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
        // A pod that is pinned to a node begins and, if it fits, ends there. Otherwise where the walk begins differs by
        // pod, so that a large cluster is filled everywhere.
        let pinned = filter::pinned(&pod.spec).and_then(|name| self.board.find(name));
        let enough = if pinned.is_some() { 1 } else { NODES_ENOUGH };
        let anywhere = || usize::try_from(hash(&[pod.metadata.uid.as_str()]) % (total as u64)).unwrap_or(0);
        let first = pinned.unwrap_or_else(anywhere);
        for at in (first..total).chain(0..first) {
            let obstacles = filter::obstacles(&mut self.board, &wish, at);
            if obstacles.is_empty() {
                possible.push(at);
                if possible.len() >= enough {
                    break;
                }
            }
            for obstacle in obstacles {
                *reasons.entry(obstacle.into_owned()).or_default() += 1;
            }
        }
        if let Some(at) = score::best(&mut self.board, &wish, &possible) {
            return Ok(at);
        }
        let text = unavailable(total, &reasons);
        if let Some(owner) = pod.metadata.controller().filter(|_| pod.claims().next().is_none()) {
            self.hopeless.insert(&owner.uid, (&pod.view, text.clone()));
        }
        Err(text)
    }

    fn known_hopeless(&self, pod: &Pod) -> Option<String> {
        let (other, text) = self.hopeless.get(&pod.metadata.controller()?.uid)?;
        // A pod that is held for its own sake (a tombstone) says so for itself.
        let is_alike = other.spec == pod.spec && filter::hold(self.world, pod).is_none();
        is_alike.then(|| text.clone())
    }

    fn bind(&mut self, pod: &Seen<Pod>, node: &Seen<Node>) {
        let key = ObjectKey::node(&node.name());
        let uid = node.metadata.uid.clone();
        let bind = Edit::Bind { node: node.name(), node_uid: uid.clone() };
        let action = Action::edit(pod.key(), pod.rev, bind)
            .expecting(Expect::Uid(pod.key(), pod.metadata.uid.clone()));
        // What must never run twice is bound to the node exactly as it was looked at; another pod to the machine.
        if self.world.is_exclusive(pod) {
            self.strict.push(action.expecting(Expect::At(key, node.rev)));
        } else {
            self.bindings.push(action.expecting(Expect::Uid(key, uid)));
        }
    }

    /// Says once per change why a pod is not bound.
    fn refuse(&mut self, pod: &Seen<Pod>, text: String, now: Time) {
        const KIND: &str = "PodScheduled";
        const REASON: &str = "Unschedulable";
        self.waiting += 1;
        let once = format!("{}/{:x}", pod.metadata.uid, hash(&[&text]));
        let note = Note::warning(pod.key(), "FailedScheduling", text.clone(), once);
        let said = pod.condition(KIND);
        let is_said = said
            .is_some_and(|c| c.status == ConditionStatus::False && c.reason == REASON && c.message == text);
        if !is_said && self.refusals.len() / 2 < REFUSALS_MAX {
            let since =
                said.filter(|c| c.status == ConditionStatus::False).map_or(now, |c| c.last_transition_time);
            let condition = Condition::new(KIND, ConditionStatus::False, REASON, &text, since);
            self.refusals.push(Action::edit(pod.key(), pod.rev, Edit::PodConditions(vec![condition])));
            self.refusals.push(Action::note(note.clone()));
        }
        self.why.get_or_insert(note);
    }
}

/// Upstream's sentence: reasons with their counts, sorted as text.
fn unavailable(total: usize, reasons: &BTreeMap<String, usize>) -> String {
    let mut parts: Vec<String> = reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    parts.sort();
    format!("0/{total} nodes are available: {}.", parts.join(", "))
}

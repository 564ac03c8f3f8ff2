//! Detection: silence makes the conditions of a node Unknown (NLC-01 to NLC-09), and its pods not Ready.
//!
//! Responsible for: which node counts as silent, its four conditions, and the Ready condition of its pods. Leaves to
//! [`super::taint`] what follows from the conditions, to [`super::incident`] the verdict where nodes beat, to the agent
//! every condition of a node that speaks: False is never written here (NLC-06), True neither.
//!
//! Two ways to judge, one way to act:
//! - *Leases* (profile `kubernetes`): upstream's passes. A node is silent if nothing of it changed for longer than the
//!   grace, by this process's own clock (NLC-03); what its clock says is never compared with ours.
//! - *Beats*: the verdict is the incident's. Conditions follow it at once; while a brake holds it, nothing is marked
//!   (case P69: evictions were braked, but every pod was marked not ready, and DNS and ingress failed wholly).
//!
//! Differences from upstream, on purpose: pods are marked by state and not by the pass that flips the node, so a mark
//! that failed, or was undone by the agent, is made again, also after a restart. Pods bound to a node that says of
//! itself that it is not Ready are left to its agent, which is alive (upstream marks those that are bound later).

#[cfg(test)]
mod tests;

use api::edit::Edit;
use api::timing::Detection;
use api::view::{Brake, Condition, ConditionStatus, IncidentPhase, Node, NodeIncident, View};
use api::{Kind, NodeName, ObjectKey, Time, Uid};

use crate::controller::{Change, Controller, Key, Scope};
use crate::decision::{Action, Decision, Note};
use crate::pass;
use crate::world::{Seen, World};

/// The conditions that only a living agent can state (NLC-04), Ready first.
const CONDITIONS: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// Makes the conditions of a silent node Unknown.
pub struct Detect;

/// Makes the pods of a silent node not Ready.
pub struct NotReadyPods;

static DETECT: Scope = Scope {
    name: "node-lifecycle-controller",
    reads: &[Kind::Node, Kind::Lease, Kind::NodeIncident],
    writes: &[Kind::Node],
};

static NOT_READY_PODS: Scope = Scope {
    name: "node-lifecycle-pods",
    reads: &[Kind::Pod, Kind::Node, Kind::NodeIncident],
    writes: &[Kind::Pod],
};

/// What is known about the silence of a node.
struct Silence {
    silent: bool,
    /// When the answer may change by time alone.
    look_at: Option<Time>,
}

// === impl Detect ===

impl Controller for Detect {
    fn scope(&self) -> &'static Scope {
        &DETECT
    }

    fn touched(&self, change: &Change, _world: &World, keys: &mut Vec<Key>) {
        let Change::Object { key, new, .. } = change else { return };
        if key.kind == Kind::Node {
            keys.push(Key::Object(key.clone()));
        } else if let Some(View::NodeIncident(incident)) = new {
            keys.push(Key::Object(ObjectKey::node(&incident.spec.node_name)));
        }
    }

    fn decide(&self, world: &World, key: &Key, now: Time) -> Decision {
        let Some(node) = key.object().and_then(|k| world.node(&NodeName::from(&k.name))) else {
            return Decision::rest();
        };
        let Silence { silent, look_at } = silence(world, node, now);
        let mut decision = Decision { wake: look_at, ..Decision::rest() };
        let ready = node.condition("Ready").map(|c| c.status);
        // NLC-05: only a Ready that would change is worth a write; the other three travel with it.
        if !silent || ready == Some(ConditionStatus::Unknown) {
            return decision;
        }
        let object = ObjectKey::node(&node.name());
        let unknown = CONDITIONS.iter().filter_map(|kind| unknown(node, kind, now)).collect();
        decision.actions.push(Action::edit(object.clone(), node.rev, Edit::NodeConditions(unknown)));
        if ready == Some(ConditionStatus::True) {
            let message = format!("Node {} status is now: NodeNotReady", node.name());
            let once = node.rev.to_string();
            decision.actions.push(Action::note(Note::normal(object, "NodeNotReady", message, once)));
        }
        decision
    }
}

/// NLC-04: the condition as it is on a silent node; `None` if it is Unknown already.
fn unknown(node: &Node, kind: &str, now: Time) -> Option<Condition> {
    let Some(known) = node.condition(kind) else {
        let message = "Kubelet never posted node status.";
        let mut made = Condition::new(kind, ConditionStatus::Unknown, "NodeStatusNeverUpdated", message, now);
        made.last_heartbeat_time = node.metadata.creation_timestamp;
        return Some(made);
    };
    (known.status != ConditionStatus::Unknown).then(|| Condition {
        status: ConditionStatus::Unknown,
        reason: "NodeStatusUnknown".to_owned(),
        message: "Kubelet stopped posting node status.".to_owned(),
        last_transition_time: now,
        ..known.clone()
    })
}

// === silence ===

fn silence(world: &World, node: &Seen<Node>, now: Time) -> Silence {
    match world.settings().timing.detection {
        Detection::Leases => silence_by_lease(world, node, now),
        Detection::Beats => silence_by_beat(world, &node.metadata.uid, now),
    }
}

/// NLC-01 to NLC-03. The answer is that of the last pass: between two passes upstream does not look.
fn silence_by_lease(world: &World, node: &Node, now: Time) -> Silence {
    let timing = &world.settings().timing;
    let grace = match node.condition("Ready") {
        Some(_) => timing.node_monitor_grace,
        None => timing.node_startup_grace,
    };
    let probed = world.memory(&node.name()).map_or(now, |m| m.probed);
    // NLC-30 b: whoever survived "all down" gets a new grace.
    let due = probed.max(world.zones().left_all_full().unwrap_or(Time::ZERO)) + grace;
    let period = timing.node_monitor_period;
    // Strictly later: at the very end of the grace the node is still trusted.
    let silent = pass::last(world, period, now) > due;
    Silence {
        silent,
        look_at: (!silent).then(|| pass::after(world, period, due).max(pass::after(world, period, now))),
    }
}

/// The incident's verdict. A node that came back and fell silent again before its incident was over is silent as well,
/// although its incident does not step back.
fn silence_by_beat(world: &World, uid: &Uid, now: Time) -> Silence {
    let Some(incident) = world.open_incident(uid) else { return Silence { silent: false, look_at: None } };
    // What the incident was opened for may be over: a node that speaks again is not silent, whatever is still to be
    // done about what it held.
    let dead_at = world.pulse.silent_since(uid) + world.settings().timing.dead;
    let is_dead = now >= dead_at;
    match incident.status.phase {
        IncidentPhase::Suspect | IncidentPhase::Closed => Silence { silent: false, look_at: None },
        IncidentPhase::Dead | IncidentPhase::Fencing | IncidentPhase::Fenced => {
            let excused = has_brake(incident) || reports_since_dead(world, incident);
            Silence { silent: is_dead && !excused, look_at: (!is_dead).then_some(dead_at) }
        }
        IncidentPhase::Recovering => Silence { silent: is_dead, look_at: (!is_dead).then_some(dead_at) },
    }
}

/// True if the agent has written its status or lease since the node was dead by its beats: beats are lost, requests over
/// another server are not. It says itself how it is, and would say it again after every "Unknown", without end.
fn reports_since_dead(world: &World, incident: &NodeIncident) -> bool {
    let dead_at = world.pulse.silent_since(&incident.spec.node_uid) + world.settings().timing.dead;
    world.memory(&incident.spec.node_name).is_some_and(|memory| memory.probed > dead_at)
}

/// True if a brake holds that also holds readiness and eviction. `NotArmed` does not: it says that silence proves
/// nothing about what still runs, and upstream's conditions never claimed that.
fn has_brake(incident: &NodeIncident) -> bool {
    incident.status.brakes.iter().any(|brake| *brake != Brake::NotArmed)
}

/// True if nothing may be done to pods because this node is silent: a brake holds its incident.
pub(super) fn is_braked(world: &World, uid: &Uid) -> bool {
    world.settings().timing.detection == Detection::Beats
        && world.open_incident(uid).is_some_and(|i| has_brake(i))
}

// === impl NotReadyPods ===

impl Controller for NotReadyPods {
    fn scope(&self) -> &'static Scope {
        &NOT_READY_PODS
    }

    fn touched(&self, change: &Change, world: &World, keys: &mut Vec<Key>) {
        match change {
            Change::Object { key, new: Some(View::Pod(pod)), .. } if pod.is_bound() && pod.is_ready() => {
                keys.push(Key::Object(key.clone()));
            }
            Change::Object { new: Some(View::Node(node)), .. }
                if node.ready() == ConditionStatus::Unknown =>
            {
                touch_ready_pods(world, &node.name(), keys);
            }
            Change::Object { new: Some(View::NodeIncident(incident)), .. } => {
                touch_ready_pods(world, &incident.spec.node_name, keys);
            }
            // Leaving "all down" lets go of a brake.
            Change::Zones if world.settings().is_automatic() => {
                let unknown = world.nodes().filter(|n| n.ready() == ConditionStatus::Unknown);
                unknown.for_each(|n| touch_ready_pods(world, &n.name(), keys));
            }
            Change::Object { .. } | Change::Zones | Change::Heard(_) => {}
        }
    }

    fn decide(&self, world: &World, key: &Key, now: Time) -> Decision {
        let Some(pod) = key.object().and_then(|k| world.pod(&k.namespace, &k.name)) else {
            return Decision::rest();
        };
        let Some(node) = world.node(&pod.spec.node_name) else { return Decision::rest() };
        let Some(ready) = pod.condition("Ready").filter(|c| c.status == ConditionStatus::True) else {
            return Decision::rest();
        };
        if node.ready() != ConditionStatus::Unknown {
            return Decision::rest();
        }
        if let Some(look_at) = held(world, node, now) {
            return Decision { wake: look_at, ..Decision::rest() };
        }
        // Reason and message stay, as upstream leaves them.
        let marked = Condition { status: ConditionStatus::False, last_transition_time: now, ..ready.clone() };
        let object = pod.key();
        let note = Note::warning(object.clone(), "NodeNotReady", "Node is not ready", pod.rev.to_string());
        Decision::rest()
            .with(Action::edit(object, pod.rev, Edit::PodConditions(vec![marked])))
            .with(Action::note(note))
    }
}

/// `Some` if the mark is held back, and until when at the latest. Under leases it never is (NLC-34).
fn held(world: &World, node: &Seen<Node>, now: Time) -> Option<Option<Time>> {
    if world.settings().timing.detection == Detection::Leases {
        return None;
    }
    let Silence { silent, look_at } = silence_by_beat(world, &node.metadata.uid, now);
    // Case P69: if all are down, it is more likely that this server is alone.
    (!silent || world.zones().all_full()).then_some(look_at)
}

fn touch_ready_pods(world: &World, node: &NodeName, keys: &mut Vec<Key>) {
    keys.extend(world.pods_on(node).filter(|p| p.is_ready()).map(|p| Key::Object(p.key())));
}

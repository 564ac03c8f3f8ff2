//! Reclaim: pods whose node will not take them away any more (pod garbage collection, GC-10 to GC-56).
//!
//! Responsible for: four paths, each pod by the first that fits: *out-of-service* (terminating on a node that a human
//! declared off), *orphaned* (its node is no more), *unscheduled* (terminating and never bound), and *terminated* (too
//! many pods that have ended). Leaves to [`crate::node_death::release`] everything that must never run twice, wherever
//! the automatic layer is on: it has the evidence, and a human's word alone has none.
//!
//! Each pod is a key of its own, decided at the passes of upstream's loop (20 s), so that one pod that cannot be deleted
//! holds up no other. Only the terminated path counts over all pods; its key is the cluster.
//!
//! Invariants:
//! - Every step passes numbered gates; the last compares the Node in the store, in the same transaction, with what was
//!   looked at (cases P11, P105: old copies of a Node led to force-deletes after it had recovered).
//! - A pod is Failed before it goes (GC-50), and both carry its uid (GC-51 has none: a pod made anew is another pod).
//! - A deletion here never removes the fact that an exclusive pod may still run: the law of deletion writes a tombstone.
//!
//! Under the automatic profiles, beyond upstream: the mark that we set ourselves is no human's word; a node that beats
//! is not off, whatever its taints say; a pod belongs to a node *uid*, so that a new Node of the same name orphans the
//! pods of the old one at once (case P86); a static pod that no Node ever owned is somebody else's (case P91).
//!
//! Upstream's `force_delete_pod_errors_total` is not counted: a decision does not learn how its actions ended.

#[cfg(test)]
mod tests;

use api::annotation::{OUT_OF_SERVICE, OUT_OF_SERVICE_OURS};
use api::edit::Edit;
use api::flaw::Flaw;
use api::view::{Condition, ConditionStatus, Node, Pod, View};
use api::{Kind, NodeName, ObjectKey, Time};

use crate::controller::{Change, Controller, Key, Scope};
use crate::decision::{Action, Decision, Deletion, Expect};
use crate::node_death::pulse::is_heard;
use crate::pass;
use crate::world::{Seen, World};

/// Ended pods that one pass removes at most. Upstream removes all at once; a store that is asked for ten thousand
/// deletions by one key serves nobody else meanwhile, and the next pass takes the rest.
const TERMINATED_PER_PASS: usize = 500;

/// Removes pods that nobody else will.
pub struct Reclaim;

static SCOPE: Scope = Scope {
    name: "pod-garbage-collector-controller",
    reads: &[Kind::Pod, Kind::Node, Kind::PersistentVolumeClaim],
    writes: &[Kind::Pod],
};

/// Which path a pod takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    OutOfService,
    Orphaned,
    Unscheduled,
    Terminated,
}

/// A path that a pod may take.
struct Course {
    path: Path,
    /// The first pass at which it may be taken.
    due: Time,
    /// What must hold in the store when it is taken.
    gate: Option<Expect>,
}

impl Controller for Reclaim {
    fn scope(&self) -> &'static Scope {
        &SCOPE
    }

    fn touched(&self, change: &Change, world: &World, keys: &mut Vec<Key>) {
        match change {
            Change::Object { key, new: Some(View::Pod(pod)), .. } => {
                if pod.metadata.is_terminating() || (pod.is_bound() && is_lost(world, pod)) {
                    keys.push(Key::Object(key.clone()));
                }
            }
            Change::Object { old, new, .. } => {
                if let Some(node) = changed_node(old.as_ref(), new.as_ref()) {
                    keys.extend(world.pods_on(&node).map(|p| Key::Object(p.key())));
                }
            }
            // The terminated path keeps itself going from pass to pass; a new leader begins with this change.
            Change::Zones => keys.push(Key::Cluster),
            Change::Heard(_) => {}
        }
    }

    fn decide(&self, world: &World, key: &Key, now: Time) -> Decision {
        let Some(object) = key.object() else { return terminated(world, now) };
        let Some(pod) = world.pod(&object.namespace, &object.name) else { return Decision::rest() };
        let course = out_of_service(world, pod, now)
            .or_else(|| orphaned(world, pod))
            .or_else(|| unscheduled(world, pod));
        let Some(course) = course else { return look_again(world, pod, now) };
        if is_done(pod) {
            return Decision::rest();
        }
        if now < course.due {
            return Decision::wait(course.due);
        }
        Decision { actions: removal(pod, &course, now), ..Decision::rest() }
    }
}

/// The name of a node whose pods should be looked at: it came, went, is another one, or what GC-20 asks of it changed.
fn changed_node(old: Option<&View>, new: Option<&View>) -> Option<NodeName> {
    let node = |view: Option<&View>| match view {
        Some(View::Node(node)) => Some(node.clone()),
        _ => None,
    };
    let answers = |n: &Node| (n.metadata.uid.clone(), n.ready(), n.has_taint(OUT_OF_SERVICE));
    let (old, new) = (node(old), node(new));
    let changed = old.as_deref().map(answers) != new.as_deref().map(answers);
    new.or(old).filter(|_| changed).map(|n| n.name())
}

/// The first pass that sees what changed last at `since`.
fn pass_from(world: &World, since: Time) -> Time {
    pass::from(world, world.settings().timing.pod_gc_period, since)
}

// === the paths ===

/// GC-20: terminating on a node that a human declared off.
fn out_of_service(world: &World, pod: &Seen<Pod>, now: Time) -> Option<Course> {
    let node = world.node(&pod.spec.node_name)?;
    // Gate 1: somebody wants the pod gone already.
    // Gate 2: the node does not say that it is well.
    if !pod.metadata.is_terminating() || node.ready() == ConditionStatus::True {
        return None;
    }
    // Gate 3: a human said that the machine is off. Tolerations do not matter (GC-53).
    if !is_declared_off(world, node) {
        return None;
    }
    // Gate 4, where the layer that proves things is on: the node does not beat either, and the pod may run twice.
    // Anything else goes on evidence, or by its agent.
    if world.settings().is_automatic()
        && (is_heard(world, &node.metadata.uid, now) || world.is_exclusive(pod))
    {
        return None;
    }
    // Gate 5, in the store: the Node is still the one that was looked at.
    let gate = last_gate(world, Expect::Fresh(ObjectKey::node(&node.name()), node.rev));
    // V-12: Failed is half of a removal. The other half waits for no further pass, although the detach that follows at once
    // writes the Node, so that the gate sends the deletion back here.
    let due = if pod.is_terminal() { now } else { pass_from(world, pod.at.max(node.at)) };
    Some(Course { path: Path::OutOfService, due, gate })
}

fn is_declared_off(world: &World, node: &Node) -> bool {
    let by_human = |value: &str| !world.settings().is_automatic() || value != OUT_OF_SERVICE_OURS;
    node.spec.taints.iter().any(|t| t.key == OUT_OF_SERVICE && by_human(&t.value))
}

/// GC-30: the node of the pod is no more.
fn orphaned(world: &World, pod: &Seen<Pod>) -> Option<Course> {
    // Gate 1: it was bound to a node, and that one is not there.
    if !pod.is_bound() || !is_lost(world, pod) {
        return None;
    }
    // Gate 2, where the layer that proves things is on: it may run twice. The machine of a deleted Node may live.
    // Gate 3: it is not a static pod of a machine that never had a Node.
    // An exclusive pod that was never bound in a node's identity was granted nowhere, so it never ran.
    let may_run = world.is_exclusive(pod) && !pod.node_uid().is_empty();
    if world.settings().is_automatic() && (may_run || is_self_managed(pod)) {
        return None;
    }
    let name = &pod.spec.node_name;
    let node = ObjectKey::node(name);
    if let Some(successor) = world.node(name) {
        // Gate 4, in the store: the name still belongs to another machine.
        let gate = last_gate(world, Expect::Fresh(node, successor.rev));
        let due = pass_from(world, pod.at.max(successor.at));
        return Some(Course { path: Path::Orphaned, due, gate });
    }
    // Gate 4: it has been missing for the quarantine, counted from the first pass that saw it missing.
    // Gate 5, in the store: there still is no such Node.
    let missing = pass_from(world, world.absent_since(name).unwrap_or(pod.at));
    let due = pass_from(world, missing + world.settings().timing.gc_quarantine);
    Some(Course { path: Path::Orphaned, due, gate: last_gate(world, Expect::Gone(node)) })
}

/// The gate that looks into the store; left out by the simulator to see whether that is noticed.
fn last_gate(world: &World, gate: Expect) -> Option<Expect> {
    (!world.settings().lacks(Flaw::NoFreshRead)).then_some(gate)
}

/// True if the node that the pod was bound to is gone, whoever has its name now (case P86).
fn is_lost(world: &World, pod: &Pod) -> bool {
    let Some(node) = world.node(&pod.spec.node_name) else { return true };
    let uid = pod.node_uid();
    world.settings().is_automatic() && !uid.is_empty() && uid != node.metadata.uid
}

/// Case P91: a static pod that no Node object ever owned.
fn is_self_managed(pod: &Pod) -> bool {
    pod.is_static() && !pod.metadata.owner_references.iter().any(|o| o.kind == "Node")
}

/// GC-40: terminating and never bound: there is no agent that could confirm.
fn unscheduled(world: &World, pod: &Seen<Pod>) -> Option<Course> {
    if !pod.metadata.is_terminating() || pod.is_bound() {
        return None;
    }
    Some(Course { path: Path::Unscheduled, due: pass_from(world, pod.at), gate: None })
}

/// GC-10: more pods have ended than are kept. Evicted ones first, then the oldest.
fn terminated(world: &World, now: Time) -> Decision {
    let timing = &world.settings().timing;
    let mut decision = Decision::wait(pass::after(world, timing.pod_gc_period, now));
    let kept = usize::try_from(timing.terminated_pod_gc_threshold).unwrap_or(usize::MAX);
    let mut ended: Vec<&Seen<Pod>> = world.pods().filter(|p| p.is_terminal() && !is_done(p)).collect();
    let surplus = ended.len().saturating_sub(kept);
    // A threshold of zero switches the path off.
    if kept == 0 || surplus == 0 {
        return decision;
    }
    ended.sort_by_key(|p| {
        (p.status.reason != "Evicted", p.metadata.creation_timestamp, p.metadata.name.clone())
    });
    let course = Course { path: Path::Terminated, due: now, gate: None };
    let gone = ended.iter().take(surplus.min(TERMINATED_PER_PASS));
    decision.actions = gone.flat_map(|pod| removal(pod, &course, now)).collect();
    decision
}

// === the end of a pod ===

/// GC-50, GC-51: Failed first, then gone.
fn removal(pod: &Seen<Pod>, course: &Course, now: Time) -> Vec<Action> {
    let guarded = |action: Action| match &course.gate {
        Some(gate) => action.expecting(gate.clone()),
        None => action,
    };
    let object = pod.key();
    let mut actions = Vec::new();
    if !pod.is_terminal() {
        let fail = Edit::FailPod {
            reason: String::new(),
            message: String::new(),
            condition: course.path.condition(now),
        };
        actions.push(guarded(Action::edit(object.clone(), pod.rev, fail)));
    }
    let labels = [("namespace", pod.metadata.namespace.as_str()), ("reason", course.path.reason())];
    let delete = Action::delete(object, pod.metadata.uid.clone(), Deletion::Force)
        .counting("pod_gc_collector_force_delete_pods_total", &labels);
    actions.push(guarded(delete));
    actions
}

/// V-17: the object stays for a finalizer's sake, and there is nothing left to do about it.
fn is_done(pod: &Pod) -> bool {
    let forced = pod.metadata.deletion_grace_period_seconds == Some(0);
    pod.is_terminal() && pod.metadata.is_terminating() && forced && !pod.metadata.finalizers.is_empty()
}

/// A pod that no path takes now. Only silence may change that without any object changing.
fn look_again(world: &World, pod: &Pod, now: Time) -> Decision {
    let declared = world
        .node(&pod.spec.node_name)
        .is_some_and(|n| is_declared_off(world, n) && n.ready() != ConditionStatus::True);
    if declared
        && pod.metadata.is_terminating()
        && world.settings().is_automatic()
        && !world.is_exclusive(pod)
    {
        return Decision::wait(pass::after(world, world.settings().timing.pod_gc_period, now));
    }
    Decision::rest()
}

impl Path {
    /// The label of upstream's metric.
    fn reason(self) -> &'static str {
        match self {
            Self::OutOfService => "out-of-service",
            Self::Orphaned => "orphaned",
            Self::Unscheduled => "unscheduled",
            Self::Terminated => "terminated",
        }
    }

    /// GC-30, GC-52: only an orphan is told why.
    fn condition(self, now: Time) -> Option<Condition> {
        match self {
            Self::Orphaned => Some(Condition::new(
                "DisruptionTarget",
                ConditionStatus::True,
                "DeletionByPodGC",
                "PodGC: node no longer exists",
                now,
            )),
            Self::OutOfService | Self::Unscheduled | Self::Terminated => None,
        }
    }
}

//! Taint eviction: a pod leaves a node with NoExecute taints once it has tolerated them long enough (TE-01 to TE-14).
//!
//! Responsible for: the deadline of each pod, its announcement, the DisruptionTarget condition and the graceful
//! deletion. Leaves to [`super::taint`] which taints there are, to [`super::release`] the pods of a node that is proven
//! dead, to the agent the end of the pod. All NoExecute taints count (TE-03), also an out-of-service that a human set:
//! on a node that beats it is an ordinary eviction.
//!
//! From when the time counts:
//! - *default, fast*: from `timeAdded` of each taint, in the object, so that a change of leader changes no answer; a
//!   later and shorter taint may shorten the stay. While a brake holds the incident of the node, "unreachable" is no
//!   reason (case P69).
//! - *kubernetes*: from the moment at which this process saw the first NoExecute taint (TE-12); a taint that comes
//!   later, or in exchange, does not touch a count that runs (TE-07).
//! - Never from before the pod was bound, and never from before this process began to listen: a control plane that was
//!   away for an hour would find every deadline passed and its nodes not heard yet (case P70). A follower listens as
//!   well, so that only a start of the process costs this patience.
//!
//! Differences from upstream, on purpose: the deletion carries the pod's uid (a pod of the same name that was made in
//! between is another pod); pods of a node whose object is gone are left to [`crate::reclaim`]; a toleration that is
//! changed counts at once (case P73b), also for a count that runs.

#[cfg(test)]
mod tests;

use api::annotation::UNREACHABLE;
use api::edit::Edit;
use api::taint::{Stay, Taint, TaintEffect, first_untolerated, stay};
use api::timing::Detection;
use api::view::{Condition, ConditionStatus, Node, Pod, View};
use api::{Kind, NodeName, Time};

use super::detect::is_braked;
use crate::controller::{Change, Controller, Key, Scope};
use crate::decision::{Action, Decision, Deletion, Note};
use crate::world::{Seen, World, no_execute};

/// Evicts pods from tainted nodes.
pub struct Evict;

static SCOPE: Scope = Scope {
    name: "taint-eviction-controller",
    reads: &[Kind::Pod, Kind::Node, Kind::NodeIncident],
    writes: &[Kind::Pod],
};

impl Controller for Evict {
    fn scope(&self) -> &'static Scope {
        &SCOPE
    }

    fn touched(&self, change: &Change, world: &World, keys: &mut Vec<Key>) {
        let Change::Object { key, old, new: Some(new) } = change else { return };
        if let View::Pod(pod) = new
            && world.node(&pod.spec.node_name).is_some_and(|n| no_execute(n).next().is_some())
        {
            keys.push(Key::Object(key.clone()));
        }
        // TE-01: only if the list of NoExecute taints changed.
        if let View::Node(node) = new {
            let before: Vec<&Taint> = match old {
                Some(View::Node(old)) => no_execute(old).collect(),
                Some(_) | None => Vec::new(),
            };
            if !no_execute(node).eq(before) {
                touch_pods(world, &node.name(), keys);
            }
        }
        // A brake came or went.
        if let View::NodeIncident(incident) = new {
            touch_pods(world, &incident.spec.node_name, keys);
        }
    }

    fn decide(&self, world: &World, key: &Key, now: Time) -> Decision {
        let Some(pod) = key.object().and_then(|k| world.pod(&k.namespace, &k.name)) else {
            return Decision::rest();
        };
        let Some(node) = world.node(&pod.spec.node_name) else { return Decision::rest() };
        // TE-14: a second deletion would change nothing.
        if pod.metadata.is_terminating() {
            return Decision::rest();
        }
        match deadline(world, node, pod) {
            None => Decision::rest(),
            Some(at) if now < at => Decision::wait(at),
            Some(at) => fire(pod, at, now),
        }
    }
}

fn touch_pods(world: &World, node: &NodeName, keys: &mut Vec<Key>) {
    keys.extend(world.pods_on(node).map(|p| Key::Object(p.key())));
}

/// TE-09.
fn fire(pod: &Seen<Pod>, due: Time, now: Time) -> Decision {
    let object = pod.key();
    let text = format!("Marking for deletion Pod {}/{}", pod.metadata.namespace, pod.metadata.name);
    let note = Note::normal(
        object.clone(),
        "TaintManagerEviction",
        text,
        format!("mark {} {due:?}", pod.metadata.uid),
    );
    let condition = Condition::new(
        "DisruptionTarget",
        ConditionStatus::True,
        "DeletionByTaintManager",
        "Taint manager: deleting due to NoExecute taint",
        now,
    );
    let mut decision = Decision::rest().with(Action::note(note));
    let said = pod.condition("DisruptionTarget").is_some_and(|known| {
        (known.status, &known.reason, &known.message)
            == (condition.status, &condition.reason, &condition.message)
    });
    if !said {
        decision.actions.push(Action::edit(object.clone(), pod.rev, Edit::PodConditions(vec![condition])));
    }
    let delete = Action::delete(object, pod.metadata.uid.clone(), Deletion::Graceful);
    decision.with(delete.counting("taint_eviction_controller_pod_deletions_total", &[]))
}

/// TE-08, TE-10: what is said about a pod whose count was running when all NoExecute taints of its node go.
pub(super) fn cancelled(world: &World, node: &Seen<Node>, pod: &Seen<Pod>, now: Time) -> Option<Note> {
    let at = deadline(world, node, pod)?;
    // What is due is on its way already.
    if pod.metadata.is_terminating() || at <= now {
        return None;
    }
    let text = format!("Cancelling deletion of Pod {}/{}", pod.metadata.namespace, pod.metadata.name);
    let once = format!("cancel {} {at:?}", pod.metadata.uid);
    Some(Note::normal(pod.key(), "TaintManagerEviction", text, once))
}

// === deadlines ===

/// When the pod must go; `None` if it may stay for ever.
fn deadline(world: &World, node: &Seen<Node>, pod: &Pod) -> Option<Time> {
    let braked = is_braked(world, &node.metadata.uid);
    let taints: Vec<Taint> =
        no_execute(node).filter(|t| !(braked && t.key == UNREACHABLE)).cloned().collect();
    // TE-05: what is not tolerated counts at once; TE-06 below.
    let Stay::For(_) = stay(&taints, &pod.spec.tolerations) else { return None };
    let timing = &world.settings().timing;
    match timing.detection {
        Detection::Beats => {
            let each = taints.iter().filter_map(|taint| deadline_of(world, taint, pod));
            // What is tolerated for no time at all still waits until everybody could be heard.
            each.min().map(|at| at.max(world.started() + timing.patience))
        }
        Detection::Leases => deadline_by_memory(world, node, pod, &taints),
    }
}

/// Until when one taint lets the pod stay.
fn deadline_of(world: &World, taint: &Taint, pod: &Pod) -> Option<Time> {
    match stay(std::slice::from_ref(taint), &pod.spec.tolerations) {
        Stay::Forever => None,
        Stay::For(span) => {
            let added = taint.time_added.unwrap_or_default();
            Some(added.max(bound_at(pod)).max(world.started()) + span)
        }
    }
}

/// TE-07, TE-12: the count of this process.
fn deadline_by_memory(world: &World, node: &Seen<Node>, pod: &Pod, taints: &[Taint]) -> Option<Time> {
    let (since, first) = world.memory(&node.name())?.no_execute.as_ref()?;
    let begun = (*since).max(bound_at(pod));
    let tolerations = &pod.spec.tolerations;
    // TE-05.
    if first_untolerated(taints, tolerations, &[TaintEffect::NoExecute]).is_some() {
        return Some(begun);
    }
    // A pod that came later began its count under the taints of its own time, of which those of now are the best word.
    let first = if bound_at(pod) > *since { taints } else { first };
    match (stay(first, tolerations), stay(taints, tolerations)) {
        (_, Stay::Forever) => None,
        // The count began with the first taints and is not touched by those that came later.
        (Stay::For(span), Stay::For(_)) => Some(begun + span),
        // The first taints set no limit: the count began with the first that does.
        (Stay::Forever, Stay::For(span)) => {
            let limits =
                taints.iter().filter(|t| stay(std::slice::from_ref(t), tolerations) != Stay::Forever);
            let came = limits.filter_map(|t| t.time_added).min().unwrap_or_default();
            Some(begun.max(came) + span)
        }
    }
}

/// When the pod came to its node: the binding says so; a pod that was made on its node came when it was made.
fn bound_at(pod: &Pod) -> Time {
    let bound = pod.condition("PodScheduled").filter(|c| c.status == ConditionStatus::True);
    bound.map_or(pod.metadata.creation_timestamp, |c| c.last_transition_time)
}

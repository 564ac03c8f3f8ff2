//! Release: evidence lets go what a dead node held.
//!
//! Responsible for: the pods. What a controller replaces, and what must never run twice, is failed and removed on the
//! evidence of the incident, at once. Leaves to `volume::attach` the volumes; leaves DaemonSet, static and bare pods to
//! stock's rules: they are rebuilt in place if the node returns before.
//!
//! Invariant E1: a pod is removed here only on a fenced incident of the node uid that it was bound to; the incident and
//! the Node are compared in the same transaction.

use api::edit::Edit;
use api::view::{Condition, ConditionStatus, NodeIncident, Pod, View};
use api::{Kind, ObjectKey, Time};

use super::incident::fresh;
use crate::controller::{Change, Controller, Key, Layer, Scope};
use crate::decision::{Action, Decision, Deletion, Expect};
use crate::world::{Seen, World};

/// Releases pods.
pub struct Release;

static SCOPE: Scope = Scope {
    name: "release",
    reads: &[Kind::Pod, Kind::NodeIncident, Kind::Node, Kind::PersistentVolumeClaim],
    writes: &[Kind::Pod],
};

impl Controller for Release {
    fn scope(&self) -> &'static Scope {
        &SCOPE
    }

    fn layer(&self) -> Layer {
        Layer::Automatic
    }

    fn touched(&self, change: &Change, world: &World, keys: &mut Vec<Key>) {
        let Change::Object { key, new: Some(new), .. } = change else { return };
        if let View::NodeIncident(incident) = new
            && incident.stands()
        {
            let pods = world.pods_on(&incident.spec.node_name);
            keys.extend(pods.map(|p| Key::Object(p.key())));
        }
        if let View::Pod(pod) = new
            && pod.is_bound()
            && incident_of(world, pod).is_some()
        {
            keys.push(Key::Object(key.clone()));
        }
    }

    fn decide(&self, world: &World, key: &Key, now: Time) -> Decision {
        let Some(pod) = key.object().and_then(|k| world.pod(&k.namespace, &k.name)) else {
            return Decision::rest();
        };
        // Gate 1: there is evidence about the node uid that this pod was bound to.
        let Some(incident) = incident_of(world, pod) else { return Decision::rest() };
        // Gate 2: it is one that moves.
        if !moves(world, pod) {
            return Decision::rest();
        }
        let pod_key = pod.key();
        let node = world.node_by_uid(&incident.spec.node_uid);
        // Gate 3: the incident and the Node are as they were judged, in the same transaction.
        let guard = |action: Action| {
            fresh(action.expecting(Expect::At(incident.key(), incident.rev)), world, incident, node)
        };
        let condition = Condition::new(
            "DisruptionTarget",
            ConditionStatus::True,
            "DeletionByNodeFencing",
            &format!(
                "Mainstay: node {} is proven dead by {}",
                incident.spec.node_name, incident.metadata.name
            ),
            now,
        );
        let fail =
            Edit::FailPod { reason: String::new(), message: String::new(), condition: Some(condition) };
        let mut decision = Decision::rest();
        if !pod.is_terminal() {
            decision.actions.push(guard(Action::edit(pod_key.clone(), pod.rev, fail)));
        }
        // With finalizers left the object stays, marked and Failed; nothing more is to be done about it here.
        if !(pod.metadata.is_terminating() && !pod.metadata.finalizers.is_empty() && pod.is_terminal()) {
            let proven = Deletion::Proven { incident: incident.key() };
            let delete = Action::delete(pod_key, pod.metadata.uid.clone(), proven);
            let namespace = pod.metadata.namespace.to_string();
            decision
                .actions
                .push(guard(delete).counting("mainstay_released_pods_total", &[("namespace", &namespace)]));
        }
        decision
    }
}

/// The incident that proves that the pod's old machine cannot act.
fn incident_of<'w>(world: &'w World, pod: &Pod) -> Option<&'w Seen<NodeIncident>> {
    let uid = pod.node_uid();
    world.incidents_of(&uid).find(|i| i.stands())
}

/// True for a pod that evidence moves: one that must never run twice, or one that a controller replaces.
fn moves(world: &World, pod: &Pod) -> bool {
    if pod.is_static() {
        return false;
    }
    let replaced = pod.metadata.controller().is_some_and(|o| o.kind != "DaemonSet" && o.kind != "Node");
    replaced || world.is_exclusive(pod)
}

/// What the node of a fenced incident still holds, in words.
pub(super) fn held_by(world: &World, incident: &NodeIncident) -> Vec<String> {
    world
        .pods_on(&incident.spec.node_name)
        .filter(|p| p.node_uid() == incident.spec.node_uid && moves(world, p))
        // A Failed pod that only waits for a finalizer holds nothing on the node any more.
        .filter(|p| !(p.is_terminal() && p.metadata.is_terminating() && !p.metadata.finalizers.is_empty()))
        .map(|p| format!("pod {}/{}", p.metadata.namespace, p.metadata.name))
        .collect()
}

/// Where the incident of a pod's node lies, for words.
pub fn proof_of(world: &World, pod: &Pod) -> Option<ObjectKey> {
    incident_of(world, pod).map(|i| i.key())
}

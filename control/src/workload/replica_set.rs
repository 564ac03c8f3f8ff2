//! ReplicaSets: so many pods, whichever they are (CT-10).
//!
//! Responsible for: making what is missing, deleting what is too many, the counts of the status. Leaves Failed and
//! Succeeded pods to garbage collection: they are not counted and not touched.
//!
//! Invariant W1: a pod that terminates or has ended does not count, so it is replaced at once; nothing else makes a
//! set have more pods than it wants. The revision barrier of the queue holds the next decision until this one is seen,
//! so that no expectations have to be remembered.

use std::collections::BTreeMap;

use api::view::{Pod, ReplicaSet, WorkloadStatus};
use api::{Kind, NodeName, ObjectKey, Time};

use super::{BURST, Expendable, generated, owned, touch_owners, views};
use crate::controller::{Change, Controller, Key, Scope};
use crate::decision::{Action, Decision, Deletion, Dress, Expect, New};
use crate::world::{Seen, World};
use api::edit::Edit;

/// The controller of ReplicaSets.
pub struct ReplicaSets;

impl Controller for ReplicaSets {
    fn scope(&self) -> &'static Scope {
        static SCOPE: Scope = Scope {
            name: "replicaset-controller",
            reads: &[Kind::ReplicaSet, Kind::Pod],
            writes: &[Kind::ReplicaSet, Kind::Pod],
        };
        &SCOPE
    }

    fn touched(&self, change: &Change, world: &World, keys: &mut Vec<Key>) {
        let Some((key, old, new)) = views(change) else { return };
        if key.kind == Kind::ReplicaSet {
            keys.push(Key::Object(key.clone()));
            return;
        }
        touch_owners(old, new, Kind::ReplicaSet, keys);
        // An orphan may be one that a set would take in.
        if let Some(api::view::View::Pod(pod)) = new
            && pod.metadata.controller().is_none()
        {
            let of_pod = |set: &&Seen<ReplicaSet>| {
                set.metadata.namespace == pod.metadata.namespace
                    && set.spec.selector.matches(&pod.metadata.labels)
            };
            keys.extend(world.replica_sets().filter(of_pod).map(|s| Key::Object(set_key(s))));
        }
    }

    fn decide(&self, world: &World, key: &Key, now: Time) -> Decision {
        let Some(set) = key.object().and_then(|k| world.replica_set(&k.namespace, &k.name)) else {
            return Decision::rest();
        };
        let active: Vec<&Seen<Pod>> = owned(world, &set.metadata).filter(|p| p.is_active()).collect();
        let mut decision = Decision::rest();
        if !set.metadata.is_terminating() {
            let wanted = usize::try_from(set.spec.replicas.unwrap_or(1)).unwrap_or(usize::MAX);
            if active.len() < wanted {
                decision.actions = missing(world, set, active.len(), wanted);
            } else {
                decision.actions = surplus(world, set, &active, wanted, now);
            }
        }
        // Last: it changes the set, and what is above expects the set as it is.
        decision.actions.extend(counts(set, &active));
        decision
    }
}

/// CT-10: one batch. What exists shows how far the slow start is: with one more than that the batches of an empty set
/// are 1, 2, 4, …, and a set that only lost a pod gets it back at once.
fn missing(world: &World, set: &Seen<ReplicaSet>, active: usize, wanted: usize) -> Vec<Action> {
    let batch = (wanted - active).min(active + 1).min(BURST);
    let key = set_key(set);
    let revision = world.revision().to_string();
    (0..batch)
        .map(|ordinal| {
            let parts = [set.metadata.uid.as_str(), revision.as_str(), &ordinal.to_string()];
            let pod = New::Pod {
                owner: key.clone(),
                owner_uid: set.metadata.uid.clone(),
                name: generated(&set.metadata.name, &parts),
                dress: Dress::Plain,
            };
            Action::create(pod).expecting(Expect::At(key.clone(), set.rev))
        })
        .collect()
}

fn surplus(
    world: &World,
    set: &Seen<ReplicaSet>,
    active: &[&Seen<Pod>],
    wanted: usize,
    now: Time,
) -> Vec<Action> {
    let surplus = active.len() - wanted;
    if surplus == 0 {
        return Vec::new();
    }
    let shared = related_by_node(world, set);
    let mut ranked: Vec<&Seen<Pod>> = active.to_vec();
    ranked.sort_by_cached_key(|pod| {
        let doubled = shared.get(&pod.spec.node_name).copied().unwrap_or(0);
        Expendable::of(pod, doubled, now)
    });
    let key = set_key(set);
    ranked
        .into_iter()
        .take(surplus.min(BURST))
        .map(|pod| {
            // The ranking holds for this revision of the pod only (case P109): it may have become Ready since.
            Action::delete(pod.key(), pod.metadata.uid.clone(), Deletion::Graceful)
                .expecting(Expect::At(pod.key(), pod.rev))
                .expecting(Expect::At(key.clone(), set.rev))
        })
        .collect()
}

/// Active pods per node of all sets that belong to the same Deployment: doubled-up pods go first.
fn related_by_node(world: &World, set: &ReplicaSet) -> BTreeMap<NodeName, usize> {
    let owner = set.metadata.controller().map(|o| &o.uid);
    let is_related = |other: &&Seen<ReplicaSet>| {
        other.metadata.uid == set.metadata.uid
            || owner.is_some() && other.metadata.controller().map(|o| &o.uid) == owner
    };
    let mut count = BTreeMap::new();
    for related in world.replica_sets().filter(is_related) {
        for pod in owned(world, &related.metadata).filter(|p| p.is_active() && p.is_bound()) {
            *count.entry(pod.spec.node_name.clone()).or_default() += 1;
        }
    }
    count
}

fn counts(set: &Seen<ReplicaSet>, active: &[&Seen<Pod>]) -> Option<Action> {
    let ready = super::count(active.iter().filter(|p| p.is_ready()).count());
    let status = WorkloadStatus {
        replicas: super::count(active.len()),
        ready_replicas: ready,
        available_replicas: ready,
        observed_generation: set.metadata.generation,
    };
    (status != set.status).then(|| Action::edit(set_key(set), set.rev, Edit::Counts(status)))
}

fn set_key(set: &ReplicaSet) -> ObjectKey {
    ObjectKey::namespaced(Kind::ReplicaSet, &set.metadata.namespace, set.metadata.name.clone())
}

//! StatefulSets: pods with a name each, one at most of every name (CT-20 to CT-22).
//!
//! Responsible for: the pods `<set>-0 …` and the claims `<template>-<set>-<n>` in front of them. Leaves to
//! [`crate::node_death`] when the pod of a dead node ends, to [`crate::schedule`] when its successor may be bound.
//!
//! ```text
//!             none ──create claims, pod──► there ──not Running and Ready──► (ordered: stop here)
//!              ▲                             │ Failed, Succeeded: note, delete
//!              └───────── gone ◄── terminating (waits, in both policies)
//! ```
//!
//! Invariants:
//! - One object per ordinal: a pod is made only where the world has none and the store has none. A terminating pod
//!   keeps its name until it is gone (CT-21); that is what makes failover a question of proof, not of counting.
//! - However a pod ended, it is made again (case P39): a container that obeyed SIGTERM with exit code 0 leaves a
//!   Succeeded pod, and that ordinal would stay dead.

use std::collections::BTreeMap;

use api::edit::Edit;
use api::view::{Pod, PodManagement, PodPhase, StatefulSet, View, WorkloadStatus};
use api::{Kind, Name, ObjectKey, Time};

use super::{BURST, count, is_running_and_ready, owned, touch_owners, views};
use crate::controller::{Change, Controller, Key, Scope};
use crate::decision::{Action, Decision, Deletion, Dress, Expect, New, Note};
use crate::node_death::release::proof_of;
use crate::world::{Seen, World};

/// The controller of StatefulSets.
pub struct StatefulSets;

impl Controller for StatefulSets {
    fn scope(&self) -> &'static Scope {
        static SCOPE: Scope = Scope {
            name: "statefulset-controller",
            reads: &[Kind::StatefulSet, Kind::Pod, Kind::PersistentVolumeClaim],
            writes: &[Kind::StatefulSet, Kind::Pod, Kind::PersistentVolumeClaim],
        };
        &SCOPE
    }

    fn touched(&self, change: &Change, world: &World, keys: &mut Vec<Key>) {
        let Some((key, old, new)) = views(change) else { return };
        if key.kind == Kind::StatefulSet {
            keys.push(Key::Object(key.clone()));
        }
        touch_owners(old, new, Kind::StatefulSet, keys);
        // A claim that went must be made again, and one that terminates holds its ordinal until it has gone. A pod of
        // somebody else may hold a name.
        let went = match new {
            None => key.kind == Kind::PersistentVolumeClaim || key.kind == Kind::Pod,
            Some(view) => matches!(view, View::PersistentVolumeClaim(_)) && view.meta().is_terminating(),
        };
        if went {
            let names = |set: &&Seen<StatefulSet>| {
                set.metadata.namespace == key.namespace
                    && key.name.as_str().contains(set.metadata.name.as_str())
            };
            keys.extend(world.stateful_sets().filter(names).map(|s| Key::Object(set_key(s))));
        }
    }

    fn decide(&self, world: &World, key: &Key, _now: Time) -> Decision {
        let Some(set) = key.object().and_then(|k| world.stateful_set(&k.namespace, &k.name)) else {
            return Decision::rest();
        };
        let mut sync = Sync::new(world, set);
        if !set.metadata.is_terminating() && sync.raise() {
            sync.lower();
        }
        // Last: it changes the set, and what is above expects the set as it is.
        sync.actions.extend(sync.counts());
        Decision { actions: sync.actions, wake: None, why: sync.why }
    }
}

/// One look at one set.
struct Sync<'w> {
    world: &'w World,
    set: &'w Seen<StatefulSet>,
    /// The set's own pods by ordinal.
    pods: BTreeMap<u32, &'w Seen<Pod>>,
    actions: Vec<Action>,
    why: Option<Note>,
}

/// What became of one ordinal.
#[derive(PartialEq, Eq)]
enum Step {
    /// It is as it should be.
    Settled,
    /// Something is done about it, or it is waited for.
    Pending,
}

impl<'w> Sync<'w> {
    fn new(world: &'w World, set: &'w Seen<StatefulSet>) -> Self {
        let pods = owned(world, &set.metadata)
            .filter_map(|pod| Some((ordinal(&set.metadata.name, &pod.metadata.name)?, pod)))
            .collect();
        Self { world, set, pods, actions: Vec::new(), why: None }
    }

    fn wanted(&self) -> u32 {
        self.set.spec.replicas.unwrap_or(1)
    }

    fn is_ordered(&self) -> bool {
        self.set.spec.pod_management_policy == PodManagement::OrderedReady
    }

    /// Makes and renews pods upwards. True if scaling down may go on.
    fn raise(&mut self) -> bool {
        for ordinal in 0..self.wanted() {
            if self.actions.len() >= BURST {
                return false;
            }
            // CT-20: an ordered set stops at the first pod that is not as it should be; scaling down waits as well.
            if self.raise_one(ordinal) == Step::Pending && self.is_ordered() {
                return false;
            }
        }
        true
    }

    fn raise_one(&mut self, ordinal: u32) -> Step {
        let Some(pod) = self.pods.get(&ordinal).copied() else {
            self.create(ordinal);
            return Step::Pending;
        };
        if pod.metadata.is_terminating() {
            self.wait(
                pod,
                "OrdinalTerminating",
                "the pod terminates; its successor is made when it has gone",
            );
            return Step::Pending;
        }
        if pod.is_terminal() {
            self.recreate(pod);
            return Step::Pending;
        }
        // Somebody removed a claim under a pod that has not started: it is made again.
        if pod.status.phase == PodPhase::Pending {
            self.create_claims(ordinal);
        }
        if is_running_and_ready(pod) {
            return Step::Settled;
        }
        self.wait(pod, "OrdinalNotReady", "the pod is not Running and Ready yet");
        Step::Pending
    }

    /// Claims first: a pod without its claim would be refused by the agent, and the claim decides where the pod runs.
    fn create(&mut self, ordinal: u32) {
        let name = pod_name(&self.set.metadata.name, ordinal);
        let namespace = &self.set.metadata.namespace;
        if let Some(stranger) = self.world.pod(namespace, &name) {
            self.wait(stranger, "OrdinalTaken", "a pod of this name that the set does not own is in the way");
            return;
        }
        let templates = &self.set.spec.volume_claim_templates;
        let dying = templates.iter().find_map(|t| {
            let claim = claim_name(&t.metadata.name, &self.set.metadata.name, ordinal);
            self.world.claim(namespace, &claim).filter(|c| c.metadata.is_terminating())
        });
        if let Some(claim) = dying {
            let key =
                ObjectKey::namespaced(Kind::PersistentVolumeClaim, namespace, claim.metadata.name.clone());
            let text = format!("pvc {} is being deleted", claim.metadata.name);
            let once = claim.metadata.uid.to_string();
            self.why.get_or_insert(Note::warning(key, "FailedCreate", text, once));
            return;
        }
        self.create_claims(ordinal);
        let pod = New::Pod {
            owner: set_key(self.set),
            owner_uid: self.set.metadata.uid.clone(),
            name,
            dress: Dress::Ordinal(ordinal),
        };
        self.actions.push(Action::create(pod).expecting(Expect::At(set_key(self.set), self.set.rev)));
    }

    fn create_claims(&mut self, ordinal: u32) {
        let namespace = &self.set.metadata.namespace;
        for (template, wish) in self.set.spec.volume_claim_templates.iter().enumerate() {
            let name = claim_name(&wish.metadata.name, &self.set.metadata.name, ordinal);
            if self.world.claim(namespace, &name).is_none() {
                let claim = New::Claim { owner: set_key(self.set), template, name };
                self.actions
                    .push(Action::create(claim).expecting(Expect::At(set_key(self.set), self.set.rev)));
            }
        }
    }

    /// CT-22, P39: Failed and Succeeded alike. The successor is made when the object has gone.
    fn recreate(&mut self, pod: &Seen<Pod>) {
        let (set, key) = (&self.set.metadata, pod.key());
        let text = |how: &str| {
            format!(
                "StatefulSet {}/{} is recreating {how} Pod {}",
                set.namespace, set.name, pod.metadata.name
            )
        };
        let once = pod.metadata.uid.to_string();
        let note = if pod.status.phase == PodPhase::Failed {
            Note::warning(set_key(self.set), "RecreatingFailedPod", text("failed"), once)
        } else {
            Note::normal(set_key(self.set), "RecreatingTerminatedPod", text("terminated"), once)
        };
        self.actions.push(Action::note(note));
        // A pod that was failed because its node is proven dead goes on that proof: gracefully it would leave a tombstone
        // behind, and its successor would wait for the proof that is there already.
        let deletion = match proof_of(self.world, pod) {
            Some(incident) => Deletion::Proven { incident },
            None => Deletion::Graceful,
        };
        self.actions.push(
            Action::delete(key.clone(), pod.metadata.uid.clone(), deletion)
                .expecting(Expect::At(key, pod.rev))
                .expecting(Expect::At(set_key(self.set), self.set.rev)),
        );
    }

    /// Deletes pods above the wish, the highest first: an ordered set one at a time, and none while one above it still
    /// terminates or one below it (that is not the first unhealthy) is not well.
    fn lower(&mut self) {
        let condemned: Vec<&Seen<Pod>> =
            self.pods.range(self.wanted()..).rev().map(|(_, pod)| *pod).collect();
        let unhealthy = condemned.iter().rev().find(|p| !is_running_and_ready(p)).map(|p| &p.metadata.uid);
        for pod in &condemned {
            if self.actions.len() >= BURST {
                return;
            }
            if pod.metadata.is_terminating() {
                if self.is_ordered() {
                    self.wait(
                        pod,
                        "OrdinalTerminating",
                        "the pod terminates; the next one goes when it has gone",
                    );
                    return;
                }
                continue;
            }
            if self.is_ordered() && !is_running_and_ready(pod) && unhealthy != Some(&pod.metadata.uid) {
                self.wait(pod, "OrdinalNotReady", "a lower pod that goes as well is not Running and Ready");
                return;
            }
            self.actions.push(
                Action::delete(pod.key(), pod.metadata.uid.clone(), Deletion::Graceful)
                    .expecting(Expect::At(set_key(self.set), self.set.rev)),
            );
            if self.is_ordered() {
                return;
            }
        }
    }

    fn wait(&mut self, pod: &Seen<Pod>, reason: &'static str, text: &str) {
        if self.why.is_none() {
            self.why = Some(Note::normal(pod.key(), reason, text, pod.metadata.uid.to_string()));
        }
    }

    fn counts(&self) -> Option<Action> {
        let ready = count(self.pods.values().filter(|p| is_running_and_ready(p)).count());
        let status = WorkloadStatus {
            replicas: count(self.pods.len()),
            ready_replicas: ready,
            available_replicas: ready,
            observed_generation: self.set.metadata.generation,
        };
        (status != self.set.status)
            .then(|| Action::edit(set_key(self.set), self.set.rev, Edit::Counts(status)))
    }
}

fn set_key(set: &StatefulSet) -> ObjectKey {
    ObjectKey::namespaced(Kind::StatefulSet, &set.metadata.namespace, set.metadata.name.clone())
}

fn pod_name(set: &Name, ordinal: u32) -> Name {
    Name::from(format!("{set}-{ordinal}"))
}

fn claim_name(template: &Name, set: &Name, ordinal: u32) -> Name {
    Name::from(format!("{template}-{set}-{ordinal}"))
}

/// The ordinal in the name of a pod of a set, written as the set writes it.
fn ordinal(set: &Name, pod: &Name) -> Option<u32> {
    let digits = pod.as_str().strip_prefix(set.as_str())?.strip_prefix('-')?;
    let ordinal = digits.parse().ok()?;
    (pod_name(set, ordinal) == *pod).then_some(ordinal)
}

//! W1: no more pods than wished.
//!
//! Responsible for: counting, at each creation, the pods of the owner that have neither ended nor begun to end. Leaves
//! pods on dead nodes aside: they count until they are failed or deleted, which is what explains them.
//!
//! A controller may have seen an older wish: the greatest wish of the last while counts.

use std::collections::{BTreeMap, BTreeSet};

use api::view::{Pod, View};
use api::{Duration, Name, ObjectKey, Time, Uid};

use super::scene::Scene;
use super::{Voice, Watch};
use crate::observe::{Fact, Observation};

/// A view may be this old and still be decided on. Longer than every stale view that a schedule makes.
const WISH_AGE_MAX: Duration = Duration::from_secs(30);

/// Invariant W1.
#[derive(Debug, Default)]
pub(super) struct Workloads {
    /// Active pods by owner.
    active: BTreeMap<Uid, BTreeSet<ObjectKey>>,
    /// How many each owner wished, and since when.
    wishes: BTreeMap<Uid, Vec<(Time, u32)>>,
}

// === impl Workloads ===

impl Watch for Workloads {
    fn see(&mut self, scene: &Scene, fact: &Fact, voice: &mut Voice<'_>) {
        let Observation::Written { key, old, new, by, .. } = &fact.what else { return };
        match (old, new) {
            (_, Some(View::ReplicaSet(owner))) => {
                self.wish(&owner.metadata.uid, owner.spec.replicas.unwrap_or(1), fact.at);
            }
            (_, Some(View::StatefulSet(owner))) => {
                self.wish(&owner.metadata.uid, owner.spec.replicas.unwrap_or(1), fact.at);
            }
            (old, Some(View::Pod(pod))) => {
                let Some(owner) = pod.metadata.controller() else { return };
                let of_owner = self.active.entry(owner.uid.clone()).or_default();
                if !pod.is_active() {
                    of_owner.remove(key);
                    return;
                }
                if of_owner.insert(key.clone()) && old.is_none() {
                    let kind = owner.kind.clone();
                    self.created(scene, pod, &kind, by, voice);
                }
            }
            (Some(View::Pod(pod)), None) => {
                if let Some(owner) = pod.metadata.controller()
                    && let Some(pods) = self.active.get_mut(&owner.uid)
                {
                    pods.remove(key);
                }
            }
            _ => {}
        }
    }
}

impl Workloads {
    fn wish(&mut self, owner: &Uid, replicas: u32, at: Time) {
        let wishes = self.wishes.entry(owner.clone()).or_default();
        if wishes.last().is_none_or(|(_, last)| *last != replicas) {
            wishes.push((at, replicas));
        }
    }

    /// The greatest wish of the last while; everything where nobody wished (the owner is gone).
    fn wished(&self, owner: &Uid, now: Time) -> u32 {
        let Some(wishes) = self.wishes.get(owner) else { return u32::MAX };
        let from = now.back(WISH_AGE_MAX);
        // A wish counts until the next one is old enough.
        let ends = wishes.iter().skip(1).map(|(at, _)| *at).chain([Time::MAX]);
        wishes.iter().zip(ends).filter(|(_, end)| *end >= from).map(|((_, n), _)| *n).max().unwrap_or(0)
    }

    fn created(&self, scene: &Scene, pod: &Pod, kind: &str, by: &str, voice: &mut Voice<'_>) {
        let Some(owner) = pod.metadata.controller() else { return };
        let (name, count) = (&pod.metadata.name, self.active.get(&owner.uid).map_or(0, BTreeSet::len));
        match kind {
            "ReplicaSet" => {
                let wished = self.wished(&owner.uid, scene.now());
                if count as u64 > u64::from(wished) {
                    voice.say(format!(
                        "{by} made pod {name}: {count} pods of {}, {wished} wished",
                        owner.name
                    ));
                }
            }
            "StatefulSet" => {
                let ordinal = name.as_str().rsplit('-').next().and_then(|n| n.parse::<u32>().ok());
                let wished = self.wished(&owner.uid, scene.now());
                if ordinal.is_none_or(|n| n >= wished) {
                    voice.say(format!("{by} made pod {name}, but {} wishes {wished} pods", owner.name));
                }
            }
            "DaemonSet" => {
                let Some(node) = daemon_node(pod) else { return };
                let twin = self.active.get(&owner.uid).into_iter().flatten().any(|key| {
                    let Some(View::Pod(other)) = scene.object(key) else { return false };
                    other.metadata.uid != pod.metadata.uid && daemon_node(other).as_ref() == Some(&node)
                });
                if twin {
                    voice.say(format!("{by} made a second pod of {} for node {node}: {name}", owner.name));
                }
            }
            _ => {}
        }
    }
}

/// The node that a daemon pod is pinned to.
fn daemon_node(pod: &Pod) -> Option<Name> {
    if pod.is_bound() {
        return Some(Name::from(&pod.spec.node_name));
    }
    let terms = &pod
        .spec
        .affinity
        .node_affinity
        .required_during_scheduling_ignored_during_execution
        .node_selector_terms;
    let fields = terms.iter().flat_map(|term| &term.match_fields);
    fields.filter(|f| f.key == "metadata.name").find_map(|f| f.values.first()).map(|n| Name::from(n.as_str()))
}

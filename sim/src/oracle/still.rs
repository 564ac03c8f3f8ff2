//! B1, O1 and F3: runs in which nothing may be withdrawn, stopped or moved.
//!
//! Responsible for: judging what a run promised ([`Promise`]). Leaves to schedules and scenario files to promise only
//! what the faults allow: these oracles know nothing about the network.

use std::collections::BTreeSet;

use api::annotation::SERVICE_NAME;
use api::view::{EndpointSlice, View};
use api::{Kind, Uid};

use super::scene::Scene;
use super::{Promise, Voice, Watch};
use crate::observe::{Fact, Observation};

/// Invariant B1.
#[derive(Debug, Default)]
pub(super) struct Withdrawn {
    told: BTreeSet<Uid>,
}

/// Invariant O1.
#[derive(Debug, Default)]
pub(super) struct Stopped {
    told: BTreeSet<Uid>,
}

/// Invariant F3.
#[derive(Debug, Default)]
pub(super) struct Moved {
    told: BTreeSet<Uid>,
}

fn is_promised(scene: &Scene, promise: Promise) -> bool {
    scene.is_troubled() && scene.setting.promises.contains(&promise)
}

/// Controllers that delete pods because somebody wishes fewer of them.
const OWNERS: [&str; 3] = ["replicaset-controller", "statefulset-controller", "daemonset-controller"];

// === impl Withdrawn ===

impl Watch for Withdrawn {
    fn see(&mut self, scene: &Scene, fact: &Fact, voice: &mut Voice<'_>) {
        if !is_promised(scene, Promise::NothingWithdrawn) {
            return;
        }
        let Observation::Written { old: Some(old), new, by, .. } = &fact.what else { return };
        match (old, new) {
            (View::EndpointSlice(old), new) => {
                let new = if let Some(View::EndpointSlice(new)) = new { Some(&**new) } else { None };
                for uid in withdrawn(scene, old, new) {
                    if self.told.insert(uid.clone()) {
                        voice.say(format!("{by} withdrew the endpoint of pod {uid}, which runs"));
                    }
                }
            }
            (View::Pod(old), Some(View::Pod(new)))
                if !old.metadata.is_terminating() && new.metadata.is_terminating() =>
            {
                let wished = OWNERS.iter().any(|owner| by.ends_with(owner));
                if by.starts_with("server-") && !wished && self.told.insert(old.metadata.uid.clone()) {
                    voice.say(format!("{by} evicted pod {}/{}", old.metadata.namespace, old.metadata.name));
                }
            }
            _ => {}
        }
    }
}

/// Pods that were ready in the old slice, are in no slice of the service any more, and really run.
fn withdrawn(scene: &Scene, old: &EndpointSlice, new: Option<&EndpointSlice>) -> Vec<Uid> {
    let ready = |slice: &EndpointSlice| -> BTreeSet<Uid> {
        let ready = slice.endpoints.iter().filter(|e| e.conditions.ready);
        ready.map(|e| e.target_ref.uid.clone()).collect()
    };
    let kept = new.map(ready).unwrap_or_default();
    let gone = ready(old).into_iter().filter(|uid| !kept.contains(uid) && scene.runs(uid).is_some());
    let gone: Vec<Uid> = gone.collect();
    if gone.is_empty() {
        return gone;
    }
    let service = |slice: &EndpointSlice| slice.metadata.labels.get(SERVICE_NAME).cloned();
    let elsewhere: BTreeSet<Uid> = scene
        .of_kind(Kind::EndpointSlice)
        .filter_map(|view| if let View::EndpointSlice(slice) = view { Some(slice) } else { None })
        .filter(|s| s.metadata.namespace == old.metadata.namespace && service(s) == service(old))
        .flat_map(|slice| ready(slice))
        .collect();
    gone.into_iter().filter(|uid| !elsewhere.contains(uid)).collect()
}

// === impl Stopped ===

impl Watch for Stopped {
    fn see(&mut self, scene: &Scene, fact: &Fact, voice: &mut Voice<'_>) {
        let Observation::Ended(instance) = &fact.what else { return };
        if is_promised(scene, Promise::NothingStops)
            && scene.is_awake(&instance.machine)
            && self.told.insert(instance.pod_uid.clone())
        {
            let (namespace, name) = (&instance.namespace, &instance.name);
            voice.say(format!("pod {namespace}/{name} stopped on {}, which is healthy", instance.machine));
        }
    }
}

// === impl Moved ===

impl Watch for Moved {
    fn see(&mut self, scene: &Scene, fact: &Fact, voice: &mut Voice<'_>) {
        if !is_promised(scene, Promise::NothingMoves) {
            return;
        }
        let Observation::Written { old: Some(View::Pod(old)), new, by, .. } = &fact.what else { return };
        let goes = match new {
            Some(View::Pod(new)) => new.metadata.is_terminating(),
            Some(_) | None => true,
        };
        if goes && self.told.insert(old.metadata.uid.clone()) {
            voice.say(format!("{by} took pod {}/{} away", old.metadata.namespace, old.metadata.name));
        }
    }
}

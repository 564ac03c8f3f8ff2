//! S1 and V1: nothing exclusive on two machines that both move.
//!
//! Responsible for: overlaps of exclusive pods (same namespace and name, or a claim that one node at most may hold) and
//! of mounted volumes. Leaves to [`super::scene`] until when a resumed machine is excused.
//!
//! An overlap needs two holders that move: a suspended machine does nothing. If one of the machines was resumed a short
//! while ago, the overlap is counted apart and becomes a finding only beyond its bound, which is running time.

use std::collections::BTreeMap;

use api::view::View;
use api::{Duration, Kind, Name, Namespace, NodeName, ObjectKey, Time, Uid};

use super::scene::Scene;
use super::{Voice, Watch};
use crate::observe::{Fact, Instance, Observation};

/// What may be held once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Thing {
    Pod(Namespace, Name),
    Claim(Namespace, Name),
    Volume(Name),
}

/// Who holds it: which machine, as which pod object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Holder {
    machine: NodeName,
    pod: Uid,
}

/// Two holders or more at the same time.
#[derive(Debug, Default)]
struct Overlap {
    /// Running time of both, up to `moving`.
    spent: Duration,
    /// Since when both move, while they do.
    moving: Option<Time>,
    /// When it is over its bound.
    deadline: Option<Time>,
    told: bool,
}

/// All holders of all things.
#[derive(Debug, Default)]
struct Doubles {
    holders: BTreeMap<Thing, Vec<Holder>>,
    overlaps: BTreeMap<Thing, Overlap>,
}

/// Invariant S1.
#[derive(Debug, Default)]
pub(super) struct Pods {
    doubles: Doubles,
    /// What each instance holds; its claims may be gone when it ends.
    things: BTreeMap<(NodeName, Uid), Vec<Thing>>,
}

/// Invariant V1.
#[derive(Debug, Default)]
pub(super) struct Volumes {
    doubles: Doubles,
}

// === impl Pods ===

impl Watch for Pods {
    fn see(&mut self, scene: &Scene, fact: &Fact, voice: &mut Voice<'_>) {
        if !is_promised(scene) {
            return;
        }
        self.doubles.check_deadlines(fact.at, voice);
        match &fact.what {
            Observation::Started(instance) if instance.exclusive => {
                let things = things_of(scene, instance);
                let holder = Holder { machine: instance.machine.clone(), pod: instance.pod_uid.clone() };
                self.things.insert((holder.machine.clone(), holder.pod.clone()), things.clone());
                for thing in things {
                    self.doubles.take(scene, thing, holder.clone(), fact.at, voice);
                }
            }
            Observation::Ended(instance) => {
                let key = (instance.machine.clone(), instance.pod_uid.clone());
                let holder = Holder { machine: key.0.clone(), pod: key.1.clone() };
                for thing in self.things.remove(&key).unwrap_or_default() {
                    self.doubles.leave(scene, &thing, |h| *h == holder, fact.at, voice);
                }
            }
            Observation::PoweredOff(machine) => {
                self.things.retain(|(m, _), _| m != machine);
                self.doubles.leave_all(scene, machine, fact.at, voice);
            }
            Observation::Suspended { machine, .. } | Observation::Resumed(machine) => {
                self.doubles.look_at(scene, machine, fact.at, voice);
            }
            _ => {}
        }
    }

    fn end(&mut self, scene: &Scene, voice: &mut Voice<'_>) {
        self.doubles.end(scene.now(), voice);
    }
}

/// What an instance holds: its identity, and claims that one node at most may hold.
fn things_of(scene: &Scene, instance: &Instance) -> Vec<Thing> {
    let namespace = &instance.namespace;
    let mut things = vec![Thing::Pod(namespace.clone(), instance.name.clone())];
    let pod = scene.pod(namespace, &instance.name).filter(|p| p.metadata.uid == instance.pod_uid);
    for name in pod.into_iter().flat_map(|p| p.claims()) {
        let key = ObjectKey::namespaced(Kind::PersistentVolumeClaim, namespace, name.clone());
        if let Some(View::PersistentVolumeClaim(claim)) = scene.object(&key)
            && claim.is_single_node()
        {
            things.push(Thing::Claim(namespace.clone(), name.clone()));
        }
    }
    things
}

/// Under stock's rules a human's word or a clean six minutes may make two copies: that is what those rules say.
fn is_promised(scene: &Scene) -> bool {
    scene.setting.is_automatic() || !scene.has_human_acted()
}

// === impl Volumes ===

impl Watch for Volumes {
    fn see(&mut self, scene: &Scene, fact: &Fact, voice: &mut Voice<'_>) {
        if !is_promised(scene) {
            return;
        }
        self.doubles.check_deadlines(fact.at, voice);
        match &fact.what {
            Observation::Mounted { machine, volume, single: true } => {
                let holder = Holder { machine: machine.clone(), pod: Uid::default() };
                self.doubles.take(scene, Thing::Volume(volume.clone()), holder, fact.at, voice);
            }
            Observation::Unmounted { machine, volume } => {
                let thing = Thing::Volume(volume.clone());
                self.doubles.leave(scene, &thing, |h| h.machine == *machine, fact.at, voice);
            }
            Observation::PoweredOff(machine) => self.doubles.leave_all(scene, machine, fact.at, voice),
            Observation::Suspended { machine, .. } | Observation::Resumed(machine) => {
                self.doubles.look_at(scene, machine, fact.at, voice);
            }
            _ => {}
        }
    }

    fn end(&mut self, scene: &Scene, voice: &mut Voice<'_>) {
        self.doubles.end(scene.now(), voice);
    }
}

// === impl Doubles ===

impl Doubles {
    fn take(&mut self, scene: &Scene, thing: Thing, holder: Holder, at: Time, voice: &mut Voice<'_>) {
        let holders = self.holders.entry(thing.clone()).or_default();
        if !holders.contains(&holder) {
            holders.push(holder);
        }
        self.look(scene, &thing, at, voice);
    }

    fn leave(
        &mut self,
        scene: &Scene,
        thing: &Thing,
        who: impl Fn(&Holder) -> bool,
        at: Time,
        voice: &mut Voice<'_>,
    ) {
        let Some(holders) = self.holders.get_mut(thing) else { return };
        holders.retain(|holder| !who(holder));
        if holders.is_empty() {
            self.holders.remove(thing);
        }
        self.look(scene, thing, at, voice);
    }

    fn leave_all(&mut self, scene: &Scene, machine: &NodeName, at: Time, voice: &mut Voice<'_>) {
        for thing in self.held_on(machine) {
            self.leave(scene, &thing, |holder| holder.machine == *machine, at, voice);
        }
    }

    fn look_at(&mut self, scene: &Scene, machine: &NodeName, at: Time, voice: &mut Voice<'_>) {
        for thing in self.held_on(machine) {
            self.look(scene, &thing, at, voice);
        }
    }

    fn held_on(&self, machine: &NodeName) -> Vec<Thing> {
        let held = self.holders.iter().filter(|(_, holders)| holders.iter().any(|h| h.machine == *machine));
        held.map(|(thing, _)| thing.clone()).collect()
    }

    /// Something about the holders of `thing` changed.
    fn look(&mut self, scene: &Scene, thing: &Thing, at: Time, voice: &mut Voice<'_>) {
        let holders = self.holders.get(thing).map_or(&[][..], Vec::as_slice);
        let moving = holders.iter().filter(|holder| scene.is_awake(&holder.machine)).count();
        if holders.len() < 2 {
            if let Some(mut overlap) = self.overlaps.remove(thing) {
                overlap.pause(at);
                overlap.close(voice);
            }
            return;
        }
        let overlap = self.overlaps.entry(thing.clone()).or_default();
        overlap.pause(at);
        if moving < 2 {
            return;
        }
        overlap.moving = Some(at);
        let excused = holders.iter().filter_map(|holder| scene.machine(&holder.machine));
        let excused = excused.map(|machine| machine.excused_until()).max().unwrap_or(Time::ZERO);
        if excused >= at && !overlap.told {
            // Both bounds: the time since the resume, and the sum over repeated pauses.
            let rest = scene.setting.afterlife(false).minus(overlap.spent);
            overlap.deadline = Some(excused.min(at + rest));
        } else if !overlap.told {
            overlap.told = true;
            voice.say(format!("{} is held by {}", name_of(thing), names_of(holders)));
        }
    }

    fn check_deadlines(&mut self, now: Time, voice: &mut Voice<'_>) {
        for (thing, overlap) in &mut self.overlaps {
            if overlap.deadline.is_some_and(|deadline| deadline < now) && !overlap.told {
                overlap.told = true;
                overlap.deadline = None;
                let holders = self.holders.get(thing).map_or(&[][..], Vec::as_slice);
                let (what, who) = (name_of(thing), names_of(holders));
                voice.say(format!("{what} is held by {who} for longer than a pause explains"));
            }
        }
    }

    fn end(&mut self, now: Time, voice: &mut Voice<'_>) {
        self.check_deadlines(now, voice);
        for (_, mut overlap) in std::mem::take(&mut self.overlaps) {
            overlap.pause(now);
            overlap.close(voice);
        }
    }
}

// === impl Overlap ===

impl Overlap {
    fn pause(&mut self, at: Time) {
        if let Some(since) = self.moving.take() {
            self.spent = self.spent + at.since(since);
        }
        self.deadline = None;
    }

    fn close(&self, voice: &mut Voice<'_>) {
        if !self.told && self.spent > Duration::ZERO {
            voice.count_apart(self.spent);
        }
    }
}

fn name_of(thing: &Thing) -> String {
    match thing {
        Thing::Pod(namespace, name) => format!("pod {namespace}/{name}"),
        Thing::Claim(namespace, name) => format!("claim {namespace}/{name}"),
        Thing::Volume(name) => format!("volume {name}"),
    }
}

fn names_of(holders: &[Holder]) -> String {
    let name = |h: &Holder| {
        if h.pod.is_empty() { h.machine.to_string() } else { format!("{} ({})", h.machine, h.pod) }
    };
    holders.iter().map(name).collect::<Vec<_>>().join(" and ")
}

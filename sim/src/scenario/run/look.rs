//! Whether a state holds now, and in words what is the case instead.

use std::collections::BTreeMap;

use api::taint::TaintEffect;
use api::view::{ConditionStatus, EndpointSlice, Node, NodeIncident, Pod, View};
use api::{Kind, Name, Namespace, NodeName, ObjectKey};
use control::decision::{Count, Note};

use super::Uids;
use crate::config::NAMESPACE;
use crate::oracle::scene::Scene;
use crate::run::Stage;
use crate::scenario::{NodeState, PodName, PodState, State, Target, VolumeState};

/// What was seen so far beside the world itself.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Names that the scenario gave to nodes.
    pub(super) names: BTreeMap<NodeName, NodeName>,
    /// Uids of nodes and pods at the first act.
    uids: Uids,
    counts: BTreeMap<Count, u64>,
    notes: Vec<(String, &'static str, String)>,
}

impl Seen {
    pub(super) fn remember(&mut self, scene: &Scene) {
        for view in scene.of_kind(Kind::Node).chain(scene.of_kind(Kind::Pod)) {
            self.uids.insert(view.key().to_string(), view.meta().uid.clone());
        }
    }

    pub(super) fn note(&mut self, note: &Note) {
        self.notes.push((note.about.to_string(), note.reason, note.message.clone()));
    }

    pub(super) fn count(&mut self, count: &Count) {
        *self.counts.entry(count.clone()).or_default() += 1;
    }

    fn node<'n>(&'n self, name: &'n NodeName) -> &'n NodeName {
        self.names.get(name).unwrap_or(name)
    }

    /// True if it is so now.
    pub(super) fn holds(&self, stage: &Stage, state: &State) -> bool {
        let scene = stage.judge.scene();
        match state {
            State::Node(name, state) => self.node_holds(scene, self.node(name), state),
            State::Pod(pod, state) => self.pod_holds(scene, pod, state),
            State::Two(pod) => moving(scene, pod).len() >= 2,
            State::PodsOf(owner, compare, number) => compare.holds(pods_of(scene, owner), *number),
            State::Leads(service, target) => self.leads(scene, service, target),
            State::Volume(volume, state) => self.volume_holds(scene, volume, state),
            State::Tombstone(pod, there) => has_tombstone(scene, pod) == *there,
            State::OpenIncidents(compare, number) => compare.holds(open_incidents(scene), *number),
            State::Count { compare, number, .. } => compare.holds(self.counted(state), *number),
            State::Note { about, reason, text } => self.is_noted(about, reason, text),
            State::Waits(reason, text) => {
                let mut reasons = stage.cluster.reasons().into_iter();
                reasons.any(|(_, key, r, message)| {
                    r == *reason && (message.contains(text) || key.contains(text))
                })
            }
            State::Leader(server) => stage.cluster.leader().is_some_and(|(leader, _)| leader == *server),
            State::Council(name, has) => sits(scene, self.node(name)) == *has,
            State::Whole => stage.judge.missing().is_empty(),
        }
    }

    fn node_holds(&self, scene: &Scene, name: &NodeName, state: &NodeState) -> bool {
        let node = node(scene, name);
        match state {
            NodeState::Exists(there) => node.is_some() == *there,
            NodeState::SameUid(same) => {
                let known = self.uids.get(&ObjectKey::node(name).to_string());
                node.is_some_and(|n| (Some(&n.metadata.uid) == known) == *same)
            }
            NodeState::Condition(kind, status, reason) => {
                node.and_then(|n| n.condition(kind)).is_some_and(|c| {
                    c.status == *status && reason.as_ref().is_none_or(|reason| c.reason == *reason)
                })
            }
            NodeState::Taint { key, effect, there } => {
                node.is_some_and(|n| has_taint(n, key, *effect) == *there)
            }
            NodeState::Incident(phase) => {
                newest_incident(scene, name).is_some_and(|i| i.status.phase == *phase)
            }
            NodeState::NoIncident => !scene.incidents().any(|i| i.is_open() && i.spec.node_name == *name),
            NodeState::Fenced(kind) => scene.incidents().filter(|i| i.spec.node_name == *name).any(|i| {
                i.status.evidence.iter().any(|evidence| kind.is_none_or(|kind| evidence.kind == kind))
            }),
            NodeState::Powered(on) => scene.machine(name).is_some_and(|m| m.boot.is_some()) == *on,
        }
    }

    fn pod_holds(&self, scene: &Scene, name: &PodName, state: &PodState) -> bool {
        let pod = scene.pod(&name.namespace, &name.name);
        match state {
            PodState::Exists(there) => pod.is_some() == *there,
            PodState::Terminating(is) => pod.is_some_and(|p| p.metadata.is_terminating() == *is),
            PodState::Phase(phase) => pod.is_some_and(|p| p.status.phase == *phase),
            PodState::Ready(is) => pod.is_some_and(|p| p.is_ready() == *is),
            PodState::On(node) => pod.is_some_and(|p| p.spec.node_name == *self.node(node)),
            PodState::Bound(is) => pod.is_some_and(|p| p.is_bound() == *is),
            PodState::Running(place, is) => {
                let running = moving(scene, name);
                let found = running.iter().any(|on| place.as_ref().is_none_or(|node| self.node(node) == *on));
                found == *is
            }
            PodState::SameUid(same) => {
                let key = ObjectKey::namespaced(Kind::Pod, &name.namespace, name.name.clone()).to_string();
                pod.is_some_and(|p| (self.uids.get(&key) == Some(&p.metadata.uid)) == *same)
            }
            PodState::Condition(kind, status, reason) => {
                pod.and_then(|p| p.condition(kind)).is_some_and(|c| {
                    c.status == *status && reason.as_ref().is_none_or(|reason| c.reason == *reason)
                })
            }
        }
    }

    fn leads(&self, scene: &Scene, service: &Name, target: &Target) -> bool {
        let slices: Vec<&EndpointSlice> = slices_of(scene, service);
        let ready = || slices.iter().flat_map(|s| &s.endpoints).filter(|e| e.conditions.ready);
        match target {
            Target::Number(compare, number) => compare.holds(ready().count() as u64, *number),
            Target::Node(node, leads) => ready().any(|e| e.node_name == *self.node(node)) == *leads,
        }
    }

    fn volume_holds(&self, scene: &Scene, volume: &Name, state: &VolumeState) -> bool {
        match state {
            VolumeState::Attached(node, is) => {
                let node = self.node(node);
                scene.of_kind(Kind::VolumeAttachment).any(|view| {
                    let View::VolumeAttachment(va) = view else { return false };
                    let is_it =
                        va.spec.source.persistent_volume_name == *volume && va.spec.node_name == *node;
                    is_it && (va.status.attached || !*is)
                }) == *is
            }
            VolumeState::Mounted(node, is) => {
                scene.machine(self.node(node)).is_some_and(|m| m.mounted.contains_key(volume)) == *is
            }
        }
    }

    fn counted(&self, state: &State) -> u64 {
        let State::Count { metric, labels, .. } = state else { return 0 };
        let fits = |count: &Count| {
            count.metric == metric
                && labels
                    .iter()
                    .all(|(k, v)| count.labels.iter().any(|(label, value)| label == k && value == v))
        };
        self.counts.iter().filter(|(count, _)| fits(count)).map(|(_, n)| n).sum()
    }

    fn is_noted(&self, about: &str, reason: &str, text: &str) -> bool {
        let about = about
            .strip_prefix("node/")
            .map_or(about.to_owned(), |name| format!("node/{}", self.node(&NodeName::from(name))));
        self.notes.iter().any(|(a, r, message)| *a == about && *r == reason && message.contains(text))
    }

    /// What is the case instead, for people.
    pub(super) fn describe(&self, stage: &Stage, state: &State) -> String {
        let scene = stage.judge.scene();
        match state {
            State::Node(name, _) => describe_node(scene, self.node(name)),
            State::Pod(pod, _) | State::Two(pod) | State::Tombstone(pod, _) => describe_pod(scene, pod),
            State::PodsOf(owner, ..) => format!("there are {} pods of {owner}", pods_of(scene, owner)),
            State::Leads(service, _) => {
                let slices = slices_of(scene, service);
                let ready = slices.iter().flat_map(|s| &s.endpoints).filter(|e| e.conditions.ready);
                let ready: Vec<String> =
                    ready.map(|e| format!("{} on {}", e.target_ref.name, e.node_name)).collect();
                format!("it leads to [{}]", ready.join(", "))
            }
            State::Volume(volume, _) => describe_volume(scene, volume),
            State::OpenIncidents(..) => format!("{} incidents are open", open_incidents(scene)),
            State::Count { .. } => format!("it is {}", self.counted(state)),
            State::Note { about, .. } => {
                let notes = self.notes.iter().filter(|(a, ..)| a == about);
                let notes: Vec<String> =
                    notes.map(|(_, reason, message)| format!("{reason}: {message}")).collect();
                format!("about it was said [{}]", notes.join("; "))
            }
            State::Waits(..) => {
                let reasons = stage.cluster.reasons().into_iter();
                let reasons: Vec<String> =
                    reasons.map(|(_, key, reason, text)| format!("{key} {reason}: {text}")).collect();
                format!("the leader waits for [{}]", reasons.join("; "))
            }
            State::Leader(_) => format!("leader is {:?}", stage.cluster.leader()),
            State::Council(..) => {
                let council = scene.object(&ObjectKey::cluster(Kind::Council, "council"));
                format!("it is {council:?}")
            }
            State::Whole => format!("missing: {}", stage.judge.missing().join("; ")),
        }
    }
}

fn node<'s>(scene: &'s Scene, name: &NodeName) -> Option<&'s Node> {
    if let View::Node(node) = scene.object(&ObjectKey::node(name))? { Some(node) } else { None }
}

fn has_taint(node: &Node, key: &str, effect: Option<TaintEffect>) -> bool {
    node.spec.taints.iter().any(|t| t.key == key && effect.is_none_or(|effect| t.effect == effect))
}

fn newest_incident<'s>(scene: &'s Scene, name: &NodeName) -> Option<&'s NodeIncident> {
    let of_node = scene.incidents().filter(|i| i.spec.node_name == *name);
    of_node.max_by_key(|i| (i.is_open(), i.status.steps.first().map(|s| s.at)))
}

/// Where instances of that name move.
fn moving<'s>(scene: &'s Scene, pod: &PodName) -> Vec<&'s NodeName> {
    let awake = scene.machines().filter(|(_, m)| m.is_awake()).flat_map(|(_, m)| &m.running);
    awake.filter(|i| i.namespace == pod.namespace && i.name == pod.name).map(|i| &i.machine).collect()
}

fn pods_of(scene: &Scene, owner: &Name) -> u64 {
    scene
        .pods()
        .filter(|p| p.is_active() && p.metadata.controller().is_some_and(|o| o.name == *owner))
        .count() as u64
}

fn slices_of<'s>(scene: &'s Scene, service: &Name) -> Vec<&'s EndpointSlice> {
    let slices = scene
        .of_kind(Kind::EndpointSlice)
        .filter_map(|view| if let View::EndpointSlice(slice) = view { Some(&**slice) } else { None });
    let label = api::annotation::SERVICE_NAME;
    let of_service = |s: &&EndpointSlice| {
        s.metadata.namespace == Namespace::from(NAMESPACE)
            && s.metadata.labels.get(label).is_some_and(|name| name == service.as_str())
    };
    slices.filter(of_service).collect()
}

fn has_tombstone(scene: &Scene, pod: &PodName) -> bool {
    scene.of_kind(Kind::Tombstone).any(|view| {
        let View::Tombstone(stone) = view else { return false };
        stone.spec.pod_namespace == pod.namespace && stone.spec.pod_name == pod.name
    })
}

fn open_incidents(scene: &Scene) -> u64 {
    scene.incidents().filter(|i| i.is_open()).count() as u64
}

fn sits(scene: &Scene, name: &NodeName) -> bool {
    match scene.object(&ObjectKey::cluster(Kind::Council, "council")) {
        Some(View::Council(council)) => {
            council.newest().is_some_and(|m| m.seats.iter().any(|seat| seat.node_name == *name))
        }
        Some(_) | None => false,
    }
}

fn describe_node(scene: &Scene, name: &NodeName) -> String {
    let Some(node) = node(scene, name) else { return format!("there is no node {name}") };
    let taints: Vec<String> = node.spec.taints.iter().map(|t| format!("{}:{:?}", t.key, t.effect)).collect();
    let incident = newest_incident(scene, name).map_or("none".to_owned(), |i| {
        let evidence: Vec<String> = i.status.evidence.iter().map(|e| format!("{:?}", e.kind)).collect();
        format!("{:?} [{}] held by {:?}", i.status.phase, evidence.join(", "), i.status.brakes)
    });
    let ready = node
        .condition("Ready")
        .map_or("no Ready".to_owned(), |c| format!("Ready={:?} {}", c.status, c.reason));
    format!("node {name} has {ready}, taints [{}], incident {incident}", taints.join(", "))
}

fn describe_pod(scene: &Scene, name: &PodName) -> String {
    let running: Vec<&str> = moving(scene, name).into_iter().map(NodeName::as_str).collect();
    let running =
        if running.is_empty() { "nowhere".to_owned() } else { format!("on {}", running.join(", ")) };
    let stone = if has_tombstone(scene, name) { ", with a tombstone" } else { "" };
    let Some(pod) = scene.pod(&name.namespace, &name.name) else {
        return format!("there is no pod {}, and it runs {running}{stone}", name.name);
    };
    describe_object(pod) + &format!(", and it runs {running}{stone}")
}

fn describe_object(pod: &Pod) -> String {
    let place = if pod.is_bound() { format!("on {}", pod.spec.node_name) } else { "unbound".to_owned() };
    let ready = if pod.is_ready() { "Ready" } else { "not Ready" };
    let going = if pod.metadata.is_terminating() { ", terminating" } else { "" };
    let conditions = pod.status.conditions.iter().filter(|c| c.status == ConditionStatus::True);
    let conditions: Vec<String> = conditions.map(|c| format!("{} {}", c.kind, c.reason)).collect();
    let (name, uid) = (&pod.metadata.name, &pod.metadata.uid);
    format!(
        "pod {name} ({uid}) is {:?} {place}, {ready}{going}, conditions [{}]",
        pod.status.phase,
        conditions.join(", ")
    )
}

fn describe_volume(scene: &Scene, volume: &Name) -> String {
    let mut places = Vec::new();
    for view in scene.of_kind(Kind::VolumeAttachment) {
        let View::VolumeAttachment(va) = view else { continue };
        if va.spec.source.persistent_volume_name == *volume {
            let how = if va.status.attached { "attached" } else { "to be attached" };
            places.push(format!("{how} to {}", va.spec.node_name));
        }
    }
    for (name, machine) in scene.machines() {
        if machine.mounted.contains_key(volume) {
            places.push(format!("mounted on {name}"));
        }
    }
    format!("it is [{}]", places.join(", "))
}

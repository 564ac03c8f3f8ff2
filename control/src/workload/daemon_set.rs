//! DaemonSets: one live pod on every eligible node (CT-23, case P40).
//!
//! Responsible for: which nodes get a pod, and the end of pods that have ended or are on the wrong node. Leaves to
//! [`crate::schedule`] the binding (the pod is pinned to its node by affinity), to `registry` the daemon tolerations.
//!
//! Invariants:
//! - P40: however a daemon pod ended, its node gets exactly one live pod again. Failed ones wait for a back-off per
//!   node and set of 1 s, doubling to 15 min.
//! - P41: no pod is made for a node that is about to reboot or is taken for dead: the agent would refuse it, and the
//!   two would feed each other.
//!
//! The level of the back-off is written in the last letter of the pod's name. It has to outlive the failed pod and a
//! restart of this process, and a Failed pod and its successor have nothing else in common: one decision deletes the
//! one and makes the other. A level that gets lost (a crash between the two) makes the next wait shorter, no more.

use std::collections::BTreeMap;

use api::annotation;
use api::taint::{TaintEffect, Toleration, first_untolerated};
use api::view::{ConditionStatus, DaemonSet, IncidentPhase, Node, Pod, PodPhase, View};
use api::{Duration, Kind, Name, NodeName, ObjectKey, Time};

use super::{LETTERS, SUFFIX_LETTERS, by_age, hash, letters, owned, touch_owners, views};
use crate::controller::{Change, Controller, Key, Scope};
use crate::decision::{Action, Decision, Deletion, Dress, Expect, New, Note};
use crate::world::{Seen, World};

/// Pods in one decision at most: upstream's burst of this controller.
const BATCH: usize = 250;
/// First wait before a failed pod is replaced. Half of it would let a crash loop show in the API's load.
const BACKOFF_FIRST: Duration = Duration::from_secs(1);
/// Longest wait. A node that was mended is served after a quarter of an hour at the latest.
const BACKOFF_MAX: Duration = Duration::from_secs(15 * 60);
/// Doublings from the first to the longest wait; each is one letter.
const LEVEL_MAX: usize = 10;
const _: () = assert!(LEVEL_MAX < LETTERS.len(), "every level needs a letter");
const _: () =
    assert!(BACKOFF_FIRST.ms() << LEVEL_MAX >= BACKOFF_MAX.ms(), "the last level is the longest wait");

/// The controller of DaemonSets.
pub struct DaemonSets;

impl Controller for DaemonSets {
    fn scope(&self) -> &'static Scope {
        static SCOPE: Scope = Scope {
            name: "daemonset-controller",
            reads: &[Kind::DaemonSet, Kind::Pod, Kind::Node, Kind::NodeIncident],
            writes: &[Kind::Pod],
        };
        &SCOPE
    }

    fn touched(&self, change: &Change, world: &World, keys: &mut Vec<Key>) {
        let Some((key, old, new)) = views(change) else { return };
        touch_owners(old, new, Kind::DaemonSet, keys);
        let all = match (old, new) {
            (Some(View::Node(old)), Some(View::Node(new))) => looks_other(old, new),
            (Some(View::NodeIncident(old)), Some(View::NodeIncident(new))) => {
                old.status.phase != new.status.phase
            }
            _ => key.kind == Kind::Node || key.kind == Kind::NodeIncident,
        };
        if all {
            keys.extend(world.daemon_sets().map(|s| Key::Object(set_key(s))));
        } else if key.kind == Kind::DaemonSet {
            keys.push(Key::Object(key.clone()));
        }
    }

    fn decide(&self, world: &World, key: &Key, now: Time) -> Decision {
        let Some(set) = key.object().and_then(|k| world.daemon_set(&k.namespace, &k.name)) else {
            return Decision::rest();
        };
        if set.metadata.is_terminating() {
            return Decision::rest();
        }
        let mut sync = Sync::new(world, set, now);
        for node in world.nodes() {
            sync.node(node);
        }
        sync.homeless();
        sync.decision
    }
}

/// What of a node decides whether a daemon pod belongs there. A heartbeat does not, and there are many.
fn looks_other(old: &Node, new: &Node) -> bool {
    old.metadata.uid != new.metadata.uid
        || old.metadata.labels != new.metadata.labels
        || old.metadata.annotations != new.metadata.annotations
        || old.spec != new.spec
        || old.ready() != new.ready()
}

/// One look at one set.
struct Sync<'w> {
    world: &'w World,
    set: &'w Seen<DaemonSet>,
    tolerations: Vec<Toleration>,
    pods: BTreeMap<NodeName, Vec<&'w Seen<Pod>>>,
    /// Pods that may still be made in this decision.
    left: usize,
    now: Time,
    decision: Decision,
}

impl<'w> Sync<'w> {
    fn new(world: &'w World, set: &'w Seen<DaemonSet>, now: Time) -> Self {
        let mut pods: BTreeMap<NodeName, Vec<&Seen<Pod>>> = BTreeMap::new();
        for pod in owned(world, &set.metadata) {
            pods.entry(target(pod)).or_default().push(pod);
        }
        let live = pods.values().flatten().filter(|p| p.is_active()).count();
        let left = (live + 1).min(BATCH);
        Self { world, set, tolerations: tolerations(set), pods, left, now, decision: Decision::rest() }
    }

    fn node(&mut self, node: &'w Seen<Node>) {
        let pods = self.pods.remove(&node.name()).unwrap_or_default();
        if !self.may_stay(node) {
            for pod in pods {
                self.delete(pod);
            }
            return;
        }
        if pods.is_empty() {
            self.create(node, 0);
            return;
        }
        let mut live: Vec<&Seen<Pod>> = pods.iter().copied().filter(|p| p.is_active()).collect();
        for pod in pods.iter().filter(|p| p.is_terminal() && !p.metadata.is_terminating()) {
            // With a live pod beside it the ended one is only litter.
            let replace = live.is_empty() && pods.len() == 1;
            self.ended(node, pod, replace);
        }
        // P40: of several live pods the one that has a node and is oldest stays.
        live.sort_by_key(|p| (!p.is_bound(), by_age(p)));
        for pod in live.into_iter().skip(1) {
            self.delete(pod);
        }
    }

    /// A pod that ended goes, and its successor is made in the same decision.
    fn ended(&mut self, node: &'w Seen<Node>, pod: &'w Seen<Pod>, replace: bool) {
        let (name, on) = (&pod.metadata.name, &node.metadata.name);
        let namespace = &pod.metadata.namespace;
        let once = pod.metadata.uid.to_string();
        let level = level(name);
        let note = if pod.status.phase == PodPhase::Failed {
            let due = ended_at(pod) + backoff(level);
            if due > self.now {
                self.decision.wake_at(due);
                return;
            }
            let text =
                format!("Found failed daemon pod {namespace}/{name} on node {on}, will try to kill it");
            Note::warning(set_key(self.set), "FailedDaemonPod", text, once)
        } else {
            let text =
                format!("Found succeeded daemon pod {namespace}/{name} on node {on}, will try to delete it");
            Note::normal(set_key(self.set), "SucceededDaemonPod", text, once)
        };
        self.decision.actions.push(Action::note(note));
        self.delete(pod);
        if replace {
            // A pod that lived for long has nothing to do with the failures before it.
            let lived = ended_at(pod).since(pod.metadata.creation_timestamp);
            let next = if lived > BACKOFF_MAX.times(2) { 0 } else { (level + 1).min(LEVEL_MAX) };
            self.create(node, next);
        }
    }

    fn create(&mut self, node: &'w Seen<Node>, level: usize) {
        if self.left == 0 || !self.may_start(node) {
            return;
        }
        self.left -= 1;
        let (set, revision) = (&self.set.metadata, self.world.revision().to_string());
        let hash = hash(&[set.uid.as_str(), node.metadata.uid.as_str(), &revision]);
        let stem = letters(hash, SUFFIX_LETTERS - 1);
        let pod = New::Pod {
            owner: set_key(self.set),
            owner_uid: set.uid.clone(),
            name: Name::from(format!("{}-{stem}{}", set.name, char::from(LETTERS[level]))),
            dress: Dress::OnNode(node.metadata.name.clone()),
        };
        self.decision.actions.push(
            Action::create(pod)
                .expecting(Expect::At(set_key(self.set), self.set.rev))
                .expecting(Expect::Uid(ObjectKey::node(&node.name()), node.metadata.uid.clone())),
        );
    }

    fn delete(&mut self, pod: &Seen<Pod>) {
        if pod.metadata.is_terminating() {
            return;
        }
        let key = pod.key();
        self.decision.actions.push(
            Action::delete(key.clone(), pod.metadata.uid.clone(), Deletion::Graceful)
                .expecting(Expect::At(key, pod.rev)),
        );
    }

    /// Pods for nodes that are no more: those that were bound are orphans and somebody else's, the others go here.
    fn homeless(&mut self) {
        for pod in std::mem::take(&mut self.pods).into_values().flatten().filter(|p| !p.is_bound()) {
            self.delete(pod);
        }
    }

    /// CT-23, `shouldContinueRunning`.
    fn may_stay(&self, node: &Node) -> bool {
        fits(self.set, node)
            && first_untolerated(&node.spec.taints, &self.tolerations, &[TaintEffect::NoExecute]).is_none()
    }

    /// CT-23, `shouldRun`, and P41.
    fn may_start(&self, node: &Node) -> bool {
        const EFFECTS: [TaintEffect; 2] = [TaintEffect::NoSchedule, TaintEffect::NoExecute];
        first_untolerated(&node.spec.taints, &self.tolerations, &EFFECTS).is_none()
            && !is_going_down(self.world, node)
    }
}

/// P41: from the announcement of a reboot until the new boot is Ready, and while the node is taken for dead, a pod for
/// it would only be refused. Stock makes it all the same.
fn is_going_down(world: &World, node: &Node) -> bool {
    if !world.settings().is_automatic() {
        return false;
    }
    let announced = crate::schedule::filter::is_about_to_reboot(node)
        || node.announced_reboot().is_some() && node.ready() != ConditionStatus::True;
    let dead = world.open_incident(&node.metadata.uid).is_some_and(|i| i.status.phase >= IncidentPhase::Dead);
    announced || dead
}

/// Node name, selector and affinity of the template.
fn fits(set: &DaemonSet, node: &Node) -> bool {
    let spec = &set.spec.template.spec;
    (spec.node_name.is_empty() || spec.node_name == node.name())
        && crate::schedule::filter::selects(spec, node)
}

/// The tolerations that every daemon pod gets; without out-of-service, which is meant to move daemon pods as well.
fn tolerations(set: &DaemonSet) -> Vec<Toleration> {
    let spec = &set.spec.template.spec;
    let mut all = spec.tolerations.clone();
    let mut add = |key: &str, effect: TaintEffect| all.push(Toleration::exists(key, Some(effect), None));
    add(annotation::NOT_READY, TaintEffect::NoExecute);
    add(annotation::UNREACHABLE, TaintEffect::NoExecute);
    for key in [
        annotation::DISK_PRESSURE,
        annotation::MEMORY_PRESSURE,
        annotation::PID_PRESSURE,
        annotation::UNSCHEDULABLE,
    ] {
        add(key, TaintEffect::NoSchedule);
    }
    if spec.host_network {
        add(annotation::NETWORK_UNAVAILABLE, TaintEffect::NoSchedule);
    }
    all
}

/// The node a daemon pod is for: its own, or the one that its affinity pins it to.
fn target(pod: &Pod) -> NodeName {
    if pod.is_bound() {
        return pod.spec.node_name.clone();
    }
    crate::schedule::filter::pinned(&pod.spec).map(NodeName::from).unwrap_or_default()
}

/// When a pod ended: its last container, as its node says, but not later than this process has seen.
fn ended_at(pod: &Seen<Pod>) -> Time {
    let statuses = pod.status.container_statuses.iter();
    let last = statuses.filter_map(|c| c.state.terminated.as_ref()).map(|t| t.finished_at).max();
    last.filter(|at| *at > Time::ZERO).map_or(pod.at, |at| at.min(pod.at))
}

/// How often in a row a pod of this name had failed before.
fn level(name: &Name) -> usize {
    let last = name.as_str().bytes().last();
    let at = last.and_then(|byte| LETTERS.iter().position(|letter| *letter == byte)).unwrap_or(0);
    if at > LEVEL_MAX { 0 } else { at }
}

fn backoff(level: usize) -> Duration {
    BACKOFF_FIRST.times(1 << level.min(LEVEL_MAX)).min(BACKOFF_MAX)
}

fn set_key(set: &DaemonSet) -> ObjectKey {
    ObjectKey::namespaced(Kind::DaemonSet, &set.metadata.namespace, set.metadata.name.clone())
}

//! L1: in the end everything that should run runs, and nothing else.
//!
//! Responsible for: the list of what is missing, by objects *and* by truth. Leaves to [`crate::run`] when to ask.

use std::collections::{BTreeMap, BTreeSet};

use api::view::{ConditionStatus, Node, Pod, View};
use api::{Kind, Name, Namespace, NodeName, ObjectKey, Uid, annotation};

use super::scene::Scene;
use super::{Promise, Voice, Watch};
use crate::observe::Fact;

/// Invariant L1.
#[derive(Debug)]
pub(super) struct Whole;

/// More than this many missing things are not listed.
const LISTED_MAX: usize = 8;

// === impl Whole ===

impl Watch for Whole {
    fn see(&mut self, _scene: &Scene, _fact: &Fact, _voice: &mut Voice<'_>) {}

    fn end(&mut self, scene: &Scene, voice: &mut Voice<'_>) {
        if !scene.setting.promises.contains(&Promise::Whole) {
            return;
        }
        let missing = missing(scene);
        if !missing.is_empty() {
            let more = if missing.len() > LISTED_MAX { "; and more" } else { "" };
            let listed: Vec<_> = missing.iter().take(LISTED_MAX).map(String::as_str).collect();
            let waited = scene.calm_since().map(|at| scene.now().since(at)).unwrap_or_default();
            voice.say(format!("{waited} after the last fault: {}{more}", listed.join("; ")));
        }
    }
}

/// What is still missing, in words.
pub(super) fn missing(scene: &Scene) -> Vec<String> {
    let mut missing = Vec::new();
    nodes(scene, &mut missing);
    workloads(scene, &mut missing);
    pods(scene, &mut missing);
    volumes(scene, &mut missing);
    services(scene, &mut missing);
    remains(scene, &mut missing);
    missing
}

/// Every machine is up, its Node is Ready and carries no taint of its death.
fn nodes(scene: &Scene, missing: &mut Vec<String>) {
    for (name, machine) in scene.machines() {
        if !machine.is_awake() {
            missing.push(format!("machine {name} does not run"));
        }
        match scene.object(&ObjectKey::node(name)) {
            Some(View::Node(node)) => missing.extend(node_trouble(node)),
            _ => missing.push(format!("node {name} is not registered")),
        }
    }
}

fn node_trouble(node: &Node) -> Option<String> {
    let name = &node.metadata.name;
    if node.ready() != ConditionStatus::True {
        return Some(format!("node {name} is not Ready"));
    }
    let keys = [annotation::NOT_READY, annotation::UNREACHABLE, annotation::OUT_OF_SERVICE];
    let taint = node.spec.taints.iter().find(|t| keys.contains(&t.key.as_str()))?;
    Some(format!("node {name} still has the taint {}", taint.key))
}

/// Every workload has the pods that it wishes.
fn workloads(scene: &Scene, missing: &mut Vec<String>) {
    let mut active: BTreeMap<Uid, Vec<&Pod>> = BTreeMap::new();
    for pod in scene.pods().filter(|p| p.is_active()) {
        if let Some(owner) = pod.metadata.controller() {
            active.entry(owner.uid.clone()).or_default().push(pod);
        }
    }
    let count = |uid: &Uid| active.get(uid).map_or(0, Vec::len) as u64;
    for view in scene.of_kind(Kind::ReplicaSet) {
        let View::ReplicaSet(owner) = view else { continue };
        let (has, wished) = (count(&owner.metadata.uid), u64::from(owner.spec.replicas.unwrap_or(1)));
        if has != wished {
            missing.push(format!("replicaset {} has {has} of {wished} pods", owner.metadata.name));
        }
    }
    for view in scene.of_kind(Kind::StatefulSet) {
        let View::StatefulSet(owner) = view else { continue };
        let (has, wished) = (count(&owner.metadata.uid), u64::from(owner.spec.replicas.unwrap_or(1)));
        if has != wished {
            missing.push(format!("statefulset {} has {has} of {wished} pods", owner.metadata.name));
        }
    }
    let nodes = scene.of_kind(Kind::Node).count() as u64;
    for view in scene.of_kind(Kind::DaemonSet) {
        let View::DaemonSet(owner) = view else { continue };
        let has = count(&owner.metadata.uid);
        if has != nodes {
            missing.push(format!("daemonset {} has {has} pods on {nodes} nodes", owner.metadata.name));
        }
    }
}

/// Every pod object runs and is Ready, and nothing runs without one.
fn pods(scene: &Scene, missing: &mut Vec<String>) {
    let mut wished = BTreeMap::new();
    for pod in scene.pods().filter(|p| !p.is_terminal()) {
        let name = format!("pod {}/{}", pod.metadata.namespace, pod.metadata.name);
        wished.insert(&pod.metadata.uid, &pod.spec.node_name);
        if pod.metadata.is_terminating() {
            missing.push(format!("{name} is still terminating"));
        } else if !pod.is_bound() {
            missing.push(format!("{name} has no node"));
        } else if !pod.is_ready() {
            missing.push(format!("{name} on {} is not Ready", pod.spec.node_name));
        } else if !runs_on(scene, pod, &pod.spec.node_name) {
            missing.push(format!("{name} is said to run on {}, but does not", pod.spec.node_name));
        }
    }
    for instance in scene.machines().flat_map(|(_, m)| &m.running) {
        if wished.get(&instance.pod_uid).is_none_or(|node| **node != instance.machine) {
            let (namespace, name) = (&instance.namespace, &instance.name);
            missing.push(format!("pod {namespace}/{name} runs on {} and should not", instance.machine));
        }
    }
}

fn runs_on(scene: &Scene, pod: &Pod, node: &NodeName) -> bool {
    scene.machine(node).is_some_and(|m| m.running.iter().any(|i| i.pod_uid == pod.metadata.uid))
}

/// The node that each volume is used on, by the pods.
fn used(scene: &Scene) -> BTreeMap<Name, BTreeSet<NodeName>> {
    let mut used: BTreeMap<Name, BTreeSet<NodeName>> = BTreeMap::new();
    for pod in scene.pods().filter(|p| !p.is_terminal() && p.is_bound()) {
        let namespace: &Namespace = &pod.metadata.namespace;
        for name in pod.claims() {
            let key = ObjectKey::namespaced(Kind::PersistentVolumeClaim, namespace, name.clone());
            if let Some(View::PersistentVolumeClaim(claim)) = scene.object(&key) {
                let nodes = used.entry(claim.spec.volume_name.clone()).or_default();
                nodes.insert(pod.spec.node_name.clone());
            }
        }
    }
    used
}

/// Every volume is attached and mounted where it is used, and nowhere else.
fn volumes(scene: &Scene, missing: &mut Vec<String>) {
    let used = used(scene);
    let mut attached: BTreeSet<(Name, NodeName)> = BTreeSet::new();
    for view in scene.of_kind(Kind::VolumeAttachment) {
        let View::VolumeAttachment(attachment) = view else { continue };
        let volume = attachment.spec.source.persistent_volume_name.clone();
        let node = attachment.spec.node_name.clone();
        if !used.get(&volume).is_some_and(|nodes| nodes.contains(&node)) {
            missing.push(format!("volume {volume} is still attached to {node}"));
        } else if attachment.status.attached {
            attached.insert((volume, node));
        }
    }
    for (volume, nodes) in &used {
        let is_attachable = matches!(
            scene.object(&ObjectKey::cluster(Kind::PersistentVolume, volume.clone())),
            Some(View::PersistentVolume(pv)) if pv.spec.csi.is_some()
        );
        for node in nodes.iter().filter(|_| is_attachable) {
            if !attached.contains(&(volume.clone(), node.clone())) {
                missing.push(format!("volume {volume} is not attached to {node}"));
            } else if !scene.machine(node).is_some_and(|m| m.mounted.contains_key(volume)) {
                missing.push(format!("volume {volume} is not mounted on {node}"));
            }
        }
    }
    for (name, machine) in scene.machines() {
        for volume in machine.mounted.keys() {
            if !used.get(volume).is_some_and(|nodes| nodes.contains(name)) {
                missing.push(format!("volume {volume} is still mounted on {name}"));
            }
        }
    }
}

/// Every service leads to every ready pod that it selects, and to nothing else.
fn services(scene: &Scene, missing: &mut Vec<String>) {
    let mut led: BTreeMap<(Namespace, String), BTreeSet<Uid>> = BTreeMap::new();
    for view in scene.of_kind(Kind::EndpointSlice) {
        let View::EndpointSlice(slice) = view else { continue };
        let service = slice.metadata.labels.get(annotation::SERVICE_NAME).cloned().unwrap_or_default();
        let ready = slice.endpoints.iter().filter(|e| e.conditions.ready).map(|e| e.target_ref.uid.clone());
        led.entry((slice.metadata.namespace.clone(), service)).or_default().extend(ready);
    }
    for view in scene.of_kind(Kind::Service) {
        let View::Service(service) = view else { continue };
        let (namespace, name) = (&service.metadata.namespace, &service.metadata.name);
        let selects = |pod: &Pod| {
            pod.metadata.namespace == *namespace
                && service.spec.selector.iter().all(|(k, v)| pod.metadata.labels.get(k) == Some(v))
        };
        let ready = scene.pods().filter(|p| p.is_active() && p.is_ready() && selects(p));
        let ready: BTreeSet<Uid> = ready.map(|p| p.metadata.uid.clone()).collect();
        let leads = led.remove(&(namespace.clone(), name.to_string())).unwrap_or_default();
        if leads != ready {
            missing.push(format!("service {name} leads to {} of {} ready pods", leads.len(), ready.len()));
        }
    }
}

/// Nothing of the troubles is left over.
fn remains(scene: &Scene, missing: &mut Vec<String>) {
    for incident in scene.incidents().filter(|i| i.is_open()) {
        let (node, phase) = (&incident.spec.node_name, incident.status.phase);
        missing.push(format!("the incident of node {node} is still {phase:?}"));
    }
    for view in scene.of_kind(Kind::Tombstone) {
        let View::Tombstone(tombstone) = view else { continue };
        missing.push(format!("a tombstone of pod {} is left", tombstone.spec.pod_name));
    }
}

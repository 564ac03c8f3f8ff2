//! Which nodes a pod may be bound to.
//!
//! Responsible for: stock's filters in stock's order, with stock's words, and ours behind them (P13, tombstones, volumes
//! that may still be in use). Leaves to [`super::score`] the choice among what is left.
//!
//! Invariant: under the profile `kubernetes` only stock's filters speak.

use std::borrow::Cow;
use std::collections::BTreeSet;

use api::annotation::{OUT_OF_SERVICE, UNSCHEDULABLE};
use api::flaw::Flaw;
use api::taint::{Taint, TaintEffect, first_untolerated};
use api::view::{AccessMode, ConditionStatus, Node, PersistentVolume, PersistentVolumeClaim, Pod, PodSpec};
use api::{Name, NodeName, Uid};

use super::board::{Amounts, Board, Room, attachable, host_ports, requests};
use crate::workload::node_uid;
use crate::world::{Seen, World};

/// What a pod needs, computed once for all nodes.
pub(super) struct Wish<'w> {
    pub(super) pod: &'w Seen<Pod>,
    pub(super) requests: Amounts,
    ports: Vec<(String, u16)>,
    attachable: Vec<(String, String)>,
    volumes: Vec<&'w Seen<PersistentVolume>>,
    /// A claim is bound to a volume that does not exist.
    has_lost_volume: bool,
    /// A claim for one pod is in use.
    is_claim_taken: bool,
    /// Nodes on which somebody uses a claim that one node at most may use.
    held_on: BTreeSet<NodeName>,
    is_daemon: bool,
    /// Ours to judge beyond stock's rules.
    is_automatic: bool,
}

/// What a pod needs, or why no node will do.
pub(super) fn wish<'w>(board: &Board<'w>, pod: &'w Seen<Pod>) -> Result<Wish<'w>, String> {
    let world = board.world;
    let namespace = &pod.metadata.namespace;
    if let Some(hold) = hold(world, pod) {
        return Err(hold);
    }
    let is_automatic = world.settings().is_automatic();
    let mut wish = Wish {
        pod,
        requests: requests(pod),
        ports: host_ports(pod).collect(),
        attachable: attachable(world, pod),
        volumes: Vec::new(),
        has_lost_volume: false,
        is_claim_taken: false,
        held_on: BTreeSet::new(),
        is_daemon: pod.metadata.controller().is_some_and(|o| o.kind == "DaemonSet"),
        is_automatic,
    };
    for name in pod.claims() {
        let Some(claim) = world.claim(namespace, name) else {
            return Err(format!("persistentvolumeclaim \"{name}\" not found"));
        };
        if claim.metadata.is_terminating() {
            return Err(format!("persistentvolumeclaim \"{name}\" is being deleted"));
        }
        if claim.spec.volume_name.is_empty() {
            return Err("pod has unbound immediate PersistentVolumeClaims".to_owned());
        }
        match world.volume_of_claim(namespace, name) {
            Some(volume) => wish.volumes.push(volume),
            None => wish.has_lost_volume = true,
        }
        wish.look_at_users(board, claim, name);
    }
    Ok(wish)
}

impl Wish<'_> {
    fn look_at_users(&mut self, board: &Board<'_>, claim: &PersistentVolumeClaim, name: &Name) {
        let is_for_one_pod = claim.spec.access_modes.contains(&AccessMode::ReadWriteOncePod);
        for (user, node) in board.users(&self.pod.metadata.namespace, name, &self.pod.metadata.uid) {
            let is_over = match self.is_automatic {
                true => is_known_stopped(board.world, user),
                false => user.is_terminal(),
            };
            if is_over {
                continue;
            }
            self.is_claim_taken |= is_for_one_pod;
            if self.is_automatic && claim.is_single_node() {
                self.held_on.insert(node.clone());
            }
        }
    }
}

/// The tombstone that stands against a pod: the identity, or a claim for one node, may still be in use.
pub(super) fn hold(world: &World, pod: &Pod) -> Option<String> {
    if world.settings().lacks(Flaw::NoTombstone) {
        return None;
    }
    let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
    let is_single = |claim: &Name| world.claim(namespace, claim).is_none_or(|c| c.is_single_node());
    let stone = world.tombstones().find(|t| {
        let same_claim = || pod.claims().any(|c| t.spec.claims.contains(c) && is_single(c));
        t.spec.pod_namespace == *namespace && (t.spec.pod_name == *name || same_claim())
    })?;
    let spec = &stone.spec;
    Some(format!(
        "pod {}/{} (uid {}) may still run on node {}; bound when the node reports it stopped or there is evidence that \
         the node cannot act",
        spec.pod_namespace, spec.pod_name, spec.pod_uid, spec.node_name
    ))
}

/// True if a bound pod cannot write to its volumes any more. A final phase is the agent's word that all containers have
/// stopped, unless one of us wrote it (FailPod leaves the last reported containers, and says DisruptionTarget); then
/// only evidence about its node counts.
pub(crate) fn is_known_stopped(world: &World, pod: &Pod) -> bool {
    if !pod.is_terminal() {
        return false;
    }
    let is_reported = !pod.status.container_statuses.is_empty() && !pod.has_running_container();
    let never_ran = pod.status.container_statuses.is_empty() && pod.condition("DisruptionTarget").is_none();
    is_reported || never_ran || is_fenced(world, &node_uid(world, pod))
}

/// True if there is evidence about the node that speaks about the present.
fn is_fenced(world: &World, uid: &Uid) -> bool {
    world.incidents_of(uid).any(|i| i.stands())
}

/// The node that a pod's affinity pins it to, as DaemonSets do.
pub(crate) fn pinned(spec: &PodSpec) -> Option<&str> {
    let terms =
        &spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution.node_selector_terms;
    let [term] = terms.as_slice() else { return None };
    let field = term.match_fields.iter().find(|r| r.key == "metadata.name" && r.operator == "In")?;
    match field.values.as_slice() {
        [name] => Some(name),
        _ => None,
    }
}

/// Node selector and required node affinity.
pub(crate) fn selects(spec: &PodSpec, node: &Node) -> bool {
    let labels = &node.metadata.labels;
    spec.node_selector.iter().all(|(k, v)| labels.get(k) == Some(v))
        && spec
            .affinity
            .node_affinity
            .required_during_scheduling_ignored_during_execution
            .matches(node.metadata.name.as_str(), labels)
}

/// True if the node said that its current boot is about to end.
pub(crate) fn is_about_to_reboot(node: &Node) -> bool {
    node.announced_reboot().is_some_and(|(boot, _)| boot == node.recorded_boot())
}

/// Why a pod may not be bound to a node; nothing if it may. As upstream the first filter that refuses is heard; the
/// filter of resources has a word for each resource.
pub(super) fn obstacles(board: &mut Board<'_>, wish: &Wish<'_>, at: usize) -> Vec<Cow<'static, str>> {
    let node: &Node = board.nodes[at];
    let spec = &wish.pod.spec;
    if let Some(obstacle) = by_node(spec, node) {
        return vec![obstacle];
    }
    if let Some(obstacle) = by_life(board.world, wish, node) {
        return vec![obstacle.into()];
    }
    let room = board.room(at);
    if wish.ports.iter().any(|port| room.ports.contains(port)) {
        return vec!["node(s) didn't have free ports for the requested pod ports".into()];
    }
    let short = insufficient(&wish.requests, room);
    if !short.is_empty() {
        return short;
    }
    if wish.is_claim_taken {
        return vec![
            "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
                .into(),
        ];
    }
    let is_full = wish.attachable.iter().any(|(driver, _)| {
        let limit = node.status.allocatable.get(&format!("attachable-volumes-csi-{driver}"));
        let there = room.volumes.get(driver);
        let new = |name: &str| there.is_none_or(|t| !t.contains(name));
        let more: BTreeSet<&str> =
            wish.attachable.iter().filter(|(d, v)| d == driver && new(v)).map(|(_, v)| v.as_str()).collect();
        let total = i64::try_from(there.map_or(0, BTreeSet::len) + more.len()).unwrap_or(i64::MAX);
        !more.is_empty() && limit.is_some_and(|l| total > l.value())
    });
    if is_full {
        return vec!["node(s) exceed max volume count".into()];
    }
    by_volume(wish, node).into_iter().collect()
}

/// NodeUnschedulable, TaintToleration, NodeAffinity.
fn by_node(spec: &PodSpec, node: &Node) -> Option<Cow<'static, str>> {
    let tolerates_cordon = || {
        let cordon = Taint::new(UNSCHEDULABLE, TaintEffect::NoSchedule);
        spec.tolerations.iter().any(|t| t.tolerates(&cordon))
    };
    if node.spec.unschedulable && !tolerates_cordon() {
        return Some("node(s) were unschedulable".into());
    }
    const EFFECTS: [TaintEffect; 2] = [TaintEffect::NoSchedule, TaintEffect::NoExecute];
    if let Some(taint) = first_untolerated(&node.spec.taints, &spec.tolerations, &EFFECTS) {
        return Some(format!("node(s) had untolerated taint {{{}: {}}}", taint.key, taint.value).into());
    }
    (!selects(spec, node)).then(|| "node(s) didn't match Pod's node affinity/selector".into())
}

/// P13: ours, and not for daemon pods, which have nowhere else to go.
fn by_life(world: &World, wish: &Wish<'_>, node: &Node) -> Option<&'static str> {
    if !wish.is_automatic || wish.is_daemon {
        return None;
    }
    if world.open_incident(&node.metadata.uid).is_some() {
        return Some("node(s) had an open incident");
    }
    if node.ready() != ConditionStatus::True {
        return Some("node(s) were not ready");
    }
    if is_about_to_reboot(node) {
        return Some("node(s) were about to reboot");
    }
    node.has_taint(OUT_OF_SERVICE).then_some("node(s) were out of service")
}

/// NodeResourcesFit.
fn insufficient(wanted: &Amounts, room: &Room) -> Vec<Cow<'static, str>> {
    let mut short = Vec::new();
    if room.free_pods < 1 {
        short.push("Too many pods".into());
    }
    for (name, amount) in wanted {
        if *amount > room.free.get(name).copied().unwrap_or(0) {
            short.push(format!("Insufficient {name}").into());
        }
    }
    short
}

/// VolumeBinding, and ours: a volume for one node that somebody may still use on another cannot come along.
fn by_volume(wish: &Wish<'_>, node: &Node) -> Option<Cow<'static, str>> {
    if wish.has_lost_volume {
        return Some("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)".into());
    }
    let (name, labels) = (node.metadata.name.as_str(), &node.metadata.labels);
    if wish.volumes.iter().any(|v| !v.spec.node_affinity.required.matches(name, labels)) {
        return Some("node(s) didn't match PersistentVolume's node affinity".into());
    }
    let other = wish.held_on.iter().find(|held| held.as_str() != name)?;
    Some(format!("node(s) could not get a volume that a pod on node {other} may still use").into())
}

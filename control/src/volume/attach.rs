//! The attach/detach controller (AD-01 to AD-38, VA-01 to VA-04).
//!
//! Responsible for: which VolumeAttachments there are, and what each node is told of them. Leaves to [`super::detach`]
//! the judgement whether a volume may be taken away, to the CSI attacher what the driver does.
//!
//! ```text
//!  key = volume:  wanted, not attached ──► create attachment ─► (attacher) ─► attached
//!  key = node:    attached, not to go  ──► in the node's list ─► (agent) mounts
//!  key = node:    may go               ──► out of the list                   AD-09
//!  key = volume:  may go, not listed   ──► delete attachment ─► (attacher) ─► gone
//! ```
//!
//! Two kinds of keys, because there are two kinds of objects that must not be written from two sides: a volume may
//! have one attachment only, and a node has one list for all its volumes. Each step is a function of objects, so a
//! restart between any two changes nothing (case P29).
//!
//! Invariants:
//! - V1: a volume for one node gets an attachment only while none exists elsewhere, in whatever state.
//! - P28: under the automatic profiles nothing is attached to a node that is suspected, not Ready or out of service.

use std::collections::BTreeSet;

use api::annotation::{NODE_UID, OUT_OF_SERVICE};
use api::edit::Edit;
use api::timing::Automatic;
use api::view::{
    AttachedVolume, ConditionStatus, Meta, Node, PersistentVolume, Pod, View, VolumeAttachment,
    VolumeAttachmentSource, VolumeAttachmentSpec, VolumeAttachmentStatus,
};
use api::{Kind, Name, NodeName, ObjectKey, Time};

pub(crate) use super::detach::is_wanted;
use super::detach::{self, Plan, is_at_home};
use super::{attachment_key, attachment_name, is_managed, users, volume_key};
use crate::controller::{Change, Controller, Key, Scope};
use crate::decision::{Action, Decision, Expect, New, Note};
use crate::workload::by_age;
use crate::world::{Seen, World};

/// The attach/detach controller.
pub struct AttachDetach;

impl Controller for AttachDetach {
    fn scope(&self) -> &'static Scope {
        static SCOPE: Scope = Scope {
            name: "persistentvolume-attach-detach-controller",
            reads: &[
                Kind::Node,
                Kind::Pod,
                Kind::PersistentVolume,
                Kind::PersistentVolumeClaim,
                Kind::VolumeAttachment,
                Kind::NodeIncident,
                Kind::Tombstone,
            ],
            writes: &[Kind::Node, Kind::VolumeAttachment],
        };
        &SCOPE
    }

    fn touched(&self, change: &Change, world: &World, keys: &mut Vec<Key>) {
        let Change::Object { key, old, new } = change else { return };
        if let (Some(View::Node(old)), Some(View::Node(new))) = (old, new)
            && !looks_other(old, new)
        {
            return;
        }
        let mut touched = Touched::default();
        for view in [old, new].into_iter().flatten() {
            match view {
                View::Pod(pod) => touched.pod(world, pod),
                View::PersistentVolumeClaim(claim) => touched.volume(world, &claim.spec.volume_name),
                View::PersistentVolume(_) => touched.volume(world, &key.name),
                View::VolumeAttachment(attachment) => touched.attachment(attachment),
                View::Node(node) => touched.node(world, &node.name()),
                View::NodeIncident(incident) => touched.node(world, &incident.spec.node_name),
                View::Tombstone(stone) => {
                    for claim in &stone.spec.claims {
                        let volume = world.volume_of_claim(&stone.spec.pod_namespace, claim);
                        volume.into_iter().for_each(|v| touched.volume(world, &v.metadata.name));
                    }
                }
                View::Lease(_)
                | View::ReplicaSet(_)
                | View::Deployment(_)
                | View::StatefulSet(_)
                | View::DaemonSet(_)
                | View::Service(_)
                | View::EndpointSlice(_)
                | View::Council(_) => {}
            }
        }
        keys.extend(touched.keys());
    }

    fn decide(&self, world: &World, key: &Key, now: Time) -> Decision {
        let Some(key) = key.object() else { return Decision::rest() };
        if key.kind == Kind::PersistentVolume {
            return of_volume(world, &key.name, now);
        }
        world.node(&NodeName::from(&key.name)).map_or_else(Decision::rest, |node| of_node(world, node, now))
    }
}

/// What of a node this controller looks at. A heartbeat is nothing, and there are many.
fn looks_other(old: &Node, new: &Node) -> bool {
    old.metadata.uid != new.metadata.uid
        || old.metadata.annotations != new.metadata.annotations
        || old.spec.taints != new.spec.taints
        || old.ready() != new.ready()
        || old.status.volumes_attached != new.status.volumes_attached
        || old.status.volumes_in_use != new.status.volumes_in_use
}

/// Keys that a change may concern.
#[derive(Default)]
struct Touched {
    volumes: BTreeSet<Name>,
    nodes: BTreeSet<Name>,
}

impl Touched {
    fn keys(self) -> impl Iterator<Item = Key> {
        let nodes = self.nodes.into_iter().map(|n| ObjectKey::cluster(Kind::Node, n));
        self.volumes.iter().map(volume_key).collect::<Vec<_>>().into_iter().chain(nodes).map(Key::Object)
    }

    fn volume(&mut self, world: &World, name: &Name) {
        if name.is_empty() {
            return;
        }
        self.volumes.insert(name.clone());
        self.nodes.extend(world.attachments_of(name).map(|a| Name::from(&a.spec.node_name)));
    }

    fn attachment(&mut self, attachment: &VolumeAttachment) {
        self.volumes.insert(attachment.spec.source.persistent_volume_name.clone());
        self.nodes.insert(Name::from(&attachment.spec.node_name));
    }

    fn pod(&mut self, world: &World, pod: &Pod) {
        for claim in pod.claims() {
            let volume = world.volume_of_claim(&pod.metadata.namespace, claim);
            volume.into_iter().for_each(|v| self.volume(world, &v.metadata.name));
        }
    }

    fn node(&mut self, world: &World, node: &NodeName) {
        self.nodes.insert(Name::from(node));
        self.volumes.extend(world.attachments_on(node).map(|a| a.spec.source.persistent_volume_name.clone()));
        for pod in world.pods_on(node) {
            for claim in pod.claims() {
                let volume = world.volume_of_claim(&pod.metadata.namespace, claim);
                self.volumes.extend(volume.map(|v| v.metadata.name.clone()));
            }
        }
    }
}

// === key = volume ===

fn of_volume(world: &World, name: &Name, now: Time) -> Decision {
    let mut decision = Decision::rest();
    for attachment in world.attachments_of(name) {
        match detach::plan(world, attachment, now) {
            Plan::Keep => {}
            Plan::Hold { why, wake } => {
                wake.into_iter().for_each(|at| decision.wake_at(at));
                let once = attachment.metadata.uid.to_string();
                decision.why.get_or_insert(Note::normal(volume_key(name), "DetachWaits", why, once));
            }
            // VA-04: a delete that has begun is waited for. AD-09: first out of the node's list.
            Plan::Detach { forced, expect } => {
                if !attachment.metadata.is_terminating() && !is_listed(world, attachment) {
                    decision.actions.push(detach::delete(attachment, forced, expect));
                }
            }
        }
    }
    if let Some(volume) = world.volume(name) {
        attach(world, volume, now, &mut decision);
    }
    decision
}

/// True while the node is told that it may mount the volume.
fn is_listed(world: &World, attachment: &VolumeAttachment) -> bool {
    let Some(node) = world.node(&attachment.spec.node_name) else { return false };
    let name = world.volume(&attachment.spec.source.persistent_volume_name).and_then(|v| v.unique_name());
    is_at_home(world, attachment)
        && name.is_some_and(|name| node.status.volumes_attached.iter().any(|v| v.name == name))
}

/// AD-33: what is wanted and not there.
fn attach(world: &World, volume: &Seen<PersistentVolume>, now: Time, decision: &mut Decision) {
    let mut pods: Vec<&Seen<Pod>> = users(world, volume).collect();
    pods.sort_by_key(|p| by_age(p));
    let mut created: BTreeSet<&NodeName> = BTreeSet::new();
    for pod in pods {
        let node_name = &pod.spec.node_name;
        let here = world.attachments_of(&volume.metadata.name).any(|a| a.spec.node_name == *node_name);
        if here || created.contains(node_name) {
            continue;
        }
        // Invariant V1: an attachment in any state counts, and so does one that this decision makes.
        let elsewhere = world.attachments_of(&volume.metadata.name).next();
        if !volume.is_multi_attach() && (elsewhere.is_some() || !created.is_empty()) {
            decision.why = Some(multi_attach(world, volume, pod, now));
            continue;
        }
        let Some(node) = world.node(node_name) else { continue };
        if !pod.node_uid().is_empty() && pod.node_uid() != node.metadata.uid || !is_managed(node) {
            continue;
        }
        if let Some(reason) = refusal(world, volume, node) {
            let text =
                format!("AttachVolume.Attach failed for volume \"{}\" : {reason}", volume.metadata.name);
            let once = pod.metadata.uid.to_string();
            decision.why.get_or_insert(Note::warning(pod.key(), "FailedAttachVolume", text, once));
            continue;
        }
        decision.actions.extend(create(world, volume, node));
        created.insert(node_name);
    }
}

/// Why a volume is not attached to a node although a pod there wants it.
fn refusal(world: &World, volume: &PersistentVolume, node: &Node) -> Option<String> {
    // VA-06.
    if volume.metadata.is_terminating() {
        return Some("the volume is being deleted".to_owned());
    }
    if !world.settings().is_automatic() {
        return None;
    }
    // P28.
    let name = &node.metadata.name;
    if let Some(incident) = world.open_incident(&node.metadata.uid) {
        return Some(format!("node {name} has an open incident ({:?})", incident.status.phase));
    }
    if node.ready() != ConditionStatus::True {
        return Some(format!("node {name} is not Ready"));
    }
    node.has_taint(OUT_OF_SERVICE).then(|| format!("node {name} is marked out of service"))
}

fn create(world: &World, volume: &Seen<PersistentVolume>, node: &Seen<Node>) -> Option<Action> {
    let csi = volume.spec.csi.as_ref()?;
    let node_name = node.name();
    let name = attachment_name(csi, &node_name);
    // Another volume object with the same handle has it.
    if world.attachment(&name).is_some() {
        return None;
    }
    // Which machine it is for: a name is a label on the door (P25, P86).
    let annotations = match world.settings().timing.automatic {
        Automatic::On => [(NODE_UID.to_owned(), node.metadata.uid.to_string())].into(),
        Automatic::Off => [].into(),
    };
    let attachment = VolumeAttachment {
        metadata: Meta { name, annotations, ..Meta::default() },
        spec: VolumeAttachmentSpec {
            attacher: csi.driver.clone(),
            source: VolumeAttachmentSource { persistent_volume_name: volume.metadata.name.clone() },
            node_name: node_name.clone(),
        },
        status: VolumeAttachmentStatus::default(),
    };
    Some(
        Action::create(New::Object(Box::new(View::VolumeAttachment(attachment.into()))))
            .expecting(Expect::Uid(ObjectKey::node(&node_name), node.metadata.uid.clone()))
            .expecting(Expect::Uid(volume_key(&volume.metadata.name), volume.metadata.uid.clone())),
    )
}

/// AD-34, with what holds the volume, and what would free it, behind upstream's words (P22).
fn multi_attach(world: &World, volume: &Seen<PersistentVolume>, pod: &Seen<Pod>, now: Time) -> Note {
    let others = users(world, volume).filter(|p| p.spec.node_name != pod.spec.node_name);
    let (near, far): (Vec<_>, Vec<_>) = others.partition(|p| p.metadata.namespace == pod.metadata.namespace);
    let names: Vec<&str> = near.iter().map(|p| p.metadata.name.as_str()).collect();
    let mut text = format!("Multi-Attach error for volume \"{}\" ", volume.metadata.name);
    text += &match (names.is_empty(), far.len()) {
        (true, 0) => {
            "Volume is already exclusively attached to one node and can't be attached to another".to_owned()
        }
        (true, n) => format!("Volume is already used by {n} pod(s) in different namespaces"),
        (false, 0) => format!("Volume is already used by pod(s) {}", names.join(", ")),
        (false, n) => {
            format!(
                "Volume is already used by pod(s) {} and {n} pod(s) in different namespaces",
                names.join(", ")
            )
        }
    };
    if world.settings().is_automatic() {
        for attachment in world.attachments_of(&volume.metadata.name) {
            if let Plan::Hold { why, .. } = detach::plan(world, attachment, now) {
                text += &format!("; {why}");
            }
        }
    }
    Note::warning(pod.key(), "FailedAttachVolume", text, pod.metadata.uid.to_string())
}

// === key = node ===

/// AD-37: the list of what the node may mount: everything attached that is not about to go.
fn of_node(world: &World, node: &Seen<Node>, now: Time) -> Decision {
    let mut decision = Decision::rest();
    if !is_managed(node) {
        return decision;
    }
    let mut list = Vec::new();
    let mut added = Vec::new();
    for attachment in world.attachments_on(&node.name()) {
        let volume = world.volume(&attachment.spec.source.persistent_volume_name);
        let Some((volume, name)) = volume.and_then(|v| Some((v, v.unique_name()?))) else { continue };
        if !attachment.status.attached
            || attachment.metadata.is_terminating()
            || !is_at_home(world, attachment)
        {
            continue;
        }
        match detach::plan(world, attachment, now) {
            Plan::Keep => {}
            Plan::Hold { wake, .. } => wake.into_iter().for_each(|at| decision.wake_at(at)),
            Plan::Detach { .. } => continue,
        }
        let before = node.status.volumes_attached.iter().find(|v| v.name == name);
        if before.is_none() {
            added.push((volume, attachment));
        }
        list.push(before.cloned().unwrap_or(AttachedVolume { name, device_path: String::new() }));
    }
    list.sort_by(|a, b| a.name.cmp(&b.name));
    let mut listed = node.status.volumes_attached.clone();
    listed.sort_by(|a, b| a.name.cmp(&b.name));
    if list != listed {
        let mut edit = Action::edit(ObjectKey::node(&node.name()), node.rev, Edit::VolumesAttached(list));
        for (_, attachment) in &added {
            // An attachment that began to go since the view was made is not listed again: the node would mount what is
            // about to be detached. The other way round the delete finds another revision of the node.
            edit = edit.expecting(Expect::At(attachment_key(attachment), attachment.rev));
        }
        decision.actions.push(edit);
        decision.actions.extend(added.into_iter().flat_map(|(v, _)| succeeded(world, v, &node.name())));
    }
    decision
}

/// AD-35.
fn succeeded(world: &World, volume: &Seen<PersistentVolume>, node: &NodeName) -> Vec<Action> {
    users(world, volume)
        .filter(|pod| pod.spec.node_name == *node)
        .map(|pod| {
            let text = format!("AttachVolume.Attach succeeded for volume \"{}\"", volume.metadata.name);
            let once = format!("{}/{}", pod.metadata.uid, volume.metadata.name);
            Action::note(Note::normal(pod.key(), "SuccessfulAttachVolume", text, once))
        })
        .collect()
}

//! When a volume may be taken from a node (AD-04 to AD-10, AD-20 to AD-32; table 8.4 of the rules).
//!
//! Responsible for: the judgement about one attachment. Leaves to [`super::attach`] the two writes that follow: out of
//! the node's list, then the attachment deleted.
//!
//! Under the profile `kubernetes` the judgement is stock's, six minutes included. Under the automatic profiles a node
//! that may still write keeps its volume, however long that takes (case P23): only the node's own report of the
//! unmount, or recorded evidence about that very node, takes it away.
//!
//! Invariants:
//! - E1: a detach without the node's word rests on evidence about that node's identity, in an incident that still
//!   forbids it everything.
//! - P25: no attachment outlives the identity of its node: a new machine of the same name is another node.

use api::flaw::Flaw;
use api::timing::Automatic;
use api::view::{ConditionStatus, Node, VolumeAttachment};
use api::{Duration, ObjectKey, Time, Uid, annotation};

use super::{attachment_key, attachment_node_uid, is_managed, users};
use crate::decision::{Action, Deletion, Expect};
use crate::world::{Seen, World};

/// AD-10, as upstream exposes it: the prefix is doubled there.
const FORCED_DETACHES: &str = "attach_detach_controller_attachdetach_controller_forced_detaches";

/// What should become of one attachment.
#[derive(Debug)]
pub(super) enum Plan {
    /// A pod on the node wants it, or it is not ours to judge.
    Keep,
    /// Nobody wants it, and it is not safe to take it away.
    Hold {
        /// What it waits for, for people.
        why: String,
        /// When time alone changes that (stock only).
        wake: Option<Time>,
    },
    /// It may go.
    Detach {
        /// The label of the metric if the node was not asked.
        forced: Option<&'static str>,
        /// What the judgement rests on; compared again when it is carried out.
        expect: Vec<Expect>,
    },
}

/// True if some pod on the attachment's node wants the volume there.
pub(crate) fn is_wanted(world: &World, attachment: &VolumeAttachment) -> bool {
    let Some(volume) = world.volume(&attachment.spec.source.persistent_volume_name) else { return false };
    let uid = attachment_node_uid(attachment);
    users(world, volume).any(|pod| {
        // A pod of another machine of the same name wants nothing here (case P86).
        let is_same_machine = uid.is_empty() || pod.node_uid().is_empty() || pod.node_uid() == uid;
        pod.spec.node_name == attachment.spec.node_name && is_same_machine
    })
}

/// The judgement.
pub(super) fn plan(world: &World, attachment: &Seen<VolumeAttachment>, now: Time) -> Plan {
    // Gate 1: nobody on that node wants the volume.
    if is_wanted(world, attachment) {
        return Plan::Keep;
    }
    if world.node(&attachment.spec.node_name).is_some_and(|n| !is_managed(n)) {
        return Plan::Keep;
    }
    match world.settings().timing.automatic {
        Automatic::Off => stock(world, attachment, now),
        Automatic::On => proven(world, attachment),
    }
}

/// The delete that carries out a [`Plan::Detach`].
pub(super) fn delete(
    attachment: &VolumeAttachment,
    forced: Option<&'static str>,
    expect: Vec<Expect>,
) -> Action {
    let uid = attachment.metadata.uid.clone();
    let mut action = Action::delete(attachment_key(attachment), uid, Deletion::Graceful);
    action.expect.extend(expect);
    match forced {
        Some(reason) => action.counting(FORCED_DETACHES, &[("reason", reason)]),
        None => action,
    }
}

// === stock ===

/// Table 8.4, row by row. The last gate is ours also here (difference (c)).
fn stock(world: &World, attachment: &Seen<VolumeAttachment>, now: Time) -> Plan {
    let node = world.node(&attachment.spec.node_name);
    let limit = world.settings().timing.max_wait_for_unmount;
    let since = world.unwanted_since(&attachment.metadata.name).unwrap_or(now);
    // AD-04: strictly more. A limit beyond all time is `--disable-force-detach-on-timeout`.
    let is_expired = now.since(since) > limit;
    // AD-05.
    let is_healthy = node.is_some_and(|n| n.ready() == ConditionStatus::True);
    // AD-06, AD-31: by key alone, and without asking whether the node is Ready.
    let is_out_of_service = node.is_some_and(|n| n.has_taint(annotation::OUT_OF_SERVICE));
    // AD-32: the last word of a node whose object is gone was "mounted", for all we know.
    let is_mounted = node.is_none_or(|n| is_mounted(world, attachment, n));
    let forced = match (is_expired, is_out_of_service) {
        (true, _) => Some("timeout"),
        (false, true) => Some("out-of-service"),
        (false, false) => None,
    };
    // AD-07.
    let is_forced = is_expired && !is_healthy || is_out_of_service;
    if is_mounted && !is_forced {
        let why = format!("waits for the unmount on node {}", attachment.spec.node_name);
        let is_waiting = !is_expired && limit < Duration::MAX;
        return Plan::Hold { why, wake: is_waiting.then(|| since + limit + Duration::from_ms(1)) };
    }
    Plan::Detach { forced, expect: last_gate(world, attachment).into_iter().collect() }
}

// === automatic ===

/// The machine that an attachment was made for.
enum Home<'w> {
    /// Its Node object is there.
    Here(&'w Seen<Node>),
    /// Its Node object is gone; the identity, if it is known.
    Gone(Uid),
}

fn home<'w>(world: &'w World, attachment: &VolumeAttachment) -> Home<'w> {
    let uid = attachment_node_uid(attachment);
    match world.node(&attachment.spec.node_name) {
        Some(node) if uid == node.metadata.uid => Home::Here(node),
        // An attachment of foreign making that is older than the Node belongs to an earlier machine of that name.
        Some(node)
            if uid.is_empty()
                && node.metadata.creation_timestamp <= attachment.metadata.creation_timestamp =>
        {
            Home::Here(node)
        }
        Some(_) | None => Home::Gone(uid),
    }
}

/// True if the attachment belongs to the machine that now has this Node object.
pub(super) fn is_at_home(world: &World, attachment: &VolumeAttachment) -> bool {
    match world.settings().timing.automatic {
        Automatic::Off => true,
        Automatic::On => matches!(home(world, attachment), Home::Here(_)),
    }
}

fn proven(world: &World, attachment: &Seen<VolumeAttachment>) -> Plan {
    match home(world, attachment) {
        Home::Here(node) => from_node(world, attachment, node),
        Home::Gone(uid) => from_nobody(world, attachment, &uid),
    }
}

/// From a node whose object is there.
fn from_node(world: &World, attachment: &Seen<VolumeAttachment>, node: &Seen<Node>) -> Plan {
    // Gate 2: the node says that it does not have it mounted. It says so before it mounts and mounts only what stands
    // in its list (AD-38), so that this word counts even if it is old.
    if !is_mounted(world, attachment, node) {
        // That word may be a late one, from before the pod that went without its node's word: then only the end of its
        // tombstone says that it is gone.
        if let Some(tombstone) = holding_tombstone(world, attachment, &node.metadata.uid) {
            let why = format!("pod {tombstone} may still run on node {}", attachment.spec.node_name);
            return Plan::Hold { why, wake: None };
        }
        return Plan::Detach { forced: None, expect: last_gate(world, attachment).into_iter().collect() };
    }
    // Gate 3: or there is evidence that this node cannot act. No time that passes stands in for it (P23), and neither
    // does a taint: set by hand it is evidence only once the incident says so (P10).
    let Some(incident) = world.open_incident(&node.metadata.uid).filter(|i| i.status.phase.has_evidence())
    else {
        let why = format!(
            "node {} may still have it mounted; freed by its report of the unmount or by evidence that it cannot act",
            attachment.spec.node_name
        );
        return Plan::Hold { why, wake: None };
    };
    // The node may have booted since. A boot under an incident with evidence is granted nothing (C17), so that what it
    // reports as in use is still the report of the boot that the evidence is about; only its own new report ends that.
    let mut expect = vec![Expect::At(incident.key(), incident.rev)];
    expect.extend(last_gate(world, attachment));
    Plan::Detach { forced: Some("out-of-service"), expect }
}

/// From a node whose object is gone: somebody removed it, and that alone proves nothing (P26).
fn from_nobody(world: &World, attachment: &Seen<VolumeAttachment>, uid: &Uid) -> Plan {
    let name = &attachment.spec.node_name;
    // Gate 2: evidence about that very identity. Where it is not known, about a node of that name since the volume
    // was attached.
    let evidence = if uid.is_empty() {
        world.incidents().find(|i| {
            i.spec.node_name == *name
                && i.stands()
                && i.metadata.creation_timestamp >= attachment.metadata.creation_timestamp
        })
    } else {
        world.incidents_of(uid).find(|i| i.stands())
    };
    let Some(incident) = evidence else {
        let why =
            format!("node {name} is gone from the API, and there is no evidence yet that it cannot act");
        return Plan::Hold { why, wake: None };
    };
    // Gate 3: no pod of that node that used the volume is still taken for running.
    if let Some(tombstone) = holding_tombstone(world, attachment, uid) {
        let why = format!("pod {tombstone} may still run on node {name}");
        return Plan::Hold { why, wake: None };
    }
    let mut expect = vec![Expect::At(incident.key(), incident.rev)];
    expect.extend(last_gate(world, attachment));
    Plan::Detach { forced: Some("out-of-service"), expect }
}

/// The name of a pod whose tombstone stands against the detach.
fn holding_tombstone(world: &World, attachment: &VolumeAttachment, uid: &Uid) -> Option<String> {
    if world.settings().lacks(Flaw::NoTombstone) {
        return None;
    }
    let volume = world.volume(&attachment.spec.source.persistent_volume_name)?;
    let claim = volume.spec.claim_ref.as_ref()?;
    let stands = world.tombstones().find(|t| {
        t.spec.node_uid == *uid
            && t.spec.pod_namespace == claim.namespace
            && t.spec.claims.contains(&claim.name)
    })?;
    Some(format!("{}/{}", stands.spec.pod_namespace, stands.spec.pod_name))
}

// === both ===

/// Last gate: a fresh read of the Node, compared in the same transaction. A node that mounted the volume, came back or
/// was registered anew since the view was made has another revision (P11, AD-20).
fn last_gate(world: &World, attachment: &VolumeAttachment) -> Option<Expect> {
    if world.settings().lacks(Flaw::NoFreshRead) {
        return None;
    }
    let key = ObjectKey::node(&attachment.spec.node_name);
    Some(match world.node(&attachment.spec.node_name) {
        Some(node) => Expect::Fresh(key, node.rev),
        None => Expect::Gone(key),
    })
}

/// True if the node reports the volume as in use. Of a volume whose object is gone the name is not known; then any
/// volume in use may be this one.
fn is_mounted(world: &World, attachment: &VolumeAttachment, node: &Node) -> bool {
    let volume = world.volume(&attachment.spec.source.persistent_volume_name);
    match volume.and_then(|v| v.unique_name()) {
        Some(name) => node.status.volumes_in_use.contains(&name),
        None => !node.status.volumes_in_use.is_empty(),
    }
}

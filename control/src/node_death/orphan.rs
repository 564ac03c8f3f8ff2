//! Orphans: pods, volumes and tombstones of a node whose Node object is gone.
//!
//! Responsible for: opening an incident for a node uid that something still hangs on although there is no such Node
//! (case P86: another Node of the same name is another machine). Leaves the course of it to [`super::incident`]: the
//! machine may live, so deleting its Node is a word and no proof.
//!
//! Invariant N1 holds as for [`suspicion`]: the name of an incident is derived, so that two decisions make one.

use std::collections::BTreeMap;

use api::view::{NodeIncident, View};
use api::{BootId, Kind, NodeName, Time, Uid};

use super::suspicion;
use crate::controller::{Change, Controller, Key, Layer, Scope};
use crate::decision::Decision;
use crate::volume::attachment_node_uid;
use crate::world::World;

/// Opens incidents for nodes whose object is gone.
pub struct Orphans;

static SCOPE: Scope = Scope {
    name: "orphan",
    reads: &[Kind::Node, Kind::Pod, Kind::Tombstone, Kind::VolumeAttachment, Kind::NodeIncident],
    writes: &[Kind::NodeIncident],
};

impl Controller for Orphans {
    fn scope(&self) -> &'static Scope {
        &SCOPE
    }

    fn layer(&self) -> Layer {
        Layer::Automatic
    }

    fn touched(&self, change: &Change, world: &World, keys: &mut Vec<Key>) {
        let Change::Object { old, new, .. } = change else { return };
        let concerned = match (old.as_ref(), new.as_ref()) {
            (Some(View::Node(_)), _) | (_, Some(View::Tombstone(_) | View::VolumeAttachment(_))) => true,
            (_, Some(View::Pod(pod))) => {
                !pod.node_uid().is_empty() && world.node_by_uid(&pod.node_uid()).is_none()
            }
            (_, Some(View::NodeIncident(i))) => !i.is_open(),
            _ => false,
        };
        if concerned {
            keys.push(Key::Cluster);
        }
    }

    fn decide(&self, world: &World, _key: &Key, now: Time) -> Decision {
        let mut decision = Decision::rest();
        for (uid, (name, boot)) in orphaned(world) {
            if !world.incidents_of(&uid).any(|i| speaks_for(i)) {
                decision.actions.push(suspicion::open(name, &uid, &boot, world, now));
            }
        }
        decision
    }
}

/// True if something hangs on a machine without Node object and nothing proves yet that it cannot act.
pub(super) fn is_anybody_orphaned(world: &World) -> bool {
    orphaned(world).keys().any(|uid| !world.incidents_of(uid).any(|i| i.stands()))
}

/// True if the incident is open, or proved for ever that the machine of that uid is gone.
fn speaks_for(incident: &NodeIncident) -> bool {
    incident.is_open() || incident.stands()
}

/// Uids that pods, volumes or tombstones hang on although there is no such Node: name and boot, as far as known.
fn orphaned(world: &World) -> BTreeMap<Uid, (NodeName, BootId)> {
    let mut found = BTreeMap::new();
    for tombstone in world.tombstones() {
        let spec = &tombstone.spec;
        if world.node_by_uid(&spec.node_uid).is_none() {
            found.insert(spec.node_uid.clone(), (spec.node_name.clone(), spec.boot_id.clone()));
        }
    }
    for attachment in world.attachments() {
        let uid = attachment_node_uid(attachment);
        if !uid.is_empty() && world.node_by_uid(&uid).is_none() {
            found.entry(uid).or_insert((attachment.spec.node_name.clone(), BootId::default()));
        }
    }
    for node in world.nodes_with_pods() {
        for pod in world.pods_on(node) {
            let uid = pod.node_uid();
            if !uid.is_empty() && world.node_by_uid(&uid).is_none() && world.is_exclusive(pod) {
                found.entry(uid).or_insert((node.clone(), BootId::default()));
            }
        }
    }
    found
}

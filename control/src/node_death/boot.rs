//! Boots: the leader records the boot of a node before it grants anything to it.
//!
//! Responsible for: the recorded boot on the Node object. Leaves to [`super::pulse`] the judgement that another boot
//! really is newer (P5), to [`super::incident`] what a new boot means for an incident.
//!
//! Invariant P4 (C15): a boot is recorded durably before its first grant. Otherwise a server that granted boot b2 and
//! crashed leaves a successor that takes b2 for proof that "b1" is gone, and fails pods that run under b2.

use api::edit::Edit;
use api::view::{IncidentPhase, View};
use api::{Kind, NodeName, ObjectKey, Time};

use super::pulse::is_heard;
use crate::controller::{Change, Controller, Key, Layer, Scope};
use crate::decision::{Action, Decision};
use crate::world::World;

/// Records boots.
pub struct Boots;

static SCOPE: Scope = Scope { name: "boot", reads: &[Kind::Node, Kind::NodeIncident], writes: &[Kind::Node] };

impl Controller for Boots {
    fn scope(&self) -> &'static Scope {
        &SCOPE
    }

    fn layer(&self) -> Layer {
        Layer::Automatic
    }

    fn touched(&self, change: &Change, world: &World, keys: &mut Vec<Key>) {
        match change {
            Change::Heard(uid) => {
                keys.extend(world.node_by_uid(uid).map(|n| Key::Object(ObjectKey::node(&n.name()))));
            }
            Change::Object { key, new: Some(View::Node(_)), .. } => keys.push(Key::Object(key.clone())),
            Change::Object { new: Some(View::NodeIncident(i)), .. } => {
                keys.push(Key::Object(ObjectKey::node(&i.spec.node_name)));
            }
            Change::Object { .. } | Change::Zones => {}
        }
    }

    fn decide(&self, world: &World, key: &Key, now: Time) -> Decision {
        let Some(node) = key.object().and_then(|k| world.node(&NodeName::from(&k.name))) else {
            return Decision::rest();
        };
        let uid = &node.metadata.uid;
        let Some(ear) = world.pulse.ear(uid) else { return Decision::rest() };
        let recorded = node.recorded_boot();
        if ear.boot == recorded || !is_heard(world, uid, now) {
            return Decision::rest();
        }
        // Invariant P5 (C16): a late beat of a boot that was superseded, heard first by a new leader, records nothing.
        if !world.pulse.is_newer_than_record(ear, &recorded) {
            return Decision::rest();
        }
        // An incident about the old boot is first ended as "rebooted", so that it never judges the new one.
        let undecided = world.open_incident(uid).is_some_and(|i| match i.status.phase {
            IncidentPhase::Suspect | IncidentPhase::Dead | IncidentPhase::Fencing => true,
            IncidentPhase::Fenced | IncidentPhase::Recovering | IncidentPhase::Closed => false,
        });
        if undecided {
            return Decision::rest();
        }
        let edit = Edit::RecordBoot(ear.boot.clone());
        Decision::rest().with(Action::edit(ObjectKey::node(&node.name()), node.rev, edit))
    }
}

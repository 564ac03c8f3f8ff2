//! Suspicion: opens an incident for a node that fell silent.
//!
//! Responsible for: the first step (Suspect) and for a Node object that never had an agent. Leaves every later step to
//! [`super::incident`].
//!
//! Invariant N1: at most one incident per node uid is open. Its name is the node, its uid and the number of the incident
//! of that uid: whoever has not seen the one that is open makes another of the same name, and fails.

use api::view::{IncidentPhase, IncidentSpec, IncidentStatus, Meta, Node, NodeIncident, StepName, View};
use api::{Kind, NodeName, ObjectKey, Time, Uid};

use super::brake::{self, Silence};
use crate::controller::{Change, Controller, Key, Layer, Scope};
use crate::decision::{Action, Decision, New, Note};
use crate::world::{Seen, World};

/// Opens incidents.
pub struct Suspicion;

static SCOPE: Scope = Scope {
    name: "suspicion",
    reads: &[Kind::Node, Kind::NodeIncident, Kind::Council],
    writes: &[Kind::NodeIncident],
};

impl Controller for Suspicion {
    fn scope(&self) -> &'static Scope {
        &SCOPE
    }

    fn layer(&self) -> Layer {
        Layer::Automatic
    }

    fn touched(&self, change: &Change, world: &World, keys: &mut Vec<Key>) {
        match change {
            Change::Object { key, .. } if key.kind == Kind::Node => keys.push(Key::Object(key.clone())),
            Change::Object { new: Some(View::NodeIncident(incident)), .. } if !incident.is_open() => {
                keys.push(Key::Object(ObjectKey::node(&incident.spec.node_name)));
            }
            Change::Heard(uid) => {
                keys.extend(world.node_by_uid(uid).map(|n| Key::Object(ObjectKey::node(&n.name()))));
            }
            Change::Object { .. } | Change::Zones => {}
        }
    }

    fn decide(&self, world: &World, key: &Key, now: Time) -> Decision {
        let Some(node) = key.object().and_then(|k| world.node(&NodeName::from(&k.name))) else {
            return Decision::rest();
        };
        let uid = &node.metadata.uid;
        if world.open_incident(uid).is_some() {
            return Decision::rest();
        }
        let since = world.pulse.silent_since(uid);
        let due = due(world, node, since);
        if now < due {
            return Decision::wait(due);
        }
        let held = brake::brakes(world, Silence { uid, since, incident: None }, now);
        if !held.is_empty() {
            let text =
                format!("node {} is silent since {since:?}, but nothing is done: {held:?}", node.name());
            let note =
                Note::warning(ObjectKey::node(&node.name()), "IncidentHeld", text, format!("{since:?}"));
            return Decision::wait(brake::look_again(now)).because(note);
        }
        Decision::rest().with(open(node.name(), uid, &node.recorded_boot(), world, now))
    }
}

/// When the silence of a node becomes suspicious. A Node that no agent ever spoke for has upstream's start-up grace.
fn due(world: &World, node: &Seen<Node>, since: Time) -> Time {
    let timing = &world.settings().timing;
    let never_spoke = world.pulse.last_heard(&node.metadata.uid).is_none() && node.recorded_boot().is_empty();
    if never_spoke {
        since.max(node.metadata.creation_timestamp) + timing.node_startup_grace
    } else {
        since + timing.suspect
    }
}

/// The action that opens an incident of a node uid that has none open.
pub(super) fn open(node_name: NodeName, uid: &Uid, boot: &api::BootId, world: &World, now: Time) -> Action {
    let kill_bound = world.pulse.ear(uid).map_or(world.settings().timing.kill_bound, |e| e.kill_bound);
    let mut status = IncidentStatus {
        phase: IncidentPhase::Suspect,
        kill_bound_ms: kill_bound.ms(),
        ..IncidentStatus::default()
    };
    status.take_step(StepName::Suspected, now);
    let name = format!("{node_name}-{uid}-{}", number(world, uid) + 1);
    let spec = IncidentSpec { node_name, node_uid: uid.clone(), boot_id: boot.clone() };
    let metadata = Meta { name: name.into(), ..Meta::default() };
    let view = View::NodeIncident(NodeIncident { metadata, spec, status }.into());
    Action::create(New::Object(Box::new(view)))
}

/// The number of the newest incident of a node uid; zero if there was none.
fn number(world: &World, uid: &Uid) -> u64 {
    let numbers =
        world.incidents_of(uid).filter_map(|i| i.metadata.name.as_str().rsplit('-').next()?.parse().ok());
    numbers.max().unwrap_or(0)
}

//! Tombstones: an exclusive pod whose object went without its node's word may still run.
//!
//! Responsible for: removing a tombstone when there is evidence. Leaves to `registry` to write it in the transaction
//! that removes the pod, to `agent` to remove it on the node's own word, to `schedule` to bind nothing while it stands.
//!
//! Invariant T1: a tombstone goes only on the word of its node, or on evidence that stands: a fenced incident of that
//! node uid that is open or ended with its Node gone, or another recorded boot of the same node uid.

use api::flaw::Flaw;
use api::view::{Tombstone, View};
use api::{Kind, ObjectKey, Time, Uid};

use crate::controller::{Change, Controller, Key, Layer, Scope};
use crate::decision::{Action, Decision, Deletion, Note};
use crate::world::World;

/// Removes tombstones on evidence.
pub struct Tombstones;

static SCOPE: Scope = Scope {
    name: "tombstone",
    reads: &[Kind::Tombstone, Kind::NodeIncident, Kind::Node],
    writes: &[Kind::Tombstone],
};

impl Controller for Tombstones {
    fn scope(&self) -> &'static Scope {
        &SCOPE
    }

    fn layer(&self) -> Layer {
        Layer::Automatic
    }

    fn touched(&self, change: &Change, world: &World, keys: &mut Vec<Key>) {
        let Change::Object { key, new: Some(new), .. } = change else { return };
        if let View::Tombstone(_) = new {
            keys.push(Key::Object(key.clone()));
        } else if let View::NodeIncident(incident) = new {
            touch(world, &incident.spec.node_uid, keys);
        } else if let View::Node(node) = new {
            touch(world, &node.metadata.uid, keys);
        }
    }

    fn decide(&self, world: &World, key: &Key, _now: Time) -> Decision {
        let Some(object) = key.object() else { return Decision::rest() };
        let Some(tombstone) = world.tombstone(&object.name) else { return Decision::rest() };
        if may_still_run(world, tombstone) {
            let text = format!(
                "pod {}/{} may still run on node {}; its node's word or proof of its death would end that",
                tombstone.spec.pod_namespace, tombstone.spec.pod_name, tombstone.spec.node_name
            );
            return Decision::rest().because(Note::normal(object.clone(), "MayStillRun", text, ""));
        }
        // Somebody's finalizer holds it: a second deletion would change nothing, and be decided again at once.
        if tombstone.metadata.is_terminating() {
            return Decision::rest();
        }
        Decision::rest().with(Action::delete(object.clone(), tombstone.metadata.uid.clone(), Deletion::Force))
    }
}

fn touch(world: &World, node: &Uid, keys: &mut Vec<Key>) {
    let concerned = world.tombstones().filter(|t| t.spec.node_uid == *node);
    keys.extend(concerned.map(|t| Key::Object(ObjectKey::cluster(Kind::Tombstone, t.metadata.name.clone()))));
}

/// True while nothing proves that the pod's old machine cannot run it.
fn may_still_run(world: &World, tombstone: &Tombstone) -> bool {
    let spec = &tombstone.spec;
    let boot_matters = !world.settings().lacks(Flaw::NoBoot);
    let rebooted = world.node_by_uid(&spec.node_uid).is_some_and(|n| {
        let recorded = n.recorded_boot();
        !recorded.is_empty() && recorded != spec.boot_id
    });
    // While an incident with evidence is open, nothing exclusive runs in any boot of that node uid, and one that ended
    // with its Node object gone holds for ever. One that ended with the node taken up again says nothing any more.
    let fenced = world.incidents_of(&spec.node_uid).any(|i| i.stands() || (i.was_fenced() && !boot_matters));
    !(rebooted || fenced)
}

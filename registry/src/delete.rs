//! How an object goes.
//!
//! Responsible for: grace, finalizers, the numbered gates of a deletion on evidence, and the tombstone of a pod that
//! goes without its node's word. Leaves to bodies: preconditions (CT-04), which are compared with the revision.
//!
//! ```text
//! graceful, bound, alive ─► marked: deletionTimestamp = now + grace ─► its node says "gone" (force) ─► removed
//! force, proven, ended, not bound, other kinds ─► no finalizer ─► removed
//!                                               └► finalizers ─► marked with grace 0 ─► last one goes ─► removed
//! ```
//!
//! Invariants: a deletion time, once set, only moves back (CT-02); a pod is removed without a tombstone only if it
//! is not exclusive, never had a node, its own node said so, or evidence says so.
//!
//! It exists for S1: between a force delete and the death of the containers nobody else may take the pod's place.

#[cfg(test)]
mod tests;

use api::id::Uid;
use api::object::{Kind, ObjectKey};
use api::time::{Duration, Time};
use api::view::{NodeIncident, View};
use api::write::Deletion;
use serde_json::Value;

use crate::edit::grow_generation;
use crate::refusal::Refusal;
use crate::tombstone::{self, Departure};
use crate::tree as t;
use crate::write::{Caller, Effect, Occasion};
use crate::{prepare, restrict};

/// Deletes `tree`, the object under `key`.
///
/// # Errors
/// The caller may not, or the evidence does not prove what it is used for.
pub fn delete(
    key: &ObjectKey,
    tree: &mut Value,
    deletion: &Deletion,
    on: &Occasion<'_>,
) -> Result<Effect, Refusal> {
    restrict::delete(key, tree, on.caller)?;
    if let Deletion::Proven { incident } = deletion {
        check_proof(key, tree, incident, on)?;
    }
    let has_finalizers = !t::list(tree, &["metadata", "finalizers"]).is_empty();
    let grace = grace_secs(key.kind, tree, deletion);
    let changed = if t::text(tree, &["metadata", "deletionTimestamp"]).is_empty() {
        if grace > 0 || has_finalizers {
            mark(key.kind, tree, on.now, grace);
        }
        grace > 0 || has_finalizers
    } else {
        match deletion {
            // CT-02: a second polite request adds nothing to the first.
            Deletion::Graceful => return Ok(Effect::Same),
            Deletion::Force | Deletion::Proven { .. } => shorten(tree, grace),
        }
    };
    if grace > 0 || has_finalizers {
        return Ok(Effect::of_change(changed));
    }
    Ok(Effect::Remove { tombstone: left_behind(key, tree, deletion, on)? })
}

/// CT-01. Grace in whole seconds; zero is at once. Kinds without a grace of their own go at once.
fn grace_secs(kind: Kind, tree: &Value, deletion: &Deletion) -> i64 {
    match deletion {
        Deletion::Force | Deletion::Proven { .. } => return 0,
        Deletion::Graceful => {}
    }
    let is_bound = !t::text(tree, &["spec", "nodeName"]).is_empty();
    let has_ended = matches!(t::text(tree, &["status", "phase"]), "Succeeded" | "Failed");
    if kind != Kind::Pod || !is_bound || has_ended {
        return 0;
    }
    let stated = t::get(tree, &["spec", "terminationGracePeriodSeconds"]).and_then(Value::as_i64);
    let secs = stated.unwrap_or(prepare::GRACE_SECS_DEFAULT);
    if secs < 0 { 1 } else { secs }
}

/// Begins a deletion.
fn mark(kind: Kind, tree: &mut Value, now: Time, grace: i64) {
    let meta = t::fields(tree, &["metadata"]);
    t::set_time(meta, "deletionTimestamp", now + secs(grace));
    t::set(meta, "deletionGracePeriodSeconds", grace);
    if prepare::has_generation(kind) {
        grow_generation(tree);
    }
}

/// CT-02: a deletion that has begun gets a shorter grace, never a longer one. True if it did.
fn shorten(tree: &mut Value, grace: i64) -> bool {
    let old = t::get(tree, &["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64).unwrap_or(0);
    if grace >= old {
        return false;
    }
    let ends = t::time(tree, &["metadata", "deletionTimestamp"]).unwrap_or(Time::ZERO);
    let meta = t::fields(tree, &["metadata"]);
    t::set_time(meta, "deletionTimestamp", ends.back(secs(old)) + secs(grace));
    t::set(meta, "deletionGracePeriodSeconds", grace);
    true
}

fn secs(grace: i64) -> Duration {
    Duration::from_secs(u64::try_from(grace).unwrap_or(0))
}

/// The tombstone, unless the node itself or evidence says that nothing runs any more.
fn left_behind(
    key: &ObjectKey,
    tree: &Value,
    deletion: &Deletion,
    on: &Occasion<'_>,
) -> Result<Option<Value>, Refusal> {
    let is_own_word = match (deletion, on.caller) {
        // KR-21: an agent removes the object when its containers are gone. Its name was checked by `restrict`; here
        // the identity must be on record too, because a new machine may carry the old one's name (P86).
        (Deletion::Force, Caller::Node { uid, .. }) => {
            !uid.is_empty() && tombstone::bound_uid(tree) == uid.as_str()
        }
        (Deletion::Proven { .. }, _) => return Ok(None),
        // A node that asks politely has not said that the containers are gone.
        (Deletion::Graceful, _) | (Deletion::Force, Caller::Controller | Caller::User) => false,
    };
    if is_own_word { Ok(None) } else { tombstone::of(key, tree, Departure::ForceDeleted, on) }
}

/// The gates before a deletion on evidence. Invariant E1: evidence is about that very node, by identity.
///
/// The boot is not compared with the one on record. While evidence stands nothing exclusive is granted to any boot of
/// that node, so it speaks for all of them; and a boot that came after the death may be on record already.
fn check_proof(
    key: &ObjectKey,
    tree: &Value,
    incident_key: &ObjectKey,
    on: &Occasion<'_>,
) -> Result<(), Refusal> {
    // 1. The incident is there now, in the store.
    let incident = match (on.read)(incident_key) {
        Some(View::NodeIncident(incident)) => incident,
        Some(_) | None => return Err(Refusal::NotFound { key: incident_key.clone() }),
    };
    // 2. Evidence is recorded and the node has not been taken up again since: an old death proves nothing about
    //    what was started after it.
    if !incident.stands() {
        let why = format!("{incident_key} is {:?}: no evidence stands", incident.status.phase);
        return Err(Refusal::conflict(key, why));
    }
    // 3. It is about the node that held this object. A name is not a machine (P86).
    if holder(key, tree, &incident, on)? != Some(incident.spec.node_uid.clone()) {
        return Err(Refusal::conflict(key, format!("{incident_key} is about another node")));
    }
    Ok(())
}

/// Identity of the machine that may still use what `tree` stands for; `None` if there is none or nobody knows.
fn holder(
    key: &ObjectKey,
    tree: &Value,
    incident: &NodeIncident,
    on: &Occasion<'_>,
) -> Result<Option<Uid>, Refusal> {
    let known = |text: &str| (!text.is_empty()).then(|| Uid::from(text));
    match key.kind {
        Kind::Pod => Ok(known(tombstone::bound_uid(tree))),
        Kind::Tombstone => Ok(known(t::text(tree, &["spec", "nodeUID"]))),
        Kind::VolumeAttachment => {
            let name = t::text(tree, &["spec", "nodeName"]);
            Ok(match tombstone::node(&name.into(), on) {
                Some(node) => Some(node.metadata.uid.clone()),
                // An attachment knows only the name. Once the Node is gone, the incident of that name is the last
                // one to know whose it was.
                None => (incident.spec.node_name.as_str() == name).then(|| incident.spec.node_uid.clone()),
            })
        }
        Kind::Node
        | Kind::Lease
        | Kind::ReplicaSet
        | Kind::Deployment
        | Kind::StatefulSet
        | Kind::DaemonSet
        | Kind::PersistentVolume
        | Kind::PersistentVolumeClaim
        | Kind::Service
        | Kind::EndpointSlice
        | Kind::NodeIncident
        | Kind::Council => {
            let why = format!("the death of a node says nothing about a {}", key.kind.noun());
            Err(Refusal::invalid(key, "kind", why))
        }
    }
}

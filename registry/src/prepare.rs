//! What a new object of each kind is given and what is taken from it before it is judged.
//!
//! Responsible for: status that only its writer may state, fields that every reader takes for granted. Leaves to
//! `admit` what depends on the settings of the cluster. The full defaults of each kind will stand here, one arm per
//! kind; those that act today are the ones that decisions read.
//!
//! Invariant: a second preparation changes nothing.

use api::object::Kind;
use api::time::Time;
use serde_json::{Value, json};

use crate::tree as t;

/// The grace of a pod that states none.
pub(crate) const GRACE_SECS_DEFAULT: i64 = 30;

/// True if the kind counts changes of its wish in `metadata.generation`, as upstream has it.
pub(crate) fn has_generation(kind: Kind) -> bool {
    match kind {
        Kind::Pod
        | Kind::ReplicaSet
        | Kind::Deployment
        | Kind::StatefulSet
        | Kind::DaemonSet
        | Kind::EndpointSlice
        | Kind::NodeIncident
        | Kind::Tombstone
        | Kind::Council => true,
        Kind::Node
        | Kind::Lease
        | Kind::PersistentVolume
        | Kind::PersistentVolumeClaim
        | Kind::VolumeAttachment
        | Kind::Service => false,
    }
}

/// Prepares a new object.
pub(crate) fn create(kind: Kind, tree: &mut Value) {
    match kind {
        Kind::Pod => {
            t::set(t::fields(tree, &[]), "status", json!({ "phase": "Pending" }));
            pod_defaults(tree);
        }
        Kind::PersistentVolume | Kind::PersistentVolumeClaim => {
            t::set(t::fields(tree, &[]), "status", json!({ "phase": "Pending" }));
        }
        Kind::ReplicaSet | Kind::Deployment | Kind::StatefulSet => {
            t::set(t::fields(tree, &[]), "status", json!({ "replicas": 0 }));
            t::fields(tree, &["spec"]).entry("replicas").or_insert_with(|| json!(1));
        }
        Kind::VolumeAttachment => {
            t::set(t::fields(tree, &[]), "status", json!({ "attached": false }));
        }
        Kind::DaemonSet | Kind::Service => {
            t::fields(tree, &[]).remove("status");
        }
        Kind::Lease => micro_times(tree),
        // Our own kind keeps its status: phase and evidence of an incident must become durable in one write. In two,
        // a leader that is deposed between them leaves an incident that says less than was known.
        Kind::NodeIncident => {
            t::fields(tree, &["status"]).entry("phase").or_insert_with(|| json!("Suspect"));
        }
        // An agent registers with its status, as upstream's does. The others have none.
        Kind::Node | Kind::EndpointSlice | Kind::Tombstone | Kind::Council => {}
    }
}

fn pod_defaults(tree: &mut Value) {
    let spec = t::fields(tree, &["spec"]);
    spec.entry("restartPolicy").or_insert_with(|| json!("Always"));
    let grace = spec.entry("terminationGracePeriodSeconds").or_insert_with(|| json!(GRACE_SECS_DEFAULT));
    // CT-01: every reader takes a negative grace for one second; so it is written.
    if grace.as_i64().is_some_and(|secs| secs < 0) {
        *grace = json!(1);
    }
}

/// The times of a lease are `MicroTime`: clients refuse one without fraction.
fn micro_times(tree: &mut Value) {
    let spec = t::fields(tree, &["spec"]);
    for field in ["acquireTime", "renewTime"] {
        if let Some(at) = spec.get(field).and_then(Value::as_str).and_then(Time::parse_rfc3339) {
            t::set(spec, field, at.to_rfc3339_micro());
        }
    }
}

//! What the agent of a node may write (CT-07, upstream's NodeRestriction).
//!
//! Responsible for: keeping a node to its own Node, Lease, pods and tombstones, by name *and* identity: a new machine
//! of an old name (P86) may not speak for the old one's pods. Leaves to `server`: who the caller is, and the rights
//! of everybody else.
//!
//! Invariant: what is not listed is forbidden to a node. It exists for the node that is fenced and does not know it
//! yet, and for the one that somebody else has taken over.

use api::annotation;
use api::edit::Edit;
use api::object::{Kind, ObjectKey};
use serde_json::Value;

use crate::refusal::Refusal;
use crate::tombstone;
use crate::tree as t;
use crate::write::Caller;

/// Whose word an act is.
enum Speaker {
    /// The agent of the Node, of its Lease or of the pod, and everybody who may do more.
    Agent,
    /// The control plane and people.
    Others,
}

/// Refuses what the caller may not create.
pub(crate) fn create(key: &ObjectKey, tree: &Value, caller: &Caller) -> Result<(), Refusal> {
    let Caller::Node { name, .. } = caller else { return Ok(()) };
    if key.kind == Kind::Pod {
        let is_mirror = t::get(tree, &["metadata", "annotations", annotation::MIRROR]).is_some();
        let is_here = t::text(tree, &["spec", "nodeName"]) == name.as_str();
        if is_mirror && is_here {
            return Ok(());
        }
        let why = format!(
            "node {:?} can only create pods with spec.nodeName set to itself that mirror its own",
            name.as_str()
        );
        return Err(Refusal::forbidden(key, why));
    }
    if is_named_after(key, name.as_str()) { Ok(()) } else { Err(foreign(key, name.as_str())) }
}

/// Refuses acts that are not the caller's.
pub(crate) fn edit(key: &ObjectKey, tree: &Value, edit: &Edit, caller: &Caller) -> Result<(), Refusal> {
    let Caller::Node { name, uid } = caller else { return Ok(()) };
    match speaker(edit) {
        Speaker::Others if matches!(edit, Edit::Taints { .. }) => {
            Err(Refusal::forbidden(key, format!("node {:?} is not allowed to modify taints", name.as_str())))
        }
        Speaker::Others => Err(foreign(key, name.as_str())),
        Speaker::Agent => own(key, tree, name.as_str(), uid.as_str(), "update pod status for"),
    }
}

/// Refuses deletions that are not the caller's.
pub(crate) fn delete(key: &ObjectKey, tree: &Value, caller: &Caller) -> Result<(), Refusal> {
    let Caller::Node { name, uid } = caller else { return Ok(()) };
    match key.kind {
        // A machine does not unregister itself: what it holds would be orphaned with it.
        Kind::Node => Err(foreign(key, name.as_str())),
        Kind::Pod | Kind::Lease | Kind::Tombstone => own(key, tree, name.as_str(), uid.as_str(), "delete"),
        Kind::ReplicaSet
        | Kind::Deployment
        | Kind::StatefulSet
        | Kind::DaemonSet
        | Kind::PersistentVolume
        | Kind::PersistentVolumeClaim
        | Kind::VolumeAttachment
        | Kind::Service
        | Kind::EndpointSlice
        | Kind::NodeIncident
        | Kind::Council => Err(foreign(key, name.as_str())),
    }
}

/// Refuses if the object is not of that machine.
fn own(key: &ObjectKey, tree: &Value, name: &str, uid: &str, verb: &str) -> Result<(), Refusal> {
    match key.kind {
        Kind::Node if is_named_after(key, name) && t::text(tree, &["metadata", "uid"]) == uid => Ok(()),
        Kind::Lease if is_named_after(key, name) => Ok(()),
        Kind::Tombstone if t::text(tree, &["spec", "nodeUID"]) == uid => Ok(()),
        Kind::Pod if is_bound_to(tree, name, uid) => Ok(()),
        Kind::Pod => {
            let why = format!("node {name:?} can only {verb} pods with spec.nodeName set to itself");
            Err(Refusal::forbidden(key, why))
        }
        Kind::Node
        | Kind::Lease
        | Kind::Tombstone
        | Kind::ReplicaSet
        | Kind::Deployment
        | Kind::StatefulSet
        | Kind::DaemonSet
        | Kind::PersistentVolume
        | Kind::PersistentVolumeClaim
        | Kind::VolumeAttachment
        | Kind::Service
        | Kind::EndpointSlice
        | Kind::NodeIncident
        | Kind::Council => Err(foreign(key, name)),
    }
}

/// True for the Node and the Lease of that name.
fn is_named_after(key: &ObjectKey, name: &str) -> bool {
    let is_lease = key.kind == Kind::Lease && key.namespace.as_str() == annotation::NODE_LEASES;
    (key.kind == Kind::Node || is_lease) && key.name.as_str() == name
}

/// True if the pod is bound to that machine. A pod that somebody bound without an identity counts by its name.
fn is_bound_to(pod: &Value, name: &str, uid: &str) -> bool {
    let bound_uid = tombstone::bound_uid(pod);
    t::text(pod, &["spec", "nodeName"]) == name && (bound_uid.is_empty() || bound_uid == uid)
}

fn foreign(key: &ObjectKey, node: &str) -> Refusal {
    let noun = key.kind.noun().to_lowercase();
    Refusal::forbidden(key, format!("node {node:?} is not allowed to modify {noun} {:?}", key.name.as_str()))
}

fn speaker(edit: &Edit) -> Speaker {
    match edit {
        Edit::NodeConditions(_)
        | Edit::AnnounceReboot { .. }
        | Edit::NodeReport(_)
        | Edit::Unschedulable(_)
        | Edit::Renew { .. }
        | Edit::PodConditions(_)
        | Edit::FailPod { .. }
        | Edit::PodReport(_) => Speaker::Agent,
        Edit::Taints { .. }
        | Edit::RecordBoot(_)
        | Edit::VolumesAttached(_)
        | Edit::Bind { .. }
        | Edit::Replicas(_)
        | Edit::Counts(_)
        | Edit::Attached(_)
        | Edit::AddFinalizer(_)
        | Edit::RemoveFinalizer(_)
        | Edit::Endpoints(_)
        | Edit::Incident(_)
        | Edit::Memberships(_) => Speaker::Others,
    }
}

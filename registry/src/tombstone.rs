//! The record of a pod that may still run although its object is gone.
//!
//! Responsible for: whether a pod whose object goes may still run, whether that matters (it is exclusive), and what
//! to remember of it. Leaves to [`crate::delete()`] and the removal of finalizers: when an object goes; to `control`:
//! who waits for a tombstone and what ends one.
//!
//! It exists for the force delete. Stock Kubernetes takes it as a statement that the pod is gone; it is none. The
//! next pod of that name, or on that volume, would run beside the old one as soon as it is bound.
//!
//! Invariant: whoever does not know lets it be written. A tombstone too many costs patience until the node speaks or
//! is fenced; one too few costs the data.

use api::annotation::NODE_UID;
use api::exclusive::{is_exclusive, is_exclusive_by_itself};
use api::id::{BootId, NodeName, Uid};
use api::object::{Kind, ObjectKey};
use api::view::{Meta, Node, PersistentVolumeClaim, Pod, Tombstone, TombstoneSpec, View};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

use crate::create;
use crate::refusal::Refusal;
use crate::tree as t;
use crate::write::Occasion;

/// Upstream's reason of ContainersReady on a pod of which its agent said that it ended well.
pub(crate) const REASON_COMPLETED: &str = "PodCompleted";
/// Upstream's reason of ContainersReady on a pod of which its agent said that it ended badly.
pub(crate) const REASON_FAILED: &str = "PodFailed";

/// How an object goes without its node's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Departure {
    /// Deleted at once.
    ForceDeleted,
    /// Deleted before; what held it is gone.
    FinalizerRemoved,
}

/// The tombstone of the object that goes, if one must be written.
///
/// # Errors
/// The object is a pod that cannot be read, so that nobody can say what it may still write to.
pub(crate) fn of(
    key: &ObjectKey,
    tree: &Value,
    departure: Departure,
    on: &Occasion<'_>,
) -> Result<Option<Value>, Refusal> {
    if key.kind != Kind::Pod || !on.law.writes_tombstones() || !may_still_run(tree) {
        return Ok(None);
    }
    let pod = Pod::deserialize(tree).map_err(|error| {
        Refusal::invalid(key, "spec", format!("what it may still use cannot be read: {error}"))
    })?;
    if !must_not_run_twice(&pod, on) {
        return Ok(None);
    }
    let node = node(&pod.spec.node_name, on);
    let node = node.as_deref().filter(|n| pod.node_uid().is_empty() || n.metadata.uid == pod.node_uid());
    Ok(Some(create::from_controller(&View::Tombstone(Arc::new(record(&pod, node, departure))), on)))
}

/// True unless the pod's own agent has said, in the status, that all of it has stopped. A phase alone says nothing:
/// controllers set Failed on pods of nodes that they cannot hear.
fn may_still_run(pod: &Value) -> bool {
    if t::text(pod, &["spec", "nodeName"]).is_empty() {
        return false;
    }
    let has_ended = matches!(t::text(pod, &["status", "phase"]), "Succeeded" | "Failed");
    let is_signed = t::list(pod, &["status", "conditions"]).iter().any(|c| {
        t::text(c, &["type"]) == "ContainersReady"
            && [REASON_COMPLETED, REASON_FAILED].contains(&t::text(c, &["reason"]))
    });
    let lists = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];
    let runs = |c: &Value| t::get(c, &["state", "running"]).is_some_and(Value::is_object);
    let has_running = lists.iter().any(|list| t::list(pod, &["status", list]).iter().any(runs));
    !has_ended || !is_signed || has_running
}

fn must_not_run_twice(pod: &Pod, on: &Occasion<'_>) -> bool {
    if is_exclusive_by_itself(pod) {
        return true;
    }
    let read = |name| {
        let key =
            ObjectKey::namespaced(Kind::PersistentVolumeClaim, &pod.metadata.namespace, Clone::clone(name));
        match (on.read)(&key) {
            Some(View::PersistentVolumeClaim(claim)) => Some(claim),
            Some(_) | None => None,
        }
    };
    let claims: Vec<Arc<PersistentVolumeClaim>> = pod.claims().filter_map(read).collect();
    is_exclusive(pod, |_, name| claims.iter().find(|c| c.metadata.name == *name).map(|c| &**c))
}

/// The Node of that name as the store has it.
pub(crate) fn node(name: &NodeName, on: &Occasion<'_>) -> Option<Arc<Node>> {
    match (on.read)(&ObjectKey::node(name)) {
        Some(View::Node(node)) => Some(node),
        Some(_) | None => None,
    }
}

/// What is remembered. `node` is the machine the pod was bound to; `None` if its Node is gone: then the boot is not
/// known, and every boot of that uid is meant.
fn record(pod: &Pod, node: Option<&Node>, departure: Departure) -> Tombstone {
    let reason = match (node, departure) {
        (None, _) => "NodeDeleted",
        (Some(_), Departure::ForceDeleted) => "ForceDeleted",
        (Some(_), Departure::FinalizerRemoved) => "FinalizerRemoved",
    };
    let node_uid = match node {
        Some(node) => node.metadata.uid.clone(),
        None => pod.node_uid(),
    };
    let uid = pod.metadata.uid.as_str();
    Tombstone {
        metadata: Meta {
            name: uid.into(),
            // Derived, not rolled: a write whose outcome is unclear meets its own record. Not the pod's uid, by
            // which dependents would take the tombstone for their owner.
            uid: Uid::from(format!("{uid}-tombstone")),
            ..Meta::default()
        },
        spec: TombstoneSpec {
            pod_namespace: pod.metadata.namespace.clone(),
            pod_name: pod.metadata.name.clone(),
            pod_uid: pod.metadata.uid.clone(),
            node_name: pod.spec.node_name.clone(),
            node_uid,
            boot_id: node.map_or_else(BootId::default, Node::recorded_boot),
            claims: pod.claims().cloned().collect(),
            reason: reason.to_owned(),
        },
    }
}

/// The identity of the Node that a pod's tree names; empty if none.
pub(crate) fn bound_uid(pod: &Value) -> &str {
    t::text(pod, &["metadata", "annotations", NODE_UID])
}

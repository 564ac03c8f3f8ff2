//! How an object is made.
//!
//! Responsible for: the tree of a new object, from a view or from its owner's template; stamps that only the server
//! sets. What a kind is given beside that stands in `prepare`, what the cluster adds in `admit`. Leaves to bodies:
//! the uid, and that the name is free (compared in the transaction).
//!
//! Invariant: what comes from a template is copied as a tree, so that fields no view knows survive (decision 0002).

mod claim;
mod pod;
#[cfg(test)]
mod tests;

use api::annotation::NODE_UID;
use api::id::Uid;
use api::object::{Kind, ObjectKey};
use api::view::{View, tree as tree_of};
use api::write::New;
use serde_json::Value;

use crate::refusal::Refusal;
use crate::tree as t;
use crate::write::{Caller, Occasion};
use crate::{admit, prepare, restrict, tombstone};

/// Makes the tree of a new object, to be put under `new.key()` if that is free.
///
/// `owner` is the tree of the owner that `new` names, at the revision that the transaction compares; not looked at
/// for an object that is made from a view.
///
/// # Errors
/// The caller may not, the owner is gone or another, or has no such template.
pub fn create(new: &New, owner: Option<&Value>, uid: &Uid, on: &Occasion<'_>) -> Result<Value, Refusal> {
    let key = new.key();
    let mut tree = match new {
        New::Object(view) => of_view(view),
        New::Pod { owner: owner_key, owner_uid, name, dress } => {
            pod::from_template(owner_key, owner, owner_uid, name, dress)?
        }
        New::Claim { owner: owner_key, template, name: _ } => {
            claim::from_template(owner_key, owner, *template)?
        }
    };
    restrict::create(&key, &tree, on.caller)?;
    finish(&key, &mut tree, uid, on);
    Ok(tree)
}

/// Makes the tree of an object that the law itself adds to a write; its view has its name and uid.
pub(crate) fn from_controller(view: &View, on: &Occasion<'_>) -> Value {
    let mut tree = of_view(view);
    finish(&view.key(), &mut tree, &view.meta().uid, on);
    tree
}

fn finish(key: &ObjectKey, tree: &mut Value, uid: &Uid, on: &Occasion<'_>) {
    stamp(key, tree, uid, on);
    prepare::create(key.kind, tree);
    admit::create(key.kind, tree, on);
    if key.kind == Kind::Pod {
        identify_node(tree, on);
    }
}

/// What only the server sets.
fn stamp(key: &ObjectKey, tree: &mut Value, uid: &Uid, on: &Occasion<'_>) {
    let root = t::fields(tree, &[]);
    t::set(root, "apiVersion", key.kind.api_version());
    t::set(root, "kind", key.kind.noun());
    let meta = t::fields(tree, &["metadata"]);
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "generation", "resourceVersion"] {
        meta.remove(field);
    }
    t::set(meta, "name", key.name.as_str());
    t::set_or_clear(meta, "namespace", key.namespace.as_str());
    t::set(meta, "uid", uid.as_str());
    t::set_time(meta, "creationTimestamp", on.now);
    if prepare::has_generation(key.kind) {
        t::set(meta, "generation", 1);
    }
}

/// P86: a pod that arrives with a node (a mirror pod, or one that a person bound by hand) gets that node's identity;
/// one that arrives without has none, whatever a template says.
fn identify_node(pod: &mut Value, on: &Occasion<'_>) {
    let name = t::text(pod, &["spec", "nodeName"]).to_owned();
    let uid = match on.caller {
        _ if name.is_empty() || !on.law.node_identity => None,
        Caller::Node { name: own, uid } if own.as_str() == name => Some(uid.clone()),
        Caller::Node { .. } | Caller::Controller | Caller::User => {
            tombstone::node(&name.as_str().into(), on).map(|node| node.metadata.uid.clone())
        }
    };
    match uid {
        Some(uid) => {
            t::set(t::fields(pod, &["metadata", "annotations"]), NODE_UID, uid.as_str());
        }
        None if !tombstone::bound_uid(pod).is_empty() => {
            let annotations = t::fields(pod, &["metadata", "annotations"]);
            annotations.remove(NODE_UID);
            if annotations.is_empty() {
                t::fields(pod, &["metadata"]).remove("annotations");
            }
        }
        None => {}
    }
}

/// The owner's tree, if it is the owner that was meant.
fn the_owner<'o>(key: &ObjectKey, tree: Option<&'o Value>, uid: Option<&Uid>) -> Result<&'o Value, Refusal> {
    let tree = tree.ok_or_else(|| Refusal::NotFound { key: key.clone() })?;
    match uid {
        Some(uid) if t::text(tree, &["metadata", "uid"]) != uid.as_str() => {
            Err(Refusal::conflict(key, format!("the owner with uid {uid} is gone, another has its name")))
        }
        Some(_) | None => Ok(tree),
    }
}

/// Copies fields of a template's metadata.
fn copy_meta(template: &Value, onto: &mut Value, fields: &[&str]) {
    for field in fields {
        if let Some(value) = t::get(template, &["metadata", field]).filter(|v| !v.is_null()) {
            t::set(t::fields(onto, &["metadata"]), field, value.clone());
        }
    }
}

fn of_view(view: &View) -> Value {
    match view {
        View::Node(o) => tree_of(&**o),
        View::Pod(o) => tree_of(&**o),
        View::Lease(o) => tree_of(&**o),
        View::ReplicaSet(o) => tree_of(&**o),
        View::Deployment(o) => tree_of(&**o),
        View::StatefulSet(o) => tree_of(&**o),
        View::DaemonSet(o) => tree_of(&**o),
        View::PersistentVolume(o) => tree_of(&**o),
        View::PersistentVolumeClaim(o) => tree_of(&**o),
        View::VolumeAttachment(o) => tree_of(&**o),
        View::Service(o) => tree_of(&**o),
        View::EndpointSlice(o) => tree_of(&**o),
        View::NodeIncident(o) => tree_of(&**o),
        View::Tombstone(o) => tree_of(&**o),
        View::Council(o) => tree_of(&**o),
    }
}

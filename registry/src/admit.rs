//! Admission that changes new objects: what the cluster adds to what was asked for.
//!
//! Responsible for: DefaultTolerationSeconds, Priority (the default), TaintNodesByCondition. Leaves room for the
//! others, in upstream's order; NodeRestriction stands in `restrict`, because it changes nothing.

use api::annotation::{NOT_READY, UNREACHABLE};
use api::object::Kind;
use api::taint::{Taint, TaintEffect, Toleration};
use api::view::tree as tree_of;
use serde_json::{Value, json};

use crate::tree as t;
use crate::write::Occasion;

/// Admits a new object.
pub(crate) fn create(kind: Kind, tree: &mut Value, on: &Occasion<'_>) {
    match kind {
        Kind::Pod => {
            t::fields(tree, &["spec"]).entry("priority").or_insert_with(|| json!(0));
            tolerate_loss(tree, NOT_READY, on.law.not_ready_toleration_secs);
            tolerate_loss(tree, UNREACHABLE, on.law.unreachable_toleration_secs);
        }
        Kind::Node => {
            taint_new_node(tree);
            if on.law.carry_taint_time {
                stamp_taints(tree, on);
            }
        }
        Kind::Lease
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
        | Kind::Tombstone
        | Kind::Council => {}
    }
}

/// DefaultTolerationSeconds: a pod that says nothing about a lost node stays on it for a while.
fn tolerate_loss(tree: &mut Value, key: &str, secs: i64) {
    let speaks_of_it = |o: &Value| {
        let (own_key, effect) = (t::text(o, &["key"]), t::text(o, &["effect"]));
        (own_key.is_empty() || own_key == key) && (effect.is_empty() || effect == "NoExecute")
    };
    if !t::list(tree, &["spec", "tolerations"]).iter().any(speaks_of_it) {
        let added = Toleration::exists(key, Some(TaintEffect::NoExecute), Some(secs));
        push(tree, "tolerations", tree_of(&added));
    }
}

/// TaintNodesByCondition (HB-21): nothing is scheduled to a node that has not been Ready yet. Without it a pod could
/// be bound between the registration and the first judgement.
fn taint_new_node(tree: &mut Value) {
    let is_it = |e: &Value| t::text(e, &["key"]) == NOT_READY && t::text(e, &["effect"]) == "NoSchedule";
    if !t::list(tree, &["spec", "taints"]).iter().any(is_it) {
        push(tree, "taints", tree_of(&Taint::new(NOT_READY, TaintEffect::NoSchedule)));
    }
}

/// The eviction clock is in the object: a NoExecute taint that arrives without a time gets one. The others have no
/// clock and stay as they came.
fn stamp_taints(tree: &mut Value, on: &Occasion<'_>) {
    let taints = t::fields(tree, &["spec"]).get_mut("taints").and_then(Value::as_array_mut);
    for entry in taints.into_iter().flatten() {
        if t::text(entry, &["effect"]) == "NoExecute" && t::time(entry, &["timeAdded"]).is_none() {
            t::set_time(t::fields(entry, &[]), "timeAdded", on.now);
        }
    }
}

fn push(tree: &mut Value, field: &str, entry: Value) {
    let mut list = t::list(tree, &["spec", field]).to_vec();
    list.push(entry);
    t::set(t::fields(tree, &["spec"]), field, list);
}

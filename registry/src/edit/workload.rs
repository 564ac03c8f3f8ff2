//! Acts on workloads, endpoint slices and the council.

use api::view::{Endpoint, Membership, WorkloadStatus};
use serde_json::Value;

use super::meta::grow_generation;
use crate::tree as t;

/// The counts that may be missing where they are zero; `replicas` is always written, as upstream does.
const COUNT_FIELDS: &[&str] = &["readyReplicas", "availableReplicas", "observedGeneration"];
/// The fields of an endpoint that the view knows.
const ENDPOINT_FIELDS: &[&str] = &["addresses", "conditions", "nodeName", "targetRef"];
/// The fields of a membership that the view knows.
const MEMBERSHIP_FIELDS: &[&str] = &["epoch", "seats", "since"];

/// How many are wished.
pub(super) fn replicas(tree: &mut Value, count: u32) -> bool {
    let changed = t::set(t::fields(tree, &["spec"]), "replicas", count);
    if changed {
        grow_generation(tree);
    }
    changed
}

/// How many there are.
pub(super) fn counts(tree: &mut Value, counts: &WorkloadStatus) -> bool {
    let status = t::fields(tree, &["status"]);
    let changed = t::set(status, "replicas", counts.replicas);
    t::overlay(status, t::fields_of(counts), COUNT_FIELDS) | changed
}

/// Where a service leads. Endpoints are told apart by the pod behind them.
pub(super) fn endpoints(tree: &mut Value, endpoints: &[Endpoint]) -> bool {
    let wanted = t::list_of(endpoints);
    let slice = t::fields(tree, &[]);
    let changed = t::set_list(slice, "endpoints", wanted, &["targetRef", "uid"], ENDPOINT_FIELDS);
    if changed {
        grow_generation(tree);
    }
    changed
}

/// Who may be asked when no server answers.
pub(super) fn memberships(tree: &mut Value, memberships: &[Membership]) -> bool {
    let wanted = t::list_of(memberships);
    let spec = t::fields(tree, &["spec"]);
    let changed = t::set_list(spec, "memberships", wanted, &["epoch"], MEMBERSHIP_FIELDS);
    if changed {
        grow_generation(tree);
    }
    changed
}

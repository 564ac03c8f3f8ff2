//! Acts on pods: bound, failed, reported.

use api::annotation::NODE_UID;
use api::id::{NodeName, Uid};
use api::object::ObjectKey;
use api::time::Time;
use api::view::{Condition, ConditionStatus, PodPhase, PodStatus, tree as tree_of};
use serde_json::{Value, json};

use crate::condition;
use crate::refusal::Refusal;
use crate::tombstone::{REASON_COMPLETED, REASON_FAILED};
use crate::tree as t;
use crate::write::{Caller, Occasion};

/// Conditions that belong to the agent (KR-23).
const AGENT_CONDITIONS: &[&str] = &[
    "PodScheduled",
    "PodReadyToStartContainers",
    "Initialized",
    "ContainersReady",
    "Ready",
    "PodResizePending",
    "PodResizeInProgress",
];
/// A condition of others that the agent may set but not take back: it evicts too.
const SHARED_CONDITION: &str = "DisruptionTarget";
/// Conditions that cannot hold of a pod that has ended.
const READINESS: [&str; 2] = ["Ready", "ContainersReady"];
/// The fields of a container status that the view knows.
const CONTAINER_FIELDS: &[&str] =
    &["name", "image", "imageID", "ready", "restartCount", "state", "lastState"];

/// Bound to a node, by name and by identity (P86). The generation stays: upstream's binding does not count as a
/// change of the wish.
pub(super) fn bind(
    key: &ObjectKey,
    tree: &mut Value,
    node: &NodeName,
    node_uid: &Uid,
    on: &Occasion<'_>,
) -> Result<bool, Refusal> {
    let identity = if on.law.node_identity { node_uid.as_str() } else { "" };
    let bound_to = t::text(tree, &["spec", "nodeName"]);
    let bound_uid = t::text(tree, &["metadata", "annotations", NODE_UID]);
    if bound_to == node.as_str() && bound_uid == identity {
        return Ok(false);
    }
    if !t::text(tree, &["metadata", "deletionTimestamp"]).is_empty() {
        let why = format!("pod {} is being deleted, cannot be assigned to a host", key.name);
        return Err(Refusal::conflict(key, why));
    }
    if !bound_to.is_empty() {
        let why = format!("pod {} is already assigned to node {bound_to:?}", key.name);
        return Err(Refusal::conflict(key, why));
    }
    t::set(t::fields(tree, &["spec"]), "nodeName", node.as_str());
    if !identity.is_empty() {
        t::set(t::fields(tree, &["metadata", "annotations"]), NODE_UID, identity);
    }
    let scheduled = Condition::new("PodScheduled", ConditionStatus::True, "", "", on.now);
    condition::set(t::fields(tree, &["status"]), &scheduled, on.now);
    Ok(true)
}

/// Failed, by somebody who is not its agent. A pod that has ended keeps its phase, reason and conditions (GC-50,
/// GC-30); that it is not ready is written in any case and in the same write (P44).
pub(super) fn fail(
    tree: &mut Value,
    reason: &str,
    message: &str,
    condition: Option<&Condition>,
    now: Time,
) -> bool {
    let was_terminal = has_ended(tree);
    let status = t::fields(tree, &["status"]);
    let mut changed = false;
    if !was_terminal {
        changed |= t::set(status, "phase", tree_of(&PodPhase::Failed));
        changed |= t::set_or_clear(status, "reason", reason);
        changed |= t::set_or_clear(status, "message", message);
        changed |= condition::set_all(status, condition, now);
    }
    changed | withdraw(status, now)
}

/// What its agent says.
pub(super) fn report(tree: &mut Value, report: &PodStatus, on: &Occasion<'_>) -> bool {
    let was_terminal = has_ended(tree);
    let ends = is_terminal(report.phase);
    let status = t::fields(tree, &["status"]);
    let mut changed = false;
    // KR-14: a pod that has ended does not come back, and does not end in another way.
    if !was_terminal {
        changed |= t::set(status, "phase", tree_of(&report.phase));
        changed |= t::set_or_clear(status, "reason", report.reason.as_str());
        changed |= t::set_or_clear(status, "message", report.message.as_str());
    }
    changed |= addresses(status, &report.pod_ip);
    if let Some(at) = report.start_time {
        changed |= t::set_time(status, "startTime", at);
    }
    let containers = t::list_of(&report.container_statuses);
    changed |= t::set_list(status, "containerStatuses", containers, &["name"], CONTAINER_FIELDS);
    let is_over = was_terminal || ends;
    let is_taken = |c: &&Condition| {
        let is_own = AGENT_CONDITIONS.contains(&c.kind.as_str());
        let is_shared = c.kind == SHARED_CONDITION && c.status == ConditionStatus::True;
        (is_own || is_shared) && !(is_over && READINESS.contains(&c.kind.as_str()))
    };
    changed |= condition::set_all(status, report.conditions.iter().filter(is_taken), on.now);
    if is_over {
        changed |= withdraw(status, on.now);
    }
    // KR-22: an agent reports an end only when all containers have stopped. Its word is kept in upstream's own
    // reasons, because the phase alone does not say who set it: a controller fails pods of silent nodes.
    if ends && matches!(on.caller, Caller::Node { .. }) {
        changed |= sign(status, report.phase, on.now);
    }
    changed
}

/// Makes readiness False in `status`, where it is not; a reason that stands beside False stays.
fn withdraw(status: &mut t::Fields, now: Time) -> bool {
    let mut changed = false;
    for kind in READINESS {
        let stands = status.get("conditions").and_then(Value::as_array).is_some_and(|list| {
            list.iter().any(|c| t::text(c, &["type"]) == kind && t::text(c, &["status"]) == "False")
        });
        if !stands {
            changed |=
                condition::set(status, &Condition::new(kind, ConditionStatus::False, "", "", now), now);
        }
    }
    changed
}

/// Writes why readiness is False: the agent said that the pod has ended.
fn sign(status: &mut t::Fields, phase: PodPhase, now: Time) -> bool {
    let reason = if phase == PodPhase::Succeeded { REASON_COMPLETED } else { REASON_FAILED };
    let signed = READINESS.map(|kind| Condition::new(kind, ConditionStatus::False, reason, "", now));
    condition::set_all(status, &signed, now)
}

/// The address, in the old field and in the list that newer clients read. A list that begins with it stays.
fn addresses(status: &mut t::Fields, pod_ip: &str) -> bool {
    let mut changed = t::set_or_clear(status, "podIP", pod_ip);
    let first = status.get("podIPs").and_then(|l| l.get(0)).map_or("", |a| t::text(a, &["ip"]));
    if first != pod_ip {
        let list = if pod_ip.is_empty() { Value::Null } else { json!([{ "ip": pod_ip }]) };
        changed |= t::set_or_clear(status, "podIPs", list);
    }
    changed
}

fn has_ended(tree: &Value) -> bool {
    matches!(t::text(tree, &["status", "phase"]), "Succeeded" | "Failed")
}

fn is_terminal(phase: PodPhase) -> bool {
    match phase {
        PodPhase::Succeeded | PodPhase::Failed => true,
        PodPhase::Pending | PodPhase::Running | PodPhase::Unknown => false,
    }
}

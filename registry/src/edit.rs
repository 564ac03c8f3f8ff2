//! How each act of [`api::edit::Edit`] changes the tree of its object.
//!
//! Responsible for: one function per act, in the file of its kind. Leaves to the caller: reading the object and
//! comparing its revision; to `restrict`: whether the caller may.
//!
//! Invariants: idempotent, so that a write whose outcome is unclear can be carried out again; an act touches its own
//! fields and no other, unknown fields beside them survive; no act sets or moves `deletionTimestamp` (CT-05); an
//! act that changes `spec` of a kind with a generation makes it grow.

mod meta;
mod node;
mod pod;
mod status;
#[cfg(test)]
mod tests;
mod workload;

pub(crate) use meta::grow_generation;

use api::edit::Edit;
use api::object::{Kind, ObjectKey};
use serde_json::Value;

use crate::refusal::Refusal;
use crate::restrict;
use crate::write::{Effect, Occasion};

/// Carries `edit` out on `tree`, the object under `key`.
///
/// # Errors
/// The caller may not, the act is not one of this kind, or the object is in no state for it. The tree may then be
/// half changed and must be dropped.
pub fn edit(key: &ObjectKey, tree: &mut Value, edit: &Edit, on: &Occasion<'_>) -> Result<Effect, Refusal> {
    restrict::edit(key, tree, edit, on.caller)?;
    if kinds(edit).is_some_and(|kinds| !kinds.contains(&key.kind)) {
        return Err(Refusal::invalid(key, "kind", format!("{} has no such act: {edit:?}", key.kind.noun())));
    }
    let changed = match edit {
        Edit::Taints { add, remove } => node::taints(tree, add, remove, on),
        Edit::NodeConditions(conditions) => status::conditions(tree, conditions, on.now),
        Edit::RecordBoot(boot) => node::record_boot(tree, boot),
        Edit::AnnounceReboot { boot, at } => node::announce_reboot(tree, boot, *at),
        Edit::VolumesAttached(volumes) => node::volumes_attached(tree, volumes),
        Edit::NodeReport(report) => node::report(tree, report, on.now),
        Edit::Unschedulable(wish) => node::unschedulable(tree, *wish),
        Edit::Renew { holder, uid, at } => node::renew(tree, holder, uid, *at),
        Edit::Bind { node, node_uid } => pod::bind(key, tree, node, node_uid, on)?,
        Edit::PodConditions(conditions) => status::conditions(tree, conditions, on.now),
        Edit::FailPod { reason, message, condition } => {
            pod::fail(tree, reason, message, condition.as_ref(), on.now)
        }
        Edit::PodReport(report) => pod::report(tree, report, on),
        Edit::Replicas(count) => workload::replicas(tree, *count),
        Edit::Counts(counts) => workload::counts(tree, counts),
        Edit::Attached(attached) => status::attached(tree, *attached),
        Edit::AddFinalizer(name) => meta::add_finalizer(key, tree, name)?,
        Edit::RemoveFinalizer(name) => return meta::remove_finalizer(key, tree, name, on),
        Edit::Endpoints(endpoints) => workload::endpoints(tree, endpoints),
        Edit::Incident(status) => status::incident(key, tree, status)?,
        Edit::Memberships(memberships) => workload::memberships(tree, memberships),
    };
    Ok(Effect::of_change(changed))
}

/// The kinds that an act is about; `None` is every kind.
fn kinds(edit: &Edit) -> Option<&'static [Kind]> {
    match edit {
        Edit::Taints { .. }
        | Edit::NodeConditions(_)
        | Edit::RecordBoot(_)
        | Edit::AnnounceReboot { .. }
        | Edit::VolumesAttached(_)
        | Edit::NodeReport(_)
        | Edit::Unschedulable(_) => Some(&[Kind::Node]),
        Edit::Renew { .. } => Some(&[Kind::Lease]),
        Edit::Bind { .. } | Edit::PodConditions(_) | Edit::FailPod { .. } | Edit::PodReport(_) => {
            Some(&[Kind::Pod])
        }
        Edit::Replicas(_) | Edit::Counts(_) => Some(&[Kind::ReplicaSet, Kind::Deployment, Kind::StatefulSet]),
        Edit::Attached(_) => Some(&[Kind::VolumeAttachment]),
        Edit::AddFinalizer(_) | Edit::RemoveFinalizer(_) => None,
        Edit::Endpoints(_) => Some(&[Kind::EndpointSlice]),
        Edit::Incident(_) => Some(&[Kind::NodeIncident]),
        Edit::Memberships(_) => Some(&[Kind::Council]),
    }
}

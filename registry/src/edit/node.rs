//! Acts on nodes and their leases.

use api::annotation::{NOT_READY, REBOOT_ANNOUNCED, RECORDED_BOOT, UNREACHABLE};
use api::edit::TaintName;
use api::id::{BootId, Name, Uid};
use api::quantity::Quantity;
use api::taint::{Taint, TaintEffect};
use api::time::Time;
use api::view::{AttachedVolume, NodeStatus, tree as tree_of};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

use crate::condition;
use crate::tree as t;
use crate::write::Occasion;

/// Takes taints away, then adds others.
pub(super) fn taints(tree: &mut Value, add: &[Taint], remove: &[TaintName], on: &Occasion<'_>) -> bool {
    let old = t::list(tree, &["spec", "taints"]);
    let is_removed = |e: &Value| remove.iter().any(|r| is_entry(e, &r.key, r.effect));
    let is_added = |e: &Value| add.iter().any(|a| is_entry(e, &a.key, a.effect));
    // TE-12: the older clock of the two, if one of them goes and the other comes.
    let carried = on.law.carry_taint_time.then(|| {
        let gone = old.iter().filter(|e| is_loss(e) && is_removed(e) && !is_added(e));
        gone.filter_map(|e| t::time(e, &["timeAdded"])).min()
    });
    let mut new: Vec<Value> = old.iter().filter(|e| !is_removed(e) || is_added(e)).cloned().collect();
    for taint in add {
        if let Some(entry) = new.iter_mut().find(|e| is_entry(e, &taint.key, taint.effect)) {
            t::set_or_clear(t::fields(entry, &[]), "value", taint.value.as_str());
            continue;
        }
        let mut entry = tree_of(&taint.clone().since(taint.time_added.unwrap_or(on.now)));
        if let Some(at) = carried.flatten().filter(|_| is_loss(&entry)) {
            let stated = t::time(&entry, &["timeAdded"]).unwrap_or(on.now);
            t::set_time(t::fields(&mut entry, &[]), "timeAdded", at.min(stated));
        }
        new.push(entry);
    }
    if new == old { false } else { t::set_or_clear(t::fields(tree, &["spec"]), "taints", new) }
}

/// True if a node's entry is the taint of that key and effect.
fn is_entry(entry: &Value, key: &str, effect: TaintEffect) -> bool {
    t::text(entry, &["key"]) == key && entry.get("effect") == Some(&tree_of(&effect))
}

/// True for the two taints that say the same of a node: it is lost. Which of them stands depends on whether its
/// agent still speaks, and must not matter for the pods' clock.
fn is_loss(entry: &Value) -> bool {
    [NOT_READY, UNREACHABLE].iter().any(|key| is_entry(entry, key, TaintEffect::NoExecute))
}

/// C15: on record before its first grant.
pub(super) fn record_boot(tree: &mut Value, boot: &BootId) -> bool {
    t::set(t::fields(tree, &["metadata", "annotations"]), RECORDED_BOOT, boot.as_str())
}

/// The boot that is about to end on purpose, and when it said so.
pub(super) fn announce_reboot(tree: &mut Value, boot: &BootId, at: Time) -> bool {
    let text = format!("{boot}@{}", tree_of(&at).as_str().unwrap_or_default());
    t::set(t::fields(tree, &["metadata", "annotations"]), REBOOT_ANNOUNCED, text)
}

/// What the attach/detach controller says is attached.
pub(super) fn volumes_attached(tree: &mut Value, volumes: &[AttachedVolume]) -> bool {
    let entry = |v: &AttachedVolume| serde_json::json!({ "name": v.name, "devicePath": v.device_path });
    let wanted: Vec<Value> = volumes.iter().map(entry).collect();
    let status = t::fields(tree, &["status"]);
    t::set_list(status, "volumesAttached", wanted, &["name"], &["name", "devicePath"])
}

/// What the agent says: conditions by type, its machine, its resources by name, its volumes. Resources that others
/// have put on the node (extended resources) stay, as they do with the stock agent.
pub(super) fn report(tree: &mut Value, report: &NodeStatus, now: Time) -> bool {
    let status = t::fields(tree, &["status"]);
    let mut changed = condition::set_all(status, &report.conditions, now);
    changed |= add_fields(status, "nodeInfo", t::fields_of(&report.node_info));
    changed |= resources(status, "capacity", &report.capacity);
    changed |= resources(status, "allocatable", &report.allocatable);
    changed | t::set_or_clear(status, "volumesInUse", t::list_of(&report.volumes_in_use))
}

fn resources(status: &mut t::Fields, field: &str, amounts: &BTreeMap<String, Quantity>) -> bool {
    add_fields(status, field, t::fields_of(amounts))
}

/// Sets each of `from` inside `field`; nothing is taken away.
fn add_fields(status: &mut t::Fields, field: &str, from: Map<String, Value>) -> bool {
    if from.is_empty() {
        return false;
    }
    let place = t::fields(status.entry(field).or_insert(Value::Null), &[]);
    from.into_iter().fold(false, |changed, (name, value)| t::set(place, &name, value) | changed)
}

/// Cordoned or not.
pub(super) fn unschedulable(tree: &mut Value, wish: bool) -> bool {
    let spec = t::fields(tree, &["spec"]);
    if wish { t::set(spec, "unschedulable", true) } else { spec.remove("unschedulable").is_some() }
}

/// A lease renewed. The time is a `MicroTime`: clients refuse one without fraction.
pub(super) fn renew(tree: &mut Value, holder: &Name, uid: &Uid, at: Time) -> bool {
    let spec = t::fields(tree, &["spec"]);
    let mut changed = t::set(spec, "holderIdentity", holder.as_str());
    changed |= t::set_or_clear(spec, "holderUid", uid.as_str());
    changed | t::set(spec, "renewTime", at.to_rfc3339_micro())
}

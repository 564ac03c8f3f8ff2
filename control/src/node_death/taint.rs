//! Taints from conditions: NoSchedule (NLC-10, NLC-11) and NoExecute (NLC-20 to NLC-25, NLC-30 to NLC-37).
//!
//! Responsible for: which of upstream's own taints a node carries. Leaves to [`super::detect`] the conditions, to
//! [`super::evict`] what NoExecute does to pods, to the driver the pace of a zone, to [`super::incident`] the
//! out-of-service mark: taints with other keys are never touched here.
//!
//! Two controllers, because a paced decision waits as a whole and NoSchedule must not wait: replacements would land on
//! the dying node.
//!
//! The state decides, not the passage from one to another:
//! - NLC-24: upstream takes both NoExecute taints off every node when it starts, so each 300 s begins anew. Here they
//!   stay while the node is not Ready, under every profile: a restart of the control plane evicts nobody later, and
//!   nobody earlier, than without it.
//! - NLC-22 (retry) and NLC-25 (patch) are the driver's.
//! - Where nodes beat, a swap of not-ready and unreachable keeps the time of the first: the count goes on.

#[cfg(test)]
mod tests;

use api::annotation::{
    DISK_PRESSURE, MEMORY_PRESSURE, NETWORK_UNAVAILABLE, NOT_READY, PID_PRESSURE, UNREACHABLE, UNSCHEDULABLE,
};
use api::edit::{Edit, TaintName};
use api::taint::{Taint, TaintEffect};
use api::timing::Detection;
use api::view::{ConditionStatus, Node, View};
use api::{Kind, NodeName, ObjectKey, Time};

use super::{detect, evict};
use crate::controller::{Change, Controller, Key, Scope};
use crate::decision::{Action, Decision, Note, Pace};
use crate::pass;
use crate::world::{Seen, World, Zone, ZoneState, no_execute};

/// NLC-10: condition, status, taint.
const BY_CONDITION: [(&str, ConditionStatus, &str); 6] = [
    ("Ready", ConditionStatus::False, NOT_READY),
    ("Ready", ConditionStatus::Unknown, UNREACHABLE),
    ("MemoryPressure", ConditionStatus::True, MEMORY_PRESSURE),
    ("DiskPressure", ConditionStatus::True, DISK_PRESSURE),
    ("PIDPressure", ConditionStatus::True, PID_PRESSURE),
    ("NetworkUnavailable", ConditionStatus::True, NETWORK_UNAVAILABLE),
];

/// Keeps the NoSchedule taints equal to the conditions.
pub struct NoSchedule;

/// Keeps the NoExecute taints equal to Ready, at the pace of the zone.
pub struct NoExecute;

static NO_SCHEDULE: Scope =
    Scope { name: "node-lifecycle-no-schedule", reads: &[Kind::Node], writes: &[Kind::Node] };

static NO_EXECUTE: Scope = Scope {
    name: "node-lifecycle-no-execute",
    reads: &[Kind::Node, Kind::Pod, Kind::NodeIncident],
    writes: &[Kind::Node],
};

// === impl NoSchedule ===

impl Controller for NoSchedule {
    fn scope(&self) -> &'static Scope {
        &NO_SCHEDULE
    }

    fn touched(&self, change: &Change, _world: &World, keys: &mut Vec<Key>) {
        if let Change::Object { key, new: Some(View::Node(_)), .. } = change {
            keys.push(Key::Object(key.clone()));
        }
    }

    fn decide(&self, world: &World, key: &Key, now: Time) -> Decision {
        let Some(node) = node_of(world, key) else { return Decision::rest() };
        let wanted = wanted(node);
        let there: Vec<&str> = ours(node).map(|t| t.key.as_str()).collect();
        let add: Vec<Taint> = wanted
            .iter()
            .filter(|key| !there.contains(key))
            .map(|key| Taint::new(key, TaintEffect::NoSchedule).since(now))
            .collect();
        let remove: Vec<TaintName> =
            ours(node).filter(|t| !wanted.contains(&&*t.key)).map(TaintName::from).collect();
        if add.is_empty() && remove.is_empty() {
            return Decision::rest();
        }
        // One write: there is no moment without a taint between not-ready and unreachable.
        let edit = Edit::Taints { add, remove };
        Decision::rest().with(Action::edit(ObjectKey::node(&node.name()), node.rev, edit))
    }
}

/// The NoSchedule taints that the node should have, of those that are ours to set.
fn wanted(node: &Node) -> Vec<&'static str> {
    let holds = |kind: &str, status| node.condition(kind).is_some_and(|c| c.status == status);
    let by_condition =
        BY_CONDITION.iter().filter(|(kind, status, _)| holds(kind, *status)).map(|(.., key)| *key);
    by_condition.chain(node.spec.unschedulable.then_some(UNSCHEDULABLE)).collect()
}

/// The NoSchedule taints of the node that are ours to take away.
fn ours(node: &Node) -> impl Iterator<Item = &Taint> {
    node.spec.taints.iter().filter(|t| {
        let known = t.key == UNSCHEDULABLE || BY_CONDITION.iter().any(|(.., key)| *key == t.key);
        known && t.effect == TaintEffect::NoSchedule
    })
}

// === impl NoExecute ===

impl Controller for NoExecute {
    fn scope(&self) -> &'static Scope {
        &NO_EXECUTE
    }

    fn touched(&self, change: &Change, world: &World, keys: &mut Vec<Key>) {
        match change {
            Change::Object { key, new: Some(View::Node(_)), .. } => keys.push(Key::Object(key.clone())),
            Change::Object { new: Some(View::NodeIncident(incident)), .. } => {
                keys.push(Key::Object(ObjectKey::node(&incident.spec.node_name)));
            }
            // Another rate, or "all down" entered or left: whoever waits for a token, or carries a taint, is looked at.
            Change::Zones => {
                let concerned = world.nodes().filter(|n| n.ready() != ConditionStatus::True || has_either(n));
                keys.extend(concerned.map(|n| Key::Object(ObjectKey::node(&n.name()))));
            }
            Change::Object { .. } | Change::Heard(_) => {}
        }
    }

    fn decide(&self, world: &World, key: &Key, now: Time) -> Decision {
        let Some(node) = node_of(world, key) else { return Decision::rest() };
        let Some(wanted) = wanted_execute(world, node) else { return clear(world, node, now) };
        let unwanted = if wanted == NOT_READY { UNREACHABLE } else { NOT_READY };
        let other = no_execute(node).find(|t| t.key == unwanted);
        if no_execute(node).any(|t| t.key == wanted) {
            return if other.is_some() { edit(node, Vec::new(), &[unwanted]) } else { Decision::rest() };
        }
        let taint = Taint::new(wanted, TaintEffect::NoExecute);
        if let Some(other) = other {
            // NLC-20, NLC-21: a swap is not paced.
            let since = match world.settings().timing.detection {
                Detection::Leases => now,
                Detection::Beats => other.time_added.unwrap_or(now),
            };
            return edit(node, vec![taint.since(since)], &[unwanted]);
        }
        add(world, node, taint.since(now), now)
    }
}

/// NLC-20: the NoExecute taint that belongs to the node's Ready; none while all zones are down (NLC-30 a). A node
/// without Ready has none yet: it gets its condition after the start-up grace.
fn wanted_execute(world: &World, node: &Node) -> Option<&'static str> {
    if world.zones().all_full() {
        return None;
    }
    match node.condition("Ready")?.status {
        ConditionStatus::True => None,
        ConditionStatus::False => Some(NOT_READY),
        ConditionStatus::Unknown => Some(UNREACHABLE),
    }
}

/// The first taint, at the pace of the zone.
fn add(world: &World, node: &Seen<Node>, taint: Taint, now: Time) -> Decision {
    let zone = Zone::of(node);
    let object = ObjectKey::node(&node.name());
    let held = if is_stopped(world, &zone) {
        Some(format!("zone {zone} is disrupted and small: no node of it is tainted"))
    } else if taint.key == UNREACHABLE && detect::is_braked(world, &node.metadata.uid) {
        Some(format!("a brake holds the incident of node {}", node.name()))
    } else {
        None
    };
    if let Some(text) = held {
        return Decision::rest().because(Note::warning(object, "EvictionHeld", text, node.rev.to_string()));
    }
    let due = observed_at(world, node);
    if now < due {
        return Decision::wait(due);
    }
    let edit = Edit::Taints { add: vec![taint], remove: Vec::new() };
    let action = Action::edit(object, node.rev, edit)
        .counting("node_collector_evictions_total", &[("zone", &zone.to_string())])
        .paced(Pace::Evict(zone));
    Decision::rest().with(action)
}

/// NLC-07: under leases a pass acts on what the pass before left: the taint comes one pass after the condition. A new
/// process sees everything at its first pass (NLC-24). Where nodes beat there are no passes.
fn observed_at(world: &World, node: &Seen<Node>) -> Time {
    let timing = &world.settings().timing;
    match timing.detection {
        Detection::Leases if node.at <= world.started() => world.started(),
        Detection::Leases => pass::after(world, timing.node_monitor_period, node.at),
        Detection::Beats => Time::ZERO,
    }
}

/// True if the rate of the zone is zero. Asked here as well as by the driver, so that a node whose zone recovers is
/// decided again by that change and not when a token is looked for.
fn is_stopped(world: &World, zone: &Zone) -> bool {
    world.zones().health(zone).is_some_and(|health| match health.state {
        ZoneState::Normal | ZoneState::FullDisruption => false,
        ZoneState::PartialDisruption => {
            let size = u64::try_from(health.ready + health.not_ready).unwrap_or(u64::MAX);
            size <= world.settings().timing.large_zone
        }
    })
}

/// The node is Ready, or everything is down: both taints go at once. Pods that would have been evicted are told here
/// and not by [`evict`]: this decision is made once, while "no taint" lasts for ever.
fn clear(world: &World, node: &Seen<Node>, now: Time) -> Decision {
    if !has_either(node) {
        return Decision::rest();
    }
    let mut decision = edit(node, Vec::new(), &[NOT_READY, UNREACHABLE]);
    if no_execute(node).all(is_either) {
        let name = node.name();
        let told = world.pods_on(&name).filter_map(|pod| evict::cancelled(world, node, pod, now));
        decision.actions.extend(told.map(Action::note));
    }
    decision
}

/// Adds and takes away NoExecute taints in one write; only those that are there are named.
fn edit(node: &Seen<Node>, add: Vec<Taint>, remove: &[&str]) -> Decision {
    let remove = no_execute(node).filter(|t| remove.contains(&&*t.key)).map(TaintName::from).collect();
    Decision::rest().with(Action::edit(ObjectKey::node(&node.name()), node.rev, Edit::Taints { add, remove }))
}

fn is_either(taint: &Taint) -> bool {
    taint.key == NOT_READY || taint.key == UNREACHABLE
}

fn has_either(node: &Node) -> bool {
    no_execute(node).any(is_either)
}

fn node_of<'w>(world: &'w World, key: &Key) -> Option<&'w Seen<Node>> {
    world.node(&NodeName::from(&key.object()?.name))
}

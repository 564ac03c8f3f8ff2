//! Conditions of nodes and pods in a tree.
//!
//! Responsible for: setting a condition by its type, in place. Invariant: `lastTransitionTime` moves exactly when
//! `status` does; whoever judges by it (startup grace, stale disruption marks) would else wait for ever.

use api::time::Time;
use api::view::{Condition, ConditionStatus};
use serde_json::Value;

use crate::tree::{self as t, Fields};

/// Sets one condition in `status`. A transition time or heartbeat of zero means: not stated.
pub(crate) fn set(status: &mut Fields, wanted: &Condition, now: Time) -> bool {
    let list = status.entry("conditions").or_insert_with(|| Value::Array(Vec::new()));
    if !list.is_array() {
        *list = Value::Array(Vec::new());
    }
    let list = list.as_array_mut().expect("it was made a list above");
    let at = list.iter().position(|c| t::text(c, &["type"]) == wanted.kind);
    let (place, is_new) = match at {
        Some(at) => (&mut list[at], false),
        None => (list.push_mut(Value::Object(Fields::new())), true),
    };
    let turns = is_new || t::text(place, &["status"]) != status_text(wanted.status);
    let fields = t::fields(place, &[]);
    let mut changed = is_new;
    changed |= t::set(fields, "type", wanted.kind.as_str());
    changed |= t::set(fields, "status", status_text(wanted.status));
    changed |= t::set_or_clear(fields, "reason", wanted.reason.as_str());
    changed |= t::set_or_clear(fields, "message", wanted.message.as_str());
    if turns || !fields.contains_key("lastTransitionTime") {
        let at = if wanted.last_transition_time == Time::ZERO { now } else { wanted.last_transition_time };
        changed |= t::set_time(fields, "lastTransitionTime", at);
    }
    if wanted.last_heartbeat_time != Time::ZERO {
        changed |= t::set_time(fields, "lastHeartbeatTime", wanted.last_heartbeat_time);
    }
    changed
}

/// Sets several conditions.
pub(crate) fn set_all<'c>(
    status: &mut Fields,
    wanted: impl IntoIterator<Item = &'c Condition>,
    now: Time,
) -> bool {
    wanted.into_iter().fold(false, |changed, condition| set(status, condition, now) | changed)
}

fn status_text(status: ConditionStatus) -> &'static str {
    match status {
        ConditionStatus::True => "True",
        ConditionStatus::False => "False",
        ConditionStatus::Unknown => "Unknown",
    }
}

//! Acts on the status of kinds that have little of their own: conditions, attachments, incidents.

use api::object::ObjectKey;
use api::time::Time;
use api::view::{Condition, IncidentPhase, IncidentStatus};
use serde::Deserialize;
use serde_json::Value;

use crate::condition;
use crate::refusal::Refusal;
use crate::tree as t;

/// The fields of an incident's status that the view knows.
const INCIDENT_FIELDS: &[&str] = &["phase", "steps", "evidence", "brakes", "end", "killBoundMs"];

/// Conditions by type; others stay.
pub(super) fn conditions(tree: &mut Value, wanted: &[Condition], now: Time) -> bool {
    !wanted.is_empty() && condition::set_all(t::fields(tree, &["status"]), wanted, now)
}

/// Whether the driver has attached the volume.
pub(super) fn attached(tree: &mut Value, attached: bool) -> bool {
    t::set(t::fields(tree, &["status"]), "attached", attached)
}

/// How far an incident is.
///
/// An incident goes only forward and evidence is never taken back, whoever asks: a decision on an old view that
/// reached the store in spite of its expectations would else make a fenced node grantable again.
pub(super) fn incident(key: &ObjectKey, tree: &mut Value, wanted: &IncidentStatus) -> Result<bool, Refusal> {
    let phase = t::get(tree, &["status", "phase"]).and_then(|p| IncidentPhase::deserialize(p).ok());
    let phase = phase.unwrap_or_default();
    if wanted.phase < phase {
        let why = format!("may not go back from {phase:?} to {:?}", wanted.phase);
        return Err(Refusal::invalid(key, "status.phase", why));
    }
    let recorded = t::list(tree, &["status", "evidence"]);
    let is_kept = |e: &Value| wanted.evidence.iter().any(|w| api::view::tree(&w.kind) == e["kind"]);
    if !recorded.iter().all(is_kept) {
        return Err(Refusal::invalid(key, "status.evidence", "recorded evidence may not be removed"));
    }
    let mut from = t::fields_of(wanted);
    // Written even where it is the default: clients show it.
    from.insert("phase".to_owned(), api::view::tree(&wanted.phase));
    Ok(t::overlay(t::fields(tree, &["status"]), from, INCIDENT_FIELDS))
}

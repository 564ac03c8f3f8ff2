//! Acts on metadata: finalizers, and the generation that grows with the wish.

use api::object::ObjectKey;
use serde_json::Value;

use crate::refusal::Refusal;
use crate::tombstone::{self, Departure};
use crate::tree as t;
use crate::write::{Effect, Occasion};

/// Counts a change of the wish. Called only for kinds that have a generation (`prepare::has_generation`).
pub(crate) fn grow_generation(tree: &mut Value) {
    let old = t::get(tree, &["metadata", "generation"]).and_then(Value::as_u64).unwrap_or(0);
    t::set(t::fields(tree, &["metadata"]), "generation", old + 1);
}

/// One more finalizer; not on an object that is on its way out, or its deletion could be held up for ever.
pub(super) fn add_finalizer(key: &ObjectKey, tree: &mut Value, name: &str) -> Result<bool, Refusal> {
    if t::list(tree, &["metadata", "finalizers"]).iter().any(|f| f == name) {
        return Ok(false);
    }
    if !t::text(tree, &["metadata", "deletionTimestamp"]).is_empty() {
        let why = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{name:?}}}"
        );
        return Err(Refusal::invalid(key, "metadata.finalizers", why));
    }
    let finalizers = t::fields(tree, &["metadata"]).entry("finalizers").or_insert(Value::Null);
    match finalizers {
        Value::Array(list) => list.push(name.into()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            *finalizers = Value::Array(vec![name.into()]);
        }
    }
    Ok(true)
}

/// One finalizer less. The last one lets a deleted object go, unless it is a pod whose grace still runs: that one
/// waits for its node.
pub(super) fn remove_finalizer(
    key: &ObjectKey,
    tree: &mut Value,
    name: &str,
    on: &Occasion<'_>,
) -> Result<Effect, Refusal> {
    let old = t::list(tree, &["metadata", "finalizers"]);
    let left: Vec<Value> = old.iter().filter(|f| *f != name).cloned().collect();
    if left.len() == old.len() {
        return Ok(Effect::Same);
    }
    let is_last = left.is_empty();
    t::set_or_clear(t::fields(tree, &["metadata"]), "finalizers", left);
    let is_deleted = !t::text(tree, &["metadata", "deletionTimestamp"]).is_empty();
    let grace = t::get(tree, &["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64);
    if is_last && is_deleted && grace.unwrap_or(0) == 0 {
        let tombstone = tombstone::of(key, tree, Departure::FinalizerRemoved, on)?;
        return Ok(Effect::Remove { tombstone });
    }
    Ok(Effect::Put)
}

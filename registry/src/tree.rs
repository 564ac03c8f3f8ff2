//! Small tools for JSON trees: reading a path, setting a field and knowing whether it changed.
//!
//! Responsible for: the one way in which the law touches a tree, so that fields beside the touched ones survive.
//! Invariant: every setter returns true exactly if the tree is different afterwards; an edit is `Same` if all of its
//! setters say false.

use std::borrow::Cow;
use std::collections::BTreeMap;

use api::time::Time;
use api::view::tree;
use serde_json::{Map, Value};

/// The fields of an object.
pub(crate) type Fields = Map<String, Value>;

/// What lies at `path`, if it does.
pub(crate) fn get<'t>(root: &'t Value, path: &[&str]) -> Option<&'t Value> {
    path.iter().try_fold(root, |at, field| at.get(*field))
}

/// The text at `path`; empty if there is none.
pub(crate) fn text<'t>(root: &'t Value, path: &[&str]) -> &'t str {
    get(root, path).and_then(Value::as_str).unwrap_or("")
}

/// The list at `path`; empty if there is none.
pub(crate) fn list<'t>(root: &'t Value, path: &[&str]) -> &'t [Value] {
    get(root, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The time at `path`, if there is one.
pub(crate) fn time(root: &Value, path: &[&str]) -> Option<Time> {
    Time::parse_rfc3339(text(root, path))
}

/// The object at `path`, made where it is missing. What is no object there (clients write `null`) becomes one.
pub(crate) fn fields<'t>(root: &'t mut Value, path: &[&str]) -> &'t mut Fields {
    let mut at = as_fields(root);
    for field in path {
        at = as_fields(at.entry(*field).or_insert(Value::Null));
    }
    at
}

fn as_fields(value: &mut Value) -> &mut Fields {
    if !value.is_object() {
        *value = Value::Object(Fields::new());
    }
    value.as_object_mut().expect("it was made an object above")
}

/// Sets a field.
pub(crate) fn set(fields: &mut Fields, field: &str, value: impl Into<Value>) -> bool {
    let value = value.into();
    if fields.get(field) == Some(&value) {
        return false;
    }
    fields.insert(field.to_owned(), value);
    true
}

/// Sets a field, or takes it away if the value is empty: null, an empty text or an empty list.
pub(crate) fn set_or_clear(fields: &mut Fields, field: &str, value: impl Into<Value>) -> bool {
    let value = value.into();
    let is_empty = match &value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    };
    if is_empty { fields.remove(field).is_some() } else { set(fields, field, value) }
}

/// Sets a time.
pub(crate) fn set_time(fields: &mut Fields, field: &str, at: Time) -> bool {
    // A time is equal to another spelling of itself: clients write `Z` and `+00:00`, with and without fractions.
    let is_so = fields.get(field).and_then(Value::as_str).and_then(Time::parse_rfc3339) == Some(at);
    if is_so { false } else { set(fields, field, tree(&at)) }
}

/// Takes over the fields named in `known` from `from`: set where it has them, taken away where it has not. Fields
/// that are not known stay.
pub(crate) fn overlay(onto: &mut Fields, mut from: Fields, known: &[&str]) -> bool {
    let mut changed = false;
    for field in known {
        changed |= match from.remove(*field) {
            Some(value) => set(onto, field, value),
            None => onto.remove(*field).is_some(),
        };
    }
    changed
}

/// Makes the list `field` have the entries of `wanted`, in their order. An entry that is there already (by
/// `identity`) keeps the fields that are not in `known`; an entry that is not wanted goes.
pub(crate) fn set_list(
    fields: &mut Fields,
    field: &str,
    wanted: Vec<Value>,
    identity: &[&str],
    known: &[&str],
) -> bool {
    let old = fields.get(field).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    // An index, because a slice has a hundred entries and lists of clients may have thousands. Of two entries of one
    // name the first counts: the one that is inserted last stays.
    let by_name: BTreeMap<_, &Value> =
        old.iter().rev().filter_map(|entry| Some((name_of(get(entry, identity)?), entry))).collect();
    let mut new = Vec::with_capacity(wanted.len());
    for entry in wanted {
        let there = get(&entry, identity).and_then(|name| by_name.get(&name_of(name)));
        let mut kept = there.map_or(Value::Null, |entry| (*entry).clone());
        if let Value::Object(from) = entry {
            overlay(as_fields(&mut kept), from, known);
        }
        new.push(kept);
    }
    if new == old { false } else { set_or_clear(fields, field, new) }
}

/// What entries of a list are told apart by: a text, or the text of something else.
fn name_of(value: &Value) -> (bool, Cow<'_, str>) {
    match value {
        Value::String(text) => (true, Cow::Borrowed(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            (false, Cow::Owned(value.to_string()))
        }
    }
}

/// The object that a view, or a part of one, is written as.
pub(crate) fn fields_of<T: serde::Serialize>(part: &T) -> Fields {
    match tree(part) {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Fields::new(),
    }
}

/// The list that parts of views are written as.
pub(crate) fn list_of<T: serde::Serialize>(parts: &[T]) -> Vec<Value> {
    parts.iter().map(tree).collect()
}

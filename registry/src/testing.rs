//! Helpers of the tests: a law with a small store behind it, and what an act changed, in words.

use std::fmt::Write as _;

use api::annotation::NODE_UID;
use api::edit::Edit;
use api::object::{Kind, ObjectKey};
use api::time::Time;
use api::view::View;
use api::write::{Deletion, New};
use serde_json::{Value, json};

use crate::{Caller, Effect, Law, Occasion, Refusal};

/// The time of all tests: a whole minute, so that it is easy to read.
pub(crate) const NOW: Time = Time::from_ms(1_780_000_020_000);

/// Who writes, under which law, and what else the store holds.
pub(crate) struct Bench {
    pub(crate) now: Time,
    pub(crate) caller: Caller,
    pub(crate) law: Law,
    pub(crate) store: Vec<View>,
}

// === impl Bench ===

impl Bench {
    pub(crate) fn new(caller: Caller) -> Self {
        Self { now: NOW, caller, law: Law::default(), store: Vec::new() }
    }

    pub(crate) fn controller() -> Self {
        Self::new(Caller::Controller)
    }

    /// The agent of node `n1` with uid `u1`.
    pub(crate) fn node() -> Self {
        Self::new(agent("n1", "u1"))
    }

    pub(crate) fn with(mut self, kind: Kind, tree: &Value) -> Self {
        let bytes = tree.to_string();
        self.store.push(View::read(kind, bytes.as_bytes()).expect("a tree of the tests has a view"));
        self
    }

    pub(crate) fn under(mut self, law: Law) -> Self {
        self.law = law;
        self
    }

    fn on<T>(&self, act: impl FnOnce(&Occasion<'_>) -> T) -> T {
        let read = |key: &ObjectKey| self.store.iter().find(|view| view.key() == *key).cloned();
        act(&Occasion { now: self.now, caller: &self.caller, law: &self.law, read: &read })
    }

    pub(crate) fn edit(&self, kind: Kind, tree: &mut Value, edit: &Edit) -> Result<Effect, Refusal> {
        let key = key_of(kind, tree);
        self.on(|on| crate::edit(&key, tree, edit, on))
    }

    pub(crate) fn delete(&self, kind: Kind, tree: &mut Value, how: &Deletion) -> Result<Effect, Refusal> {
        let key = key_of(kind, tree);
        self.on(|on| crate::delete(&key, tree, how, on))
    }

    pub(crate) fn create(&self, new: &New, owner: Option<&Value>) -> Result<Value, Refusal> {
        self.on(|on| crate::create(new, owner, &"new-uid".into(), on))
    }

    /// The effect of an edit and what it changed, in words.
    pub(crate) fn edited(&self, kind: Kind, tree: &mut Value, edit: &Edit) -> String {
        let before = tree.clone();
        outcome(self.edit(kind, tree, edit), &before, tree)
    }

    /// The effect of a deletion and what it changed, in words.
    pub(crate) fn deleted(&self, kind: Kind, tree: &mut Value, how: &Deletion) -> String {
        let before = tree.clone();
        outcome(self.delete(kind, tree, how), &before, tree)
    }
}

pub(crate) fn agent(name: &str, uid: &str) -> Caller {
    Caller::Node { name: name.into(), uid: uid.into() }
}

fn key_of(kind: Kind, tree: &Value) -> ObjectKey {
    let text = |field: &str| tree["metadata"][field].as_str().unwrap_or("").to_owned();
    ObjectKey { kind, namespace: text("namespace").into(), name: text("name").into() }
}

fn outcome(result: Result<Effect, Refusal>, before: &Value, after: &Value) -> String {
    match result {
        Err(refusal) => format!("refused: {refusal}\n"),
        Ok(Effect::Same) => {
            assert_eq!(before, after, "an act that says Same leaves the tree alone");
            "same\n".to_owned()
        }
        Ok(Effect::Put) => {
            assert_ne!(before, after, "an act that says Put has changed the tree");
            format!("put\n{}", changes(before, after))
        }
        Ok(Effect::Remove { tombstone: None }) => "remove\n".to_owned(),
        Ok(Effect::Remove { tombstone: Some(tombstone) }) => {
            format!("remove, tombstone\n{}", changes(&Value::Null, &tombstone))
        }
    }
}

/// One line for each leaf that differs: `path: new`, or `path: old -> new`, or `path: old -> gone`.
pub(crate) fn changes(before: &Value, after: &Value) -> String {
    let mut text = String::new();
    walk("", Some(before).filter(|v| !v.is_null()), Some(after), &mut text);
    text
}

fn walk(path: &str, before: Option<&Value>, after: Option<&Value>, text: &mut String) {
    if before == after {
        return;
    }
    let mut names: Vec<String> = Vec::new();
    for side in [before, after].into_iter().flatten() {
        match side {
            Value::Object(fields) => names.extend(fields.keys().map(|name| format!(".{name}"))),
            Value::Array(list) => names.extend((0..list.len()).map(|at| format!("[{at}]"))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    names.sort();
    names.dedup();
    if names.is_empty() {
        let path = path.trim_start_matches('.');
        let _ = match (before, after) {
            (None, Some(new)) => writeln!(text, "{path}: {new}"),
            (Some(old), Some(new)) => writeln!(text, "{path}: {old} -> {new}"),
            (Some(old), None) => writeln!(text, "{path}: {old} -> gone"),
            (None, None) => Ok(()),
        };
        return;
    }
    for name in names {
        let child = |value: &'_ Value| match name.strip_prefix('.') {
            Some(field) => value.get(field).cloned(),
            None => value.get(name.trim_matches(['[', ']']).parse::<usize>().unwrap_or(0)).cloned(),
        };
        let (before, after) = (before.and_then(child), after.and_then(child));
        walk(&format!("{path}{name}"), before.as_ref(), after.as_ref(), text);
    }
}

/// A pod of a StatefulSet, bound to `n1` with uid `u1`, running.
pub(crate) fn db0() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "db-0", "namespace": "prod", "uid": "pod-1", "generation": 1,
            "annotations": { NODE_UID: "u1" },
            "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "set-1", "controller": true }],
        },
        "spec": {
            "nodeName": "n1", "terminationGracePeriodSeconds": 30,
            "containers": [{ "name": "db", "image": "db:1" }],
            "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "data-db-0" } }],
        },
        "status": {
            "phase": "Running",
            "conditions": [
                { "type": "Ready", "status": "True", "lastTransitionTime": "2026-05-28T00:00:00Z" },
                { "type": "ContainersReady", "status": "True", "lastTransitionTime": "2026-05-28T00:00:00Z" },
            ],
            "containerStatuses": [{ "name": "db", "ready": true, "restartCount": 0, "state": { "running": {} } }],
        },
    })
}

/// A node with its uid and the boot on record.
pub(crate) fn node(name: &str, uid: &str, boot: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": name, "uid": uid, "annotations": { "mainstay.dev/recorded-boot": boot } },
        "spec": {}, "status": {},
    })
}

//! Metadata, owner references, conditions: what all kinds share.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::view;
use crate::id::{Generation, Name, Namespace, Uid};
use crate::time::Time;

view! {
    /// `metav1.ObjectMeta`, without `resourceVersion`: the revision of an object comes from the store.
    pub struct Meta {
        /// Name inside the namespace.
        pub name: Name,
        /// Empty for objects of the cluster.
        pub namespace: Namespace,
        /// Identity over the object's life.
        pub uid: Uid,
        /// Grows with every change of the wish.
        pub generation: Generation,
        /// When the object was made; stamped by the registry.
        pub creation_timestamp: Time,
        /// Set once a graceful deletion has begun: the moment at which its grace ends.
        pub deletion_timestamp: Option<Time>,
        /// The grace in seconds that `deletion_timestamp` was made of.
        pub deletion_grace_period_seconds: Option<u64>,
        /// What selectors look at.
        pub labels: BTreeMap<String, String>,
        /// What nothing selects by.
        pub annotations: BTreeMap<String, String>,
        /// While one is left, a deleted object stays.
        pub finalizers: Vec<String>,
        /// Who made this object, and goes before it.
        pub owner_references: Vec<OwnerReference>,
    }
}

impl Meta {
    /// The owner that manages this object, if there is one.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references.iter().find(|o| o.controller)
    }

    /// True once a deletion has begun.
    pub fn is_terminating(&self) -> bool {
        self.deletion_timestamp.is_some()
    }
}

view! {
    /// `metav1.OwnerReference`.
    pub struct OwnerReference {
        /// Group and version of the owner.
        pub api_version: String,
        /// Kind of the owner, as text: owners may be of kinds that no mind knows.
        pub kind: String,
        /// Name of the owner.
        pub name: Name,
        /// Identity of the owner: a new owner of the same name owns nothing of the old one.
        pub uid: Uid,
        /// True for the one owner that manages the object.
        pub controller: bool,
        /// True if deleting the owner in the foreground waits for this object.
        pub block_owner_deletion: bool,
    }
}

view! {
    /// A reference to an object of any kind (`v1.ObjectReference`).
    pub struct ObjectReference {
        /// Kind of the object.
        pub kind: String,
        /// Its namespace.
        pub namespace: Namespace,
        /// Its name.
        pub name: Name,
        /// Its identity, if known.
        pub uid: Uid,
    }
}

/// True, False or Unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody knows; also what a missing condition means.
    #[default]
    #[serde(other)]
    Unknown,
}

/// A condition of a node or a pod. Written whole, so that clients find every field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// What is stated: `Ready`, `MemoryPressure`, `DisruptionTarget`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// One word for machines.
    #[serde(skip_serializing_if = "super::is_default", deserialize_with = "super::null_is_default")]
    pub reason: String,
    /// A sentence for people.
    #[serde(skip_serializing_if = "super::is_default", deserialize_with = "super::null_is_default")]
    pub message: String,
    /// When `status` last changed.
    #[serde(skip_serializing_if = "super::is_default", deserialize_with = "super::null_is_default")]
    pub last_transition_time: Time,
    /// When the writer last looked (nodes only).
    #[serde(skip_serializing_if = "super::is_default", deserialize_with = "super::null_is_default")]
    pub last_heartbeat_time: Time,
}

impl Condition {
    /// A condition that became `status` at `now`.
    pub fn new(kind: &str, status: ConditionStatus, reason: &str, message: &str, now: Time) -> Self {
        Self {
            kind: kind.to_owned(),
            status,
            reason: reason.to_owned(),
            message: message.to_owned(),
            last_transition_time: now,
            last_heartbeat_time: Time::ZERO,
        }
    }
}

//! Making and unmaking objects: the acts that are no edit of one.
//!
//! Responsible for: naming how an object is made and how it goes. Leaves to `registry` what that means for its tree.
//! Invariant: a pod made by a workload is made from the *tree* of the workload's template, never from a view, so that
//! fields no view knows survive.

use crate::id::{Name, Uid};
use crate::object::{Kind, ObjectKey};
use crate::view::View;

/// How a new object is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum New {
    /// From a view: kinds that only controllers write.
    Object(Box<View>),
    /// A pod from the template of its owner (ReplicaSet, StatefulSet, DaemonSet): the template is copied as a tree, so
    /// that fields no view knows survive.
    Pod {
        /// The owner, at the revision of the view.
        owner: ObjectKey,
        /// Its identity.
        owner_uid: Uid,
        /// Name of the pod.
        name: Name,
        /// What the owner adds to the template.
        dress: Dress,
    },
    /// A claim from `volumeClaimTemplates[template]` of a StatefulSet.
    Claim {
        /// The StatefulSet.
        owner: ObjectKey,
        /// Index of the template.
        template: usize,
        /// Name of the claim.
        name: Name,
    },
}

/// What an owner adds to the template of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dress {
    /// Nothing but the owner reference.
    Plain,
    /// StatefulSet: host name, pod-name label, volumes of its claims (`<template>-<pod>`).
    Ordinal(u32),
    /// DaemonSet: pinned to this node by affinity, daemon tolerations.
    OnNode(Name),
}

impl New {
    /// Where the new object will lie.
    pub fn key(&self) -> ObjectKey {
        match self {
            Self::Object(view) => view.key(),
            Self::Pod { owner, name, .. } => ObjectKey::namespaced(Kind::Pod, &owner.namespace, name.clone()),
            Self::Claim { owner, name, .. } => {
                ObjectKey::namespaced(Kind::PersistentVolumeClaim, &owner.namespace, name.clone())
            }
        }
    }
}

/// How to delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// With the object's own grace; a bound pod stays until its agent has confirmed.
    Graceful,
    /// At once, without the agent's word. If the pod is exclusive and may still run, a tombstone is written.
    Force,
    /// At once, on recorded evidence: the incident must be fenced, and is compared in the same transaction.
    Proven {
        /// The incident that proves that the old machine cannot act.
        incident: ObjectKey,
    },
}

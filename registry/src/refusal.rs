//! Why a write is refused.
//!
//! Responsible for: one case per reason of the API, each with one sentence; where clients match on upstream's words,
//! in upstream's words. Leaves to `server`: codes and the `Status` object. The existence of a name is no matter of
//! the law: the transaction compares it.

use std::fmt;

use api::object::ObjectKey;

use crate::problem::{Path, Problems};

/// A refused write. The store is untouched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The object would not be what its kind demands. All problems, not the first.
    Invalid {
        /// Which object.
        key: ObjectKey,
        /// What is wrong with it.
        problems: Problems,
    },
    /// The object is not in a state in which this can be done.
    Conflict {
        /// Which object.
        key: ObjectKey,
        /// What stands against it.
        why: String,
    },
    /// The object, or one that the write needs, is not there.
    NotFound {
        /// Which object.
        key: ObjectKey,
    },
    /// The caller may not do this.
    Forbidden {
        /// Which object.
        key: ObjectKey,
        /// What the caller may do instead.
        why: String,
    },
}

// === impl Refusal ===

impl Refusal {
    /// An object with one problem: something that its state forbids.
    pub fn invalid(key: &ObjectKey, field: &str, why: impl Into<String>) -> Self {
        let mut problems = Problems::default();
        problems.forbidden(&Path::root(field), why);
        Self::Invalid { key: key.clone(), problems }
    }

    /// An object in which something is missing.
    pub fn required(key: &ObjectKey, field: &str) -> Self {
        let mut problems = Problems::default();
        problems.required(&Path::root(field), "");
        Self::Invalid { key: key.clone(), problems }
    }

    /// A conflict with the state of an object.
    pub fn conflict(key: &ObjectKey, why: impl Into<String>) -> Self {
        Self::Conflict { key: key.clone(), why: why.into() }
    }

    /// An act that is not the caller's.
    pub fn forbidden(key: &ObjectKey, why: impl Into<String>) -> Self {
        Self::Forbidden { key: key.clone(), why: why.into() }
    }

    /// True if the same write may succeed after a fresh look; false if it will be refused again.
    pub fn retry(&self) -> bool {
        match self {
            Self::Conflict { .. } | Self::NotFound { .. } => true,
            Self::Invalid { .. } | Self::Forbidden { .. } => false,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid { key, problems } => {
                write!(f, "{} {:?} is invalid: {problems}", kind(key), key.name.as_str())
            }
            Self::Conflict { key, why } => {
                write!(f, "Operation cannot be fulfilled on {} {:?}: {why}", resource(key), key.name.as_str())
            }
            Self::NotFound { key } => write!(f, "{} {:?} not found", resource(key), key.name.as_str()),
            Self::Forbidden { key, why } => {
                write!(f, "{} {:?} is forbidden: {why}", resource(key), key.name.as_str())
            }
        }
    }
}

impl std::error::Error for Refusal {}

/// `ReplicaSet.apps`, `Pod`.
fn kind(key: &ObjectKey) -> String {
    with_group(key, &key.kind.noun())
}

/// `replicasets.apps`, `pods`.
fn resource(key: &ObjectKey) -> String {
    with_group(key, key.kind.place().plural)
}

fn with_group(key: &ObjectKey, word: &str) -> String {
    let group = key.kind.place().group;
    if group.is_empty() { word.to_owned() } else { format!("{word}.{group}") }
}

//! A write: who asks, when, under which law, and what comes of it.
//!
//! Responsible for: the words that [`create`](crate::create()), [`edit`](crate::edit()) and
//! [`delete`](crate::delete()) share. Requests from outside will take the same way, with more steps around it:
//! decode, default, prepare, admit, check, admit, ownership of fields, generation, preconditions; the steps that act
//! today are `prepare`, `admit` and `restrict`.
//!
//! Invariant: whatever the law asked the store through [`Occasion::read`] is compared in the transaction that carries
//! the effect. Else a tombstone could be left out because of a claim that has just changed, or evidence believed
//! that has just been withdrawn.

use api::id::{NodeName, Uid};
use api::object::ObjectKey;
use api::time::Time;
use api::view::View;
use serde_json::Value;

use crate::law::Law;

/// Who writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// The agent of a node.
    Node {
        /// Name of the node.
        name: NodeName,
        /// Identity of its Node object as the agent knows it; empty before it is registered.
        uid: Uid,
    },
    /// A controller of the control plane, the scheduler included.
    Controller,
    /// Somebody else: a person, an operator, a tool.
    User,
}

/// The circumstances of a write.
#[derive(Clone, Copy)]
pub struct Occasion<'a> {
    /// The time of the server that writes.
    pub now: Time,
    /// Who asks.
    pub caller: &'a Caller,
    /// The law of this cluster.
    pub law: &'a Law,
    /// What the store holds under another key. Asked for claims, Nodes and incidents when an object goes; the body
    /// remembers the revision (or the absence) of each and compares it in the same transaction.
    pub read: &'a dyn Fn(&ObjectKey) -> Option<View>,
}

/// What must be done in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Effect {
    /// Nothing: it is so already. The write counts as done.
    Same,
    /// The tree has changed: put it.
    Put,
    /// The object goes: remove it.
    Remove {
        /// Put in the same transaction: the record that the pod may still run. Its key is
        /// `ObjectKey::cluster(Kind::Tombstone, <uid of the pod>)`.
        tombstone: Option<Value>,
    },
}

// === impl Effect ===

impl Effect {
    /// `Put` if something changed.
    pub(crate) fn of_change(changed: bool) -> Self {
        if changed { Self::Put } else { Self::Same }
    }
}

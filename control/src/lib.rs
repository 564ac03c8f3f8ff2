//! All decisions of the cluster: node death and fencing, workloads, scheduling, volumes, endpoints, garbage.
//!
//! Responsible for: the world, the queue, the shape of a decision, and every controller. Leaves to bodies: time,
//! network, store; they feed a [`mind::Mind`] and carry out what it sends. Leaves to `registry` how an edit changes
//! an object, to `agent` everything a node decides.
//!
//! Invariants: pure; a decision depends on the world, the key and `now` and on nothing else; every write says what it
//! expects; every irreversible step passes numbered gates.

pub mod controller;
pub mod decision;
pub mod mind;
pub mod node_death;
mod pass;
pub mod queue;
pub mod reclaim;
pub mod schedule;
#[cfg(test)]
mod text;
pub mod volume;
pub mod workload;
pub mod world;

pub use controller::{CONTROLLERS, Change, Controller, Key, Scope};
pub use decision::{Action, Count, Decision, Deletion, Expect, New, Note, Pace, Tone, Verb};
pub use mind::{Mind, Sent, Ticket};
pub use queue::Outcome;
pub use world::{Settings, World};

//! The death of a node.
//!
//! Two layers. The first is stock behaviour by the rules of `docs/rules.md`: silence makes conditions Unknown
//! ([`detect`]), conditions make taints ([`taint`]), taints evict pods after their toleration ([`evict`]). The second
//! is ours: it proves that a silent node cannot act any more, and only then moves what must never run twice.
//!
//! ```text
//!  beats ─► pulse ─► suspicion ─► NodeIncident: Suspect ─► Dead ─► Fencing ─► Fenced ─► Recovering ─► Closed
//!             │                     (incident)     │          │         │           │
//!   grants ◄──┘                                    ▼          ▼         ▼           ▼
//!                                   detect: conditions     close at   release:    told what it
//!                                   taint, evict           the        pods, mark  lost; mark off
//!                                                          council    attach: volumes
//! ```
//!
//! What would change an answer after a restart stands in an object (incident, tombstone, council, the recorded boot on
//! the Node); the pulse holds only what a restart may forget, because forgetting it means waiting longer.

pub mod boot;
pub mod brake;
pub mod council;
pub mod detect;
pub mod evict;
pub mod expiry;
pub mod incident;
pub mod orphan;
pub mod pulse;
pub mod release;
pub mod suspicion;
pub mod taint;
pub mod tombstone;

pub use pulse::{Pulse, answer, gates};

#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors;

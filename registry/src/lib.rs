//! The law of writes: what an act makes of an object's tree.
//!
//! Responsible for: making an object ([`create`]), changing one ([`edit`]), letting one go ([`delete`]), with every
//! stamp, default and admission that belongs to it; for the tombstone of a pod that may still run; for what a node
//! may write at all. Leaves to bodies: reading the object, comparing revisions, writing in one transaction. Leaves to
//! `control` and `agent`: whether to act.
//!
//! A body runs a write in four steps:
//! ```text
//! read the object ─► check what the action expects ─► law (create, edit, delete) ─► one transaction:
//!                                                     │                              compare the object's revision
//!                                                     └─ asks the store through ───► compare what was asked for
//!                                                        Occasion::read               put or remove, put tombstone
//! ```
//!
//! Requests of clients take the same way with more steps around it. Those steps have their places: one entry of data
//! per kind in `resources/` (routes, columns, rules; `prepare` and `admit` become what its rules call), and `patch`,
//! `apply`, `check` beside [`edit`]. None of them is here before it acts.
//!
//! Invariants: pure; objects are JSON trees, so that a field that nobody here knows survives; a refused write leaves
//! a tree that must not be stored; every act is idempotent.

pub mod apply;
pub mod create;
pub mod delete;
pub mod discovery;
pub mod edit;
pub mod law;
pub mod openapi;
pub mod patch;
pub mod problem;
pub mod refusal;
pub mod request;
pub mod resource;
pub mod resources;
pub mod rights;
pub mod rules;
pub mod schema;
pub mod status;
pub mod table;
pub mod wire;
pub mod write;

mod admit;
mod condition;
mod prepare;
mod restrict;
#[cfg(test)]
mod testing;
mod tombstone;
mod tree;

pub use create::create;
pub use delete::delete;
pub use edit::edit;
pub use law::Law;
pub use problem::{Path, Problems};
pub use refusal::Refusal;
pub use resource::Resource;
pub use status::Status;
pub use write::{Caller, Effect, Occasion};

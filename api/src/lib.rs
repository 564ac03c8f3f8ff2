//! The vocabulary of Mainstay: what all parts mean by the same word.
//!
//! Responsible for: ids, time, objects as minds see them ([`view`]), what can be done to them ([`edit`]), taints,
//! selectors, quantities, the messages of the fencing protocol ([`message`]) and the laws between its times
//! ([`timing`]). Leaves to `registry` how an edit changes an object, to `control` and `agent` every decision.
//!
//! Invariants: pure (no clock, chance, files, threads); integers only; ordered containers only.

pub mod annotation;
pub mod edit;
pub mod exclusive;
pub mod flaw;
pub mod id;
pub mod message;
pub mod object;
pub mod quantity;
pub mod selector;
pub mod taint;
pub mod time;
pub mod timing;
pub mod view;
pub mod write;

pub use id::{BootId, CloseSeq, CouncilEpoch, Epoch, Generation, Name, Namespace, NodeName, Rev, Uid};
pub use object::{Kind, ObjectKey};
pub use time::{Duration, Time};

//! A whole cluster in virtual time.
//!
//! Responsible for: running the real minds (`control`, `agent`, `registry`, the law of `store`) on virtual machines,
//! with faults drawn from one seed, and for judging what really happens. Leaves to the binary: threads, files, output.
//!
//! Invariants: single-threaded, deterministic, pure; one seed is one run.

pub mod chance;
pub mod cluster;
pub mod config;
pub mod fault;
pub mod observe;
pub mod oracle;
pub mod report;
pub mod run;
pub mod scenario;
pub mod schedule;
pub mod trace;

mod agenda;
mod attacher;
mod clock;
mod event;
mod guardian;
mod human;
mod lease;
mod machine;
mod network;
mod node;
mod runtime;
mod server;
mod truth;
mod write;

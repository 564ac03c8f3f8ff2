//! A whole cluster in virtual time.
//!
//! Responsible for: running the real minds (`control`, `agent`, `registry`, the law of `store`) on virtual machines,
//! with faults drawn from one seed, and for judging what really happens. Leaves to the binary: threads, files, output.
//!
//! Invariants: single-threaded, deterministic, pure; one seed is one run.

pub mod cluster;
pub mod config;
pub mod fault;
pub mod observe;

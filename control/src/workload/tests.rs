//! Decisions of the workload controllers, as text, by rule and case.

mod daemon_set;
mod endpoints;
mod replica_set;
mod stateful_set;

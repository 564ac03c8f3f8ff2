//! Tests of the simulator through its doors.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests are tests; the setting covers only #[test]"
)]

mod engine;
mod oracles;
mod parse;
mod scenarios;

//! Tests of the simulator through its doors.

mod engine;
mod oracles;
mod parse;
mod scenarios;

//! Tests of the simulator through its doors.

mod engine;

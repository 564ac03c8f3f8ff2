//! The agent and its guard, driven by a small body.

mod body;
mod exclusive;
mod node;
mod plain;
mod random;

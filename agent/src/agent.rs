//! The agent: one step function.

use api::Time;

use crate::event::Event;
use crate::ledger::Ledger;
use crate::op::Op;
use crate::settings::Settings;

/// The mind of a node.
#[derive(Clone, Debug)]
pub struct Agent {
    settings: Settings,
    ticked_at: Time,
}

impl Agent {
    /// The agent as its process starts, with what is on disk.
    pub fn start(now: Time, settings: Settings, _ledger: Ledger) -> Self {
        Self { settings, ticked_at: now }
    }

    /// Something happened at `now`.
    pub fn step(&mut self, now: Time, _event: Event, _ops: &mut Vec<Op>) {
        self.ticked_at = now;
    }

    /// When a tick is due.
    pub fn next_wake(&self) -> Time {
        self.ticked_at + self.settings.timing.beat
    }
}

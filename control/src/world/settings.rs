//! What an operator set, and nothing else.

use api::flaw::Flaw;
use api::timing::{Automatic, Timing};

/// The settings of a control plane. They do not change while the process lives.
#[derive(Clone, Debug)]
pub struct Settings {
    /// All times of node death; lawful (checked at start).
    pub timing: Timing,
    /// A safeguard that the simulator left out. Nothing else sets it.
    pub flaw: Option<Flaw>,
}

impl Settings {
    /// True where fencing and failover happen by themselves.
    pub fn is_automatic(&self) -> bool {
        self.timing.automatic == Automatic::On
    }

    /// True if this safeguard was left out on purpose.
    pub fn lacks(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }
}

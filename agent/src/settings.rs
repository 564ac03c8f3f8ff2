//! What an agent is told when it is made, and never again.
//!
//! Responsible for: naming the arguments. Leaves to the body: where they come from (flags, the machine, the kernel).

use std::collections::BTreeMap;

use api::flaw::Flaw;
use api::quantity::Quantity;
use api::timing::Timing;
use api::{BootId, Duration, NodeName};

/// The settings of one agent process.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of the node.
    pub node: NodeName,
    /// This boot.
    pub boot: BootId,
    /// The machine, over boots; informational.
    pub machine: String,
    /// Labels that the Node is registered with.
    pub labels: BTreeMap<String, String>,
    /// What the machine has.
    pub capacity: BTreeMap<String, Quantity>,
    /// What pods may ask for.
    pub allocatable: BTreeMap<String, Quantity>,
    /// The times.
    pub timing: Timing,
    /// How long this node may take from the end of a grant until nothing exclusive runs; declared in every beat. At
    /// least the guard's wake-up, a kill and an unmount; with a watchdog also its time-out and a reset.
    pub kill_bound: Duration,
    /// Only in the simulator: the safeguard that is left out.
    pub flaw: Option<Flaw>,
}

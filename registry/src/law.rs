//! Settings of the law: where a cluster may differ from another.
//!
//! Responsible for: one value for each choice, and what each profile chooses. Leaves to bodies: where a setting comes
//! from. Invariant: the law of one cluster is the same in every server, or two servers would stamp differently.

use api::flaw::Flaw;

/// What differs between clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Law {
    /// Eviction clocks live in the object: a NoExecute taint that arrives without `timeAdded` gets one, and a swap of
    /// not-ready and unreachable keeps the older time. Off in stock Kubernetes, where that clock is in one process
    /// (TE-07, TE-12).
    pub carry_taint_time: bool,
    /// An exclusive pod that may still run leaves a tombstone. Off in stock Kubernetes.
    pub tombstones: bool,
    /// A pod is bound to the uid of a Node, not only to a name (P86). Off in stock Kubernetes, where a machine inherits
    /// what is bound to its name (V-16).
    pub node_identity: bool,
    /// How long a pod without a toleration of its own stays on a node that is not ready.
    pub not_ready_toleration_secs: i64,
    /// How long a pod without a toleration of its own stays on a node that is unreachable.
    pub unreachable_toleration_secs: i64,
    /// The safeguard that is left out; only the simulator sets one.
    pub flaw: Option<Flaw>,
}

/// Upstream's `--default-not-ready-toleration-seconds` and `--default-unreachable-toleration-seconds`. Half of it
/// moves pods during an ordinary reboot; double keeps replacements away for ten minutes.
pub const TOLERATION_SECS_DEFAULT: i64 = 300;

// === impl Law ===

impl Law {
    /// The law of the `kubernetes` profile: upstream's behaviour exactly.
    pub fn kubernetes() -> Self {
        Self { carry_taint_time: false, tombstones: false, node_identity: false, ..Self::default() }
    }

    /// True if a pod that may still run leaves a tombstone.
    pub(crate) fn writes_tombstones(&self) -> bool {
        self.tombstones && self.flaw != Some(Flaw::NoTombstone)
    }
}

impl Default for Law {
    fn default() -> Self {
        Self {
            carry_taint_time: true,
            tombstones: true,
            node_identity: true,
            not_ready_toleration_secs: TOLERATION_SECS_DEFAULT,
            unreachable_toleration_secs: TOLERATION_SECS_DEFAULT,
            flaw: None,
        }
    }
}

//! The life of a pod on this node.
//!
//! Responsible for: [`Life`] and its transitions, the [`Worker`] that remembers what the host cannot tell, and the one
//! function that decides the next act of a pod ([`plan`]). Leaves to [`container`] when a container starts again, to
//! [`status`] the words of Kubernetes, to [`crate::agent`] which pods there are.
//!
//! ```text
//!  from \ to    Preparing  Running  Stopping  Cleaning  Gone
//!  Admitting        x         x        x         x        x     x = may follow, · = never
//!  Preparing        ·         x        x         x        ·
//!  Running          ·         ·        x         x        ·
//!  Stopping         ·         ·        x         x        ·     Stopping to itself: only an earlier deadline
//!  Cleaning         ·         ·        ·         ·        x
//! ```
//!
//! - *Admitting*: not begun. Waits for the list to be confirmed and, if exclusive, for the guard's permission.
//! - *Preparing*: volumes are mounted, the sandbox is made.
//! - *Running*: containers are kept running; if the guard or a reboot took volumes, sandbox or containers away, they
//!   are made again here, with the permission that starting needs. A restart is a matter of containers, not of pods.
//! - *Stopping*: asked to end, until the deadline; then killed.
//! - *Cleaning*: nothing runs; the sandbox goes, volumes are unmounted.
//! - *Gone*: nothing is left on the host. Only now may the object go (KR-21).
//!
//! Invariants: a life only moves forward (a reboot or an agent restart begins a new one with what the ledger and the
//! host say); at most one op in flight per pod; nothing is begun that is not in the ledger.
//!
//! Places that stay empty until their own work is done, and are not imitated: admission by resources and number of
//! pods (Admitting), image pulls and staging of CSI volumes (Preparing), probes (Running: a container without probes is
//! ready once it runs), hooks before stopping (Stopping).

pub mod container;
pub mod ground;
pub mod plan;
pub mod status;
mod worker;

use api::Time;

pub use ground::Ground;
pub use plan::{Step, plan};
pub use worker::{InFlight, Source, Worker};

#[cfg(test)]
mod tests;

/// Where a pod is in its life on this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// Not begun.
    Admitting,
    /// Volumes and sandbox.
    Preparing,
    /// Containers.
    Running,
    /// On its way out.
    Stopping {
        /// When the grace ends and it is killed.
        until: Time,
        /// Why it stops.
        why: Why,
    },
    /// Nothing runs any more; being taken away.
    Cleaning,
    /// Nothing is left.
    Gone,
}

/// Why a pod stops. The first reason of this order that holds is the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// Its object is gone, or a tombstone stands for it: nobody waits for it, and somebody may wait for it to be gone.
    Removed,
    /// It was bound to another Node object of this name (P86).
    OtherNode,
    /// The Node object of this machine is gone, and the pod is exclusive: it is granted no more.
    NodeGone,
    /// Somebody declared it Failed or Succeeded: its phase is final while it still runs (KR-14).
    Declared,
    /// A graceful deletion has begun.
    Deleted,
}

// === impl Life ===

impl Life {
    /// One of each, for tests of the table.
    pub const KINDS: [Self; 6] = [
        Self::Admitting,
        Self::Preparing,
        Self::Running,
        Self::Stopping { until: Time::ZERO, why: Why::Deleted },
        Self::Cleaning,
        Self::Gone,
    ];

    /// True if `next` may follow: the table of the header.
    pub fn may_become(&self, next: &Self) -> bool {
        match (self, next) {
            (Self::Admitting, n) => n.rank() > self.rank(),
            (Self::Preparing, Self::Running | Self::Stopping { .. } | Self::Cleaning) => true,
            (Self::Running, Self::Stopping { .. } | Self::Cleaning) => true,
            (Self::Stopping { until, .. }, Self::Stopping { until: next, .. }) => next <= until,
            (Self::Stopping { .. }, Self::Cleaning) => true,
            (Self::Cleaning, Self::Gone) => true,
            (
                Self::Preparing | Self::Running | Self::Stopping { .. } | Self::Cleaning | Self::Gone,
                Self::Admitting
                | Self::Preparing
                | Self::Running
                | Self::Stopping { .. }
                | Self::Cleaning
                | Self::Gone,
            ) => false,
        }
    }

    /// True while the pod is meant to run.
    pub fn is_ahead(&self) -> bool {
        match self {
            Self::Admitting | Self::Preparing | Self::Running => true,
            Self::Stopping { .. } | Self::Cleaning | Self::Gone => false,
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Admitting => 0,
            Self::Preparing => 1,
            Self::Running => 2,
            Self::Stopping { .. } => 3,
            Self::Cleaning => 4,
            Self::Gone => 5,
        }
    }
}

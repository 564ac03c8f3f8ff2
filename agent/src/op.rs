//! Everything that the agent can have done: the second half of its contract.
//!
//! Responsible for: one closed list of effects. Leaves to the body: carrying each out once, with its own time limit,
//! and returning exactly one [`crate::Event::Done`] for each op that has an id. A hand adds no policy and never
//! retries: what failed is decided again.
//!
//! Invariants: at most one [`Op::Pod`] *or* [`Op::Keep`] of a pod is in flight per pod, and at most one [`Op::Call`]
//! per object; the body may assert both. A *guarded* act ([`Op::is_guarded`]) is carried out only if
//! `Guard::permits` says so at that very moment: the agent asked before, but its copy of the answer is older.

use std::sync::Arc;

use api::edit::Edit;
use api::message::{Ask, Beat, Closed, NoneHere};
use api::view::{Pod, Seat, View};
use api::{Name, NodeName, ObjectKey, Uid};

use crate::ledger::Note;

/// The number of an op within one agent process. Never used twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpId(pub u64);

/// Something to be done.
#[derive(Clone, Debug)]
pub enum Op {
    /// One act on one pod on the host. Outcome: `Host`, `HostFailed` or `Forbidden`.
    Pod {
        /// Its number.
        id: OpId,
        /// The pod.
        uid: Uid,
        /// What is done.
        act: PodAct,
    },
    /// One write to the API. Outcome: `Written`, `Conflict`, `NotFound`, `Exists` or `Unreachable`.
    Call {
        /// Its number.
        id: OpId,
        /// What is written.
        call: Box<Call>,
    },
    /// Write to the ledger and sync it to disk. Outcome: `Kept`. A disk that fails is the end of the process.
    Keep {
        /// Its number.
        id: OpId,
        /// What is kept.
        note: Note,
    },
    /// This node now has that identity: the body tells its guard (`guard::Event::Identified`).
    Identify(Uid),
    /// To every server; no outcome.
    Beat(Box<Beat>),
    /// To one member; no outcome. A seat of this very node never gets one: the agent answers itself.
    Ask {
        /// The member.
        to: Seat,
        /// The question.
        ask: Ask,
    },
    /// To one node, as an answer; no outcome. `to` may be this very node: then it goes straight to its guard.
    NoneHere {
        /// The node that asked.
        to: NodeName,
        /// The answer.
        none: NoneHere,
    },
    /// To every server (only the leader of that epoch reads it); no outcome.
    Closed(Closed),
}

/// One act on one pod on the host. Each is idempotent: what is already so succeeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodAct {
    /// Mount the volume of a claim for this pod.
    Mount {
        /// The claim, in the pod's namespace.
        claim: Name,
        /// Unique name of the volume (`kubernetes.io/csi/…`), or empty if it is one that is not attached.
        volume: String,
        /// The pod is exclusive: the guard pulls this mount when it breaks.
        guarded: Guarded,
    },
    /// Unmount the volume of a claim of this pod.
    Unmount {
        /// The claim.
        claim: Name,
    },
    /// Make the sandbox: cgroup, network and a new address. The body labels it with the boot and `guarded`.
    CreateSandbox {
        /// The pod.
        pod: Arc<Pod>,
        /// The pod is exclusive: its cgroup is one that the guard kills.
        guarded: Guarded,
    },
    /// Create and start a container; one of the same name that has ended is removed.
    StartContainer {
        /// Name of the container.
        container: String,
        /// What it runs.
        image: String,
        /// 0 for the first, then restarts (KR-10).
        attempt: u32,
        /// The pod is exclusive.
        guarded: Guarded,
    },
    /// Ask every container to end (SIGTERM). Returns when the signal is sent; the exits come as `PodObserved`.
    Terminate,
    /// Kill every container (SIGKILL). Returns when they are dead.
    Kill,
    /// Remove the sandbox and all containers, dead or alive.
    RemoveSandbox,
}

/// Whether the guard must permit an act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarded {
    /// The pod is exclusive.
    Yes,
    /// It is not.
    No,
}

/// One write to the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Create a Node or a Lease.
    Create(View),
    /// Change an object, if it still has that uid (empty: whatever uid it has).
    Edit {
        /// The object.
        key: ObjectKey,
        /// Its identity, as precondition.
        uid: Uid,
        /// The change.
        edit: Edit,
    },
    /// Remove an object for good, if it still has that uid: a pod (grace 0) or a tombstone. This *is* the node's
    /// word: containers are gone and volumes are unmounted, so no tombstone is to be written for it.
    Remove {
        /// The object.
        key: ObjectKey,
        /// Its identity, as precondition.
        uid: Uid,
    },
}

// === impl Op ===

impl Op {
    /// The number, for ops that have an outcome.
    pub fn id(&self) -> Option<OpId> {
        match self {
            Self::Pod { id, .. } | Self::Call { id, .. } | Self::Keep { id, .. } => Some(*id),
            Self::Identify(_)
            | Self::Beat(_)
            | Self::Ask { .. }
            | Self::NoneHere { .. }
            | Self::Closed(_) => None,
        }
    }

    /// True if the body must ask the guard at the moment of carrying it out.
    pub fn is_guarded(&self) -> bool {
        match self {
            Self::Pod { act, .. } => act.guarded() == Guarded::Yes,
            Self::Call { .. }
            | Self::Keep { .. }
            | Self::Identify(_)
            | Self::Beat(_)
            | Self::Ask { .. }
            | Self::NoneHere { .. }
            | Self::Closed(_) => false,
        }
    }
}

impl PodAct {
    /// Whether the guard must permit it. What stops, unmounts or removes never needs a permission.
    pub fn guarded(&self) -> Guarded {
        match self {
            Self::Mount { guarded, .. }
            | Self::CreateSandbox { guarded, .. }
            | Self::StartContainer { guarded, .. } => *guarded,
            Self::Unmount { .. } | Self::Terminate | Self::Kill | Self::RemoveSandbox => Guarded::No,
        }
    }
}

impl Call {
    /// The object that it is about.
    pub fn key(&self) -> ObjectKey {
        match self {
            Self::Create(view) => view.key(),
            Self::Edit { key, .. } | Self::Remove { key, .. } => key.clone(),
        }
    }
}

//! What can be done to an object: a closed list of domain acts.
//!
//! Responsible for: naming each act, so that a decision reads as prose and a test compares words. Leaves to
//! `registry` how an act changes the JSON tree of an object, and which stamps it adds.
//!
//! Invariants: an edit is small and says one thing; a decision that wants two things makes two edits. Edits are
//! idempotent: carried out twice, the second changes nothing (an unclear answer may be followed by a retry).

use crate::id::{BootId, Name, NodeName, Uid};
use crate::taint::{Taint, TaintEffect};
use crate::time::Time;
use crate::view::{
    AttachedVolume, Condition, Endpoint, IncidentStatus, Membership, NodeStatus, PodStatus, WorkloadStatus,
};

/// One act on one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Node: take taints away, then add others, in one write. A taint that is there already (key and effect) keeps
    /// its `timeAdded`.
    Taints {
        /// Added.
        add: Vec<Taint>,
        /// Taken away.
        remove: Vec<TaintName>,
    },
    /// Node: set these conditions, by type; others stay.
    NodeConditions(Vec<Condition>),
    /// Node: this boot is about to be granted its first grant (C15).
    RecordBoot(BootId),
    /// Node: this boot is about to reboot on purpose.
    AnnounceReboot {
        /// The boot that is about to end.
        boot: BootId,
        /// When it said so.
        at: Time,
    },
    /// Node: what the attach/detach controller says is attached.
    VolumesAttached(Vec<AttachedVolume>),
    /// Node: what its agent says; `volumesAttached` and conditions of others are left alone.
    NodeReport(Box<NodeStatus>),
    /// Node: cordoned or not.
    Unschedulable(bool),
    /// Lease: renewed.
    Renew {
        /// By whom.
        holder: Name,
        /// By which identity of that name.
        uid: Uid,
        /// When, by the holder's clock.
        at: Time,
    },
    /// Pod: bound to a node; the Node's uid is written into the pod (P86).
    Bind {
        /// The node.
        node: NodeName,
        /// Its identity.
        node_uid: Uid,
    },
    /// Pod: set these conditions, by type; others stay.
    PodConditions(Vec<Condition>),
    /// Pod: Failed, unless it has ended already; Ready becomes False in the same write (P44).
    FailPod {
        /// One word, or empty.
        reason: String,
        /// A sentence, or empty.
        message: String,
        /// Added in the same write, such as DisruptionTarget.
        condition: Option<Condition>,
    },
    /// Pod: what its agent says. A terminal phase stays; conditions that are not the agent's stay.
    PodReport(Box<PodStatus>),
    /// Workload: how many wished.
    Replicas(u32),
    /// Workload: the counts of its status.
    Counts(WorkloadStatus),
    /// VolumeAttachment: whether the driver has done it.
    Attached(bool),
    /// Any kind: one more finalizer.
    AddFinalizer(String),
    /// Any kind: one finalizer less; the last one of a deleted object lets it go.
    RemoveFinalizer(String),
    /// EndpointSlice: where the service leads.
    Endpoints(Vec<Endpoint>),
    /// NodeIncident: how far it is.
    Incident(Box<IncidentStatus>),
    /// Council: the memberships.
    Memberships(Vec<Membership>),
}

/// A taint by its identity on a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaintName {
    /// Its key.
    pub key: String,
    /// Its effect.
    pub effect: TaintEffect,
}

impl TaintName {
    /// The taint with that key and effect.
    pub fn new(key: &str, effect: TaintEffect) -> Self {
        Self { key: key.to_owned(), effect }
    }
}

impl From<&Taint> for TaintName {
    fn from(taint: &Taint) -> Self {
        Self { key: taint.key.clone(), effect: taint.effect }
    }
}

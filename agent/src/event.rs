//! Everything that can happen to the agent: the first half of its contract.
//!
//! Responsible for: one closed list, so that a newcomer (and a simulator) sees on one screen what drives the agent.
//! Leaves to the body: where each event comes from (watch, runtime, guard, network, disk), and their order: the body
//! hands them over one at a time, each with the time at which it hands it over.
//!
//! Invariants: events are facts, never wishes; a repeated event changes nothing; an event that is lost is made good by
//! the next full list ([`Event::Observed`], the body's relist of the API).

use std::sync::Arc;

use api::message::{Ask, Gate, Stamp};
use api::view::{Node, PersistentVolume, PersistentVolumeClaim, Pod, Tombstone};
use api::{Name, Namespace, NodeName, Rev, Uid};

use crate::guard;
use crate::host::PodOnHost;
use crate::op::OpId;

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// The runtime's list and the mount table, whole. Comes first after a start and again on every relist; before the
    /// first one the agent touches nothing on the host.
    Observed(Vec<PodOnHost>),
    /// One pod on the host changed by itself: a container exited, the guard killed. With nothing left, the pod's
    /// sandbox, containers and mounts are empty.
    PodObserved(PodOnHost),

    /// A pod that is bound to this node's name was added or changed.
    Pod {
        /// The pod.
        pod: Arc<Pod>,
        /// Its revision.
        rev: Rev,
    },
    /// A pod's object is gone (also: it was missing in a relist).
    PodRemoved(Uid),
    /// The first full list of pods, tombstones and claims of this process has been handed over.
    Synced,
    /// What is known of a claim that a pod of this node uses. `None`: it does not exist, or is not bound.
    Claim {
        /// Namespace of the claim.
        namespace: Namespace,
        /// Name of the claim.
        name: Name,
        /// The claim.
        claim: Option<Arc<PersistentVolumeClaim>>,
        /// The volume that it is bound to.
        volume: Option<Arc<PersistentVolume>>,
    },
    /// A tombstone exists. The agent itself sorts out whether it is about this node.
    Tombstone(Arc<Tombstone>),
    /// A tombstone is gone; its name.
    TombstoneRemoved(Name),
    /// The Node object of this node's name, as it stands.
    Node {
        /// The node.
        node: Arc<Node>,
        /// Its revision.
        rev: Rev,
    },
    /// A list or a watch says that there is no Node of this name.
    NodeAbsent,
    /// Whether any API server answers.
    Api(Reach),

    /// What the guard shares: handed over whenever it has stamped. A beat goes out in the same step if one is due.
    Guard(guard::Status),
    /// A leader answered a beat of this node, whatever it said. The guard gets the answer itself, and first.
    LeaderHeard {
        /// The beat that was answered.
        sent: Stamp,
        /// The server has just started.
        recovering: bool,
    },
    /// A node asks this one as a member of the council.
    Asked {
        /// Where the answer goes.
        from: NodeName,
        /// The question.
        ask: Ask,
    },
    /// The leader closes or opens a node at this member.
    Gate(Gate),

    /// An op has ended. Every op with an id gets exactly one of these, also when it was never carried out.
    Done {
        /// Which.
        id: OpId,
        /// How.
        outcome: Outcome,
    },
    /// This machine is about to reboot on purpose.
    RebootAnnounced,
    /// Time has passed; at the latest at [`crate::Agent::next_wake`].
    Tick,
}

/// Whether the API can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Some server answers.
    Yes,
    /// None does.
    No,
}

/// How an op ended.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// [`crate::Op::Pod`] was carried out; the pod on the host as it is after that.
    Host(PodOnHost),
    /// [`crate::Op::Pod`] did not succeed, or nobody knows; the pod on the host as it is now.
    HostFailed {
        /// The pod on the host.
        seen: PodOnHost,
        /// Why, one sentence.
        why: String,
    },
    /// The guard did not permit a guarded op at the moment at which it was to be carried out. Nothing was done.
    Forbidden,
    /// [`crate::Op::Keep`] is on disk.
    Kept,
    /// [`crate::Op::Call`] was written (or changed nothing) at this revision.
    Written(Rev),
    /// [`crate::Op::Call`] was refused because the object is another, or changed meanwhile.
    Conflict,
    /// [`crate::Op::Call`]: there is no such object.
    NotFound,
    /// [`crate::Op::Call`]: there is one already.
    Exists,
    /// [`crate::Op::Call`]: no answer; it may have happened.
    Unreachable,
}

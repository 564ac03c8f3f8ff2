//! What really happens in the virtual world: the only thing oracles look at.
//!
//! Responsible for: the closed list of facts. Leaves to the machines, the store and the servers to state them, to
//! `oracle` to judge them. No mind ever sees one.
//!
//! Invariant: a fact is what *is* (a process runs on a powered machine), never what somebody believes or wrote down.

use api::view::{EvidenceKind, View};
use api::{BootId, Epoch, Name, Namespace, NodeName, ObjectKey, Rev, Time, Uid};
use control::decision::{Count, Note};

/// A fact and its virtual time.
#[derive(Clone, Debug)]
pub struct Fact {
    /// Virtual time, the same for all.
    pub at: Time,
    /// What happened.
    pub what: Observation,
}

/// One instance of a pod on one machine in one boot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instance {
    /// The machine: its name on the wire that no cut changes.
    pub machine: NodeName,
    /// The boot it runs in.
    pub boot: BootId,
    /// The Node uid under which the agent runs.
    pub node_uid: Uid,
    /// Namespace of the pod.
    pub namespace: Namespace,
    /// Name of the pod.
    pub name: Name,
    /// Uid of the pod object.
    pub pod_uid: Uid,
    /// Must never run twice.
    pub exclusive: bool,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum Observation {
    /// The first process of an instance runs.
    Started(Instance),
    /// The last process of an instance is gone (ended, killed, or its machine lost power).
    Ended(Instance),
    /// The machine mounted a volume: it can write to it from now on.
    Mounted {
        /// The machine.
        machine: NodeName,
        /// Name of the PersistentVolume.
        volume: Name,
        /// One node at most may hold it.
        single: bool,
    },
    /// The machine cannot write to the volume any more.
    Unmounted {
        /// The machine.
        machine: NodeName,
        /// Name of the PersistentVolume.
        volume: Name,
    },
    /// The machine has power and a new boot begins.
    PoweredOn {
        /// The machine.
        machine: NodeName,
        /// Its new boot.
        boot: BootId,
    },
    /// The machine lost power: everything on it ended at once.
    PoweredOff(NodeName),
    /// Nothing on the machine moves; whether its clock counts the pause.
    Suspended {
        /// The machine.
        machine: NodeName,
        /// True for SIGSTOP, the freezer, suspend to RAM; false for a VM that its hypervisor stops.
        clock_runs: bool,
    },
    /// It goes on as if nothing had been.
    Resumed(NodeName),
    /// An object was written, as the store has it. `new` is `None` if it went.
    Written {
        /// At this revision.
        rev: Rev,
        /// Which object.
        key: ObjectKey,
        /// As it was.
        old: Option<View>,
        /// As it is.
        new: Option<View>,
        /// By whom: `server-1/stateful-set`, `node n2`, `human`, `attacher`.
        by: String,
    },
    /// A server began to lead.
    Elected {
        /// Index of the server.
        server: usize,
        /// Its term.
        epoch: Epoch,
    },
    /// A server process began or ended.
    Server {
        /// Index of the server.
        server: usize,
        /// True if it runs now.
        up: bool,
    },
    /// Evidence was recorded about a boot.
    Evidence {
        /// The node.
        uid: Uid,
        /// The boot it is about.
        boot: BootId,
        /// What kind of proof.
        kind: EvidenceKind,
    },
    /// A controller told people something: it would be an Event.
    Noted(Note),
    /// A counter of a controller grew by one: it would be a metric.
    Counted(Count),
    /// A fault was injected, a human acted, or all faults have stopped.
    Fault(String),
}

//! The ledger: what would change an answer after a restart and cannot be read from the host.
//!
//! Responsible for: the shape of what is on disk, and folding notes into it. Leaves to the body: one file per note key,
//! synced before `Kept` is said; to [`crate::pod`] and [`crate::member`] what is noted and when.
//!
//! Invariants: a container's attempt is on disk before the container starts (P50: a pod that must run once is not run
//! twice because the machine died in between); a termination deadline is on disk before the signal; a close is on
//! disk before it is acknowledged (C9). Nothing in the ledger permits an exclusive pod to start: only a grant does.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::view::{Pod, PodPhase};
use api::{BootId, CloseSeq, Epoch, Name, Rev, Time, Uid};
use serde::{Deserialize, Serialize};

use api::message::GateWish;

/// Everything that the ledger holds, as it is read at start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Ledger {
    /// Which identity the node had; `None` on a new disk.
    pub node: Option<NodeEntry>,
    /// The plan: pods of this node, by uid.
    pub pods_by_uid: BTreeMap<Uid, PodEntry>,
    /// What this member closed and opened, by node uid.
    pub gates_by_uid: BTreeMap<Uid, GateEntry>,
}

/// The node itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeEntry {
    /// Identity of the Node object.
    pub uid: Uid,
    /// Identities that this machine had before, newest last: as a member it answers for them too.
    #[serde(default)]
    pub former: Vec<Uid>,
    /// True once a full list was confirmed: only then is a pod that is missing here one that nobody wants (P53).
    pub plan_complete: bool,
}

/// One pod of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodEntry {
    /// The pod as it was last wished.
    pub pod: Arc<Pod>,
    /// At which revision.
    pub rev: Rev,
    /// What the agent found when it knew the claims.
    pub exclusive: bool,
    /// Volumes that were mounted, by claim: unique name, or empty for one that needs no attaching.
    pub volumes_by_claim: BTreeMap<Name, String>,
    /// When this node began with the pod.
    pub start_time: Time,
    /// The boot in which the newest sandbox was made.
    pub boot: BootId,
    /// What was begun, by container.
    pub runs_by_container: BTreeMap<String, Run>,
    /// Set once stopping has begun: when the grace ends.
    pub stop_by: Option<Time>,
    /// Succeeded or Failed, once that is decided. Sticky (KR-14).
    pub ended: Option<PodPhase>,
}

/// What is known of the runs of one container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Run {
    /// The newest attempt that was begun, or meant to be.
    pub attempt: u32,
    /// How the newest attempt ended, if that was seen.
    pub exit: Option<Exit>,
    /// How the attempt before ended.
    pub last_exit: Option<Exit>,
}

/// How a container ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Exit {
    /// Exit code.
    pub code: i32,
    /// Start of the process.
    pub started_at: Time,
    /// End of the process, or when it was found dead.
    pub finished_at: Time,
    /// How that is known.
    pub seen: Seen,
}

/// How an exit is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Seen {
    /// The runtime said so.
    #[default]
    Exit,
    /// It belonged to another boot: the machine went down under it (KR-12).
    Reboot,
    /// It was begun and cannot be found (KR-13).
    Lost,
}

/// The last word of a leader about one node, at this member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GateEntry {
    /// Term of the leader.
    pub epoch: Epoch,
    /// Number within the term.
    pub seq: CloseSeq,
    /// Closed or open.
    pub wish: GateWish,
}

/// One entry to be kept or dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The node's identity and whether the plan is complete.
    Node(NodeEntry),
    /// A pod of the plan.
    Pod(Uid, Box<PodEntry>),
    /// A pod is no longer part of the plan.
    ForgetPod(Uid),
    /// A close or an open.
    Gate(Uid, GateEntry),
    /// An old open that nobody will ask for again.
    ForgetGate(Uid),
}

// === impl Ledger ===

impl Ledger {
    /// Takes a note into the ledger: what a body's disk holds after `Kept`.
    pub fn fold(&mut self, note: Note) {
        match note {
            Note::Node(entry) => self.node = Some(entry),
            Note::Pod(uid, entry) => {
                self.pods_by_uid.insert(uid, *entry);
            }
            Note::ForgetPod(uid) => {
                self.pods_by_uid.remove(&uid);
            }
            Note::Gate(uid, entry) => {
                self.gates_by_uid.insert(uid, entry);
            }
            Note::ForgetGate(uid) => {
                self.gates_by_uid.remove(&uid);
            }
        }
    }
}

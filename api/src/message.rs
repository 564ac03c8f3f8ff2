//! What nodes, members and servers say to each other about life and death.
//!
//! Responsible for: the messages of the fencing protocol. They are beside the API on purpose: none of them is
//! written to the store, none of them queues behind a client. Leaves to `agent` what a node and a member do with
//! them, to `control::node_death` what a server does.
//!
//! Invariants: all are idempotent, a lost one is sent again, a late one is harmless. Everything that prolongs a life
//! carries the [`Stamp`] of the beat or question it answers, so that time is counted from *sending* (rule C7).

use serde::{Deserialize, Serialize};

use crate::id::{BootId, CloseSeq, CouncilEpoch, Epoch, NodeName, Uid};
use crate::time::{Duration, Time};
use crate::view::Membership;

/// A moment by the guard's clock of one boot of one node. Comparable only with others of the same boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Stamp(pub Time);

/// Who speaks: one boot of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Incarnation {
    /// Identity of the Node object.
    pub uid: Uid,
    /// The boot.
    pub boot: BootId,
}

/// Whether the node would stop exclusive work by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Armed {
    /// No: silence proves nothing.
    #[default]
    No,
    /// Yes: a guard stands ready and a council of three or more was acknowledged.
    Yes,
}

/// node → every server, each beat period. No guard stamp, no beat: a node whose guard is dead falls silent (C18).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Beat {
    /// Name, for people and for the way back.
    pub node: NodeName,
    /// Who speaks.
    pub who: Incarnation,
    /// The guard's stamp.
    pub sent: Stamp,
    /// The newest council the node knows; 0 if none.
    pub council: CouncilEpoch,
    /// How long this node may take from the end of a grant until nothing exclusive runs.
    pub kill_bound: Duration,
    /// Whether it would stop by itself.
    pub armed: Armed,
    /// True if nothing exclusive runs, or is mounted, on the node: what a fenced node must say before it is taken up.
    pub idle: bool,
}

/// server → node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// Exclusive work of these pods may run until `sent` + grant.
    Grant(Grant),
    /// You are fenced: kill now.
    Denied {
        /// Who was meant.
        who: Incarnation,
        /// The beat that is answered.
        sent: Stamp,
        /// Term of the leader that says so.
        epoch: Epoch,
    },
}

/// The leader's permission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    /// Who was meant.
    pub who: Incarnation,
    /// The beat that is answered.
    pub sent: Stamp,
    /// Term of the leader.
    pub epoch: Epoch,
    /// Uids of the exclusive pods that the node owns: it starts no other.
    pub pods: Vec<Uid>,
    /// The council to ask when nobody answers; `None` until there is one.
    pub council: Option<Membership>,
    /// The server has just started: members that hear only such a server may still answer.
    pub recovering: bool,
}

/// node → member: is a leader there?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ask {
    /// Who asks.
    pub who: Incarnation,
    /// The guard's stamp.
    pub sent: Stamp,
}

/// member → node: none here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NoneHere {
    /// Who answers.
    pub member: Uid,
    /// Who asked.
    pub who: Incarnation,
    /// The question that is answered.
    pub sent: Stamp,
}

/// leader → member: say "none here" to that node no more, whatever its boot; or do again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Gate {
    /// Close or open.
    pub wish: GateWish,
    /// The node that is closed or opened, all its boots.
    pub uid: Uid,
    /// Term of the leader.
    pub epoch: Epoch,
    /// Number of this wish within the term.
    pub seq: CloseSeq,
}

/// Close or open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GateWish {
    /// Say "none here" no more.
    Close,
    /// Say it again, if a newer close has not come in between.
    Open,
}

/// member → leader: it is closed, and that is on the disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Closed {
    /// Who answers.
    pub member: Uid,
    /// The node that is closed.
    pub uid: Uid,
    /// Term of the leader that asked for it.
    pub epoch: Epoch,
    /// The close that is acknowledged: an answer to an older one does not count (C12).
    pub seq: CloseSeq,
    /// True if no "none here" that this member gave can still be counted by the node.
    pub clean: bool,
}

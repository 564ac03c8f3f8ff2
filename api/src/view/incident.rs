//! Views of our own kinds (`mainstay.dev/v1`): NodeIncident, Tombstone, Council.
//!
//! They are the memory of node death. Whatever would change an answer after a restart of the control plane stands in
//! one of them: which boot is being fenced, on what evidence, who may still hold, what may still run.

use serde::{Deserialize, Serialize};

use super::{Meta, view};
use crate::id::{BootId, CouncilEpoch, Name, Namespace, NodeName, Rev, Uid};
use crate::object::{Kind, ObjectKey};
use crate::time::{Duration, Time};

view! {
    /// One death, or suspicion of death, of one boot of one node. Kept after its end.
    pub struct NodeIncident {
        /// Metadata.
        pub metadata: Meta,
        /// Whose death.
        pub spec: IncidentSpec,
        /// How far it is.
        pub status: IncidentStatus,
    }
}

view! {
    /// Whose death an incident is about. Never changes.
    pub struct IncidentSpec {
        /// Name of the node, for people.
        pub node_name: NodeName,
        /// Identity of the Node object.
        #[serde(rename = "nodeUID")]
        pub node_uid: Uid,
        /// The boot that fell silent; empty if no boot was ever recorded (nothing exclusive was ever granted).
        #[serde(rename = "bootID")]
        pub boot_id: BootId,
    }
}

view! {
    /// How far an incident is.
    pub struct IncidentStatus {
        /// Where it stands.
        pub phase: IncidentPhase,
        /// When each phase began and what was done in it, in order.
        pub steps: Vec<Step>,
        /// What proves the death; more than one may be recorded.
        pub evidence: Vec<Evidence>,
        /// What holds it back now.
        pub brakes: Vec<Brake>,
        /// How it ended, once it is Closed.
        pub end: Option<IncidentEnd>,
        /// The kill bound that the node declared in its last accepted beat.
        pub kill_bound_ms: u64,
    }
}

/// Where an incident stands. Only forward, except that Suspect, Dead and Fencing may end early in Closed.
///
/// ```text
/// Suspect ─► Dead ─► Fencing ─► Fenced ─► Recovering ─► Closed
///    └────────┴─────────┴──────── came back, rebooted ────▲
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum IncidentPhase {
    /// Silent for `suspect`: endpoints stop, nothing else.
    #[default]
    Suspect,
    /// Silent for `dead`: taints and conditions as upstream.
    Dead,
    /// From here on the node is granted nothing; it is being closed at the council.
    Fencing,
    /// Evidence is recorded: what it held may move.
    Fenced,
    /// It is back, and is being told what it lost.
    Recovering,
    /// Over.
    Closed,
}

/// How an incident ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum IncidentEnd {
    /// The same boot spoke again before it was fenced: nothing moved.
    CameBack,
    /// Another boot of the same node spoke before it was fenced: nothing moved, pods are rebuilt in place.
    Rebooted,
    /// It was fenced, came back, let go of what it had lost, and was taken up again.
    Recovered,
    /// The Node object is gone and nothing that it held is left.
    Removed,
}

/// What an incident has been through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum StepName {
    /// Suspicion began.
    Suspected,
    /// It was declared dead.
    DeclaredDead,
    /// Grants stopped and closing began.
    FencingBegun,
    /// Evidence was recorded.
    Fenced,
    /// Everything it held has been released.
    Released,
    /// It spoke again after it had been fenced.
    CameBack,
    /// It said that nothing exclusive of the old time runs any more.
    ConfirmedStopped,
    /// The incident ended.
    Closed,
}

view! {
    /// One step of an incident.
    pub struct Step {
        /// Which.
        pub name: Option<StepName>,
        /// When it was taken.
        pub at: Time,
        /// How long after the step before, in ms.
        pub took_ms: u64,
    }
}

/// A proof that the old incarnation cannot act any more (DESIGN: "Death of a node").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceKind {
    /// The guard has stopped exclusive work: closed at the council, last accepted beat + grant + kill bound passed.
    LeaseExpiry,
    /// A fence agent says that the machine is off.
    PowerOff,
    /// Another boot of the same node uid speaks.
    NewBoot,
    /// A human set the out-of-service taint on a node that is neither Ready nor beating.
    Operator,
    /// A human removed the Node object and no beat of that uid came for `dead`.
    NodeDeleted,
    /// The storage refuses the old node.
    Storage,
}

/// One piece of evidence, as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// What kind of proof.
    pub kind: EvidenceKind,
    /// When the leader recorded it.
    pub at: Time,
    /// On whose word, or by which numbers.
    pub detail: String,
}

/// Why an incident is not acted on although its time has come. Visible on the incident and in `why`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Brake {
    /// More than the allowed number of incidents are open.
    TooManyIncidents,
    /// More than half of the beats ended within one second: this server may be the odd one out.
    Storm,
    /// Less than a majority of the council can be heard.
    CouncilUnreachable,
    /// The node announced a reboot and its patience has not run out.
    RebootAnnounced,
    /// The node flaps: it was back less than the flap patience ago, several times.
    Flapping,
    /// The node, or its council, is not armed: silence proves nothing.
    NotArmed,
    /// The control plane has just started and gives everybody time to be heard.
    JustStarted,
}

view! {
    /// An exclusive pod whose object went without its node's word: it may still run. Its name is the pod's uid.
    pub struct Tombstone {
        /// Metadata.
        pub metadata: Meta,
        /// What may still run, and where.
        pub spec: TombstoneSpec,
    }
}

view! {
    /// What a tombstone remembers.
    pub struct TombstoneSpec {
        /// Namespace of the pod.
        pub pod_namespace: Namespace,
        /// Name of the pod: the identity that must not be taken again yet.
        pub pod_name: Name,
        /// Uid of the pod.
        #[serde(rename = "podUID")]
        pub pod_uid: Uid,
        /// The node it was bound to, for people.
        pub node_name: NodeName,
        /// The node it was bound to.
        #[serde(rename = "nodeUID")]
        pub node_uid: Uid,
        /// The boot in which it may still run.
        #[serde(rename = "bootID")]
        pub boot_id: BootId,
        /// Claims in the pod's namespace that it may still write to.
        pub claims: Vec<Name>,
        /// How the object went: `ForceDeleted`, `FinalizerRemoved`, `NodeDeleted`.
        pub reason: String,
    }
}

view! {
    /// The members that a node may ask when no server answers, and all earlier memberships that some node may still
    /// be using. One object, named `council`.
    pub struct Council {
        /// Metadata.
        pub metadata: Meta,
        /// The memberships.
        pub spec: CouncilSpec,
    }
}

view! {
    /// Memberships in order of their epoch; the last is the one that is offered, the others are not retired yet.
    pub struct CouncilSpec {
        /// Ascending by epoch.
        pub memberships: Vec<Membership>,
    }
}

view! {
    /// One membership.
    pub struct Membership {
        /// Which.
        pub epoch: CouncilEpoch,
        /// Who sits in it; at most five.
        pub seats: Vec<Seat>,
        /// The revision of the store at which it was first seen stored; informational.
        pub since: Rev,
    }
}

view! {
    /// One member of the council.
    #[derive(PartialOrd, Ord)]
    pub struct Seat {
        /// Where to find it.
        pub node_name: NodeName,
        /// Who it is.
        #[serde(rename = "nodeUID")]
        pub node_uid: Uid,
    }
}

impl IncidentPhase {
    /// True while the node may not be granted anything.
    pub fn forbids_grants(self) -> bool {
        match self {
            Self::Fencing | Self::Fenced | Self::Recovering => true,
            Self::Suspect | Self::Dead | Self::Closed => false,
        }
    }

    /// True once evidence is recorded.
    pub fn has_evidence(self) -> bool {
        match self {
            Self::Fenced | Self::Recovering => true,
            Self::Suspect | Self::Dead | Self::Fencing | Self::Closed => false,
        }
    }
}

impl NodeIncident {
    /// Where it lies.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::cluster(Kind::NodeIncident, self.metadata.name.clone())
    }

    /// True until it is Closed.
    pub fn is_open(&self) -> bool {
        self.status.phase != IncidentPhase::Closed
    }

    /// True if evidence was recorded at any time: it stays true after the end.
    pub fn was_fenced(&self) -> bool {
        !self.status.evidence.is_empty()
    }

    /// True while its evidence speaks about the present: it is open and fenced, or it ended with the Node object gone,
    /// and then for ever, because that uid is never granted anything again. An incident that ended with the node taken
    /// up again proves nothing any more.
    pub fn stands(&self) -> bool {
        self.was_fenced()
            && (self.status.phase.has_evidence() || self.status.end == Some(IncidentEnd::Removed))
    }

    /// When that step was taken, if it was.
    pub fn step_at(&self, name: StepName) -> Option<Time> {
        self.status.steps.iter().find(|s| s.name == Some(name)).map(|s| s.at)
    }

    /// The kill bound of the node that it is about.
    pub fn kill_bound(&self) -> Duration {
        Duration::from_ms(self.status.kill_bound_ms)
    }
}

impl IncidentStatus {
    /// Adds a step taken at `now`; its duration counts from the step before.
    pub fn take_step(&mut self, name: StepName, now: Time) {
        let took_ms = self.steps.last().map_or(0, |s| now.since(s.at).ms());
        self.steps.push(Step { name: Some(name), at: now, took_ms });
    }
}

impl Council {
    /// The membership that is offered to nodes.
    pub fn newest(&self) -> Option<&Membership> {
        self.spec.memberships.last()
    }
}

impl Membership {
    /// How many members make a majority.
    pub fn majority(&self) -> usize {
        self.seats.len() / 2 + 1
    }

    /// True if there are enough members for silence to prove anything: with one or two no majority outlives a death.
    pub fn arms(&self) -> bool {
        self.seats.len() >= 3
    }

    /// True if that node sits in it.
    pub fn has(&self, uid: &Uid) -> bool {
        self.seats.iter().any(|s| s.node_uid == *uid)
    }
}

//! Scenario files: a story of faults written by hand, and what must be seen.
//!
//! Responsible for: what a scenario consists of. [`parse`] reads it from text, [`run`] carries it out, [`shipped`] has
//! the files that come with the simulator. The language is described in docs/testing.md, "Scenario files".
//!
//! Invariant: every word of a file has an effect or is an error with its line and column. Nothing is ignored.

pub mod parse;
pub mod run;
pub mod shipped;

use std::collections::BTreeSet;

use api::flaw::Flaw;
use api::view::{ConditionStatus, EvidenceKind, IncidentPhase, PodPhase};
use api::{Duration, Name, Namespace, NodeName};

use crate::config::Config;
use crate::fault::Fault;
use crate::oracle::Promise;

/// A story and what must be seen.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What the first comment says.
    pub title: String,
    /// The cluster.
    pub config: Config,
    /// The seed, unless the caller gives another.
    pub seed: u64,
    /// What must hold beyond what always does.
    pub promises: BTreeSet<Promise>,
    /// Flaws with which this scenario must fail.
    pub mutations: Vec<Mutation>,
    /// What is done, in order of time.
    pub deeds: Vec<Deed>,
    /// What must be seen.
    pub expectations: Vec<Expectation>,
    /// When it ends.
    pub end: Duration,
}

/// A flaw with which a scenario must fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mutation {
    /// Which.
    pub flaw: Flaw,
    /// In one of so many seeds, from the scenario's own on: some races need luck.
    pub seeds: u64,
}

/// One line `at TIME …`.
#[derive(Clone, Debug)]
pub struct Deed {
    /// Line of the file.
    pub line: usize,
    /// When.
    pub at: Duration,
    /// What.
    pub what: What,
}

/// What is done.
#[derive(Clone, Debug)]
pub enum What {
    /// These faults at once.
    Faults(Vec<Fault>),
    /// From now on this name means that node.
    Call(NodeName, Who),
    /// All faults stop.
    Calm,
}

/// Which node is given a name.
#[derive(Clone, Debug)]
pub enum Who {
    /// The one on which the pod runs now.
    HostOf(PodName),
    /// The first that is none of these.
    Not(Vec<NodeName>),
}

/// The index that stands for the server that leads when the time comes.
pub const LEADER: usize = usize::MAX;
/// The index that stands for all servers that do not.
pub const FOLLOWERS: usize = usize::MAX - 1;

/// One line that says what must be seen.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// Line of the file.
    pub line: usize,
    /// When it must hold.
    pub when: When,
    /// What must hold.
    pub state: State,
    /// The line as it was written.
    pub text: String,
}

/// When a state must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At that moment: it came true before and stayed.
    By(Duration),
    /// At no moment before.
    NotBefore(Duration),
    /// At every moment from the first to the second.
    Always(Duration, Duration),
    /// At no moment from the first to the second.
    Never(Duration, Duration),
    /// At some moment from the first to the second.
    Seen(Duration, Duration),
}

/// How two numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// `=`
    Equal,
    /// `<=`
    AtMost,
    /// `>=`
    AtLeast,
}

/// A name in a namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodName {
    /// The namespace.
    pub namespace: Namespace,
    /// The name.
    pub name: Name,
}

/// Something that holds or does not at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// About a Node.
    Node(NodeName, NodeState),
    /// About a pod, by objects or by truth.
    Pod(PodName, PodState),
    /// `two running P`: two instances of that name move at the same time.
    Two(PodName),
    /// `pods of web = 3`: active pods of that owner.
    PodsOf(Name, Compare, u64),
    /// `service web leads to pod web-x`, `service web leads to 3`.
    Leads(Name, Target),
    /// `volume pv-db-0 attached to n2`, `… not attached to n2`, `… mounted on n2`.
    Volume(Name, VolumeState),
    /// `tombstone of pod db-0`, `no tombstone of pod db-0`.
    Tombstone(PodName, bool),
    /// `incidents open <= 1`.
    OpenIncidents(Compare, u64),
    /// `count METRIC label=value = 1`.
    Count {
        /// Name of the metric.
        metric: String,
        /// Labels that must match; others may be anything.
        labels: Vec<(String, String)>,
        /// How it is compared.
        compare: Compare,
        /// With what.
        number: u64,
    },
    /// `note pod db-0 REASON "text"`: such an event was written.
    Note {
        /// What it is about: `pod/default/db-0`, `node/n1`.
        about: String,
        /// Its reason.
        reason: String,
        /// Part of its text, or empty.
        text: String,
    },
    /// `waits REASON "text"`: the leader's reasons contain it.
    Waits(String, String),
    /// `leader server-1`.
    Leader(usize),
    /// `council has n4`, `council lacks n1`.
    Council(NodeName, bool),
    /// Nothing is missing (L1).
    Whole,
}

/// Where a service leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// To so many ready endpoints.
    Number(Compare, u64),
    /// To an endpoint on that node.
    Node(NodeName, bool),
}

/// What holds of a Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// There is such an object, or not.
    Exists(bool),
    /// It has the uid that it had at the first deed, or another.
    SameUid(bool),
    /// A condition: type, status, reason if given.
    Condition(String, ConditionStatus, Option<String>),
    /// It has that taint, or not; any effect if none is given.
    Taint {
        /// Key.
        key: String,
        /// `NoSchedule`, `NoExecute`; any if `None`.
        effect: Option<api::taint::TaintEffect>,
        /// Whether it is there.
        there: bool,
    },
    /// Its newest incident stands there.
    Incident(IncidentPhase),
    /// No incident of it is open.
    NoIncident,
    /// Evidence of that kind was recorded about it; any kind if `None`.
    Fenced(Option<EvidenceKind>),
    /// The machine has power.
    Powered(bool),
}

/// What holds of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodState {
    /// There is such an object, or not.
    Exists(bool),
    /// Its deletion has begun, or not.
    Terminating(bool),
    /// Its phase.
    Phase(PodPhase),
    /// It is Ready, or not.
    Ready(bool),
    /// It is bound to that node.
    On(NodeName),
    /// It is bound to some node, or to none.
    Bound(bool),
    /// An instance really moves, on that node if one is given, or nowhere.
    Running(Option<NodeName>, bool),
    /// It has the uid that it had at the first deed, or another.
    SameUid(bool),
    /// A condition: type, status, reason if given.
    Condition(String, ConditionStatus, Option<String>),
}

/// What holds of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeState {
    /// An attachment to that node says that it is attached; `false`: there is no attachment to it.
    Attached(NodeName, bool),
    /// It is mounted there, or not.
    Mounted(NodeName, bool),
}

// === impl Compare ===

impl Compare {
    /// True if `left` compares so with `right`.
    pub fn holds(self, left: u64, right: u64) -> bool {
        match self {
            Self::Equal => left == right,
            Self::AtMost => left <= right,
            Self::AtLeast => left >= right,
        }
    }
}

//! The agent's part about its own Node object and Lease.
//!
//! Responsible for: registering the node, and registering it anew when its object is gone; its status (HB-10, HB-11);
//! renewing the Lease (HB-01 to HB-06). Leaves to [`crate::heartbeat`] beats, which prove more than a Lease and sooner;
//! to `registry` that a report leaves `volumesAttached` and the conditions of others alone.
//!
//! ```text
//!   no Node ── create ──► Node with our uid ── absent ──► gone: exclusive pods stop, beats go on
//!      ▲                     │  another uid                     │
//!      │                     └─────────────► gone ◄─────────────┤
//!      └──────────── nothing exclusive runs or is mounted ◄─────┘   then: a new uid, a new guard, a new start
//! ```
//!
//! Invariants: a new identity is taken only when nothing exclusive of the old one is left, because grants and fencing
//! know nodes by uid; a status that did not change is sent every five minutes only; one call for the Node at a time.
//!
//! Not here yet: measuring pressure (the conditions always say that there is none, because those who read a Node expect
//! all four), addresses, images (their measuring is the body's), graceful shutdown of pods before a reboot (an announced
//! reboot only says so and begins nothing new).

use std::collections::BTreeMap;
use std::sync::Arc;

use api::edit::Edit;
use api::view::{
    Condition, ConditionStatus, Lease, LeaseSpec, Meta, Node, NodeInfo, NodeStatus, OwnerReference, View,
};
use api::{Duration, Kind, Name, Namespace, ObjectKey, Rev, Time, annotation};

use super::{Agent, CALL_RETRY, Target};
use crate::event::Outcome;
use crate::op::{Call, Op};

/// HB-04: first sleep after a failed renewal, doubling.
const LEASE_BACKOFF_FIRST: Duration = Duration::from_ms(200);
/// HB-04: longest sleep.
const LEASE_BACKOFF_MAX: Duration = Duration::from_secs(7);
/// Former identities that are remembered. Each belongs to a membership that may not be retired yet, and of those there are
/// no more than eight.
const FORMER_MAX: usize = 8;
/// HB-05: tries per renewal; then the next renewal's time is waited for.
const LEASE_TRIES: u32 = 5;
/// The conditions before Ready, in upstream's order (HB-13), as they are while nothing is short: type, reason, message.
const PRESSURES: [(&str, &str, &str); 3] = [
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
];

/// What a call on the Node was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Errand {
    /// Registration.
    Create,
    /// Status.
    Report,
    /// Announcement of a reboot.
    Announce,
}

/// What is under way about the Node and the Lease.
#[derive(Clone, Debug, Default)]
pub(super) struct Desk {
    /// A list or watch said that there is no Node of this name.
    absent: bool,
    /// Revision of the Node as seen.
    rev: Rev,
    /// Revision of the newest report: an older Node does not show it yet.
    barrier: Rev,
    /// A call on the Node is in flight.
    busy: bool,
    /// No call on the Node before this.
    call_at: Time,
    /// When the status is compiled again.
    compile_at: Time,
    /// When a report was last written.
    reported_at: Time,
    /// What the newest report said is in use: what a Node that is older than it will say.
    in_use: Vec<String>,
    /// What is in use now; counted again only after pods were looked at.
    in_use_now: Vec<String>,
    /// Pods were looked at since `in_use_now` was counted.
    looked: bool,
    /// The reboot that is to be announced, until it is.
    announce: Option<Time>,

    lease_busy: bool,
    lease_at: Time,
    lease_tries: u32,
    lease_delay: Duration,
    /// The Lease does not exist: create it instead.
    lease_absent: bool,
}

impl Desk {
    pub(super) fn announce(&mut self, now: Time) {
        self.announce = Some(now);
        self.call_at = Time::ZERO;
        self.compile_at = Time::ZERO;
    }

    /// Pods were looked at: what is in use may have changed.
    pub(super) fn looked(&mut self) {
        self.looked = true;
    }

    pub(super) fn retry_now(&mut self) {
        self.call_at = Time::ZERO;
        self.compile_at = Time::ZERO;
        if self.lease_tries > 0 {
            self.lease_at = Time::ZERO;
        }
    }
}

impl Agent {
    pub(super) fn node_seen(&mut self, now: Time, node: Arc<Node>, rev: Rev, ops: &mut Vec<Op>) {
        let uid = node.metadata.uid.clone();
        self.node.absent = false;
        if rev < self.node.rev && uid == self.ground.uid {
            return;
        }
        self.node.rev = rev;
        let volumes = |n: &Node| (n.status.volumes_in_use.clone(), n.status.volumes_attached.clone());
        let moved = self.ground.node.as_ref().map(|n| volumes(n)) != Some(volumes(&node));
        self.ground.node = Some(node);
        let current = rev >= self.node.barrier;
        if moved || current != self.ground.node_is_current {
            self.ground.node_is_current = current;
            self.touch_all();
        }
        // Somebody else wrote conditions, or it is the first sight: look at once, not at the next tenth second.
        if rev >= self.node.barrier {
            self.node.compile_at = Time::ZERO;
        }
        if self.ground.uid != uid {
            self.ground.node_gone = !self.ground.uid.is_empty();
            self.take_identity(now, ops);
            self.touch_all();
        }
    }

    pub(super) fn node_absent(&mut self, _now: Time) {
        self.node.absent = true;
        self.ground.node = None;
        self.ground.node_is_current = false;
        self.ground.announced.clear();
        self.ground.node_gone = !self.ground.uid.is_empty();
        self.touch_all();
    }

    /// Takes the identity of the Node object that stands there, if that is allowed by now.
    fn take_identity(&mut self, _now: Time, ops: &mut Vec<Op>) {
        let Some(uid) = self.ground.node.as_ref().map(|n| n.metadata.uid.clone()) else { return };
        if uid == self.ground.uid || !self.may_change_identity() {
            return;
        }
        let before = std::mem::replace(&mut self.ground.uid, uid.clone());
        if !before.is_empty() {
            self.former.push(before);
            let surplus = self.former.len().saturating_sub(FORMER_MAX);
            self.former.drain(..surplus);
        }
        self.ground.announced.clear();
        self.ground.node_gone = false;
        self.ground.guard = None;
        ops.push(Op::Identify(uid));
        self.keep_node(ops);
        self.count_doomed();
        self.touch_all();
    }

    /// Registers, reports, announces: whatever is due for the Node.
    pub(super) fn settle_node(&mut self, now: Time, ops: &mut Vec<Op>) {
        if self.ground.node_gone && self.ground.node.is_some() {
            self.take_identity(now, ops);
            // Pods see the new identity in this step: they must not be begun under the old one.
            while let Some(uid) = self.touched.pop_first() {
                self.look_at(&uid, now, ops);
            }
        }
        if self.node.busy || now < self.node.call_at {
            return;
        }
        if self.node.absent {
            // Registering anew is taking another identity.
            if self.may_change_identity() {
                let node = View::Node(Arc::new(self.new_node(now)));
                self.errand(Errand::Create, Call::Create(node), ops);
            }
            return;
        }
        let Some(node) = self.ground.node.clone() else { return };
        if self.ground.node_gone || node.metadata.uid != self.ground.uid {
            return;
        }
        let key = ObjectKey::node(&self.settings.node);
        let uid = self.ground.uid.clone();
        if let Some(at) = self.node.announce {
            let edit = Edit::AnnounceReboot { boot: self.settings.boot.clone(), at };
            return self.errand(Errand::Announce, Call::Edit { key, uid, edit }, ops);
        }
        if let Some(status) = self.due_report(&node, now) {
            self.node.in_use.clone_from(&status.volumes_in_use);
            // What this report takes back counts as taken back from now on, whenever it arrives.
            self.ground.announced.retain(|name| status.volumes_in_use.contains(name));
            let edit = Edit::NodeReport(Box::new(status));
            self.errand(Errand::Report, Call::Edit { key, uid, edit }, ops);
        }
    }

    pub(super) fn node_done(&mut self, now: Time, errand: Errand, outcome: &Outcome) {
        self.node.busy = false;
        match outcome {
            Outcome::Written(rev) => match errand {
                // The watch brings the new object with its uid.
                Errand::Create => self.node.call_at = now + CALL_RETRY,
                Errand::Announce => self.node.announce = None,
                Errand::Report => {
                    self.node.barrier = *rev;
                    self.node.reported_at = now;
                    self.ground.announced = self.node.in_use.iter().cloned().collect();
                    self.ground.node_is_current = self.node.rev >= *rev;
                    self.touch_all();
                }
            },
            Outcome::Conflict | Outcome::NotFound | Outcome::Exists | Outcome::Unreachable => {
                self.node.call_at = now + CALL_RETRY;
                self.node.compile_at = Time::ZERO;
            }
            Outcome::Host(_) | Outcome::HostFailed { .. } | Outcome::Forbidden | Outcome::Kept => {
                debug_assert!(false, "an outcome of an act for a call");
            }
        }
    }

    /// The status to be sent, if one is due (HB-10, HB-11).
    fn due_report(&mut self, node: &Node, now: Time) -> Option<NodeStatus> {
        if std::mem::take(&mut self.node.looked) {
            self.node.in_use_now = self.volumes_in_use();
        }
        let in_use = &self.node.in_use_now;
        let stale = self.node.rev < self.node.barrier;
        // AD-38: a mount waits for this, and a detach waits for its removal. Compared with what *this* process wrote: the
        // Node as seen may still show the words of an earlier boot.
        let urgent = !self.ground.announced.iter().eq(in_use);
        if !urgent && now < self.node.compile_at {
            return None;
        }
        self.node.compile_at = now + self.settings.timing.status_frequency;
        let status = self.node_status(Some(node), in_use.clone(), now);
        let old = now.since(self.node.reported_at) >= self.settings.timing.status_report;
        let changed = !stale && differs(&status, &node.status);
        (urgent || old || changed).then_some(status)
    }

    fn node_status(&self, node: Option<&Node>, volumes_in_use: Vec<String>, now: Time) -> NodeStatus {
        let (holds, reason, message) = if self.ground.shutting_down {
            (ConditionStatus::False, "KubeletNotReady", "node is shutting down")
        } else if !self.observed {
            let why = "container runtime status check may not have completed yet";
            (ConditionStatus::False, "KubeletNotReady", why)
        } else {
            (ConditionStatus::True, "KubeletReady", "kubelet is posting ready status")
        };
        let condition = |kind: &str, status: ConditionStatus, reason: &str, message: &str| {
            let old = node.and_then(|n| n.condition(kind)).filter(|c| c.status == status);
            let since = old.map_or(now, |c| c.last_transition_time);
            let mut made = Condition::new(kind, status, reason, message, since);
            made.last_heartbeat_time = now;
            made
        };
        let pressures = PRESSURES
            .iter()
            .map(|(kind, reason, message)| condition(kind, ConditionStatus::False, reason, message));
        // HB-13: Ready comes last.
        let conditions = pressures.chain([condition("Ready", holds, reason, message)]).collect();
        NodeStatus {
            allocatable: self.settings.allocatable.clone(),
            capacity: self.settings.capacity.clone(),
            conditions,
            node_info: NodeInfo {
                boot_id: self.settings.boot.clone(),
                machine_id: self.settings.machine.clone(),
            },
            volumes_attached: Vec::new(),
            volumes_in_use,
        }
    }

    fn new_node(&self, now: Time) -> Node {
        let mut labels = self.settings.labels.clone();
        let name = self.settings.node.as_str().to_owned();
        labels.entry("kubernetes.io/hostname".to_owned()).or_insert(name);
        let managed = (annotation::CONTROLLER_MANAGED_ATTACH.to_owned(), "true".to_owned());
        Node {
            metadata: Meta {
                name: Name::from(&self.settings.node),
                labels,
                annotations: BTreeMap::from([managed]),
                ..Meta::default()
            },
            status: self.node_status(None, Vec::new(), now),
            ..Node::default()
        }
    }

    fn errand(&mut self, errand: Errand, call: Call, ops: &mut Vec<Op>) {
        self.node.busy = true;
        self.call(call, Target::Node(errand), ops);
    }

    // --- Lease ---

    pub(super) fn settle_lease(&mut self, now: Time, ops: &mut Vec<Op>) {
        let known = !self.ground.uid.is_empty() && !self.ground.node_gone && self.ground.node.is_some();
        if !known || self.node.lease_busy || now < self.node.lease_at {
            return;
        }
        let namespace = Namespace::from(annotation::NODE_LEASES);
        let name = Name::from(&self.settings.node);
        let call = if self.node.lease_absent {
            Call::Create(View::Lease(Arc::new(self.new_lease(namespace, name, now))))
        } else {
            // HB-04: an update without a read before it.
            let edit = Edit::Renew { holder: name.clone(), uid: self.ground.uid.clone(), at: now };
            let key = ObjectKey::namespaced(Kind::Lease, &namespace, name);
            Call::Edit { key, uid: api::Uid::default(), edit }
        };
        self.node.lease_busy = true;
        self.call(call, Target::Lease, ops);
    }

    pub(super) fn lease_done(&mut self, now: Time, outcome: &Outcome) {
        let desk = &mut self.node;
        desk.lease_busy = false;
        match outcome {
            Outcome::Written(_) => {
                desk.lease_absent = false;
                desk.lease_tries = 0;
                desk.lease_at = now + self.settings.timing.lease_renew;
            }
            Outcome::NotFound | Outcome::Exists | Outcome::Conflict => {
                desk.lease_absent = matches!(outcome, Outcome::NotFound);
                desk.fail_lease(now, Duration::ZERO, self.settings.timing.lease_renew);
            }
            Outcome::Unreachable => {
                let delay = if desk.lease_tries == 0 { LEASE_BACKOFF_FIRST } else { desk.lease_delay };
                desk.lease_delay = delay.times(2).min(LEASE_BACKOFF_MAX);
                desk.fail_lease(now, delay, self.settings.timing.lease_renew);
            }
            Outcome::Host(_) | Outcome::HostFailed { .. } | Outcome::Forbidden | Outcome::Kept => {
                debug_assert!(false, "an outcome of an act for a call");
            }
        }
    }

    fn new_lease(&self, namespace: Namespace, name: Name, now: Time) -> Lease {
        // HB-03: deleting the Node takes the Lease along.
        let owner = OwnerReference {
            api_version: Kind::Node.api_version(),
            kind: Kind::Node.noun(),
            name: name.clone(),
            uid: self.ground.uid.clone(),
            ..OwnerReference::default()
        };
        Lease {
            metadata: Meta {
                name: name.clone(),
                namespace,
                owner_references: vec![owner],
                ..Meta::default()
            },
            spec: LeaseSpec {
                holder_identity: name,
                lease_duration_seconds: self.settings.timing.lease_duration.secs(),
                renew_time: now,
                holder_uid: self.ground.uid.clone(),
            },
        }
    }
}

impl Desk {
    fn fail_lease(&mut self, now: Time, delay: Duration, renew: Duration) {
        self.lease_tries += 1;
        let give_up = self.lease_tries >= LEASE_TRIES;
        self.lease_tries = if give_up { 0 } else { self.lease_tries };
        self.lease_at = now + if give_up { renew } else { delay };
    }
}

/// HB-11: everything but the time of the heartbeat. The order of conditions says nothing, and conditions of others are
/// not ours to compare.
fn differs(new: &NodeStatus, old: &NodeStatus) -> bool {
    let says = |status: &NodeStatus, kind: &str| {
        let found = status.conditions.iter().find(|c| c.kind == kind);
        found.map(|c| (c.status, c.reason.clone(), c.message.clone()))
    };
    new.conditions.iter().any(|c| says(new, &c.kind) != says(old, &c.kind))
        || new.allocatable != old.allocatable
        || new.capacity != old.capacity
        || new.node_info != old.node_info
        || new.volumes_in_use != old.volumes_in_use
}

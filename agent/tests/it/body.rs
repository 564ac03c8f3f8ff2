//! A body for tests: a host, a disk, a guard and a little API, all at once and without failures of their own.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use agent::guard::{self, Guard, Kill};
use agent::host::{ContainerOnHost, ContainerState, Mounted, PodOnHost, Sandbox};
use agent::{Agent, Call, Event, Ledger, Note, Op, OpId, Outcome, PodAct, Reach, Settings};
use api::edit::Edit;
use api::message::{Answer, Beat, Grant, Incarnation, Stamp};
use api::timing::Timing;
use api::view::{
    AccessMode, AttachedVolume, ClaimSpec, Container, CsiSource, Membership, Meta, Node, PersistentVolume,
    PersistentVolumeClaim, PersistentVolumeClaimSource, PersistentVolumeSpec, Pod, PodSpec, RestartPolicy,
    Seat, Tombstone, TombstoneSpec, View, Volume,
};
use api::{BootId, CouncilEpoch, Duration, Epoch, Kind, Rev, Time, Uid, annotation};

/// One machine.
pub(crate) struct Body {
    pub(crate) agent: Agent,
    pub(crate) guard: Guard,
    pub(crate) guard_alive: bool,
    pub(crate) now: Time,
    pub(crate) boot: BootId,
    pub(crate) flaw: Option<api::flaw::Flaw>,
    /// The disk.
    pub(crate) ledger: Ledger,
    /// The runtime and the mount table.
    pub(crate) host: BTreeMap<Uid, PodOnHost>,
    /// Pods whose containers ignore SIGTERM.
    pub(crate) stubborn: BTreeSet<Uid>,
    /// The API.
    pub(crate) api_up: bool,
    pub(crate) rev: u64,
    pub(crate) pods: BTreeMap<Uid, Arc<Pod>>,
    pub(crate) node: Option<Arc<Node>>,
    pub(crate) attach: bool,
    /// Everything that was done, in words.
    pub(crate) log: Vec<String>,
    pub(crate) calls: Vec<Call>,
    pub(crate) beats: Vec<Beat>,
    pub(crate) sent: Vec<Op>,
    queue: VecDeque<Event>,
    /// While true, ops with an outcome wait in `held`.
    pub(crate) lag: bool,
    held: VecDeque<Op>,
    in_flight: BTreeMap<Uid, OpId>,
    addresses: u32,
    nodes: u32,
}

pub(crate) fn pod(name: &str) -> Pod {
    Pod {
        metadata: Meta {
            name: name.into(),
            namespace: "default".into(),
            uid: Uid::from(format!("{name}-uid")),
            ..Meta::default()
        },
        spec: PodSpec {
            node_name: "n1".into(),
            containers: vec![Container {
                name: "app".to_owned(),
                image: "img".to_owned(),
                ..Container::default()
            }],
            ..PodSpec::default()
        },
        ..Pod::default()
    }
}

pub(crate) fn exclusive(name: &str) -> Pod {
    let mut pod = pod(name);
    pod.metadata.annotations.insert(annotation::EXCLUSIVE.to_owned(), "true".to_owned());
    pod
}

pub(crate) fn with_policy(mut pod: Pod, policy: RestartPolicy) -> Pod {
    pod.spec.restart_policy = policy;
    pod
}

pub(crate) fn with_claim(mut pod: Pod, claim: &str) -> Pod {
    let source = PersistentVolumeClaimSource { claim_name: claim.into(), read_only: false };
    pod.spec.volumes.push(Volume { name: claim.to_owned(), persistent_volume_claim: Some(source) });
    pod
}

pub(crate) fn uid(name: &str) -> Uid {
    Uid::from(format!("{name}-uid"))
}

impl Body {
    /// A machine that has booted, registered, and got its first, empty list.
    pub(crate) fn booted() -> Self {
        let mut body = Self::unregistered(None);
        body.send(Event::Observed(Vec::new()));
        body.send(Event::Api(Reach::Yes));
        body.send(Event::NodeAbsent);
        body.send(Event::Synced);
        body.advance(1000);
        body
    }

    pub(crate) fn unregistered(flaw: Option<api::flaw::Flaw>) -> Self {
        let now = Time::from_ms(1_000_000);
        let boot = BootId::from("b1");
        let agent = Agent::start(now, settings(&boot, flaw), Ledger::default(), &mut Vec::new());
        Self {
            agent,
            guard: new_guard(now, Uid::default(), &boot, flaw),
            guard_alive: true,
            now,
            boot,
            flaw,
            ledger: Ledger::default(),
            host: BTreeMap::new(),
            stubborn: BTreeSet::new(),
            api_up: true,
            rev: 1,
            pods: BTreeMap::new(),
            node: None,
            attach: true,
            log: Vec::new(),
            calls: Vec::new(),
            beats: Vec::new(),
            sent: Vec::new(),
            queue: VecDeque::new(),
            lag: false,
            held: VecDeque::new(),
            in_flight: BTreeMap::new(),
            addresses: 0,
            nodes: 0,
        }
    }

    /// Hands an event over, and everything that follows from it at once.
    pub(crate) fn send(&mut self, event: Event) {
        self.queue.push_back(event);
        let mut rounds = 0;
        while let Some(event) = self.queue.pop_front() {
            rounds += 1;
            assert!(rounds < 2000, "the agent and its body talk without end: {:?}", self.log.last());
            let mut ops = Vec::new();
            self.agent.step(self.now, event, &mut ops);
            for op in ops {
                if self.lag && op.id().is_some() {
                    self.hold(op);
                } else {
                    self.carry_out(op);
                }
            }
        }
    }

    /// An op that takes its time.
    fn hold(&mut self, op: Op) {
        let pod_of = |op: &Op| match op {
            Op::Pod { uid, .. } => Some(uid.clone()),
            Op::Keep { note: Note::Pod(uid, _) | Note::ForgetPod(uid), .. } => Some(uid.clone()),
            Op::Keep { note: Note::Node(_) | Note::Gate(..) | Note::ForgetGate(_), .. }
            | Op::Call { .. }
            | Op::Identify(_)
            | Op::Beat(_)
            | Op::Ask { .. }
            | Op::NoneHere { .. }
            | Op::Closed(_) => None,
        };
        let pod = pod_of(&op);
        let twice = pod.is_some() && self.held.iter().any(|h| pod_of(h) == pod);
        assert!(!twice, "two ops in flight for one pod: {op:?}");
        self.held.push_back(op);
    }

    /// Some of the ops that were held are carried out, in their order.
    pub(crate) fn release(&mut self, count: usize) {
        for _ in 0..count {
            let Some(op) = self.held.pop_front() else { return };
            self.carry_out(op);
            if let Some(event) = self.queue.pop_front() {
                self.send(event);
            }
        }
    }

    /// Lets time pass.
    pub(crate) fn advance(&mut self, ms: u64) {
        let end = self.now + Duration::from_ms(ms);
        while self.now < end {
            let guard = if self.guard_alive { self.guard.next_wake().0 } else { Time::MAX };
            let next = self.agent.next_wake().min(guard).max(self.now + Duration::from_ms(1)).min(end);
            self.now = next;
            if self.guard_alive && guard <= self.now {
                self.guard_step(guard::Event::Wake);
            }
            self.send(Event::Tick);
        }
    }

    pub(crate) fn guard_step(&mut self, event: guard::Event) {
        let mut ops = Vec::new();
        self.guard.step(Stamp(self.now), event, &mut ops);
        for op in ops {
            match op {
                guard::Op::Kill => self.guard_kills(),
                guard::Op::Reboot => self.log.push("guard reboots".to_owned()),
                guard::Op::Keep(_) => {}
            }
        }
        let status = self.guard.status(Stamp(self.now));
        self.send(Event::Guard(status));
    }

    /// A leader grants these pods, in answer to a beat sent now.
    pub(crate) fn grant(&mut self, pods: &[&str]) {
        let seats = ["m1", "m2"].map(|m| Seat { node_name: m.into(), node_uid: m.into() });
        let own = Seat { node_name: "n1".into(), node_uid: self.agent.uid().clone() };
        let grant = Grant {
            who: Incarnation { uid: self.agent.uid().clone(), boot: self.boot.clone() },
            sent: Stamp(self.now),
            epoch: Epoch(1),
            pods: pods.iter().map(|p| uid(p)).collect(),
            council: Some(Membership {
                epoch: CouncilEpoch(1),
                seats: seats.into_iter().chain([own]).collect(),
                since: Rev(1),
            }),
            recovering: false,
        };
        let sent = grant.sent;
        self.guard_step(guard::Event::Answer(Answer::Grant(grant)));
        self.send(Event::LeaderHeard { sent, recovering: false });
    }

    /// The API shows a pod.
    pub(crate) fn show(&mut self, pod: Pod) {
        self.rev += 1;
        let pod = Arc::new(pod);
        self.pods.insert(pod.metadata.uid.clone(), pod.clone());
        self.send(Event::Pod { pod, rev: Rev(self.rev) });
    }

    /// A client changes a pod.
    pub(crate) fn change(&mut self, name: &str, change: impl FnOnce(&mut Pod)) {
        let mut pod = (*self.pods[&uid(name)]).clone();
        change(&mut pod);
        self.show(pod);
    }

    pub(crate) fn delete(&mut self, name: &str, grace: u64) {
        let until = self.now + Duration::from_secs(grace);
        self.change(name, |p| {
            p.metadata.deletion_timestamp = Some(until);
            p.metadata.deletion_grace_period_seconds = Some(grace);
        });
    }

    pub(crate) fn force_delete(&mut self, name: &str) {
        self.pods.remove(&uid(name));
        self.send(Event::PodRemoved(uid(name)));
    }

    pub(crate) fn tombstone(&self, name: &str, node: &Uid) -> Tombstone {
        Tombstone {
            metadata: Meta { name: uid(name).as_str().into(), uid: "tomb-uid".into(), ..Meta::default() },
            spec: TombstoneSpec {
                pod_namespace: "default".into(),
                pod_name: name.into(),
                pod_uid: uid(name),
                node_name: "n1".into(),
                node_uid: node.clone(),
                boot_id: self.boot.clone(),
                claims: Vec::new(),
                reason: "ForceDeleted".to_owned(),
            },
        }
    }

    /// A claim that is bound to a volume of a CSI driver.
    pub(crate) fn claim(&mut self, name: &str, mode: AccessMode, csi: bool) {
        let claim = PersistentVolumeClaim {
            spec: ClaimSpec { access_modes: vec![mode], volume_name: "pv".into(), ..ClaimSpec::default() },
            ..PersistentVolumeClaim::default()
        };
        let source = CsiSource { driver: "d".to_owned(), volume_handle: name.to_owned() };
        let volume = PersistentVolume {
            spec: PersistentVolumeSpec { csi: csi.then_some(source), ..PersistentVolumeSpec::default() },
            ..PersistentVolume::default()
        };
        self.send(Event::Claim {
            namespace: "default".into(),
            name: name.into(),
            claim: Some(Arc::new(claim)),
            volume: Some(Arc::new(volume)),
        });
    }

    /// A container ends by itself.
    pub(crate) fn exit(&mut self, name: &str, code: i32) {
        let now = self.now;
        let seen = self.host.get_mut(&uid(name)).expect("the pod is on the host");
        end_containers(seen, code, now);
        let seen = seen.clone();
        self.send(Event::PodObserved(seen));
    }

    /// Something else than the agent takes the pod's mounts away.
    pub(crate) fn pull_mounts(&mut self, name: &str) {
        let seen = self.host.get_mut(&uid(name)).expect("the pod is on the host");
        seen.mounts.clear();
        let seen = seen.clone();
        self.send(Event::PodObserved(seen));
    }

    pub(crate) fn restart_agent(&mut self) {
        self.queue.clear();
        self.held.clear();
        self.in_flight.clear();
        let mut ops = Vec::new();
        self.agent = Agent::start(self.now, settings(&self.boot, self.flaw), self.ledger.clone(), &mut ops);
        for op in ops {
            self.carry_out(op);
        }
        let list = self.host.values().cloned().collect();
        self.send(Event::Observed(list));
    }

    /// Shows the API's state to an agent that has just started.
    pub(crate) fn list(&mut self) {
        self.send(Event::Api(Reach::Yes));
        match self.node.clone() {
            Some(node) => self.send(Event::Node { node, rev: Rev(self.rev) }),
            None => self.send(Event::NodeAbsent),
        }
        for pod in self.pods.clone().into_values() {
            self.send(Event::Pod { pod, rev: Rev(self.rev) });
        }
        self.send(Event::Synced);
    }

    /// Power off and on: every process is gone, the runtime's records are left over, mounts are not.
    pub(crate) fn reboot(&mut self, boot: &str) {
        self.boot = BootId::from(boot);
        let now = self.now;
        for seen in self.host.values_mut() {
            end_containers(seen, 255, now);
            seen.mounts.clear();
        }
        self.now = now + Duration::from_secs(30);
        let uid = self.ledger.node.clone().unwrap_or_default().uid;
        self.guard = new_guard(self.now, uid, &self.boot, self.flaw);
        self.restart_agent();
    }

    pub(crate) fn runs(&self, name: &str) -> bool {
        self.host.get(&uid(name)).is_some_and(|p| p.runs(&self.boot))
    }

    pub(crate) fn is_empty(&self, name: &str) -> bool {
        self.host.get(&uid(name)).is_none_or(PodOnHost::is_empty)
    }

    pub(crate) fn status(&self, name: &str) -> &api::view::PodStatus {
        &self.pods[&uid(name)].status
    }

    pub(crate) fn attempt(&self, name: &str) -> Option<u32> {
        Some(self.host.get(&uid(name))?.container("app")?.attempt)
    }

    /// What was logged since the last look.
    pub(crate) fn take_log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    fn guard_kills(&mut self) {
        let now = self.now;
        let mut changed = Vec::new();
        for seen in self.host.values_mut().filter(|p| p.exclusive && !p.is_empty()) {
            let before = seen.clone();
            end_containers(seen, 137, now);
            seen.mounts.clear();
            if let Some(sandbox) = &mut seen.sandbox {
                sandbox.ready = false;
            }
            if *seen != before {
                changed.push(seen.clone());
            }
        }
        self.guard.step(Stamp(now), guard::Event::KillDone(Kill::Confirmed), &mut Vec::new());
        for seen in changed {
            self.log.push(format!("guard kills {}", seen.name));
            self.send(Event::PodObserved(seen));
        }
    }

    fn carry_out(&mut self, op: Op) {
        match op {
            Op::Pod { id, uid, act } => {
                assert!(self.in_flight.insert(uid.clone(), id).is_none(), "two ops for one pod");
                let outcome = self.act(&uid, act);
                self.in_flight.remove(&uid);
                self.queue.push_back(Event::Done { id, outcome });
                if let Some(seen) = self.host.get(&uid) {
                    self.queue.push_back(Event::PodObserved(seen.clone()));
                }
            }
            Op::Keep { id, note } => {
                self.ledger.fold(note);
                self.queue.push_back(Event::Done { id, outcome: Outcome::Kept });
            }
            Op::Call { id, call } => {
                let outcome = if self.api_up { self.write(&call) } else { Outcome::Unreachable };
                self.calls.push(*call);
                self.queue.push_back(Event::Done { id, outcome });
            }
            Op::Identify(uid) => {
                let mut ops = Vec::new();
                self.guard.step(Stamp(self.now), guard::Event::Identified(uid), &mut ops);
            }
            Op::Beat(beat) => self.beats.push(*beat),
            Op::Ask { .. } | Op::Closed(_) => self.sent.push(op),
            Op::NoneHere { ref to, ref none } => {
                if to.as_str() == "n1" {
                    self.guard.step(Stamp(self.now), guard::Event::NoneHere(none.clone()), &mut Vec::new());
                }
                self.sent.push(op);
            }
        }
    }

    fn act(&mut self, uid: &Uid, act: PodAct) -> Outcome {
        let guarded = act.guarded() == agent::Guarded::Yes;
        if guarded && !self.guard.permits(uid, Stamp(self.now)) {
            return Outcome::Forbidden;
        }
        let name = uid.as_str().trim_end_matches("-uid").to_owned();
        let (now, boot) = (self.now, self.boot.clone());
        let seen = self
            .host
            .entry(uid.clone())
            .or_insert_with(|| PodOnHost::nothing(uid, &"default".into(), &name.as_str().into()));
        seen.exclusive |= guarded;
        let word = match act {
            PodAct::Mount { claim, volume, .. } => {
                seen.mounts.push(Mounted { claim: claim.clone(), volume });
                format!("mount {claim}")
            }
            PodAct::Unmount { claim } => {
                assert!(!seen.runs(&boot), "unmounted under a running container");
                seen.mounts.retain(|m| m.claim != claim);
                format!("unmount {claim}")
            }
            PodAct::CreateSandbox { .. } => {
                self.addresses += 1;
                let address = format!("10.0.0.{}", self.addresses);
                seen.sandbox = Some(Sandbox { boot, ready: true, address });
                "sandbox".to_owned()
            }
            PodAct::StartContainer { container, attempt, .. } => {
                let kept = self.ledger.pods_by_uid.get(uid).and_then(|e| e.runs_by_container.get(&container));
                assert_eq!(kept.map(|r| r.attempt), Some(attempt), "the intent is on disk before the start");
                seen.containers.retain(|c| c.name != container);
                let state = ContainerState::Running { started_at: now };
                seen.containers.push(ContainerOnHost { name: container.clone(), attempt, state });
                format!("start {container} {attempt}")
            }
            PodAct::Terminate => {
                if !self.stubborn.contains(uid) {
                    end_containers(seen, 0, now);
                }
                "terminate".to_owned()
            }
            PodAct::Kill => {
                end_containers(seen, 137, now);
                "kill".to_owned()
            }
            PodAct::RemoveSandbox => {
                seen.sandbox = None;
                seen.containers.clear();
                "remove".to_owned()
            }
        };
        self.log.push(format!("{name}: {word}"));
        Outcome::Host(seen.clone())
    }

    fn write(&mut self, call: &Call) -> Outcome {
        self.rev += 1;
        let rev = Rev(self.rev);
        match call {
            Call::Create(View::Node(node)) => {
                self.nodes += 1;
                let mut node = (**node).clone();
                node.metadata.uid = Uid::from(format!("node-uid-{}", self.nodes));
                self.node = Some(Arc::new(node));
            }
            Call::Create(_) => {}
            Call::Edit { edit: Edit::PodReport(status), uid, .. } => {
                let Some(pod) = self.pods.get(uid) else { return Outcome::NotFound };
                let mut pod = (**pod).clone();
                pod.status = (**status).clone();
                let pod = Arc::new(pod);
                self.pods.insert(uid.clone(), pod.clone());
                self.queue.push_back(Event::Pod { pod, rev });
            }
            Call::Edit { edit: Edit::NodeReport(status), .. } => {
                let Some(node) = &self.node else { return Outcome::NotFound };
                let mut node = (**node).clone();
                let attached = std::mem::take(&mut node.status.volumes_attached);
                node.status = (**status).clone();
                node.status.volumes_attached = attached;
                if self.attach {
                    let in_use = node.status.volumes_in_use.iter();
                    let attached =
                        in_use.map(|v| AttachedVolume { name: v.clone(), device_path: String::new() });
                    node.status.volumes_attached = attached.collect();
                }
                self.node = Some(Arc::new(node));
            }
            Call::Edit { edit: Edit::Renew { .. }, .. } => {
                let known = self.calls.iter().any(|c| matches!(c, Call::Create(View::Lease(_))));
                return if known { Outcome::Written(rev) } else { Outcome::NotFound };
            }
            Call::Edit { .. } => {}
            Call::Remove { key, uid } => {
                self.log.push(format!("remove object {key}"));
                if key.kind == Kind::Pod && self.pods.remove(uid).is_some() {
                    self.queue.push_back(Event::PodRemoved(uid.clone()));
                }
                if key.kind == Kind::Tombstone {
                    self.queue.push_back(Event::TombstoneRemoved(key.name.clone()));
                }
            }
        }
        if call.key().kind == Kind::Node
            && let Some(node) = self.node.clone()
        {
            self.queue.push_back(Event::Node { node, rev });
        }
        Outcome::Written(rev)
    }
}

fn end_containers(seen: &mut PodOnHost, code: i32, now: Time) {
    for container in &mut seen.containers {
        if let ContainerState::Running { started_at } = container.state {
            container.state = ContainerState::Exited { code, started_at, finished_at: now };
        }
    }
}

fn settings(boot: &BootId, flaw: Option<api::flaw::Flaw>) -> Settings {
    Settings {
        node: "n1".into(),
        boot: boot.clone(),
        machine: "machine".to_owned(),
        labels: BTreeMap::new(),
        capacity: BTreeMap::new(),
        allocatable: BTreeMap::new(),
        timing: Timing::default(),
        kill_bound: Timing::default().kill_bound,
        flaw,
    }
}

fn new_guard(now: Time, uid: Uid, boot: &BootId, flaw: Option<api::flaw::Flaw>) -> Guard {
    let start = guard::Start {
        who: Incarnation { uid, boot: boot.clone() },
        kept: None,
        timing: Timing::default(),
        kill_bound: Timing::default().kill_bound,
        flaw,
    };
    let mut guard = Guard::start(Stamp(now), start, &mut Vec::new());
    guard.step(Stamp(now), guard::Event::KillDone(Kill::Confirmed), &mut Vec::new());
    guard
}

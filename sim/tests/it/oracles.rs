//! Each oracle speaks when it should, and is silent when it should not: on facts made by hand.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::taint::{Taint, TaintEffect};
use api::timing::profile::Profile;
use api::view::{
    Endpoint, EndpointConditions, EndpointSlice, Evidence, EvidenceKind, IncidentSpec, IncidentStatus, Meta,
    NodeIncident, ObjectReference, OwnerReference, Pod, PodSpec, ReplicaSet, ReplicaSetSpec, Tombstone,
    TombstoneSpec, View, VolumeAttachment, VolumeAttachmentSource, VolumeAttachmentSpec,
};
use api::{BootId, Duration, Epoch, NodeName, Rev, Time, Uid, annotation};
use sim::config::{Config, START};
use sim::fault::Fault;
use sim::observe::{Fact, Instance, Observation};
use sim::oracle::{Class, Judge, ORACLES, Promise, Setting};

/// A judge, and facts as short words.
struct Story {
    judge: Judge,
    now: Time,
}

impl Story {
    fn new(promises: &[Promise]) -> Self {
        Self::under("default", promises)
    }

    fn under(profile: &str, promises: &[Promise]) -> Self {
        let timing = Profile::named(profile).unwrap().timing;
        let setting = Setting::of(&Config::small(timing, 1, 3), promises.iter().copied());
        let mut story = Self { judge: Judge::new(setting), now: START };
        for node in ["n1", "n2", "n3"] {
            story.fact(Observation::PoweredOn { machine: node.into(), boot: "b1".into() });
        }
        story
    }

    fn fact(&mut self, what: Observation) -> &mut Self {
        self.judge.see(&Fact { at: self.now, what });
        self
    }

    fn after(&mut self, ms: u64) -> &mut Self {
        self.now += Duration::from_ms(ms);
        self
    }

    fn trouble(&mut self, fault: &Fault) -> &mut Self {
        self.judge.fault(self.now, fault);
        self
    }

    fn start(&mut self, instance: Instance) -> &mut Self {
        self.fact(Observation::Started(instance))
    }

    fn end(&mut self, instance: Instance) -> &mut Self {
        self.fact(Observation::Ended(instance))
    }

    fn write(&mut self, by: &str, old: Option<View>, new: Option<View>) -> &mut Self {
        let key = new.as_ref().or(old.as_ref()).unwrap().key();
        self.fact(Observation::Written { rev: Rev(1), key, old, new, by: by.to_owned() })
    }

    #[track_caller]
    fn says(&mut self, expected: &[&str]) {
        let said: Vec<&str> = self.judge.findings().iter().map(|finding| finding.oracle).collect();
        assert_eq!(said, expected, "{:?}", self.judge.findings());
    }

    #[track_caller]
    fn says_in_the_end(&mut self, expected: &[&str]) {
        self.judge.end(self.now, 0);
        self.says(expected);
    }
}

fn instance(machine: &str, pod_uid: &str) -> Instance {
    Instance {
        machine: machine.into(),
        boot: "b1".into(),
        node_uid: Uid::from(format!("uid-{machine}")),
        namespace: "default".into(),
        name: "db-0".into(),
        pod_uid: pod_uid.into(),
        exclusive: true,
    }
}

fn meta(name: &str, uid: &str) -> Meta {
    Meta { name: name.into(), namespace: "default".into(), uid: uid.into(), ..Meta::default() }
}

fn owned(name: &str, uid: &str, kind: &str, node: &str) -> Pod {
    let owner = OwnerReference {
        kind: kind.into(),
        name: "owner".into(),
        uid: "owner".into(),
        controller: true,
        ..OwnerReference::default()
    };
    let annotations = BTreeMap::from([(annotation::NODE_UID.to_owned(), format!("uid-{node}"))]);
    let metadata = Meta { owner_references: vec![owner], annotations, ..meta(name, uid) };
    let spec = PodSpec { node_name: node.into(), ..PodSpec::default() };
    Pod { metadata, spec, ..Pod::default() }
}

fn view(pod: Pod) -> Option<View> {
    Some(View::Pod(Arc::new(pod)))
}

fn fenced_incident(node: &str, name: &str) -> Option<View> {
    let evidence = vec![Evidence { kind: EvidenceKind::LeaseExpiry, at: START, detail: String::new() }];
    let spec = IncidentSpec {
        node_name: node.into(),
        node_uid: Uid::from(format!("uid-{node}")),
        boot_id: "b1".into(),
    };
    let metadata = Meta { name: name.into(), ..Meta::default() };
    let status = IncidentStatus { evidence, ..IncidentStatus::default() };
    Some(View::NodeIncident(Arc::new(NodeIncident { metadata, spec, status })))
}

fn evidence(node: &str) -> Observation {
    let uid = Uid::from(format!("uid-{node}"));
    Observation::Evidence { uid, boot: BootId::from("b1"), kind: EvidenceKind::LeaseExpiry }
}

#[test]
fn ids_are_unique() {
    let mut ids: Vec<&str> = ORACLES.iter().map(|oracle| oracle.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), ORACLES.len());
    assert!(ORACLES.iter().any(|oracle| oracle.class == Class::Surplus));
}

// Invariant S1.
#[test]
fn two_of_one_identity_are_found() {
    Story::new(&[]).start(instance("n1", "p1")).start(instance("n2", "p2")).says(&["S1"]);
    Story::new(&[]).start(instance("n1", "p1")).start(instance("n1", "p2")).says(&["S1"]);
    let mut one_after_the_other = Story::new(&[]);
    one_after_the_other
        .start(instance("n1", "p1"))
        .end(instance("n1", "p1"))
        .start(instance("n2", "p2"))
        .says(&[]);
    let mut power_cut = Story::new(&[]);
    power_cut
        .start(instance("n1", "p1"))
        .fact(Observation::PoweredOff("n1".into()))
        .start(instance("n2", "p2"))
        .says(&[]);
}

// Invariant S1: what a suspended machine may do.
#[test]
fn a_pause_excuses_for_its_bound_and_no_longer() {
    let overlap = |clock_runs: bool, ms: u64| {
        let mut story = Story::new(&[]);
        story.start(instance("n1", "p1")).fact(Observation::Suspended { machine: "n1".into(), clock_runs });
        story.after(60_000).start(instance("n2", "p2")).says(&[]);
        story.after(1000).fact(Observation::Resumed("n1".into())).says(&[]);
        story.after(ms).end(instance("n1", "p1"));
        story
    };
    // K = 2.2 s, and 1 % of drift.
    overlap(true, 2200).says(&[]);
    overlap(true, 2300).says(&["S1"]);
    // max(G, A) + K = 12.2 s.
    overlap(false, 12_200).says(&[]);
    overlap(false, 12_500).says(&["S1"]);
    let within = overlap(false, 5000);
    assert_eq!((within.judge.tally().apart, within.judge.tally().apart_max.ms()), (1, 5000));
}

// Invariant S1: a pause long ago excuses nothing.
#[test]
fn an_old_pause_excuses_nothing() {
    let mut story = Story::new(&[]);
    story
        .start(instance("n1", "p1"))
        .fact(Observation::Suspended { machine: "n1".into(), clock_runs: false });
    story.after(1000).fact(Observation::Resumed("n1".into()));
    story.after(20_000).start(instance("n2", "p2")).says(&["S1"]);
}

// Invariant V1.
#[test]
fn a_single_volume_on_two_machines_is_found() {
    let mount =
        |machine: &str, single| Observation::Mounted { machine: machine.into(), volume: "v".into(), single };
    Story::new(&[]).fact(mount("n1", true)).fact(mount("n2", true)).says(&["V1"]);
    Story::new(&[]).fact(mount("n1", false)).fact(mount("n2", false)).says(&[]);
    let unmount = Observation::Unmounted { machine: "n1".into(), volume: "v".into() };
    Story::new(&[]).fact(mount("n1", true)).fact(unmount).fact(mount("n2", true)).says(&[]);
}

// Invariant E1.
#[test]
fn evidence_must_be_true() {
    Story::new(&[]).start(instance("n1", "p1")).fact(evidence("n1")).says(&["E1"]);
    Story::new(&[]).start(instance("n1", "p1")).fact(evidence("n2")).says(&[]);
    Story::new(&[]).start(instance("n1", "p1")).end(instance("n1", "p1")).fact(evidence("n1")).says(&[]);
    let asleep = Observation::Suspended { machine: "n1".into(), clock_runs: true };
    Story::new(&[]).start(instance("n1", "p1")).fact(asleep).fact(evidence("n1")).says(&[]);
}

// Invariant E1.
#[test]
fn an_exclusive_pod_goes_on_proof_or_its_nodes_word() {
    let pod = || view(owned("db-0", "p1", "StatefulSet", "n1"));
    let lost = |story: &mut Story| {
        story.write("server-0/release", pod(), None);
    };
    let mut story = Story::new(&[]);
    story.write("server-0/x", None, pod());
    lost(&mut story);
    story.says(&["E1"]);

    let mut runs = Story::new(&[]);
    runs.write("server-0/x", None, pod()).start(instance("n1", "p1")).write(
        "server-0/x",
        None,
        fenced_incident("n1", "i"),
    );
    lost(&mut runs);
    runs.says(&["E1"]);

    let mut proven = Story::new(&[]);
    proven.write("server-0/x", None, pod()).write("server-0/x", None, fenced_incident("n1", "i"));
    lost(&mut proven);
    proven.says(&[]);

    Story::new(&[]).write("server-0/x", None, pod()).write("node n1", pod(), None).says(&[]);
    Story::new(&[]).write("server-0/x", None, pod()).write("human", pod(), None).says(&[]);
}

// Invariant E1: a volume is not pulled from under a machine that writes.
#[test]
fn a_mounted_volume_is_not_detached() {
    let attachment = || {
        let source = VolumeAttachmentSource { persistent_volume_name: "v".into() };
        let spec = VolumeAttachmentSpec { node_name: "n1".into(), source, ..VolumeAttachmentSpec::default() };
        let metadata = Meta { name: "va".into(), ..Meta::default() };
        Some(View::VolumeAttachment(Arc::new(VolumeAttachment {
            metadata,
            spec,
            ..VolumeAttachment::default()
        })))
    };
    let mount = || Observation::Mounted { machine: "n1".into(), volume: "v".into(), single: true };
    Story::new(&[]).fact(mount()).write("attacher", attachment(), None).says(&["E1"]);
    let off = Observation::PoweredOff("n1".into());
    Story::new(&[]).fact(mount()).fact(off).write("attacher", attachment(), None).says(&[]);
}

// Invariant T1.
#[test]
fn a_tombstone_stays_while_its_pod_runs() {
    let stone = || {
        let metadata = Meta { name: "p1".into(), ..Meta::default() };
        let spec = TombstoneSpec { pod_uid: "p1".into(), ..TombstoneSpec::default() };
        Some(View::Tombstone(Arc::new(Tombstone { metadata, spec })))
    };
    Story::new(&[]).start(instance("n1", "p1")).write("node n1", stone(), None).says(&["T1"]);
    Story::new(&[]).write("node n1", stone(), None).says(&[]);
}

fn slice(ready: &[&str]) -> Option<View> {
    let endpoint = |uid: &&str| Endpoint {
        conditions: EndpointConditions { ready: true, serving: true, terminating: false },
        target_ref: ObjectReference { uid: Uid::from(*uid), ..ObjectReference::default() },
        ..Endpoint::default()
    };
    let endpoints = ready.iter().map(endpoint).collect();
    Some(View::EndpointSlice(Arc::new(EndpointSlice {
        metadata: meta("web", "s"),
        endpoints,
        ..EndpointSlice::default()
    })))
}

// Invariant B1.
#[test]
fn nothing_is_withdrawn_while_the_server_is_alone() {
    let cut = Fault::PauseServer { server: 0, clock_runs: true };
    let promised = [Promise::NothingWithdrawn];
    let withdraw = |story: &mut Story| {
        story.write("server-0/endpointslice-controller", slice(&["p1"]), slice(&[]));
    };
    let mut alive = Story::new(&promised);
    alive.trouble(&cut).start(instance("n1", "p1"));
    withdraw(&mut alive);
    alive.says(&["B1"]);

    let mut dead = Story::new(&promised);
    dead.trouble(&cut);
    withdraw(&mut dead);
    dead.says(&[]);

    let mut not_promised = Story::new(&[]);
    not_promised.trouble(&cut).start(instance("n1", "p1"));
    withdraw(&mut not_promised);
    not_promised.says(&[]);
}

// Invariant O1.
#[test]
fn an_outage_of_the_control_plane_stops_nothing() {
    let crash = Fault::CrashServer(0);
    let promised = [Promise::NothingStops];
    Story::new(&promised).start(instance("n1", "p1")).trouble(&crash).end(instance("n1", "p1")).says(&["O1"]);
    Story::new(&promised).start(instance("n1", "p1")).end(instance("n1", "p1")).trouble(&crash).says(&[]);
}

// Invariant F3.
#[test]
fn a_quick_reboot_moves_nothing() {
    let pod = || view(owned("web-1", "p1", "ReplicaSet", "n1"));
    let going = || {
        let mut pod = owned("web-1", "p1", "ReplicaSet", "n1");
        pod.metadata.deletion_timestamp = Some(START);
        view(pod)
    };
    let reboot = Fault::Reboot("n1".into(), api::Duration::from_secs(1));
    Story::new(&[Promise::NothingMoves]).trouble(&reboot).write("human", pod(), going()).says(&["F3"]);
    Story::new(&[Promise::NothingMoves]).trouble(&reboot).write("human", None, pod()).says(&[]);
}

// Invariant N1.
#[test]
fn one_incident_per_node_is_open() {
    let mut story = Story::new(&[]);
    story.write("server-0/suspicion", None, fenced_incident("n1", "i1"));
    story.write("server-0/suspicion", None, fenced_incident("n2", "i2")).says(&[]);
    story.write("server-0/suspicion", None, fenced_incident("n1", "i3")).says(&["N1"]);
}

// Invariant U1.
#[test]
fn p86_a_pod_starts_under_the_uid_it_was_bound_to() {
    let foreign = Instance { node_uid: "uid-other".into(), ..instance("n1", "p1") };
    let bound = || view(owned("db-0", "p1", "StatefulSet", "n1"));
    Story::new(&[]).write("server-0/x", None, bound()).start(foreign.clone()).says(&["U1"]);
    Story::new(&[]).write("server-0/x", None, bound()).start(instance("n1", "p1")).says(&[]);
    Story::under("kubernetes", &[]).write("server-0/x", None, bound()).start(foreign).says(&[]);
}

// Invariant G1.
#[test]
fn only_the_leader_writes() {
    let pod = || view(owned("web-1", "p1", "Job", "n1"));
    let elected = |server| Observation::Elected { server, epoch: Epoch(2) };
    Story::new(&[]).fact(elected(1)).write("server-1/x", None, pod()).says(&[]);
    Story::new(&[]).fact(elected(1)).write("server-0/x", None, pod()).says(&["G1"]);
    Story::new(&[]).fact(elected(1)).write("node n1", None, pod()).says(&[]);
}

// Invariant D1.
#[test]
fn a_panic_is_a_finding() {
    let mut story = Story::new(&[]);
    story.judge.end(START, 1);
    story.says(&["D1"]);
}

// Invariant W1.
#[test]
fn more_pods_than_wished_are_found() {
    let set = |replicas| {
        let metadata = Meta { uid: "owner".into(), ..meta("owner", "owner") };
        let spec = ReplicaSetSpec { replicas: Some(replicas), ..ReplicaSetSpec::default() };
        Some(View::ReplicaSet(Arc::new(ReplicaSet { metadata, spec, ..ReplicaSet::default() })))
    };
    let pod = |n: u32| view(owned(&format!("web-{n}"), &format!("p{n}"), "ReplicaSet", "n1"));
    let by = "server-0/replicaset-controller";
    let mut story = Story::new(&[]);
    story.write("human", None, set(2)).write(by, None, pod(1)).write(by, None, pod(2)).says(&[]);
    // A wish that was seen late counts for a while.
    story.write("human", set(2), set(1)).says(&[]);
    story.after(40_000).write(by, None, pod(3)).says(&["W1"]);

    let mut daemons = Story::new(&[]);
    let daemon = |uid: &str| view(owned(uid, uid, "DaemonSet", "n1"));
    daemons.write("server-0/x", None, daemon("d1")).says(&[]);
    daemons.write("server-0/x", None, daemon("d2")).says(&["W1"]);
}

// Invariant F2.
#[test]
fn a_failover_has_a_budget() {
    let moved = |bound: Duration, runs: Duration| {
        let mut story = Story::new(&[Promise::FailsOver]);
        story.write("server-0/x", None, view(owned("db-0", "p1", "StatefulSet", "n1")));
        story.start(instance("n1", "p1")).fact(Observation::PoweredOff("n1".into()));
        story.after(bound.ms()).write("server-0/x", None, view(owned("db-0", "p2", "StatefulSet", "n2")));
        story.after((runs - bound).ms()).start(instance("n2", "p2"));
        story
    };
    let timing = Profile::named("default").unwrap().timing;
    // The profile's times up to the proof, then what deciding may take, then what hands may take.
    let bound = timing.silent_death_to_fenced_worst() + timing.leader_read + Duration::from_ms(800);
    let runs = bound + Duration::from_ms(1_500);
    let late = Duration::from_ms(1);
    moved(bound, runs).says_in_the_end(&[]);
    moved(bound + late, runs).says(&["F2"]);
    moved(bound, runs + late).says(&["F2"]);
    assert_eq!(moved(bound, runs).judge.tally().failovers, [runs]);

    let mut never = Story::new(&[Promise::FailsOver]);
    never.write("server-0/x", None, view(owned("db-0", "p1", "StatefulSet", "n1")));
    never.start(instance("n1", "p1")).fact(Observation::PoweredOff("n1".into())).says_in_the_end(&["F2"]);
}

fn node(name: &str, taint: Option<&str>) -> Option<View> {
    use api::view::{Condition, ConditionStatus, Node};
    let mut node = Node { metadata: Meta { name: name.into(), ..Meta::default() }, ..Node::default() };
    node.status.conditions.push(Condition::new("Ready", ConditionStatus::True, "", "", START));
    node.spec.taints.extend(taint.map(|key| Taint::new(key, TaintEffect::NoSchedule)));
    Some(View::Node(Arc::new(node)))
}

// Invariant L1.
#[test]
fn what_is_not_whole_is_named() {
    let calm = |story: &mut Story| {
        for name in ["n1", "n2", "n3"] {
            story.write("node", None, node(name, None));
        }
    };
    let mut whole = Story::new(&[Promise::Whole]);
    calm(&mut whole);
    whole.says_in_the_end(&[]);

    let mut stray = Story::new(&[Promise::Whole]);
    calm(&mut stray);
    stray.start(instance("n1", "p1")).says_in_the_end(&["L1"]);

    let mut incident = Story::new(&[Promise::Whole]);
    calm(&mut incident);
    incident.write("server-0/x", None, fenced_incident("n1", "i")).says_in_the_end(&["L1"]);

    let mut marked = Story::new(&[Promise::Whole]);
    calm(&mut marked);
    marked.write("x", None, node("n1", Some(annotation::OUT_OF_SERVICE))).says_in_the_end(&["L1"]);

    let mut off = Story::new(&[Promise::Whole]);
    calm(&mut off);
    off.fact(Observation::PoweredOff(NodeName::from("n1")));
    assert_eq!(off.judge.missing(), ["machine n1 does not run"]);

    let mut short = Story::new(&[Promise::Whole]);
    calm(&mut short);
    let spec = ReplicaSetSpec { replicas: Some(2), ..ReplicaSetSpec::default() };
    let set = ReplicaSet { metadata: meta("web", "owner"), spec, ..ReplicaSet::default() };
    short.write("human", None, Some(View::ReplicaSet(Arc::new(set))));
    assert_eq!(short.judge.missing(), ["replicaset web has 0 of 2 pods"]);
}

//! Tests of the acts: what each changes, what it leaves alone, and that a second time changes nothing.

use api::annotation::{NOT_READY, UNREACHABLE};
use api::edit::{Edit, TaintName};
use api::object::Kind;
use api::taint::{Taint, TaintEffect};
use api::time::{Duration, Time};
use api::view::{
    AttachedVolume, Condition, ConditionStatus, ContainerState, ContainerStatus, Endpoint, Evidence,
    EvidenceKind, IncidentPhase, IncidentStatus, Membership, NodeInfo, NodeStatus, ObjectReference, PodPhase,
    PodStatus, StateRunning, StateTerminated, WorkloadStatus,
};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::testing::{Bench, NOW, agent, db0, node};
use crate::{Caller, Effect, Law};

const LATER: Time = Time::from_ms(NOW.ms() + 60_000);

fn check(bench: &Bench, kind: Kind, tree: &mut Value, edit: &Edit, expect: &Expect) {
    expect.assert_eq(&bench.edited(kind, tree, edit));
}

fn condition(kind: &str, status: ConditionStatus, reason: &str) -> Condition {
    Condition::new(kind, status, reason, "", NOW)
}

fn swap(to: &str, from: &str) -> Edit {
    let effect = TaintEffect::NoExecute;
    Edit::Taints { add: vec![Taint::new(to, effect)], remove: vec![TaintName::new(from, effect)] }
}

fn container(name: &str, running: bool) -> ContainerStatus {
    let state = if running {
        ContainerState { running: Some(StateRunning { started_at: NOW }), ..ContainerState::default() }
    } else {
        ContainerState { terminated: Some(StateTerminated::default()), ..ContainerState::default() }
    };
    ContainerStatus { name: name.to_owned(), ready: running, state, ..ContainerStatus::default() }
}

/// One of every act, with an object for it.
fn every_edit() -> Vec<(Kind, Edit)> {
    let conditions = || vec![condition("Ready", ConditionStatus::Unknown, "NodeStatusUnknown")];
    let evidence = Evidence { kind: EvidenceKind::PowerOff, at: NOW, detail: "off".to_owned() };
    let status = IncidentStatus {
        phase: IncidentPhase::Fenced,
        evidence: vec![evidence],
        ..IncidentStatus::default()
    };
    let report = NodeStatus {
        conditions: conditions(),
        capacity: [("cpu".to_owned(), "2".parse().expect("a quantity"))].into(),
        volumes_in_use: vec!["kubernetes.io/csi/d^v".to_owned()],
        ..NodeStatus::default()
    };
    let pod = PodStatus {
        phase: PodPhase::Succeeded,
        pod_ip: "10.0.0.9".to_owned(),
        conditions: vec![condition("Ready", ConditionStatus::True, "")],
        container_statuses: vec![container("db", false)],
        ..PodStatus::default()
    };
    let endpoint = Endpoint {
        addresses: vec!["10.0.0.9".to_owned()],
        target_ref: ObjectReference { uid: "pod-1".into(), ..ObjectReference::default() },
        ..Endpoint::default()
    };
    let failed = condition("DisruptionTarget", ConditionStatus::True, "DeletionByPodGC");
    vec![
        (Kind::Node, swap(UNREACHABLE, NOT_READY)),
        (Kind::Node, Edit::NodeConditions(conditions())),
        (Kind::Node, Edit::RecordBoot("b2".into())),
        (Kind::Node, Edit::AnnounceReboot { boot: "b1".into(), at: NOW }),
        (
            Kind::Node,
            Edit::VolumesAttached(vec![AttachedVolume { name: "v".to_owned(), device_path: String::new() }]),
        ),
        (Kind::Node, Edit::NodeReport(Box::new(report))),
        (Kind::Node, Edit::Unschedulable(true)),
        (Kind::Lease, Edit::Renew { holder: "n1".into(), uid: "u1".into(), at: NOW }),
        (Kind::Pod, Edit::Bind { node: "n2".into(), node_uid: "u2".into() }),
        (Kind::Pod, Edit::PodConditions(conditions())),
        (
            Kind::Pod,
            Edit::FailPod { reason: "Lost".to_owned(), message: String::new(), condition: Some(failed) },
        ),
        (Kind::Pod, Edit::PodReport(Box::new(pod))),
        (Kind::ReplicaSet, Edit::Replicas(0)),
        (
            Kind::StatefulSet,
            Edit::Counts(WorkloadStatus { replicas: 2, ready_replicas: 1, ..WorkloadStatus::default() }),
        ),
        (Kind::VolumeAttachment, Edit::Attached(true)),
        (Kind::PersistentVolume, Edit::AddFinalizer("mainstay.dev/new".to_owned())),
        (Kind::PersistentVolume, Edit::RemoveFinalizer("mainstay.dev/one".to_owned())),
        (Kind::EndpointSlice, Edit::Endpoints(vec![endpoint])),
        (Kind::NodeIncident, Edit::Incident(Box::new(status))),
        (
            Kind::Council,
            Edit::Memberships(vec![Membership {
                epoch: api::CouncilEpoch(2),
                since: api::Rev(7),
                ..Membership::default()
            }]),
        ),
    ]
}

/// An object of that kind with a field that no view knows at every level that an act may touch.
fn strange(kind: Kind, edit: &Edit) -> Value {
    let bound = !matches!(edit, Edit::Bind { .. });
    json!({
        "strange": 0, "kind": kind.noun(),
        "metadata": {
            "name": "x", "uid": "u1", "generation": 1, "strange": 1,
            "annotations": { "strange": "2" }, "finalizers": ["mainstay.dev/one", "strange"],
        },
        "spec": {
            "strange": 3, "nodeName": if bound { "n1" } else { "" },
            "taints": [
                { "key": NOT_READY, "effect": "NoExecute", "timeAdded": "2026-05-28T00:00:00Z" },
                { "key": "strange", "effect": "NoSchedule", "strange": 4 },
            ],
            "memberships": [{ "epoch": 2, "strange": 5 }],
        },
        "status": {
            "strange": 6, "phase": "",
            "conditions": [
                { "type": "Ready", "status": "True", "strange": 7 }, { "type": "Strange", "status": "True" },
            ],
            "containerStatuses": [{ "name": "db", "strange": 8, "state": { "running": {} } }],
            "capacity": { "strange.example/gpu": "9" },
            "nodeInfo": { "kubeletVersion": "strange" },
            "volumesAttached": [{ "name": "v", "strange": 10 }],
        },
        "endpoints": [{ "targetRef": { "uid": "pod-1" }, "strange": 11 }],
    })
}

#[test]
fn every_act_is_idempotent_and_keeps_what_it_does_not_know() {
    let bench = Bench::controller();
    for (kind, edit) in every_edit() {
        let mut tree = strange(kind, &edit);
        let before = tree.to_string().matches("strange").count();
        assert_eq!(bench.edit(kind, &mut tree, &edit), Ok(Effect::Put), "{edit:?}");
        assert_eq!(tree.to_string().matches("strange").count(), before, "{edit:?} kept everything: {tree}");
        let once = tree.clone();
        let later = Bench { now: LATER, ..Bench::controller() };
        assert_eq!(later.edit(kind, &mut tree, &edit), Ok(Effect::Same), "{edit:?} a second time");
        assert_eq!(tree, once, "{edit:?} a second time");
    }
}

#[test]
fn ct05_no_act_moves_the_deletion_time() {
    for (kind, edit) in every_edit() {
        let mut tree = strange(kind, &edit);
        tree["metadata"]["deletionTimestamp"] = json!("2026-05-28T00:00:30Z");
        tree["metadata"]["deletionGracePeriodSeconds"] = json!(30);
        let _ = Bench::controller().edit(kind, &mut tree, &edit);
        assert_eq!(tree["metadata"]["deletionTimestamp"], "2026-05-28T00:00:30Z", "{edit:?}");
    }
}

#[test]
fn an_act_of_another_kind_is_refused() {
    let mut tree = db0();
    check(
        &Bench::controller(),
        Kind::Pod,
        &mut tree,
        &Edit::Replicas(3),
        &expect![[r#"
            refused: Pod "db-0" is invalid: kind: Forbidden: Pod has no such act: Replicas(3)
        "#]],
    );
}

#[test]
fn te12_swap_carries_time() {
    let mut tree = node("n1", "u1", "b1");
    let lost = Edit::Taints { add: vec![Taint::new(NOT_READY, TaintEffect::NoExecute)], remove: Vec::new() };
    check(
        &Bench::controller(),
        Kind::Node,
        &mut tree,
        &lost,
        &expect![[r#"
        put
        spec.taints[0].effect: "NoExecute"
        spec.taints[0].key: "node.kubernetes.io/not-ready"
        spec.taints[0].timeAdded: "2026-05-28T20:27:00Z"
    "#]],
    );
    let later = Bench { now: LATER, ..Bench::controller() };
    check(
        &later,
        Kind::Node,
        &mut tree,
        &swap(UNREACHABLE, NOT_READY),
        &expect![[r#"
        put
        spec.taints[0].key: "node.kubernetes.io/not-ready" -> "node.kubernetes.io/unreachable"
    "#]],
    );
    check(
        &later,
        Kind::Node,
        &mut tree,
        &swap(UNREACHABLE, NOT_READY),
        &expect![[r#"
        same
    "#]],
    );
}

#[test]
fn te12_swap_starts_anew_in_stock_kubernetes() {
    let mut tree = node("n1", "u1", "b1");
    let added = Taint::new(NOT_READY, TaintEffect::NoExecute).since(NOW);
    tree["spec"]["taints"] = json!([api::view::tree(&added)]);
    let later = Bench { now: LATER, ..Bench::controller() }.under(Law::kubernetes());
    check(
        &later,
        Kind::Node,
        &mut tree,
        &swap(UNREACHABLE, NOT_READY),
        &expect![[r#"
        put
        spec.taints[0].key: "node.kubernetes.io/not-ready" -> "node.kubernetes.io/unreachable"
        spec.taints[0].timeAdded: "2026-05-28T20:27:00Z" -> "2026-05-28T20:28:00Z"
    "#]],
    );
}

#[test]
fn te12_other_taints_carry_nothing() {
    // Another effect is another entry without a clock; a taint that stays lends its time to nobody.
    let mut tree = node("n1", "u1", "b1");
    tree["spec"]["taints"] = json!([
        { "key": NOT_READY, "effect": "NoSchedule", "timeAdded": "2026-05-28T00:00:00Z" },
        { "key": NOT_READY, "effect": "NoExecute", "timeAdded": "2026-05-28T00:00:00Z" },
    ]);
    let schedule = TaintEffect::NoSchedule;
    let edit = Edit::Taints {
        add: vec![Taint::new(UNREACHABLE, TaintEffect::NoExecute), Taint::new("x", TaintEffect::NoExecute)],
        remove: vec![TaintName::new(NOT_READY, schedule)],
    };
    check(
        &Bench::controller(),
        Kind::Node,
        &mut tree,
        &edit,
        &expect![[r#"
        put
        spec.taints[0].effect: "NoSchedule" -> "NoExecute"
        spec.taints[1].key: "node.kubernetes.io/not-ready" -> "node.kubernetes.io/unreachable"
        spec.taints[1].timeAdded: "2026-05-28T00:00:00Z" -> "2026-05-28T20:27:00Z"
        spec.taints[2].effect: "NoExecute"
        spec.taints[2].key: "x"
        spec.taints[2].timeAdded: "2026-05-28T20:27:00Z"
    "#]],
    );
}

#[test]
fn a_taint_that_stands_keeps_its_time_and_takes_the_new_value() {
    let mut tree = node("n1", "u1", "b1");
    tree["spec"]["taints"] =
        json!([{ "key": "x", "value": "a", "effect": "NoExecute", "timeAdded": "2026-05-28T00:00:00Z" }]);
    let again = Taint::new("x", TaintEffect::NoExecute).with_value("b");
    let name = TaintName::from(&again);
    let edit = Edit::Taints { add: vec![again], remove: vec![name.clone()] };
    check(
        &Bench::controller(),
        Kind::Node,
        &mut tree,
        &edit,
        &expect![[r#"
        put
        spec.taints[0].value: "a" -> "b"
    "#]],
    );
    check(
        &Bench::controller(),
        Kind::Node,
        &mut tree,
        &Edit::Taints { add: vec![], remove: vec![name] },
        &expect![[r#"
            put
            spec.taints[0].effect: "NoExecute" -> gone
            spec.taints[0].key: "x" -> gone
            spec.taints[0].timeAdded: "2026-05-28T00:00:00Z" -> gone
            spec.taints[0].value: "b" -> gone
        "#]],
    );
}

#[test]
fn a_condition_moves_its_time_only_with_its_status() {
    let mut tree = node("n1", "u1", "b1");
    let ready = |status, reason: &str| Edit::NodeConditions(vec![condition("Ready", status, reason)]);
    let bench = Bench::controller();
    check(
        &bench,
        Kind::Node,
        &mut tree,
        &ready(ConditionStatus::True, "KubeletReady"),
        &expect![[r#"
        put
        status.conditions[0].lastTransitionTime: "2026-05-28T20:27:00Z"
        status.conditions[0].reason: "KubeletReady"
        status.conditions[0].status: "True"
        status.conditions[0].type: "Ready"
    "#]],
    );
    tree["status"]["conditions"][0]["lastTransitionTime"] = json!("2026-05-28T00:00:00Z");
    check(
        &bench,
        Kind::Node,
        &mut tree,
        &ready(ConditionStatus::True, "Other"),
        &expect![[r#"
        put
        status.conditions[0].reason: "KubeletReady" -> "Other"
    "#]],
    );
    check(
        &bench,
        Kind::Node,
        &mut tree,
        &ready(ConditionStatus::Unknown, ""),
        &expect![[r#"
        put
        status.conditions[0].lastTransitionTime: "2026-05-28T00:00:00Z" -> "2026-05-28T20:27:00Z"
        status.conditions[0].reason: "Other" -> gone
        status.conditions[0].status: "True" -> "Unknown"
    "#]],
    );
}

#[test]
fn a_node_report_leaves_what_others_say() {
    let mut tree = node("n1", "u1", "b1");
    tree["status"] = json!({
        "conditions": [{ "type": "NetworkUnavailable", "status": "False" }],
        "capacity": { "cpu": "1", "example.com/gpu": "1" },
        "volumesAttached": [{ "name": "v" }], "volumesInUse": ["v"],
        "nodeInfo": { "bootID": "b1", "kubeletVersion": "v1" },
    });
    let report = NodeStatus {
        conditions: vec![condition("Ready", ConditionStatus::True, "KubeletReady")],
        capacity: [("cpu".to_owned(), "2".parse().expect("a quantity"))].into(),
        node_info: NodeInfo { boot_id: "b2".into(), ..NodeInfo::default() },
        ..NodeStatus::default()
    };
    check(
        &Bench::node(),
        Kind::Node,
        &mut tree,
        &Edit::NodeReport(Box::new(report)),
        &expect![[r#"
            put
            status.capacity.cpu: "1" -> "2"
            status.conditions[1].lastTransitionTime: "2026-05-28T20:27:00Z"
            status.conditions[1].reason: "KubeletReady"
            status.conditions[1].status: "True"
            status.conditions[1].type: "Ready"
            status.nodeInfo.bootID: "b1" -> "b2"
            status.volumesInUse[0]: "v" -> gone
        "#]],
    );
}

#[test]
fn p86_bind_writes_uid() {
    let mut tree = json!({ "metadata": { "name": "db-0", "namespace": "prod", "uid": "pod-1", "generation": 1 }, "spec": {} });
    let bind = |node: &str, uid: &str| Edit::Bind { node: node.into(), node_uid: uid.into() };
    let bench = Bench::controller();
    check(
        &bench,
        Kind::Pod,
        &mut tree,
        &bind("n1", "u1"),
        &expect![[r#"
            put
            metadata.annotations.mainstay.dev/node-uid: "u1"
            spec.nodeName: "n1"
            status.conditions[0].lastTransitionTime: "2026-05-28T20:27:00Z"
            status.conditions[0].status: "True"
            status.conditions[0].type: "PodScheduled"
        "#]],
    );
    check(
        &bench,
        Kind::Pod,
        &mut tree,
        &bind("n1", "u1"),
        &expect![[r#"
        same
    "#]],
    );
    check(
        &bench,
        Kind::Pod,
        &mut tree,
        &bind("n2", "u2"),
        &expect![[r#"
        refused: Operation cannot be fulfilled on pods "db-0": pod db-0 is already assigned to node "n1"
    "#]],
    );
    check(
        &bench,
        Kind::Pod,
        &mut tree,
        &bind("n1", "another machine"),
        &expect![[r#"
        refused: Operation cannot be fulfilled on pods "db-0": pod db-0 is already assigned to node "n1"
    "#]],
    );
}

#[test]
fn a_terminating_pod_is_not_bound() {
    let mut tree = json!({ "metadata": { "name": "db-0", "namespace": "prod", "deletionTimestamp": "2026-05-28T00:00:00Z" } });
    let bind = Edit::Bind { node: "n1".into(), node_uid: "u1".into() };
    check(
        &Bench::controller(),
        Kind::Pod,
        &mut tree,
        &bind,
        &expect![[r#"
        refused: Operation cannot be fulfilled on pods "db-0": pod db-0 is being deleted, cannot be assigned to a host
    "#]],
    );
}

#[test]
fn p44_terminal_and_not_ready_together() {
    let mut tree = db0();
    let target = condition("DisruptionTarget", ConditionStatus::True, "DeletionByPodGC");
    let fail =
        Edit::FailPod { reason: "NodeLost".to_owned(), message: String::new(), condition: Some(target) };
    check(
        &Bench::controller(),
        Kind::Pod,
        &mut tree,
        &fail,
        &expect![[r#"
        put
        status.conditions[0].lastTransitionTime: "2026-05-28T00:00:00Z" -> "2026-05-28T20:27:00Z"
        status.conditions[0].status: "True" -> "False"
        status.conditions[1].lastTransitionTime: "2026-05-28T00:00:00Z" -> "2026-05-28T20:27:00Z"
        status.conditions[1].status: "True" -> "False"
        status.conditions[2].lastTransitionTime: "2026-05-28T20:27:00Z"
        status.conditions[2].reason: "DeletionByPodGC"
        status.conditions[2].status: "True"
        status.conditions[2].type: "DisruptionTarget"
        status.phase: "Running" -> "Failed"
        status.reason: "NodeLost"
    "#]],
    );
}

#[test]
fn gc50_a_pod_that_has_ended_keeps_its_end() {
    let mut tree = db0();
    tree["status"]["phase"] = json!("Succeeded");
    tree["status"]["conditions"] = json!([
        { "type": "Ready", "status": "False", "reason": "PodCompleted" },
        { "type": "ContainersReady", "status": "False", "reason": "PodCompleted" },
    ]);
    let fail = Edit::FailPod { reason: "NodeLost".to_owned(), message: String::new(), condition: None };
    check(
        &Bench::controller(),
        Kind::Pod,
        &mut tree,
        &fail,
        &expect![[r#"
        same
    "#]],
    );
}

fn report(phase: PodPhase, running: bool) -> Edit {
    let ready = if running { ConditionStatus::True } else { ConditionStatus::False };
    Edit::PodReport(Box::new(PodStatus {
        phase,
        conditions: vec![
            condition("Ready", ready, ""),
            condition("DisruptionTarget", ConditionStatus::False, ""),
        ],
        container_statuses: vec![container("db", running)],
        ..PodStatus::default()
    }))
}

#[test]
fn kr14_a_terminal_phase_stays_and_kr23_conditions_of_others_stay() {
    let mut tree = db0();
    let target = condition("DisruptionTarget", ConditionStatus::True, "DeletionByPodGC");
    let fail = Edit::FailPod { reason: String::new(), message: String::new(), condition: Some(target) };
    assert_eq!(Bench::controller().edit(Kind::Pod, &mut tree, &fail), Ok(Effect::Put));
    // The agent comes back, and the pod still runs there: its containers are told, its end and the mark stay.
    check(
        &Bench::node(),
        Kind::Pod,
        &mut tree,
        &report(PodPhase::Running, true),
        &expect![[r#"
            put
            status.containerStatuses[0].image: ""
            status.containerStatuses[0].imageID: ""
            status.containerStatuses[0].state.running.startedAt: "2026-05-28T20:27:00Z"
        "#]],
    );
}

#[test]
fn kr22_an_agent_signs_the_end() {
    let mut tree = db0();
    check(
        &Bench::node(),
        Kind::Pod,
        &mut tree,
        &report(PodPhase::Failed, false),
        &expect![[r#"
        put
        status.conditions[0].lastTransitionTime: "2026-05-28T00:00:00Z" -> "2026-05-28T20:27:00Z"
        status.conditions[0].reason: "PodFailed"
        status.conditions[0].status: "True" -> "False"
        status.conditions[1].lastTransitionTime: "2026-05-28T00:00:00Z" -> "2026-05-28T20:27:00Z"
        status.conditions[1].reason: "PodFailed"
        status.conditions[1].status: "True" -> "False"
        status.containerStatuses[0].image: ""
        status.containerStatuses[0].imageID: ""
        status.containerStatuses[0].ready: true -> false
        status.containerStatuses[0].state.running: {} -> gone
        status.containerStatuses[0].state.terminated: {}
        status.phase: "Running" -> "Failed"
    "#]],
    );
}

#[test]
fn replicas_grow_the_generation_and_counts_do_not() {
    let mut tree = json!({ "metadata": { "name": "web", "namespace": "prod", "generation": 3 }, "spec": { "replicas": 2 } });
    let bench = Bench::controller();
    check(
        &bench,
        Kind::ReplicaSet,
        &mut tree,
        &Edit::Replicas(5),
        &expect![[r#"
        put
        metadata.generation: 3 -> 4
        spec.replicas: 2 -> 5
    "#]],
    );
    let counts =
        WorkloadStatus { replicas: 0, observed_generation: api::Generation(4), ..WorkloadStatus::default() };
    check(
        &bench,
        Kind::ReplicaSet,
        &mut tree,
        &Edit::Counts(counts),
        &expect![[r#"
            put
            status.observedGeneration: 4
            status.replicas: 0
        "#]],
    );
}

#[test]
fn a_lease_has_micro_times() {
    let mut tree = json!({ "metadata": { "name": "n1", "namespace": "kube-node-lease" } });
    let renew = |at| Edit::Renew { holder: "n1".into(), uid: "u1".into(), at };
    check(
        &Bench::node(),
        Kind::Lease,
        &mut tree,
        &renew(NOW + Duration::from_ms(5)),
        &expect![[r#"
            put
            spec.holderIdentity: "n1"
            spec.holderUid: "u1"
            spec.renewTime: "2026-05-28T20:27:00.005000Z"
        "#]],
    );
}

#[test]
fn finalizers_come_only_before_the_deletion_and_the_last_one_lets_go() {
    let bench = Bench::controller();
    let mut tree = json!({ "metadata": { "name": "pv", "finalizers": ["a"] } });
    check(
        &bench,
        Kind::PersistentVolume,
        &mut tree,
        &Edit::RemoveFinalizer("a".to_owned()),
        &expect![[r#"
            put
            metadata.finalizers[0]: "a" -> gone
        "#]],
    );
    let mut tree = json!({ "metadata": { "name": "pv", "deletionTimestamp": "2026-05-28T00:00:00Z", "finalizers": ["a", "b"] } });
    check(
        &bench,
        Kind::PersistentVolume,
        &mut tree,
        &Edit::AddFinalizer("c".to_owned()),
        &expect![[r#"
        refused: PersistentVolume "pv" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"c"}
    "#]],
    );
    check(
        &bench,
        Kind::PersistentVolume,
        &mut tree,
        &Edit::RemoveFinalizer("a".to_owned()),
        &expect![[r#"
        put
        metadata.finalizers[0]: "a" -> "b"
        metadata.finalizers[1]: "b" -> gone
    "#]],
    );
    check(
        &bench,
        Kind::PersistentVolume,
        &mut tree,
        &Edit::RemoveFinalizer("b".to_owned()),
        &expect![[r#"
        remove
    "#]],
    );
}

#[test]
fn a_pod_whose_grace_runs_waits_for_its_node_and_not_for_finalizers() {
    let mut tree = db0();
    tree["metadata"]["deletionTimestamp"] = json!("2026-05-28T20:27:30Z");
    tree["metadata"]["deletionGracePeriodSeconds"] = json!(30);
    tree["metadata"]["finalizers"] = json!(["a"]);
    check(
        &Bench::controller(),
        Kind::Pod,
        &mut tree,
        &Edit::RemoveFinalizer("a".to_owned()),
        &expect![[r#"
            put
            metadata.finalizers[0]: "a" -> gone
        "#]],
    );
}

#[test]
fn an_incident_goes_only_forward_and_keeps_its_evidence() {
    let evidence = Evidence { kind: EvidenceKind::LeaseExpiry, at: NOW, detail: "silent".to_owned() };
    let status = |phase, evidence: &[Evidence]| {
        Edit::Incident(Box::new(IncidentStatus {
            phase,
            evidence: evidence.to_vec(),
            ..IncidentStatus::default()
        }))
    };
    let mut tree = json!({ "metadata": { "name": "n1-b1" }, "spec": { "nodeName": "n1" } });
    let bench = Bench::controller();
    check(
        &bench,
        Kind::NodeIncident,
        &mut tree,
        &status(IncidentPhase::Fenced, std::slice::from_ref(&evidence)),
        &expect![[r#"
            put
            status.evidence[0].at: "2026-05-28T20:27:00Z"
            status.evidence[0].detail: "silent"
            status.evidence[0].kind: "lease-expiry"
            status.phase: "Fenced"
        "#]],
    );
    check(
        &bench,
        Kind::NodeIncident,
        &mut tree,
        &status(IncidentPhase::Dead, &[evidence]),
        &expect![[r#"
            refused: NodeIncident.mainstay.dev "n1-b1" is invalid: status.phase: Forbidden: may not go back from Fenced to Dead
        "#]],
    );
    check(
        &bench,
        Kind::NodeIncident,
        &mut tree,
        &status(IncidentPhase::Recovering, &[]),
        &expect![[r#"
        refused: NodeIncident.mainstay.dev "n1-b1" is invalid: status.evidence: Forbidden: recorded evidence may not be removed
    "#]],
    );
}

#[test]
fn ct07_a_node_writes_only_what_is_its_own() {
    let stranger = Bench::new(agent("n2", "u2"));
    let heir = Bench::new(agent("n1", "another machine"));
    let report = || report(PodPhase::Running, true);
    let mut told = String::new();
    told += &stranger.edited(Kind::Pod, &mut db0(), &report());
    told += &heir.edited(Kind::Pod, &mut db0(), &report());
    let node_report = || Edit::NodeReport(Box::default());
    told += &stranger.edited(Kind::Node, &mut node("n1", "u1", "b1"), &node_report());
    told += &heir.edited(Kind::Node, &mut node("n1", "u1", "b1"), &node_report());
    told += &Bench::node().edited(Kind::Node, &mut node("n1", "u1", "b1"), &swap(UNREACHABLE, NOT_READY));
    told += &Bench::node().edited(Kind::Node, &mut node("n1", "u1", "b1"), &Edit::RecordBoot("b9".into()));
    expect![[r#"
        refused: pods "db-0" is forbidden: node "n2" can only update pod status for pods with spec.nodeName set to itself
        refused: pods "db-0" is forbidden: node "n1" can only update pod status for pods with spec.nodeName set to itself
        refused: nodes "n1" is forbidden: node "n2" is not allowed to modify node "n1"
        refused: nodes "n1" is forbidden: node "n1" is not allowed to modify node "n1"
        refused: nodes "n1" is forbidden: node "n1" is not allowed to modify taints
        refused: nodes "n1" is forbidden: node "n1" is not allowed to modify node "n1"
    "#]]
    .assert_eq(&told);
    assert!(matches!(Bench::new(Caller::User).edit(Kind::Pod, &mut db0(), &report()), Ok(Effect::Put)));
}

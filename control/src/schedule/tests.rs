//! Decisions of the scheduler, as text, by rule and case.

use expect_test::{Expect, expect};

use super::{BINDINGS_MAX, Scheduler};
use crate::text::{Story, check, check_touched};
use crate::{Decision, Verb};
use api::edit::Edit;
use api::view::View;

#[track_caller]
fn check_all(text: &str, golden: Expect) {
    check(&Scheduler, "cluster", text, golden);
}

/// Pods and the nodes they are bound to, in order.
fn bindings(decision: &Decision) -> Vec<(String, String)> {
    let binding = |verb: &Verb| {
        let Verb::Edit(key, Edit::Bind { node, .. }) = verb else { return None };
        Some((key.name.to_string(), node.to_string()))
    };
    decision.actions.iter().filter_map(|a| binding(&a.verb)).collect()
}

// === stock ===

#[test]
fn binds_a_pod_to_the_node_that_fits() {
    check_all(
        "node n1\npod default/a",
        expect![[r#"
        edit pod/default/a: Bind { node: "n1", node_uid: "uid-n1" } if node/n1 is uid-n1
    "#]],
    );
}

#[test]
fn says_each_reason_with_its_count_once_per_change() {
    let world = "now 50s
         node n1 unschedulable
         node n2 taint=dedicated=x:NoSchedule
         node n3 taint=dedicated=x:NoSchedule
         node n4
         node n5 label=disk=ssd allocatable=cpu=1
         node n6 label=disk=ssd full";
    let pod = "pod default/a select=disk=ssd requests=cpu=2,memory=1Gi";
    check_all(
        &format!("{world}\n{pod}"),
        expect![[r#"
        edit pod/default/a: PodScheduled=False Unschedulable 0/6 nodes are available: 1 Too many pods, 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) were unschedulable, 2 Insufficient cpu, 2 Insufficient memory, 2 node(s) had untolerated taint {dedicated: x}. @50000
        note pod/default/a FailedScheduling: 0/6 nodes are available: 1 Too many pods, 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) were unschedulable, 2 Insufficient cpu, 2 Insufficient memory, 2 node(s) had untolerated taint {dedicated: x}.
        why pod/default/a FailedScheduling: 0/6 nodes are available: 1 Too many pods, 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) were unschedulable, 2 Insufficient cpu, 2 Insufficient memory, 2 node(s) had untolerated taint {dedicated: x}.
    "#]],
    );
}

#[test]
fn a_reason_that_is_said_is_not_said_again() {
    let mut story = Story::read("now 50s\nnode n1 unschedulable\npod default/a");
    let first = story.decide(&Scheduler, "cluster").actions.swap_remove(0);
    let Verb::Edit(_, Edit::PodConditions(said)) = first.verb else { panic!("nothing is said: {first}") };
    let mut pod = (*story.world.pod(&"default".into(), &"a".into()).expect("the pod is there").view).clone();
    pod.status.conditions = said;
    let view = View::Pod(pod.into());
    let next = story.world.revision().next();
    story.world.fold(&view.key(), Some(view), next, story.now);
    let decision = story.decide(&Scheduler, "cluster");
    assert!(decision.actions.is_empty());
    assert!(decision.why.is_some());
}

#[test]
fn no_nodes_at_all() {
    check_all(
        "pod default/a",
        expect![[r#"
        edit pod/default/a: PodScheduled=False Unschedulable no nodes available to schedule pods
        note pod/default/a FailedScheduling: no nodes available to schedule pods
        why pod/default/a FailedScheduling: no nodes available to schedule pods
    "#]],
    );
}

#[test]
fn a_pod_counts_what_its_containers_ask_for_and_what_is_taken() {
    check_all(
        "node n1 allocatable=cpu=2,example.com/gpu=1
         pod default/there on n1 requests=cpu=1500m
         pod default/ended on n1 phase=Failed requests=cpu=2
         pod default/fits requests=cpu=500m,example.com/gpu=1
         pod default/late requests=cpu=1m created=1s",
        expect![[r#"
            edit pod/default/fits: Bind { node: "n1", node_uid: "uid-n1" } if node/n1 is uid-n1
            edit pod/default/late: PodScheduled=False Unschedulable 0/1 nodes are available: 1 Insufficient cpu.
            note pod/default/late FailedScheduling: 0/1 nodes are available: 1 Insufficient cpu.
            why pod/default/late FailedScheduling: 0/1 nodes are available: 1 Insufficient cpu.
        "#]],
    );
}

#[test]
fn host_ports_are_taken_once_per_node() {
    check_all(
        "node n1
         node n2
         pod default/there on n1 host-port=80
         pod default/a host-port=80
         pod default/b host-port=80 created=1s",
        expect![[r#"
            edit pod/default/a: Bind { node: "n2", node_uid: "uid-n2" } if node/n2 is uid-n2
            edit pod/default/b: PodScheduled=False Unschedulable 0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports.
            note pod/default/b FailedScheduling: 0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports.
            why pod/default/b FailedScheduling: 0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports.
        "#]],
    );
}

#[test]
fn greater_priority_goes_first_then_age() {
    let story = Story::read(
        "now 9s
         node n1
         pod default/young created=3s
         pod default/old created=1s
         pod default/great created=5s priority=10",
    );
    let order: Vec<String> =
        bindings(&story.decide(&Scheduler, "cluster")).into_iter().map(|(pod, _)| pod).collect();
    assert_eq!(order, ["great", "old", "young"]);
}

#[test]
fn one_decision_never_overfills_a_node() {
    let pods: String =
        (0..100).map(|i| format!("pod default/p{i} owner=ReplicaSet/web requests=cpu=1\n")).collect();
    let story = Story::read(&format!("node n1 allocatable=cpu=3\nnode n2 allocatable=cpu=2\n{pods}"));
    let bound = bindings(&story.decide(&Scheduler, "cluster"));
    let on = |name: &str| bound.iter().filter(|(_, node)| node == name).count();
    assert_eq!((on("n1"), on("n2")), (3, 2));
}

#[test]
fn a_decision_has_a_limit() {
    let pods: String = (0..300).map(|i| format!("pod default/p{i}\n")).collect();
    let story = Story::read(&format!("node n1\nnode n2\nnode n3\n{pods}"));
    assert_eq!(bindings(&story.decide(&Scheduler, "cluster")).len(), BINDINGS_MAX);
}

#[test]
fn pods_of_one_owner_are_spread_before_room_counts() {
    let pods: String = (0..6)
        .map(|i| format!("pod default/p{i} owner=ReplicaSet/web requests=cpu=100m,memory=1Mi\n"))
        .collect();
    let story = Story::read(&format!(
        "node n1 allocatable=cpu=64,memory=64Gi\nnode n2 allocatable=cpu=1,memory=1Gi\nnode n3 allocatable=cpu=4,memory=4Gi\n{pods}"
    ));
    let bound = bindings(&story.decide(&Scheduler, "cluster"));
    for node in ["n1", "n2", "n3"] {
        assert_eq!(bound.iter().filter(|(_, n)| n == node).count(), 2, "{bound:?}");
    }
}

#[test]
fn a_soft_taint_is_avoided() {
    check_all(
        "node n1 taint=slow=x:PreferNoSchedule\nnode n2\npod default/a",
        expect![[r#"
        edit pod/default/a: Bind { node: "n2", node_uid: "uid-n2" } if node/n2 is uid-n2
    "#]],
    );
}

#[test]
fn claims_that_are_missing_unbound_or_lost() {
    check_all(
        "node n1\npod default/a claim=data",
        expect![[r#"
        edit pod/default/a: PodScheduled=False Unschedulable 0/1 nodes are available: persistentvolumeclaim "data" not found.
        note pod/default/a FailedScheduling: 0/1 nodes are available: persistentvolumeclaim "data" not found.
        why pod/default/a FailedScheduling: 0/1 nodes are available: persistentvolumeclaim "data" not found.
    "#]],
    );
    check_all(
        "node n1\nclaim default/data\npod default/a claim=data",
        expect![[r#"
        edit pod/default/a: PodScheduled=False Unschedulable 0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.
        note pod/default/a FailedScheduling: 0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.
        why pod/default/a FailedScheduling: 0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.
    "#]],
    );
    check_all(
        "node n1\nclaim default/data volume=pv0\npod default/a claim=data",
        expect![[r#"
        edit pod/default/a: PodScheduled=False Unschedulable 0/1 nodes are available: 1 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s).
        note pod/default/a FailedScheduling: 0/1 nodes are available: 1 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s).
        why pod/default/a FailedScheduling: 0/1 nodes are available: 1 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s).
    "#]],
    );
}

#[test]
fn p34_a_local_volume_decides_the_node() {
    check_all(
        "node n1
         node n2
         claim default/data volume=pv0 mode=RWO
         volume pv0 mode=RWO only=n3
         pod default/a claim=data",
        expect![[r#"
            edit pod/default/a: PodScheduled=False Unschedulable 0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity.
            note pod/default/a FailedScheduling: 0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity.
            why pod/default/a FailedScheduling: 0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity.
        "#]],
    );
}

#[test]
fn the_attach_limit_counts_volumes_and_not_pods() {
    check_all(
        "node n1 allocatable=attachable-volumes-csi-csi.example=1
         claim default/one volume=pv1 mode=RWX
         claim default/two volume=pv2 mode=RWX
         volume pv1 handle=h1 mode=RWX
         volume pv2 handle=h2 mode=RWX
         pod default/there on n1 claim=one
         pod default/same claim=one
         pod default/other claim=two",
        expect![[r#"
            edit pod/default/same: Bind { node: "n1", node_uid: "uid-n1" } if node/n1 is uid-n1
            edit pod/default/other: PodScheduled=False Unschedulable 0/1 nodes are available: 1 node(s) exceed max volume count.
            note pod/default/other FailedScheduling: 0/1 nodes are available: 1 node(s) exceed max volume count.
            why pod/default/other FailedScheduling: 0/1 nodes are available: 1 node(s) exceed max volume count.
        "#]],
    );
}

#[test]
fn rwop_in_use_is_unschedulable_in_upstreams_words() {
    check_all(
        "profile kubernetes
         node n1
         node n2
         claim default/data volume=pv0 mode=RWOP
         volume pv0 handle=h0 mode=RWOP
         pod default/there on n1 claim=data terminating
         pod default/a claim=data",
        expect![[r#"
            edit pod/default/a: PodScheduled=False Unschedulable 0/2 nodes are available: 2 node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode.
            note pod/default/a FailedScheduling: 0/2 nodes are available: 2 node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode.
            why pod/default/a FailedScheduling: 0/2 nodes are available: 2 node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode.
        "#]],
    );
}

#[test]
fn stock_binds_an_rwo_pod_although_another_node_has_the_volume() {
    check_all(
        "profile kubernetes
         node n1
         node n2 label=disk=ssd
         claim default/data volume=pv0 mode=RWO
         volume pv0 handle=h0 mode=RWO
         pod default/there on n1 claim=data
         pod default/a claim=data select=disk=ssd",
        expect![[r#"
            edit pod/default/a: Bind { node: "n2", node_uid: "uid-n2" } if node/n2 at 2
        "#]],
    );
}

#[test]
fn another_schedulers_pods_and_terminating_ones_are_left() {
    check_all(
        "node n1\npod default/a scheduler=mine\npod default/b terminating",
        expect![[r#"
        rest
    "#]],
    );
}

// === ours ===

/// A pod that tolerates everything and has no choice.
const WILLING: &str = "pod default/a tolerate=* select=disk=ssd";

#[test]
fn p13_nothing_is_bound_to_a_node_with_an_open_incident() {
    for phase in ["Suspect", "Dead", "Fencing", "Fenced", "Recovering"] {
        let story = Story::read(&format!("node n1 label=disk=ssd\nincident n1 phase={phase}\n{WILLING}"));
        assert!(bindings(&story.decide(&Scheduler, "cluster")).is_empty(), "{phase}");
    }
    check_all(
        &format!("node n1 label=disk=ssd\nincident n1 phase=Suspect\n{WILLING}"),
        expect![[r#"
        edit pod/default/a: PodScheduled=False Unschedulable 0/1 nodes are available: 1 node(s) had an open incident.
        note pod/default/a FailedScheduling: 0/1 nodes are available: 1 node(s) had an open incident.
        why pod/default/a FailedScheduling: 0/1 nodes are available: 1 node(s) had an open incident.
    "#]],
    );
    check_all(
        &format!("node n1 label=disk=ssd\nincident n1 phase=Closed\n{WILLING}"),
        expect![[r#"
        edit pod/default/a: Bind { node: "n1", node_uid: "uid-n1" } if node/n1 is uid-n1
    "#]],
    );
}

#[test]
fn p13_nothing_is_bound_to_a_node_that_is_not_ready_marked_or_about_to_reboot() {
    check_all(
        &format!(
            "node n1 label=disk=ssd ready=False
             node n2 label=disk=ssd taint=node.kubernetes.io/out-of-service=mainstay:NoSchedule
             node n3 label=disk=ssd boot=b1 annotation=mainstay.dev/reboot-announced=b1@1970-01-01T00:00:10Z
             {WILLING}"
        ),
        expect![[r#"
            edit pod/default/a: PodScheduled=False Unschedulable 0/3 nodes are available: 1 node(s) were about to reboot, 1 node(s) were not ready, 1 node(s) were out of service.
            note pod/default/a FailedScheduling: 0/3 nodes are available: 1 node(s) were about to reboot, 1 node(s) were not ready, 1 node(s) were out of service.
            why pod/default/a FailedScheduling: 0/3 nodes are available: 1 node(s) were about to reboot, 1 node(s) were not ready, 1 node(s) were out of service.
        "#]],
    );
}

#[test]
fn p13_daemon_pods_go_by_stocks_rules() {
    check_all(
        "node n1 ready=False
         incident n1 phase=Suspect
         pod default/log-a owner=DaemonSet/log tolerate=* pinned=n1",
        expect![[r#"
            edit pod/default/log-a: Bind { node: "n1", node_uid: "uid-n1" } if node/n1 is uid-n1
        "#]],
    );
}

#[test]
fn a_daemon_pod_gets_its_node_wherever_it_stands() {
    let nodes: String = (0..200).map(|i| format!("node n{i}\n")).collect();
    let story = Story::read(&format!("{nodes}pod default/log-a owner=DaemonSet/log pinned=n77"));
    let bound = bindings(&story.decide(&Scheduler, "cluster"));
    assert_eq!(bound, [("log-a".to_owned(), "n77".to_owned())]);
}

#[test]
fn p13_is_not_stock() {
    check_all(
        &format!("profile kubernetes\nnode n1 label=disk=ssd ready=False\n{WILLING}"),
        expect![[r#"
        edit pod/default/a: Bind { node: "n1", node_uid: "uid-n1" } if node/n1 is uid-n1
    "#]],
    );
}

#[test]
fn s1_an_exclusive_pod_is_bound_to_its_node_as_it_was_looked_at() {
    check_all(
        "node n1 rev=7\npod default/db-0 owner=StatefulSet/db",
        expect![[r#"
        edit pod/default/db-0: Bind { node: "n1", node_uid: "uid-n1" } if node/n1 at 7
    "#]],
    );
}

#[test]
fn s1_a_tombstone_of_the_identity_holds_and_says_why() {
    let world = "node n1
         node n2
         tombstone u-old pod=default/db-0 node=n1 boot=b1
         pod default/db-0 owner=StatefulSet/db
         pod default/db-1 owner=StatefulSet/db";
    check_all(
        world,
        expect![[r#"
        edit pod/default/db-1: Bind { node: "n1", node_uid: "uid-n1" } if node/n1 at 1
        edit pod/default/db-0: PodScheduled=False Unschedulable 0/2 nodes are available: pod default/db-0 (uid u-old) may still run on node n1; bound when the node reports it stopped or there is evidence that the node cannot act.
        note pod/default/db-0 FailedScheduling: 0/2 nodes are available: pod default/db-0 (uid u-old) may still run on node n1; bound when the node reports it stopped or there is evidence that the node cannot act.
        why pod/default/db-0 FailedScheduling: 0/2 nodes are available: pod default/db-0 (uid u-old) may still run on node n1; bound when the node reports it stopped or there is evidence that the node cannot act.
    "#]],
    );
    check_all(
        &format!("flaw no-tombstone\n{world}"),
        expect![[r#"
        edit pod/default/db-0: Bind { node: "n1", node_uid: "uid-n1" } if node/n1 at 1
        edit pod/default/db-1: Bind { node: "n2", node_uid: "uid-n2" } if node/n2 at 2
    "#]],
    );
}

#[test]
fn s1_a_tombstone_of_a_claim_holds_unless_many_nodes_may_use_it() {
    let world = |mode: &str| {
        format!(
            "node n1
             claim default/data volume=pv0 mode={mode}
             volume pv0 handle=h0 mode={mode}
             tombstone u-old pod=default/old node=n2 claims=data
             pod default/a claim=data"
        )
    };
    check_all(
        &world("RWO"),
        expect![[r#"
        edit pod/default/a: PodScheduled=False Unschedulable 0/1 nodes are available: pod default/old (uid u-old) may still run on node n2; bound when the node reports it stopped or there is evidence that the node cannot act.
        note pod/default/a FailedScheduling: 0/1 nodes are available: pod default/old (uid u-old) may still run on node n2; bound when the node reports it stopped or there is evidence that the node cannot act.
        why pod/default/a FailedScheduling: 0/1 nodes are available: pod default/old (uid u-old) may still run on node n2; bound when the node reports it stopped or there is evidence that the node cannot act.
    "#]],
    );
    check_all(
        &world("RWX"),
        expect![[r#"
        edit pod/default/a: Bind { node: "n1", node_uid: "uid-n1" } if node/n1 is uid-n1
    "#]],
    );
}

/// A claim for one node, used by `old` on n1; a pod that wants it.
fn held(old: &str, more: &str) -> String {
    format!(
        "node n1 boot=b1
         node n2
         claim default/data volume=pv0 mode=RWO
         volume pv0 handle=h0 mode=RWO
         pod default/old on n1 claim=data {old}
         {more}
         pod default/a claim=data"
    )
}

#[test]
fn p22_a_pod_follows_a_volume_that_is_in_use() {
    check_all(
        &held("running", ""),
        expect![[r#"
        edit pod/default/a: Bind { node: "n1", node_uid: "uid-n1" } if node/n1 at 1
    "#]],
    );
}

#[test]
fn p22_a_volume_in_use_on_a_suspected_node_is_waited_for() {
    check_all(
        &held("running terminating", "incident n1 phase=Dead"),
        expect![[r#"
        edit pod/default/a: PodScheduled=False Unschedulable 0/2 nodes are available: 1 node(s) could not get a volume that a pod on node n1 may still use, 1 node(s) had an open incident.
        note pod/default/a FailedScheduling: 0/2 nodes are available: 1 node(s) could not get a volume that a pod on node n1 may still use, 1 node(s) had an open incident.
        why pod/default/a FailedScheduling: 0/2 nodes are available: 1 node(s) could not get a volume that a pod on node n1 may still use, 1 node(s) had an open incident.
    "#]],
    );
}

#[test]
fn s1_failed_by_us_is_no_proof_that_it_stopped() {
    // The containers were running when they were last heard of.
    let failed = "phase=Failed running condition=DisruptionTarget:True";
    check_all(
        &held(failed, "incident n1 phase=Dead"),
        expect![[r#"
        edit pod/default/a: PodScheduled=False Unschedulable 0/2 nodes are available: 1 node(s) could not get a volume that a pod on node n1 may still use, 1 node(s) had an open incident.
        note pod/default/a FailedScheduling: 0/2 nodes are available: 1 node(s) could not get a volume that a pod on node n1 may still use, 1 node(s) had an open incident.
        why pod/default/a FailedScheduling: 0/2 nodes are available: 1 node(s) could not get a volume that a pod on node n1 may still use, 1 node(s) had an open incident.
    "#]],
    );
    check_all(
        &held(failed, "incident n1 phase=Fenced evidence=lease-expiry@1s"),
        expect![[r#"
        edit pod/default/a: Bind { node: "n2", node_uid: "uid-n2" } if node/n2 at 2
    "#]],
    );
}

#[test]
fn s1_failed_by_its_node_has_stopped() {
    check_all(
        &held("phase=Failed ended=1", "incident n1 phase=Suspect"),
        expect![[r#"
        edit pod/default/a: Bind { node: "n2", node_uid: "uid-n2" } if node/n2 at 2
    "#]],
    );
}

#[test]
fn two_pods_of_one_claim_in_one_decision_go_to_one_node() {
    let story = Story::read(
        "node n1
         node n2
         claim default/data volume=pv0 mode=RWO
         volume pv0 handle=h0 mode=RWO
         pod default/a claim=data
         pod default/b claim=data",
    );
    let bound = bindings(&story.decide(&Scheduler, "cluster"));
    assert_eq!((bound.len(), &bound[0].1), (2, &bound[1].1));
}

#[test]
fn ties_are_broken_the_same_way_every_time() {
    let story = Story::read("node n1\nnode n2\nnode n3\npod default/a\npod default/b\npod default/c");
    assert_eq!(story.decide(&Scheduler, "cluster"), story.decide(&Scheduler, "cluster"));
}

#[test]
fn changes_touch_only_while_a_pod_waits() {
    check_touched(
        &Scheduler,
        "pod default/a\nnode n1",
        expect![[r#"
        cluster
    "#]],
    );
    check_touched(&Scheduler, "pod default/a on n1\nnode n1", expect![[""]]);
    check_touched(
        &Scheduler,
        "now 9s\nnode n1 heartbeat=1s\npod default/a\nnode n1 heartbeat=2s",
        expect![[""]],
    );
    check_touched(
        &Scheduler,
        "pod default/a\npod default/b on n1\npod default/b on n1 unready",
        expect![[""]],
    );
    check_touched(
        &Scheduler,
        "pod default/a\npod default/b on n1\npod default/b on n1 phase=Failed",
        expect![[r#"
        cluster
    "#]],
    );
}

use expect_test::expect;

use crate::text::{Story, check, check_touched};
use crate::workload::replica_set::ReplicaSets;

#[track_caller]
fn check_web(text: &str, golden: expect_test::Expect) {
    check(&ReplicaSets, "replicaset/default/web", text, golden);
}

#[test]
fn ct10_an_empty_set_begins_with_one() {
    check_web(
        "replicaset default/web replicas=3",
        expect![[r#"
        create pod/default/web-7hl4d for replicaset/default/web if replicaset/default/web at 1
    "#]],
    );
}

#[test]
fn ct10_the_next_batch_is_one_more_than_what_exists() {
    check_web(
        "replicaset default/web replicas=9
         pod default/web-a on n1 owner=ReplicaSet/web ready
         pod default/web-b on n1 owner=ReplicaSet/web
         pod default/web-c owner=ReplicaSet/web",
        expect![[r#"
            create pod/default/web-s89fj for replicaset/default/web if replicaset/default/web at 1
            create pod/default/web-m4gvp for replicaset/default/web if replicaset/default/web at 1
            create pod/default/web-xdr64 for replicaset/default/web if replicaset/default/web at 1
            create pod/default/web-4j5ng for replicaset/default/web if replicaset/default/web at 1
            edit replicaset/default/web: Counts(WorkloadStatus { replicas: 3, ready_replicas: 1, available_replicas: 1, observed_generation: Generation(0) })
        "#]],
    );
}

#[test]
fn ct10_a_batch_has_500_at_most() {
    let pods: Vec<String> = (0..600).map(|i| format!("pod default/web-{i} owner=ReplicaSet/web\n")).collect();
    let story = Story::read(&format!("replicaset default/web replicas=9000\n{}", pods.concat()));
    let decision = story.decide(&ReplicaSets, "replicaset/default/web");
    // The last action is the status.
    assert_eq!(decision.actions.len(), 501);
}

#[test]
fn ct10_terminating_and_ended_pods_are_replaced_and_left() {
    check_web(
        "replicaset default/web replicas=3
         pod default/web-a on n1 owner=ReplicaSet/web ready
         pod default/web-b on n2 owner=ReplicaSet/web ready terminating
         pod default/web-c on n2 owner=ReplicaSet/web phase=Failed
         pod default/web-d on n2 owner=ReplicaSet/web phase=Succeeded",
        expect![[r#"
            create pod/default/web-2qkxx for replicaset/default/web if replicaset/default/web at 1
            create pod/default/web-vv4hs for replicaset/default/web if replicaset/default/web at 1
            edit replicaset/default/web: Counts(WorkloadStatus { replicas: 1, ready_replicas: 1, available_replicas: 1, observed_generation: Generation(0) })
        "#]],
    );
}

#[test]
fn ct10_pods_of_another_uid_do_not_count() {
    check_web(
        "pod default/web-a on n1 owner=ReplicaSet/web ready
         replicaset default/web uid=u2 replicas=1",
        expect![[r#"
            create pod/default/web-8p6x7 for replicaset/default/web if replicaset/default/web at 2
        "#]],
    );
}

#[test]
fn ct10_scaling_down_takes_the_expendable_first() {
    // Without node, then pending, not ready, cheap, doubled up, ready for a short time; the other three stay.
    check_web(
        "now 1000s
         replicaset default/web replicas=3
         pod default/web-ok on n1 owner=ReplicaSet/web condition=Ready:True@10s created=1s
         pod default/web-ok2 on n3 owner=ReplicaSet/web condition=Ready:True@10s created=1s
         pod default/web-doubled on n1 owner=ReplicaSet/web condition=Ready:True@999s created=1s
         pod default/web-cheap on n2 owner=ReplicaSet/web condition=Ready:True@10s annotation=controller.kubernetes.io/pod-deletion-cost=-5
         pod default/web-unready on n2 owner=ReplicaSet/web unready
         pod default/web-pending on n2 owner=ReplicaSet/web phase=Pending
         pod default/web-unbound owner=ReplicaSet/web
         pod default/web-dear on n1 owner=ReplicaSet/web condition=Ready:True@10s annotation=controller.kubernetes.io/pod-deletion-cost=7",
        expect![[r#"
            delete pod/default/web-unbound if replicaset/default/web at 1
            delete pod/default/web-pending if replicaset/default/web at 1
            delete pod/default/web-unready if replicaset/default/web at 1
            delete pod/default/web-cheap if replicaset/default/web at 1
            delete pod/default/web-doubled if replicaset/default/web at 1
            edit replicaset/default/web: Counts(WorkloadStatus { replicas: 8, ready_replicas: 5, available_replicas: 5, observed_generation: Generation(0) })
        "#]],
    );
}

#[test]
fn ct10_pods_of_the_same_deployment_count_as_doubled_up() {
    check_web(
        "replicaset default/web replicas=1 owner=Deployment/app label=app=web
         replicaset default/old replicas=1 owner=Deployment/app
         pod default/web-a on n1 owner=ReplicaSet/web condition=Ready:True
         pod default/web-b on n2 owner=ReplicaSet/web condition=Ready:True
         pod default/old-a on n2 owner=ReplicaSet/old condition=Ready:True",
        expect![[r#"
            delete pod/default/web-b if replicaset/default/web at 1
            edit replicaset/default/web: Counts(WorkloadStatus { replicas: 2, ready_replicas: 2, available_replicas: 2, observed_generation: Generation(0) })
        "#]],
    );
}

#[test]
fn a_set_that_is_as_it_should_be_rests() {
    let status =
        "status.replicas:=1 status.readyReplicas:=1 status.availableReplicas:=1 status.observedGeneration:=2";
    check_web(
        &format!(
            "replicaset default/web replicas=1 generation=2 {status}\npod default/web-a on n1 owner=ReplicaSet/web ready"
        ),
        expect![[r#"
            rest
        "#]],
    );
}

#[test]
fn a_set_that_is_deleted_makes_nothing() {
    check_web(
        "replicaset default/web replicas=3 terminating status.observedGeneration:=0",
        expect![[r#"
        rest
    "#]],
    );
}

#[test]
fn names_are_the_same_when_decided_twice() {
    let story = Story::read("replicaset default/web replicas=3\npod default/web-a owner=ReplicaSet/web");
    let decide = || story.decide(&ReplicaSets, "replicaset/default/web");
    assert_eq!(decide(), decide());
}

#[test]
fn a_pod_touches_its_owner_and_an_orphan_the_set_that_selects_it() {
    check_touched(
        &ReplicaSets,
        "replicaset default/web replicas=1\npod default/web-a owner=ReplicaSet/web",
        expect![[r#"
            replicaset/default/web
        "#]],
    );
    check_touched(
        &ReplicaSets,
        "replicaset default/web replicas=1\npod default/stray label=app=web",
        expect![[r#"
            replicaset/default/web
        "#]],
    );
}

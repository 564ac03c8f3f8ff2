use expect_test::expect;

use crate::text::{check, check_touched};
use crate::workload::stateful_set::StatefulSets;

#[track_caller]
fn check_db(text: &str, golden: expect_test::Expect) {
    check(&StatefulSets, "statefulset/default/db", text, golden);
}

#[test]
fn ct20_ordered_begins_with_ordinal_0_and_its_claim_first() {
    check_db(
        "statefulset default/db replicas=3 template=data",
        expect![[r#"
        create persistentvolumeclaim/default/data-db-0 for statefulset/default/db if statefulset/default/db at 1
        create pod/default/db-0 for statefulset/default/db if statefulset/default/db at 1
    "#]],
    );
}

#[test]
fn ct20_ordered_stops_at_a_pod_that_is_not_ready() {
    check_db(
        "statefulset default/db replicas=3 status.replicas:=1
         pod default/db-0 on n1 owner=StatefulSet/db unready",
        expect![[r#"
            why pod/default/db-0 OrdinalNotReady: the pod is not Running and Ready yet
        "#]],
    );
}

#[test]
fn ct20_ordered_goes_on_after_a_ready_pod() {
    check_db(
        "statefulset default/db replicas=3 template=data
         claim default/data-db-1 volume=pv1
         pod default/db-0 on n1 owner=StatefulSet/db ready",
        expect![[r#"
            create pod/default/db-1 for statefulset/default/db if statefulset/default/db at 1
            edit statefulset/default/db: Counts(WorkloadStatus { replicas: 1, ready_replicas: 1, available_replicas: 1, observed_generation: Generation(0) })
        "#]],
    );
}

#[test]
fn ct20_parallel_makes_all_but_never_two_of_one_ordinal() {
    check_db(
        "statefulset default/db replicas=4 parallel
         pod default/db-0 on n1 owner=StatefulSet/db unready
         pod default/db-2 on n1 owner=StatefulSet/db ready terminating",
        expect![[r#"
            create pod/default/db-1 for statefulset/default/db if statefulset/default/db at 1
            create pod/default/db-3 for statefulset/default/db if statefulset/default/db at 1
            edit statefulset/default/db: Counts(WorkloadStatus { replicas: 2, ready_replicas: 1, available_replicas: 1, observed_generation: Generation(0) })
            why pod/default/db-0 OrdinalNotReady: the pod is not Running and Ready yet
        "#]],
    );
}

#[test]
fn ct20_scaling_down_goes_in_reverse_one_at_a_time() {
    check_db(
        "statefulset default/db replicas=1
         pod default/db-0 on n1 owner=StatefulSet/db ready
         pod default/db-1 on n1 owner=StatefulSet/db ready
         pod default/db-2 on n1 owner=StatefulSet/db ready",
        expect![[r#"
            delete pod/default/db-2 if statefulset/default/db at 1
            edit statefulset/default/db: Counts(WorkloadStatus { replicas: 3, ready_replicas: 3, available_replicas: 3, observed_generation: Generation(0) })
        "#]],
    );
}

#[test]
fn ct20_scaling_down_waits_for_the_one_above_and_for_the_ones_that_stay() {
    check_db(
        "statefulset default/db replicas=1 status.replicas:=3 status.readyReplicas:=3 status.availableReplicas:=3
         pod default/db-0 on n1 owner=StatefulSet/db ready
         pod default/db-1 on n1 owner=StatefulSet/db ready
         pod default/db-2 on n1 owner=StatefulSet/db ready terminating",
        expect![[r#"
            why pod/default/db-2 OrdinalTerminating: the pod terminates; the next one goes when it has gone
        "#]],
    );
    check_db(
        "statefulset default/db replicas=1 status.replicas:=2 status.readyReplicas:=1 status.availableReplicas:=1
         pod default/db-0 on n1 owner=StatefulSet/db unready
         pod default/db-1 on n1 owner=StatefulSet/db ready",
        expect![[r#"
            why pod/default/db-0 OrdinalNotReady: the pod is not Running and Ready yet
        "#]],
    );
}

#[test]
fn ct20_parallel_scales_down_at_once() {
    check_db(
        "statefulset default/db replicas=0 parallel
         pod default/db-0 on n1 owner=StatefulSet/db unready
         pod default/db-1 on n1 owner=StatefulSet/db ready",
        expect![[r#"
            delete pod/default/db-1 if statefulset/default/db at 1
            delete pod/default/db-0 if statefulset/default/db at 1
            edit statefulset/default/db: Counts(WorkloadStatus { replicas: 2, ready_replicas: 1, available_replicas: 1, observed_generation: Generation(0) })
        "#]],
    );
}

#[test]
fn ct21_a_terminating_pod_blocks_its_ordinal_without_limit() {
    check_db(
        "now 100000s
         statefulset default/db replicas=1 status.replicas:=1
         pod default/db-0 on n1 owner=StatefulSet/db running unready terminating=90s",
        expect![[r#"
            why pod/default/db-0 OrdinalTerminating: the pod terminates; its successor is made when it has gone
        "#]],
    );
}

#[test]
fn ct21_a_claim_that_is_being_deleted_holds_its_ordinal() {
    check_db(
        "statefulset default/db replicas=1 template=data
         claim default/data-db-0 volume=pv0 terminating",
        expect![[r#"
            why persistentvolumeclaim/default/data-db-0 FailedCreate: pvc data-db-0 is being deleted
        "#]],
    );
}

#[test]
fn ct21_a_strangers_pod_of_the_name_is_waited_for() {
    check_db(
        "statefulset default/db replicas=1\npod default/db-0 on n1",
        expect![[r#"
        why pod/default/db-0 OrdinalTaken: a pod of this name that the set does not own is in the way
    "#]],
    );
}

#[test]
fn ct22_p39_a_failed_pod_is_recreated() {
    check_db(
        "statefulset default/db replicas=1 status.replicas:=1
         pod default/db-0 on n1 owner=StatefulSet/db phase=Failed ended=143",
        expect![[r#"
            note statefulset/default/db RecreatingFailedPod: StatefulSet default/db is recreating failed Pod db-0
            delete pod/default/db-0 if statefulset/default/db at 1
        "#]],
    );
}

#[test]
fn ct22_p39_a_succeeded_pod_is_recreated() {
    check_db(
        "statefulset default/db replicas=1 status.replicas:=1
         pod default/db-0 on n1 owner=StatefulSet/db phase=Succeeded ended=0",
        expect![[r#"
            note statefulset/default/db RecreatingTerminatedPod: StatefulSet default/db is recreating terminated Pod db-0
            delete pod/default/db-0 if statefulset/default/db at 1
        "#]],
    );
}

#[test]
fn ct22_a_failed_pod_that_terminates_is_waited_for() {
    check_db(
        "statefulset default/db replicas=1 status.replicas:=1
         pod default/db-0 on n1 owner=StatefulSet/db phase=Failed terminating",
        expect![[r#"
            why pod/default/db-0 OrdinalTerminating: the pod terminates; its successor is made when it has gone
        "#]],
    );
}

#[test]
fn claims_that_went_are_made_again_for_a_pod_that_has_not_started() {
    check_db(
        "statefulset default/db replicas=1 template=data status.replicas:=1
         pod default/db-0 owner=StatefulSet/db claim=data-db-0",
        expect![[r#"
            create persistentvolumeclaim/default/data-db-0 for statefulset/default/db if statefulset/default/db at 1
            why pod/default/db-0 OrdinalNotReady: the pod is not Running and Ready yet
        "#]],
    );
}

#[test]
fn ordinals_are_read_as_they_are_written() {
    check_db(
        "statefulset default/db replicas=1 status.replicas:=0
         pod default/db-00 on n1 owner=StatefulSet/db ready
         pod default/db-x on n1 owner=StatefulSet/db ready",
        expect![[r#"
            create pod/default/db-0 for statefulset/default/db if statefulset/default/db at 1
        "#]],
    );
}

#[test]
fn a_claim_that_went_touches_its_set() {
    check_touched(
        &StatefulSets,
        "statefulset default/db replicas=1 template=data
         claim default/data-db-0 volume=pv0
         gone persistentvolumeclaim/default/data-db-0",
        expect![[r#"
            statefulset/default/db
        "#]],
    );
}

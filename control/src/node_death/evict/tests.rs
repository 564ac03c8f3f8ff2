//! Evictions, by the rules' ids, and the rows of the decision table that belong here.

use expect_test::expect;

use super::Evict;
use crate::text::{check, check_touched};

/// A node that is unreachable since 100 s, and another.
fn world(profile: &str, now: &str, pod: &str) -> String {
    format!(
        "profile {profile}
        now {now}
        node n2
        node n1
        at 100s
        node n1 ready=Unknown taint=unreachable:NoSchedule@95s taint=unreachable:NoExecute@100s
        {pod}"
    )
}

#[test]
fn te03_every_no_execute_taint_counts() {
    let text =
        "now 100s\nnode n1 taint=mine=x:NoExecute@90s\npod default/a on n1 tolerate=mine=x:NoExecute:60";
    check(
        &Evict,
        "pod/default/a",
        text,
        expect![[r#"
        wake +50s
    "#]],
    );
    let text = "now 100s\nnode n1 taint=mine=x:NoSchedule@90s\npod default/a on n1";
    check(
        &Evict,
        "pod/default/a",
        text,
        expect![[r#"
        rest
    "#]],
    );
}

#[test]
fn te05_what_is_not_tolerated_is_evicted_now() {
    check(
        &Evict,
        "pod/default/a",
        &world("default", "100s", "pod default/a on n1"),
        expect![[r#"
        note pod/default/a TaintManagerEviction: Marking for deletion Pod default/a
        edit pod/default/a: DisruptionTarget=True DeletionByTaintManager Taint manager: deleting due to NoExecute taint @100000
        delete pod/default/a [taint_eviction_controller_pod_deletions_total]
    "#]],
    );
    check(
        &Evict,
        "pod/default/a",
        &world("kubernetes", "100s", "pod default/a on n1"),
        expect![[r#"
        note pod/default/a TaintManagerEviction: Marking for deletion Pod default/a
        edit pod/default/a: DisruptionTarget=True DeletionByTaintManager Taint manager: deleting due to NoExecute taint @100000
        delete pod/default/a [taint_eviction_controller_pod_deletions_total]
    "#]],
    );
}

#[test]
fn te06_the_shortest_toleration_in_use_counts() {
    let pod = "pod default/a on n1 tolerate=unreachable:NoExecute:200 tolerate=unreachable:NoExecute tolerate=other:NoExecute:5";
    check(
        &Evict,
        "pod/default/a",
        &world("default", "100s", pod),
        expect![[r#"
        wake +200s
    "#]],
    );
    check(
        &Evict,
        "pod/default/a",
        &world("kubernetes", "100s", pod),
        expect![[r#"
        wake +200s
    "#]],
    );
}

#[test]
fn te06_tolerated_without_limit_stays_for_ever() {
    let pod = "pod default/a on n1 tolerate=unreachable:NoExecute";
    check(
        &Evict,
        "pod/default/a",
        &world("default", "9000s", pod),
        expect![[r#"
        rest
    "#]],
    );
    check(
        &Evict,
        "pod/default/a",
        &world("kubernetes", "9000s", pod),
        expect![[r#"
        rest
    "#]],
    );
}

#[test]
fn te06_zero_and_less_is_now() {
    let pod = "pod default/a on n1 tolerate=unreachable:NoExecute:-5";
    check(
        &Evict,
        "pod/default/a",
        &world("default", "100s", pod),
        expect![[r#"
        note pod/default/a TaintManagerEviction: Marking for deletion Pod default/a
        edit pod/default/a: DisruptionTarget=True DeletionByTaintManager Taint manager: deleting due to NoExecute taint @100000
        delete pod/default/a [taint_eviction_controller_pod_deletions_total]
    "#]],
    );
}

#[test]
fn te07_a_second_taint_does_not_touch_a_count_under_leases() {
    let pod = "
        pod default/a on n1 tolerate=default tolerate=mine:NoExecute:10
        at 150s
        node n1 ready=Unknown taint=unreachable:NoExecute@100s taint=mine:NoExecute@150s
        ";
    check(
        &Evict,
        "pod/default/a",
        &world("kubernetes", "200s", pod),
        expect![[r#"
        wake +200s
    "#]],
    );
    // Ours: each taint has its own time.
    check(
        &Evict,
        "pod/default/a",
        &world("default", "155s", pod),
        expect![[r#"
        wake +5s
    "#]],
    );
}

#[test]
fn te07_a_count_begins_with_the_first_taint_that_limits_it() {
    let pod = "
        pod default/a on n1 tolerate=unreachable:NoExecute tolerate=mine:NoExecute:10
        at 150s
        node n1 ready=Unknown taint=unreachable:NoExecute@100s taint=mine:NoExecute@150s
        ";
    check(
        &Evict,
        "pod/default/a",
        &world("kubernetes", "155s", pod),
        expect![[r#"
        wake +5s
    "#]],
    );
    check(
        &Evict,
        "pod/default/a",
        &world("default", "155s", pod),
        expect![[r#"
        wake +5s
    "#]],
    );
}

#[test]
fn te07_keeps_the_time_over_a_swap() {
    let swap = |at: &str| {
        format!(
            "pod default/a on n1 tolerate=default\nat 150s\nnode n1 ready=False taint=not-ready:NoExecute@{at}"
        )
    };
    check(
        &Evict,
        "pod/default/a",
        &world("kubernetes", "200s", &swap("150s")),
        expect![[r#"
        wake +200s
    "#]],
    );
    check(
        &Evict,
        "pod/default/a",
        &world("default", "200s", &swap("100s")),
        expect![[r#"
        wake +200s
    "#]],
    );
}

#[test]
fn te12_under_leases_the_clock_is_this_processs_own() {
    let text = "
        profile kubernetes
        started 300s
        now 400s
        node n1 ready=Unknown taint=unreachable:NoExecute@100s
        pod default/a on n1 tolerate=default
        ";
    check(
        &Evict,
        "pod/default/a",
        text,
        expect![[r#"
        wake +200s
    "#]],
    );
    // Ours: a process that followed all along, whoever led, knows the taint's own time.
    let warm = text.replace("kubernetes", "default").replace("started 300s", "started 0s\n        at 100s");
    check(
        &Evict,
        "pod/default/a",
        &warm,
        expect![[r#"
        note pod/default/a TaintManagerEviction: Marking for deletion Pod default/a
        edit pod/default/a: DisruptionTarget=True DeletionByTaintManager Taint manager: deleting due to NoExecute taint @400000
        delete pod/default/a [taint_eviction_controller_pod_deletions_total]
    "#]],
    );
}

#[test]
fn te12_a_moment_without_taints_begins_the_count_anew() {
    let gap = "
        pod default/a on n1 tolerate=default
        at 150s
        node n1
        at 160s
        node n1 ready=Unknown taint=unreachable:NoExecute@160s
        ";
    check(
        &Evict,
        "pod/default/a",
        &world("kubernetes", "200s", gap),
        expect![[r#"
        wake +260s
    "#]],
    );
    check(
        &Evict,
        "pod/default/a",
        &world("default", "200s", gap),
        expect![[r#"
        wake +260s
    "#]],
    );
}

#[test]
fn te12_the_count_does_not_begin_before_the_pod_came() {
    let pod = "at 150s\npod default/a on n1 tolerate=default condition=PodScheduled:True@150s";
    check(
        &Evict,
        "pod/default/a",
        &world("kubernetes", "200s", pod),
        expect![[r#"
        wake +250s
    "#]],
    );
    check(
        &Evict,
        "pod/default/a",
        &world("default", "200s", pod),
        expect![[r#"
        wake +250s
    "#]],
    );
    let made = "at 150s\npod default/a on n1 tolerate=default created=150s";
    check(
        &Evict,
        "pod/default/a",
        &world("default", "200s", made),
        expect![[r#"
        wake +250s
    "#]],
    );
}

#[test]
fn te09_the_condition_is_not_written_twice() {
    let said = r#"condition=DisruptionTarget:True:DeletionByTaintManager:"Taint manager: deleting due to NoExecute taint""#;
    let pod = format!("pod default/a on n1 tolerate=default {said}");
    check(
        &Evict,
        "pod/default/a",
        &world("default", "400s", &pod),
        expect![[r#"
        note pod/default/a TaintManagerEviction: Marking for deletion Pod default/a
        delete pod/default/a [taint_eviction_controller_pod_deletions_total]
    "#]],
    );
}

#[test]
fn te14_who_is_going_is_left() {
    let pod = "pod default/a on n1 terminating";
    check(
        &Evict,
        "pod/default/a",
        &world("default", "100s", pod),
        expect![[r#"
        rest
    "#]],
    );
}

#[test]
fn te01_only_a_change_of_no_execute_taints_concerns_the_pods() {
    let text = "node n1 taint=mine:NoExecute\npod default/a on n1\npod default/b";
    check_touched(&Evict, &format!("{text}\nnode n1 ready=Unknown taint=mine:NoExecute"), expect![[""]]);
    check_touched(
        &Evict,
        &format!("{text}\nnode n1"),
        expect![[r#"
        pod/default/a
    "#]],
    );
    check_touched(
        &Evict,
        &format!("{text}\npod default/a on n1 tolerate=*"),
        expect![[r#"
        pod/default/a
    "#]],
    );
}

#[test]
fn p70_after_a_time_without_control_plane_all_counts_begin_at_its_return() {
    // The deadline passed an hour ago; the nodes have not been heard yet.
    let text = "
        started 4000s
        now 4000s
        node n1 ready=Unknown taint=unreachable:NoExecute@100s
        pod default/a on n1 tolerate=default
        pod default/b on n1
        ";
    check(
        &Evict,
        "pod/default/a",
        text,
        expect![[r#"
        wake +300s
    "#]],
    );
    // What is not tolerated at all waits until everybody had time to be heard.
    check(
        &Evict,
        "pod/default/b",
        text,
        expect![[r#"
        wake +6s
    "#]],
    );
}

#[test]
fn p69_a_brake_holds_evictions_that_come_of_silence() {
    let pod = "
        pod default/a on n1 tolerate=default
        incident n1 phase=Dead brake=Storm
        ";
    check(
        &Evict,
        "pod/default/a",
        &world("default", "500s", pod),
        expect![[r#"
        rest
    "#]],
    );
    // Silence that proves nothing is still silence.
    check(
        &Evict,
        "pod/default/a",
        &world("default", "500s", &pod.replace("Storm", "NotArmed")),
        expect![[r#"
        note pod/default/a TaintManagerEviction: Marking for deletion Pod default/a
        edit pod/default/a: DisruptionTarget=True DeletionByTaintManager Taint manager: deleting due to NoExecute taint @500000
        delete pod/default/a [taint_eviction_controller_pod_deletions_total]
    "#]],
    );
    // What a human set is no matter of silence.
    let human =
        format!("{pod}\nnode n1 ready=Unknown taint=unreachable:NoExecute@100s taint=mine:NoExecute@100s");
    check(
        &Evict,
        "pod/default/a",
        &world("default", "500s", &human),
        expect![[r#"
        note pod/default/a TaintManagerEviction: Marking for deletion Pod default/a
        edit pod/default/a: DisruptionTarget=True DeletionByTaintManager Taint manager: deleting due to NoExecute taint @500000
        delete pod/default/a [taint_eviction_controller_pod_deletions_total]
    "#]],
    );
    check_touched(
        &Evict,
        &world("default", "500s", pod),
        expect![[r#"
        pod/default/a
    "#]],
    );
}

#[test]
fn p73b_a_changed_toleration_counts_at_once() {
    let pod = "pod default/a on n1 tolerate=default\nat 120s\npod default/a on n1 tolerate=unreachable:NoExecute:30";
    check(
        &Evict,
        "pod/default/a",
        &world("default", "125s", pod),
        expect![[r#"
        wake +5s
    "#]],
    );
    check(
        &Evict,
        "pod/default/a",
        &world("kubernetes", "125s", pod),
        expect![[r#"
        wake +5s
    "#]],
    );
}

#[test]
fn out_of_service_by_hand_on_a_living_node_is_an_ordinary_eviction() {
    let text = "
        now 100s
        node n1 taint=out-of-service=nodeshutdown:NoExecute@100s
        pod default/db-0 on n1 owner=StatefulSet/db tolerate=default
        ";
    check(
        &Evict,
        "pod/default/db-0",
        text,
        expect![[r#"
        note pod/default/db-0 TaintManagerEviction: Marking for deletion Pod default/db-0
        edit pod/default/db-0: DisruptionTarget=True DeletionByTaintManager Taint manager: deleting due to NoExecute taint @100000
        delete pod/default/db-0 [taint_eviction_controller_pod_deletions_total]
    "#]],
    );
    // Our own mark is no NoExecute taint.
    let ours = text.replace("nodeshutdown:NoExecute", "mainstay:NoSchedule");
    check(
        &Evict,
        "pod/default/db-0",
        &ours,
        expect![[r#"
        rest
    "#]],
    );
}

use expect_test::expect;

use crate::text::{check, check_touched};
use crate::workload::daemon_set::DaemonSets;

#[track_caller]
fn check_log(text: &str, golden: expect_test::Expect) {
    check(&DaemonSets, "daemonset/default/log", text, golden);
}

/// The affinity that pins a daemon pod to n1.
const PINNED: &str = "pinned=n1";

#[test]
fn ct23_the_first_node_gets_the_first_pod() {
    check_log(
        "daemonset default/log\nnode n1\nnode n2",
        expect![[r#"
        create pod/default/log-bdtkb for daemonset/default/log if daemonset/default/log at 1 if node/n1 is uid-n1
    "#]],
    );
}

#[test]
fn ct23_batches_grow_with_what_runs() {
    check_log(
        "daemonset default/log
         node n1
         node n2
         node n3
         node n4
         pod default/log-a on n1 owner=DaemonSet/log",
        expect![[r#"
            create pod/default/log-446vb for daemonset/default/log if daemonset/default/log at 1 if node/n2 is uid-n2
            create pod/default/log-rlfwb for daemonset/default/log if daemonset/default/log at 1 if node/n3 is uid-n3
        "#]],
    );
}

#[test]
fn ct23_a_node_that_does_not_fit_gets_none() {
    check_log(
        "daemonset default/log select=disk=ssd
         node n1
         node n2 label=disk=ssd",
        expect![[r#"
            create pod/default/log-sdh6b for daemonset/default/log if daemonset/default/log at 1 if node/n2 is uid-n2
        "#]],
    );
}

#[test]
fn ct23_taints_that_are_not_tolerated_keep_away() {
    check_log(
        "daemonset default/log\nnode n1 taint=dedicated=x:NoSchedule",
        expect![[r#"
        rest
    "#]],
    );
    check_log(
        "daemonset default/log tolerate=dedicated=x:NoSchedule\nnode n1 taint=dedicated=x:NoSchedule",
        expect![[r#"
        create pod/default/log-tl58b for daemonset/default/log if daemonset/default/log at 1 if node/n1 is uid-n1
    "#]],
    );
}

#[test]
fn ct23_a_cordon_is_tolerated() {
    check_log(
        "daemonset default/log\nnode n1 unschedulable taint=unschedulable:NoSchedule",
        expect![[r#"
        create pod/default/log-tl58b for daemonset/default/log if daemonset/default/log at 1 if node/n1 is uid-n1
    "#]],
    );
}

#[test]
fn ct23_no_schedule_lets_a_pod_stay_and_no_execute_does_not() {
    check_log(
        "daemonset default/log
         node n1 taint=dedicated=x:NoSchedule
         pod default/log-a on n1 owner=DaemonSet/log",
        expect![[r#"
            rest
        "#]],
    );
    check_log(
        "daemonset default/log
         node n1 taint=dedicated=x:NoExecute
         pod default/log-a on n1 owner=DaemonSet/log",
        expect![[r#"
            delete pod/default/log-a
        "#]],
    );
}

#[test]
fn ct23_unreachable_lets_a_pod_stay_for_ever() {
    check_log(
        "profile kubernetes
         now 10000s
         daemonset default/log
         node n1 ready=Unknown@90s taint=unreachable:NoSchedule@90s taint=unreachable:NoExecute@95s
         pod default/log-a on n1 owner=DaemonSet/log",
        expect![[r#"
            rest
        "#]],
    );
}

#[test]
fn v10_out_of_service_removes_a_daemon_pod_and_keeps_it_away() {
    check_log(
        "daemonset default/log
         node n1 ready=Unknown taint=node.kubernetes.io/out-of-service=x:NoExecute
         pod default/log-a on n1 owner=DaemonSet/log",
        expect![[r#"
            delete pod/default/log-a
        "#]],
    );
    check_log(
        "daemonset default/log
         node n1 ready=Unknown taint=node.kubernetes.io/out-of-service=x:NoExecute",
        expect![[r#"
            rest
        "#]],
    );
}

#[test]
fn p40_a_pod_that_waits_for_its_binding_counts() {
    check_log(
        &format!("daemonset default/log\nnode n1\npod default/log-a owner=DaemonSet/log {PINNED}"),
        expect![[r#"
        rest
    "#]],
    );
}

#[test]
fn p40_of_two_live_pods_the_older_bound_one_stays() {
    check_log(
        &format!(
            "daemonset default/log
             node n1
             pod default/log-a owner=DaemonSet/log created=1s {PINNED}
             pod default/log-b on n1 owner=DaemonSet/log created=3s
             pod default/log-c on n1 owner=DaemonSet/log created=2s"
        ),
        expect![[r#"
            delete pod/default/log-b
            delete pod/default/log-a
        "#]],
    );
}

#[test]
fn p40_a_succeeded_pod_is_replaced_at_once() {
    check_log(
        "now 100s
         daemonset default/log
         node n1
         pod default/log-bbbbb on n1 owner=DaemonSet/log phase=Succeeded",
        expect![[r#"
            note daemonset/default/log SucceededDaemonPod: Found succeeded daemon pod default/log-bbbbb on node n1, will try to delete it
            delete pod/default/log-bbbbb
            create pod/default/log-bdtkc for daemonset/default/log if daemonset/default/log at 1 if node/n1 is uid-n1
        "#]],
    );
}

#[test]
fn p40_a_terminating_pod_is_waited_for() {
    check_log(
        "daemonset default/log\nnode n1\npod default/log-a on n1 owner=DaemonSet/log terminating",
        expect![[r#"
        rest
    "#]],
    );
}

#[test]
fn p40_a_failed_pod_is_replaced_after_a_back_off_that_doubles() {
    // The last letter of the name is the level: b is the first wait.
    let ended = "phase=Failed ended=1@100s";
    let text = |now: &str, name: &str| {
        format!(
            "now {now}\nat 100s\ndaemonset default/log\nnode n1\npod default/{name} on n1 owner=DaemonSet/log created=90s {ended}"
        )
    };
    check_log(
        &text("100500ms", "log-bbbbb"),
        expect![[r#"
        wake +500ms
    "#]],
    );
    check_log(
        &text("101s", "log-bbbbb"),
        expect![[r#"
        note daemonset/default/log FailedDaemonPod: Found failed daemon pod default/log-bbbbb on node n1, will try to kill it
        delete pod/default/log-bbbbb
        create pod/default/log-bdtkc for daemonset/default/log if daemonset/default/log at 1 if node/n1 is uid-n1
    "#]],
    );
    check_log(
        &text("101s", "log-bbbbd"),
        expect![[r#"
        wake +3s
    "#]],
    );
    check_log(
        &text("100s", "log-bbbbn"),
        expect![[r#"
        wake +900s
    "#]],
    );
}

#[test]
fn p40_a_pod_that_lived_for_long_begins_the_back_off_anew() {
    check_log(
        "now 5000s
         at 4000s
         daemonset default/log
         node n1
         pod default/log-bbbbd on n1 owner=DaemonSet/log created=90s phase=Failed",
        expect![[r#"
            note daemonset/default/log FailedDaemonPod: Found failed daemon pod default/log-bbbbd on node n1, will try to kill it
            delete pod/default/log-bbbbd
            create pod/default/log-bdtkb for daemonset/default/log if daemonset/default/log at 1 if node/n1 is uid-n1
        "#]],
    );
}

#[test]
fn p41_no_pod_is_made_for_a_node_that_is_about_to_reboot() {
    let announced = "annotation=mainstay.dev/reboot-announced=b1@1970-01-01T00:00:10Z";
    check_log(
        &format!("daemonset default/log\nnode n1 boot=b1 {announced}"),
        expect![[r#"
        rest
    "#]],
    );
    // The new boot is recorded, but not Ready yet.
    check_log(
        &format!("daemonset default/log\nnode n1 boot=b2 ready=False {announced}"),
        expect![[r#"
        rest
    "#]],
    );
    check_log(
        &format!("daemonset default/log\nnode n1 boot=b2 {announced}"),
        expect![[r#"
        create pod/default/log-tl58b for daemonset/default/log if daemonset/default/log at 1 if node/n1 is uid-n1
    "#]],
    );
    check_log(
        &format!("profile kubernetes\ndaemonset default/log\nnode n1 boot=b1 {announced}"),
        expect![[r#"
        create pod/default/log-tl58b for daemonset/default/log if daemonset/default/log at 1 if node/n1 is uid-n1
    "#]],
    );
}

#[test]
fn p41_no_pod_is_made_for_a_node_that_is_taken_for_dead() {
    check_log(
        "daemonset default/log\nnode n1\nincident n1 phase=Suspect",
        expect![[r#"
        create pod/default/log-bdtkb for daemonset/default/log if daemonset/default/log at 1 if node/n1 is uid-n1
    "#]],
    );
    check_log(
        "daemonset default/log\nnode n1\nincident n1 phase=Dead",
        expect![[r#"
        rest
    "#]],
    );
    check_log(
        "daemonset default/log\nnode n1\nincident n1 phase=Recovering",
        expect![[r#"
        rest
    "#]],
    );
}

#[test]
fn pods_pinned_to_a_node_that_is_gone_go_too() {
    check_log(
        &format!("daemonset default/log\npod default/log-a owner=DaemonSet/log {PINNED}"),
        expect![[r#"
        delete pod/default/log-a
    "#]],
    );
    check_log(
        "daemonset default/log\npod default/log-a on n1 owner=DaemonSet/log",
        expect![[r#"
        rest
    "#]],
    );
}

#[test]
fn a_heartbeat_touches_nothing_and_a_taint_touches_every_set() {
    let sets = "now 10s\ndaemonset default/log\ndaemonset default/net\nnode n1 heartbeat=1s\n";
    check_touched(&DaemonSets, &format!("{sets}node n1 heartbeat=2s"), expect![[""]]);
    check_touched(
        &DaemonSets,
        &format!("{sets}node n1 heartbeat=1s taint=a:NoSchedule"),
        expect![[r#"
        daemonset/default/log
        daemonset/default/net
    "#]],
    );
}

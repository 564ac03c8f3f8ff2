//! Taints from conditions, by the rules' ids.

use expect_test::expect;

use super::{NoExecute, NoSchedule};
use crate::text::{check, check_touched};

// === NoSchedule ===

#[test]
fn nlc10_every_condition_has_its_taint() {
    let text = "
        now 10s
        node n1 ready=False condition=MemoryPressure:True condition=DiskPressure:True condition=PIDPressure:True condition=NetworkUnavailable:True unschedulable
        ";
    check(
        &NoSchedule,
        "node/n1",
        text,
        expect![[r#"
        edit node/n1: +node.kubernetes.io/not-ready:NoSchedule@10000, +node.kubernetes.io/memory-pressure:NoSchedule@10000, +node.kubernetes.io/disk-pressure:NoSchedule@10000, +node.kubernetes.io/pid-pressure:NoSchedule@10000, +node.kubernetes.io/network-unavailable:NoSchedule@10000, +node.kubernetes.io/unschedulable:NoSchedule@10000
    "#]],
    );
    check(
        &NoSchedule,
        "node/n1",
        "now 10s\nnode n1 ready=Unknown",
        expect![[r#"
        edit node/n1: +node.kubernetes.io/unreachable:NoSchedule@10000
    "#]],
    );
    check(
        &NoSchedule,
        "node/n1",
        "now 10s\nnode n1 ready=-",
        expect![[r#"
        rest
    "#]],
    );
}

#[test]
fn nlc11_the_difference_is_one_write_and_other_keys_stay() {
    let text = "
        now 10s
        node n1 ready=Unknown taint=not-ready:NoSchedule taint=memory-pressure:NoSchedule taint=mine:NoSchedule taint=not-ready:NoExecute taint=out-of-service=mainstay:NoSchedule
        ";
    check(
        &NoSchedule,
        "node/n1",
        text,
        expect![[r#"
        edit node/n1: +node.kubernetes.io/unreachable:NoSchedule@10000, -node.kubernetes.io/not-ready:NoSchedule, -node.kubernetes.io/memory-pressure:NoSchedule
    "#]],
    );
}

#[test]
fn nlc11_what_is_right_is_not_written_again() {
    check(
        &NoSchedule,
        "node/n1",
        "now 10s\nnode n1 ready=Unknown taint=unreachable:NoSchedule",
        expect![[r#"
        rest
    "#]],
    );
    check(
        &NoSchedule,
        "node/n1",
        "now 10s\nnode n1",
        expect![[r#"
        rest
    "#]],
    );
}

#[test]
fn nlc34_no_schedule_knows_no_disruption() {
    check(
        &NoSchedule,
        "node/n1",
        "now 10s\nnode n1 ready=Unknown\nnode n2 ready=Unknown",
        expect![[r#"
        edit node/n1: +node.kubernetes.io/unreachable:NoSchedule@10000
    "#]],
    );
}

// === NoExecute: which ===

const HEALTHY: &str = "now 100s\nnode n2\nnode n3\n";

fn with(profile: &str, lines: &str) -> String {
    format!("profile {profile}\n{HEALTHY}{lines}")
}

#[test]
fn nlc20_ready_decides_which_taint() {
    check(
        &NoExecute,
        "node/n1",
        &with("default", "node n1 ready=Unknown"),
        expect![[r#"
        edit node/n1: +node.kubernetes.io/unreachable:NoExecute@100000 [node_collector_evictions_total zone=-] paced by zone -
    "#]],
    );
    check(
        &NoExecute,
        "node/n1",
        &with("default", "node n1 ready=False"),
        expect![[r#"
        edit node/n1: +node.kubernetes.io/not-ready:NoExecute@100000 [node_collector_evictions_total zone=-] paced by zone -
    "#]],
    );
    check(
        &NoExecute,
        "node/n1",
        &with("default", "node n1"),
        expect![[r#"
        rest
    "#]],
    );
    check(
        &NoExecute,
        "node/n1",
        &with("default", "node n1 ready=-"),
        expect![[r#"
        rest
    "#]],
    );
}

#[test]
fn nlc20_a_node_that_is_back_loses_both_at_once() {
    let text = with("kubernetes", "node n1 taint=unreachable:NoExecute@50s taint=mine:NoExecute@50s");
    check(
        &NoExecute,
        "node/n1",
        &text,
        expect![[r#"
        edit node/n1: -node.kubernetes.io/unreachable:NoExecute
    "#]],
    );
}

#[test]
fn nlc21_a_swap_is_not_paced() {
    let text = |profile| with(profile, "node n1 ready=False taint=unreachable:NoExecute@50s");
    // Stock: the new taint is of now; the count of evictions is elsewhere (TE-12).
    check(
        &NoExecute,
        "node/n1",
        &text("kubernetes"),
        expect![[r#"
        edit node/n1: +node.kubernetes.io/not-ready:NoExecute@100000, -node.kubernetes.io/unreachable:NoExecute
    "#]],
    );
    // Ours: the count is in the taint, and goes on.
    check(
        &NoExecute,
        "node/n1",
        &text("default"),
        expect![[r#"
        edit node/n1: +node.kubernetes.io/not-ready:NoExecute@50000, -node.kubernetes.io/unreachable:NoExecute
    "#]],
    );
    let both =
        with("default", "node n1 ready=False taint=unreachable:NoExecute@50s taint=not-ready:NoExecute@50s");
    check(
        &NoExecute,
        "node/n1",
        &both,
        expect![[r#"
        edit node/n1: -node.kubernetes.io/unreachable:NoExecute
    "#]],
    );
}

#[test]
fn nlc07_under_leases_the_taint_comes_one_pass_after_the_condition() {
    let text =
        |now: &str| format!("profile kubernetes\nnow {now}\nnode n2\nat 55s\nnode n1 ready=Unknown@55s");
    check(
        &NoExecute,
        "node/n1",
        &text("55s"),
        expect![[r#"
        wake +5s
    "#]],
    );
    check(
        &NoExecute,
        "node/n1",
        &text("60s"),
        expect![[r#"
        edit node/n1: +node.kubernetes.io/unreachable:NoExecute@60000 [node_collector_evictions_total zone=-] paced by zone -
    "#]],
    );
}

#[test]
fn nlc24_a_new_process_keeps_taints_and_taints_at_its_first_pass() {
    let kept = "profile kubernetes\nstarted 1000s\nnow 1000s\nnode n2\nnode n1 ready=Unknown@55s";
    check(
        &NoExecute,
        "node/n1",
        &format!("{kept} taint=unreachable:NoExecute@60s"),
        expect![[r#"
        rest
    "#]],
    );
    check(
        &NoExecute,
        "node/n1",
        kept,
        expect![[r#"
        edit node/n1: +node.kubernetes.io/unreachable:NoExecute@1000000 [node_collector_evictions_total zone=-] paced by zone -
    "#]],
    );
}

// === NoExecute: disruption ===

#[test]
fn nlc30_if_all_are_down_taints_go_and_none_comes() {
    let text = "
        now 100s
        node n1 ready=Unknown taint=unreachable:NoExecute@50s
        node n2 ready=False
        ";
    check(
        &NoExecute,
        "node/n1",
        text,
        expect![[r#"
        edit node/n1: -node.kubernetes.io/unreachable:NoExecute
    "#]],
    );
    check(
        &NoExecute,
        "node/n2",
        text,
        expect![[r#"
        rest
    "#]],
    );
}

#[test]
fn nlc32_a_cluster_of_one_never_evicts() {
    check(
        &NoExecute,
        "node/n1",
        "profile kubernetes\nnow 100s\nnode n1 ready=Unknown",
        expect![[r#"
        rest
    "#]],
    );
}

#[test]
fn v03_two_of_three_is_normal() {
    let text = "now 100s\nnode n1 ready=Unknown\nnode n2 ready=Unknown\nnode n3";
    check(
        &NoExecute,
        "node/n1",
        text,
        expect![[r#"
        edit node/n1: +node.kubernetes.io/unreachable:NoExecute@100000 [node_collector_evictions_total zone=-] paced by zone -
    "#]],
    );
}

#[test]
fn v04_three_of_four_stops_a_small_zone() {
    let text = "
        now 100s
        node n1 ready=Unknown
        node n2 ready=Unknown taint=unreachable:NoExecute@50s
        node n3 ready=Unknown
        node n4
        ";
    check(
        &NoExecute,
        "node/n1",
        text,
        expect![[r#"
        why node/n1 EvictionHeld: zone - is disrupted and small: no node of it is tainted
    "#]],
    );
    // What was done before stays.
    check(
        &NoExecute,
        "node/n2",
        text,
        expect![[r#"
        rest
    "#]],
    );
}

#[test]
fn v05_when_one_returns_the_others_are_looked_at() {
    let text = "now 100s\nnode n1 ready=Unknown\nnode n2 ready=Unknown\nnode n2 ready=True";
    check_touched(
        &NoExecute,
        text,
        expect![[r#"
        node/n1
        node/n2
    "#]],
    );
    check(
        &NoExecute,
        "node/n1",
        text,
        expect![[r#"
        edit node/n1: +node.kubernetes.io/unreachable:NoExecute@100000 [node_collector_evictions_total zone=-] paced by zone -
    "#]],
    );
}

#[test]
fn nlc30_a_whole_zone_that_is_down_is_believed_while_another_lives() {
    let text = "now 100s\nnode n1 ready=Unknown zone=a\nnode n2 ready=Unknown zone=a\nnode n3 zone=b";
    check(
        &NoExecute,
        "node/n1",
        text,
        expect![[r#"
        edit node/n1: +node.kubernetes.io/unreachable:NoExecute@100000 [node_collector_evictions_total zone=:a] paced by zone :a
    "#]],
    );
}

#[test]
fn p03_the_brake_on_eviction_is_shown() {
    // A control plane that lost most of its nodes waits, and says so.
    let text = "now 9s\nnode n1 ready=False\nnode n2 ready=False\nnode n3 ready=False\nnode n4";
    check(
        &NoExecute,
        "node/n1",
        text,
        expect![[r#"
        why node/n1 EvictionHeld: zone - is disrupted and small: no node of it is tainted
    "#]],
    );
}

#[test]
fn p69_a_brake_holds_taints_that_come_of_silence() {
    let text = |brake: &str| {
        with("default", &format!("node n1 ready=Unknown\nincident n1 phase=Dead brake={brake}"))
    };
    check(
        &NoExecute,
        "node/n1",
        &text("Storm"),
        expect![[r#"
        why node/n1 EvictionHeld: a brake holds the incident of node n1
    "#]],
    );
    check(
        &NoExecute,
        "node/n1",
        &text("NotArmed"),
        expect![[r#"
        edit node/n1: +node.kubernetes.io/unreachable:NoExecute@100000 [node_collector_evictions_total zone=-] paced by zone -
    "#]],
    );
    check_touched(
        &NoExecute,
        &text("Storm"),
        expect![[r#"
        node/n1
    "#]],
    );
}

// === cancelled evictions ===

#[test]
fn te10_who_would_have_been_evicted_is_told() {
    let text = with(
        "default",
        "
        node n1 taint=unreachable:NoExecute@50s
        pod default/counts on n1 tolerate=default
        pod default/stays on n1 tolerate=unreachable:NoExecute
        pod default/due on n1 tolerate=unreachable:NoExecute:10
        pod default/goes on n1 tolerate=default terminating
        ",
    );
    check(
        &NoExecute,
        "node/n1",
        &text,
        expect![[r#"
        edit node/n1: -node.kubernetes.io/unreachable:NoExecute
        note pod/default/counts TaintManagerEviction: Cancelling deletion of Pod default/counts
    "#]],
    );
    let other = text.replace("@50s\n", "@50s taint=mine:NoExecute@50s\n");
    check(
        &NoExecute,
        "node/n1",
        &other,
        expect![[r#"
        edit node/n1: -node.kubernetes.io/unreachable:NoExecute
    "#]],
    );
}

//! Silence, by the rules' ids.

use expect_test::expect;

use super::{Detect, NotReadyPods};
use crate::text::{check, check_touched};

// === leases ===

#[test]
fn nlc01_a_node_that_never_was_ready_has_the_startup_grace() {
    check(
        &Detect,
        "node/n1",
        "profile kubernetes\nnow 60s\nnode n1 ready=- created=0s",
        expect![[r#"
        wake +5s
    "#]],
    );
    check(
        &Detect,
        "node/n1",
        "profile kubernetes\nnow 65s\nnode n1 ready=- created=0s",
        expect![[r#"
        edit node/n1: Ready=Unknown NodeStatusNeverUpdated Kubelet never posted node status. @65000, MemoryPressure=Unknown NodeStatusNeverUpdated Kubelet never posted node status. @65000, DiskPressure=Unknown NodeStatusNeverUpdated Kubelet never posted node status. @65000, PIDPressure=Unknown NodeStatusNeverUpdated Kubelet never posted node status. @65000
    "#]],
    );
}

#[test]
fn nlc02_an_old_node_without_status_is_flagged_on_the_first_pass() {
    check(
        &Detect,
        "node/n1",
        "profile kubernetes\nstarted 1000s\nnow 1000s\nnode n1 ready=- created=10s",
        expect![[r#"
        edit node/n1: Ready=Unknown NodeStatusNeverUpdated Kubelet never posted node status. @1000000, MemoryPressure=Unknown NodeStatusNeverUpdated Kubelet never posted node status. @1000000, DiskPressure=Unknown NodeStatusNeverUpdated Kubelet never posted node status. @1000000, PIDPressure=Unknown NodeStatusNeverUpdated Kubelet never posted node status. @1000000
    "#]],
    );
}

#[test]
fn nlc02_a_renewed_lease_is_a_sign_of_life() {
    let text = "
        profile kubernetes
        now 55s
        node n1
        lease n1 renewed=0s
        at 20s
        lease n1 renewed=7s       # its clock is not ours: only the change counts
        ";
    check(
        &Detect,
        "node/n1",
        text,
        expect![[r#"
        wake +20s
    "#]],
    );
}

#[test]
fn nlc02_a_changed_heartbeat_is_a_sign_of_life() {
    let text = "
        profile kubernetes
        now 55s
        node n1 heartbeat=1s
        at 20s
        node n1 heartbeat=2s
        ";
    check(
        &Detect,
        "node/n1",
        text,
        expect![[r#"
        wake +20s
    "#]],
    );
    // The same heartbeat in a changed object is none.
    let text = "
        profile kubernetes
        now 55s
        node n1 heartbeat=1s
        at 20s
        node n1 heartbeat=1s label=a=b
        ";
    check(
        &Detect,
        "node/n1",
        text,
        expect![[r#"
        edit node/n1: Ready=Unknown NodeStatusUnknown Kubelet stopped posting node status. @55000, MemoryPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @55000, DiskPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @55000, PIDPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @55000
        note node/n1 NodeNotReady: Node n1 status is now: NodeNotReady
    "#]],
    );
}

#[test]
fn nlc03_the_grace_is_strict_and_looked_at_on_passes() {
    let at = |now: &str| format!("profile kubernetes\nnow {now}\nat 2s\nnode n1");
    // 2 s + 50 s is between two passes: upstream looks at 55 s.
    check(
        &Detect,
        "node/n1",
        &at("53s"),
        expect![[r#"
        wake +2s
    "#]],
    );
    check(
        &Detect,
        "node/n1",
        &at("55s"),
        expect![[r#"
        edit node/n1: Ready=Unknown NodeStatusUnknown Kubelet stopped posting node status. @55000, MemoryPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @55000, DiskPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @55000, PIDPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @55000
        note node/n1 NodeNotReady: Node n1 status is now: NodeNotReady
    "#]],
    );
    // At exactly the end of the grace the node is still trusted.
    check(
        &Detect,
        "node/n1",
        "profile kubernetes\nnow 50s\nnode n1",
        expect![[r#"
        wake +5s
    "#]],
    );
}

#[test]
fn nlc03_a_new_process_gives_everybody_a_full_grace() {
    check(
        &Detect,
        "node/n1",
        "profile kubernetes\nstarted 1000s\nnow 1050s\nnode n1 heartbeat=1s",
        expect![[r#"
        wake +5s
    "#]],
    );
}

#[test]
fn nlc04_silence_makes_four_conditions_unknown() {
    let text = "
        profile kubernetes
        now 60s
        node n1 ready=True@1s heartbeat=2s condition=DiskPressure:Unknown@1s condition=NetworkUnavailable:False
        ";
    check(
        &Detect,
        "node/n1",
        text,
        expect![[r#"
        edit node/n1: Ready=Unknown NodeStatusUnknown Kubelet stopped posting node status. @60000, MemoryPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @60000, PIDPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @60000
        note node/n1 NodeNotReady: Node n1 status is now: NodeNotReady
    "#]],
    );
}

#[test]
fn nlc05_a_node_that_is_unknown_already_is_left_alone() {
    check(
        &Detect,
        "node/n1",
        "profile kubernetes\nnow 60s\nnode n1 ready=Unknown",
        expect![[r#"
        rest
    "#]],
    );
}

#[test]
fn nlc06_a_node_that_was_not_ready_becomes_unknown_without_an_event() {
    check(
        &Detect,
        "node/n1",
        "profile kubernetes\nnow 60s\nnode n1 ready=False",
        expect![[r#"
        edit node/n1: Ready=Unknown NodeStatusUnknown Kubelet stopped posting node status. @60000, MemoryPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @60000, DiskPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @60000, PIDPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @60000
    "#]],
    );
}

#[test]
fn nlc30_leaving_all_down_gives_a_new_grace() {
    let text = "
        profile kubernetes
        now 70s
        node n1 ready=Unknown
        at 30s
        node n1 ready=True
        node n2
        ";
    check(
        &Detect,
        "node/n1",
        text,
        expect![[r#"
        wake +15s
    "#]],
    );
}

#[test]
fn v01_conditions_within_50_to_61_s() {
    // The last sign of life was anywhere between two passes; the decision is at 50 s at the earliest, 55 s at the
    // latest, and the agent's lease is up to 10 s older than its death.
    for (last, flagged) in [("0s", "55s"), ("1s", "55s"), ("4999ms", "55s"), ("5s", "60s")] {
        let text = format!("profile kubernetes\nnow {flagged}\nat {last}\nnode n1");
        let story = crate::text::Story::read(&text);
        assert!(!story.decide(&Detect, "node/n1").actions.is_empty(), "last heard at {last}");
        let before =
            format!("profile kubernetes\nnow {}ms\nat {last}\nnode n1", crate::text::time(flagged).ms() - 1);
        let story = crate::text::Story::read(&before);
        assert!(story.decide(&Detect, "node/n1").actions.is_empty(), "last heard at {last}");
    }
}

// === beats ===

#[test]
fn nlc04_conditions_follow_the_incident_where_nodes_beat() {
    let text = "now 10s\nnode n1 silent=4s boot=b1\nincident n1 phase=Dead";
    check(
        &Detect,
        "node/n1",
        text,
        expect![[r#"
        edit node/n1: Ready=Unknown NodeStatusUnknown Kubelet stopped posting node status. @10000, MemoryPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @10000, DiskPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @10000, PIDPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @10000
        note node/n1 NodeNotReady: Node n1 status is now: NodeNotReady
    "#]],
    );
}

#[test]
fn p69_without_an_incident_nothing_is_marked() {
    // An hour of silence, but no verdict: the brakes hold it.
    check(
        &Detect,
        "node/n1",
        "now 3600s\nnode n1 silent=3590s",
        expect![[r#"
        rest
    "#]],
    );
    check(
        &Detect,
        "node/n1",
        "now 3600s\nnode n1 silent=3590s\nincident n1 phase=Suspect brake=Storm",
        expect![[r#"
        rest
    "#]],
    );
}

#[test]
fn p69_a_brake_on_a_dead_node_holds_conditions_and_readiness() {
    let text = "
        now 10s
        node n1 silent=4s
        node n2
        pod default/a on n1 ready
        incident n1 phase=Dead brake=Storm
        ";
    check(
        &Detect,
        "node/n1",
        text,
        expect![[r#"
        rest
    "#]],
    );
    let text = text.replace("node n1", "node n1 ready=Unknown");
    check(
        &NotReadyPods,
        "pod/default/a",
        &text,
        expect![[r#"
        rest
    "#]],
    );
    // That nothing can be proven is no reason to send traffic there.
    check(
        &NotReadyPods,
        "pod/default/a",
        &text.replace("Storm", "NotArmed"),
        expect![[r#"
        edit pod/default/a: Ready=False @10000
        note pod/default/a NodeNotReady: Node is not ready
    "#]],
    );
}

#[test]
fn p69_if_all_are_down_readiness_stays_where_nodes_beat() {
    let text = "
        now 10s
        node n1 ready=Unknown silent=4s
        node n2 ready=Unknown silent=4s
        pod default/a on n1 ready
        incident n1 phase=Dead
        ";
    check(
        &NotReadyPods,
        "pod/default/a",
        text,
        expect![[r#"
        rest
    "#]],
    );
    // Stock behaviour is another: only eviction has that brake.
    check(
        &NotReadyPods,
        "pod/default/a",
        &format!("profile kubernetes\n{text}"),
        expect![[r#"
        edit pod/default/a: Ready=False @10000
        note pod/default/a NodeNotReady: Node is not ready
    "#]],
    );
}

#[test]
fn a_node_that_dies_again_while_recovering_is_silent_again() {
    let text = |silent: &str| format!("now 100s\nnode n1 silent={silent}\nincident n1 phase=Recovering");
    check(
        &Detect,
        "node/n1",
        &text("1s"),
        expect![[r#"
        wake +3s
    "#]],
    );
    check(
        &Detect,
        "node/n1",
        &text("4s"),
        expect![[r#"
        edit node/n1: Ready=Unknown NodeStatusUnknown Kubelet stopped posting node status. @100000, MemoryPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @100000, DiskPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @100000, PIDPressure=Unknown NodeStatusUnknown Kubelet stopped posting node status. @100000
        note node/n1 NodeNotReady: Node n1 status is now: NodeNotReady
    "#]],
    );
}

// === pods ===

#[test]
fn nlc04_pods_of_a_silent_node_become_not_ready() {
    let text = "
        profile kubernetes
        now 60s
        node n1 ready=Unknown
        pod default/a on n1 running condition=Ready:True@10s condition=ContainersReady:True
        pod default/b on n1
        ";
    check(
        &NotReadyPods,
        "pod/default/a",
        text,
        expect![[r#"
        edit pod/default/a: Ready=False @60000
        note pod/default/a NodeNotReady: Node is not ready
    "#]],
    );
    check(
        &NotReadyPods,
        "pod/default/b",
        text,
        expect![[r#"
        rest
    "#]],
    );
}

#[test]
fn nlc09_pods_of_a_node_that_says_not_ready_are_its_own_matter() {
    let text = "profile kubernetes\nnow 60s\nnode n1 ready=False\npod default/a on n1 ready";
    check(
        &NotReadyPods,
        "pod/default/a",
        text,
        expect![[r#"
        rest
    "#]],
    );
}

#[test]
fn nlc04_pods_are_looked_at_when_their_node_changes_or_they_come_later() {
    let text = "node n1\nnode n2\npod default/a on n1 ready\npod default/b on n2 ready";
    check_touched(
        &NotReadyPods,
        &format!("{text}\nnode n1 ready=Unknown"),
        expect![[r#"
        pod/default/a
    "#]],
    );
    check_touched(
        &NotReadyPods,
        &format!("{text}\nincident n2 phase=Dead"),
        expect![[r#"
        pod/default/b
    "#]],
    );
    check_touched(
        &NotReadyPods,
        &format!("{text}\npod default/c on n1 ready"),
        expect![[r#"
        pod/default/c
    "#]],
    );
}

//! The course of an incident.

use expect_test::expect;

use crate::node_death::boot::Boots;
use crate::node_death::council::Councils;
use crate::node_death::incident::Incidents;
use crate::node_death::orphan::Orphans;
use crate::node_death::release::Release;
use crate::node_death::suspicion::Suspicion;
use crate::node_death::tombstone::Tombstones;
use crate::text::check;

const THREE: &str = "
    council n1,n2,n3
    node n2 ready=True boot=c1
    node n3 ready=True boot=d1
";

fn with(lines: &str) -> String {
    format!("{THREE}{lines}")
}

#[test]
fn a_node_is_suspected_after_two_seconds() {
    let world = with("now 100s\n node n1 ready=True boot=b1 silent=1900ms");
    check(
        &Suspicion,
        "node/n1",
        &world,
        expect![[r#"
        wake +100ms
    "#]],
    );
    let world = with("now 100s\n node n1 ready=True boot=b1 silent=2s");
    check(
        &Suspicion,
        "node/n1",
        &world,
        expect![[r#"
            create nodeincident/n1-uid-n1-1
        "#]],
    );
}

// Invariant N1
#[test]
fn one_incident_per_node_is_open() {
    let world = with("now 100s\n node n1 ready=True boot=b1 silent=3s\n incident n1 phase=Suspect");
    check(
        &Suspicion,
        "node/n1",
        &world,
        expect![[r#"
        rest
    "#]],
    );
}

#[test]
fn p70_a_server_that_has_just_started_suspects_nobody() {
    let world = with("started 97s\n at 97s\n now 100s\n node n1 ready=True boot=b1 silent=3s");
    check(
        &Suspicion,
        "node/n1",
        &world,
        expect![[r#"
        wake +1s
        why node/n1 IncidentHeld: node n1 is silent since @97000, but nothing is done: [JustStarted]
    "#]],
    );
}

// Invariant B1
#[test]
fn p69_all_silent_at_once_is_a_storm_and_opens_nothing() {
    let world = "
        now 100s
        council n1,n2,n3
        node n1 ready=True boot=b1 silent=3000ms
        node n2 ready=True boot=c1 silent=2800ms
        node n3 ready=True boot=d1 silent=2900ms
    ";
    check(
        &Suspicion,
        "node/n1",
        world,
        expect![[r#"
        wake +1s
        why node/n1 IncidentHeld: node n1 is silent since @97000, but nothing is done: [Storm, CouncilUnreachable]
    "#]],
    );
}

#[test]
fn a_second_death_waits_until_the_first_is_settled() {
    let world = with(
        "now 100s
         node n4 ready=Unknown boot=e1 silent=60s
         incident n4 phase=Fenced step=Suspected@42s step=Fenced@47s evidence=lease-expiry@47s
         node n1 ready=True boot=b1 silent=2s",
    );
    check(
        &Suspicion,
        "node/n1",
        &world,
        expect![[r#"
        wake +1s
        why node/n1 IncidentHeld: node n1 is silent since @98000, but nothing is done: [TooManyIncidents]
    "#]],
    );
}

#[test]
fn a_settled_death_does_not_block_the_next() {
    let world = with(
        "now 100s
         node n4 ready=Unknown boot=e1 silent=60s
         incident n4 phase=Fenced step=Suspected@42s step=Fenced@47s step=Released@48s evidence=lease-expiry@47s
         node n1 ready=True boot=b1 silent=2s",
    );
    check(
        &Suspicion,
        "node/n1",
        &world,
        expect![[r#"
            create nodeincident/n1-uid-n1-1
        "#]],
    );
}

#[test]
fn a_death_that_only_a_human_can_settle_does_not_block_the_next() {
    let world = with(
        "now 100s
         node n4 ready=Unknown boot=e1 silent=60s
         incident n4 phase=Dead step=Suspected@42s brake=NotArmed
         node n1 ready=True boot=b1 silent=2s",
    );
    check(
        &Suspicion,
        "node/n1",
        &world,
        expect![[r#"
            create nodeincident/n1-uid-n1-1
        "#]],
    );
}

#[test]
fn suspect_becomes_dead_after_four_seconds() {
    let world = with(
        "now 100s\n node n1 ready=True boot=b1 silent=3900ms\n incident n1 phase=Suspect step=Suspected@98s",
    );
    check(
        &Incidents,
        "nodeincident/n1-incident",
        &world,
        expect![[r#"
        wake +100ms
    "#]],
    );
    let world = with(
        "now 100s\n node n1 ready=True boot=b1 silent=4s\n incident n1 phase=Suspect step=Suspected@98s",
    );
    check(
        &Incidents,
        "nodeincident/n1-incident",
        &world,
        expect![[r#"
        edit nodeincident/n1-incident: Incident(IncidentStatus { phase: Dead, steps: [Step { name: Some(Suspected), at: @98000, took_ms: 0 }, Step { name: Some(DeclaredDead), at: @100000, took_ms: 2000 }], evidence: [], brakes: [], end: None, kill_bound_ms: 0 })
    "#]],
    );
}

#[test]
fn a_node_that_speaks_again_closes_its_incident() {
    let world = with("now 100s\n node n1 ready=True boot=b1\n incident n1 phase=Fencing step=Suspected@98s");
    check(
        &Incidents,
        "nodeincident/n1-incident",
        &world,
        expect![[r#"
        edit nodeincident/n1-incident: Incident(IncidentStatus { phase: Closed, steps: [Step { name: Some(Suspected), at: @98000, took_ms: 0 }, Step { name: Some(Closed), at: @100000, took_ms: 2000 }], evidence: [], brakes: [], end: Some(CameBack), kill_bound_ms: 0 })
    "#]],
    );
}

#[test]
fn a_pair_of_nodes_is_not_armed_and_says_so() {
    let world = "
        now 100s
        council n1
        node n1 ready=True boot=b1
        node n2 ready=True boot=c1 silent=5s
        incident n2 phase=Dead step=Suspected@97s step=DeclaredDead@99s
    ";
    check(
        &Incidents,
        "nodeincident/n2-incident",
        world,
        expect![[r#"
        edit nodeincident/n2-incident: Incident(IncidentStatus { phase: Dead, steps: [Step { name: Some(Suspected), at: @97000, took_ms: 0 }, Step { name: Some(DeclaredDead), at: @99000, took_ms: 0 }], evidence: [], brakes: [NotArmed], end: None, kill_bound_ms: 0 })
        wake +1s
        why nodeincident/n2-incident IncidentHeld: nothing is done about node n2: [NotArmed]
    "#]],
    );
}

#[test]
fn fencing_waits_for_the_council() {
    let world = with(
        "now 200s\n node n1 ready=True boot=b1 silent=60s\n incident n1 phase=Fencing step=Suspected@142s",
    );
    check(
        &Incidents,
        "nodeincident/n1-incident",
        &world,
        expect![[r#"
        wake +1s
        why nodeincident/n1-incident WaitingForCouncil: waiting for a majority of the council to close node n1
    "#]],
    );
}

#[test]
fn an_announced_reboot_has_patience() {
    let world = with(
        "now 200s
         node n1 ready=True boot=b1 silent=60s annotation=mainstay.dev/reboot-announced=b1@1970-01-01T00:02:20Z
         incident n1 phase=Suspect step=Suspected@142s",
    );
    check(
        &Incidents,
        "nodeincident/n1-incident",
        &world,
        expect![[r#"
        edit nodeincident/n1-incident: Incident(IncidentStatus { phase: Suspect, steps: [Step { name: Some(Suspected), at: @142000, took_ms: 0 }], evidence: [], brakes: [RebootAnnounced], end: None, kill_bound_ms: 0 })
        wake +1s
        why nodeincident/n1-incident IncidentHeld: nothing is done about node n1: [RebootAnnounced]
    "#]],
    );
}

#[test]
fn p74_a_flapping_node_gets_patience() {
    let world = with(
        "now 200s
         node n1 ready=True boot=b1 silent=5s
         incident n1 name=a phase=Closed end=CameBack step=Closed@100s
         incident n1 name=b phase=Closed end=CameBack step=Closed@120s
         incident n1 name=c phase=Closed end=CameBack step=Closed@140s
         incident n1 phase=Suspect step=Suspected@197s",
    );
    check(
        &Incidents,
        "nodeincident/n1-incident",
        &world,
        expect![[r#"
        edit nodeincident/n1-incident: Incident(IncidentStatus { phase: Suspect, steps: [Step { name: Some(Suspected), at: @197000, took_ms: 0 }], evidence: [], brakes: [Flapping], end: None, kill_bound_ms: 0 })
        wake +1s
        why nodeincident/n1-incident IncidentHeld: nothing is done about node n1: [Flapping]
    "#]],
    );
}

#[test]
fn p92_a_fenced_node_is_marked_and_its_node_object_stays() {
    let world = with(
        "now 200s
         node n1 ready=Unknown boot=b1 silent=60s
         incident n1 phase=Fenced step=Suspected@142s step=Fenced@147s evidence=lease-expiry@147s",
    );
    check(
        &Incidents,
        "nodeincident/n1-incident",
        &world,
        expect![[r#"
        edit node/n1: +node.kubernetes.io/out-of-service=mainstay:NoSchedule
    "#]],
    );
}

const MARKED: &str = "taint=node.kubernetes.io/out-of-service=mainstay:NoSchedule";

// Invariant N3
#[test]
fn a_fenced_node_that_speaks_is_recovering_and_must_say_that_it_stopped() {
    let fenced = format!(
        "now 200s
         at 150s
         incident n1 phase=Fenced step=Suspected@142s step=Fenced@147s step=Released@148s evidence=lease-expiry@147s
         at 200s
         node n1 ready=Unknown boot=b1 busy {MARKED}"
    );
    check(
        &Incidents,
        "nodeincident/n1-incident",
        &with(&fenced),
        expect![[r#"
        edit nodeincident/n1-incident: Incident(IncidentStatus { phase: Recovering, steps: [Step { name: Some(Suspected), at: @142000, took_ms: 0 }, Step { name: Some(Fenced), at: @147000, took_ms: 0 }, Step { name: Some(Released), at: @148000, took_ms: 0 }, Step { name: Some(CameBack), at: @200000, took_ms: 52000 }], evidence: [Evidence { kind: LeaseExpiry, at: @147000, detail: "" }], brakes: [], end: None, kill_bound_ms: 0 })
    "#]],
    );
    let recovering = format!(
        "now 200s
         at 150s
         incident n1 phase=Recovering step=Suspected@142s step=Fenced@147s step=CameBack@150s evidence=lease-expiry@147s
         at 200s
         node n1 ready=Unknown boot=b1 busy {MARKED}"
    );
    check(
        &Incidents,
        "nodeincident/n1-incident",
        &with(&recovering),
        expect![[r#"
        wake +1s
    "#]],
    );
    check(
        &Incidents,
        "nodeincident/n1-incident",
        &with(&recovering.replace("busy ", "")),
        expect![[r#"
        edit nodeincident/n1-incident: Incident(IncidentStatus { phase: Recovering, steps: [Step { name: Some(Suspected), at: @142000, took_ms: 0 }, Step { name: Some(Fenced), at: @147000, took_ms: 0 }, Step { name: Some(CameBack), at: @150000, took_ms: 0 }, Step { name: Some(ConfirmedStopped), at: @200000, took_ms: 50000 }], evidence: [Evidence { kind: LeaseExpiry, at: @147000, detail: "" }], brakes: [], end: None, kill_bound_ms: 0 })
    "#]],
    );
}

#[test]
fn the_mark_goes_last_and_only_ours() {
    let confirmed = "step=CameBack@150s step=ConfirmedStopped@151s evidence=lease-expiry@147s";
    let world = |node: &str| {
        with(&format!(
            "now 200s
             at 151s
             incident n1 phase=Recovering step=Suspected@142s step=Fenced@147s {confirmed}
             at 200s
             node n1 ready=True boot=b1 {node}"
        ))
    };
    check(
        &Incidents,
        "nodeincident/n1-incident",
        &world(MARKED),
        expect![[r#"
        edit node/n1: -node.kubernetes.io/out-of-service:NoSchedule
    "#]],
    );
    let hand_set = "taint=node.kubernetes.io/out-of-service=nodeshutdown:NoExecute";
    check(
        &Incidents,
        "nodeincident/n1-incident",
        &world(hand_set),
        expect![[r#"
        edit nodeincident/n1-incident: Incident(IncidentStatus { phase: Closed, steps: [Step { name: Some(Suspected), at: @142000, took_ms: 0 }, Step { name: Some(Fenced), at: @147000, took_ms: 0 }, Step { name: Some(CameBack), at: @150000, took_ms: 0 }, Step { name: Some(ConfirmedStopped), at: @151000, took_ms: 0 }, Step { name: Some(Closed), at: @200000, took_ms: 49000 }], evidence: [Evidence { kind: LeaseExpiry, at: @147000, detail: "" }], brakes: [], end: Some(Recovered), kill_bound_ms: 0 })
    "#]],
    );
    // An attachment is left: the node is not taken up again yet.
    let attached = format!("{MARKED}\n attachment pv0 n1 attached");
    check(
        &Incidents,
        "nodeincident/n1-incident",
        &world(&attached),
        expect![[r#"
        why nodeincident/n1-incident Releasing: node n1 still holds attachment of pv0
    "#]],
    );
}

#[test]
fn a_hand_set_mark_on_a_beating_node_is_no_evidence() {
    let hand_set = "taint=node.kubernetes.io/out-of-service=nodeshutdown:NoExecute";
    let world = with(&format!("now 200s\n node n1 ready=True boot=b1 {hand_set}"));
    check(
        &Suspicion,
        "node/n1",
        &world,
        expect![[r#"
        wake +2s
    "#]],
    );
}

#[test]
fn release_takes_what_a_controller_replaces_and_leaves_the_rest() {
    let world = with(
        "now 200s
         node n1 ready=Unknown boot=b1 silent=60s
         claim default/data volume=pv0 mode=RWO
         incident n1 phase=Fenced step=Fenced@147s evidence=lease-expiry@147s
         pod default/db-0 on n1 owner=StatefulSet/db phase=Running running
         pod default/web-1 on n1 owner=ReplicaSet/web phase=Running running
         pod default/ds-1 on n1 owner=DaemonSet/ds phase=Running running
         pod default/bare on n1 phase=Running running
         pod default/bare-rwo on n1 claim=data phase=Running running",
    );
    check(
        &Release,
        "pod/default/db-0",
        &world,
        expect![[r#"
        edit pod/default/db-0: Failed with DisruptionTarget=True DeletionByNodeFencing Mainstay: node n1 is proven dead by n1-incident @200000 if nodeincident/n1-incident at 6 if node/n1 still at 4
        delete pod/default/db-0 proven by nodeincident/n1-incident [mainstay_released_pods_total namespace=default] if nodeincident/n1-incident at 6 if node/n1 still at 4
    "#]],
    );
    check(
        &Release,
        "pod/default/web-1",
        &world,
        expect![[r#"
        edit pod/default/web-1: Failed with DisruptionTarget=True DeletionByNodeFencing Mainstay: node n1 is proven dead by n1-incident @200000 if nodeincident/n1-incident at 6 if node/n1 still at 4
        delete pod/default/web-1 proven by nodeincident/n1-incident [mainstay_released_pods_total namespace=default] if nodeincident/n1-incident at 6 if node/n1 still at 4
    "#]],
    );
    check(
        &Release,
        "pod/default/ds-1",
        &world,
        expect![[r#"
        rest
    "#]],
    );
    check(
        &Release,
        "pod/default/bare",
        &world,
        expect![[r#"
        rest
    "#]],
    );
    check(
        &Release,
        "pod/default/bare-rwo",
        &world,
        expect![[r#"
        edit pod/default/bare-rwo: Failed with DisruptionTarget=True DeletionByNodeFencing Mainstay: node n1 is proven dead by n1-incident @200000 if nodeincident/n1-incident at 6 if node/n1 still at 4
        delete pod/default/bare-rwo proven by nodeincident/n1-incident [mainstay_released_pods_total namespace=default] if nodeincident/n1-incident at 6 if node/n1 still at 4
    "#]],
    );
}

// Invariant E1
#[test]
fn nothing_is_released_before_there_is_evidence() {
    let world = with(
        "now 200s
         node n1 ready=Unknown boot=b1 silent=60s
         incident n1 phase=Fencing step=Suspected@142s
         pod default/db-0 on n1 owner=StatefulSet/db phase=Running running",
    );
    check(
        &Release,
        "pod/default/db-0",
        &world,
        expect![[r#"
        rest
    "#]],
    );
}

#[test]
fn p86_evidence_about_one_machine_moves_nothing_of_another_of_the_same_name() {
    let world = with(
        "now 200s
         node n1 uid=new ready=True boot=b9
         incident n1 node-uid=old phase=Fenced step=Fenced@147s evidence=node-deleted@147s
         pod default/db-0 on n1 owner=StatefulSet/db phase=Running running",
    );
    check(
        &Release,
        "pod/default/db-0",
        &world,
        expect![[r#"
        rest
    "#]],
    );
}

#[test]
fn a_boot_is_recorded_once_no_incident_about_the_old_one_is_undecided() {
    let world = with("now 100s\n node n1 ready=True boot=b1 speaks=b2");
    check(
        &Boots,
        "node/n1",
        &world,
        expect![[r#"
        edit node/n1: RecordBoot("b2")
    "#]],
    );
    let world =
        with("now 100s\n node n1 ready=True boot=b1 speaks=b2\n incident n1 phase=Dead step=Suspected@95s");
    check(
        &Boots,
        "node/n1",
        &world,
        expect![[r#"
        rest
    "#]],
    );
}

// Invariant F3
#[test]
fn an_incident_ends_as_rebooted_when_another_boot_speaks() {
    let world = with(
        "now 100s\n node n1 ready=True boot=b1 speaks=b2\n incident n1 boot=b1 phase=Dead step=Suspected@95s",
    );
    check(
        &Incidents,
        "nodeincident/n1-incident",
        &world,
        expect![[r#"
        edit nodeincident/n1-incident: Incident(IncidentStatus { phase: Closed, steps: [Step { name: Some(Suspected), at: @95000, took_ms: 0 }, Step { name: Some(Closed), at: @100000, took_ms: 5000 }], evidence: [], brakes: [], end: Some(Rebooted), kill_bound_ms: 0 })
    "#]],
    );
}

// Invariant T1
#[test]
fn a_tombstone_goes_on_evidence_that_stands() {
    let stone = "tombstone uid-db-0 pod=default/db-0 node=n1 boot=b1 claims=data";
    let world = |more: &str| with(&format!("now 200s\n node n1 ready=True boot=b1\n {stone}\n {more}"));
    check(
        &Tombstones,
        "tombstone/uid-db-0",
        &world(""),
        expect![[r#"
        why tombstone/uid-db-0 MayStillRun: pod default/db-0 may still run on node n1; its node's word or proof of its death would end that
    "#]],
    );
    let open = "incident n1 phase=Fenced step=Fenced@147s evidence=lease-expiry@147s";
    check(
        &Tombstones,
        "tombstone/uid-db-0",
        &world(open),
        expect![[r#"
        force-delete tombstone/uid-db-0
    "#]],
    );
    let over = "incident n1 phase=Closed end=Recovered step=Closed@150s evidence=lease-expiry@147s";
    check(
        &Tombstones,
        "tombstone/uid-db-0",
        &world(over),
        expect![[r#"
        why tombstone/uid-db-0 MayStillRun: pod default/db-0 may still run on node n1; its node's word or proof of its death would end that
    "#]],
    );
    let rebooted = with(&format!("now 200s\n node n1 ready=True boot=b2\n {stone}"));
    check(
        &Tombstones,
        "tombstone/uid-db-0",
        &rebooted,
        expect![[r#"
        force-delete tombstone/uid-db-0
    "#]],
    );
}

#[test]
fn p26_deleting_a_node_opens_an_incident_and_proves_nothing_yet() {
    let world = with(
        "now 200s
         node n1 ready=True boot=b1
         pod default/db-0 on n1 owner=StatefulSet/db phase=Running running
         gone node/n1",
    );
    check(
        &Orphans,
        "cluster",
        &world,
        expect![[r#"
            create nodeincident/n1-uid-n1-1
        "#]],
    );
}

#[test]
fn a_tombstone_that_a_finalizer_holds_is_deleted_once() {
    let world = with(
        "now 100s
         node n1 ready=Unknown boot=b1 silent=60s
         incident n1 phase=Fenced step=Suspected@42s step=Fenced@47s evidence=lease-expiry@47s
         tombstone uid-db-0 pod=default/db-0 node=n1 boot=b1 terminating finalizer=x",
    );
    check(
        &Tombstones,
        "tombstone/uid-db-0",
        &world,
        expect![[r#"
        rest
    "#]],
    );
}

#[test]
fn the_council_shrinks_while_the_next_death_can_still_be_proven() {
    let five = "now 100s
        council n1,n2,n3,n4,n5
        node n1 ready=True boot=b1 knows-council=1
        node n2 ready=True boot=c1 knows-council=1
        node n3 ready=True boot=d1 knows-council=1
        ";
    // Three of four: nothing would be won.
    check(
        &Councils,
        "cluster",
        &format!("{five} node n4 ready=True boot=e1 knows-council=1"),
        expect![[r#"
        rest
    "#]],
    );
    check(
        &Councils,
        "cluster",
        five,
        expect![[r#"
            edit council/council: Memberships([Membership { epoch: CouncilEpoch(1), seats: [Seat { node_name: "n1", node_uid: "uid-n1" }, Seat { node_name: "n2", node_uid: "uid-n2" }, Seat { node_name: "n3", node_uid: "uid-n3" }, Seat { node_name: "n4", node_uid: "uid-n4" }, Seat { node_name: "n5", node_uid: "uid-n5" }], since: Rev(0) }, Membership { epoch: CouncilEpoch(2), seats: [Seat { node_name: "n1", node_uid: "uid-n1" }, Seat { node_name: "n2", node_uid: "uid-n2" }, Seat { node_name: "n3", node_uid: "uid-n3" }], since: Rev(4) }])
        "#]],
    );
    // Two are left: a third seat stays empty, for two would prove nothing.
    check(
        &Councils,
        "cluster",
        "now 100s
        council n1,n2,n3,n4,n5
        node n1 ready=True boot=b1 knows-council=1
        node n2 ready=True boot=c1 knows-council=1
        ",
        expect![[r#"
            edit council/council: Memberships([Membership { epoch: CouncilEpoch(1), seats: [Seat { node_name: "n1", node_uid: "uid-n1" }, Seat { node_name: "n2", node_uid: "uid-n2" }, Seat { node_name: "n3", node_uid: "uid-n3" }, Seat { node_name: "n4", node_uid: "uid-n4" }, Seat { node_name: "n5", node_uid: "uid-n5" }], since: Rev(0) }, Membership { epoch: CouncilEpoch(2), seats: [Seat { node_name: "n1", node_uid: "uid-n1" }, Seat { node_name: "n2", node_uid: "uid-n2" }, Seat { node_name: "n3", node_uid: "uid-n3" }], since: Rev(3) }])
        "#]],
    );
}

// Invariant N2
#[test]
fn a_machine_that_was_taken_away_keeps_no_membership() {
    let two = "
        council n1,n2,n3 n1,n2,n4
        node n1 ready=True boot=b1 knows-council=2
        node n2 ready=True boot=c1 knows-council=2
        node n4 ready=True boot=e1 knows-council=2
        node n3 ready=True boot=d1 knows-council=1 silent=60s
        ";
    check(
        &Councils,
        "cluster",
        &format!("now 100s {two} gone node/n3"),
        expect![[r#"
            edit council/council: Memberships([Membership { epoch: CouncilEpoch(2), seats: [Seat { node_name: "n1", node_uid: "uid-n1" }, Seat { node_name: "n2", node_uid: "uid-n2" }, Seat { node_name: "n4", node_uid: "uid-n4" }], since: Rev(0) }])
        "#]],
    );
    // Something that must not run twice hangs on it: it may hold by the oldest.
    check(
        &Councils,
        "cluster",
        &format!("now 100s {two} pod default/db-0 on n3 owner=StatefulSet/db running\n gone node/n3"),
        expect![[r#"
            rest
        "#]],
    );
}

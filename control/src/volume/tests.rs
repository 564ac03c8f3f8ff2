//! Decisions of the attach/detach controller, as text, by rule and case.

use expect_test::{Expect, expect};

use super::attach::AttachDetach;
use super::attachment_name;
use crate::text::{Story, check, check_touched};
use api::view::CsiSource;

#[track_caller]
fn check_volume(text: &str, golden: Expect) {
    check(&AttachDetach, "persistentvolume/pv0", text, golden);
}

#[track_caller]
fn check_node(text: &str, golden: Expect) {
    check(&AttachDetach, "node/n1", text, golden);
}

const IN_USE: &str = "in-use=kubernetes.io/csi/csi.example^h0";
const LISTED: &str = "attached=kubernetes.io/csi/csi.example^h0";

/// A claim, its volume, and lines about the rest.
fn world(mode: &str, lines: &str) -> String {
    format!(
        "now 1000s
         at 500s
         volume pv0 handle=h0 mode={mode} claim=default/data
         claim default/data volume=pv0 mode={mode}
         {lines}"
    )
}

fn rwo(lines: &str) -> String {
    world("RWO", lines)
}

fn stock(lines: &str) -> String {
    format!("profile kubernetes\n{}", rwo(lines))
}

// === names ===

#[test]
fn va01_the_name_is_the_hash_of_handle_driver_and_node() {
    let csi = CsiSource { driver: "csi.example".to_owned(), volume_handle: "h0".to_owned() };
    expect!["csi-b8748126b00805b2b390bcbde83cdac5f418ffc4b6311468df009679ea68e63e"]
        .assert_eq(attachment_name(&csi, &"n1".into()).as_str());
}

// === attach ===

#[test]
fn ad33_what_a_bound_pod_wants_is_attached() {
    check_volume(
        &rwo("node n1\npod default/a on n1 claim=data"),
        expect![[r#"
        create volumeattachment/csi-b8748126b00805b2b390bcbde83cdac5f418ffc4b6311468df009679ea68e63e if node/n1 is uid-n1 if persistentvolume/pv0 is uid-pv0
    "#]],
    );
    // To nothing but the pod's own machine.
    check_volume(
        &rwo("node n1 uid=new\npod default/a on n1 claim=data node-uid=old"),
        expect![[r#"
        rest
    "#]],
    );
    check_volume(
        &rwo("pod default/a on n1 claim=data"),
        expect![[r#"
        rest
    "#]],
    );
}

#[test]
fn ad33_what_is_there_is_not_attached_again() {
    check_volume(
        &rwo("node n1\npod default/a on n1 claim=data\nattachment pv0 n1"),
        expect![[r#"
        rest
    "#]],
    );
}

#[test]
fn ad33_a_terminated_pod_wants_nothing() {
    check_volume(
        &rwo("node n1\npod default/a on n1 claim=data phase=Failed"),
        expect![[r#"
        rest
    "#]],
    );
    check_volume(
        &rwo("node n1\npod default/a on n1 claim=data terminating"),
        expect![[r#"
        rest
    "#]],
    );
    // A terminating pod whose last word is "running" keeps its volume.
    check_volume(
        &rwo("node n1\npod default/a on n1 claim=data terminating running"),
        expect![[r#"
        create volumeattachment/csi-b8748126b00805b2b390bcbde83cdac5f418ffc4b6311468df009679ea68e63e if node/n1 is uid-n1 if persistentvolume/pv0 is uid-pv0
    "#]],
    );
}

#[test]
fn ad33_an_agent_that_attaches_by_itself_is_left_alone() {
    let alone = "node n1 annotation=volumes.kubernetes.io/controller-managed-attach-detach=false";
    check_volume(
        &rwo(&format!("{alone}\npod default/a on n1 claim=data")),
        expect![[r#"
        rest
    "#]],
    );
    check_volume(
        &rwo(&format!("{alone}\nattachment pv0 n1 attached")),
        expect![[r#"
        rest
    "#]],
    );
    check_node(
        &rwo(&format!("{alone}\nattachment pv0 n1 attached")),
        expect![[r#"
        rest
    "#]],
    );
}

#[test]
fn ad34_multi_attach_is_an_error_in_upstreams_words() {
    let two = "node n1\nnode n2\npod default/a on n2 claim=data\nattachment pv0 n1 attached";
    check_volume(
        &stock(&format!("pod default/old on n1 claim=data\n{two}")),
        expect![[r#"
        why pod/default/a FailedAttachVolume: Multi-Attach error for volume "pv0" Volume is already used by pod(s) old
    "#]],
    );
    check_volume(
        &stock(&two.replace("node n1\n", &format!("node n1 {IN_USE}\n"))),
        expect![[r#"
        why pod/default/a FailedAttachVolume: Multi-Attach error for volume "pv0" Volume is already exclusively attached to one node and can't be attached to another
    "#]],
    );
}

#[test]
fn p22_a_blocked_pod_learns_who_has_the_volume_and_what_would_free_it() {
    check_volume(
        &rwo(&format!(
            "node n1 ready=Unknown {IN_USE} {LISTED}\nnode n2\nincident n1 phase=Dead\npod default/a on n2 claim=data\nattachment pv0 n1 attached"
        )),
        expect![[r#"
            why pod/default/a FailedAttachVolume: Multi-Attach error for volume "pv0" Volume is already exclusively attached to one node and can't be attached to another; node n1 may still have it mounted; freed by its report of the unmount or by evidence that it cannot act
        "#]],
    );
}

#[test]
fn ad01_volumes_for_many_nodes_are_attached_to_many() {
    check_volume(
        &world("RWX", "node n1\nnode n2\npod default/a on n1 claim=data\npod default/b on n2 claim=data"),
        expect![[r#"
            create volumeattachment/csi-b8748126b00805b2b390bcbde83cdac5f418ffc4b6311468df009679ea68e63e if node/n1 is uid-n1 if persistentvolume/pv0 is uid-pv0
            create volumeattachment/csi-5d1e41a07cbca9e7ddc3511d2d88575bec9d2441b6939a114d4c8f5c81e8bb19 if node/n2 is uid-n2 if persistentvolume/pv0 is uid-pv0
        "#]],
    );
}

// Invariant V1
#[test]
fn v1_of_two_pods_that_want_it_at_once_the_older_gets_it() {
    check_volume(
        &rwo(
            "node n1\nnode n2\npod default/a on n1 claim=data created=9s\npod default/b on n2 claim=data created=2s",
        ),
        expect![[r#"
            create volumeattachment/csi-5d1e41a07cbca9e7ddc3511d2d88575bec9d2441b6939a114d4c8f5c81e8bb19 if node/n2 is uid-n2 if persistentvolume/pv0 is uid-pv0
            why pod/default/a FailedAttachVolume: Multi-Attach error for volume "pv0" Volume is already used by pod(s) b
        "#]],
    );
}

// Invariant V1
#[test]
fn v1_an_attachment_that_is_being_deleted_still_counts() {
    check_volume(
        &rwo(
            "node n1\nnode n2\npod default/b on n2 claim=data\nattachment pv0 n1 terminating finalizer=external-attacher/csi-example",
        ),
        expect![[r#"
            why pod/default/b FailedAttachVolume: Multi-Attach error for volume "pv0" Volume is already exclusively attached to one node and can't be attached to another
        "#]],
    );
}

#[test]
fn va06_a_volume_that_is_being_deleted_is_not_attached() {
    check_volume(
        &rwo(
            "volume pv0 handle=h0 mode=RWO claim=default/data terminating\nnode n1\npod default/a on n1 claim=data",
        ),
        expect![[r#"
        why pod/default/a FailedAttachVolume: AttachVolume.Attach failed for volume "pv0" : the volume is being deleted
    "#]],
    );
}

#[test]
fn p28_nothing_is_attached_to_a_node_that_is_dead_or_marked() {
    let pod = "pod default/a on n1 claim=data";
    check_volume(
        &rwo(&format!("node n1\nincident n1 phase=Suspect\n{pod}")),
        expect![[r#"
        why pod/default/a FailedAttachVolume: AttachVolume.Attach failed for volume "pv0" : node n1 has an open incident (Suspect)
    "#]],
    );
    check_volume(
        &rwo(&format!("node n1 ready=Unknown\n{pod}")),
        expect![[r#"
        why pod/default/a FailedAttachVolume: AttachVolume.Attach failed for volume "pv0" : node n1 is not Ready
    "#]],
    );
    check_volume(
        &rwo(&format!("node n1 taint=node.kubernetes.io/out-of-service=mainstay:NoSchedule\n{pod}")),
        expect![[r#"
            why pod/default/a FailedAttachVolume: AttachVolume.Attach failed for volume "pv0" : node n1 is marked out of service
        "#]],
    );
    check_volume(
        &stock(&format!("node n1 ready=Unknown\n{pod}")),
        expect![[r#"
        create volumeattachment/csi-b8748126b00805b2b390bcbde83cdac5f418ffc4b6311468df009679ea68e63e if node/n1 is uid-n1 if persistentvolume/pv0 is uid-pv0
    "#]],
    );
}

// === the node's list ===

#[test]
fn ad37_what_is_attached_is_listed_and_the_pods_are_told() {
    check_node(
        &rwo("node n1\npod default/a on n1 claim=data\nattachment pv0 n1 attached"),
        expect![[r#"
            edit node/n1: VolumesAttached([AttachedVolume { name: "kubernetes.io/csi/csi.example^h0", device_path: "" }]) if volumeattachment/va-pv0-n1 at 5
            note pod/default/a SuccessfulAttachVolume: AttachVolume.Attach succeeded for volume "pv0"
        "#]],
    );
    check_node(
        &rwo("node n1\npod default/a on n1 claim=data\nattachment pv0 n1"),
        expect![[r#"
        rest
    "#]],
    );
    check_node(
        &rwo(&format!("node n1 {LISTED}\npod default/a on n1 claim=data\nattachment pv0 n1 attached")),
        expect![[r#"
        rest
    "#]],
    );
}

#[test]
fn ad38_what_is_not_attached_is_not_listed() {
    check_node(
        &rwo(&format!("node n1 {LISTED}")),
        expect![[r#"
        edit node/n1: VolumesAttached([])
    "#]],
    );
}

#[test]
fn ad09_first_out_of_the_list_then_the_delete() {
    let listed = rwo(&format!("node n1 {LISTED}\nattachment pv0 n1 attached"));
    check_volume(
        &listed,
        expect![[r#"
        rest
    "#]],
    );
    check_node(
        &listed,
        expect![[r#"
        edit node/n1: VolumesAttached([])
    "#]],
    );
    check_volume(
        &rwo("node n1\nattachment pv0 n1 attached"),
        expect![[r#"
        delete volumeattachment/va-pv0-n1 if node/n1 still at 3
    "#]],
    );
}

#[test]
fn ad36_what_is_held_stays_in_the_list() {
    check_node(
        &rwo(&format!("node n1 {IN_USE} {LISTED}\nattachment pv0 n1 attached")),
        expect![[r#"
        rest
    "#]],
    );
}

#[test]
fn va04_a_delete_that_has_begun_is_waited_for() {
    check_volume(
        &rwo("node n1\nattachment pv0 n1 attached terminating finalizer=x"),
        expect![[r#"
        rest
    "#]],
    );
}

// === table 8.4 of stock, row by row: in use, Ready, longer than 6 min, the flag, out of service ===

/// Nobody has wanted the volume since 500 s; the decision is made at `now`.
fn row(now: &str, node: &str) -> String {
    stock(&format!("node n1 {node}\nattachment pv0 n1 attached")).replace("now 1000s", &format!("now {now}"))
}

const OUT_OF_SERVICE: &str = "taint=node.kubernetes.io/out-of-service=x:NoExecute";
/// 6 min after 500 s, to the millisecond.
const AT_6_MIN: &str = "860s";
const LATER: &str = "860001ms";
const FLAG: &str = "set max_wait_for_unmount 1000000m";

#[test]
fn ad10_row_1_not_in_use() {
    check_volume(
        &row("501s", ""),
        expect![[r#"
        delete volumeattachment/va-pv0-n1 if node/n1 still at 3
    "#]],
    );
    check_volume(
        &row("501s", "ready=Unknown"),
        expect![[r#"
        delete volumeattachment/va-pv0-n1 if node/n1 still at 3
    "#]],
    );
}

#[test]
fn ad21_row_2_not_in_use_ready_expired() {
    check_volume(
        &row(LATER, ""),
        expect![[r#"
        delete volumeattachment/va-pv0-n1 [attach_detach_controller_attachdetach_controller_forced_detaches reason=timeout] if node/n1 still at 3
    "#]],
    );
}

#[test]
fn ad21_row_3_in_use_ready_is_never_forced() {
    check_volume(
        &row(LATER, IN_USE),
        expect![[r#"
        why persistentvolume/pv0 DetachWaits: waits for the unmount on node n1
    "#]],
    );
    check_volume(
        &row("501s", IN_USE),
        expect![[r#"
        wake +359001ms
        why persistentvolume/pv0 DetachWaits: waits for the unmount on node n1
    "#]],
    );
}

#[test]
fn ad07_row_4_in_use_not_ready_waits_for_six_minutes() {
    check_volume(
        &row(AT_6_MIN, &format!("{IN_USE} ready=Unknown")),
        expect![[r#"
        wake +1ms
        why persistentvolume/pv0 DetachWaits: waits for the unmount on node n1
    "#]],
    );
}

#[test]
fn ad06_row_5_in_use_not_ready_expired_is_forced() {
    check_volume(
        &row(LATER, &format!("{IN_USE} ready=Unknown")),
        expect![[r#"
        delete volumeattachment/va-pv0-n1 [attach_detach_controller_attachdetach_controller_forced_detaches reason=timeout] if node/n1 still at 3
    "#]],
    );
    check_node(
        &row(LATER, &format!("{IN_USE} {LISTED} ready=Unknown")),
        expect![[r#"
        edit node/n1: VolumesAttached([])
    "#]],
    );
}

#[test]
fn ad06_row_6_the_flag_forbids_it() {
    check_volume(
        &format!("{FLAG}\n{}", row(LATER, &format!("{IN_USE} ready=Unknown"))),
        expect![[r#"
        wake +59999640s
        why persistentvolume/pv0 DetachWaits: waits for the unmount on node n1
    "#]],
    );
}

#[test]
fn ad31_row_7_out_of_service_does_not_wait() {
    check_volume(
        &row("501s", &format!("{IN_USE} ready=Unknown {OUT_OF_SERVICE}")),
        expect![[r#"
        delete volumeattachment/va-pv0-n1 [attach_detach_controller_attachdetach_controller_forced_detaches reason=out-of-service] if node/n1 still at 3
    "#]],
    );
    // Not even on a Ready node.
    check_volume(
        &row("501s", &format!("{IN_USE} {OUT_OF_SERVICE}")),
        expect![[r#"
        delete volumeattachment/va-pv0-n1 [attach_detach_controller_attachdetach_controller_forced_detaches reason=out-of-service] if node/n1 still at 3
    "#]],
    );
}

#[test]
fn ad10_row_8_the_label_of_the_time_out_wins() {
    check_volume(
        &row(LATER, &format!("{IN_USE} ready=Unknown {OUT_OF_SERVICE}")),
        expect![[r#"
        delete volumeattachment/va-pv0-n1 [attach_detach_controller_attachdetach_controller_forced_detaches reason=timeout] if node/n1 still at 3
    "#]],
    );
}

#[test]
fn ad10_row_9_with_the_flag_the_label_is_out_of_service() {
    check_volume(
        &format!("{FLAG}\n{}", row(LATER, &format!("{IN_USE} ready=Unknown {OUT_OF_SERVICE}"))),
        expect![[r#"
            delete volumeattachment/va-pv0-n1 [attach_detach_controller_attachdetach_controller_forced_detaches reason=out-of-service] if node/n1 still at 3
        "#]],
    );
}

#[test]
fn ad30_six_minutes_count_from_the_end_of_the_last_pod() {
    let text = |now: &str| {
        format!(
            "profile kubernetes
             now {now}
             volume pv0 handle=h0 mode=RWO claim=default/data
             claim default/data volume=pv0 mode=RWO
             node n1 ready=Unknown {IN_USE}
             attachment pv0 n1 attached
             pod default/a on n1 claim=data running
             at 1000s
             pod default/a on n1 claim=data running terminating
             at 2000s
             gone pod/default/a"
        )
    };
    check_volume(
        &text("2360s"),
        expect![[r#"
        wake +1ms
        why persistentvolume/pv0 DetachWaits: waits for the unmount on node n1
    "#]],
    );
    check_volume(
        &text("2360001ms"),
        expect![[r#"
        delete volumeattachment/va-pv0-n1 [attach_detach_controller_attachdetach_controller_forced_detaches reason=timeout] if node/n1 still at 3
    "#]],
    );
}

#[test]
fn ad33_a_pod_that_wants_it_again_stops_the_count() {
    check_volume(
        &format!(
            "profile kubernetes
             now 3000s
             volume pv0 handle=h0 mode=RWO claim=default/data
             claim default/data volume=pv0 mode=RWO
             node n1 ready=Unknown {IN_USE}
             attachment pv0 n1 attached
             at 1000s
             pod default/a on n1 claim=data running
             at 2900s
             gone pod/default/a"
        ),
        expect![[r#"
            wake +260001ms
            why persistentvolume/pv0 DetachWaits: waits for the unmount on node n1
        "#]],
    );
}

#[test]
fn ad32_a_node_that_is_gone_makes_nothing_faster() {
    let text =
        |now: &str| stock("node n1\nattachment pv0 n1 attached\ngone node/n1").replace("now 1000s", now);
    check_volume(
        &text("now 860s"),
        expect![[r#"
        wake +1ms
        why persistentvolume/pv0 DetachWaits: waits for the unmount on node n1
    "#]],
    );
    check_volume(
        &text("now 860001ms"),
        expect![[r#"
        delete volumeattachment/va-pv0-n1 [attach_detach_controller_attachdetach_controller_forced_detaches reason=timeout] if node/n1 is gone
    "#]],
    );
}

#[test]
fn p11_the_last_gate_is_a_fresh_read_of_the_node() {
    check_volume(
        &format!("flaw no-fresh-read\n{}", row(LATER, "")),
        expect![[r#"
        delete volumeattachment/va-pv0-n1 [attach_detach_controller_attachdetach_controller_forced_detaches reason=timeout]
    "#]],
    );
}

// === automatic ===

#[test]
fn p22_a_confirmed_unmount_waits_for_no_timer() {
    check_volume(
        &rwo("node n1 rev=9\nattachment pv0 n1 attached"),
        expect![[r#"
        delete volumeattachment/va-pv0-n1 if node/n1 still at 9
    "#]],
    );
    // Also if the node is silent: it says so before it mounts.
    check_volume(
        &rwo("node n1 ready=Unknown\nincident n1 phase=Dead\nattachment pv0 n1 attached"),
        expect![[r#"
        delete volumeattachment/va-pv0-n1 if node/n1 still at 3
    "#]],
    );
}

#[test]
fn p23_time_alone_never_detaches() {
    let text =
        format!("node n1 ready=Unknown {IN_USE}\nincident n1 phase=Fencing\nattachment pv0 n1 attached");
    check_volume(
        &rwo(&text).replace("now 1000s", "now 1000000s"),
        expect![[r#"
        why persistentvolume/pv0 DetachWaits: node n1 may still have it mounted; freed by its report of the unmount or by evidence that it cannot act
    "#]],
    );
    check_node(
        &rwo(&text).replace("now 1000s", "now 1000000s").replace(IN_USE, &format!("{IN_USE} {LISTED}")),
        expect![[r#"
        rest
    "#]],
    );
}

#[test]
fn p10_a_taint_set_by_hand_is_evidence_only_through_the_incident() {
    check_volume(
        &rwo(&format!("node n1 {IN_USE} {OUT_OF_SERVICE}\nattachment pv0 n1 attached")),
        expect![[r#"
        why persistentvolume/pv0 DetachWaits: node n1 may still have it mounted; freed by its report of the unmount or by evidence that it cannot act
    "#]],
    );
    check_volume(
        &rwo(&format!(
            "node n1 boot=b1 ready=Unknown {IN_USE} {OUT_OF_SERVICE}\nincident n1 phase=Fenced evidence=operator@900s\nattachment pv0 n1 attached"
        )),
        expect![[r#"
            delete volumeattachment/va-pv0-n1 [attach_detach_controller_attachdetach_controller_forced_detaches reason=out-of-service] if nodeincident/n1-incident at 4 if node/n1 still at 3
        "#]],
    );
}

// Invariant E1
#[test]
fn e1_evidence_about_another_machine_does_not_count() {
    check_volume(
        &rwo(&format!(
            "node n1 boot=b2 {IN_USE}\nincident n1 phase=Fenced node-uid=old boot=b2 evidence=lease-expiry@1s\nattachment pv0 n1 attached"
        )),
        expect![[r#"
            why persistentvolume/pv0 DetachWaits: node n1 may still have it mounted; freed by its report of the unmount or by evidence that it cannot act
        "#]],
    );
}

// Invariant E1
#[test]
fn e1_evidence_of_an_incident_that_is_closed_does_not_count() {
    check_volume(
        &rwo(&format!(
            "node n1 boot=b1 {IN_USE}\nincident n1 phase=Closed end=Recovered evidence=lease-expiry@1s\nattachment pv0 n1 attached"
        )),
        expect![[r#"
            why persistentvolume/pv0 DetachWaits: node n1 may still have it mounted; freed by its report of the unmount or by evidence that it cannot act
        "#]],
    );
}

#[test]
fn f2_a_boot_that_died_before_it_could_report_holds_nothing() {
    // It was recorded, was granted nothing, and the report is still that of the boot before.
    check_volume(
        &rwo(&format!(
            "node n1 boot=b2 ready=Unknown {IN_USE}\nincident n1 phase=Recovering boot=b1 evidence=lease-expiry@1s\nattachment pv0 n1 attached"
        )),
        expect![[r#"
            delete volumeattachment/va-pv0-n1 [attach_detach_controller_attachdetach_controller_forced_detaches reason=out-of-service] if nodeincident/n1-incident at 4 if node/n1 still at 3
        "#]],
    );
}

#[test]
fn f2_a_fenced_node_loses_the_volume_in_two_writes() {
    let fenced = "incident n1 phase=Fenced evidence=lease-expiry@900s\nattachment pv0 n1 attached annotation=mainstay.dev/node-uid=uid-n1";
    let first = rwo(&format!("node n1 boot=b1 ready=Unknown {IN_USE} {LISTED}\n{fenced}"));
    check_volume(
        &first,
        expect![[r#"
        rest
    "#]],
    );
    check_node(
        &first,
        expect![[r#"
        edit node/n1: VolumesAttached([])
    "#]],
    );
    check_volume(
        &rwo(&format!("node n1 boot=b1 ready=Unknown {IN_USE}\n{fenced}")),
        expect![[r#"
        delete volumeattachment/va-pv0-n1 [attach_detach_controller_attachdetach_controller_forced_detaches reason=out-of-service] if nodeincident/n1-incident at 4 if node/n1 still at 3
    "#]],
    );
}

#[test]
fn f2_a_pod_object_that_is_left_holds_the_volume() {
    check_volume(
        &rwo(&format!(
            "node n1 boot=b1 ready=Unknown {IN_USE}\nincident n1 phase=Fenced evidence=lease-expiry@900s\npod default/a on n1 claim=data running\nattachment pv0 n1 attached"
        )),
        expect![[r#"
            rest
        "#]],
    );
}

#[test]
fn p25_p26_a_node_that_is_gone_needs_evidence_about_its_identity() {
    let attached = "attachment pv0 n1 attached annotation=mainstay.dev/node-uid=uid-n1";
    check_volume(
        &rwo(attached),
        expect![[r#"
        why persistentvolume/pv0 DetachWaits: node n1 is gone from the API, and there is no evidence yet that it cannot act
    "#]],
    );
    let evidence = "incident n1 phase=Closed end=Removed evidence=node-deleted@900s";
    check_volume(
        &rwo(&format!("{attached}\n{evidence}")),
        expect![[r#"
        delete volumeattachment/va-pv0-n1 [attach_detach_controller_attachdetach_controller_forced_detaches reason=out-of-service] if nodeincident/n1-incident at 4 if node/n1 is gone
    "#]],
    );
    check_volume(
        &rwo(&format!("{attached}\n{evidence}\ntombstone u-a pod=default/a node=n1 claims=data")),
        expect![[r#"
            why persistentvolume/pv0 DetachWaits: pod default/a may still run on node n1
        "#]],
    );
}

// Invariant E1
#[test]
fn a_late_report_frees_nothing_while_a_tombstone_stands() {
    // The report is from before the pod; it came after the report that the pod had waited for.
    check_volume(
        &rwo("node n1\nattachment pv0 n1 attached\ntombstone u-a pod=default/a node=n1 claims=data"),
        expect![[r#"
            why persistentvolume/pv0 DetachWaits: pod default/a may still run on node n1
        "#]],
    );
}

#[test]
fn p25_p86_a_new_machine_of_the_name_inherits_no_attachment() {
    let attached = "attachment pv0 n1 attached annotation=mainstay.dev/node-uid=old";
    // Whatever the new machine says is about itself.
    check_volume(
        &rwo(&format!("node n1 uid=new\n{attached}")),
        expect![[r#"
        why persistentvolume/pv0 DetachWaits: node n1 is gone from the API, and there is no evidence yet that it cannot act
    "#]],
    );
    check_node(
        &rwo(&format!("node n1 uid=new\n{attached}")),
        expect![[r#"
        rest
    "#]],
    );
    check_volume(
        &rwo(&format!(
            "node n1 uid=new\nincident n1 phase=Closed end=Removed node-uid=old evidence=node-deleted@900s\n{attached}"
        )),
        expect![[r#"
            delete volumeattachment/va-pv0-n1 [attach_detach_controller_attachdetach_controller_forced_detaches reason=out-of-service] if nodeincident/n1-incident at 4 if node/n1 still at 3
        "#]],
    );
}

#[test]
fn p29_a_pod_that_went_while_nobody_looked_leaves_no_attachment() {
    // This process has never seen the pod: the attachment is all there is.
    check_volume(
        &rwo("node n1\nattachment pv0 n1 attached"),
        expect![[r#"
        delete volumeattachment/va-pv0-n1 if node/n1 still at 3
    "#]],
    );
    let story = Story::read(&rwo("node n1\nattachment pv0 n1 attached"));
    assert!(story.world.unwanted_since(&"va-pv0-n1".into()).is_some());
}

// === touched ===

#[test]
fn what_touches_a_volume_and_its_nodes() {
    let world = rwo("node n1\nnode n2\nattachment pv0 n1 attached\n");
    check_touched(
        &AttachDetach,
        &format!("{world}pod default/a on n2 claim=data"),
        expect![[r#"
        node/n1
        persistentvolume/pv0
    "#]],
    );
    check_touched(
        &AttachDetach,
        &format!("{world}incident n1 phase=Fenced"),
        expect![[r#"
        node/n1
        persistentvolume/pv0
    "#]],
    );
    check_touched(
        &AttachDetach,
        &format!("{world}node n1 {IN_USE}"),
        expect![[r#"
        node/n1
        persistentvolume/pv0
    "#]],
    );
    check_touched(&AttachDetach, &format!("{world}node n1"), expect![[""]]);
    check_touched(
        &AttachDetach,
        &format!("{world}attachment pv0 n2"),
        expect![[r#"
        node/n2
        persistentvolume/pv0
    "#]],
    );
    check_touched(
        &AttachDetach,
        &format!("{world}tombstone u pod=default/a node=n1 claims=data"),
        expect![[r#"
        node/n1
        persistentvolume/pv0
    "#]],
    );
}

//! Pods that must never run twice: grants, holds, tombstones.

use std::sync::Arc;

use agent::{Event, Reach, guard};
use api::message::{NoneHere, Stamp};
use api::view::AccessMode;

use crate::body::{Body, exclusive, pod, uid, with_claim};

// Invariant S1
#[test]
fn an_exclusive_pod_starts_only_when_it_is_granted() {
    let mut body = Body::booted();
    body.show(exclusive("db"));
    body.advance(2000);
    assert!(body.take_log().is_empty());
    body.grant(&["other"]);
    assert!(body.take_log().is_empty(), "the grant does not name it");
    body.grant(&["db"]);
    assert_eq!(body.take_log(), ["db: sandbox", "db: start app 0"]);
}

// Invariant S1
#[test]
fn never_starts_exclusive_pods_from_the_ledger() {
    let mut body = Body::booted();
    body.grant(&["db"]);
    body.show(exclusive("db"));
    body.show(pod("web"));
    body.take_log();
    body.api_up = false;
    body.reboot("b2");
    body.send(Event::Api(Reach::No));
    body.advance(120_000);
    assert!(body.runs("web"));
    assert!(!body.runs("db"));
    // A server comes back: the grant is enough, also before the list.
    body.api_up = true;
    body.grant(&["db"]);
    assert!(body.runs("db"));
    assert_eq!(body.attempt("db"), Some(1));
}

#[test]
fn what_the_guard_killed_restarts_in_place_once_it_is_granted_again() {
    let mut body = Body::booted();
    body.grant(&["db"]);
    body.show(exclusive("db"));
    body.show(pod("web"));
    body.take_log();
    body.advance(4_500);
    assert_eq!(body.take_log(), ["guard kills db"]);
    assert!(!body.runs("db") && body.runs("web"));
    assert!(body.agent.is_idle());
    body.advance(10_000);
    assert!(!body.runs("db"));
    body.grant(&["db"]);
    assert_eq!(
        body.take_log(),
        ["db: remove", "db: sandbox", "db: start app 1"],
        "at once, and with a new address"
    );
}

#[test]
fn a_hold_lets_run_and_restarts_nothing() {
    let mut body = Body::booted();
    body.grant(&["db"]);
    body.show(exclusive("db"));
    body.take_log();
    body.advance(4_000);
    for member in ["m1", "m2"] {
        let who = body.guard.who().clone();
        let none = NoneHere { member: member.into(), who, sent: Stamp(body.now) };
        body.guard_step(guard::Event::NoneHere(none));
    }
    body.advance(3_000);
    assert!(body.runs("db"));
    body.exit("db", 1);
    body.advance(2_000);
    assert!(!body.runs("db"), "starting needs a grant");
    body.grant(&["db"]);
    assert!(body.runs("db"));
}

#[test]
fn a_dead_guard_silences_the_node_and_permits_nothing() {
    let mut body = Body::booted();
    body.grant(&["db"]);
    body.guard_alive = false;
    body.advance(1_100);
    body.beats.clear();
    body.show(exclusive("db"));
    body.advance(2_000);
    assert!(body.beats.is_empty() && !body.runs("db"));
}

#[test]
fn the_tombstones_word_comes_after_the_containers() {
    let mut body = Body::booted();
    body.grant(&["db"]);
    body.show(exclusive("db"));
    body.stubborn.insert(uid("db"));
    body.take_log();
    let tombstone = Arc::new(body.tombstone("db", &body.agent.uid().clone()));
    body.send(Event::Tombstone(tombstone));
    body.force_delete("db");
    body.advance(1_900);
    assert_eq!(body.take_log(), ["db: terminate"]);
    body.grant(&["db"]);
    body.advance(200);
    let object = "remove object tombstone/db-uid".to_owned();
    assert_eq!(body.take_log(), ["db: kill".to_owned(), "db: remove".to_owned(), object]);
}

#[test]
fn a_tombstone_of_a_pod_that_never_was_here_gets_the_word_too() {
    let mut body = Body::booted();
    let tombstone = Arc::new(body.tombstone("db", &body.agent.uid().clone()));
    body.send(Event::Tombstone(tombstone));
    assert_eq!(body.take_log(), ["remove object tombstone/db-uid"]);
    let foreign = Arc::new(body.tombstone("db", &"another-node".into()));
    body.send(Event::Tombstone(foreign));
    body.advance(5_000);
    assert!(body.take_log().is_empty(), "it is not this node's to speak of");
}

#[test]
fn a_pod_with_a_tombstone_is_not_started_though_a_stale_list_wants_it() {
    let mut body = Body::booted();
    body.api_up = false;
    let tombstone = Arc::new(body.tombstone("db", &body.agent.uid().clone()));
    body.send(Event::Tombstone(tombstone));
    body.grant(&["db"]);
    body.show(exclusive("db"));
    body.advance(1_000);
    assert!(!body.runs("db"));
}

#[test]
fn ad38_a_volume_is_announced_then_attached_then_mounted() {
    let mut body = Body::booted();
    body.attach = false;
    body.grant(&["db"]);
    body.claim("data", AccessMode::ReadWriteOnce, true);
    body.show(with_claim(pod("db"), "data"));
    let in_use = |body: &Body| body.node.as_ref().unwrap().status.volumes_in_use.clone();
    assert_eq!(in_use(&body), ["kubernetes.io/csi/d^data"]);
    assert!(body.take_log().is_empty(), "not attached yet");
    body.attach = true;
    body.grant(&["db"]);
    // The controller attaches.
    let mut node = (**body.node.as_ref().unwrap()).clone();
    let name = "kubernetes.io/csi/d^data".to_owned();
    node.status.volumes_attached = vec![api::view::AttachedVolume { name, device_path: String::new() }];
    body.node = Some(Arc::new(node));
    body.rev += 1;
    body.send(Event::Node { node: body.node.clone().unwrap(), rev: api::Rev(body.rev) });
    assert_eq!(body.take_log(), ["db: mount data", "db: sandbox", "db: start app 0"]);
    body.delete("db", 30);
    assert!(in_use(&body).is_empty(), "unmounted, so it may be detached");
    let log = body.take_log();
    assert_eq!(log, ["db: terminate", "db: remove", "db: unmount data", "remove object pod/default/db"]);
}

#[test]
fn an_unknown_claim_makes_exclusive_and_a_shared_one_does_not() {
    let mut body = Body::booted();
    body.show(with_claim(pod("web"), "files"));
    body.advance(1_000);
    assert!(body.take_log().is_empty());
    body.claim("files", AccessMode::ReadWriteMany, false);
    assert_eq!(body.take_log(), ["web: mount files", "web: sandbox", "web: start app 0"]);
    // Over a reboot without servers the ledger knows the volume.
    body.api_up = false;
    body.reboot("b2");
    body.send(Event::Api(Reach::No));
    assert!(body.runs("web"));
}

#[test]
fn a_fenced_node_says_idle_only_when_nothing_is_left() {
    let mut body = Body::booted();
    body.grant(&["db"]);
    body.show(exclusive("db"));
    body.advance(1_000);
    assert!(!body.beats.last().unwrap().idle);
    body.advance(6_000);
    assert!(body.beats.last().unwrap().idle);
}

#[test]
fn a_mount_that_is_pulled_takes_its_containers_with_it() {
    let mut body = Body::booted();
    body.grant(&["db"]);
    body.claim("data", AccessMode::ReadWriteOnce, false);
    body.show(with_claim(pod("db"), "data"));
    body.take_log();
    body.pull_mounts("db");
    assert_eq!(body.take_log()[0], "db: kill", "they would write beside the volume");
}

// Invariant S1, T1
#[test]
fn a_pod_that_had_a_tombstone_is_not_begun_by_a_late_list() {
    let mut body = Body::booted();
    body.show(exclusive("db"));
    let node = body.agent.uid().clone();
    let stone = body.tombstone("db", &node);
    let name = stone.metadata.name.clone();
    body.send(Event::Tombstone(Arc::new(stone)));
    // The node said that nothing of it is here, and somebody else may run it from now on. Its own watch of pods is late.
    body.send(Event::TombstoneRemoved(name));
    body.take_log();
    body.grant(&["db"]);
    body.advance(1_000);
    assert!(!body.runs("db"), "{:?}", body.take_log());
    body.send(Event::PodRemoved(uid("db")));
    assert!(body.is_empty("db"));
}

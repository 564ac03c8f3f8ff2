//! Tests of deletion: grace, finalizers, tombstones, evidence.

use api::edit::Edit;
use api::flaw::Flaw;
use api::object::{Kind, ObjectKey};
use api::view::{PodPhase, PodStatus};
use api::write::Deletion;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::testing::{Bench, agent, db0, node};
use crate::{Caller, Effect, Law};

fn check(bench: &Bench, tree: &mut Value, how: &Deletion, expect: &Expect) {
    expect.assert_eq(&bench.deleted(Kind::Pod, tree, how));
}

/// A store with the node of the pod and its claim.
fn cluster(caller: Caller) -> Bench {
    let claim = |modes: Value| {
        json!({
            "metadata": { "name": "data-db-0", "namespace": "prod" }, "spec": { "accessModes": modes },
        })
    };
    Bench::new(caller)
        .with(Kind::Node, &node("n1", "u1", "b1"))
        .with(Kind::PersistentVolumeClaim, &claim(json!(["ReadWriteOnce"])))
}

fn incident(phase: &str, uid: &str, evidence: &Value) -> Value {
    json!({
        "metadata": { "name": "i1" },
        "spec": { "nodeName": "n1", "nodeUID": uid, "bootID": "b1" },
        "status": { "phase": phase, "evidence": evidence },
    })
}

fn evidence() -> Value {
    json!([{ "kind": "lease-expiry", "at": "2026-05-28T20:26:00Z", "detail": "silent" }])
}

fn proven() -> Deletion {
    Deletion::Proven { incident: ObjectKey::cluster(Kind::NodeIncident, "i1") }
}

const NO_TOMBSTONE: fn() -> Expect = || expect!["remove\n"];

#[test]
fn ct01_grace_is_the_pods_own_or_none() {
    let mut told = String::new();
    let mut tell = |note: &str, change: &dyn Fn(&mut Value)| {
        let mut tree = db0();
        tree["metadata"]["ownerReferences"] = json!([]);
        tree["spec"]["volumes"] = json!([]);
        change(&mut tree);
        let effect = cluster(Caller::User).delete(Kind::Pod, &mut tree, &Deletion::Graceful);
        let grace = &tree["metadata"]["deletionGracePeriodSeconds"];
        told += &format!("{note}: {effect:?}, grace {grace}\n");
    };
    tell("stated", &|p| p["spec"]["terminationGracePeriodSeconds"] = json!(5));
    tell("not stated", &|p| p["spec"]["terminationGracePeriodSeconds"] = Value::Null);
    tell("negative", &|p| p["spec"]["terminationGracePeriodSeconds"] = json!(-1));
    tell("zero", &|p| p["spec"]["terminationGracePeriodSeconds"] = json!(0));
    tell("not bound", &|p| p["spec"]["nodeName"] = json!(""));
    tell("failed", &|p| p["status"]["phase"] = json!("Failed"));
    tell("succeeded", &|p| p["status"]["phase"] = json!("Succeeded"));
    expect![[r#"
        stated: Ok(Put), grace 5
        not stated: Ok(Put), grace 30
        negative: Ok(Put), grace 1
        zero: Ok(Remove { tombstone: None }), grace null
        not bound: Ok(Remove { tombstone: None }), grace null
        failed: Ok(Remove { tombstone: None }), grace null
        succeeded: Ok(Remove { tombstone: None }), grace null
    "#]]
    .assert_eq(&told);
}

#[test]
fn ct02_a_second_deletion_shortens_and_never_lengthens() {
    let mut tree = db0();
    tree["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let bench = cluster(Caller::User);
    check(
        &bench,
        &mut tree,
        &Deletion::Graceful,
        &expect![[r#"
        put
        metadata.deletionGracePeriodSeconds: 30
        metadata.deletionTimestamp: "2026-05-28T20:27:30Z"
        metadata.generation: 1 -> 2
    "#]],
    );
    check(
        &bench,
        &mut tree,
        &Deletion::Graceful,
        &expect![[r#"
        same
    "#]],
    );
    check(
        &bench,
        &mut tree,
        &Deletion::Force,
        &expect![[r#"
        put
        metadata.deletionGracePeriodSeconds: 30 -> 0
        metadata.deletionTimestamp: "2026-05-28T20:27:30Z" -> "2026-05-28T20:27:00Z"
    "#]],
    );
    check(
        &bench,
        &mut tree,
        &Deletion::Force,
        &expect![[r#"
        same
    "#]],
    );
    check(
        &bench,
        &mut tree,
        &Deletion::Graceful,
        &expect![[r#"
        same
    "#]],
    );
}

#[test]
fn ct03_at_once_without_finalizers() {
    let mut tree =
        json!({ "metadata": { "name": "web-1", "namespace": "prod" }, "spec": { "nodeName": "n1" } });
    check(&cluster(Caller::User), &mut tree, &Deletion::Force, &NO_TOMBSTONE());
    let mut tree = json!({ "metadata": { "name": "va", "finalizers": ["external-attacher/d"] } });
    expect![[r#"
        put
        metadata.deletionGracePeriodSeconds: 0
        metadata.deletionTimestamp: "2026-05-28T20:27:00Z"
    "#]]
    .assert_eq(&cluster(Caller::User).deleted(Kind::VolumeAttachment, &mut tree, &Deletion::Graceful));
}

#[test]
fn ct06_force_leaves_a_tombstone_of_an_exclusive_pod() {
    check(
        &cluster(Caller::User),
        &mut db0(),
        &Deletion::Force,
        &expect![[r#"
        remove, tombstone
        apiVersion: "mainstay.dev/v1"
        kind: "Tombstone"
        metadata.creationTimestamp: "2026-05-28T20:27:00Z"
        metadata.generation: 1
        metadata.name: "pod-1"
        metadata.uid: "pod-1-tombstone"
        spec.bootID: "b1"
        spec.claims[0]: "data-db-0"
        spec.nodeName: "n1"
        spec.nodeUID: "u1"
        spec.podName: "db-0"
        spec.podNamespace: "prod"
        spec.podUID: "pod-1"
        spec.reason: "ForceDeleted"
    "#]],
    );
}

/// True if the pod, changed so, leaves a tombstone when it is deleted that way.
fn leaves(bench: &Bench, how: &Deletion, change: impl Fn(&mut Value)) -> bool {
    let mut tree = db0();
    change(&mut tree);
    match bench.delete(Kind::Pod, &mut tree, how) {
        Ok(Effect::Remove { tombstone }) => tombstone.is_some(),
        other => panic!("the pod goes at once: {other:?}"),
    }
}

#[test]
fn a_tombstone_is_left_exactly_if_an_exclusive_pod_may_still_run() {
    let user = cluster(Caller::User);
    let orphan = |p: &mut Value| p["metadata"]["ownerReferences"] = json!([]);
    let shared = json!({ "metadata": { "name": "data-db-0", "namespace": "prod" }, "spec": { "accessModes": ["ReadWriteMany"] } });
    let with_shared = Bench::new(Caller::User).with(Kind::PersistentVolumeClaim, &shared);
    let force = &Deletion::Force;
    assert!(leaves(&user, force, |_| ()), "it runs");
    assert!(leaves(&user, force, orphan), "a volume for one node is enough");
    assert!(leaves(&Bench::new(Caller::User), force, orphan), "a claim that nobody finds is no permission");
    assert!(!leaves(&with_shared, force, orphan), "a volume for all is not exclusive");
    assert!(!leaves(&user, force, |p| p["spec"]["nodeName"] = json!("")), "it never had a node");
    assert!(leaves(&user, force, |p| p["status"]["phase"] = json!("Failed")), "a phase alone proves nothing");
    assert!(
        leaves(&user, &Deletion::Graceful, |p| p["status"]["phase"] = json!("Failed")),
        "nor does politeness"
    );
    assert!(!leaves(&cluster(agent("n1", "u1")), force, |_| ()), "its node says so");
    let polite_node = cluster(agent("n1", "u1"));
    assert!(leaves(&polite_node, &Deletion::Graceful, |p| p["status"]["phase"] = json!("Failed")));
    let stock = cluster(Caller::User).under(Law::kubernetes());
    assert!(!leaves(&stock, force, |_| ()), "stock Kubernetes knows none");
    let flawed = Law { flaw: Some(Flaw::NoTombstone), ..Law::default() };
    assert!(!leaves(&cluster(Caller::User).under(flawed), force, |_| ()), "the flaw leaves it out");
}

#[test]
fn a_node_that_reported_the_end_has_given_its_word() {
    let report = |phase| Edit::PodReport(Box::new(PodStatus { phase, ..PodStatus::default() }));
    let ended = |caller: Caller| {
        move |tree: &mut Value| {
            // A controller that gives up on the pod first does not hide the word that comes later.
            let fail = Edit::FailPod { reason: String::new(), message: String::new(), condition: None };
            assert_eq!(Bench::controller().edit(Kind::Pod, tree, &fail), Ok(Effect::Put));
            assert_eq!(
                Bench::new(caller.clone()).edit(Kind::Pod, tree, &report(PodPhase::Failed)),
                Ok(Effect::Put)
            );
        }
    };
    assert!(!leaves(&cluster(Caller::User), &Deletion::Graceful, ended(agent("n1", "u1"))));
    assert!(leaves(&cluster(Caller::User), &Deletion::Graceful, ended(Caller::User)), "a person is no node");
}

#[test]
fn gc51_finalizers_keep_the_object_and_the_last_one_leaves_the_tombstone() {
    let mut tree = db0();
    tree["metadata"]["finalizers"] = json!(["batch.kubernetes.io/job-tracking"]);
    let bench = cluster(Caller::Controller);
    let fail = Edit::FailPod { reason: String::new(), message: String::new(), condition: None };
    assert_eq!(bench.edit(Kind::Pod, &mut tree, &fail), Ok(Effect::Put));
    check(
        &bench,
        &mut tree,
        &Deletion::Force,
        &expect![[r#"
        put
        metadata.deletionGracePeriodSeconds: 0
        metadata.deletionTimestamp: "2026-05-28T20:27:00Z"
        metadata.generation: 1 -> 2
    "#]],
    );
    assert_eq!(tree["status"]["phase"], "Failed");
    let last = Edit::RemoveFinalizer("batch.kubernetes.io/job-tracking".to_owned());
    let Ok(Effect::Remove { tombstone: Some(tombstone) }) = bench.edit(Kind::Pod, &mut tree, &last) else {
        panic!("the last finalizer lets the pod go and leaves a tombstone");
    };
    assert_eq!(tombstone["spec"]["reason"], "FinalizerRemoved");
}

#[test]
fn p86_a_node_made_anew_is_not_the_one_that_held_the_pod() {
    let heir = Bench::new(Caller::User).with(Kind::Node, &node("n1", "u9", "b9"));
    let mut tree = db0();
    let Ok(Effect::Remove { tombstone: Some(tombstone) }) =
        heir.delete(Kind::Pod, &mut tree, &Deletion::Force)
    else {
        panic!("the pod goes and leaves a tombstone");
    };
    // The old machine is meant, and every boot of it, since nobody knows which one was the last.
    assert_eq!(tombstone["spec"]["nodeUID"], "u1");
    assert_eq!(tombstone["spec"]["bootID"], Value::Null);
    assert_eq!(tombstone["spec"]["reason"], "NodeDeleted");
}

// Invariant E1
#[test]
fn e1_evidence_must_stand_and_be_about_the_same_node() {
    let mut told = String::new();
    let mut tell = |note: &str, incident: Option<Value>| {
        let mut bench = cluster(Caller::Controller);
        if let Some(incident) = incident {
            bench = bench.with(Kind::NodeIncident, &incident);
        }
        told += &format!("{note}: {}", bench.deleted(Kind::Pod, &mut db0(), &proven()));
    };
    tell("fenced", Some(incident("Fenced", "u1", &evidence())));
    tell("recovering", Some(incident("Recovering", "u1", &evidence())));
    tell("not there", None);
    tell("only closing", Some(incident("Fencing", "u1", &json!([]))));
    tell("without evidence", Some(incident("Fenced", "u1", &json!([]))));
    tell("taken up again", Some(incident("Closed", "u1", &evidence())));
    tell("another node", Some(incident("Fenced", "u2", &evidence())));
    expect![[r#"
        fenced: remove
        recovering: remove
        not there: refused: nodeincidents.mainstay.dev "i1" not found
        only closing: refused: Operation cannot be fulfilled on pods "db-0": nodeincident/i1 is Fencing: no evidence stands
        without evidence: refused: Operation cannot be fulfilled on pods "db-0": nodeincident/i1 is Fenced: no evidence stands
        taken up again: refused: Operation cannot be fulfilled on pods "db-0": nodeincident/i1 is Closed: no evidence stands
        another node: refused: Operation cannot be fulfilled on pods "db-0": nodeincident/i1 is about another node
    "#]]
    .assert_eq(&told);
}

#[test]
fn e1_evidence_covers_attachments_and_tombstones_and_nothing_else() {
    let bench = cluster(Caller::Controller).with(Kind::NodeIncident, &incident("Fenced", "u1", &evidence()));
    let mut told = String::new();
    let mut tell = |kind, mut tree: Value| told += &bench.deleted(kind, &mut tree, &proven());
    tell(Kind::VolumeAttachment, json!({ "metadata": { "name": "a" }, "spec": { "nodeName": "n1" } }));
    tell(Kind::VolumeAttachment, json!({ "metadata": { "name": "a" }, "spec": { "nodeName": "n2" } }));
    tell(Kind::Tombstone, json!({ "metadata": { "name": "p" }, "spec": { "nodeUID": "u1" } }));
    tell(Kind::Tombstone, json!({ "metadata": { "name": "p" }, "spec": { "nodeUID": "u2" } }));
    tell(Kind::PersistentVolume, json!({ "metadata": { "name": "v" } }));
    expect![[r#"
        remove
        refused: Operation cannot be fulfilled on volumeattachments.storage.k8s.io "a": nodeincident/i1 is about another node
        remove
        refused: Operation cannot be fulfilled on tombstones.mainstay.dev "p": nodeincident/i1 is about another node
        refused: PersistentVolume "v" is invalid: kind: Forbidden: the death of a node says nothing about a PersistentVolume
    "#]]
    .assert_eq(&told);
}

#[test]
fn ct07_a_node_deletes_only_its_own() {
    let bench = cluster(agent("n1", "u1"));
    let mut told = String::new();
    let mut tell = |kind, mut tree: Value| told += &bench.deleted(kind, &mut tree, &Deletion::Force);
    let mut elsewhere = db0();
    elsewhere["spec"]["nodeName"] = json!("n2");
    let mut older = db0();
    older["metadata"]["annotations"]["mainstay.dev/node-uid"] = json!("u0");
    tell(Kind::Pod, db0());
    tell(Kind::Pod, elsewhere);
    tell(Kind::Pod, older);
    tell(Kind::Tombstone, json!({ "metadata": { "name": "p" }, "spec": { "nodeUID": "u1" } }));
    tell(Kind::Tombstone, json!({ "metadata": { "name": "p" }, "spec": { "nodeUID": "u0" } }));
    tell(Kind::Node, node("n1", "u1", "b1"));
    tell(Kind::VolumeAttachment, json!({ "metadata": { "name": "a" }, "spec": { "nodeName": "n1" } }));
    expect![[r#"
        remove
        refused: pods "db-0" is forbidden: node "n1" can only delete pods with spec.nodeName set to itself
        refused: pods "db-0" is forbidden: node "n1" can only delete pods with spec.nodeName set to itself
        remove
        refused: tombstones.mainstay.dev "p" is forbidden: node "n1" is not allowed to modify tombstone "p"
        refused: nodes "n1" is forbidden: node "n1" is not allowed to modify node "n1"
        refused: volumeattachments.storage.k8s.io "a" is forbidden: node "n1" is not allowed to modify volumeattachment "a"
    "#]]
    .assert_eq(&told);
}

#[test]
fn a_node_object_goes_at_once() {
    expect!["remove\n"].assert_eq(&cluster(Caller::User).deleted(
        Kind::Node,
        &mut node("n1", "u1", "b1"),
        &Deletion::Graceful,
    ));
}

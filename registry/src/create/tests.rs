//! Tests of creation: templates, dresses, admission, stamps.

use api::annotation::{NODE_LEASES, NODE_UID};
use api::object::{Kind, ObjectKey};
use api::view::View;
use api::write::{Dress, New};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::testing::{Bench, changes, node};
use crate::{Caller, Law};

fn view(kind: Kind, tree: &Value) -> New {
    let bytes = tree.to_string();
    New::Object(Box::new(View::read(kind, bytes.as_bytes()).expect("a tree of the tests has a view")))
}

fn check(bench: &Bench, new: &New, owner: Option<&Value>, expect: &Expect) {
    let text = match bench.create(new, owner) {
        Ok(tree) => changes(&Value::Null, &tree),
        Err(refusal) => format!("refused: {refusal}\n"),
    };
    expect.assert_eq(&text);
}

/// A workload of that kind with a template that holds a field no view knows.
fn owner() -> Value {
    json!({
        "metadata": { "name": "db", "namespace": "prod", "uid": "own-1" },
        "spec": {
            "serviceName": "db-headless",
            "selector": { "matchLabels": { "app": "db" } },
            "template": {
                "metadata": { "creationTimestamp": null, "labels": { "app": "db" }, "annotations": { NODE_UID: "forged" } },
                "spec": {
                    "strange": { "kept": true },
                    "containers": [{ "name": "db", "image": "db:1" }],
                    "volumes": [{ "name": "data", "emptyDir": {} }, { "name": "tmp", "emptyDir": {} }],
                },
            },
            "volumeClaimTemplates": [{
                "metadata": { "name": "data", "labels": { "app": "other", "tier": "disk" } },
                "spec": { "accessModes": ["ReadWriteOnce"], "strange": 1 },
            }],
        },
    })
}

fn pod(kind: Kind, name: &str, dress: Dress) -> New {
    let owner = ObjectKey::namespaced(kind, &"prod".into(), "db");
    New::Pod { owner, owner_uid: "own-1".into(), name: name.into(), dress }
}

#[test]
fn a_pod_of_a_stateful_set_has_its_name_and_its_claims() {
    let new = pod(Kind::StatefulSet, "db-0", Dress::Ordinal(0));
    check(
        &Bench::controller(),
        &new,
        Some(&owner()),
        &expect![[r#"
        apiVersion: "v1"
        kind: "Pod"
        metadata.creationTimestamp: "2026-05-28T20:27:00Z"
        metadata.generateName: "db-"
        metadata.generation: 1
        metadata.labels.app: "db"
        metadata.labels.apps.kubernetes.io/pod-index: "0"
        metadata.labels.statefulset.kubernetes.io/pod-name: "db-0"
        metadata.name: "db-0"
        metadata.namespace: "prod"
        metadata.ownerReferences[0].apiVersion: "apps/v1"
        metadata.ownerReferences[0].blockOwnerDeletion: true
        metadata.ownerReferences[0].controller: true
        metadata.ownerReferences[0].kind: "StatefulSet"
        metadata.ownerReferences[0].name: "db"
        metadata.ownerReferences[0].uid: "own-1"
        metadata.uid: "new-uid"
        spec.containers[0].image: "db:1"
        spec.containers[0].name: "db"
        spec.hostname: "db-0"
        spec.priority: 0
        spec.restartPolicy: "Always"
        spec.strange.kept: true
        spec.subdomain: "db-headless"
        spec.terminationGracePeriodSeconds: 30
        spec.tolerations[0].effect: "NoExecute"
        spec.tolerations[0].key: "node.kubernetes.io/not-ready"
        spec.tolerations[0].operator: "Exists"
        spec.tolerations[0].tolerationSeconds: 300
        spec.tolerations[1].effect: "NoExecute"
        spec.tolerations[1].key: "node.kubernetes.io/unreachable"
        spec.tolerations[1].operator: "Exists"
        spec.tolerations[1].tolerationSeconds: 300
        spec.volumes[0].name: "data"
        spec.volumes[0].persistentVolumeClaim.claimName: "data-db-0"
        spec.volumes[1].emptyDir: {}
        spec.volumes[1].name: "tmp"
        status.phase: "Pending"
    "#]],
    );
}

#[test]
fn a_daemon_pod_is_pinned_and_lives_with_its_node() {
    let new = pod(Kind::DaemonSet, "log-n1", Dress::OnNode("n1".into()));
    let mut daemon = owner();
    let spec = &mut daemon["spec"]["template"]["spec"];
    *spec = json!({ "hostNetwork": true, "affinity": { "podAffinity": {} }, "tolerations": [
        { "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5 },
    ] });
    let tree = Bench::controller().create(&new, Some(&daemon)).expect("the owner is there");
    expect![[r#"
        spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].key: "metadata.name"
        spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].operator: "In"
        spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].values[0]: "n1"
        spec.affinity.podAffinity: {}
        spec.hostNetwork: true
        spec.priority: 0
        spec.restartPolicy: "Always"
        spec.terminationGracePeriodSeconds: 30
        spec.tolerations[0].effect: "NoExecute"
        spec.tolerations[0].key: "node.kubernetes.io/not-ready"
        spec.tolerations[0].operator: "Exists"
        spec.tolerations[1].effect: "NoExecute"
        spec.tolerations[1].key: "node.kubernetes.io/unreachable"
        spec.tolerations[1].operator: "Exists"
        spec.tolerations[2].effect: "NoSchedule"
        spec.tolerations[2].key: "node.kubernetes.io/disk-pressure"
        spec.tolerations[2].operator: "Exists"
        spec.tolerations[3].effect: "NoSchedule"
        spec.tolerations[3].key: "node.kubernetes.io/memory-pressure"
        spec.tolerations[3].operator: "Exists"
        spec.tolerations[4].effect: "NoSchedule"
        spec.tolerations[4].key: "node.kubernetes.io/pid-pressure"
        spec.tolerations[4].operator: "Exists"
        spec.tolerations[5].effect: "NoSchedule"
        spec.tolerations[5].key: "node.kubernetes.io/unschedulable"
        spec.tolerations[5].operator: "Exists"
        spec.tolerations[6].effect: "NoSchedule"
        spec.tolerations[6].key: "node.kubernetes.io/network-unavailable"
        spec.tolerations[6].operator: "Exists"
    "#]].assert_eq(&changes(&json!({}), &json!({ "spec": tree["spec"] })));
}

#[test]
fn a_template_cannot_say_which_machine_a_pod_is_on() {
    let tree = Bench::controller().create(&pod(Kind::ReplicaSet, "db-x", Dress::Plain), Some(&owner()));
    assert_eq!(tree.expect("the owner is there")["metadata"]["annotations"], Value::Null);
}

#[test]
fn an_owner_that_is_gone_or_another_makes_nothing() {
    let new = pod(Kind::ReplicaSet, "db-x", Dress::Plain);
    let bench = Bench::controller();
    check(
        &bench,
        &new,
        None,
        &expect![[r#"
        refused: replicasets.apps "db" not found
    "#]],
    );
    let mut other = owner();
    other["metadata"]["uid"] = json!("own-2");
    check(
        &bench,
        &new,
        Some(&other),
        &expect![[r#"
        refused: Operation cannot be fulfilled on replicasets.apps "db": the owner with uid own-1 is gone, another has its name
    "#]],
    );
    check(
        &bench,
        &new,
        Some(&json!({ "metadata": { "uid": "own-1" } })),
        &expect![[r#"
        refused: ReplicaSet.apps "db" is invalid: spec.template: Required value
    "#]],
    );
}

#[test]
fn a_claim_comes_from_its_template() {
    let set = ObjectKey::namespaced(Kind::StatefulSet, &"prod".into(), "db");
    let claim = |template| New::Claim { owner: set.clone(), template, name: "data-db-0".into() };
    check(
        &Bench::controller(),
        &claim(0),
        Some(&owner()),
        &expect![[r#"
        apiVersion: "v1"
        kind: "PersistentVolumeClaim"
        metadata.creationTimestamp: "2026-05-28T20:27:00Z"
        metadata.labels.app: "db"
        metadata.labels.tier: "disk"
        metadata.name: "data-db-0"
        metadata.namespace: "prod"
        metadata.uid: "new-uid"
        spec.accessModes[0]: "ReadWriteOnce"
        spec.strange: 1
        status.phase: "Pending"
    "#]],
    );
    check(
        &Bench::controller(),
        &claim(1),
        Some(&owner()),
        &expect![[r#"
        refused: StatefulSet.apps "db" is invalid: spec.volumeClaimTemplates[1]: Required value
    "#]],
    );
}

#[test]
fn default_toleration_seconds_only_where_the_pod_says_nothing() {
    let mut told = String::new();
    let mut tell = |note: &str, tolerations: Value| {
        let tree = json!({ "metadata": { "name": "p", "namespace": "prod" }, "spec": { "tolerations": tolerations } });
        let made =
            Bench::new(Caller::User).create(&view(Kind::Pod, &tree), None).expect("nothing is wrong with it");
        let list = made["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
        let words: Vec<String> =
            list.iter().map(|t| format!("{}={}", t["key"], t["tolerationSeconds"])).collect();
        told += &format!("{note}: {}\n", words.join(" "));
    };
    tell("nothing", json!([]));
    tell(
        "own seconds",
        json!([{ "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5 }]),
    );
    tell("any effect", json!([{ "key": "node.kubernetes.io/unreachable", "operator": "Exists" }]));
    tell(
        "another effect",
        json!([{ "key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoSchedule" }]),
    );
    tell("everything", json!([{ "operator": "Exists" }]));
    expect![[r#"
        nothing: "node.kubernetes.io/not-ready"=300 "node.kubernetes.io/unreachable"=300
        own seconds: "node.kubernetes.io/not-ready"=5 "node.kubernetes.io/unreachable"=300
        any effect: "node.kubernetes.io/unreachable"=null "node.kubernetes.io/not-ready"=300
        another effect: "node.kubernetes.io/unreachable"=null "node.kubernetes.io/not-ready"=300 "node.kubernetes.io/unreachable"=300
        everything: null=null
    "#]].assert_eq(&told);
}

#[test]
fn hb21_a_new_node_is_not_ready() {
    let fresh = json!({ "metadata": { "name": "n1" }, "status": { "conditions": [{ "type": "Ready", "status": "True" }] } });
    let bench = Bench::new(crate::testing::agent("n1", ""));
    check(
        &bench,
        &view(Kind::Node, &fresh),
        None,
        &expect![[r#"
        apiVersion: "v1"
        kind: "Node"
        metadata.creationTimestamp: "2026-05-28T20:27:00Z"
        metadata.name: "n1"
        metadata.uid: "new-uid"
        spec.taints[0].effect: "NoSchedule"
        spec.taints[0].key: "node.kubernetes.io/not-ready"
        status.conditions[0].status: "True"
        status.conditions[0].type: "Ready"
    "#]],
    );
    let tainted = json!({ "metadata": { "name": "n1" }, "spec": { "taints": [
        { "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" }, { "key": "x", "effect": "NoExecute" },
    ] } });
    let taints = |law| {
        let made = Bench::new(Caller::User).under(law).create(&view(Kind::Node, &tainted), None);
        made.expect("nothing is wrong with it")["spec"]["taints"].to_string()
    };
    expect![[r#"[{"effect":"NoSchedule","key":"node.kubernetes.io/not-ready"},{"effect":"NoExecute","key":"x","timeAdded":"2026-05-28T20:27:00Z"}]"#]].assert_eq(&taints(Law::default()));
    expect![[
        r#"[{"effect":"NoSchedule","key":"node.kubernetes.io/not-ready"},{"effect":"NoExecute","key":"x"}]"#
    ]]
    .assert_eq(&taints(Law::kubernetes()));
}

#[test]
fn status_is_what_its_writer_says_later_except_of_our_own_incidents() {
    let made = |kind, tree: Value| {
        Bench::controller().create(&view(kind, &tree), None).expect("nothing is wrong with it")
    };
    let meta = json!({ "name": "x", "namespace": "prod" });
    let status =
        |kind, status: Value| made(kind, json!({ "metadata": meta, "status": status }))["status"].to_string();
    let told = [
        status(Kind::Pod, json!({ "phase": "Running", "podIP": "10.0.0.1" })),
        status(Kind::ReplicaSet, json!({ "replicas": 3 })),
        status(Kind::VolumeAttachment, json!({ "attached": true })),
        status(Kind::NodeIncident, json!({ "phase": "Fencing", "killBoundMs": 2200 })),
        status(Kind::NodeIncident, json!({})),
    ];
    expect![[r#"
        {"phase":"Pending"}
        {"replicas":0}
        {"attached":false}
        {"killBoundMs":2200,"phase":"Fencing"}
        {"phase":"Suspect"}"#]]
    .assert_eq(&told.join("\n"));
    let lease =
        made(Kind::Lease, json!({ "metadata": meta, "spec": { "renewTime": "2026-05-28T20:27:00Z" } }));
    assert_eq!(lease["spec"]["renewTime"], "2026-05-28T20:27:00.000000Z");
}

#[test]
fn p86_a_pod_that_arrives_bound_gets_the_identity_of_its_node() {
    let mirror = json!({
        "metadata": { "name": "m", "namespace": "prod", "annotations": { "kubernetes.io/config.mirror": "x" } },
        "spec": { "nodeName": "n1" },
    });
    let uid = |bench: &Bench| {
        let made = bench.create(&view(Kind::Pod, &mirror), None).expect("nothing is wrong with it");
        made["metadata"]["annotations"][NODE_UID].clone()
    };
    assert_eq!(uid(&Bench::node()), "u1");
    assert_eq!(uid(&Bench::new(Caller::User).with(Kind::Node, &node("n1", "u7", "b1"))), "u7");
    assert_eq!(uid(&Bench::new(Caller::User)), Value::Null);
}

#[test]
fn ct07_a_node_creates_only_itself_its_lease_and_mirrors() {
    let bench = Bench::node();
    let meta = |name: &str, namespace: &str| json!({ "metadata": { "name": name, "namespace": namespace } });
    let made =
        |kind, tree: &Value| bench.create(&view(kind, tree), None).map_err(|refusal| refusal.to_string());
    assert!(made(Kind::Node, &meta("n1", "")).is_ok());
    assert!(made(Kind::Lease, &meta("n1", NODE_LEASES)).is_ok());
    let refused = [
        made(Kind::Node, &meta("n2", "")),
        made(Kind::Lease, &meta("n1", "kube-system")),
        made(Kind::Pod, &meta("p", "prod")),
        made(Kind::Tombstone, &meta("t", "")),
    ];
    let told: Vec<String> = refused.into_iter().filter_map(Result::err).collect();
    expect![[r#"
        nodes "n2" is forbidden: node "n1" is not allowed to modify node "n2"
        leases.coordination.k8s.io "n1" is forbidden: node "n1" is not allowed to modify lease "n1"
        pods "p" is forbidden: node "n1" can only create pods with spec.nodeName set to itself that mirror its own
        tombstones.mainstay.dev "t" is forbidden: node "n1" is not allowed to modify tombstone "t""#]].assert_eq(&told.join("\n"));
}

//! The pod that a workload makes from its template.

use api::annotation::{
    DISK_PRESSURE, MEMORY_PRESSURE, NETWORK_UNAVAILABLE, NOT_READY, PID_PRESSURE, STATEFUL_SET_POD_NAME,
    UNREACHABLE, UNSCHEDULABLE,
};
use api::id::{Name, Uid};
use api::object::ObjectKey;
use api::taint::{TaintEffect, Toleration};
use api::view::tree as tree_of;
use api::write::Dress;
use serde_json::{Value, json};

use super::{copy_meta, the_owner};
use crate::refusal::Refusal;
use crate::tree as t;

/// Upstream's label with the ordinal of a StatefulSet's pod.
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// Taints that a daemon pod lives with (section 1.9.1 of upstream's list). Out-of-service is not among them: it
/// moves daemon pods too.
const DAEMON_TOLERATIONS: &[(&str, TaintEffect)] = &[
    (NOT_READY, TaintEffect::NoExecute),
    (UNREACHABLE, TaintEffect::NoExecute),
    (DISK_PRESSURE, TaintEffect::NoSchedule),
    (MEMORY_PRESSURE, TaintEffect::NoSchedule),
    (PID_PRESSURE, TaintEffect::NoSchedule),
    (UNSCHEDULABLE, TaintEffect::NoSchedule),
];

/// The template as a pod of that owner.
pub(super) fn from_template(
    owner_key: &ObjectKey,
    owner: Option<&Value>,
    owner_uid: &Uid,
    name: &Name,
    dress: &Dress,
) -> Result<Value, Refusal> {
    let owner = the_owner(owner_key, owner, Some(owner_uid))?;
    let Some(template) = t::get(owner, &["spec", "template"]).filter(|t| t.is_object()) else {
        return Err(Refusal::required(owner_key, "spec.template"));
    };
    let mut pod = json!({ "spec": template.get("spec").cloned().unwrap_or_else(|| json!({})) });
    copy_meta(template, &mut pod, &["labels", "annotations", "finalizers"]);
    let meta = t::fields(&mut pod, &["metadata"]);
    t::set(meta, "generateName", format!("{}-", owner_key.name));
    t::set(meta, "ownerReferences", json!([owner_reference(owner_key, owner_uid)]));
    match dress {
        Dress::Plain => {}
        Dress::Ordinal(ordinal) => dress_ordinal(&mut pod, owner, name, *ordinal),
        Dress::OnNode(node) => dress_on_node(&mut pod, node),
    }
    Ok(pod)
}

fn owner_reference(owner: &ObjectKey, uid: &Uid) -> Value {
    json!({
        "apiVersion": owner.kind.api_version(),
        "kind": owner.kind.noun(),
        "name": owner.name.as_str(),
        "uid": uid.as_str(),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// StatefulSet: a name that stays, and the claims that go with it.
fn dress_ordinal(pod: &mut Value, set: &Value, name: &Name, ordinal: u32) {
    let labels = t::fields(pod, &["metadata", "labels"]);
    t::set(labels, STATEFUL_SET_POD_NAME, name.as_str());
    t::set(labels, POD_INDEX, ordinal.to_string());
    let templates = t::list(set, &["spec", "volumeClaimTemplates"]);
    let names = || templates.iter().map(|c| t::text(c, &["metadata", "name"]));
    let volume = |template: &str| {
        let claim = format!("{template}-{name}");
        json!({ "name": template, "persistentVolumeClaim": { "claimName": claim } })
    };
    let mut volumes: Vec<Value> = names().map(volume).collect();
    // A volume of the template that has the name of a claim gives way to the claim.
    let others = t::list(pod, &["spec", "volumes"]).iter();
    volumes.extend(others.filter(|v| !names().any(|n| n == t::text(v, &["name"]))).cloned());
    let spec = t::fields(pod, &["spec"]);
    t::set(spec, "hostname", name.as_str());
    t::set_or_clear(spec, "subdomain", t::text(set, &["spec", "serviceName"]));
    t::set_or_clear(spec, "volumes", volumes);
}

/// DaemonSet: this node and no other, and staying on it whatever its state.
fn dress_on_node(pod: &mut Value, node: &Name) {
    let rule = json!({ "key": "metadata.name", "operator": "In", "values": [node.as_str()] });
    let required = t::fields(
        pod,
        &["spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"],
    );
    t::set(required, "nodeSelectorTerms", json!([{ "matchFields": [rule] }]));
    let on_host_network = t::get(pod, &["spec", "hostNetwork"]) == Some(&Value::Bool(true));
    let network = on_host_network.then_some((NETWORK_UNAVAILABLE, TaintEffect::NoSchedule));
    let mut tolerations = t::list(pod, &["spec", "tolerations"]).to_vec();
    for (key, effect) in DAEMON_TOLERATIONS.iter().copied().chain(network) {
        let wanted = tree_of(&Toleration::exists(key, Some(effect), None));
        let is_same = |o: &&mut Value| {
            ["key", "operator", "value", "effect"].iter().all(|f| o.get(*f) == wanted.get(*f))
        };
        match tolerations.iter_mut().find(is_same) {
            // Without seconds: for ever.
            Some(own) => *own = wanted,
            None => tolerations.push(wanted),
        }
    }
    t::set(t::fields(pod, &["spec"]), "tolerations", tolerations);
}

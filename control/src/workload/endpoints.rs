//! Endpoints: which pods get the traffic of a service (CT-24, promise F1, case P69).
//!
//! Responsible for: one EndpointSlice per service. Leaves to agents what they do with it. A second slice for a service
//! of more than [`ENDPOINTS_MAX`] pods, ports, and families of addresses other than the pod's own are not made yet;
//! the first is said in `why`.
//!
//! Invariants:
//! - F1: a pod on a node with an open incident, from Suspect on, is neither ready nor serving. That is the only thing
//!   that suspicion does: it is undone by one beat, and wrong suspicion costs one pod's share of the traffic.
//! - B1: while a brake holds the incident, its endpoints stay as they are, whatever the pods' conditions say in the
//!   meantime. With all nodes silent it is we who are cut off, and a service without endpoints would be our doing.

use std::collections::BTreeMap;

use api::annotation::SERVICE_NAME;
use api::edit::Edit;
use api::view::{
    Endpoint, EndpointConditions, EndpointSlice, Meta, ObjectReference, OwnerReference, Pod, Service, View,
};
use api::{Kind, Name, ObjectKey, Time, Uid};

use super::{generated, node_uid, views};
use crate::controller::{Change, Controller, Key, Scope};
use crate::decision::{Action, Decision, Deletion, Expect, New, Note};
use crate::world::{Seen, World};

/// Endpoints in one slice at most: what the API allows. Upstream fills 100 and makes more slices.
const ENDPOINTS_MAX: usize = 1000;

/// Upstream's label that says who keeps a slice.
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const MANAGER: &str = "endpointslice-controller.k8s.io";

/// The controller of EndpointSlices.
pub struct Endpoints;

impl Controller for Endpoints {
    fn scope(&self) -> &'static Scope {
        static SCOPE: Scope = Scope {
            name: "endpointslice-controller",
            reads: &[Kind::Service, Kind::EndpointSlice, Kind::Pod, Kind::NodeIncident, Kind::Node],
            writes: &[Kind::EndpointSlice],
        };
        &SCOPE
    }

    fn touched(&self, change: &Change, world: &World, keys: &mut Vec<Key>) {
        let Some((key, old, new)) = views(change) else { return };
        if key.kind == Kind::Service {
            keys.push(Key::Object(key.clone()));
        }
        for view in [old, new].into_iter().flatten() {
            if let View::Pod(pod) = view {
                touch_services(world, pod, keys);
            } else if let View::EndpointSlice(slice) = view {
                keys.extend(service_of(slice).map(Key::Object));
            } else if let View::NodeIncident(incident) = view {
                for pod in world.pods_on(&incident.spec.node_name) {
                    touch_services(world, pod, keys);
                }
            }
        }
    }

    fn decide(&self, world: &World, key: &Key, _now: Time) -> Decision {
        let Some(key) = key.object() else { return Decision::rest() };
        let Some(service) = world.service(&key.namespace, &key.name) else {
            return forget(world, key);
        };
        // A service without selector has endpoints that somebody else writes.
        if service.spec.selector.is_empty() || service.metadata.is_terminating() {
            return Decision::rest();
        }
        let name = generated(&service.metadata.name, &[service.metadata.uid.as_str()]);
        let slice = world.endpoint_slice(&key.namespace, &name);
        let (endpoints, left_out) = endpoints(world, service, slice);
        let decision = match slice {
            None => Decision::rest().with(
                Action::create(New::Object(Box::new(new_slice(service, name, endpoints))))
                    .expecting(Expect::Uid(key.clone(), service.metadata.uid.clone())),
            ),
            Some(slice) if slice.endpoints != endpoints => {
                Decision::rest().with(Action::edit(slice_key(slice), slice.rev, Edit::Endpoints(endpoints)))
            }
            Some(_) => Decision::rest(),
        };
        if left_out == 0 {
            return decision;
        }
        let text = format!("{left_out} endpoints do not fit into one slice and get no traffic");
        decision.because(Note::warning(
            key.clone(),
            "EndpointsOverCapacity",
            text,
            service.metadata.uid.to_string(),
        ))
    }
}

/// The services that lead to a pod.
fn touch_services(world: &World, pod: &Pod, keys: &mut Vec<Key>) {
    let leading = world.services_in(&pod.metadata.namespace).filter(|s| leads_to(s, pod));
    keys.extend(leading.map(|s| {
        Key::Object(ObjectKey::namespaced(Kind::Service, &s.metadata.namespace, s.metadata.name.clone()))
    }));
}

fn leads_to(service: &Service, pod: &Pod) -> bool {
    let selector = &service.spec.selector;
    !selector.is_empty() && selector.iter().all(|(k, v)| pod.metadata.labels.get(k) == Some(v))
}

fn service_of(slice: &EndpointSlice) -> Option<ObjectKey> {
    let name = slice.metadata.labels.get(SERVICE_NAME)?;
    Some(ObjectKey::namespaced(Kind::Service, &slice.metadata.namespace, name.as_str()))
}

/// The service is gone: its slice goes too. Slices that somebody else made stay.
fn forget(world: &World, service: &ObjectKey) -> Decision {
    let mine = world.endpoint_slices_in(&service.namespace).filter(|s| {
        service_of(s).as_ref() == Some(service)
            && s.metadata.labels.get(MANAGED_BY).is_some_and(|m| m == MANAGER)
    });
    let delete =
        |s: &Seen<EndpointSlice>| Action::delete(slice_key(s), s.metadata.uid.clone(), Deletion::Graceful);
    Decision { actions: mine.map(delete).collect(), ..Decision::default() }
}

/// The endpoints of a service, and how many were left out.
fn endpoints(
    world: &World,
    service: &Service,
    slice: Option<&Seen<EndpointSlice>>,
) -> (Vec<Endpoint>, usize) {
    let before: BTreeMap<&Uid, EndpointConditions> = slice
        .map(|s| s.endpoints.iter().map(|e| (&e.target_ref.uid, e.conditions)).collect())
        .unwrap_or_default();
    let mut all: Vec<Endpoint> = world
        .pods_in(&service.metadata.namespace)
        .filter(|pod| leads_to(service, pod) && !pod.is_terminal() && !pod.status.pod_ip.is_empty())
        .map(|pod| endpoint(service, pod, is_serving(world, pod, before.get(&pod.metadata.uid))))
        .collect();
    let left_out = all.len().saturating_sub(ENDPOINTS_MAX);
    all.truncate(ENDPOINTS_MAX);
    (all, left_out)
}

/// Whether a pod can take traffic: its own word, unless its node is suspected.
fn is_serving(world: &World, pod: &Pod, before: Option<&EndpointConditions>) -> bool {
    let Some(incident) = world.open_incident(&node_uid(world, pod)) else {
        return pod.is_ready();
    };
    // Promise F1.
    if incident.status.brakes.is_empty() {
        return false;
    }
    // Invariant B1.
    before.map_or_else(|| pod.is_ready(), |b| b.serving)
}

/// CT-24.
fn endpoint(service: &Service, pod: &Pod, serving: bool) -> Endpoint {
    let terminating = pod.metadata.is_terminating();
    let ready = service.spec.publish_not_ready_addresses || serving && !terminating;
    Endpoint {
        addresses: vec![pod.status.pod_ip.clone()],
        conditions: EndpointConditions { ready, serving, terminating },
        node_name: pod.spec.node_name.clone(),
        target_ref: ObjectReference {
            kind: Kind::Pod.noun(),
            namespace: pod.metadata.namespace.clone(),
            name: pod.metadata.name.clone(),
            uid: pod.metadata.uid.clone(),
        },
    }
}

fn new_slice(service: &Service, name: Name, endpoints: Vec<Endpoint>) -> View {
    let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let owner = OwnerReference {
        api_version: Kind::Service.api_version(),
        kind: Kind::Service.noun(),
        name: service.metadata.name.clone(),
        uid: service.metadata.uid.clone(),
        controller: true,
        block_owner_deletion: true,
    };
    let metadata = Meta {
        name,
        namespace: service.metadata.namespace.clone(),
        labels: [label(SERVICE_NAME, service.metadata.name.as_str()), label(MANAGED_BY, MANAGER)].into(),
        owner_references: vec![owner],
        ..Meta::default()
    };
    View::EndpointSlice(EndpointSlice { metadata, address_type: "IPv4".to_owned(), endpoints }.into())
}

fn slice_key(slice: &EndpointSlice) -> ObjectKey {
    ObjectKey::namespaced(Kind::EndpointSlice, &slice.metadata.namespace, slice.metadata.name.clone())
}

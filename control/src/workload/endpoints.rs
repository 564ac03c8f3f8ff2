//! Endpoints: which pods get the traffic of a service (CT-24, promise F1, case P69).
//!
//! Responsible for: the EndpointSlices of each service, of [`ENDPOINTS_MAX`] endpoints at most. Leaves to agents what
//! they do with them. Ports, and families of addresses other than the pod's own, are not made yet.
//!
//! One change of one pod must not cost the whole of a big service. Therefore an endpoint stays in its slice for as long
//! as it lives, a decision writes the slices that differ and no others, and what only adds traffic is gathered for
//! [`ADDITIONS_PAUSE`]. What takes traffic away is never held up: it is decided at once and written first.
//!
//! Invariants:
//! - F1: a pod on a node with an open incident, from Suspect on, is neither ready nor serving. That is the only thing
//!   that suspicion does: it is undone by one beat, and wrong suspicion costs one pod's share of the traffic.
//! - B1: while a brake holds the incident, its endpoints stay as they are, whatever the pods' conditions say in the
//!   meantime. With all nodes silent it is we who are cut off, and a service without endpoints would be our doing.
//! - A pod stands in one slice at most, and never moves: every prefix of the actions leaves all other pods as they were.

use std::collections::BTreeMap;

use api::annotation::{NODE_UID, SERVICE_NAME};
use api::edit::Edit;
use api::view::{
    Endpoint, EndpointConditions, EndpointSlice, Meta, NodeIncident, ObjectReference, OwnerReference, Pod,
    Service, View,
};
use api::{Duration, Kind, Name, ObjectKey, Time, Uid};

use super::{BURST, generated, hash, node_uid, views};
use crate::controller::{Change, Controller, Key, Scope};
use crate::decision::{Action, Decision, Deletion, Expect, New};
use crate::world::{Seen, World};

/// Endpoints in one slice at most: upstream's `maxEndpointsPerSlice`. With half as many a big service has twice the
/// objects; with twice as many each pod's death sends twice the bytes to every node.
const ENDPOINTS_MAX: usize = 100;

/// What takes no traffic away waits until the service's slices have rested for this long, under every profile: no
/// promise is about traffic that comes a moment later, upstream's controller has the same knob and its rate limiter
/// the same effect, and a probe's period is ten times as long. Half of it writes twice as often while a service starts;
/// at double, a rollout that waits for each pod would be noticeably slower.
const ADDITIONS_PAUSE: Duration = Duration::from_ms(100);

/// Slices written by one decision at most that take no traffic away: a withdrawal that comes meanwhile waits for so
/// many commits of the store. Half as many would let a service of 10,000 pods start for two seconds longer.
const ADDITIONS_MAX: usize = 20;

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
        if let (Some(View::Pod(old)), Some(View::Pod(new))) = (old, new)
            && face(old) == face(new)
        {
            return;
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

    fn patience(&self, change: &Change, world: &World, key: &Key) -> Option<Time> {
        let (_, old, Some(View::Pod(new))) = views(change)? else { return None };
        if let Some(View::Pod(old)) = old
            && may_withdraw(old, new)
        {
            return None;
        }
        let service = key.object()?;
        additions_due(world.slices_of(&service.namespace, &service.name))
    }

    fn decide(&self, world: &World, key: &Key, now: Time) -> Decision {
        let Some(key) = key.object() else { return Decision::rest() };
        let Some(service) = world.service(&key.namespace, &key.name) else {
            return forget(world, key);
        };
        // A service without selector has endpoints that somebody else writes.
        if service.spec.selector.is_empty() || service.metadata.is_terminating() {
            return Decision::rest();
        }
        let plan = Plan::of(world, service);
        let due = additions_due(plan.drafts.iter().map(|draft| draft.slice));
        let (mut actions, additions) = plan.actions(world, service);
        if let Some(due) = due.filter(|due| now < *due)
            && actions.is_empty()
            && !additions.is_empty()
        {
            return Decision::wait(due);
        }
        // Additions go with withdrawals, or a service that loses a pod again and again would never get one.
        actions.extend(additions.into_iter().take(ADDITIONS_MAX));
        // What is cut off comes with the next decision: a key whose actions went out is decided again.
        actions.truncate(BURST);
        Decision { actions, ..Decision::rest() }
    }
}

/// All that an endpoint is made from.
fn face(pod: &Pod) -> impl PartialEq + '_ {
    let meta = &pod.metadata;
    (
        (&meta.uid, &meta.labels, meta.is_terminating(), meta.annotations.get(NODE_UID)),
        (&pod.spec.node_name, &pod.status.pod_ip, pod.is_terminal(), pod.is_ready()),
    )
}

/// True if the change of a pod may take traffic from it; false is certain.
fn may_withdraw(old: &Pod, new: &Pod) -> bool {
    let moved = old.metadata.uid != new.metadata.uid || old.status.pod_ip != new.status.pod_ip;
    moved && !old.status.pod_ip.is_empty()
        || old.metadata.labels != new.metadata.labels
        || old.is_ready() && !new.is_ready()
        || !old.is_terminal() && new.is_terminal()
        || !old.metadata.is_terminating() && new.metadata.is_terminating()
}

/// When the slices of a service will have rested for long enough; at once if there are none.
fn additions_due<'w>(slices: impl Iterator<Item = &'w Seen<EndpointSlice>>) -> Option<Time> {
    slices.map(|slice| slice.at).max().map(|at| at + ADDITIONS_PAUSE)
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

fn is_managed(slice: &EndpointSlice) -> bool {
    slice.metadata.labels.get(MANAGED_BY).is_some_and(|manager| manager == MANAGER)
}

/// The service is gone: its slices go too. Slices that somebody else made stay.
fn forget(world: &World, service: &ObjectKey) -> Decision {
    let mine = world.slices_of(&service.namespace, &service.name).filter(|slice| is_managed(slice));
    Decision { actions: mine.map(|slice| delete(slice)).take(BURST).collect(), ..Decision::default() }
}

// === where everybody stands ===

/// A pod as an endpoint.
struct Target<'w> {
    pod: &'w Pod,
    conditions: EndpointConditions,
}

/// What becomes of one slice.
struct Draft<'w> {
    slice: &'w Seen<EndpointSlice>,
    targets: Vec<Target<'w>>,
    /// It is not what the slice says now.
    changed: bool,
    /// Some pod loses traffic by it.
    withdraws: bool,
}

/// What becomes of all slices of a service.
struct Plan<'w> {
    drafts: Vec<Draft<'w>>,
    /// Slices that are to be made.
    fresh: Vec<Vec<Target<'w>>>,
    /// Slices of a service of the same name that is no more.
    remains: Vec<&'w Seen<EndpointSlice>>,
}

/// The pods that a service leads to, and which of them have been found in a slice. By hash, because a service of ten
/// thousand looks up ten thousand: a search through names would be most of the decision.
struct Roll<'w> {
    pods: Vec<(u64, &'w Pod, bool)>,
}

/// Judges which pods serve.
struct Judge<'w> {
    world: &'w World,
    service: &'w Service,
    /// Open incidents by node uid.
    incidents: BTreeMap<&'w Uid, &'w NodeIncident>,
}

// === impl Plan ===

impl<'w> Plan<'w> {
    fn of(world: &'w World, service: &'w Service) -> Self {
        let (namespace, uid) = (&service.metadata.namespace, &service.metadata.uid);
        let slices = world.slices_of(namespace, &service.metadata.name);
        let slices = slices.filter(|s| is_managed(s) && !s.metadata.is_terminating());
        let (mine, remains): (Vec<_>, Vec<_>) =
            slices.partition(|s| s.metadata.controller().is_some_and(|owner| owner.uid == *uid));
        let judge = Judge::of(world, service);
        let mut roll = Roll::of(world, service);
        let drafts = mine.into_iter().map(|slice| Draft::of(slice, &mut roll, &judge)).collect();
        let mut plan = Self { drafts, fresh: Vec::new(), remains };
        plan.place(roll.rest().into_iter().map(|pod| judge.target(pod, None)).collect());
        plan
    }

    /// Pods that stand nowhere go to the slice with most room, and then to new ones. A service has one slice at least.
    fn place(&mut self, mut new: Vec<Target<'w>>) {
        while !new.is_empty() {
            let roomiest = self.drafts.iter_mut().min_by_key(|draft| draft.targets.len());
            let Some(draft) = roomiest.filter(|draft| draft.targets.len() < ENDPOINTS_MAX) else { break };
            let fitting = new.len().min(ENDPOINTS_MAX - draft.targets.len());
            draft.targets.extend(new.drain(..fitting));
            draft.changed = true;
        }
        while !new.is_empty() || self.drafts.is_empty() && self.fresh.is_empty() {
            let fitting = new.len().min(ENDPOINTS_MAX);
            self.fresh.push(new.drain(..fitting).collect());
        }
    }

    /// The actions that take traffic away, and all others. Of the others, the slices that have rested for longest come
    /// first, so that all get their turn.
    fn actions(self, world: &World, service: &Service) -> (Vec<Action>, Vec<Action>) {
        let mut names = free_names(world, service);
        let create = |targets: Vec<Target<'_>>| {
            let service_key = ObjectKey::namespaced(
                Kind::Service,
                &service.metadata.namespace,
                service.metadata.name.clone(),
            );
            let endpoints = targets.iter().map(Target::endpoint).collect();
            let slice = new_slice(service, names.next().unwrap_or_default(), endpoints);
            Action::create(New::Object(Box::new(slice)))
                .expecting(Expect::Uid(service_key, service.metadata.uid.clone()))
        };
        let mut additions: Vec<Action> = self.fresh.into_iter().take(ADDITIONS_MAX).map(create).collect();
        let spare = self.drafts.iter().position(|draft| !draft.targets.is_empty()).unwrap_or(0);
        let mut changed: Vec<(usize, Draft<'_>)> = self
            .drafts
            .into_iter()
            .enumerate()
            .filter(|(at, draft)| draft.is_written(*at == spare))
            .collect();
        changed.sort_by_key(|(_, draft)| draft.slice.rev);
        let mut withdrawals = Vec::new();
        for (at, draft) in changed {
            let onto = if draft.withdraws { &mut withdrawals } else { &mut additions };
            onto.push(draft.action(at == spare));
        }
        additions.extend(self.remains.into_iter().map(|slice| delete(slice)));
        (withdrawals, additions)
    }
}

/// Names of slices that are not taken. They follow from the service's uid and their number, so that a slice that is made
/// twice collides with itself.
fn free_names<'w>(world: &'w World, service: &'w Service) -> impl Iterator<Item = Name> + 'w {
    let meta = &service.metadata;
    let name = |number: u32| generated(&meta.name, &[meta.uid.as_str(), &number.to_string()]);
    (0..u32::MAX).map(name).filter(|name| world.endpoint_slice(&meta.namespace, name).is_none())
}

// === impl Roll ===

impl<'w> Roll<'w> {
    fn of(world: &'w World, service: &'w Service) -> Self {
        let has_address = |pod: &Pod| !pod.is_terminal() && !pod.status.pod_ip.is_empty();
        let pods = world.pods_in(&service.metadata.namespace).map(|pod| &*pod.view);
        let pods = pods.filter(|pod| has_address(pod) && leads_to(service, pod));
        let mut pods: Vec<_> = pods.map(|pod| (hash(&[pod.metadata.uid.as_str()]), pod, false)).collect();
        pods.sort_by_key(|(hash, ..)| *hash);
        Self { pods }
    }

    /// The pod behind an endpoint, once.
    fn take(&mut self, behind: &ObjectReference) -> Option<&'w Pod> {
        let wanted = hash(&[behind.uid.as_str()]);
        let first = self.pods.partition_point(|(hash, ..)| *hash < wanted);
        let mut equal = self.pods[first..].iter_mut().take_while(|(hash, ..)| *hash == wanted);
        let (_, pod, found) = equal.find(|(_, pod, found)| !*found && pod.metadata.uid == behind.uid)?;
        *found = true;
        Some(*pod)
    }

    /// Those that were not found, by name.
    fn rest(self) -> Vec<&'w Pod> {
        let rest = self.pods.into_iter().filter(|(_, _, found)| !found);
        let mut rest: Vec<_> = rest.map(|(_, pod, _)| pod).collect();
        rest.sort_by_key(|pod| &pod.metadata.name);
        rest
    }
}

// === impl Draft ===

impl<'w> Draft<'w> {
    /// Whoever is still led to stays where it is.
    fn of(slice: &'w Seen<EndpointSlice>, roll: &mut Roll<'w>, judge: &Judge<'w>) -> Self {
        let mut draft =
            Self { slice, targets: Vec::with_capacity(ENDPOINTS_MAX), changed: false, withdraws: false };
        for endpoint in &slice.endpoints {
            let before = endpoint.conditions;
            let Some(pod) = roll.take(&endpoint.target_ref) else {
                draft.changed = true;
                draft.withdraws |= before.ready || before.serving;
                continue;
            };
            let target = judge.target(pod, Some(&before));
            let after = target.conditions;
            draft.changed |= !target.is(endpoint);
            draft.withdraws |= before.ready && !after.ready || before.serving && !after.serving;
            draft.targets.push(target);
        }
        draft
    }

    /// An empty slice is not kept, unless it is the only one.
    fn is_written(&self, keep: bool) -> bool {
        self.changed || self.targets.is_empty() && !keep
    }

    fn action(self, keep: bool) -> Action {
        let (key, rev) = (slice_key(self.slice), self.slice.rev);
        if self.targets.is_empty() && !keep {
            return delete(self.slice).expecting(Expect::At(key, rev));
        }
        Action::edit(key, rev, Edit::Endpoints(self.targets.iter().map(Target::endpoint).collect()))
    }
}

// === impl Judge ===

impl<'w> Judge<'w> {
    fn of(world: &'w World, service: &'w Service) -> Self {
        let open = world.incidents().filter(|incident| incident.is_open());
        let incidents = open.map(|incident| (&incident.spec.node_uid, &*incident.view)).collect();
        Self { world, service, incidents }
    }

    /// CT-24.
    fn target(&self, pod: &'w Pod, before: Option<&EndpointConditions>) -> Target<'w> {
        let serving = self.is_serving(pod, before);
        let terminating = pod.metadata.is_terminating();
        let ready = self.service.spec.publish_not_ready_addresses || serving && !terminating;
        Target { pod, conditions: EndpointConditions { ready, serving, terminating } }
    }

    /// Whether a pod can take traffic: its own word, unless its node is suspected.
    fn is_serving(&self, pod: &Pod, before: Option<&EndpointConditions>) -> bool {
        if self.incidents.is_empty() {
            return pod.is_ready();
        }
        let Some(incident) = self.incidents.get(&node_uid(self.world, pod)) else {
            return pod.is_ready();
        };
        // Promise F1.
        if incident.status.brakes.is_empty() {
            return false;
        }
        // Invariant B1.
        before.map_or_else(|| pod.is_ready(), |b| b.serving)
    }
}

// === impl Target ===

impl Target<'_> {
    /// True if the endpoint says the same.
    fn is(&self, endpoint: &Endpoint) -> bool {
        let (meta, behind) = (&self.pod.metadata, &endpoint.target_ref);
        endpoint.conditions == self.conditions
            && endpoint.addresses.len() == 1
            && endpoint.addresses[0] == self.pod.status.pod_ip
            && endpoint.node_name == self.pod.spec.node_name
            && (&behind.uid, &behind.name, &behind.namespace) == (&meta.uid, &meta.name, &meta.namespace)
            && behind.kind == Kind::Pod.noun()
    }

    fn endpoint(&self) -> Endpoint {
        let pod = self.pod;
        Endpoint {
            addresses: vec![pod.status.pod_ip.clone()],
            conditions: self.conditions,
            node_name: pod.spec.node_name.clone(),
            target_ref: ObjectReference {
                kind: Kind::Pod.noun(),
                namespace: pod.metadata.namespace.clone(),
                name: pod.metadata.name.clone(),
                uid: pod.metadata.uid.clone(),
            },
        }
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

fn delete(slice: &EndpointSlice) -> Action {
    Action::delete(slice_key(slice), slice.metadata.uid.clone(), Deletion::Graceful)
}

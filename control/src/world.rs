//! The world: everything a decision may know, at one revision.
//!
//! Responsible for: the views of all objects, the indices over them, when *this process* saw each object change, the
//! health of zones, and what was heard of nodes ([`Pulse`]). Leaves to the driver: feeding it in revision order,
//! all kinds cut at the same revision.
//!
//! Invariants:
//! - Unchanging while anything is decided; only [`World::fold`] and the pulse's own methods change it.
//! - Indices are derived from views and from nothing else: a world folded twice from the same objects is equal.
//! - `seen` and the pulse are the only things that a restart would lose; losing them errs towards patience.

mod absent;
mod detach;
mod index;
mod settings;
mod zone;

use std::collections::BTreeMap;
use std::sync::Arc;

use api::message::{Beat, Closed};
use api::taint::Taint;
use api::timing::Detection;
use api::view::{
    Council, DaemonSet, Deployment, EndpointSlice, Lease, Node, NodeIncident, PersistentVolume,
    PersistentVolumeClaim, Pod, ReplicaSet, Service, StatefulSet, Tombstone, View, VolumeAttachment,
};
use api::{Kind, Name, Namespace, NodeName, ObjectKey, Rev, Time, Uid};

use crate::controller::Change;
use crate::node_death::Pulse;
use index::Index;
pub use settings::Settings;
pub use zone::{Zone, ZoneHealth, ZoneState, Zones};

/// An object as this process sees it.
#[derive(Debug)]
pub struct Seen<T> {
    /// The view.
    pub view: Arc<T>,
    /// The revision of the object's last change.
    pub rev: Rev,
    /// When this process received that change, by its own clock.
    pub at: Time,
}

impl<T> Clone for Seen<T> {
    fn clone(&self) -> Self {
        Self { view: Arc::clone(&self.view), rev: self.rev, at: self.at }
    }
}

impl<T> std::ops::Deref for Seen<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.view
    }
}

/// What this process remembers of a node beyond its object: upstream keeps the same in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeMemory {
    /// When a sign of life was last seen: first sight, a changed heartbeat of Ready, a renewed Lease (NLC-02).
    pub probed: Time,
    /// Since when the node has had NoExecute taints without a break, and which it had at first (TE-07, TE-12).
    pub no_execute: Option<(Time, Vec<Taint>)>,
    /// When the last such span ended, and when it had begun: what a cancelled eviction is told from (TE-10).
    pub no_execute_before: Option<(Time, Time)>,
}

/// Everything a decision may know.
#[derive(Debug)]
pub struct World {
    settings: Settings,
    revision: Rev,
    /// When this process began to see: nothing has been silent for longer than since then.
    started: Time,
    nodes: BTreeMap<Name, Seen<Node>>,
    pods: BTreeMap<(Namespace, Name), Seen<Pod>>,
    leases: BTreeMap<(Namespace, Name), Seen<Lease>>,
    replica_sets: BTreeMap<(Namespace, Name), Seen<ReplicaSet>>,
    deployments: BTreeMap<(Namespace, Name), Seen<Deployment>>,
    stateful_sets: BTreeMap<(Namespace, Name), Seen<StatefulSet>>,
    daemon_sets: BTreeMap<(Namespace, Name), Seen<DaemonSet>>,
    volumes: BTreeMap<Name, Seen<PersistentVolume>>,
    claims: BTreeMap<(Namespace, Name), Seen<PersistentVolumeClaim>>,
    attachments: BTreeMap<Name, Seen<VolumeAttachment>>,
    services: BTreeMap<(Namespace, Name), Seen<Service>>,
    endpoint_slices: BTreeMap<(Namespace, Name), Seen<EndpointSlice>>,
    incidents: BTreeMap<Name, Seen<NodeIncident>>,
    tombstones: BTreeMap<Name, Seen<Tombstone>>,
    councils: BTreeMap<Name, Seen<Council>>,
    memory: BTreeMap<Name, NodeMemory>,
    /// By node name: when this process first saw that pods are bound to it and that there is no such Node (GC-30).
    absent: BTreeMap<NodeName, Time>,
    /// By attachment: when this process first saw that no pod wants it any more (AD-04). Upstream keeps the same in
    /// memory; a restart begins it again, which is patience.
    unwanted: BTreeMap<Name, Time>,
    index: Index,
    zones: Zones,
    /// What was heard of nodes and members. Written by the messages' own functions, read by every mind.
    pub pulse: Pulse,
}

/// Puts or takes a view in a map and returns what was there.
fn swap<K: Ord, T>(map: &mut BTreeMap<K, Seen<T>>, key: K, new: Option<Seen<T>>) -> Option<Arc<T>> {
    let old = match new {
        Some(seen) => map.insert(key, seen),
        None => map.remove(&key),
    };
    old.map(|seen| seen.view)
}

// === impl World: folding ===

impl World {
    /// An empty world that begins to see at `now`.
    pub fn new(settings: Settings, now: Time) -> Self {
        Self {
            pulse: Pulse::new(now),
            settings,
            revision: Rev::default(),
            started: now,
            nodes: BTreeMap::new(),
            pods: BTreeMap::new(),
            leases: BTreeMap::new(),
            replica_sets: BTreeMap::new(),
            deployments: BTreeMap::new(),
            stateful_sets: BTreeMap::new(),
            daemon_sets: BTreeMap::new(),
            volumes: BTreeMap::new(),
            claims: BTreeMap::new(),
            attachments: BTreeMap::new(),
            services: BTreeMap::new(),
            endpoint_slices: BTreeMap::new(),
            incidents: BTreeMap::new(),
            tombstones: BTreeMap::new(),
            councils: BTreeMap::new(),
            memory: BTreeMap::new(),
            absent: BTreeMap::new(),
            unwanted: BTreeMap::new(),
            index: Index::default(),
            zones: Zones::default(),
        }
    }

    /// Takes one change of one object into the world. `new` is `None` if the object went. Changes come in revision
    /// order. Returns what the controllers are told: the change itself, and changes that follow from it.
    pub fn fold(&mut self, key: &ObjectKey, new: Option<View>, rev: Rev, now: Time) -> Vec<Change> {
        debug_assert!(rev >= self.revision, "changes come in revision order");
        self.revision = self.revision.max(rev);
        let old = self.swap_view(key, new.clone(), rev, now);
        if old.is_none() && new.is_none() {
            return Vec::new();
        }
        self.index.fold(key, old.as_ref(), new.as_ref());
        let mut changes = vec![Change::Object { key: key.clone(), old: old.clone(), new: new.clone() }];
        match (&old, &new) {
            (_, Some(View::Node(node))) => self.remember_node(old.as_ref(), node, now),
            (Some(View::Node(node)), None) => {
                self.memory.remove(&node.metadata.name);
            }
            (before, Some(View::Lease(lease))) => self.remember_lease(before.as_ref(), lease, now),
            _ => {}
        }
        self.remember_absence(old.as_ref(), new.as_ref(), now);
        self.remember_attachments(old.as_ref(), new.as_ref(), now);
        if key.kind == Kind::Node
            && self.zones.fold(self.nodes.values().map(|n| &*n.view), &self.settings, now)
        {
            changes.push(Change::Zones);
        }
        changes
    }

    /// This process moves: to be told before anything else happens, more often than once a beat.
    pub fn stir(&mut self, now: Time) {
        self.pulse.stir(now, &self.settings);
    }

    /// Takes a beat in; true if somebody should look.
    pub fn hear(&mut self, beat: &Beat, session: Time, now: Time) -> bool {
        self.pulse.hear(beat, session, now, &self.settings)
    }

    /// Takes an acknowledgement of a close in; true if it counts.
    pub fn closed(&mut self, ack: &Closed, now: Time) -> bool {
        self.pulse.closed(ack, now, &self.settings)
    }

    /// The world has everything up to `rev`, even if no object changed (a bookmark).
    pub fn advance(&mut self, rev: Rev) {
        self.revision = self.revision.max(rev);
    }

    #[rustfmt::skip]
    fn swap_view(&mut self, key: &ObjectKey, new: Option<View>, rev: Rev, at: Time) -> Option<View> {
        /// One arm per kind: the map of the kind, and the variant that wraps its views.
        macro_rules! arm {
            ($map:ident, $variant:ident, $k:expr) => {{
                let seen = match new {
                    Some(View::$variant(view)) => Some(Seen { view, rev, at }),
                    Some(_) | None => None,
                };
                swap(&mut self.$map, $k, seen).map(View::$variant)
            }};
        }
        let name = key.name.clone();
        let full = (key.namespace.clone(), key.name.clone());
        match key.kind {
            Kind::Node => arm!(nodes, Node, name),
            Kind::Pod => arm!(pods, Pod, full),
            Kind::Lease => arm!(leases, Lease, full),
            Kind::ReplicaSet => arm!(replica_sets, ReplicaSet, full),
            Kind::Deployment => arm!(deployments, Deployment, full),
            Kind::StatefulSet => arm!(stateful_sets, StatefulSet, full),
            Kind::DaemonSet => arm!(daemon_sets, DaemonSet, full),
            Kind::PersistentVolume => arm!(volumes, PersistentVolume, name),
            Kind::PersistentVolumeClaim => arm!(claims, PersistentVolumeClaim, full),
            Kind::VolumeAttachment => arm!(attachments, VolumeAttachment, name),
            Kind::Service => arm!(services, Service, full),
            Kind::EndpointSlice => arm!(endpoint_slices, EndpointSlice, full),
            Kind::NodeIncident => arm!(incidents, NodeIncident, name),
            Kind::Tombstone => arm!(tombstones, Tombstone, name),
            Kind::Council => arm!(councils, Council, name),
        }
    }

    /// NLC-02 and the start of eviction clocks.
    fn remember_node(&mut self, old: Option<&View>, node: &Node, now: Time) {
        let old = match old {
            Some(View::Node(old)) if old.metadata.uid == node.metadata.uid => Some(old),
            _ => None,
        };
        let memory = self.memory.entry(node.metadata.name.clone()).or_default();
        if old.is_none() {
            // Another machine of the same name inherits nothing.
            *memory = NodeMemory::default();
        }
        let heartbeat = |n: &Node| n.condition("Ready").map(|c| c.last_heartbeat_time);
        match old {
            // A node without Ready counts from its creation; otherwise first sight is a sign of life.
            // Under leases that holds even for an object older than this process (NLC-02).
            None if node.condition("Ready").is_none() => {
                let created = node.metadata.creation_timestamp;
                memory.probed = match self.settings.timing.detection {
                    Detection::Leases => created,
                    Detection::Beats => created.max(self.started),
                };
            }
            None => memory.probed = now,
            Some(old) if heartbeat(old) != heartbeat(node) => memory.probed = now,
            Some(_) => {}
        }
        let taints: Vec<Taint> = no_execute(node).cloned().collect();
        match (&memory.no_execute, taints.is_empty()) {
            (None, false) => memory.no_execute = Some((now, taints)),
            (Some((since, _)), true) => {
                memory.no_execute_before = Some((*since, now));
                memory.no_execute = None;
            }
            (None, true) | (Some(_), false) => {}
        }
    }

    fn remember_lease(&mut self, old: Option<&View>, lease: &Lease, now: Time) {
        if lease.metadata.namespace.as_str() != api::annotation::NODE_LEASES {
            return;
        }
        let renewed = match old {
            Some(View::Lease(old)) => lease.spec.renew_time > old.spec.renew_time,
            _ => true,
        };
        if let Some(memory) = self.memory.get_mut(&lease.metadata.name)
            && renewed
        {
            memory.probed = memory.probed.max(now);
        }
    }
}

/// The NoExecute taints of a node.
pub fn no_execute(node: &Node) -> impl Iterator<Item = &Taint> {
    node.spec.taints.iter().filter(|t| t.effect == api::taint::TaintEffect::NoExecute)
}

// === impl World: reading ===

impl World {
    /// The settings, which do not change while the process lives.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The revision up to which everything is known.
    pub fn revision(&self) -> Rev {
        self.revision
    }

    /// When this process began to see.
    pub fn started(&self) -> Time {
        self.started
    }

    /// All nodes by name.
    pub fn nodes(&self) -> impl Iterator<Item = &Seen<Node>> {
        self.nodes.values()
    }

    /// How many nodes there are.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// A node by name.
    pub fn node(&self, name: &NodeName) -> Option<&Seen<Node>> {
        self.nodes.get(name.as_str())
    }

    /// A node by the uid of its object: the same name with another uid is another machine.
    pub fn node_by_uid(&self, uid: &Uid) -> Option<&Seen<Node>> {
        self.nodes.get(self.index.node_by_uid.get(uid)?)
    }

    /// What this process remembers of a node beyond its object.
    pub fn memory(&self, name: &NodeName) -> Option<&NodeMemory> {
        self.memory.get(name.as_str())
    }

    /// All pods.
    pub fn pods(&self) -> impl Iterator<Item = &Seen<Pod>> {
        self.pods.values()
    }

    /// A pod by namespace and name.
    pub fn pod(&self, namespace: &Namespace, name: &Name) -> Option<&Seen<Pod>> {
        self.pods.get(&(namespace.clone(), name.clone()))
    }

    /// Pods bound to a node of that name, whatever its uid.
    pub fn pods_on(&self, node: &NodeName) -> impl Iterator<Item = &Seen<Pod>> {
        self.index.keys(&self.index.pods_by_node, node).filter_map(|k| self.pods.get(k))
    }

    /// Exclusive pods bound to a node of that name, whatever its uid.
    pub fn exclusive_pods_on(&self, node: &NodeName) -> impl Iterator<Item = &Seen<Pod>> {
        let guarded = self.index.keys(&self.index.guarded_by_node, node).filter_map(|k| self.pods.get(k));
        guarded.filter(|pod| self.is_exclusive(pod))
    }

    /// Pods that no node has yet.
    pub fn pods_unbound(&self) -> impl Iterator<Item = &Seen<Pod>> {
        self.index.pods_unbound.iter().filter_map(|k| self.pods.get(k))
    }

    /// Names of nodes that some pod is bound to, with or without a Node object.
    pub fn nodes_with_pods(&self) -> impl Iterator<Item = &NodeName> {
        self.index.pods_by_node.keys()
    }

    /// Pods whose controlling owner has that uid.
    pub fn pods_of(&self, owner: &Uid) -> impl Iterator<Item = &Seen<Pod>> {
        self.index.keys(&self.index.pods_by_owner, owner).filter_map(|k| self.pods.get(k))
    }

    /// Pods of a namespace.
    pub fn pods_in<'w>(&'w self, namespace: &'w Namespace) -> impl Iterator<Item = &'w Seen<Pod>> {
        let first = (namespace.clone(), Name::default());
        self.pods.range(first..).take_while(move |((ns, _), _)| ns == namespace).map(|(_, pod)| pod)
    }

    /// Pods that mount a claim.
    pub fn pods_using<'w>(
        &'w self,
        namespace: &Namespace,
        claim: &Name,
    ) -> impl Iterator<Item = &'w Seen<Pod>> + use<'w> {
        self.index
            .keys(&self.index.pods_by_claim, &(namespace.clone(), claim.clone()))
            .filter_map(|k| self.pods.get(k))
    }

    /// The lease of a node.
    pub fn node_lease(&self, node: &NodeName) -> Option<&Seen<Lease>> {
        self.leases.get(&(Namespace::from(api::annotation::NODE_LEASES), Name::from(node)))
    }

    /// A ReplicaSet.
    pub fn replica_set(&self, namespace: &Namespace, name: &Name) -> Option<&Seen<ReplicaSet>> {
        self.replica_sets.get(&(namespace.clone(), name.clone()))
    }

    /// All ReplicaSets.
    pub fn replica_sets(&self) -> impl Iterator<Item = &Seen<ReplicaSet>> {
        self.replica_sets.values()
    }

    /// A Deployment.
    pub fn deployment(&self, namespace: &Namespace, name: &Name) -> Option<&Seen<Deployment>> {
        self.deployments.get(&(namespace.clone(), name.clone()))
    }

    /// A StatefulSet.
    pub fn stateful_set(&self, namespace: &Namespace, name: &Name) -> Option<&Seen<StatefulSet>> {
        self.stateful_sets.get(&(namespace.clone(), name.clone()))
    }

    /// All StatefulSets.
    pub fn stateful_sets(&self) -> impl Iterator<Item = &Seen<StatefulSet>> {
        self.stateful_sets.values()
    }

    /// A DaemonSet.
    pub fn daemon_set(&self, namespace: &Namespace, name: &Name) -> Option<&Seen<DaemonSet>> {
        self.daemon_sets.get(&(namespace.clone(), name.clone()))
    }

    /// All DaemonSets.
    pub fn daemon_sets(&self) -> impl Iterator<Item = &Seen<DaemonSet>> {
        self.daemon_sets.values()
    }

    /// A volume.
    pub fn volume(&self, name: &Name) -> Option<&Seen<PersistentVolume>> {
        self.volumes.get(name)
    }

    /// All volumes.
    pub fn volumes(&self) -> impl Iterator<Item = &Seen<PersistentVolume>> {
        self.volumes.values()
    }

    /// A claim.
    pub fn claim(&self, namespace: &Namespace, name: &Name) -> Option<&Seen<PersistentVolumeClaim>> {
        self.claims.get(&(namespace.clone(), name.clone()))
    }

    /// The volume behind a claim, if it is bound to one that exists.
    pub fn volume_of_claim(&self, namespace: &Namespace, claim: &Name) -> Option<&Seen<PersistentVolume>> {
        self.volume(&self.claim(namespace, claim)?.spec.volume_name)
    }

    /// An attachment.
    pub fn attachment(&self, name: &Name) -> Option<&Seen<VolumeAttachment>> {
        self.attachments.get(name)
    }

    /// All attachments.
    pub fn attachments(&self) -> impl Iterator<Item = &Seen<VolumeAttachment>> {
        self.attachments.values()
    }

    /// Attachments of a volume.
    pub fn attachments_of(&self, volume: &Name) -> impl Iterator<Item = &Seen<VolumeAttachment>> {
        self.index.keys(&self.index.attachments_by_volume, volume).filter_map(|k| self.attachments.get(k))
    }

    /// Attachments to a node.
    pub fn attachments_on(&self, node: &NodeName) -> impl Iterator<Item = &Seen<VolumeAttachment>> {
        self.index.keys(&self.index.attachments_by_node, node).filter_map(|k| self.attachments.get(k))
    }

    /// A service.
    pub fn service(&self, namespace: &Namespace, name: &Name) -> Option<&Seen<Service>> {
        self.services.get(&(namespace.clone(), name.clone()))
    }

    /// Services of a namespace.
    pub fn services_in<'w>(&'w self, namespace: &'w Namespace) -> impl Iterator<Item = &'w Seen<Service>> {
        let first = (namespace.clone(), Name::default());
        self.services.range(first..).take_while(move |((ns, _), _)| ns == namespace).map(|(_, s)| s)
    }

    /// An endpoint slice.
    pub fn endpoint_slice(&self, namespace: &Namespace, name: &Name) -> Option<&Seen<EndpointSlice>> {
        self.endpoint_slices.get(&(namespace.clone(), name.clone()))
    }

    /// Endpoint slices that say that they are a service's.
    pub fn slices_of<'w>(
        &'w self,
        namespace: &Namespace,
        service: &Name,
    ) -> impl Iterator<Item = &'w Seen<EndpointSlice>> + use<'w> {
        self.index
            .keys(&self.index.slices_by_service, &(namespace.clone(), service.clone()))
            .filter_map(|k| self.endpoint_slices.get(k))
    }

    /// All incidents, also closed ones.
    pub fn incidents(&self) -> impl Iterator<Item = &Seen<NodeIncident>> {
        self.incidents.values()
    }

    /// An incident by name.
    pub fn incident(&self, name: &Name) -> Option<&Seen<NodeIncident>> {
        self.incidents.get(name)
    }

    /// Incidents of a node, by the uid of its object, also closed ones.
    pub fn incidents_of(&self, node: &Uid) -> impl Iterator<Item = &Seen<NodeIncident>> {
        self.index.keys(&self.index.incidents_by_node, node).filter_map(|k| self.incidents.get(k))
    }

    /// The open incident of a node. At most one is open per node uid (invariant N1).
    pub fn open_incident(&self, node: &Uid) -> Option<&Seen<NodeIncident>> {
        self.incidents_of(node).find(|i| i.is_open())
    }

    /// All tombstones.
    pub fn tombstones(&self) -> impl Iterator<Item = &Seen<Tombstone>> {
        self.tombstones.values()
    }

    /// A tombstone by its name, which is the pod's uid.
    pub fn tombstone(&self, name: &Name) -> Option<&Seen<Tombstone>> {
        self.tombstones.get(name)
    }

    /// The council, if there is one.
    pub fn council(&self) -> Option<&Seen<Council>> {
        self.councils.get("council")
    }

    /// The health of zones.
    pub fn zones(&self) -> &Zones {
        &self.zones
    }

    /// True if the pod must never run twice.
    pub fn is_exclusive(&self, pod: &Pod) -> bool {
        api::exclusive::is_exclusive(pod, |ns, name| self.claim(ns, name).map(|c| &*c.view))
    }

    /// Every object as a change that brings it: what a new leader begins with.
    pub fn everything(&self) -> Vec<Change> {
        fn bring<K, T>(map: &BTreeMap<K, Seen<T>>, wrap: fn(Arc<T>) -> View, out: &mut Vec<Change>) {
            out.extend(map.values().map(|seen| {
                let view = wrap(Arc::clone(&seen.view));
                Change::Object { key: view.key(), old: None, new: Some(view) }
            }));
        }
        let mut out = vec![Change::Zones];
        bring(&self.nodes, View::Node, &mut out);
        bring(&self.pods, View::Pod, &mut out);
        bring(&self.leases, View::Lease, &mut out);
        bring(&self.replica_sets, View::ReplicaSet, &mut out);
        bring(&self.deployments, View::Deployment, &mut out);
        bring(&self.stateful_sets, View::StatefulSet, &mut out);
        bring(&self.daemon_sets, View::DaemonSet, &mut out);
        bring(&self.volumes, View::PersistentVolume, &mut out);
        bring(&self.claims, View::PersistentVolumeClaim, &mut out);
        bring(&self.attachments, View::VolumeAttachment, &mut out);
        bring(&self.services, View::Service, &mut out);
        bring(&self.endpoint_slices, View::EndpointSlice, &mut out);
        bring(&self.incidents, View::NodeIncident, &mut out);
        bring(&self.tombstones, View::Tombstone, &mut out);
        bring(&self.councils, View::Council, &mut out);
        out
    }
}

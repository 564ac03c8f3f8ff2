//! Indices over the world: which objects hang on which.
//!
//! Responsible for: keeping them equal to what the views say. Leaves to [`super::World`] the views themselves.
//! Invariant: an index holds keys only, so it can be wrong in one way only (missing or extra keys), and the test that
//! folds a history and compares with an index made from scratch finds that.

use std::collections::{BTreeMap, BTreeSet};

use api::annotation::SERVICE_NAME;
use api::exclusive::may_be_exclusive;
use api::view::View;
use api::{Name, Namespace, NodeName, ObjectKey, Uid};

type PodKey = (Namespace, Name);

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) node_by_uid: BTreeMap<Uid, Name>,
    pub(super) pods_by_node: BTreeMap<NodeName, BTreeSet<PodKey>>,
    /// Of those, the ones that may be exclusive: a grant names them at every beat.
    pub(super) guarded_by_node: BTreeMap<NodeName, BTreeSet<PodKey>>,
    pub(super) pods_unbound: BTreeSet<PodKey>,
    pub(super) pods_by_owner: BTreeMap<Uid, BTreeSet<PodKey>>,
    pub(super) pods_by_claim: BTreeMap<(Namespace, Name), BTreeSet<PodKey>>,
    pub(super) attachments_by_volume: BTreeMap<Name, BTreeSet<Name>>,
    pub(super) attachments_by_node: BTreeMap<NodeName, BTreeSet<Name>>,
    pub(super) incidents_by_node: BTreeMap<Uid, BTreeSet<Name>>,
    pub(super) slices_by_service: BTreeMap<(Namespace, Name), BTreeSet<(Namespace, Name)>>,
}

/// Puts `value` under `key`, or takes it away; an empty set is not kept.
fn set<K: Ord, V: Ord>(map: &mut BTreeMap<K, BTreeSet<V>>, key: K, value: V, there: bool) {
    if there {
        map.entry(key).or_default().insert(value);
    } else if let Some(values) = map.get_mut(&key) {
        values.remove(&value);
        if values.is_empty() {
            map.remove(&key);
        }
    }
}

impl Index {
    pub(super) fn fold(&mut self, key: &ObjectKey, old: Option<&View>, new: Option<&View>) {
        for (view, there) in [(old, false), (new, true)] {
            if let Some(view) = view {
                self.note(key, view, there);
            }
        }
    }

    /// The keys under one key of an index.
    pub(super) fn keys<'i, K: Ord, V>(
        &self,
        map: &'i BTreeMap<K, BTreeSet<V>>,
        key: &K,
    ) -> impl Iterator<Item = &'i V> + use<'i, K, V> {
        map.get(key).into_iter().flatten()
    }

    fn note(&mut self, key: &ObjectKey, view: &View, there: bool) {
        match view {
            View::Node(node) => {
                if there {
                    self.node_by_uid.insert(node.metadata.uid.clone(), key.name.clone());
                } else {
                    self.node_by_uid.remove(&node.metadata.uid);
                }
            }
            View::Pod(pod) => {
                let place = (key.namespace.clone(), key.name.clone());
                if pod.is_bound() {
                    set(&mut self.pods_by_node, pod.spec.node_name.clone(), place.clone(), there);
                    if may_be_exclusive(pod) {
                        set(&mut self.guarded_by_node, pod.spec.node_name.clone(), place.clone(), there);
                    }
                } else if there {
                    self.pods_unbound.insert(place.clone());
                } else {
                    self.pods_unbound.remove(&place);
                }
                if let Some(owner) = pod.metadata.controller() {
                    set(&mut self.pods_by_owner, owner.uid.clone(), place.clone(), there);
                }
                for claim in pod.claims() {
                    let claim = (key.namespace.clone(), claim.clone());
                    set(&mut self.pods_by_claim, claim, place.clone(), there);
                }
            }
            View::VolumeAttachment(attachment) => {
                let volume = attachment.spec.source.persistent_volume_name.clone();
                set(&mut self.attachments_by_volume, volume, key.name.clone(), there);
                set(
                    &mut self.attachments_by_node,
                    attachment.spec.node_name.clone(),
                    key.name.clone(),
                    there,
                );
            }
            View::NodeIncident(incident) => {
                set(&mut self.incidents_by_node, incident.spec.node_uid.clone(), key.name.clone(), there);
            }
            View::EndpointSlice(slice) => {
                if let Some(service) = slice.metadata.labels.get(SERVICE_NAME) {
                    let service = (key.namespace.clone(), Name::from(service.as_str()));
                    let place = (key.namespace.clone(), key.name.clone());
                    set(&mut self.slices_by_service, service, place, there);
                }
            }
            View::Lease(_)
            | View::ReplicaSet(_)
            | View::Deployment(_)
            | View::StatefulSet(_)
            | View::DaemonSet(_)
            | View::PersistentVolume(_)
            | View::PersistentVolumeClaim(_)
            | View::Service(_)
            | View::Tombstone(_)
            | View::Council(_) => {}
        }
    }
}

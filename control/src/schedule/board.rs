//! What is taken on each node: by the pods of the world, and by what this decision has placed so far.
//!
//! Responsible for: sums, and who uses which claim where. Leaves to [`super::filter`] what follows from them.
//! Amounts are integers in thousandths of a unit. A node is summed up when it is first looked at.

use std::collections::{BTreeMap, BTreeSet};

use api::quantity::Quantity;
use api::view::{Container, Node, Pod};
use api::{Name, Namespace, NodeName, Uid};

use crate::world::{Seen, World};

/// Milli-units by resource name.
pub(super) type Amounts = BTreeMap<String, i64>;

/// What one node has given away.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// Requests of its pods.
    pub(super) requests: Amounts,
    /// How many pods.
    pub(super) pods: i64,
    /// Host ports by protocol.
    pub(super) ports: BTreeSet<(String, u16)>,
    /// Attachable volumes by driver.
    pub(super) volumes: BTreeMap<String, BTreeSet<String>>,
    /// Pods by owner.
    pub(super) by_owner: BTreeMap<Uid, i64>,
}

/// The cluster as it will be when the bindings so far are carried out.
pub(crate) struct Board<'w> {
    pub(super) world: &'w World,
    rooms: BTreeMap<NodeName, Room>,
    placed: Vec<(&'w Seen<Pod>, NodeName)>,
}

impl<'w> Board<'w> {
    pub(super) fn new(world: &'w World) -> Self {
        Self { world, rooms: BTreeMap::new(), placed: Vec::new() }
    }

    /// What is taken on a node.
    pub(super) fn room(&mut self, node: &Node) -> &Room {
        let world = self.world;
        self.rooms.entry(node.name()).or_insert_with_key(|name| {
            let mut room = Room::default();
            for pod in world.pods_on(name).filter(|p| !p.is_terminal()) {
                room.add(world, pod);
            }
            room
        })
    }

    /// This decision binds the pod there.
    pub(super) fn take(&mut self, pod: &'w Seen<Pod>, node: &Node) {
        let world = self.world;
        let _ = self.room(node);
        if let Some(room) = self.rooms.get_mut(&node.name()) {
            room.add(world, pod);
        }
        self.placed.push((pod, node.name()));
    }

    /// Other pods that use a claim, with the nodes that they are on.
    pub(super) fn users<'b>(
        &'b self,
        namespace: &'b Namespace,
        claim: &'b Name,
        but: &'b Uid,
    ) -> impl Iterator<Item = (&'w Seen<Pod>, &'b NodeName)> + use<'b, 'w> {
        let world: &'w World = self.world;
        let bound =
            world.pods_using(namespace, claim).filter(|p| p.is_bound()).map(|p| (p, &p.spec.node_name));
        let placed = self
            .placed
            .iter()
            .filter(move |(p, _)| p.metadata.namespace == *namespace && p.claims().any(|name| name == claim));
        bound.chain(placed.map(|(p, node)| (*p, node))).filter(move |(p, _)| p.metadata.uid != *but)
    }
}

impl Room {
    fn add(&mut self, world: &World, pod: &Pod) {
        self.pods += 1;
        for (name, amount) in requests(pod) {
            let sum = self.requests.entry(name).or_default();
            *sum = sum.saturating_add(amount);
        }
        self.ports.extend(host_ports(pod));
        for (driver, volume) in attachable(world, pod) {
            self.volumes.entry(driver).or_default().insert(volume);
        }
        if let Some(owner) = pod.metadata.controller() {
            *self.by_owner.entry(owner.uid.clone()).or_default() += 1;
        }
    }
}

/// What a pod asks for: the sum of its containers, or the greatest of those that run before, whichever is more.
pub(super) fn requests(pod: &Pod) -> Amounts {
    let amounts = |c: &Container| -> Vec<(String, i64)> {
        c.resources.requests.iter().map(|(name, q)| (name.clone(), milli(*q))).collect()
    };
    let mut sum = Amounts::new();
    for (name, amount) in pod.spec.containers.iter().flat_map(amounts) {
        let entry = sum.entry(name).or_default();
        *entry = entry.saturating_add(amount);
    }
    for (name, amount) in pod.spec.init_containers.iter().flat_map(amounts) {
        let entry = sum.entry(name).or_default();
        *entry = amount.max(*entry);
    }
    sum.retain(|_, amount| *amount > 0);
    sum
}

pub(super) fn milli(quantity: Quantity) -> i64 {
    quantity.milli()
}

/// Protocol and port of what a pod takes on its node. A pod in the node's network takes its container ports.
pub(super) fn host_ports(pod: &Pod) -> impl Iterator<Item = (String, u16)> {
    let host_network = pod.spec.host_network;
    pod.spec.containers.iter().flat_map(|c| &c.ports).filter_map(move |port| {
        let number = if port.host_port == 0 && host_network { port.container_port } else { port.host_port };
        let protocol = if port.protocol.is_empty() { "TCP" } else { port.protocol.as_str() };
        (number != 0).then(|| (protocol.to_owned(), number))
    })
}

/// Driver and unique name of the volumes that have to be attached for a pod.
pub(super) fn attachable(world: &World, pod: &Pod) -> Vec<(String, String)> {
    let volumes = pod.claims().filter_map(|claim| world.volume_of_claim(&pod.metadata.namespace, claim));
    volumes.filter_map(|v| Some((v.spec.csi.as_ref()?.driver.clone(), v.unique_name()?))).collect()
}

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

/// What one node has left, and what is on it.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// Allocatable less the requests of its pods.
    pub(super) free: Amounts,
    /// Pods that it still takes.
    pub(super) free_pods: i64,
    /// Allocatable amounts of what the score looks at, in its order.
    pub(super) has: [i64; SCORED.len()],
    /// Host ports by protocol.
    pub(super) ports: BTreeSet<(String, u16)>,
    /// Attachable volumes by driver.
    pub(super) volumes: BTreeMap<String, BTreeSet<String>>,
    /// Pods by owner.
    pub(super) by_owner: BTreeMap<Uid, i64>,
}

/// Resources that the score looks at.
pub(super) const SCORED: [&str; 2] = ["cpu", "memory"];

/// The cluster as it will be when the bindings so far are carried out. A node is meant by its place in `nodes`: it is
/// looked at for every pod, and a name would have to be looked up each time.
pub(crate) struct Board<'w> {
    pub(super) world: &'w World,
    pub(super) nodes: Vec<&'w Seen<Node>>,
    rooms: Vec<Option<Room>>,
    placed: Vec<(&'w Seen<Pod>, NodeName)>,
}

impl<'w> Board<'w> {
    pub(super) fn new(world: &'w World) -> Self {
        let nodes: Vec<&Seen<Node>> = world.nodes().collect();
        let rooms = nodes.iter().map(|_| None).collect();
        Self { world, nodes, rooms, placed: Vec::new() }
    }

    /// The place of the node with that name. The world has its nodes in the order of their names.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.nodes.binary_search_by(|n| n.metadata.name.as_str().cmp(name)).ok()
    }

    /// What is taken on a node.
    pub(super) fn room(&mut self, at: usize) -> &Room {
        self.room_mut(at)
    }

    fn room_mut(&mut self, at: usize) -> &mut Room {
        let (world, node) = (self.world, self.nodes[at]);
        self.rooms[at].get_or_insert_with(|| {
            let mut room = Room::of(node);
            for pod in world.pods_on(&node.name()).filter(|p| !p.is_terminal()) {
                room.add(world, pod);
            }
            room
        })
    }

    /// This decision binds the pod there.
    pub(super) fn take(&mut self, pod: &'w Seen<Pod>, at: usize) {
        let world = self.world;
        self.room_mut(at).add(world, pod);
        self.placed.push((pod, self.nodes[at].name()));
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
    fn of(node: &Node) -> Self {
        let allocatable = &node.status.allocatable;
        let free: Amounts = allocatable.iter().map(|(name, q)| (name.clone(), milli(*q))).collect();
        let free_pods = allocatable.get("pods").map_or(0, |q| q.value());
        let has = SCORED.map(|name| free.get(name).copied().unwrap_or(0));
        Self { free, free_pods, has, ..Self::default() }
    }

    fn add(&mut self, world: &World, pod: &Pod) {
        self.free_pods -= 1;
        for (name, amount) in requests(pod) {
            let free = self.free.entry(name).or_default();
            *free = free.saturating_sub(amount);
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

fn milli(quantity: Quantity) -> i64 {
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

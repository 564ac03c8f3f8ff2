//! The shape of a controller, and the list of all of them.
//!
//! Responsible for: the trait, its keys and the one list. Adding a controller touches one line of the list and one
//! file. Leaves to the driver when a key is decided and what becomes of the answer.

use std::fmt;

use api::view::View;
use api::{Kind, ObjectKey, Time, Uid};

use crate::decision::Decision;
use crate::node_death;
use crate::reclaim;
use crate::schedule;
use crate::volume;
use crate::workload;
use crate::world::{World, Zone};

/// A controller is a value without state: everything it knows is in the world.
pub trait Controller: Sync {
    /// Name, kinds read, kinds written. The documentation draws it; the driver refuses other writes.
    fn scope(&self) -> &'static Scope;
    /// Which units of work a change may concern. Cheap, over-approximate, never decides.
    fn touched(&self, change: &Change, world: &World, keys: &mut Vec<Key>);
    /// To which layer it belongs: one of the automatic layer is asked for nothing where that layer is off.
    fn layer(&self) -> Layer {
        Layer::Stock
    }
    /// Until when `key` may be left alone although `change` touched it; `None`: it is looked at now. For changes that
    /// come in crowds, where a look at each would cost more than the decision: a pod of a service of ten thousand.
    fn patience(&self, _change: &Change, _world: &World, _key: &Key) -> Option<Time> {
        None
    }
    /// What should be done about `key` now. Total: it cannot fail, wait, or remember.
    fn decide(&self, world: &World, key: &Key, now: Time) -> Decision;
}

/// The two layers of decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Upstream's behaviour, under every profile.
    Stock,
    /// Incidents, evidence, fencing: off under the `kubernetes` profile.
    Automatic,
}

/// What a controller reads and writes.
#[derive(Debug)]
pub struct Scope {
    /// Its name, in upstream's form where upstream has it.
    pub name: &'static str,
    /// Kinds it reads.
    pub reads: &'static [Kind],
    /// Kinds it writes.
    pub writes: &'static [Kind],
}

/// A unit of work.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// The cluster as a whole.
    Cluster,
    /// One zone.
    Zone(Zone),
    /// One object.
    Object(ObjectKey),
}

impl Key {
    /// The object, if the key is one.
    pub fn object(&self) -> Option<&ObjectKey> {
        match self {
            Self::Object(key) => Some(key),
            Self::Cluster | Self::Zone(_) => None,
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster => f.write_str("cluster"),
            Self::Zone(zone) => write!(f, "zone/{zone}"),
            Self::Object(key) => fmt::Display::fmt(key, f),
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What may make a decision necessary. The world already holds it.
#[derive(Clone, Debug)]
pub enum Change {
    /// An object came, changed or went. At least one of the two views is there.
    Object {
        /// Which.
        key: ObjectKey,
        /// As it was.
        old: Option<View>,
        /// As it is.
        new: Option<View>,
    },
    /// Something about the silence of a node changed: it spoke after having been silent, another boot speaks, it
    /// became idle, a member acknowledged a close.
    Heard(Uid),
    /// The health of zones changed (a state, or all-full entered or left).
    Zones,
}

/// Every controller there is. The order is the order of fairness within one step, not of importance.
pub static CONTROLLERS: &[&dyn Controller] = &[
    &node_death::boot::Boots,
    &node_death::suspicion::Suspicion,
    &node_death::incident::Incidents,
    &node_death::release::Release,
    &node_death::orphan::Orphans,
    &node_death::tombstone::Tombstones,
    &node_death::council::Councils,
    &node_death::detect::Detect,
    &node_death::detect::NotReadyPods,
    &node_death::taint::NoSchedule,
    &node_death::taint::NoExecute,
    &node_death::evict::Evict,
    &reclaim::Reclaim,
    &workload::replica_set::ReplicaSets,
    &workload::stateful_set::StatefulSets,
    &workload::daemon_set::DaemonSets,
    &workload::endpoints::Endpoints,
    &schedule::Scheduler,
    &volume::attach::AttachDetach,
];

//! The ground that pods stand on: what planning one pod reads of everything else.
//!
//! Responsible for: answering, for one pod, the questions that are not about the pod alone: is it exclusive, may it be
//! started, is its volume attached, is the list confirmed. Leaves to [`crate::agent`] keeping it up to date.
//!
//! Invariant: not knowing is no permission. An unknown claim makes a pod exclusive, a silent guard permits nothing, a
//! Node that was not seen has nothing attached.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::exclusive::is_exclusive;
use api::timing::Automatic;
use api::view::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use api::{BootId, Duration, Name, Namespace, Time, Uid};

use super::Why;
use crate::event::Reach;
use crate::guard;

/// How long a restarted agent with reachable servers waits for the list before it believes its ledger. At half, a slow
/// list would start pods that were deleted meanwhile; at double, a server that answers but cannot list keeps a
/// rebooted node empty for a minute.
const LIST_PATIENCE: Duration = Duration::from_secs(30);

/// How old the guard's word may be when something exclusive is started: two beats, as for beats.
const GUARD_BEATS: u64 = 2;

/// What all pods of a node share.
#[derive(Clone, Debug)]
pub struct Ground {
    /// This boot.
    pub boot: BootId,
    /// When this process started.
    pub started: Time,
    /// Whether there are grants at all.
    pub automatic: Automatic,
    /// Beat period.
    pub beat: Duration,
    /// Identity of this node; empty until it is known.
    pub uid: Uid,
    /// The Node object, if there is one and it was seen.
    pub node: Option<Arc<Node>>,
    /// Unique names of volumes that the store holds as in use by this node, by the word of this process: the newest
    /// report that was written had them, and none was sent since without them.
    pub announced: BTreeSet<String>,
    /// The Node as seen is no older than the newest report of this process.
    pub node_is_current: bool,
    /// True once a list or watch said that the Node of `uid` is gone.
    pub node_gone: bool,
    /// The first full list of this process has arrived.
    pub synced: bool,
    /// The ledger was complete when this process started, or the list has arrived since.
    pub plan_complete: bool,
    /// Whether any server answers; `None` until the body knows.
    pub reach: Option<Reach>,
    /// What the guard said last, and when it came.
    pub guard: Option<(guard::Status, Time)>,
    /// Claims and their volumes.
    pub volumes_by_claim: BTreeMap<(Namespace, Name), (Arc<PersistentVolumeClaim>, Arc<PersistentVolume>)>,
    /// Pods of this node that have a tombstone.
    pub doomed: BTreeSet<Uid>,
    /// This machine is about to go down: nothing new is begun.
    pub shutting_down: bool,
}

/// What is known about the volume of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Volume {
    /// Nothing: the claim is not bound, or was not seen.
    Unknown,
    /// No attaching is needed.
    Plain,
    /// Attaching is needed, and the Node does not say yet that it is both announced as in use and attached (AD-38).
    Waiting(String),
    /// It is attached.
    Attached(String),
}

// === impl Ground ===

impl Ground {
    /// True if the pod must never run twice. `before` is what was found when the claims were known. Without the
    /// automatic layer nobody grants anything and nobody moves anything by itself: every pod is like every other.
    pub fn is_exclusive(&self, pod: &Pod, before: Option<bool>) -> bool {
        if self.automatic == Automatic::Off {
            return false;
        }
        let ns = &pod.metadata.namespace;
        let unknown = pod.claims().any(|c| self.claim(ns, c).is_none());
        match before {
            Some(before) if unknown => before || api::exclusive::is_exclusive_by_itself(pod),
            Some(_) | None => is_exclusive(pod, |ns, name| self.claim(ns, name).map(|(claim, _)| &**claim)),
        }
    }

    /// True if the guard permits this exclusive pod to be started now.
    pub fn permits(&self, pod: &Uid, now: Time) -> bool {
        self.guard.as_ref().is_some_and(|(status, at)| {
            let age = now.since(*at);
            age <= self.beat.times(GUARD_BEATS) && status.who.uid == self.uid && status.permits(pod, age)
        })
    }

    /// True if what the list (or the ledger in its place) says may be acted on.
    pub fn is_list_confirmed(&self, now: Time) -> bool {
        let alone = self.reach == Some(Reach::No) || now.since(self.started) >= LIST_PATIENCE;
        self.synced || (alone && self.plan_complete)
    }

    /// When patience with the list ends, if it matters.
    pub fn list_patience_until(&self) -> Option<Time> {
        (!self.synced && self.plan_complete).then(|| self.started + LIST_PATIENCE)
    }

    /// The Node uid that the pod is bound to; empty if only the name counts. Identity by uid belongs to the automatic
    /// layer: upstream's agent takes what is bound to its name (V-16). Invariant U1.
    fn meant_for(&self, pod: &Pod) -> Uid {
        match self.automatic {
            Automatic::On => pod.node_uid(),
            Automatic::Off => Uid::default(),
        }
    }

    /// Why that pod must not be here, if so.
    pub fn reason_to_stop(&self, pod: &Pod, exclusive: bool) -> Option<Why> {
        let meant_for = self.meant_for(pod);
        if self.doomed.contains(&pod.metadata.uid) {
            return Some(Why::Removed);
        }
        if !meant_for.is_empty() && !self.uid.is_empty() && meant_for != self.uid {
            return Some(Why::OtherNode);
        }
        if self.node_gone && exclusive {
            return Some(Why::NodeGone);
        }
        if pod.is_terminal() {
            return Some(Why::Declared);
        }
        pod.metadata.is_terminating().then_some(Why::Deleted)
    }

    /// True if the pod is bound to this very Node object, or to its name by somebody who knows no more (P86).
    pub fn is_ours(&self, pod: &Pod) -> bool {
        let meant_for = self.meant_for(pod);
        !self.uid.is_empty() && (meant_for.is_empty() || meant_for == self.uid)
    }

    /// The unique name of a claim's volume, if it is one that is attached.
    pub fn attachable(&self, namespace: &Namespace, claim: &Name) -> Option<String> {
        match self.volume(namespace, claim) {
            Volume::Waiting(name) | Volume::Attached(name) => Some(name),
            Volume::Unknown | Volume::Plain => None,
        }
    }

    /// What is known about the volume of a claim.
    pub fn volume(&self, namespace: &Namespace, claim: &Name) -> Volume {
        let Some((_, volume)) = self.claim(namespace, claim) else { return Volume::Unknown };
        let Some(name) = volume.unique_name() else { return Volume::Plain };
        // A Node from before the announcement may show the volume as attached, and as in use by the boot before: it was
        // detached since, because nobody said that it is needed.
        let announced = self.node_is_current && self.announced.contains(&name);
        let attached = |node: &Arc<Node>| node.status.volumes_attached.iter().any(|v| v.name == name);
        let ready = announced && self.node.as_ref().is_some_and(attached);
        if ready { Volume::Attached(name) } else { Volume::Waiting(name) }
    }

    fn claim(
        &self,
        namespace: &Namespace,
        name: &Name,
    ) -> Option<&(Arc<PersistentVolumeClaim>, Arc<PersistentVolume>)> {
        self.volumes_by_claim.get(&(namespace.clone(), name.clone()))
    }
}

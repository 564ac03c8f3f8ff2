//! Workloads: pods that somebody else is answerable for, and where services find them.
//!
//! Responsible for: how many pods there are and under which names ([`replica_set`], [`stateful_set`], [`daemon_set`]),
//! and which of them get traffic ([`endpoints`]). Leaves to [`crate::schedule`] where they run, to `registry` how a pod
//! is made from a template, to [`crate::node_death`] which pods of a dead node end.
//!
//! Invariants:
//! - Names are derived from what the decision knows: a decision that is made twice collides with itself.
//! - A workload decides on the pods that it owns by uid. Adoption of orphans and release of pods whose labels moved
//!   away would stand in [`owned`]; neither is done yet.
//! - Rollouts are not done here yet: every pod is made from the template as it is.

pub mod daemon_set;
pub mod endpoints;
pub mod replica_set;
pub mod stateful_set;

#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use api::view::{Meta, Pod, View};
use api::{Kind, Name, ObjectKey, Time, Uid};

use crate::controller::{Change, Key};
use crate::world::{Seen, World};

/// Letters of generated names: upstream's, without vowels and without digits that look like letters.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Letters that a generated name ends with, as upstream's do.
const SUFFIX_LETTERS: u32 = 5;

/// Writes in one decision at most: upstream's burst. Twice as many would keep other keys waiting for a second.
const BURST: usize = 500;

/// FNV-1a over parts, with an end after each, so that `a`, `bc` and `ab`, `c` differ. It spreads names and breaks ties;
/// nothing rests on it being hard to guess.
pub(crate) fn hash(parts: &[&str]) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0xff]));
    bytes.fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// The first `letters` letters that stand for a hash.
fn letters(mut hash: u64, letters: u32) -> String {
    let base = LETTERS.len() as u64;
    // The low bits of FNV are the weakest.
    hash ^= hash >> 32;
    (0..letters)
        .map(|_| {
            let at = usize::try_from(hash % base).unwrap_or(0);
            hash /= base;
            char::from(LETTERS[at])
        })
        .collect()
}

/// `<stem>-<five letters>`.
fn generated(stem: &Name, parts: &[&str]) -> Name {
    Name::from(format!("{stem}-{}", letters(hash(parts), SUFFIX_LETTERS)))
}

/// Pods of a workload. Here orphans that match the selector would be taken in.
fn owned<'w>(world: &'w World, owner: &Meta) -> impl Iterator<Item = &'w Seen<Pod>> {
    world.pods_of(&owner.uid).filter({
        let namespace = owner.namespace.clone();
        move |pod| pod.metadata.namespace == namespace
    })
}

/// Touches the owner of `kind` of a changed pod, before and after.
fn touch_owners(old: Option<&View>, new: Option<&View>, kind: Kind, keys: &mut Vec<Key>) {
    for view in [old, new].into_iter().flatten() {
        if let View::Pod(pod) = view
            && let Some(owner) = pod.metadata.controller()
            && owner.kind == kind.noun()
        {
            keys.push(Key::Object(ObjectKey::namespaced(kind, &pod.metadata.namespace, owner.name.clone())));
        }
    }
}

/// The two views of an object's change.
pub(crate) fn views(change: &Change) -> Option<(&ObjectKey, Option<&View>, Option<&View>)> {
    match change {
        Change::Object { key, old, new } => Some((key, old.as_ref(), new.as_ref())),
        Change::Heard(_) | Change::Zones => None,
    }
}

/// A number of pods as a status carries it.
fn count(pods: usize) -> u32 {
    u32::try_from(pods).unwrap_or(u32::MAX)
}

/// True if the pod runs and is Ready: what an ordered StatefulSet waits for.
fn is_running_and_ready(pod: &Pod) -> bool {
    pod.status.phase == api::view::PodPhase::Running && pod.is_ready()
}

/// When a Ready pod became so.
fn ready_since(pod: &Pod) -> Time {
    pod.condition("Ready").map_or(Time::ZERO, |c| c.last_transition_time)
}

/// Older pods first, then by name, so that the order is total.
pub(crate) fn by_age(pod: &Pod) -> (Time, &Name) {
    (pod.metadata.creation_timestamp, &pod.metadata.name)
}

/// How old something is, on upstream's logarithmic scale, youngest first: of pods that are about equally old the
/// choice falls by uid, so that a rollout's neighbours do not all go together.
fn age_rank(since: Time, now: Time) -> u32 {
    const NANOS_PER_MS: u64 = 1_000_000;
    now.since(since).ms().saturating_mul(NANOS_PER_MS).checked_ilog2().unwrap_or(0)
}

/// The uid of the node that a pod is on: what the binding wrote, or that of the node which now has the name.
pub(crate) fn node_uid(world: &World, pod: &Pod) -> Uid {
    let written = pod.node_uid();
    if !written.is_empty() {
        return written;
    }
    world.node(&pod.spec.node_name).map(|n| n.metadata.uid.clone()).unwrap_or_default()
}

/// Upstream's order of pods to delete first (`ActivePodsWithRanks`): without node, not running, not ready, cheap,
/// doubled up, ready for a short time, restarted often, young.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Expendable<'p> {
    bound: bool,
    phase: u8,
    ready: bool,
    cost: i32,
    doubled: Reverse<usize>,
    ready_age: u32,
    restarts: Reverse<u32>,
    age: u32,
    tie: (&'p Uid, &'p Name),
}

impl<'p> Expendable<'p> {
    /// `doubled`: how many active pods of the same application share the pod's node.
    fn of(pod: &'p Pod, doubled: usize, now: Time) -> Self {
        use api::view::PodPhase;
        const COST: &str = "controller.kubernetes.io/pod-deletion-cost";
        let cost = pod.metadata.annotations.get(COST).and_then(|c| c.parse().ok()).unwrap_or(0);
        let ready = pod.is_ready();
        Self {
            bound: pod.is_bound(),
            phase: match pod.status.phase {
                PodPhase::Pending => 0,
                PodPhase::Unknown => 1,
                PodPhase::Running | PodPhase::Succeeded | PodPhase::Failed => 2,
            },
            ready,
            cost,
            doubled: Reverse(doubled),
            ready_age: if ready { age_rank(ready_since(pod), now) } else { 0 },
            restarts: Reverse(
                pod.status.container_statuses.iter().map(|c| c.restart_count).max().unwrap_or(0),
            ),
            age: age_rank(pod.metadata.creation_timestamp, now),
            tie: (&pod.metadata.uid, &pod.metadata.name),
        }
    }
}

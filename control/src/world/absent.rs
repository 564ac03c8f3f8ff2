//! Since when a node that pods are bound to has had no Node object (GC-30).
//!
//! Responsible for: the moment at which this process first saw it missing. Leaves to [`crate::reclaim`] the quarantine
//! that counts from it.
//!
//! Invariant: an entry exists exactly while some pod is bound to that name and no Node has it. Upstream keeps the same
//! in memory; a restart begins the quarantine again, which is patience.

use api::view::View;
use api::{NodeName, Time};

use super::World;

impl World {
    /// When this process first saw that pods are bound to a node of that name and that there is none.
    pub fn absent_since(&self, node: &NodeName) -> Option<Time> {
        self.absent.get(node).copied()
    }

    pub(super) fn remember_absence(&mut self, old: Option<&View>, new: Option<&View>, now: Time) {
        for view in [old, new].into_iter().flatten() {
            let name = if let View::Node(node) = view {
                node.name()
            } else if let View::Pod(pod) = view
                && pod.is_bound()
            {
                pod.spec.node_name.clone()
            } else {
                continue;
            };
            if self.node(&name).is_none() && self.pods_on(&name).next().is_some() {
                self.absent.entry(name).or_insert(now);
            } else {
                self.absent.remove(&name);
            }
        }
    }
}

//! Zones and their health (NLC-30 to NLC-36).
//!
//! Responsible for: which zone a node is in, how healthy each zone is, and whether *all* of them are down, which says
//! more about us than about them. Leaves to `node_death::taint` what follows from it.
//!
//! Invariant: computed from Node objects alone, except the moment at which "all down" was last left: from then on
//! every node gets a new grace period (NLC-30 b).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use api::Time;
use api::annotation::{EXCLUDE_DISRUPTION, REGION_LABELS, ZONE_LABELS};
use api::view::{ConditionStatus, Node};

use super::Settings;

/// A failure domain: region and zone label; a node without either is in the one common zone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Zone(Arc<str>);

/// How healthy a zone is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ZoneState {
    /// Most nodes are Ready.
    Normal,
    /// More than two nodes, and at least the threshold's share, are not.
    PartialDisruption,
    /// None is.
    FullDisruption,
}

/// The count behind a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneHealth {
    /// Nodes that are Ready.
    pub ready: usize,
    /// Nodes that are not.
    pub not_ready: usize,
    /// What follows.
    pub state: ZoneState,
}

/// The health of every zone that has nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Zones {
    health: BTreeMap<Zone, ZoneHealth>,
    all_full: bool,
    left_all_full: Option<Time>,
}

// === impl Zone ===

impl Zone {
    /// The zone of a node, by its labels.
    pub fn of(node: &Node) -> Self {
        let label = |keys: [&str; 2]| {
            keys.iter().find_map(|k| node.metadata.labels.get(*k)).map_or("", String::as_str)
        };
        let (region, zone) = (label(REGION_LABELS), label(ZONE_LABELS));
        if region.is_empty() && zone.is_empty() {
            Self::default()
        } else {
            Self(format!("{region}:{zone}").into())
        }
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "-" } else { &self.0 })
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

// === impl Zones ===

impl Zones {
    /// Counts again. Returns true if a state changed, or "all down" was entered or left.
    pub(super) fn fold<'n>(
        &mut self,
        nodes: impl Iterator<Item = &'n Node>,
        settings: &Settings,
        now: Time,
    ) -> bool {
        let mut counts: BTreeMap<Zone, (usize, usize)> = BTreeMap::new();
        for node in nodes {
            let (ready, not_ready) = counts.entry(Zone::of(node)).or_default();
            if node.metadata.labels.contains_key(EXCLUDE_DISRUPTION) {
                continue;
            }
            match node.ready() {
                ConditionStatus::True => *ready += 1,
                ConditionStatus::False | ConditionStatus::Unknown => *not_ready += 1,
            }
        }
        let health: BTreeMap<Zone, ZoneHealth> = counts
            .into_iter()
            .map(|(zone, (ready, not_ready))| {
                (zone, ZoneHealth { ready, not_ready, state: state(ready, not_ready, settings) })
            })
            .collect();
        // A zone whose nodes all are excluded has no condition and cannot be down (NLC-35).
        let all_full = !health.is_empty() && health.values().all(|h| h.state == ZoneState::FullDisruption);
        let states =
            |h: &BTreeMap<Zone, ZoneHealth>| h.iter().map(|(z, h)| (z.clone(), h.state)).collect::<Vec<_>>();
        let changed = all_full != self.all_full || states(&health) != states(&self.health);
        if self.all_full && !all_full {
            self.left_all_full = Some(now);
        }
        self.health = health;
        self.all_full = all_full;
        changed
    }

    /// The health of one zone.
    pub fn health(&self, zone: &Zone) -> Option<&ZoneHealth> {
        self.health.get(zone)
    }

    /// All zones.
    pub fn iter(&self) -> impl Iterator<Item = (&Zone, &ZoneHealth)> {
        self.health.iter()
    }

    /// True if every zone is fully disrupted: nobody is evicted then (NLC-30 a).
    pub fn all_full(&self) -> bool {
        self.all_full
    }

    /// When "all down" was last left: every silence is counted from then at the earliest.
    pub fn left_all_full(&self) -> Option<Time> {
        self.left_all_full
    }
}

/// `ComputeZoneState`: "not Ready" must be more than two *and* at least the threshold.
fn state(ready: usize, not_ready: usize, settings: &Settings) -> ZoneState {
    let percent = usize::try_from(settings.timing.unhealthy_threshold_percent).unwrap_or(usize::MAX);
    if ready == 0 && not_ready > 0 {
        ZoneState::FullDisruption
    } else if not_ready > 2 && not_ready * 100 >= percent.saturating_mul(ready + not_ready) {
        ZoneState::PartialDisruption
    } else {
        ZoneState::Normal
    }
}

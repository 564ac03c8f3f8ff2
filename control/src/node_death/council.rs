//! The council: up to five nodes that a node may ask when no server answers.
//!
//! Responsible for: who sits in it, when a membership is replaced, when an old one is retired, and which memberships a
//! silent node may still be using. Leaves to `agent` what a member answers.
//!
//! Invariants:
//! - N2 (C13): a membership that some node may still be using is never retired: fencing closes and counts *every*
//!   membership from the last one the node acknowledged to the newest ever offered.
//! - It never shrinks below three by itself: with one or two seats silence proves nothing. From five to three it does,
//!   once fewer than four of the five are left: three of three carry the next death, three of five do not.
//! - Sizes are odd (1, 3, 5): an even one is only less available.
//!
//! A membership is offered only after it is stored, so a new leader knows every membership that was ever offered.

use std::collections::BTreeSet;

use api::edit::Edit;
use api::flaw::Flaw;
use api::view::{ConditionStatus, Council, CouncilSpec, Membership, Meta, Node, Seat, View};
use api::{CouncilEpoch, Kind, ObjectKey, Time, Uid};

use super::orphan;
use super::pulse::is_heard;
use crate::controller::{Change, Controller, Key, Layer, Scope};
use crate::decision::{Action, Decision, New};
use crate::world::{Seen, World};

/// How many seats there are at most. Five outlive two deaths; more make every outage noisier and prove nothing more.
const SEATS_MAX: usize = 5;
/// How many seats there are at least, once there were as many: fewer prove nothing.
const SEATS_MIN: usize = 3;
/// How many memberships may wait for their retirement. Then the council stays as it is until the oldest can go; the
/// number bounds what a close has to reach.
const MEMBERSHIPS_MAX: usize = 8;

/// Keeps the council.
pub struct Councils;

static SCOPE: Scope = Scope {
    name: "council",
    reads: &[Kind::Node, Kind::NodeIncident, Kind::Council, Kind::Tombstone],
    writes: &[Kind::Council],
};

impl Controller for Councils {
    fn scope(&self) -> &'static Scope {
        &SCOPE
    }

    fn layer(&self) -> Layer {
        Layer::Automatic
    }

    fn touched(&self, change: &Change, _world: &World, keys: &mut Vec<Key>) {
        match change {
            Change::Object { key, .. } => {
                if matches!(key.kind, Kind::Node | Kind::NodeIncident | Kind::Council) {
                    keys.push(Key::Cluster);
                }
            }
            Change::Heard(_) => keys.push(Key::Cluster),
            Change::Zones => {}
        }
    }

    fn decide(&self, world: &World, _key: &Key, now: Time) -> Decision {
        let Some(council) = world.council() else { return found(world, now) };
        let mut memberships = council.spec.memberships.clone();
        retire(world, &mut memberships, now);
        if let Some(seats) = reseat(world, council, now)
            && memberships.len() < MEMBERSHIPS_MAX
        {
            let epoch = memberships.last().map_or(CouncilEpoch(1), |m| m.epoch.next());
            memberships.push(Membership { epoch, seats, since: world.revision() });
        }
        if memberships == council.spec.memberships {
            return Decision::rest();
        }
        let key = ObjectKey::cluster(Kind::Council, "council");
        Decision::rest().with(Action::edit(key, council.rev, Edit::Memberships(memberships)))
    }
}

/// The first council.
fn found(world: &World, now: Time) -> Decision {
    let mut fit: Vec<Seat> = world.nodes().filter(|n| is_fit(world, n, now)).map(seat).collect();
    if fit.is_empty() {
        return Decision::rest();
    }
    fit.truncate(size(fit.len()));
    let spec = CouncilSpec {
        memberships: vec![Membership { epoch: CouncilEpoch(1), seats: fit, since: world.revision() }],
    };
    let metadata = Meta { name: "council".into(), ..Meta::default() };
    let view = View::Council(Council { metadata, spec }.into());
    Decision::rest().with(Action::create(New::Object(Box::new(view))))
}

/// The seats of a better membership than the newest, if there is one: members that are gone or fenced are replaced by
/// fit outsiders, and the council grows and shrinks with the cluster. Better is what can lose more members before no
/// majority is left; each membership more is one more to be closed, so that nothing is changed for less.
fn reseat(world: &World, council: &Council, now: Time) -> Option<Vec<Seat>> {
    let newest = council.newest()?;
    let (mut seats, left): (Vec<Seat>, Vec<Seat>) =
        newest.seats.iter().cloned().partition(|s| keeps_seat(world, s));
    let outsiders = world.nodes().filter(|n| is_fit(world, n, now) && !newest.has(&n.metadata.uid)).map(seat);
    let kept = seats.len();
    seats.extend(outsiders);
    let wanted = size(seats.len()).max(newest.seats.len().min(SEATS_MIN));
    let spare = |alive: usize, seats: usize| (alive + seats.div_ceil(2)).saturating_sub(seats);
    let better = spare(seats.len().min(wanted), wanted) > spare(kept, newest.seats.len());
    if !better {
        return None;
    }
    // A seat that nobody fit is there for stays where it was.
    seats.extend(left);
    seats.truncate(wanted);
    Some(seats)
}

fn size(nodes: usize) -> usize {
    match nodes.min(SEATS_MAX) {
        0 => 0,
        1 | 2 => 1,
        3 | 4 => 3,
        _ => SEATS_MAX,
    }
}

fn seat(node: &Seen<Node>) -> Seat {
    Seat { node_name: node.name(), node_uid: node.metadata.uid.clone() }
}

/// A node that may be given a seat.
fn is_fit(world: &World, node: &Seen<Node>, now: Time) -> bool {
    node.ready() == ConditionStatus::True
        && is_heard(world, &node.metadata.uid, now)
        && world.open_incident(&node.metadata.uid).is_none()
}

/// A member keeps its seat until its Node object is gone or it is fenced.
fn keeps_seat(world: &World, seat: &Seat) -> bool {
    let fenced = world.open_incident(&seat.node_uid).is_some_and(|i| i.status.phase.has_evidence());
    world.node_by_uid(&seat.node_uid).is_some() && !fenced
}

/// Drops the oldest memberships that no node can be using any more.
fn retire(world: &World, memberships: &mut Vec<Membership>, now: Time) {
    if memberships.len() < 2 || !may_retire(world, now) {
        return;
    }
    let in_use = world
        .nodes()
        .filter(|n| !world.open_incident(&n.metadata.uid).is_some_and(|i| i.status.phase.has_evidence()))
        // Nothing was ever granted, and so no council offered, to a node without a recorded boot.
        .filter(|n| !n.recorded_boot().is_empty())
        // A node that this leader has not heard of any council from may be using the oldest.
        .map(|n| world.pulse.ear(&n.metadata.uid).map_or(CouncilEpoch(0), |e| e.council))
        .min()
        .unwrap_or_default();
    let newest = memberships.last().map(|m| m.epoch);
    memberships.retain(|m| m.epoch >= in_use || Some(m.epoch) == newest);
}

/// A machine without Node object may still be using any membership, while it speaks or something that must not run twice
/// hangs on it, until there is evidence. One that was taken away with nothing on it concerns nobody any more.
fn may_retire(world: &World, now: Time) -> bool {
    let nodeless_incident = world.incidents().any(|i| {
        i.is_open() && !i.status.phase.has_evidence() && world.node_by_uid(&i.spec.node_uid).is_none()
    });
    let nodeless_beats =
        world.pulse.ears().any(|(uid, _)| world.node_by_uid(uid).is_none() && is_heard(world, uid, now));
    world.tombstones().next().is_none()
        && !nodeless_incident
        && !nodeless_beats
        && !orphan::is_anybody_orphaned(world)
}

/// The memberships that a node may be using: from the last one it acknowledged to this term, else the oldest that is
/// not retired, to the newest that was ever offered. Invariant N2 (C13).
pub fn in_use_by<'w>(world: &'w World, uid: &Uid) -> Vec<&'w Membership> {
    let Some(council) = world.council() else { return Vec::new() };
    let memberships = &council.view.spec.memberships;
    if world.settings().lacks(Flaw::NewestOnly) {
        return memberships.last().into_iter().collect();
    }
    let known = world.pulse.ear(uid).map_or(CouncilEpoch(0), |e| e.council);
    let from = if memberships.iter().any(|m| m.epoch == known) { known } else { CouncilEpoch(0) };
    memberships.iter().filter(|m| m.epoch >= from).collect()
}

/// Every seat at which a node must be closed.
pub(super) fn seats_to_close(world: &World, uid: &Uid) -> BTreeSet<Seat> {
    in_use_by(world, uid).into_iter().flat_map(|m| m.seats.iter().cloned()).collect()
}

/// Every seat of every membership.
pub(super) fn all_seats(world: &World) -> BTreeSet<Seat> {
    let council = world.council();
    council.iter().flat_map(|c| &c.spec.memberships).flat_map(|m| m.seats.iter().cloned()).collect()
}

/// True if a majority of the newest membership is heard now. A council that cannot be reached is a brake: this server
/// may be the odd one out. One that arms nobody proves nothing either way, and upstream's behaviour goes on without it.
pub fn is_reachable(world: &World, now: Time) -> bool {
    let Some(newest) = world.council().and_then(|c| c.newest()).filter(|m| m.arms()) else { return true };
    let heard = newest.seats.iter().filter(|s| is_heard(world, &s.node_uid, now)).count();
    heard >= newest.majority()
}

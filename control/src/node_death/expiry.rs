//! `lease-expiry`: when silence proves that nothing exclusive runs any more.
//!
//! Responsible for: the rule, and nothing else. Leaves to [`super::pulse`] what was heard, to [`super::council`] which
//! councils count, to [`super::incident`] to act on the answer.
//!
//! The rule. A node v may be declared fenced at server time t iff
//! 1. for *every* council that v may be using a majority has acknowledged *this* close, and
//! 2. t ≥ E + K(1+ρ), where E is the latest of T(v) + G(1+ρ) and, for each of those councils, the moment from which a
//!    majority of its acknowledgements counts, and
//! 3. v was armed in every mode it may be in.
//!
//! Why that is enough. After E no grant lives, because the last was counted from a sending before T. A hold that lives
//! at E needs the none-here of a majority; that majority shares a member with the closing one. The member's none-here
//! was given before its close; if it could still count, the member was not clean, and its acknowledgement counts only
//! from A(1+ρ) after it arrived. After closing, that member says none-here to v no more, so v never holds again. K
//! later v has stopped. No clock of a member, and not that of the server's machine, is trusted beyond "does not run
//! fast by more than ρ"; one that stands only makes us wait.

use api::flaw::Flaw;
use api::message::Armed;
use api::view::{Membership, NodeIncident};
use api::{Duration, Time, Uid};

use super::council;
use crate::world::World;

/// What silence proves now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// It proves it, since that moment.
    Since(Time),
    /// It will, at that moment, if nothing is heard.
    At(Time),
    /// Acknowledgements of the close are missing.
    Unclosed,
    /// It proves nothing: there was a time when the node would not have stopped by itself.
    NotArmed,
}

/// Applies the rule to the node of an incident.
pub fn expiry(world: &World, incident: &NodeIncident, now: Time) -> Expiry {
    let settings = world.settings();
    let uid = &incident.spec.node_uid;
    let councils = council::in_use_by(world, uid);
    if !is_armed(world, uid, &councils) {
        return Expiry::NotArmed;
    }
    // Invariant C10.
    let drifts = !settings.lacks(Flaw::NoDrift);
    let timing = &settings.timing;
    let grant = if drifts { timing.grant_by_server() } else { timing.grant };
    let kill_bound = kill_bound(world, incident);
    let kill = if drifts { timing.kill_by_server(kill_bound) } else { kill_bound };
    let mut end = world.pulse.last_accepted(uid, settings) + grant;
    // Invariant C14.
    if !settings.lacks(Flaw::NoClose) {
        let acks = world.pulse.acks(uid);
        for membership in councils {
            let mut counts: Vec<Time> =
                membership.seats.iter().filter_map(|s| acks?.get(&s.node_uid)).copied().collect();
            counts.sort_unstable();
            match counts.get(membership.majority() - 1) {
                Some(at) => end = end.max(*at),
                None => return Expiry::Unclosed,
            }
        }
    }
    let proven = end + kill;
    if now >= proven { Expiry::Since(proven) } else { Expiry::At(proven) }
}

/// True if the node would have stopped by itself in every mode it may be in: every council it may be using arms, and
/// it did not say otherwise. A node that this process never heard was granted nothing without such a council.
fn is_armed(world: &World, uid: &Uid, councils: &[&Membership]) -> bool {
    let says_no = world.pulse.ear(uid).is_some_and(|e| e.armed == Armed::No && e.council.0 > 0);
    !councils.is_empty() && councils.iter().all(|m| m.arms()) && !says_no
}

/// The kill bound of the node. No node with a greater one than the setting is ever granted anything, so that the
/// setting is right for a node that nobody remembers (case P113: an unknown input counts as the largest legal value).
fn kill_bound(world: &World, incident: &NodeIncident) -> Duration {
    let declared = world.pulse.ear(&incident.spec.node_uid).map(|e| e.kill_bound);
    declared.unwrap_or(world.settings().timing.kill_bound)
}

//! Brakes: reasons not to act although a node is silent.
//!
//! Responsible for: which brakes hold a suspicion or an incident now. Leaves to [`super::suspicion`] and
//! [`super::incident`] to obey and to show them.
//!
//! Invariant B1: while a brake holds, nothing is withdrawn from endpoints, evicted or fenced because of that silence.
//! Brakes hold readiness too, not only eviction (case P69): with all nodes silent it is this server that is alone.

use api::flaw::Flaw;
use api::view::{Brake, IncidentEnd, IncidentPhase, NodeIncident, StepName};
use api::{Duration, Time, Uid};

use super::council;
use crate::world::World;

/// What a silence is about.
#[derive(Clone, Copy, Debug)]
pub struct Silence<'a> {
    /// The node.
    pub uid: &'a Uid,
    /// Since when.
    pub since: Time,
    /// Its incident, if one is open.
    pub incident: Option<&'a NodeIncident>,
}

/// The brakes that hold this silence now, in a fixed order.
pub fn brakes(world: &World, silence: Silence<'_>, now: Time) -> Vec<Brake> {
    if world.settings().lacks(Flaw::NoBrake) {
        return Vec::new();
    }
    let checks = [
        (Brake::JustStarted, just_started(world, now)),
        (Brake::Storm, is_storm(world, silence, now)),
        (Brake::TooManyIncidents, too_many(world, silence)),
        (Brake::CouncilUnreachable, !council::is_reachable(world, now)),
        (Brake::RebootAnnounced, reboot_announced(world, silence.uid, now).is_some()),
        (Brake::Flapping, is_flapping(world, silence, now)),
    ];
    checks.into_iter().filter(|(_, holds)| *holds).map(|(brake, _)| brake).collect()
}

/// When to look again at brakes that end by time alone. Others end by something that is heard or written.
pub fn look_again(now: Time) -> Time {
    // A brake is looked at each second while it holds: often enough for people, seldom enough for a thousand nodes.
    now + Duration::from_secs(1)
}

/// A process that has just begun to listen has heard nobody yet.
fn just_started(world: &World, now: Time) -> bool {
    now.since(world.started()) < world.settings().timing.patience
}

/// More than half of the nodes fell silent within the storm window around this one.
fn is_storm(world: &World, silence: Silence<'_>, now: Time) -> bool {
    let timing = &world.settings().timing;
    let late = timing.late();
    let window = timing.storm_window;
    let together = world
        .nodes()
        .map(|n| world.pulse.silent_since(&n.metadata.uid))
        .filter(|since| now.since(*since) >= late)
        .filter(|since| since.since(silence.since) <= window && silence.since.since(*since) <= window)
        .count();
    timing.is_storm(count(together), count(world.node_count()))
}

/// As many incidents as allowed are open and older than this one. An incident whose work is done, its node being gone
/// for good, does not count: it would block the next failover for ever.
fn too_many(world: &World, silence: Silence<'_>) -> bool {
    let rank =
        |i: &NodeIncident| (i.step_at(StepName::Suspected).unwrap_or(Time::MAX), i.metadata.name.clone());
    let mine = silence.incident.map(rank);
    let older = world
        .incidents()
        .filter(|i| is_under_way(i) && i.spec.node_uid != *silence.uid)
        .filter(|i| mine.as_ref().is_none_or(|mine| rank(i) < *mine))
        .count();
    count(older) >= world.settings().timing.incidents_max(count(world.node_count()))
}

/// True while an incident still changes something. One about a node that is not armed waits for a human, who may never
/// come.
fn is_under_way(incident: &NodeIncident) -> bool {
    match incident.status.phase {
        IncidentPhase::Dead | IncidentPhase::Fencing if incident.status.brakes == [Brake::NotArmed] => false,
        IncidentPhase::Suspect | IncidentPhase::Dead | IncidentPhase::Fencing => true,
        IncidentPhase::Fenced => incident.step_at(StepName::Released).is_none(),
        IncidentPhase::Recovering | IncidentPhase::Closed => false,
    }
}

/// Until when the patience of an announced reboot lasts, if it does.
pub fn reboot_announced(world: &World, uid: &Uid, now: Time) -> Option<Time> {
    let node = world.node_by_uid(uid)?;
    let (boot, at) = node.announced_reboot()?;
    let until = at + world.settings().timing.reboot_patience;
    (boot == node.recorded_boot() && now < until).then_some(until)
}

/// The node was back several times a short while ago and was not silent for longer than the flap patience now.
fn is_flapping(world: &World, silence: Silence<'_>, now: Time) -> bool {
    let timing = &world.settings().timing;
    let returns = world
        .incidents_of(silence.uid)
        .filter(|i| match i.status.end {
            Some(IncidentEnd::CameBack | IncidentEnd::Rebooted | IncidentEnd::Recovered) => true,
            Some(IncidentEnd::Removed) | None => false,
        })
        .filter_map(|i| i.step_at(StepName::Closed))
        .filter(|at| now.since(*at) < timing.flap_window)
        .count();
    count(returns) >= timing.flap_count && now.since(silence.since) < timing.flap_patience
}

/// A number of things as the settings count them.
pub(super) fn count(things: usize) -> u64 {
    u64::try_from(things).unwrap_or(u64::MAX)
}

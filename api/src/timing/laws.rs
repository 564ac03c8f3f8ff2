//! What must hold between the numbers, one entry per law.
//!
//! Responsible for: the list [`LAWS`], evaluating it at compile time for the profiles and at start for what an operator
//! configured, and the sentence that says which law is broken, by how much, and what would follow. Leaves the numbers
//! to [`super::profile`] and the refusal to start to the binary.
//!
//! Invariants: every law is one inequality between two numbers of one unit; a law that nothing can break is not in the
//! list; a law about a part that is switched off is not asked. There is no law of *safety* between grant, answer,
//! contact window and patience: the protocol is safe for all of them, so that a network slower than assumed costs
//! time and never a second copy. Safety needs what a node promises about its own stopping, and the drift.
//!
//! The failure it is for: a number changed in good faith (a watchdog of 10 s, a beat of 2 s) that silently turns a blip
//! into a kill, or a promise into a hope.

use std::fmt;

use super::{Automatic, Detection, Timing};
use crate::time::Duration;

/// What a broken law costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Two copies may run.
    Safety,
    /// Something stops, waits or moves that should not.
    Liveness,
}

/// When a law is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Always.
    Always,
    /// While beats are what nodes are judged by.
    Beats,
    /// While leases are.
    Leases,
}

/// How the left side compares with the right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// Not less.
    AtLeast,
    /// Greater.
    MoreThan,
}

/// What both sides count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds.
    Ms,
    /// Parts per million.
    Ppm,
    /// Percent.
    Percent,
    /// Things.
    Count,
}

/// One inequality between numbers of [`Timing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Law {
    /// Name in messages and documents.
    pub id: &'static str,
    /// What breaking it costs.
    pub kind: Kind,
    /// When it is asked.
    pub scope: Scope,
    /// The left side in words.
    pub left: &'static str,
    /// How it compares.
    pub relation: Relation,
    /// The right side in words.
    pub right: &'static str,
    /// What both sides count.
    pub unit: Unit,
    /// What follows where it does not hold; `{field}` stands for the value of that field.
    pub otherwise: &'static str,
    /// Which sides [`sides`] computes. A name and not a function, because constants cannot call what they look up.
    sides: Sides,
}

/// The laws, for the one function that computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sides {
    Drift,
    DriftBound,
    KillDeclared,
    Kill,
    Watchdog,
    Automatic,
    Blip,
    Read,
    Outage,
    Return,
    Noise,
    BlipIsNotDeath,
    Order,
    LostBeat,
    Margin,
    Pace,
    AskingPace,
    Hidden,
    Fenced,
    Traffic,
    Patience,
    PatienceAfterBoot,
    Reboot,
    Council,
    Storm,
    StormBeats,
    StormShare,
    Incidents,
    Flap,
    FlapWindow,
    Renew,
    Lease,
    LeaseMargin,
    Startup,
    Status,
    Eviction,
    Zone,
    Quarantine,
}

/// A law that does not hold, with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The law.
    pub law: &'static Law,
    /// What its left side came to.
    pub left: u64,
    /// What its right side came to.
    pub right: u64,
    /// The numbers that break it.
    pub timing: Timing,
}

/// Beats that must be lost in a row before a node is dead. Two are lost to one route change.
const BEATS_TO_DEATH: u64 = 3;

/// Drift beyond which clocks are broken rather than slow: what slewing at most adds to one.
const DRIFT_MAX_PPM: u64 = 100_000;

/// A council of two cannot lose a member, and the silent node is one.
const COUNCIL_MIN: u64 = 3;

use Kind::{Liveness, Safety};
use Relation::{AtLeast, MoreThan};
use Scope::{Always, Beats, Leases};

/// One row of [`LAWS`].
const fn law(
    (id, kind, scope, sides): (&'static str, Kind, Scope, Sides),
    (left, relation, right, unit): (&'static str, Relation, &'static str, Unit),
    otherwise: &'static str,
) -> Law {
    Law { id, kind, scope, left, relation, right, unit, otherwise, sides }
}

/// Every law.
#[rustfmt::skip]
pub const LAWS: &[Law] = &[
    // What safety needs.
    law(("L-DRIFT", Safety, Beats, Sides::Drift), ("drift", MoreThan, "none", Unit::Ppm),
        "no two clocks run alike, and a server that ignores it calls a living node fenced"),
    law(("L-DRIFT-BOUND", Liveness, Always, Sides::DriftBound), ("drift allowed at most", AtLeast, "drift", Unit::Ppm),
        "a clock that is {drift_ppm} off is broken: every wait would grow by as much"),
    law(("L-KILL-DECLARED", Safety, Beats, Sides::KillDeclared), ("kill_bound", MoreThan, "none", Unit::Ms),
        "a node that declares no time to stop exclusive work would be fenced while it still runs"),
    law(("L-KILL", Safety, Beats, Sides::Kill), ("kill_bound", AtLeast, "guard_wake + cgroup_kill + unmount", Unit::Ms),
        "the guard would still be killing when the pods start elsewhere"),
    law(("L-WATCHDOG", Safety, Beats, Sides::Watchdog), ("kill_bound", AtLeast, "watchdog + watchdog_reset", Unit::Ms),
        "a machine whose guard hangs would be reset after its pods started elsewhere"),
    law(("L-AUTOMATIC", Safety, Always, Sides::Automatic), ("detection by beats", AtLeast, "automatic layer", Unit::Count),
        "without beats there are no grants, and silence proves nothing"),
    // What must stop nothing.
    law(("L-BLIP", Liveness, Beats, Sides::Blip), ("grant·(1−drift)", AtLeast, "blip + 2·beat + 4·delay", Unit::Ms),
        "a network blip of {blip} would stop exclusive work"),
    law(("L-READ", Liveness, Beats, Sides::Read), ("grant·(1−drift)", AtLeast, "blip + 2·beat + 4·delay + leader_read", Unit::Ms),
        "a beat that waits {leader_read} for its batch would be answered too late after a blip of {blip}"),
    law(("L-OUTAGE", Liveness, Beats, Sides::Outage), ("grant·(1−drift)", AtLeast, "contact_window·(1+drift) + beat + asking + 4·delay", Unit::Ms),
        "grants would end before the council may answer, and an outage of the server would stop exclusive work"),
    law(("L-RETURN", Liveness, Beats, Sides::Return), ("council_answer·(1−drift)", AtLeast, "asking + return_spread + 4·delay", Unit::Ms),
        "the last answers would end before the last node has a grant, and the return of the server would stop exclusive work"),
    law(("L-NOISE", Liveness, Beats, Sides::Noise), ("contact_window", AtLeast, "2·beat + 4·delay", Unit::Ms),
        "members would answer \"none here\" in a healthy cluster, and fencing would wait for those answers to end"),
    law(("L-DEAD-BLIP", Liveness, Beats, Sides::BlipIsNotDeath), ("dead", MoreThan, "blip + beat + 2·delay", Unit::Ms),
        "a network blip of {blip} would taint nodes"),
    law(("L-ORDER", Liveness, Beats, Sides::Order), ("dead", MoreThan, "suspect", Unit::Ms),
        "a node would be dead before it is suspected"),
    law(("L-LOST-BEAT", Liveness, Beats, Sides::LostBeat), ("suspect", AtLeast, "2·beat + 2·delay", Unit::Ms),
        "one lost beat would take the traffic away"),
    law(("L-MARGIN", Liveness, Beats, Sides::Margin), ("dead", AtLeast, "3·(beat + 2·delay)", Unit::Ms),
        "a node would be dead although fewer than three tries of its beat failed"),
    law(("L-PACE", Liveness, Beats, Sides::Pace), ("beat", AtLeast, "2·delay", Unit::Ms),
        "beats would be redialled before the answer to the last one can be there"),
    law(("L-ASKING", Liveness, Beats, Sides::AskingPace), ("asking", AtLeast, "2·delay", Unit::Ms),
        "members would be asked again before their answer can be there"),
    // What the promises need.
    law(("L-HIDDEN", Liveness, Beats, Sides::Hidden), ("grant·(1+drift)", AtLeast, "dead + 2·delay + tick", Unit::Ms),
        "closing the node would not be done when its grant ends, and every fencing would take longer"),
    law(("L-FENCED", Liveness, Beats, Sides::Fenced), ("fenced_budget", AtLeast, "delay + leader_read + (grant + kill_bound)·(1+drift) + tick", Unit::Ms),
        "a dead node would not be fenced within {fenced_budget} (promise F2)"),
    law(("L-TRAFFIC", Liveness, Beats, Sides::Traffic), ("traffic_budget", AtLeast, "delay + suspect·(1+drift) + tick + withdraw", Unit::Ms),
        "traffic would go to a dead node for longer than {traffic_budget} (promise F1)"),
    law(("L-PATIENCE", Liveness, Beats, Sides::Patience), ("patience", AtLeast, "redial + return_spread", Unit::Ms),
        "a server that returns would judge nodes that had no chance to reach it yet"),
    law(("L-PATIENCE-BOOT", Liveness, Beats, Sides::PatienceAfterBoot), ("patience_after_boot", AtLeast, "patience", Unit::Ms),
        "a server whose machine just booted would be less patient than one that was only restarted"),
    law(("L-REBOOT", Liveness, Beats, Sides::Reboot), ("reboot_patience", MoreThan, "fenced_budget", Unit::Ms),
        "announcing a reboot would not help: the node would be fenced meanwhile"),
    law(("L-COUNCIL", Liveness, Beats, Sides::Council), ("council_size_max", AtLeast, "members that lease-expiry needs", Unit::Count),
        "no silent node could be fenced by its silence"),
    // Brakes.
    law(("L-STORM", Liveness, Beats, Sides::Storm), ("dead", AtLeast, "suspect + storm_window", Unit::Ms),
        "the first node of a storm would be dead before the others are seen to be silent"),
    law(("L-STORM-BEATS", Liveness, Beats, Sides::StormBeats), ("storm_window", AtLeast, "2·beat", Unit::Ms),
        "beats that one cut ended would not count as ended together"),
    law(("L-STORM-SHARE", Liveness, Beats, Sides::StormShare), ("share that may never be passed", AtLeast, "storm_share_percent", Unit::Percent),
        "a server that lost most of its nodes would think that they died and not that it is alone"),
    law(("L-INCIDENTS", Liveness, Beats, Sides::Incidents), ("nodes_per_incident", AtLeast, "two", Unit::Count),
        "half of the cluster could be failed over at once"),
    law(("L-FLAP", Liveness, Beats, Sides::Flap), ("flap_patience", AtLeast, "dead", Unit::Ms),
        "a flapping node would count as steady between two deaths"),
    law(("L-FLAP-WINDOW", Liveness, Beats, Sides::FlapWindow), ("flap_window", AtLeast, "flap_count·dead", Unit::Ms),
        "no node could die often enough within the window to count as flapping"),
    // Upstream's numbers.
    law(("L-RENEW", Liveness, Always, Sides::Renew), ("lease_duration", MoreThan, "lease_renew", Unit::Ms),
        "leases would run out between two renewals"),
    law(("L-LEASE", Liveness, Always, Sides::Lease), ("node_monitor_grace", MoreThan, "lease_duration", Unit::Ms),
        "a node would be Unknown while its lease is good"),
    law(("L-LEASE-MARGIN", Liveness, Leases, Sides::LeaseMargin), ("node_monitor_grace", AtLeast, "lease_retry_cycle + node_monitor_period", Unit::Ms),
        "a living node that is about to replace a dead connection would be Unknown"),
    law(("L-STARTUP", Liveness, Always, Sides::Startup), ("node_startup_grace", AtLeast, "node_monitor_grace", Unit::Ms),
        "a new node would have less time than an old one"),
    law(("L-STATUS", Liveness, Always, Sides::Status), ("status_report", AtLeast, "status_frequency", Unit::Ms),
        "a status would be sent more often than it is computed"),
    law(("L-EVICTION", Liveness, Always, Sides::Eviction), ("eviction_interval_secondary", AtLeast, "eviction_interval", Unit::Ms),
        "a zone in trouble would be emptied faster than a healthy one"),
    law(("L-ZONE", Liveness, Always, Sides::Zone), ("whole zone", AtLeast, "unhealthy_threshold_percent", Unit::Percent),
        "no zone could ever be in partial disruption"),
    law(("L-QUARANTINE", Liveness, Always, Sides::Quarantine), ("gc_quarantine", AtLeast, "pod_gc_period", Unit::Ms),
        "pods of a node that is registered again would be collected in the first pass"),
];

/// Everything that does not hold. Empty for a lawful value.
pub fn check(timing: &Timing) -> Vec<Violation> {
    let broken = |law: &'static Law| {
        let (left, right) = sides(law.sides, timing);
        (!law.holds(timing)).then_some(Violation { law, left, right, timing: *timing })
    };
    LAWS.iter().filter_map(broken).collect()
}

/// True if [`check`] would find nothing; for constants.
pub const fn is_lawful(timing: &Timing) -> bool {
    let mut i = 0;
    while i < LAWS.len() {
        if !LAWS[i].holds(timing) {
            return false;
        }
        i += 1;
    }
    true
}

impl Law {
    /// True if it holds, or is about a part that is switched off.
    pub const fn holds(&self, timing: &Timing) -> bool {
        let asked = match self.scope {
            Scope::Always => true,
            Scope::Beats => matches!(timing.detection, Detection::Beats),
            Scope::Leases => matches!(timing.detection, Detection::Leases),
        };
        let (left, right) = sides(self.sides, timing);
        let holds = match self.relation {
            Relation::AtLeast => left >= right,
            Relation::MoreThan => left > right,
        };
        !asked || holds
    }
}

/// Both sides of a law, in the order of [`LAWS`]; in its unit.
const fn sides(sides: Sides, t: &Timing) -> (u64, u64) {
    let grant_down = t.with_drift_down(t.grant);
    let grant_up = t.grant_by_server();
    let round_trips = t.delay.times(4);
    let two_beats = t.beat.times(2);
    let blip = t.blip.plus(two_beats).plus(round_trips);
    match sides {
        Sides::Drift => (t.drift_ppm, 0),
        Sides::DriftBound => (DRIFT_MAX_PPM, t.drift_ppm),
        Sides::KillDeclared => (t.kill_bound.ms(), 0),
        Sides::Kill => ms(t.kill_bound, t.guard_wake.plus(t.cgroup_kill).plus(t.unmount)),
        Sides::Watchdog => ms(t.kill_bound, t.watchdog.plus(t.watchdog_reset)),
        Sides::Automatic => {
            (matches!(t.detection, Detection::Beats) as u64, matches!(t.automatic, Automatic::On) as u64)
        }
        Sides::Blip => ms(grant_down, blip),
        Sides::Read => ms(grant_down, blip.plus(t.leader_read)),
        Sides::Outage => {
            let votes = t.with_drift_up(t.contact_window).plus(t.beat).plus(t.asking).plus(round_trips);
            ms(grant_down, votes)
        }
        Sides::Return => {
            ms(t.with_drift_down(t.council_answer), t.asking.plus(t.return_spread).plus(round_trips))
        }
        Sides::Noise => ms(t.contact_window, two_beats.plus(round_trips)),
        Sides::BlipIsNotDeath => ms(t.dead, t.blip.plus(t.beat).plus(t.delay.times(2))),
        Sides::Order => ms(t.dead, t.suspect),
        Sides::LostBeat => ms(t.suspect, two_beats.plus(t.delay.times(2))),
        Sides::Margin => ms(t.dead, t.beat.plus(t.delay.times(2)).times(BEATS_TO_DEATH)),
        Sides::Pace => ms(t.beat, t.delay.times(2)),
        Sides::AskingPace => ms(t.asking, t.delay.times(2)),
        Sides::Hidden => ms(grant_up, t.dead.plus(t.delay.times(2)).plus(t.tick)),
        Sides::Fenced => ms(t.fenced_budget, t.silent_death_to_fenced_worst().plus(t.leader_read)),
        Sides::Traffic => ms(t.traffic_budget, t.silent_death_to_no_traffic_worst()),
        Sides::Patience => ms(t.patience, t.redial.plus(t.return_spread)),
        Sides::PatienceAfterBoot => ms(t.patience_after_boot, t.patience),
        Sides::Reboot => ms(t.reboot_patience, t.fenced_budget),
        Sides::Council => (t.council_size_max, COUNCIL_MIN),
        Sides::Storm => ms(t.dead, t.suspect.plus(t.storm_window)),
        Sides::StormBeats => ms(t.storm_window, two_beats),
        Sides::StormShare => (50, t.storm_share_percent),
        Sides::Incidents => (t.nodes_per_incident, 2),
        Sides::Flap => ms(t.flap_patience, t.dead),
        Sides::FlapWindow => ms(t.flap_window, t.dead.times(t.flap_count)),
        Sides::Renew => ms(t.lease_duration, t.lease_renew),
        Sides::Lease => ms(t.node_monitor_grace, t.lease_duration),
        Sides::LeaseMargin => ms(t.node_monitor_grace, t.lease_retry_cycle.plus(t.node_monitor_period)),
        Sides::Startup => ms(t.node_startup_grace, t.node_monitor_grace),
        Sides::Status => ms(t.status_report, t.status_frequency),
        Sides::Eviction => ms(t.eviction_interval_secondary, t.eviction_interval),
        Sides::Zone => (100, t.unhealthy_threshold_percent),
        Sides::Quarantine => ms(t.gc_quarantine, t.pod_gc_period),
    }
}

const fn ms(left: Duration, right: Duration) -> (u64, u64) {
    (left.ms(), right.ms())
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AtLeast => "must be at least",
            Self::MoreThan => "must be more than",
        })
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ms => " ms",
            Self::Ppm => " ppm",
            Self::Percent => " %",
            Self::Count => "",
        })
    }
}

/// The law in words, without numbers.
impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {} {}", self.id, self.left, self.relation, self.right)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Law { id, left, relation, right, unit, otherwise, .. } = self.law;
        let mut consequence = (*otherwise).to_owned();
        for field in self.timing.explain() {
            consequence = consequence.replace(&format!("{{{}}}", field.name), &field.value.to_string());
        }
        write!(
            f,
            "timing law {id} violated: {left} = {}{unit} {relation} {right} = {}{unit} ({consequence})",
            self.left, self.right
        )
    }
}

impl std::error::Error for Violation {}

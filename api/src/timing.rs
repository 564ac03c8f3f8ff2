//! All times and limits that node death runs on: one value, named profiles, laws between the numbers.
//!
//! Responsible for: the fields of [`Timing`] with their words and sources, what both sides compute from them, reading
//! a configured value, and [`Timing::explain`]. [`profile`] has the numbers, [`laws`] has what must hold between them.
//! Leaves to `control` and `agent` every decision that uses a number; leaves to the binary asking [`laws::check`] at
//! start and refusing to run on a violation.
//!
//! Invariants: integers only. What the *server* waits for is rounded up and widened by the drift, because it must not
//! be early; what the *node* may use is what its profile says, by its own clock, because the server has paid for the
//! drift already. No number of this subject stands anywhere else.
//!
//! The failure it is for: two parts with two opinions about one time-out (a failover at 90 s in front of a heartbeat
//! cycle of 84 s, case P74), and an operator who tunes one number without knowing which others lean on it.
//!
//! ```text
//!  last beat     Suspect      Dead: close             grant ends        guard done: fenced
//!      |------------|-----------|- - - - - - - - - - - - -|------------------|----> pods move
//!      |<-------------------- grant · (1+drift) --------->|<- kill · (1+drift) ->|
//! ```

pub mod laws;
pub mod profile;

use std::fmt;

use crate::time::Duration;

pub use laws::{LAWS, Law, Violation, check};
pub use profile::{PROFILES, Profile};

/// Parts per million in one.
const MILLION: u64 = 1_000_000;

/// Whether the layer that fences and moves by itself is there at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Automatic {
    /// Incidents, evidence, fencing, tombstones.
    On,
    /// Upstream's behaviour and nothing else.
    Off,
}

/// What the life of a node is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detection {
    /// Beats, twice a second, in memory.
    Beats,
    /// Leases and status in the store, as upstream.
    Leases,
}

/// The value of a field, with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A span of time.
    Span(Duration),
    /// A number of things.
    Count(u64),
    /// Percent.
    Percent(u64),
    /// Parts per million.
    Ppm(u64),
    /// On or off.
    Automatic(Automatic),
    /// Beats or leases.
    Detection(Detection),
}

/// What [`Timing::explain`] says about one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explained {
    /// Name, as in configuration.
    pub name: &'static str,
    /// Its value now.
    pub value: Value,
    /// What it governs.
    pub governs: &'static str,
    /// Where the number comes from.
    pub source: &'static str,
}

/// Why a value was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetError {
    /// There is no field of that name.
    Unknown(String),
    /// The text is no value of that field; the example is.
    Unreadable {
        /// The field.
        name: String,
        /// What was given.
        text: String,
        /// What it may look like.
        example: &'static str,
    },
}

/// Declares the fields once: a field that is not explained, or cannot be set, cannot be. A macro, because the words
/// of a field are its documentation and its explanation, and no function can read documentation.
macro_rules! timing {
    ($($(#[doc = $doc:literal])+ $field:ident : $type:ty as $unit:ident, $source:literal;)+) => {
        /// All times and limits of node death. Lawful if [`laws::check`] finds nothing.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Timing {
            $($(#[doc = $doc])+ pub $field: $type,)+
        }

        impl Timing {
            /// Every field: name, value, what it governs, where the number comes from.
            pub fn explain(&self) -> Vec<Explained> {
                vec![$(Explained {
                    name: stringify!($field),
                    value: Value::$unit(self.$field),
                    governs: concat!($($doc),+).trim_ascii(),
                    source: $source,
                },)+]
            }

            /// Sets the field of that name from its text: `4400ms`, `5s`, `5m`, `1h`; `10000ppm`; `55%`; `3`; `on`;
            /// `beats`. The laws are not asked: several values may have to change together.
            ///
            /// # Errors
            /// There is no such field, or the text is no value of it.
            pub fn set(&mut self, name: &str, text: &str) -> Result<(), SetError> {
                match name {
                    $(stringify!($field) => {
                        if let Some(Value::$unit(value)) = Value::$unit(self.$field).read_same(text) {
                            self.$field = value;
                            return Ok(());
                        }
                        let example = Value::$unit(self.$field).example();
                        Err(SetError::Unreadable { name: name.to_owned(), text: text.to_owned(), example })
                    })+
                    _ => Err(SetError::Unknown(name.to_owned())),
                }
            }
        }
    };
}

timing! {
    /// Whether fencing and failover happen without a human.
    automatic: Automatic as Automatic, "design, section on the death of a node";
    /// What the life of a node is judged by.
    detection: Detection as Detection, "design, section on the death of a node";

    /// Period of beats (B). Twice as long halves the traffic and costs two periods of every blip that is survived.
    beat: Duration as Span, "fencing protocol: B";
    /// A node without an accepted beat for this long gets no new traffic; nothing else happens.
    suspect: Duration as Span, "fencing protocol: Suspect; promise F1";
    /// A node without an accepted beat for this long is tainted, gets its conditions, and is closed at the council.
    dead: Duration as Span, "fencing protocol: Dead";
    /// How long exclusive work may run after the beat that was answered (G), by the node's clock.
    grant: Duration as Span, "fencing protocol: G";
    /// How long a member's "none here" holds a node (A), counted from its question.
    council_answer: Duration as Span, "fencing protocol: A";
    /// Time from the end of the grant until exclusive work has stopped (K), unless a node declares more.
    kill_bound: Duration as Span, "fencing protocol: K";
    /// A member that heard a leader within this time says nothing to a node that asks (W). Courtesy, not safety.
    contact_window: Duration as Span, "fencing protocol: W";
    /// Period of questions to the council while a grant runs low (q).
    asking: Duration as Span, "fencing protocol: q";
    /// A new leader judges no silence for this long (P).
    patience: Duration as Span, "fencing protocol: P";
    /// The same, if the leader's machine booted just now: after a power cut of the site, others boot slower.
    patience_after_boot: Duration as Span, "fencing protocol: P after a boot; promise F3";
    /// A machine that booted less than this ago booted just now.
    fresh_boot: Duration as Span, "fencing protocol: P after a boot";
    /// An announced reboot has this long before lease-expiry counts.
    reboot_patience: Duration as Span, "design: announced reboots";
    /// Bound on how much faster or slower than true any clock runs (ρ). Clocks beyond it are outside every promise.
    drift_ppm: u64 as Ppm, "fencing protocol: ρ";
    /// One-way network delay that the liveness laws allow for (d). No safety rests on it.
    delay: Duration as Span, "fencing protocol: d";
    /// Time from a deadline to the durable write that acts on it (τ).
    tick: Duration as Span, "fencing protocol: τ";
    /// One read of the leader key answers all beats of this long.
    leader_read: Duration as Span, "fencing protocol: one read per batch, C11";
    /// Longest wait of a node between two tries to reach a server that came back.
    redial: Duration as Span, "fencing protocol: redial period in P";
    /// Time from a member's first contact with a returned server to the last node's first grant (R).
    return_spread: Duration as Span, "fencing protocol: R, 5,000 handshakes";
    /// Time from Suspect until no node sends traffic to the pods of the silent one.
    withdraw: Duration as Span, "promise F1: endpoint write, watch, routes";
    /// Nodes that a council has at most.
    council_size_max: u64 as Count, "fencing protocol: sizes";
    /// Longest cut of the network that must stop nothing (D).
    blip: Duration as Span, "design: a blip that kills nothing";

    /// Longest time until the guard runs after its timer fired.
    guard_wake: Duration as Span, "fencing protocol: parts of K";
    /// Longest time to kill the control groups of exclusive pods.
    cgroup_kill: Duration as Span, "fencing protocol: parts of K";
    /// Longest time to pull their mounts.
    unmount: Duration as Span, "fencing protocol: parts of K";
    /// Time-out that the watchdog device is set to, last fed before the grant ends.
    watchdog: Duration as Span, "fencing protocol: K with a watchdog";
    /// Time from the watchdog's time-out until the machine is reset.
    watchdog_reset: Duration as Span, "fencing protocol: K with a watchdog";

    /// Power cut until no traffic goes to the node's pods, at most.
    traffic_budget: Duration as Span, "promise F1";
    /// Power cut until fenced, at most: the part of F2 that is detection and proof.
    fenced_budget: Duration as Span, "promise F2";

    /// Open incidents that are always allowed.
    incidents_floor: u64 as Count, "design: brakes";
    /// Above the floor: one open incident per so many nodes.
    nodes_per_incident: u64 as Count, "design: brakes, a third of the nodes";
    /// Beats that end within this time of each other ended together.
    storm_window: Duration as Span, "design: brakes, storm";
    /// If more than this share of the beats ended together, the server is the odd one out and opens no incident.
    storm_share_percent: u64 as Percent, "design: brakes, storm";
    /// A node that came back this often within the flap window flaps.
    flap_count: u64 as Count, "case P74";
    /// The time in which returns are counted.
    flap_window: Duration as Span, "case P74";
    /// A node that flaps must beat this long before it counts as steady.
    flap_patience: Duration as Span, "case P74";

    /// What a node's Lease says it is good for.
    lease_duration: Duration as Span, "HB-02: nodeLeaseDurationSeconds";
    /// Period of renewals: a quarter of the lease.
    lease_renew: Duration as Span, "HB-02";
    /// Longest time that a living node may need to notice a dead connection and renew over another.
    lease_retry_cycle: Duration as Span, "upstream PR 126287: 30 s read idle + 15 s ping; case P74";
    /// How often the status of a node is computed.
    status_frequency: Duration as Span, "HB-10: nodeStatusUpdateFrequency";
    /// How often a status that did not change is sent.
    status_report: Duration as Span, "HB-10: nodeStatusReportFrequency";
    /// A node whose lease and status did not change for this long is Unknown.
    node_monitor_grace: Duration as Span, "node-monitor-grace-period, 50 s since 1.32";
    /// Period of the pass that looks at leases.
    node_monitor_period: Duration as Span, "node-monitor-period";
    /// The grace of a node that never had a Ready condition.
    node_startup_grace: Duration as Span, "node-startup-grace-period, NLC-01";
    /// Time per tainted node of a normal zone.
    eviction_interval: Duration as Span, "node-eviction-rate 0.1/s";
    /// Time per tainted node of a large zone in partial disruption.
    eviction_interval_secondary: Duration as Span, "secondary-node-eviction-rate 0.01/s";
    /// A zone with more nodes than this is large.
    large_zone: u64 as Count, "large-cluster-size-threshold";
    /// A zone with this share of nodes not ready is in partial disruption.
    unhealthy_threshold_percent: u64 as Percent, "unhealthy-zone-threshold 0.55";
    /// Tolerations of not-ready and unreachable that pods get when they have none.
    default_toleration: Duration as Span, "DefaultTolerationSeconds, 300 s";
    /// Period of pod garbage collection.
    pod_gc_period: Duration as Span, "gcCheckPeriod, 20 s";
    /// How long a node must be missing before its pods are orphans.
    gc_quarantine: Duration as Span, "quarantineTime, 40 s";
    /// Ended pods that are kept.
    terminated_pod_gc_threshold: u64 as Count, "terminated-pod-gc-threshold";
    /// Period of the attach/detach pass.
    attach_detach_period: Duration as Span, "reconciler loop period, 100 ms";
    /// How long a detach waits for an unmount that nobody reports.
    max_wait_for_unmount: Duration as Span, "AD-30: maxWaitForUnmountDuration, 6 min";
}

// === impl Timing ===

impl Timing {
    /// What `span` of a slow clock may really take, rounded up: what the other side must wait.
    pub const fn with_drift_up(&self, span: Duration) -> Duration {
        span.ratio_up(MILLION + self.drift_ppm, MILLION)
    }

    /// What `span` of a fast clock is really worth, rounded down: what the owner can count on.
    pub const fn with_drift_down(&self, span: Duration) -> Duration {
        span.ratio_down(MILLION.saturating_sub(self.drift_ppm), MILLION)
    }

    /// G(1+ρ): the server trusts that a grant has ended this long after it accepted the beat.
    pub const fn grant_by_server(&self) -> Duration {
        self.with_drift_up(self.grant)
    }

    /// A(1+ρ): the server trusts that a member's answer has ended this long after the member closed the node.
    pub const fn answer_by_server(&self) -> Duration {
        self.with_drift_up(self.council_answer)
    }

    /// K(1+ρ) for a node that declared `kill_bound`.
    pub const fn kill_by_server(&self, kill_bound: Duration) -> Duration {
        self.with_drift_up(kill_bound)
    }

    /// A(1+ρ)/(1−ρ), rounded up: a member whose last "none here" is longer ago than this, by its own clock, closes
    /// clean. Never with a drift of 100 %.
    pub const fn clean_limit(&self) -> Duration {
        let slow = MILLION.saturating_sub(self.drift_ppm);
        if slow == 0 {
            return Duration::MAX;
        }
        self.council_answer.ratio_up(MILLION + self.drift_ppm, slow)
    }

    /// What a node declares as its kill bound, given the time-out of the watchdog that it feeds.
    pub const fn kill_bound_with(&self, watchdog: Option<Duration>) -> Duration {
        match watchdog {
            Some(timeout) if timeout.plus(self.watchdog_reset).ms() > self.kill_bound.ms() => {
                timeout.plus(self.watchdog_reset)
            }
            Some(_) | None => self.kill_bound,
        }
    }

    /// d + G(1+ρ) + K(1+ρ) + τ: power cut until fenced, at worst, in a cluster that was healthy. A node that declares
    /// a longer kill bound takes longer by that, and a leader that batches its reads by `leader_read`.
    pub const fn silent_death_to_fenced_worst(&self) -> Duration {
        self.delay.plus(self.grant_by_server()).plus(self.kill_by_server(self.kill_bound)).plus(self.tick)
    }

    /// d + Suspect(1+ρ) + τ + withdrawal: power cut until no traffic is sent, at worst.
    pub const fn silent_death_to_no_traffic_worst(&self) -> Duration {
        self.delay.plus(self.with_drift_up(self.suspect)).plus(self.tick).plus(self.withdraw)
    }

    /// G(1−ρ) − 2B − 4d: the longest cut of the network that stops nothing.
    pub const fn blip_survived(&self) -> Duration {
        self.with_drift_down(self.grant).minus(self.beat.times(2)).minus(self.delay.times(4))
    }

    /// How long a new leader on a machine that has been up for `uptime` judges no silence.
    pub fn patience_of(&self, uptime: Duration) -> Duration {
        if uptime < self.fresh_boot { self.patience_after_boot } else { self.patience }
    }

    /// How many incidents may be open in a cluster of `nodes`.
    pub fn incidents_max(&self, nodes: u64) -> u64 {
        self.incidents_floor.max(nodes / self.nodes_per_incident.max(1))
    }

    /// A beat that did not come for this long is late: two periods, and the way there.
    pub const fn late(&self) -> Duration {
        self.beat.times(2).plus(self.delay.times(2))
    }

    /// True if it is a storm that `ended` of `beating` nodes fell silent together.
    pub fn is_storm(&self, ended: u64, beating: u64) -> bool {
        ended.saturating_mul(100) > beating.saturating_mul(self.storm_share_percent)
    }
}

// === impl Value ===

impl Value {
    /// The unit in which [`Value`] prints its number; empty for words and counts.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Span(_) => "ms",
            Self::Percent(_) => "%",
            Self::Ppm(_) => "ppm",
            Self::Count(_) | Self::Automatic(_) | Self::Detection(_) => "",
        }
    }

    const fn example(self) -> &'static str {
        match self {
            Self::Span(_) => "4400ms, 5s, 5m or 1h",
            Self::Percent(_) => "55%",
            Self::Ppm(_) => "10000ppm",
            Self::Count(_) => "5",
            Self::Automatic(_) => "on or off",
            Self::Detection(_) => "beats or leases",
        }
    }

    /// Reads a value of the same kind as this one.
    fn read_same(self, text: &str) -> Option<Self> {
        match self {
            Self::Span(_) => read_span(text).map(Self::Span),
            Self::Percent(_) => read_number(text.strip_suffix('%')?).map(Self::Percent),
            Self::Ppm(_) => read_number(text.strip_suffix("ppm")?).map(Self::Ppm),
            Self::Count(_) => read_number(text).map(Self::Count),
            Self::Automatic(_) => {
                [Automatic::On, Automatic::Off].map(Self::Automatic).into_iter().find(|v| v.is(text))
            }
            Self::Detection(_) => {
                [Detection::Beats, Detection::Leases].map(Self::Detection).into_iter().find(|v| v.is(text))
            }
        }
    }

    fn is(self, text: &str) -> bool {
        self.to_string() == text
    }
}

/// Digits only: `+5` and ` 5` are slips, not values.
fn read_number(text: &str) -> Option<u64> {
    if text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// A number and its unit. The unit is not optional: a bare number is milliseconds to one reader, seconds to the next.
fn read_span(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let ms = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    read_number(number)?.checked_mul(ms).map(Duration::from_ms)
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Span(span) => write!(f, "{} ms", span.ms()),
            Self::Percent(n) => write!(f, "{n} %"),
            Self::Ppm(n) => write!(f, "{n} ppm"),
            Self::Count(n) => write!(f, "{n}"),
            Self::Automatic(Automatic::On) => f.write_str("on"),
            Self::Automatic(Automatic::Off) => f.write_str("off"),
            Self::Detection(Detection::Beats) => f.write_str("beats"),
            Self::Detection(Detection::Leases) => f.write_str("leases"),
        }
    }
}

impl fmt::Display for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "there is no timing value {name:?}"),
            Self::Unreadable { name, text, example } => {
                write!(f, "timing value {name} cannot be {text:?}: it must look like {example}")
            }
        }
    }
}

impl std::error::Error for SetError {}

#[cfg(test)]
mod tests;

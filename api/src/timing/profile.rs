//! The named sets of numbers: `default`, `fast`, `kubernetes`.
//!
//! Responsible for: the numbers, and the proof at compile time that each set is lawful. Leaves to
//! [`super::laws`] what lawful means.
//!
//! Invariant: a profile that breaks a law does not compile. Values that a profile does not use (beats under
//! `kubernetes`) have the numbers of `default`, so that switching the layer on is one setting and still lawful.

use std::fmt;

use super::laws::is_lawful;
use super::{Automatic, Detection, Timing};
use crate::time::Duration;

/// A named set of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// What an operator writes.
    pub name: &'static str,
    /// For whom it is, in one sentence.
    pub purpose: &'static str,
    /// The numbers.
    pub timing: Timing,
}

/// Every profile. The first is what a cluster has unless it says otherwise.
pub const PROFILES: &[Profile] = &[
    Profile {
        name: "default",
        purpose: "a dead node is fenced within 7 s, and a network blip of 3 s stops nothing",
        timing: DEFAULT,
    },
    Profile {
        name: "fast",
        purpose: "a dead node is fenced within 4 s, in networks whose blips stay below 1.5 s",
        timing: FAST,
    },
    Profile {
        name: "kubernetes",
        purpose: "upstream's numbers and behaviour exactly: nothing is fenced or moved without a human",
        timing: KUBERNETES,
    },
];

const DEFAULT: Timing = Timing {
    automatic: Automatic::On,
    detection: Detection::Beats,
    beat: ms(500),
    suspect: ms(2_000),
    dead: ms(4_000),
    grant: ms(4_400),
    council_answer: ms(10_000),
    kill_bound: ms(2_200),
    contact_window: ms(2_000),
    asking: ms(250),
    patience: ms(6_000),
    patience_after_boot: ms(120_000),
    fresh_boot: ms(120_000),
    reboot_patience: ms(300_000),
    // 1 %: ten times what the worst oscillator does, and what slewing does not reach on the clocks that are read.
    drift_ppm: 10_000,
    delay: ms(50),
    tick: ms(50),
    leader_read: ms(50),
    redial: ms(1_000),
    return_spread: ms(4_000),
    withdraw: ms(500),
    council_size_max: 5,
    blip: ms(3_000),
    guard_wake: ms(100),
    cgroup_kill: ms(500),
    unmount: ms(500),
    watchdog: ms(2_000),
    watchdog_reset: ms(200),
    traffic_budget: ms(3_000),
    fenced_budget: ms(7_000),
    incidents_floor: 1,
    nodes_per_incident: 3,
    storm_window: ms(1_000),
    storm_share_percent: 50,
    flap_count: 3,
    flap_window: ms(600_000),
    flap_patience: ms(300_000),
    lease_duration: ms(40_000),
    lease_renew: ms(10_000),
    lease_retry_cycle: ms(45_000),
    status_frequency: ms(10_000),
    status_report: ms(300_000),
    node_monitor_grace: ms(50_000),
    node_monitor_period: ms(5_000),
    node_startup_grace: ms(60_000),
    eviction_interval: ms(10_000),
    eviction_interval_secondary: ms(100_000),
    large_zone: 50,
    unhealthy_threshold_percent: 55,
    default_toleration: ms(300_000),
    pod_gc_period: ms(20_000),
    gc_quarantine: ms(40_000),
    terminated_pod_gc_threshold: 12_500,
    attach_detach_period: ms(100),
    max_wait_for_unmount: ms(360_000),
};

const FAST: Timing = Timing {
    beat: ms(250),
    suspect: ms(1_000),
    dead: ms(2_000),
    grant: ms(2_450),
    council_answer: ms(8_000),
    kill_bound: ms(1_200),
    contact_window: ms(1_200),
    asking: ms(150),
    withdraw: ms(300),
    blip: ms(1_500),
    watchdog: ms(1_000),
    traffic_budget: ms(1_500),
    fenced_budget: ms(4_000),
    ..DEFAULT
};

const KUBERNETES: Timing = Timing { automatic: Automatic::Off, detection: Detection::Leases, ..DEFAULT };

const _: () = assert!(is_lawful(&DEFAULT), "profile default breaks a timing law");
const _: () = assert!(is_lawful(&FAST), "profile fast breaks a timing law");
const _: () = assert!(is_lawful(&KUBERNETES), "profile kubernetes breaks a timing law");
const _: () = {
    let mut i = 0;
    while i < PROFILES.len() {
        assert!(is_lawful(&PROFILES[i].timing), "a profile breaks a timing law");
        i += 1;
    }
};

const fn ms(ms: u64) -> Duration {
    Duration::from_ms(ms)
}

/// There is no profile of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownProfile {
    /// The name that was given.
    pub name: String,
}

impl Profile {
    /// The profile of that name.
    ///
    /// # Errors
    /// There is none; the message names those that are.
    pub fn named(name: &str) -> Result<&'static Self, UnknownProfile> {
        PROFILES.iter().find(|p| p.name == name).ok_or_else(|| UnknownProfile { name: name.to_owned() })
    }
}

impl Default for Timing {
    fn default() -> Self {
        DEFAULT
    }
}

impl fmt::Display for UnknownProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<_> = PROFILES.iter().map(|p| p.name).collect();
        write!(f, "there is no timing profile {:?}; there are {}", self.name, known.join(", "))
    }
}

impl std::error::Error for UnknownProfile {}

use api::{Duration, Time};

use super::container::{BACKOFF_MAX, current_delay, next_delay};
use super::{Life, Why};
use crate::ledger::{Exit, Seen};

/// The table of the header: rows from, columns to, in the order of `Life::KINDS`.
const TABLE: [[bool; 6]; 6] = [
    [false, true, true, true, true, true],
    [false, false, true, true, true, false],
    [false, false, false, true, true, false],
    [false, false, false, true, true, false],
    [false, false, false, false, false, true],
    [false, false, false, false, false, false],
];

#[test]
fn every_transition_is_as_the_table_says() {
    for (from, row) in Life::KINDS.iter().zip(TABLE) {
        for (to, allowed) in Life::KINDS.iter().zip(row) {
            assert_eq!(from.may_become(to), allowed, "{from:?} -> {to:?}");
        }
    }
}

#[test]
fn a_running_grace_only_gets_shorter() {
    let stopping = |ms, why| Life::Stopping { until: Time::from_ms(ms), why };
    assert!(stopping(20, Why::Deleted).may_become(&stopping(10, Why::Removed)));
    assert!(!stopping(20, Why::Removed).may_become(&stopping(21, Why::Deleted)));
}

#[test]
fn backoff_is_upstreams() {
    let mut delays = std::collections::BTreeMap::new();
    let exit = Exit { code: 1, started_at: Time::ZERO, finished_at: Time::from_ms(5), seen: Seen::Exit };
    let mut waits = Vec::new();
    for _ in 0..8 {
        waits.push(current_delay(&delays, "app", exit).secs());
        delays.insert("app".to_owned(), next_delay(&delays, "app", Some(exit)).unwrap());
    }
    assert_eq!(waits, [0, 10, 20, 40, 80, 160, 300, 300]);
    assert_eq!(BACKOFF_MAX, Duration::from_secs(300));
    let lived = Exit { finished_at: Time::from_ms(600_000), ..exit };
    assert_eq!(current_delay(&delays, "app", lived), Duration::ZERO, "ten minutes of life are forgiven");
    let rebooted = Exit { seen: Seen::Reboot, ..exit };
    assert_eq!(current_delay(&delays, "app", rebooted), Duration::ZERO, "a reboot is no crash");
}

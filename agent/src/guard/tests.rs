use api::view::Seat;
use api::{BootId, Epoch, Rev};
use proptest::prelude::*;

use super::*;

const BOOT: &str = "b1";

fn timing() -> Timing {
    Timing::default()
}

fn at(ms: u64) -> Stamp {
    Stamp(Time::from_ms(ms))
}

fn who(uid: &str, boot: &str) -> Incarnation {
    Incarnation { uid: Uid::from(uid), boot: BootId::from(boot) }
}

fn council(epoch: u64, members: &[&str]) -> Membership {
    let seats = members.iter().map(|m| Seat { node_name: (*m).into(), node_uid: (*m).into() });
    Membership { epoch: CouncilEpoch(epoch), seats: seats.collect(), since: Rev(0) }
}

fn grant_of(sent: u64, pods: &[&str], council: Option<Membership>) -> Grant {
    Grant {
        who: who("n1", BOOT),
        sent: at(sent),
        epoch: Epoch(1),
        pods: pods.iter().map(|p| Uid::from(*p)).collect(),
        council,
        recovering: false,
    }
}

fn grant(sent: u64) -> Event {
    Event::Answer(Answer::Grant(grant_of(sent, &["db-0"], Some(council(1, &["n1", "m1", "m2"])))))
}

fn denied(sent: u64) -> Event {
    Event::Answer(Answer::Denied { who: who("n1", BOOT), sent: at(sent), epoch: Epoch(1) })
}

fn none(member: &str, sent: u64) -> Event {
    Event::NoneHere(NoneHere { member: member.into(), who: who("n1", BOOT), sent: at(sent) })
}

fn start_with(now: u64, kept: Option<Record>, flaw: Option<Flaw>) -> (Guard, Vec<Op>) {
    let mut ops = Vec::new();
    let start =
        Start { who: who("n1", BOOT), kept, timing: timing(), kill_bound: Duration::from_ms(2200), flaw };
    let mut guard = Guard::start(at(now), start, &mut ops);
    let first = ops.clone();
    guard.step(at(now), Event::KillDone(Kill::Confirmed), &mut ops);
    (guard, first)
}

/// A guard that was granted at 1,000 and hears nothing more: it lives until 5,400.
fn granted(flaw: Option<Flaw>) -> Guard {
    let (mut guard, _) = start_with(0, None, flaw);
    step(&mut guard, 1050, grant(1000));
    guard
}

fn step(guard: &mut Guard, now: u64, event: Event) -> Vec<Op> {
    let mut ops = Vec::new();
    guard.step(at(now), event, &mut ops);
    ops
}

fn record_of(ops: &[Op]) -> Option<Record> {
    ops.iter().rev().find_map(|op| match op {
        Op::Keep(record) => Some(record.clone()),
        Op::Kill | Op::Reboot => None,
    })
}

#[test]
fn a_fresh_boot_is_broken_and_begins_by_killing() {
    let (guard, ops) = start_with(0, None, None);
    assert!(ops.contains(&Op::Kill));
    assert!(!guard.is_live(at(1)));
    assert!(!guard.permits(&"db-0".into(), at(1)));
}

// Invariant C7
#[test]
fn c07_counts_from_sent() {
    let guard = granted(None);
    assert_eq!(guard.until(), at(5400));
    assert!(guard.is_live(at(5399)) && !guard.is_live(at(5400)));
    // A grant that comes after its own end gives nothing.
    let (mut late, _) = start_with(0, None, None);
    step(&mut late, 5400, grant(1000));
    assert!(!late.is_live(at(5400)));
}

// Invariant C7
#[test]
fn c07_flaw_counts_from_receipt() {
    let (mut guard, _) = start_with(0, None, Some(Flaw::FromReceipt));
    step(&mut guard, 5400, grant(1000));
    assert_eq!(guard.until(), at(9800));
}

#[test]
fn expiry_kills_and_goes_on_killing_at_every_tick() {
    let mut guard = granted(None);
    assert!(guard.next_wake() <= at(5400));
    let ops = step(&mut guard, 5400, Event::Wake);
    assert!(ops.contains(&Op::Kill));
    step(&mut guard, 5500, Event::KillDone(Kill::Confirmed));
    assert!(step(&mut guard, 6000, Event::Wake).contains(&Op::Kill), "a start that raced is caught");
}

#[test]
fn a_kill_that_is_not_confirmed_ends_in_a_reboot() {
    let mut guard = granted(None);
    step(&mut guard, 5400, Event::Wake);
    step(&mut guard, 5450, Event::KillDone(Kill::Remains));
    assert!(!step(&mut guard, 7000, Event::Wake).contains(&Op::Reboot));
    assert!(guard.next_wake() <= at(7100));
    assert!(step(&mut guard, 7100, Event::Wake).contains(&Op::Reboot), "2.2 s less a beat");
}

// Invariant O1
#[test]
fn a_majority_of_none_heres_holds_and_starts_nothing() {
    let mut guard = granted(None);
    step(&mut guard, 3000, none("m1", 2900));
    assert_eq!(guard.until(), at(5400), "one of three is no majority");
    step(&mut guard, 3100, none("n1", 3050));
    assert_eq!(guard.until(), at(12_900), "the second largest vote; the own vote counts like any other");
    assert!(guard.is_live(at(6000)));
    assert!(guard.permits(&"db-0".into(), at(5399)));
    assert!(!guard.permits(&"db-0".into(), at(5400)), "a hold starts nothing");
}

#[test]
fn votes_of_strangers_and_of_earlier_councils_do_not_count() {
    let mut guard = granted(None);
    step(&mut guard, 2000, none("x1", 1900));
    step(&mut guard, 2000, none("x2", 1900));
    assert_eq!(guard.until(), at(5400));
    step(&mut guard, 2100, none("m1", 2000));
    let newer = grant_of(2100, &["db-0"], Some(council(2, &["n1", "m3", "m4"])));
    step(&mut guard, 2150, Event::Answer(Answer::Grant(newer)));
    step(&mut guard, 2200, none("n1", 2200));
    assert_eq!(guard.until(), at(6500), "m1 has no seat any more");
    // The older offer comes late: the newest stays.
    step(&mut guard, 2300, grant(1500));
    assert_eq!(guard.status(at(2300)).council.map(|c| c.epoch), Some(CouncilEpoch(2)));
}

// Invariant C19
#[test]
fn c19_test_before_votes() {
    let mut guard = granted(None);
    step(&mut guard, 3100, none("n1", 3050));
    let ops = step(&mut guard, 9000, none("m1", 2900));
    assert!(ops.contains(&Op::Kill), "it expired in a freeze, whatever comes first after it");
    assert!(!guard.is_live(at(9000)));
}

// Invariant C19
#[test]
fn c19_flaw_votes_first() {
    let mut guard = granted(Some(Flaw::VotesFirst));
    step(&mut guard, 3100, none("n1", 3050));
    step(&mut guard, 9000, none("m1", 2900));
    assert!(guard.is_live(at(9000)));
}

#[test]
fn only_a_grant_revives() {
    for (flaw, revived) in [(None, false), (Some(Flaw::HoldRevives), true)] {
        let mut guard = granted(flaw);
        step(&mut guard, 5400, Event::Wake);
        step(&mut guard, 5500, none("m1", 5450));
        step(&mut guard, 5500, none("m2", 5450));
        assert_eq!(guard.is_live(at(5500)), revived, "{flaw:?}");
        assert_eq!(guard.permits(&"db-0".into(), at(5500)), revived, "{flaw:?}");
    }
    let mut guard = granted(None);
    step(&mut guard, 5400, Event::Wake);
    step(&mut guard, 5600, grant(5500));
    assert!(!guard.is_live(at(5600)), "a kill that was ordered ends before anything is permitted");
    step(&mut guard, 5700, Event::KillDone(Kill::Confirmed));
    step(&mut guard, 6000, grant(5900));
    assert!(guard.is_live(at(6000)) && guard.permits(&"db-0".into(), at(6000)));
}

#[test]
fn denied_breaks_now_and_outlives_grants_that_are_older() {
    let mut guard = granted(None);
    let ops = step(&mut guard, 2000, denied(1900));
    assert!(ops.contains(&Op::Kill) && !guard.is_live(at(2000)));
    step(&mut guard, 2100, grant(1900));
    assert!(!guard.is_live(at(2100)), "what was asked before the denial is no answer to it");
    step(&mut guard, 2200, Event::KillDone(Kill::Confirmed));
    step(&mut guard, 2600, grant(2500));
    assert!(guard.is_live(at(2600)));
}

// Invariant C17
#[test]
fn c17_starts_only_what_the_grant_lists() {
    let mut guard = granted(None);
    assert!(!guard.permits(&"db-1".into(), at(1100)));
    step(&mut guard, 1600, Event::Answer(Answer::Grant(grant_of(1500, &["db-1"], None))));
    assert!(guard.permits(&"db-1".into(), at(1600)) && !guard.permits(&"db-0".into(), at(1600)));
    step(&mut guard, 1700, grant(1200));
    assert!(guard.permits(&"db-1".into(), at(1700)), "an older list does not come back");
}

#[test]
fn other_boots_and_uids_are_ignored() {
    let foreign = |uid: &str, boot: &str| {
        let mut grant = grant_of(1000, &["db-0"], Some(council(1, &["n1", "m1", "m2"])));
        grant.who = who(uid, boot);
        Event::Answer(Answer::Grant(grant))
    };
    let (mut guard, _) = start_with(0, None, None);
    step(&mut guard, 1050, foreign("n1", "b0"));
    step(&mut guard, 1050, foreign("n2", BOOT));
    assert!(!guard.is_live(at(1050)));
    let (mut flawed, _) = start_with(0, None, Some(Flaw::NoBoot));
    step(&mut flawed, 1050, foreign("n1", "b0"));
    assert!(flawed.is_live(at(1050)));
}

#[test]
fn a_stamp_of_the_future_is_of_another_life() {
    let (mut guard, _) = start_with(0, None, None);
    step(&mut guard, 1000, grant(9000));
    assert!(!guard.is_live(at(1000)));
}

#[test]
fn without_a_council_of_three_nothing_expires() {
    let (mut guard, _) = start_with(0, None, None);
    step(&mut guard, 1050, Event::Answer(Answer::Grant(grant_of(1000, &["db-0"], None))));
    assert_eq!(guard.armed(), Armed::No);
    assert!(guard.permits(&"db-0".into(), at(1_000_000)));
    let two = grant_of(1500, &["db-0"], Some(council(1, &["n1", "m1"])));
    step(&mut guard, 1550, Event::Answer(Answer::Grant(two)));
    assert_eq!((guard.armed(), guard.until()), (Armed::No, NEVER));
    // From the grant that offers three on, it expires.
    let three = grant_of(2000, &["db-0"], Some(council(2, &["n1", "m1", "m2"])));
    step(&mut guard, 2050, Event::Answer(Answer::Grant(three)));
    assert_eq!((guard.armed(), guard.until()), (Armed::Yes, at(6400)));
    assert!(step(&mut guard, 6400, Event::Wake).contains(&Op::Kill));
    // A shrink back switches it off again; the server knows, because the beat says so.
    let (mut shrunk, _) = start_with(0, None, None);
    step(&mut shrunk, 1050, grant(1000));
    let offer = grant_of(1500, &["db-0"], Some(council(2, &["n1", "m1"])));
    step(&mut shrunk, 1550, Event::Answer(Answer::Grant(offer)));
    assert_eq!((shrunk.armed(), shrunk.until()), (Armed::No, NEVER));
}

#[test]
fn a_restarted_guard_resumes_a_valid_permission_of_its_boot_only() {
    let (mut guard, _) = start_with(0, None, None);
    let record = record_of(&step(&mut guard, 1050, grant(1000))).unwrap();
    let (resumed, ops) = start_with(3000, Some(record.clone()), None);
    assert!(resumed.is_live(at(3000)) && !ops.contains(&Op::Kill));
    assert!(resumed.permits(&"db-0".into(), at(3000)));
    let (late, ops) = start_with(5400, Some(record.clone()), None);
    assert!(!late.is_live(at(5400)) && ops.contains(&Op::Kill));
    let foreign = Record { who: who("n1", "b0"), ..record };
    let (other, ops) = start_with(3000, Some(foreign), None);
    assert!(!other.is_live(at(3000)) && ops.contains(&Op::Kill));
}

#[test]
fn a_broken_guard_that_restarts_stays_broken() {
    let mut guard = granted(None);
    let record = record_of(&step(&mut guard, 2000, denied(1900))).unwrap();
    let (again, ops) = start_with(2100, Some(record), None);
    assert!(!again.is_live(at(2100)) && ops.contains(&Op::Kill));
}

#[test]
fn another_identity_breaks() {
    let mut guard = granted(None);
    let ops = step(&mut guard, 2000, Event::Identified("n1-new".into()));
    assert!(ops.contains(&Op::Kill) && !guard.is_live(at(2000)));
    step(&mut guard, 2100, grant(2050));
    assert!(!guard.is_live(at(2100)), "the old identity's grants are not the new one's");
    assert_eq!(guard.armed(), Armed::No);
}

#[derive(Clone, Debug)]
enum Act {
    Grant { ago: u64 },
    Vote { member: usize, ago: u64 },
    Deny { ago: u64 },
    Wake,
}

fn acts() -> impl Strategy<Value = Vec<(u64, Act)>> {
    let act = prop_oneof![
        4 => (0u64..6000).prop_map(|ago| Act::Grant { ago }),
        4 => (0usize..3, 0u64..12_000).prop_map(|(member, ago)| Act::Vote { member, ago }),
        1 => (0u64..2000).prop_map(|ago| Act::Deny { ago }),
        3 => Just(Act::Wake),
    ];
    proptest::collection::vec((0u64..3000, act), 1..60)
}

proptest! {
    /// What the argument in `fence` rests on: nothing prolongs beyond newest granted stamp + G and the majority vote,
    /// and a guard that is not Live becomes Live by a grant alone.
    #[test]
    fn until_is_never_beyond_grants_and_votes(acts in acts()) {
        let (mut guard, _) = start_with(0, None, None);
        let members = ["n1", "m1", "m2"];
        let (mut now, mut newest_grant) = (20_000, 0);
        let mut votes = [0u64; 3];
        for (pause, act) in acts {
            now += pause;
            let live_before = guard.is_live(at(now));
            let mut by_grant = false;
            match act {
                Act::Grant { ago } => {
                    newest_grant = newest_grant.max(now - ago + 4400);
                    by_grant = true;
                    step(&mut guard, now, grant(now - ago));
                }
                Act::Vote { member, ago } => {
                    votes[member] = votes[member].max(now - ago + 10_000);
                    step(&mut guard, now, none(members[member], now - ago));
                }
                Act::Deny { ago } => {
                    step(&mut guard, now, denied(now - ago));
                }
                Act::Wake => {
                    step(&mut guard, now, Event::Wake);
                }
            }
            let mut sorted = votes;
            sorted.sort_unstable();
            let bound = newest_grant.max(sorted[1]);
            if guard.is_live(at(now)) {
                prop_assert!(guard.until() <= at(bound));
                prop_assert!(live_before || by_grant, "revived without a grant");
            }
        }
    }
}

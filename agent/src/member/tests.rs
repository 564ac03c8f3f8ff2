use api::message::{Incarnation, Stamp};

use api::{BootId, CloseSeq, Epoch};

use super::*;

fn at(ms: u64) -> Time {
    Time::from_ms(ms)
}

fn me() -> Uid {
    Uid::from("m1")
}

fn ask(boot: &str) -> Ask {
    Ask { who: Incarnation { uid: Uid::from("v"), boot: BootId::from(boot) }, sent: Stamp(at(77)) }
}

fn gate(wish: GateWish, epoch: u64, seq: u64) -> Gate {
    Gate { wish, uid: Uid::from("v"), epoch: Epoch(epoch), seq: CloseSeq(seq) }
}

fn member(flaw: Option<Flaw>) -> Member {
    Member::start(at(0), BTreeMap::new(), Timing::default(), flaw)
}

/// Closes, as a body does it: kept, then acknowledged.
fn close(member: &mut Member, now: u64, seq: u64) -> Option<Closed> {
    match member.gate(&gate(GateWish::Close, 1, seq)) {
        Verdict::Keep(entry) => member.acknowledge(at(now), &me(), &"v".into(), entry),
        Verdict::Acknowledge => {
            let entry = member.gate_of(&"v".into())?;
            member.acknowledge(at(now), &me(), &"v".into(), entry)
        }
        Verdict::Ignore => None,
    }
}

#[test]
fn says_none_here_only_without_contact_and_echoes_the_question() {
    let mut member = member(None);
    assert_eq!(member.answer(at(2000), &me(), &ask("b1")), None, "just started: it cannot know");
    let said = member.answer(at(2001), &me(), &ask("b1")).unwrap();
    assert_eq!((said.member, said.who, said.sent), (me(), ask("b1").who, ask("b1").sent));
    member.heard(at(3000), false);
    assert_eq!(member.answer(at(5000), &me(), &ask("b1")), None);
    assert!(member.answer(at(5001), &me(), &ask("b1")).is_some());
}

#[test]
fn a_recovering_server_is_no_contact() {
    let mut member = member(None);
    member.heard(at(3000), true);
    assert!(member.answer(at(3001), &me(), &ask("b1")).is_some());
}

#[test]
fn a_closed_node_is_refused_in_every_boot_until_it_is_opened() {
    let mut member = member(None);
    close(&mut member, 100, 5);
    assert_eq!(member.answer(at(9000), &me(), &ask("b1")), None);
    assert_eq!(member.answer(at(9000), &me(), &ask("b2")), None);
    assert_eq!(member.gate(&gate(GateWish::Open, 1, 5)), Verdict::Ignore, "an open must be newer");
    assert!(matches!(member.gate(&gate(GateWish::Open, 1, 6)), Verdict::Keep(_)));
    assert!(member.answer(at(9000), &me(), &ask("b1")).is_some());
}

// Invariant C9
#[test]
fn c09_a_close_is_refused_from_before_it_is_on_disk() {
    let mut member = member(None);
    let Verdict::Keep(_) = member.gate(&gate(GateWish::Close, 1, 1)) else { panic!("must be kept first") };
    assert_eq!(member.answer(at(9000), &me(), &ask("b1")), None);
}

// Invariant C9
#[test]
fn c09_a_close_survives_a_restart() {
    for (flaw, refused) in [(None, true), (Some(Flaw::ForgetClose), false)] {
        let mut before = member(flaw);
        let mut disk = BTreeMap::new();
        if let Verdict::Keep(entry) = before.gate(&gate(GateWish::Close, 1, 1)) {
            disk.insert(Uid::from("v"), entry);
        }
        let mut after = Member::start(at(50_000), disk, Timing::default(), flaw);
        assert_eq!(after.answer(at(60_000), &me(), &ask("b1")).is_none(), refused, "{flaw:?}");
    }
}

// Invariant C6
#[test]
fn c06_dirty_until_the_last_none_here_is_dead() {
    let limit = Timing::default().clean_limit().ms();
    let mut member = member(None);
    member.answer(at(20_000), &me(), &ask("b1"));
    assert_eq!(close(&mut member, 20_100, 1).map(|c| c.clean), Some(false));
    assert_eq!(close(&mut member, 20_000 + limit, 1).map(|c| c.clean), Some(false));
    assert_eq!(close(&mut member, 20_001 + limit, 1).map(|c| c.clean), Some(true));
}

// Invariant C6
#[test]
fn c06_flaw_dirty_is_clean() {
    let mut member = member(Some(Flaw::DirtyIsClean));
    member.answer(at(20_000), &me(), &ask("b1"));
    assert_eq!(close(&mut member, 20_100, 1).map(|c| c.clean), Some(true));
}

// Invariant C8
#[test]
fn c08_a_restart_counts_as_a_none_here_to_all() {
    for (flaw, clean) in [(None, false), (Some(Flaw::ForgetSaid), true)] {
        let mut member = Member::start(at(30_000), BTreeMap::new(), Timing::default(), flaw);
        assert_eq!(close(&mut member, 31_000, 1).map(|c| c.clean), Some(clean), "{flaw:?}");
    }
}

// Invariant C12
#[test]
fn c12_an_acknowledgement_names_its_close_and_dies_with_a_newer_wish() {
    let mut member = member(None);
    let Verdict::Keep(first) = member.gate(&gate(GateWish::Close, 1, 1)) else { panic!("kept") };
    member.gate(&gate(GateWish::Open, 1, 2));
    assert_eq!(member.acknowledge(at(100), &me(), &"v".into(), first), None, "it is open by now");
    assert_eq!(close(&mut member, 200, 3).map(|c| (c.epoch, c.seq)), Some((Epoch(1), CloseSeq(3))));
    assert_eq!(member.gate(&gate(GateWish::Close, 1, 2)), Verdict::Ignore, "older than what is stored");
    assert_eq!(member.gate(&gate(GateWish::Close, 1, 3)), Verdict::Acknowledge, "asked again");
    assert!(matches!(member.gate(&gate(GateWish::Close, 2, 1)), Verdict::Keep(_)), "a newer term wins");
}

#[test]
fn opens_are_forgotten_above_a_limit_and_closes_never() {
    let mut member = member(None);
    for n in 0..=OPEN_MAX {
        let uid = Uid::from(format!("n{n}"));
        member.gate(&Gate { wish: GateWish::Open, uid, epoch: Epoch(1), seq: CloseSeq(n as u64) });
    }
    close(&mut member, 1, 1);
    assert_eq!(member.forget_one(), Some(Uid::from("n0")));
    assert_eq!(member.forget_one(), None);
    assert!(member.gate_of(&"v".into()).is_some());
}

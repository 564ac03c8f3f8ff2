//! The leader's side of the protocol, message by message.

use api::flaw::Flaw;
use api::message::{Answer, Armed, Beat, Closed, GateWish, Incarnation, Stamp};
use api::{BootId, CouncilEpoch, Duration, Epoch, NodeName, ObjectKey, Time, Uid};

use crate::controller::{Controller, Key};
use crate::node_death::boot::Boots;
use crate::node_death::expiry::{Expiry, expiry};
use crate::node_death::{answer, gates};
use crate::text::Story;
use crate::world::World;

const TERM: Epoch = Epoch(7);

fn at(secs: u64) -> Time {
    Time::from_ms(secs * 1000)
}

fn ms(ms: u64) -> Time {
    Time::from_ms(ms)
}

/// Three nodes with a council; n1 is in Fencing, or in the phase that the test asks for. This server leads since 100 s.
fn world(phase: &str) -> World {
    world_without(phase, None)
}

fn world_without(phase: &str, safeguard: Option<Flaw>) -> World {
    let flaw = safeguard.map_or(String::new(), |f| format!("flaw {}", f.name()));
    let incident = if phase.is_empty() {
        String::new()
    } else {
        format!("incident n1 phase={phase} step=Suspected@98s")
    };
    let text = format!(
        "now 200s
         {flaw}
         council n1,n2,n3
         node n1 ready=True boot=b1
         node n2 ready=True boot=c1
         node n3 ready=True boot=d1
         pod default/db-0 on n1 owner=StatefulSet/db phase=Running running
         pod default/web-1 on n1 owner=ReplicaSet/web phase=Running running
         {incident}"
    );
    let mut world = Story::read(&text).world;
    world.pulse.elected(TERM, at(100));
    world
}

fn beat(boot: &str, sent: Time) -> Beat {
    Beat {
        node: NodeName::from("n1"),
        who: Incarnation { uid: Uid::from("uid-n1"), boot: BootId::from(boot) },
        sent: Stamp(sent),
        council: CouncilEpoch(1),
        kill_bound: Duration::from_ms(2200),
        armed: Armed::Yes,
        idle: false,
    }
}

fn ack(member: &str, seq: u64, clean: bool) -> Closed {
    Closed {
        member: Uid::from(member),
        uid: Uid::from("uid-n1"),
        epoch: TERM,
        seq: api::CloseSeq(seq),
        clean,
    }
}

fn judge(world: &World, now: Time) -> Expiry {
    let incident = world.open_incident(&Uid::from("uid-n1")).expect("the incident is open");
    expiry(world, incident, now)
}

/// Starts the close and returns its sequence number.
fn close(world: &mut World, now: Time) -> u64 {
    let sent = gates(world, now);
    let seq = sent.iter().filter(|(_, g)| g.wish == GateWish::Close).map(|(_, g)| g.seq.0).max();
    seq.expect("a close is sent")
}

// Invariant C5
#[test]
fn c05_a_new_leader_assumes_a_grant_from_the_moment_of_its_election() {
    let mut world = world("Fencing");
    let seq = close(&mut world, at(105));
    world.closed(&ack("uid-n2", seq, true), at(105));
    world.closed(&ack("uid-n3", seq, true), at(105));
    // T = 100 s, G(1+ρ) = 4444 ms; the acknowledgements of 105 s are later. K(1+ρ) = 2222 ms.
    assert_eq!(judge(&world, at(106)), Expiry::At(ms(107_222)));
    let unaware = world.pulse.last_accepted(&Uid::from("uid-n1"), world.settings());
    assert_eq!(unaware, at(100));
}

// Invariant C6
#[test]
fn c06_an_acknowledgement_that_is_not_clean_counts_a_hold_later() {
    let mut world = world("Fencing");
    let seq = close(&mut world, at(105));
    world.closed(&ack("uid-n2", seq, false), at(105));
    world.closed(&ack("uid-n3", seq, true), at(105));
    // A(1+ρ) = 10.1 s after 105 s, then K.
    assert_eq!(judge(&world, at(106)), Expiry::At(ms(105_000 + 10_100 + 2_222)));
}

// Invariant C10
#[test]
fn c10_every_wait_is_longer_by_the_drift() {
    let mut world = world("");
    world.hear(&beat("b1", at(209)), at(0), at(200));
    let granted = answer(&mut world, TERM, at(200), at(200));
    assert!(matches!(granted[..], [(_, Answer::Grant(_))]));
    fold_incident(&mut world, "Fencing");
    let seq = close(&mut world, at(204));
    world.closed(&ack("uid-n2", seq, true), at(204));
    world.closed(&ack("uid-n3", seq, true), at(204));
    assert_eq!(judge(&world, at(205)), Expiry::At(ms(200_000 + 4_444 + 2_222)));
}

/// Adds an incident to a world that had none.
fn fold_incident(world: &mut World, phase: &str) {
    let text =
        format!("now 300s\n node n1 ready=True boot=b1\n incident n1 phase={phase} step=Suspected@202s");
    let story = Story::read(&text).world;
    let incident = story.incidents().next().expect("it was made");
    let view = api::view::View::NodeIncident(incident.view.clone());
    let rev = api::Rev(world.revision().0 + 1);
    world.fold(&view.key(), Some(view), rev, at(203));
}

// Invariant P2, C11
#[test]
fn c11_a_beat_is_answered_only_by_a_read_that_began_after_it_came() {
    let mut world = world("");
    world.hear(&beat("b1", at(209)), at(0), ms(200_010));
    assert_eq!(answer(&mut world, TERM, ms(200_009), ms(200_020)).len(), 0);
    assert_eq!(answer(&mut world, TERM, ms(200_010), ms(200_020)).len(), 1);
    assert_eq!(answer(&mut world, TERM, ms(200_030), ms(200_040)).len(), 0, "each beat is answered once");
}

#[test]
fn a_grant_names_the_exclusive_pods_of_the_node_and_echoes_the_stamp() {
    let mut world = world("");
    world.hear(&beat("b1", at(209)), at(0), at(200));
    let answers = answer(&mut world, TERM, at(200), at(200));
    let [(node, Answer::Grant(grant))] = &answers[..] else { panic!("one grant: {answers:?}") };
    assert_eq!(node.as_str(), "n1");
    assert_eq!(grant.sent, Stamp(at(209)));
    assert_eq!(grant.pods, vec![Uid::from("uid-db-0")]);
    assert_eq!(grant.council.as_ref().map(|c| c.epoch), Some(CouncilEpoch(1)));
}

// Invariant C12
#[test]
fn c12_an_acknowledgement_of_an_older_close_does_not_count() {
    let mut world = world("Fencing");
    let seq = close(&mut world, at(105));
    assert!(!world.closed(&ack("uid-n2", seq - 1, true), at(105)));
    assert!(!world.closed(&Closed { epoch: Epoch(6), ..ack("uid-n2", seq, true) }, at(105)));
    assert_eq!(judge(&world, at(106)), Expiry::Unclosed);
}

// Invariant N2, C13
#[test]
fn c13_every_council_that_the_node_may_be_using_is_closed_and_counted() {
    let text = "
        now 200s
        council n1,n2,n3 n1,n4,n5
        node n1 ready=True boot=b1 knows-council=1 silent=60s
        node n2 ready=True boot=c1
        node n3 ready=True boot=d1
        node n4 ready=True boot=e1
        node n5 ready=True boot=f1
        incident n1 phase=Fencing step=Suspected@142s
    ";
    let mut world = Story::read(text).world;
    world.pulse.elected(TERM, at(150));
    let sent = gates(&mut world, at(200));
    let closes: Vec<&str> =
        sent.iter().filter(|(_, g)| g.wish == GateWish::Close).map(|(n, _)| n.as_str()).collect();
    assert_eq!(closes, ["n1", "n2", "n3", "n4", "n5"]);
    let seq = sent[0].1.seq.0;
    world.closed(&ack("uid-n4", seq, true), at(200));
    world.closed(&ack("uid-n5", seq, true), at(200));
    assert_eq!(judge(&world, at(205)), Expiry::Unclosed, "a majority of the newest alone proves nothing");
    world.closed(&ack("uid-n2", seq, true), at(201));
    world.closed(&ack("uid-n3", seq, true), at(201));
    assert_eq!(judge(&world, at(205)), Expiry::Since(ms(203_222)));
}

// Invariant C14
#[test]
fn c14_without_a_close_silence_proves_nothing() {
    let mut world = world("Fencing");
    close(&mut world, at(105));
    assert_eq!(judge(&world, at(100_000)), Expiry::Unclosed);
}

// Invariant P4, C15
#[test]
fn c15_an_unrecorded_boot_is_granted_nothing() {
    let mut world = world("");
    world.hear(&beat("b2", at(9)), ms(200_001), ms(200_002));
    assert_eq!(answer(&mut world, TERM, ms(200_003), ms(200_003)).len(), 0);
}

// Invariant P5, C16
#[test]
fn c16_a_late_beat_of_an_older_boot_is_not_heard() {
    let mut world = world("");
    world.hear(&beat("b1", at(209)), at(0), at(201));
    assert!(world.hear(&beat("b2", at(1)), at(202), at(203)), "a session that began after b1's last beat");
    assert!(!world.hear(&beat("b1", at(209)), at(0), at(204)), "b1 was superseded");
    assert_eq!(
        world.pulse.ear(&Uid::from("uid-n1")).map(|e| e.boot.as_str().to_owned()),
        Some("b2".to_owned())
    );
}

// Invariant P5, C16
#[test]
fn c16_a_new_leader_records_no_boot_that_was_superseded() {
    let mut world = Story::read("now 200s\n council n1,n2,n3\n node n1 ready=True boot=b2 mute").world;
    let key = Key::Object(ObjectKey::node(&NodeName::from("n1")));
    // As a follower it last heard b1, and b2 never.
    world.hear(&beat("b1", at(9)), at(50), at(99));
    world.pulse.elected(TERM, at(100));
    world.hear(&beat("b1", at(10)), at(50), at(101));
    assert!(Boots.decide(&world, &key, at(101)).actions.is_empty(), "a late beat of b1");
    // A session of this term is of no boot that ended before it.
    assert!(world.hear(&beat("b3", at(1)), at(102), at(103)));
    assert_eq!(Boots.decide(&world, &key, at(103)).actions.len(), 1);
}

// Invariant P5
#[test]
fn a_boot_that_dials_again_is_recorded() {
    let mut world = Story::read("now 200s\n council n1,n2,n3\n node n1 ready=True boot=b2 mute").world;
    let key = Key::Object(ObjectKey::node(&NodeName::from("n1")));
    world.hear(&beat("b3", at(9)), at(98), at(99));
    world.pulse.elected(TERM, at(100));
    assert!(!world.hear(&beat("b3", at(10)), at(98), at(100)));
    assert!(world.hear(&beat("b3", at(11)), at(101), at(101)), "somebody must look");
    assert_eq!(Boots.decide(&world, &key, at(101)).actions.len(), 1);
}

// Invariant N3
#[test]
fn what_comes_late_does_not_speak_for_now() {
    let mut world = world("Recovering");
    let idle = |world: &World| world.pulse.ear(&Uid::from("uid-n1")).is_some_and(|e| e.idle);
    world.hear(&beat("b1", at(209)), at(150), at(201));
    assert!(!idle(&world));
    assert!(!world.hear(&Beat { idle: true, ..beat("b1", at(208)) }, at(150), at(202)));
    assert!(!idle(&world), "it was idle before");
    world.hear(&Beat { idle: true, ..beat("b1", at(3)) }, at(203), at(203));
    assert!(idle(&world), "a new session begins anew");
}

// Invariant P3, C17
#[test]
fn c17_nothing_is_granted_while_evidence_is_judged_or_recorded() {
    for (phase, granted) in [("Suspect", true), ("Dead", true), ("Fencing", false)] {
        let mut world = world(phase);
        world.hear(&beat("b1", at(209)), at(0), at(200));
        let answers = answer(&mut world, TERM, at(200), at(200));
        assert_eq!(answers.iter().any(|(_, a)| matches!(a, Answer::Grant(_))), granted, "{phase}");
    }
    for phase in ["Fenced", "Recovering"] {
        let mut world = world(phase);
        world.hear(&beat("b1", at(209)), at(0), at(200));
        let answers = answer(&mut world, TERM, at(200), at(200));
        assert!(matches!(answers[..], [(_, Answer::Denied { .. })]), "{phase}");
    }
}

#[test]
fn p113_a_node_that_needs_longer_to_kill_than_the_cluster_waits_is_granted_nothing() {
    let mut world = world("");
    world.hear(&Beat { kill_bound: Duration::from_ms(2201), ..beat("b1", at(209)) }, at(0), at(200));
    assert_eq!(answer(&mut world, TERM, at(200), at(200)).len(), 0);
}

#[test]
fn a_close_is_opened_when_the_incident_is_over() {
    let mut world = world("Fencing");
    close(&mut world, at(105));
    let incident = world.open_incident(&Uid::from("uid-n1")).expect("it is open").view.clone();
    let mut over = (*incident).clone();
    over.status.phase = api::view::IncidentPhase::Closed;
    let view = api::view::View::NodeIncident(over.into());
    let rev = api::Rev(world.revision().0 + 1);
    world.fold(&view.key(), Some(view), rev, at(106));
    let sent = gates(&mut world, at(107));
    assert_eq!(sent.iter().filter(|(_, g)| g.wish == GateWish::Open).count(), 3);
    assert_eq!(sent.iter().filter(|(_, g)| g.wish == GateWish::Close).count(), 0);
}

#[test]
fn an_open_is_said_as_long_as_the_node_is_there() {
    let mut world = world("");
    world.hear(&beat("b1", at(209)), at(200), at(200));
    answer(&mut world, TERM, at(200), at(200));
    let mut said = Vec::new();
    for now in 0..40_000 {
        let sent = gates(&mut world, ms(200_000 + now * 100));
        if sent.iter().any(|(_, g)| g.wish == GateWish::Open) {
            said.push(now * 100);
        }
    }
    assert_eq!(said[..6], [0, 300, 600, 1100, 2100, 4100]);
    let longest = said.windows(2).map(|w| w[1] - w[0]).max();
    assert_eq!(longest, Some(300_000));
}

// Invariant S1
#[test]
fn c04_a_machine_whose_node_was_deleted_stays_closed() {
    let mut world = world("Fencing");
    close(&mut world, at(105));
    fold_incident(&mut world, "Closed");
    let rev = api::Rev(world.revision().0 + 1);
    let key = ObjectKey::node(&NodeName::from("n1"));
    world.fold(&key, None, rev, at(106));
    let sent = gates(&mut world, at(107));
    assert_eq!(sent.iter().filter(|(_, g)| g.wish == GateWish::Open).count(), 0);
}

#[test]
fn machines_that_were_taken_away_are_forgotten() {
    let mut world = world("");
    let key = ObjectKey::node(&NodeName::from("n2"));
    let rev = api::Rev(world.revision().0 + 1);
    world.fold(&key, None, rev, at(200));
    gates(&mut world, at(220));
    assert_eq!(world.pulse.ears().count(), 3, "its last grant may live");
    gates(&mut world, at(230));
    assert_eq!(world.pulse.ears().count(), 2);
}

#[test]
fn each_flaw_of_the_leader_breaks_its_rule() {
    let flawed = |flaw: Flaw| world_without("Fencing", Some(flaw));
    let world = flawed(Flaw::Amnesia);
    assert_eq!(world.pulse.last_accepted(&Uid::from("uid-n1"), world.settings()), Time::ZERO);
    let world = flawed(Flaw::NoClose);
    assert_eq!(judge(&world, at(200)), Expiry::Since(ms(106_666)));
    let mut world = flawed(Flaw::AnyAck);
    let seq = close(&mut world, at(105));
    assert!(world.closed(&ack("uid-n2", seq - 1, true), at(105)));
}

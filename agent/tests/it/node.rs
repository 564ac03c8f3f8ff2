//! The node itself: registration, Lease, status, beats, the council.

use agent::{Call, Event, Op};
use api::edit::Edit;
use api::flaw::Flaw;
use api::message::{Armed, Ask, Gate, GateWish, Incarnation, Stamp};
use api::view::{Condition, ConditionStatus, View};
use api::{CloseSeq, CouncilEpoch, Epoch, Kind};

use crate::body::{Body, exclusive, pod, uid};

#[test]
fn a_node_registers_reports_and_renews() {
    let mut body = Body::booted();
    let node = body.node.clone().unwrap();
    assert_eq!(node.ready(), ConditionStatus::True);
    let conditions: Vec<_> =
        node.status.conditions.iter().map(|c| (c.kind.as_str(), c.status, c.reason.as_str())).collect();
    let expected = [
        ("MemoryPressure", ConditionStatus::False, "KubeletHasSufficientMemory"),
        ("DiskPressure", ConditionStatus::False, "KubeletHasNoDiskPressure"),
        ("PIDPressure", ConditionStatus::False, "KubeletHasSufficientPID"),
        ("Ready", ConditionStatus::True, "KubeletReady"),
    ];
    assert_eq!(conditions, expected, "HB-13: Ready comes last");
    assert_eq!(node.status.node_info.boot_id.as_str(), "b1");
    assert_eq!(body.agent.uid(), &node.metadata.uid);
    assert!(body.calls.iter().any(|c| matches!(c, Call::Create(View::Lease(_)))));
    let calls = body.calls.len();
    body.advance(60_000);
    let renewals = body.calls[calls..].iter().filter(|c| c.key().kind == Kind::Lease).count();
    assert_eq!(renewals, 6);
    let reports = body.calls[calls..].iter().filter(|c| c.key().kind == Kind::Node).count();
    assert_eq!(reports, 0, "HB-11: unchanged, so not sent");
    body.advance(300_000);
    let reports = body.calls[calls..].iter().filter(|c| c.key().kind == Kind::Node).count();
    assert_eq!(reports, 1, "HB-10: every five minutes");
}

#[test]
fn a_lease_that_cannot_be_renewed_is_tried_five_times_and_left_for_the_next_period() {
    let mut body = Body::booted();
    body.api_up = false;
    body.advance(10_000);
    let calls = body.calls.len();
    body.advance(20_000);
    let tries = body.calls[calls..].iter().filter(|c| c.key().kind == Kind::Lease).count();
    assert!((4..=10).contains(&tries), "{tries}");
}

#[test]
fn beats_go_out_with_the_guards_stamp() {
    let mut body = Body::booted();
    body.grant(&[]);
    body.beats.clear();
    body.advance(5_000);
    assert!((9..=11).contains(&body.beats.len()), "{}", body.beats.len());
    let last = body.beats.last().unwrap();
    assert_eq!((last.armed, last.council, last.idle), (Armed::Yes, CouncilEpoch(1), true));
    assert!(body.now.since(last.sent.0) <= api::Duration::from_ms(500));
}

// Invariant C18
#[test]
fn c18_no_guard_no_beat() {
    for flaw in [None, Some(Flaw::GuardlessBeat)] {
        let mut body = Body::unregistered(flaw);
        body.send(Event::Observed(Vec::new()));
        body.send(Event::NodeAbsent);
        body.send(Event::Synced);
        body.advance(3_000);
        assert!(!body.beats.is_empty());
        body.guard_alive = false;
        body.advance(1_500);
        body.beats.clear();
        body.advance(5_000);
        assert_eq!(body.beats.is_empty(), flaw.is_none(), "{flaw:?}");
    }
}

#[test]
fn a_loop_that_does_not_tick_is_silent() {
    let mut body = Body::booted();
    body.advance(1_000);
    body.beats.clear();
    for _ in 0..20 {
        body.now += api::Duration::from_ms(500);
        body.guard_step(agent::guard::Event::Wake);
    }
    assert!(body.beats.len() <= 4, "{}", body.beats.len());
}

#[test]
fn an_unanswered_node_asks_the_council_and_itself() {
    let mut body = Body::booted();
    body.grant(&[]);
    body.advance(1_000);
    assert!(body.sent.is_empty());
    body.advance(3_000);
    let asked =
        body.sent.iter().filter(|op| matches!(op, Op::Ask { to, .. } if to.node_name.as_str() == "m1"));
    assert!((9..=12).contains(&asked.count()), "every q");
    let own = body.sent.iter().any(|op| matches!(op, Op::NoneHere { to, .. } if to.as_str() == "n1"));
    assert!(own, "the own vote comes once there was no contact for W");
    assert!(!body.sent.iter().any(|op| matches!(op, Op::Ask { to, .. } if to.node_name.as_str() == "n1")));
    // Broken: what is broken cannot be held.
    body.advance(2_000);
    body.sent.clear();
    body.advance(3_000);
    assert!(body.sent.is_empty());
}

// Invariant C9
#[test]
fn c09_a_close_is_acknowledged_from_the_disk() {
    let mut body = Body::booted();
    let gate = Gate { wish: GateWish::Close, uid: "v".into(), epoch: Epoch(3), seq: CloseSeq(7) };
    body.send(Event::Gate(gate));
    assert!(body.ledger.gates_by_uid.contains_key("v"));
    let acks: Vec<_> =
        body.sent.iter().filter(|op| matches!(op, Op::Closed(c) if c.seq == CloseSeq(7))).collect();
    assert_eq!(acks.len(), 1);
    body.restart_agent();
    body.advance(60_000);
    body.sent.clear();
    let who = Incarnation { uid: "v".into(), boot: "bv".into() };
    body.send(Event::Asked { from: "v".into(), ask: Ask { who, sent: Stamp(body.now) } });
    assert!(body.sent.is_empty(), "closed over the restart");
}

#[test]
fn a_node_whose_object_is_gone_stops_exclusive_pods_and_registers_anew() {
    let mut body = Body::booted();
    body.grant(&["db"]);
    body.show(exclusive("db"));
    body.show(pod("web"));
    body.stubborn.insert(uid("db"));
    let old = body.agent.uid().clone();
    body.node = None;
    body.send(Event::NodeAbsent);
    body.advance(1_000);
    assert!(body.runs("db"), "it has its two seconds");
    assert_eq!(body.agent.uid(), &old);
    assert!(body.node.is_none(), "not while something exclusive runs");
    body.advance(2_500);
    assert!(!body.runs("db") && body.runs("web"));
    assert_ne!(body.agent.uid(), &old);
    assert_eq!(body.ledger.node.as_ref().map(|n| &n.uid), Some(body.agent.uid()));
}

#[test]
fn another_object_of_this_name_is_taken_for_ones_own_only_when_idle() {
    let mut body = Body::booted();
    body.grant(&["db"]);
    body.show(exclusive("db"));
    body.stubborn.insert(uid("db"));
    let mut node = (**body.node.as_ref().unwrap()).clone();
    node.metadata.uid = "usurper".into();
    body.rev += 1;
    let node = std::sync::Arc::new(node);
    body.node = Some(node.clone());
    body.send(Event::Node { node, rev: api::Rev(body.rev) });
    assert_ne!(body.agent.uid().as_str(), "usurper");
    body.advance(3_000);
    assert_eq!(body.agent.uid().as_str(), "usurper");
    assert!(!body.runs("db"));
}

#[test]
fn a_condition_that_somebody_changed_is_put_right() {
    for kind in ["Ready", "PIDPressure"] {
        let mut body = Body::booted();
        let before = body.node.as_ref().unwrap().condition(kind).unwrap().status;
        change_node(&mut body, |conditions| {
            conditions.iter_mut().find(|c| c.kind == kind).unwrap().status = ConditionStatus::Unknown;
        });
        assert_eq!(body.node.as_ref().unwrap().condition(kind).unwrap().status, before, "{kind}");
        assert!(reports(&body) >= 1);
    }
}

#[test]
fn hb11_the_order_of_conditions_and_those_of_others_are_no_reason_to_report() {
    let mut body = Body::booted();
    body.advance(20_000);
    let before = reports(&body);
    change_node(&mut body, |conditions| {
        conditions.reverse();
        let kind = "NetworkUnavailable";
        conditions.push(Condition::new(kind, ConditionStatus::False, "RouteCreated", "", api::Time::ZERO));
    });
    body.advance(60_000);
    assert_eq!(reports(&body), before);
}

/// Somebody else writes the conditions of the Node.
fn change_node(body: &mut Body, change: impl FnOnce(&mut Vec<Condition>)) {
    let mut node = (**body.node.as_ref().expect("a booted body is registered")).clone();
    change(&mut node.status.conditions);
    body.rev += 1;
    let node = std::sync::Arc::new(node);
    body.node = Some(node.clone());
    body.send(Event::Node { node, rev: api::Rev(body.rev) });
}

fn reports(body: &Body) -> usize {
    let is_report = |c: &&Call| matches!(c, Call::Edit { edit: Edit::NodeReport(_), .. });
    body.calls.iter().filter(is_report).count()
}

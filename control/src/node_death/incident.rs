//! The course of an incident, from Suspect to Closed.
//!
//! Responsible for: each step of each open incident, the evidence, the mark on the node, the return. Leaves to
//! [`super::release`] the pods, to `volume::attach` the volumes, to [`super::pulse`] to close and open at the council.
//!
//! Invariants:
//! - E1: Fenced is recorded only on evidence about that node uid, and in the same transaction the Node is compared
//!   with what the evidence was judged by.
//! - Fencing is stored, and seen, before evidence is judged: from then on the node is granted nothing (P3), so that no
//!   grant can slip in between judgement and commit.
//! - The mark is set and removed by this part alone; a taint of the same key with another value is somebody else's.
//! - N3: a fenced node is taken up again only after it said, in its present boot and after it was fenced, that nothing
//!   exclusive runs.

use api::edit::{Edit, TaintName};
use api::flaw::Flaw;
use api::taint::{Taint, TaintEffect};
use api::view::{
    ConditionStatus, Evidence, EvidenceKind, IncidentEnd, IncidentPhase, IncidentStatus, Node, NodeIncident,
    StepName, View,
};
use api::{Kind, ObjectKey, Time, annotation};

use super::brake::{self, Silence};
use super::expiry::{Expiry, expiry};
use super::pulse::{is_heard, speaks_since};
use super::release;
use crate::controller::{Change, Controller, Key, Layer, Scope};
use crate::decision::{Action, Decision, Expect, Note};
use crate::volume::attach::is_wanted;
use crate::world::{Seen, World};

/// Leads each incident to its end.
pub struct Incidents;

static SCOPE: Scope = Scope {
    name: "incident",
    reads: &[Kind::NodeIncident, Kind::Node, Kind::Pod, Kind::VolumeAttachment, Kind::Council],
    writes: &[Kind::NodeIncident, Kind::Node],
};

impl Controller for Incidents {
    fn scope(&self) -> &'static Scope {
        &SCOPE
    }

    fn layer(&self) -> Layer {
        Layer::Automatic
    }

    fn touched(&self, change: &Change, world: &World, keys: &mut Vec<Key>) {
        match change {
            Change::Object { key, old, new } => match (old.as_ref(), new.as_ref()) {
                (_, Some(View::NodeIncident(_))) => keys.push(Key::Object(key.clone())),
                (Some(View::Node(node)), _) | (_, Some(View::Node(node))) => {
                    touch_open(world, &node.metadata.uid, keys);
                }
                (Some(View::Pod(pod)), _) => touch_open(world, &pod.node_uid(), keys),
                (Some(View::VolumeAttachment(a)), _) => {
                    if let Some(node) = world.node(&a.spec.node_name) {
                        touch_open(world, &node.metadata.uid, keys);
                    }
                }
                (Some(View::Tombstone(t)), None) => touch_open(world, &t.spec.node_uid, keys),
                _ => {}
            },
            Change::Heard(uid) => touch_open(world, uid, keys),
            Change::Zones => {}
        }
    }

    fn decide(&self, world: &World, key: &Key, now: Time) -> Decision {
        let Some(incident) = key.object().and_then(|k| world.incident(&k.name)) else {
            return Decision::rest();
        };
        match incident.status.phase {
            IncidentPhase::Suspect | IncidentPhase::Dead | IncidentPhase::Fencing => {
                before_evidence(world, incident, now)
            }
            IncidentPhase::Fenced => fenced(world, incident, now),
            IncidentPhase::Recovering => recovering(world, incident, now),
            IncidentPhase::Closed => Decision::rest(),
        }
    }
}

fn touch_open(world: &World, uid: &api::Uid, keys: &mut Vec<Key>) {
    keys.extend(world.open_incident(uid).map(|i| Key::Object(i.key())));
}

fn set(incident: &Seen<NodeIncident>, status: IncidentStatus) -> Action {
    Action::edit(incident.key(), incident.rev, Edit::Incident(Box::new(status)))
}

// === before there is evidence ===

fn before_evidence(world: &World, incident: &Seen<NodeIncident>, now: Time) -> Decision {
    let node = world.node_by_uid(&incident.spec.node_uid);
    if let (Some(_), Some(end)) = (node, returned(world, incident, now)) {
        return Decision::rest().with(close(incident, end, now));
    }
    let since = world.pulse.silent_since(&incident.spec.node_uid);
    let silence = Silence { uid: &incident.spec.node_uid, since, incident: Some(&incident.view) };
    // What a human said is not a guess that a brake should hold; the node's own time to stop still counts.
    let human = human_word(world, node, incident, now);
    let held = if human.is_some() { Vec::new() } else { brake::brakes(world, silence, now) };
    if !held.is_empty() {
        return hold(incident, held, now);
    }
    let timing = &world.settings().timing;
    let dead_at = since + timing.dead;
    if now < dead_at {
        return unhold(incident).unwrap_or_else(|| Decision::wait(dead_at));
    }
    match incident.status.phase {
        IncidentPhase::Suspect => Decision::rest().with(advance(incident, IncidentPhase::Dead, now)),
        IncidentPhase::Dead => begin_fencing(world, incident, human, now),
        IncidentPhase::Fencing => judge(world, incident, node, human, now),
        IncidentPhase::Fenced | IncidentPhase::Recovering | IncidentPhase::Closed => Decision::rest(),
    }
}

/// How the incident ends if the node speaks again before there is evidence.
fn returned(world: &World, incident: &NodeIncident, now: Time) -> Option<IncidentEnd> {
    let uid = &incident.spec.node_uid;
    if !is_heard(world, uid, now) {
        return None;
    }
    let boot = world.pulse.ear(uid).map(|e| e.boot.clone()).unwrap_or_default();
    let same = boot == incident.spec.boot_id || incident.spec.boot_id.is_empty();
    Some(if same { IncidentEnd::CameBack } else { IncidentEnd::Rebooted })
}

/// Shows the brakes that hold, and looks again.
fn hold(incident: &Seen<NodeIncident>, held: Vec<api::view::Brake>, now: Time) -> Decision {
    let text = format!("nothing is done about node {}: {held:?}", incident.spec.node_name);
    let note = Note::warning(incident.key(), "IncidentHeld", text, format!("{held:?}"));
    let mut decision = Decision::wait(brake::look_again(now)).because(note);
    if incident.status.brakes != held {
        decision.actions.push(set(incident, IncidentStatus { brakes: held, ..incident.status.clone() }));
    }
    decision
}

fn unhold(incident: &Seen<NodeIncident>) -> Option<Decision> {
    let status = IncidentStatus { brakes: Vec::new(), ..incident.status.clone() };
    (!incident.status.brakes.is_empty()).then(|| Decision::rest().with(set(incident, status)))
}

fn advance(incident: &Seen<NodeIncident>, to: IncidentPhase, now: Time) -> Action {
    let step = match to {
        IncidentPhase::Suspect => StepName::Suspected,
        IncidentPhase::Dead => StepName::DeclaredDead,
        IncidentPhase::Fencing => StepName::FencingBegun,
        IncidentPhase::Fenced => StepName::Fenced,
        IncidentPhase::Recovering => StepName::CameBack,
        IncidentPhase::Closed => StepName::Closed,
    };
    let mut status = IncidentStatus { phase: to, brakes: Vec::new(), ..incident.status.clone() };
    status.take_step(step, now);
    set(incident, status)
}

fn close(incident: &Seen<NodeIncident>, end: IncidentEnd, now: Time) -> Action {
    let mut status = IncidentStatus {
        phase: IncidentPhase::Closed,
        brakes: Vec::new(),
        end: Some(end),
        ..incident.status.clone()
    };
    status.take_step(StepName::Closed, now);
    set(incident, status)
}

/// Dead → Fencing, if there is any way in which this incident could come to evidence.
fn begin_fencing(
    world: &World,
    incident: &Seen<NodeIncident>,
    human: Option<EvidenceKind>,
    now: Time,
) -> Decision {
    if expiry(world, incident, now) == Expiry::NotArmed && human.is_none() {
        return hold(incident, vec![api::view::Brake::NotArmed], now);
    }
    Decision::rest().with(advance(incident, IncidentPhase::Fencing, now))
}

/// What a human said about the node, if it was said and the node does not speak against it.
fn human_word(
    world: &World,
    node: Option<&Seen<Node>>,
    incident: &NodeIncident,
    now: Time,
) -> Option<EvidenceKind> {
    let Some(node) = node else { return Some(EvidenceKind::NodeDeleted) };
    let marked = node
        .spec
        .taints
        .iter()
        .any(|t| t.key == annotation::OUT_OF_SERVICE && t.value != annotation::OUT_OF_SERVICE_OURS);
    let silent = !is_heard(world, &incident.spec.node_uid, now) && node.ready() != ConditionStatus::True;
    (marked && silent).then_some(EvidenceKind::Operator)
}

/// Fencing → Fenced, once there is evidence.
fn judge(
    world: &World,
    incident: &Seen<NodeIncident>,
    node: Option<&Seen<Node>>,
    human: Option<EvidenceKind>,
    now: Time,
) -> Decision {
    let (kind, detail) = match (expiry(world, incident, now), human) {
        (Expiry::Since(at), None) => {
            (EvidenceKind::LeaseExpiry, format!("silent and closed; proven since {at:?}"))
        }
        // A human's word on an armed node also waits for the node's own time: a wrong human makes no two copies.
        (Expiry::Since(at), Some(kind)) => (kind, format!("and the node's own time ran out at {at:?}")),
        (Expiry::At(at), _) => return Decision::wait(at),
        (Expiry::Unclosed, _) => {
            let text =
                format!("waiting for a majority of the council to close node {}", incident.spec.node_name);
            let note = Note::normal(incident.key(), "WaitingForCouncil", text, "");
            return Decision::wait(brake::look_again(now)).because(note);
        }
        (Expiry::NotArmed, None) => return hold(incident, vec![api::view::Brake::NotArmed], now),
        (Expiry::NotArmed, Some(kind)) => (kind, "on that word alone: the node was not armed".to_owned()),
    };
    // Gate 1: the incident is in Fencing at the revision of this view, so that nothing was granted since.
    // Gate 2: the node has not been heard for `dead` (checked by the caller for every step).
    // Gate 3: the evidence is about this uid, whatever the boot: granting and fencing exclude each other per uid.
    let mut status =
        IncidentStatus { phase: IncidentPhase::Fenced, brakes: Vec::new(), ..incident.status.clone() };
    status.evidence.push(Evidence { kind, at: now, detail });
    status.take_step(StepName::Fenced, now);
    // Gate 4: the Node is still as it was judged, in the same transaction (E1).
    let action = fresh(set(incident, status), world, incident, node);
    Decision::rest()
        .with(action.counting("mainstay_node_fenced_total", &[("evidence", evidence_label(kind))]))
}

fn evidence_label(kind: EvidenceKind) -> &'static str {
    match kind {
        EvidenceKind::LeaseExpiry => "lease-expiry",
        EvidenceKind::PowerOff => "power-off",
        EvidenceKind::NewBoot => "new-boot",
        EvidenceKind::Operator => "operator",
        EvidenceKind::NodeDeleted => "node-deleted",
        EvidenceKind::Storage => "storage",
    }
}

/// The last gate of every irreversible step about the node of an incident.
pub(super) fn fresh(
    action: Action,
    world: &World,
    incident: &NodeIncident,
    node: Option<&Seen<Node>>,
) -> Action {
    if world.settings().lacks(Flaw::NoFreshRead) {
        return action;
    }
    match node {
        Some(node) => action.expecting(Expect::Fresh(ObjectKey::node(&node.name()), node.rev)),
        // Another Node of the same name may be there: then its uid differs and nothing about it is decided here.
        None if world.node(&incident.spec.node_name).is_some() => action,
        None => action.expecting(Expect::Gone(ObjectKey::node(&incident.spec.node_name))),
    }
}

// === fenced ===

fn our_mark() -> Taint {
    Taint::new(annotation::OUT_OF_SERVICE, TaintEffect::NoSchedule)
        .with_value(annotation::OUT_OF_SERVICE_OURS)
}

fn carries_mark(node: &Node) -> bool {
    let mark = our_mark();
    node.spec.taints.iter().any(|t| t.is_same_entry(&mark) && t.value == mark.value)
}

fn fenced(world: &World, incident: &Seen<NodeIncident>, now: Time) -> Decision {
    let node = world.node_by_uid(&incident.spec.node_uid);
    if let Some(node) = node
        && !carries_mark(node)
    {
        // By identity, not by revision: a node that is back writes its status, and would outrun the mark for ever.
        let edit = Edit::Taints { add: vec![our_mark()], remove: Vec::new() };
        let mark = Action::edit_of(ObjectKey::node(&node.name()), node.metadata.uid.clone(), edit);
        return Decision::rest().with(mark);
    }
    let holds = release::held_by(world, incident);
    if incident.step_at(StepName::Released).is_none() && holds.is_empty() {
        let mut status = incident.status.clone();
        status.take_step(StepName::Released, now);
        return Decision::rest().with(set(incident, status));
    }
    // Compared with when *this* process saw the incident change: times of steps are by the clock of whoever led then.
    if node.is_some() && speaks_since(world, &incident.spec.node_uid, incident.at, now) {
        return Decision::rest().with(advance(incident, IncidentPhase::Recovering, now));
    }
    if node.is_none() && holds.is_empty() && !has_tombstones(world, incident) {
        return Decision::rest().with(close(incident, IncidentEnd::Removed, now));
    }
    waiting_for(incident, &holds)
}

fn waiting_for(incident: &Seen<NodeIncident>, holds: &[String]) -> Decision {
    if holds.is_empty() {
        return Decision::rest();
    }
    let text = format!("node {} still holds {}", incident.spec.node_name, holds.join(", "));
    Decision::rest().because(Note::normal(incident.key(), "Releasing", text, ""))
}

fn has_tombstones(world: &World, incident: &NodeIncident) -> bool {
    world.tombstones().any(|t| t.spec.node_uid == incident.spec.node_uid)
}

// === back again ===

fn recovering(world: &World, incident: &Seen<NodeIncident>, now: Time) -> Decision {
    let uid = &incident.spec.node_uid;
    let Some(node) = world.node_by_uid(uid) else {
        let holds = release::held_by(world, incident);
        if holds.is_empty() && !has_tombstones(world, incident) {
            return Decision::rest().with(close(incident, IncidentEnd::Removed, now));
        }
        return waiting_for(incident, &holds);
    };
    if incident.step_at(StepName::ConfirmedStopped).is_none() {
        return confirm(world, incident, now);
    }
    let mut holds = release::held_by(world, incident);
    holds.extend(
        world
            .attachments_on(&node.name())
            // What a pod that stays (a daemon, a bare pod) uses there is not of the old time.
            .filter(|a| !is_wanted(world, a))
            .map(|a| format!("attachment of {}", a.spec.source.persistent_volume_name)),
    );
    if !holds.is_empty() {
        return waiting_for(incident, &holds);
    }
    if node.ready() != ConditionStatus::True || !is_heard(world, uid, now) {
        return Decision::rest();
    }
    // Gate 1: nothing of the old time is left here. Gate 2: it said so itself. Gate 3: it is Ready and beating.
    // Gate 4: the Node is as it was looked at; the incident is closed only after the mark is off.
    if carries_mark(node) {
        let edit = Edit::Taints {
            add: Vec::new(),
            remove: vec![TaintName::new(annotation::OUT_OF_SERVICE, TaintEffect::NoSchedule)],
        };
        return Decision::rest().with(Action::edit(ObjectKey::node(&node.name()), node.rev, edit));
    }
    Decision::rest().with(close(incident, IncidentEnd::Recovered, now))
}

/// Invariant N3: the word of the node itself, newer than the moment it was seen to be back.
fn confirm(world: &World, incident: &Seen<NodeIncident>, now: Time) -> Decision {
    let uid = &incident.spec.node_uid;
    let said = world.pulse.ear(uid).is_some_and(|e| e.idle) && speaks_since(world, uid, incident.at, now);
    if !said && !world.settings().lacks(Flaw::UnconfirmedGrant) {
        return Decision::wait(brake::look_again(now));
    }
    let mut status = incident.status.clone();
    status.take_step(StepName::ConfirmedStopped, now);
    Decision::rest().with(set(incident, status))
}

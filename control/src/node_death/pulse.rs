//! The pulse: what this server process heard of nodes and of council members.
//!
//! Responsible for: the server's half of the fencing protocol that is not in objects: when each node was last heard,
//! when its last beat was *accepted* (answered with a grant), which closes are under way and who acknowledged them.
//! Leaves to [`super::expiry`] the rule that is computed from it, to [`super::incident`] what follows.
//!
//! Invariants:
//! - P1: an acceptance is recorded before the answer leaves.
//! - P2 (C11): a beat is answered only after a linearizable read of the leader key that *began after the beat was
//!   received*; never by this server's own clock.
//! - P3 (C17): granting and fencing exclude each other per node uid, whatever the boot: from the moment the world
//!   shows an incident in Fencing, nothing is granted until it is Closed.
//! - P4 (C15): nothing is granted to a boot that is not the recorded one.
//! - P5 (C16): another boot counts only on a session that began after the last beat of the boot before; a boot that
//!   was superseded never comes back.
//!
//! The failure it exists for: a server that restarts. Everything here is lost then, and every default is the patient
//! one: an unknown acceptance counts as *now* (C5), an unknown acknowledgement as none.

use std::collections::{BTreeMap, BTreeSet};

use api::flaw::Flaw;
use api::message::{Answer, Armed, Beat, Closed, Gate, GateWish, Grant, Stamp};
use api::view::{IncidentPhase, Node, NodeIncident};
use api::{BootId, CloseSeq, CouncilEpoch, Duration, Epoch, NodeName, Time, Uid};

use super::brake::count;
use super::council;
use crate::world::{Seen, Settings, World};

/// Longest pause between two sendings of an open. It has no acknowledgement, and a member that never got it would refuse
/// its node in every outage to come: so it is said as long as the node is there, after pauses that double. At half, a
/// thousand nodes with five members cost thirty datagrams a second; at double, a member that was away for an hour
/// refuses for that much longer.
const REOPEN_MAX: Duration = Duration::from_secs(300);
/// How often an open is sent before pauses double.
const OPENS: u8 = 3;
/// Beats that wait for an answer: at two beats a second these are the reads of two seconds; with one slot a store that
/// answers more slowly than nodes beat would starve them all.
const PENDING_MAX: usize = 4;
/// A process that does nothing for so many beats was stalled: a body calls its mind more often than once a beat, if only
/// to ask for closes to send. One beat would call a busy process stalled, four would let a suspicion through.
const STALL_BEATS: u64 = 2;
/// Pause between two sendings of a close or an open. A close round trip must fit behind the grant.
const RESEND: Duration = Duration::from_ms(250);

/// What was heard of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ear {
    /// Its name, for the way back.
    pub node: NodeName,
    /// The boot that speaks.
    pub boot: BootId,
    /// When the last beat of that boot was received.
    pub heard: Time,
    /// When its last beat was accepted, if one was in this process: T of the protocol.
    pub accepted: Option<Time>,
    /// The kill bound it declared.
    pub kill_bound: Duration,
    /// Whether it would stop by itself.
    pub armed: Armed,
    /// Whether it said that nothing exclusive runs.
    pub idle: bool,
    /// The newest council it knows; 0 before its first grant in this boot.
    pub council: CouncilEpoch,
    /// The stamp of its newest beat.
    sent: Stamp,
    /// When the newest session of that boot began.
    session: Time,
    /// Beats that are not answered yet, oldest first: stamp and when it was received.
    pending: Vec<(Stamp, Time)>,
}

/// A close under way.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Closing {
    seq: CloseSeq,
    /// Per member: the moment from which its acknowledgement counts.
    acks: BTreeMap<Uid, Time>,
    sent: Option<Time>,
}

/// An open still to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Opening {
    seq: CloseSeq,
    /// Sendings left before the pause doubles.
    left: u8,
    pause: Duration,
    sent: Option<Time>,
}

/// See the module's header.
#[derive(Debug)]
pub struct Pulse {
    /// When this process began to listen, or to listen again.
    listening: Time,
    /// The last sign that this process itself moves.
    awake: Time,
    /// The term in which this process leads, and since when.
    term: Option<(Epoch, Time)>,
    ears: BTreeMap<Uid, Ear>,
    closing: BTreeMap<Uid, Closing>,
    opening: BTreeMap<Uid, Opening>,
    /// Nodes that were accepted in this term: each is opened once, in case an earlier leader closed it and died.
    greeted: BTreeSet<Uid>,
    last_seq: CloseSeq,
}

// === impl Pulse ===

impl Pulse {
    /// Nothing heard yet.
    pub fn new(now: Time) -> Self {
        Self {
            listening: now,
            awake: now,
            term: None,
            ears: BTreeMap::new(),
            closing: BTreeMap::new(),
            opening: BTreeMap::new(),
            greeted: BTreeSet::new(),
            last_seq: CloseSeq::default(),
        }
    }

    /// This process moves. If it did not for a while (its machine was paused, its disk hung, it was starved), it could
    /// not hear either, and what waits in its sockets comes one by one: all silence counts from now (case P73).
    pub fn stir(&mut self, now: Time, settings: &Settings) {
        if now.since(self.awake) > settings.timing.beat.times(STALL_BEATS) {
            self.listening = now;
        }
        self.awake = self.awake.max(now);
    }

    /// What was heard of a node.
    pub fn ear(&self, uid: &Uid) -> Option<&Ear> {
        self.ears.get(uid)
    }

    /// Everything that was heard.
    pub fn ears(&self) -> impl Iterator<Item = (&Uid, &Ear)> {
        self.ears.iter()
    }

    /// When any beat of that node was last received by this process.
    pub fn last_heard(&self, uid: &Uid) -> Option<Time> {
        self.ears.get(uid).map(|e| e.heard)
    }

    /// The moment from which a node that was not heard since counts as silent: its last beat, or else the moment this
    /// process began to listen. A control plane that was away, or is new, gives everybody their time (case P70).
    pub fn silent_since(&self, uid: &Uid) -> Time {
        self.last_heard(uid).unwrap_or(self.listening).max(self.listening)
    }

    /// When this process became leader, if it leads.
    pub fn leading_since(&self) -> Option<Time> {
        self.term.map(|(_, since)| since)
    }

    /// T of the protocol: when a beat of that node was last accepted, and for every node of which this term accepted
    /// none the moment at which the term began: an earlier leader may have granted until then. Invariant C5.
    pub fn last_accepted(&self, uid: &Uid, settings: &Settings) -> Time {
        let accepted = self.ears.get(uid).and_then(|e| e.accepted).unwrap_or(Time::ZERO);
        if settings.lacks(Flaw::Amnesia) {
            return accepted;
        }
        accepted.max(self.leading_since().unwrap_or(self.listening))
    }

    /// When each of the members acknowledged the close of that node that is under way; empty if none is.
    pub fn acks(&self, uid: &Uid) -> Option<&BTreeMap<Uid, Time>> {
        self.closing.get(uid).map(|c| &c.acks)
    }

    /// A term begins.
    pub fn elected(&mut self, epoch: Epoch, now: Time) {
        self.term = Some((epoch, now));
        self.closing.clear();
        self.opening.clear();
        self.greeted.clear();
        self.last_seq = CloseSeq::default();
        for ear in self.ears.values_mut() {
            ear.accepted = None;
            ear.pending.clear();
            // The council it acknowledged stays: a node only ever learns newer ones, so what was heard is a lower bound.
        }
    }

    /// The term is over.
    pub fn deposed(&mut self) {
        self.term = None;
        self.closing.clear();
        self.opening.clear();
    }

    /// Takes a beat in. Returns true if somebody should look: the node had been silent, another boot speaks, or it
    /// became idle or busy. `session` is when the stream's handshake began, by this server's clock.
    pub fn hear(&mut self, beat: &Beat, session: Time, now: Time, settings: &Settings) -> bool {
        self.leave_storm(&beat.who.uid, now, settings);
        let fresh = Ear {
            node: beat.node.clone(),
            boot: beat.who.boot.clone(),
            heard: now,
            accepted: None,
            kill_bound: beat.kill_bound,
            armed: beat.armed,
            idle: beat.idle,
            council: beat.council,
            sent: beat.sent,
            session,
            pending: vec![(beat.sent, now)],
        };
        let term_began = self.leading_since();
        let Some(ear) = self.ears.get_mut(&beat.who.uid) else {
            self.ears.insert(beat.who.uid.clone(), fresh);
            return true;
        };
        if ear.boot != beat.who.boot {
            // Invariant P5 (C16).
            if session <= ear.heard {
                return false;
            }
            // The acceptance stays: fencing is per node uid, and an older boot's grant is no younger by a reboot.
            *ear = Ear { accepted: ear.accepted, ..fresh };
            return true;
        }
        // What comes late says how it was before what is known: a node that was idle then is not idle now. A new session
        // begins anew: the machine may have been set back to a snapshot.
        if beat.sent < ear.sent && session <= ear.heard {
            return false;
        }
        let is_of_term = |session: Time| term_began.is_some_and(|began| session >= began);
        let notable = now.since(ear.heard) >= settings.timing.suspect
            || (is_of_term(session) && !is_of_term(ear.session))
            || ear.idle != beat.idle
            || ear.council != beat.council
            || ear.armed != beat.armed
            || self.closing.contains_key(&beat.who.uid);
        let mut pending = std::mem::take(&mut ear.pending);
        if pending.len() == PENDING_MAX {
            pending.remove(0);
        }
        pending.push((beat.sent, now));
        *ear = Ear { accepted: ear.accepted, session: session.max(ear.session), pending, ..fresh };
        notable
    }

    /// A node that was late speaks again while most were late with it: this process, or the way to it, is what was away.
    /// They come back one by one, and the last ones are not to be taken for dead because the others were quicker: all
    /// silence counts from now, as upstream does when it leaves its master disruption (NLC-30 b).
    fn leave_storm(&mut self, uid: &Uid, now: Time, settings: &Settings) {
        let late = settings.timing.late();
        let is_late = |ear: &Ear| now.since(ear.heard) >= late;
        if self.ears.get(uid).is_some_and(is_late) {
            let together = self.ears.values().filter(|ear| is_late(ear)).count();
            if settings.timing.is_storm(count(together), count(self.ears.len())) {
                self.listening = now;
            }
        }
    }

    /// Takes an acknowledgement of a close in. Returns true if it counts.
    pub fn closed(&mut self, ack: &Closed, now: Time, settings: &Settings) -> bool {
        let Some((epoch, _)) = self.term else { return false };
        let Some(closing) = self.closing.get_mut(&ack.uid) else { return false };
        // Invariant C12.
        let this_close = ack.epoch == epoch && ack.seq == closing.seq;
        if !this_close && !settings.lacks(Flaw::AnyAck) {
            return false;
        }
        let counts_from = if ack.clean { now } else { now + settings.timing.answer_by_server() };
        let known = closing.acks.entry(ack.member.clone()).or_insert(counts_from);
        *known = (*known).min(counts_from);
        true
    }

    /// True if the boot that speaks cannot be an older one than the boot on record. A process that has not heard that one
    /// itself knows no order between the two; but whatever was recorded before its term was booted before its term, and
    /// a session that began later is of no boot that ended earlier. Invariant P5 (C16).
    pub(super) fn is_newer_than_record(&self, ear: &Ear, recorded: &BootId) -> bool {
        recorded.is_empty() || self.leading_since().is_none_or(|began| ear.session >= began)
    }

    fn next_seq(&mut self) -> CloseSeq {
        self.last_seq = self.last_seq.next();
        self.last_seq
    }
}

/// Answers the newest beat of each node that was received before `began`, the beginning of the read that confirmed the
/// term.
pub fn answer(world: &mut World, epoch: Epoch, began: Time, now: Time) -> Vec<(NodeName, Answer)> {
    let due: Vec<Uid> = world
        .pulse
        .ears
        .iter()
        // Invariant P2 (C11): received before the read began.
        .filter(|(_, ear)| ear.pending.first().is_some_and(|(_, received)| *received <= began))
        .map(|(uid, _)| uid.clone())
        .collect();
    let mut answers = Vec::new();
    for uid in due {
        let Some(ear) = world.pulse.ears.get(&uid) else { continue };
        let Some(&(sent, _)) = ear.pending.iter().rfind(|(_, received)| *received <= began) else { continue };
        let who = api::message::Incarnation { uid: uid.clone(), boot: ear.boot.clone() };
        let verdict = permission(world, &uid, ear);
        let node = ear.node.clone();
        let reply = match verdict {
            Permission::Wait => None,
            Permission::Denied => Some(Answer::Denied { who, sent, epoch }),
            Permission::Granted => Some(Answer::Grant(grant(world, who, sent, epoch, now))),
        };
        if let Some(ear) = world.pulse.ears.get_mut(&uid) {
            ear.pending.retain(|(_, received)| *received > began);
            if matches!(reply, Some(Answer::Grant(_))) {
                // Invariant P1.
                ear.accepted = Some(now);
            }
        }
        if matches!(reply, Some(Answer::Grant(_))) && world.pulse.greeted.insert(uid.clone()) {
            reopen(&mut world.pulse, &uid);
        }
        answers.extend(reply.map(|r| (node, r)));
    }
    answers
}

enum Permission {
    /// Say nothing: neither yes nor no would be right yet.
    Wait,
    Denied,
    Granted,
}

fn permission(world: &World, uid: &Uid, ear: &Ear) -> Permission {
    let settings = world.settings();
    // An agent whose Node object is gone gets no grant.
    let Some(node) = world.node_by_uid(uid) else { return Permission::Wait };
    // Without a council object no node could say which mode it is in.
    if world.council().is_none() {
        return Permission::Wait;
    }
    // A node that needs longer to kill than this cluster waits would be fenced too early.
    if ear.kill_bound > settings.timing.kill_bound {
        return Permission::Wait;
    }
    // Invariant P4 (C15).
    if node.recorded_boot() != ear.boot && !settings.lacks(Flaw::NoBoot) {
        return Permission::Wait;
    }
    let Some(incident) = world.open_incident(uid) else { return Permission::Granted };
    match incident.status.phase {
        IncidentPhase::Suspect | IncidentPhase::Dead => Permission::Granted,
        // Invariant P3 (C17).
        IncidentPhase::Fencing if settings.lacks(Flaw::RacingGrant) => Permission::Granted,
        IncidentPhase::Fencing => Permission::Wait,
        IncidentPhase::Fenced | IncidentPhase::Recovering if settings.lacks(Flaw::UnconfirmedGrant) => {
            Permission::Granted
        }
        IncidentPhase::Fenced | IncidentPhase::Recovering => Permission::Denied,
        IncidentPhase::Closed => Permission::Granted,
    }
}

fn grant(world: &World, who: api::message::Incarnation, sent: Stamp, epoch: Epoch, now: Time) -> Grant {
    let node = world.pulse.ear(&who.uid).map(|e| e.node.clone()).unwrap_or_default();
    let pods = world
        .exclusive_pods_on(&node)
        .filter(|pod| pod.node_uid() == who.uid && !pod.is_terminal())
        .map(|pod| pod.metadata.uid.clone())
        .collect();
    let recovering = now.since(world.started()) < world.settings().timing.patience;
    let council = world.council().and_then(|c| c.newest()).cloned();
    Grant { who, sent, epoch, pods, council, recovering }
}

/// Closes and opens that are due, per member. Starts a close for every incident in Fencing, ends it when the incident
/// is over.
pub fn gates(world: &mut World, now: Time) -> Vec<(NodeName, Gate)> {
    let Some((epoch, _)) = world.pulse.term else { return Vec::new() };
    let wanted: BTreeMap<Uid, IncidentPhase> = world
        .incidents()
        .filter(|i| i.is_open() && i.status.phase.forbids_grants())
        .map(|i| (i.spec.node_uid.clone(), i.status.phase))
        .collect();
    begin_and_end(world, &wanted);
    forget(world, now);
    let mut out = Vec::new();
    send_closes(world, &wanted, epoch, now, &mut out);
    send_opens(world, epoch, now, &mut out);
    out
}

fn begin_and_end(world: &mut World, wanted: &BTreeMap<Uid, IncidentPhase>) {
    let over: Vec<Uid> =
        world.pulse.closing.keys().filter(|uid| !wanted.contains_key(*uid)).cloned().collect();
    for uid in over {
        world.pulse.closing.remove(&uid);
        // A machine whose Node object is gone is never granted anything again, and stays closed for ever (C4): paused
        // before its death, it may wake into an outage and find its permission good.
        if world.node_by_uid(&uid).is_some() {
            reopen(&mut world.pulse, &uid);
        }
    }
    for uid in wanted.keys() {
        if !world.pulse.closing.contains_key(uid) {
            world.pulse.opening.remove(uid);
            let seq = world.pulse.next_seq();
            world.pulse.closing.insert(uid.clone(), Closing { seq, acks: BTreeMap::new(), sent: None });
        }
    }
}

fn reopen(pulse: &mut Pulse, uid: &Uid) {
    let seq = pulse.next_seq();
    let opening = Opening { seq, left: OPENS, pause: RESEND, sent: None };
    pulse.opening.insert(uid.clone(), opening);
}

/// Forgets machines whose Node object is gone and about which nothing is open. What is forgotten about a machine must not
/// be needed to wait for it: its last grant and its kill are long over.
fn forget(world: &mut World, now: Time) {
    let timing = &world.settings().timing;
    let over = timing.grant_by_server()
        + timing.answer_by_server()
        + timing.kill_by_server(timing.kill_bound)
        + timing.dead;
    let is_gone = |uid: &Uid| world.node_by_uid(uid).is_none() && world.open_incident(uid).is_none();
    let gone: Vec<Uid> = world
        .pulse
        .ears
        .iter()
        .filter(|(uid, ear)| {
            now.since(ear.heard.max(ear.accepted.unwrap_or_default())) > over && is_gone(uid)
        })
        .map(|(uid, _)| uid.clone())
        .collect();
    for uid in gone {
        world.pulse.ears.remove(&uid);
        world.pulse.opening.remove(&uid);
        world.pulse.greeted.remove(&uid);
    }
}

fn is_due(sent: Option<Time>, now: Time) -> bool {
    sent.is_none_or(|at| now.since(at) >= RESEND)
}

fn send_closes(
    world: &mut World,
    wanted: &BTreeMap<Uid, IncidentPhase>,
    epoch: Epoch,
    now: Time,
    out: &mut Vec<(NodeName, Gate)>,
) {
    let mut sent = Vec::new();
    for (uid, closing) in &world.pulse.closing {
        // Once it is fenced the close has done its work; it stays at the members until the incident is over.
        let needed = wanted.get(uid) == Some(&IncidentPhase::Fencing);
        if !needed || !is_due(closing.sent, now) {
            continue;
        }
        sent.push(uid.clone());
        for seat in council::seats_to_close(world, uid) {
            if !closing.acks.contains_key(&seat.node_uid) {
                let gate = Gate { wish: GateWish::Close, uid: uid.clone(), epoch, seq: closing.seq };
                out.push((seat.node_name, gate));
            }
        }
    }
    for uid in sent {
        if let Some(closing) = world.pulse.closing.get_mut(&uid) {
            closing.sent = Some(now);
        }
    }
}

fn send_opens(world: &mut World, epoch: Epoch, now: Time, out: &mut Vec<(NodeName, Gate)>) {
    if world.pulse.opening.is_empty() {
        return;
    }
    let seats = council::all_seats(world);
    for (uid, opening) in &mut world.pulse.opening {
        if opening.sent.is_some_and(|at| now.since(at) < opening.pause) {
            continue;
        }
        opening.sent = Some(now);
        opening.left = opening.left.saturating_sub(1);
        if opening.left == 0 {
            opening.pause = opening.pause.times(2).min(REOPEN_MAX);
        }
        for seat in &seats {
            let gate = Gate { wish: GateWish::Open, uid: uid.clone(), epoch, seq: opening.seq };
            out.push((seat.node_name.clone(), gate));
        }
    }
}

/// True if a beat of that node was received so recently that it cannot be called silent.
pub fn is_heard(world: &World, uid: &Uid, now: Time) -> bool {
    world.pulse.last_heard(uid).is_some_and(|at| now.since(at) < world.settings().timing.suspect)
}

/// True if the node spoke, in whatever boot, after that moment and still does.
pub fn speaks_since(world: &World, uid: &Uid, after: Time, now: Time) -> bool {
    is_heard(world, uid, now) && world.pulse.last_heard(uid).is_some_and(|at| at > after)
}

/// The recorded boot of the node that an incident is about; `None` if its Node object is gone.
pub fn recorded_boot(world: &World, incident: &NodeIncident) -> Option<BootId> {
    world.node_by_uid(&incident.spec.node_uid).map(|node: &Seen<Node>| node.recorded_boot())
}

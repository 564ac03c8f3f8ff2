//! The pure half of the driver: world, queue, pace, leadership.
//!
//! Responsible for: what is decided next and which actions go out. Leaves to a body (the server's driver, the
//! simulator) to feed changes and messages, to carry actions out in order until the first that does not succeed, and
//! to say how that ended. The same code runs live, in the simulator and in replay.
//!
//! Invariants:
//! - M1 (leadership barrier): a new leader acts on nothing before its world has reached the head that it read when it
//!   was elected.
//! - M2: a follower folds but does not decide, so that its world and pulse are warm; what it would have decided is
//!   decided at election, from the objects.
//! - Actions of one decision go out together, in order; a paced decision goes out whole or not at all.
//! - A panic in one decision quarantines that key, not the process.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

use api::flaw::Flaw;
use api::message::{Answer, Beat, Closed, Gate};
use api::view::View;
use api::{Duration, Epoch, NodeName, ObjectKey, Rev, Time};

use crate::controller::{CONTROLLERS, Change, Controller, Key, Layer};
use crate::decision::{Action, Decision, Note, Pace, Verb};
use crate::queue::{Job, Outcome, Queue};
use crate::world::{Settings, World, Zone, ZoneState};

/// How long a key whose decision panicked is left alone. One decision a minute of a poisoned object costs nothing, and
/// a fixed object is looked at within a minute.
const QUARANTINE: Duration = Duration::from_secs(60);
/// Decisions per call of [`Mind::step`]: bounds how long a body is away from its sockets.
const DECISIONS_PER_STEP: usize = 256;

/// Notes that are remembered as said. A note is the same note by its subject, reason and `once`; saying it again would
/// be another decision, and another, at the speed of the store. Half as many would still cover every pod of a dead node.
const SAID_MAX: usize = 16_384;

/// Actions that go out together.
#[derive(Debug)]
pub struct Sent {
    /// To be handed back with the outcome.
    pub ticket: Ticket,
    /// In order; stop at the first that does not succeed.
    pub actions: Vec<Action>,
}

/// Whose actions they were.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket {
    job: Job,
    wake: Option<Time>,
    term: Epoch,
    /// What will have been said once everything has succeeded.
    notes: Vec<NoteId>,
}

impl Ticket {
    /// The controller's name and the key, for traces.
    pub fn origin(&self) -> (&'static str, &Key) {
        (CONTROLLERS[self.job.controller].scope().name, &self.job.key)
    }

    /// The term in which it was decided: every write is compared with it.
    pub fn term(&self) -> Epoch {
        self.term
    }
}

/// Counts of what the mind did, as data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Decisions made.
    pub decisions: u64,
    /// Decisions that had actions.
    pub acted: u64,
    /// Decisions that panicked.
    pub panics: u64,
}

#[derive(Debug)]
struct Term {
    epoch: Epoch,
    /// The world must reach this first (M1).
    head: Rev,
    begun: bool,
}

/// See the module's header.
#[derive(Debug)]
pub struct Mind {
    /// What is known.
    pub world: World,
    queue: Queue,
    buckets: BTreeMap<Pace, Bucket>,
    term: Option<Term>,
    tally: Tally,
    why: BTreeMap<Job, Note>,
    said: Said,
}

/// A token bucket with a burst of one (NLC-23).
#[derive(Clone, Copy, Debug)]
struct Bucket {
    every: Option<Duration>,
    next: Time,
}

/// What makes a note the same note.
type NoteId = (ObjectKey, &'static str, String);

fn note_id(note: &Note) -> NoteId {
    (note.about.clone(), note.reason, note.once.clone())
}

/// The newest notes that were said.
#[derive(Debug, Default)]
struct Said {
    known: BTreeSet<NoteId>,
    order: VecDeque<NoteId>,
}

impl Said {
    fn contains(&self, note: &Note) -> bool {
        self.known.contains(&note_id(note))
    }

    fn insert(&mut self, note: &NoteId) {
        if self.known.insert(note.clone()) {
            self.order.push_back(note.clone());
        }
        while self.order.len() > SAID_MAX {
            if let Some(oldest) = self.order.pop_front() {
                self.known.remove(&oldest);
            }
        }
    }
}

// === impl Mind ===

impl Mind {
    /// A mind that knows nothing yet and does not lead.
    pub fn new(settings: Settings, now: Time) -> Self {
        Self {
            world: World::new(settings, now),
            queue: Queue::default(),
            buckets: BTreeMap::new(),
            term: None,
            tally: Tally::default(),
            why: BTreeMap::new(),
            said: Said::default(),
        }
    }

    /// Takes one change of one object in. Changes come in revision order.
    pub fn fold(&mut self, key: &ObjectKey, view: Option<View>, rev: Rev, now: Time) {
        self.world.stir(now);
        let changes = self.world.fold(key, view, rev, now);
        self.touch(&changes);
    }

    /// Everything up to `rev` is in.
    pub fn advance(&mut self, rev: Rev) {
        self.world.advance(rev);
    }

    /// This server was elected: `head` was read at that moment, before anything else.
    pub fn elected(&mut self, epoch: Epoch, head: Rev, now: Time) {
        self.world.stir(now);
        self.queue.clear();
        self.buckets.clear();
        self.why.clear();
        self.term = Some(Term { epoch, head, begun: false });
        self.world.pulse.elected(epoch, now);
    }

    /// This server does not lead any more. What is still under way is refused by its term.
    pub fn deposed(&mut self) {
        self.queue.clear();
        self.term = None;
        self.world.pulse.deposed();
    }

    /// The term in which this server leads and may act; `None` before M1 holds.
    pub fn leads(&self) -> Option<Epoch> {
        self.term.as_ref().filter(|t| t.begun).map(|t| t.epoch)
    }

    /// A beat arrived on a session that began at `session` (by this server's clock).
    pub fn hear(&mut self, beat: &Beat, session: Time, now: Time) {
        self.world.stir(now);
        if self.world.hear(beat, session, now) {
            self.touch(&[Change::Heard(beat.who.uid.clone())]);
        }
    }

    /// A member acknowledged a close.
    pub fn closed(&mut self, ack: &Closed, now: Time) {
        self.world.stir(now);
        if self.world.closed(ack, now) {
            self.touch(&[Change::Heard(ack.uid.clone())]);
        }
    }

    /// A linearizable read of the leader key that began at `began` says that this server still leads in `epoch`:
    /// beats received before may be answered (rule C11).
    pub fn confirmed(&mut self, epoch: Epoch, began: Time, now: Time) -> Vec<(NodeName, Answer)> {
        self.world.stir(now);
        if self.leads() != Some(epoch) {
            return Vec::new();
        }
        crate::node_death::answer(&mut self.world, epoch, began, now)
    }

    /// Closes and opens to be sent (again) to members.
    pub fn gates(&mut self, now: Time) -> Vec<(NodeName, Gate)> {
        self.world.stir(now);
        if self.leads().is_none() {
            return Vec::new();
        }
        crate::node_death::gates(&mut self.world, now)
    }

    /// Decides what is due and appends what goes out. Returns when to come again at the latest, if nothing happens.
    pub fn step(&mut self, now: Time, out: &mut Vec<Sent>) -> Option<Time> {
        self.world.stir(now);
        self.begin_term();
        let epoch = self.leads()?;
        for _ in 0..DECISIONS_PER_STEP {
            let Some(job) = self.queue.pop(self.barrier_revision(), now) else {
                return self.queue.next_deadline();
            };
            let decision = self.decide(&job, now);
            self.dispatch(job, decision, epoch, now, out);
        }
        Some(now)
    }

    /// How the actions of a ticket ended.
    pub fn settle(&mut self, ticket: &Ticket, outcome: Outcome, now: Time) {
        // A ticket of an earlier term belongs to a queue that is no more.
        if self.term.as_ref().is_some_and(|t| t.epoch == ticket.term) {
            if let Outcome::Done(_) = outcome {
                ticket.notes.iter().for_each(|note| self.said.insert(note));
            }
            self.queue.settle(&ticket.job, outcome, ticket.wake, now);
        }
    }

    /// What was done so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// What each key that has something to say waits for.
    pub fn reasons(&self) -> impl Iterator<Item = (&'static str, &Key, &Note)> {
        self.why.iter().map(|(job, note)| (CONTROLLERS[job.controller].scope().name, &job.key, note))
    }

    /// M1, and everything is looked at once.
    fn begin_term(&mut self) {
        let Some(term) = &mut self.term else { return };
        if term.begun || self.world.revision() < term.head {
            return;
        }
        term.begun = true;
        let everything = self.world.everything();
        self.touch(&everything);
    }

    fn barrier_revision(&self) -> Rev {
        // Invariant Q2, left out on purpose.
        if self.world.settings().lacks(Flaw::NoBarrier) { Rev(u64::MAX) } else { self.world.revision() }
    }

    fn touch(&mut self, changes: &[Change]) {
        if self.leads().is_none() {
            return;
        }
        let automatic = self.world.settings().is_automatic();
        let mut keys = Vec::new();
        for change in changes {
            for (controller, touched) in CONTROLLERS.iter().enumerate() {
                if touched.layer() == Layer::Automatic && !automatic {
                    continue;
                }
                touched.touched(change, &self.world, &mut keys);
                for key in keys.drain(..) {
                    let until = touched.patience(change, &self.world, &key);
                    let job = Job { controller, key };
                    match until {
                        Some(at) => self.queue.add_by(job, at),
                        None => self.queue.add(job),
                    }
                }
            }
        }
    }

    fn decide(&mut self, job: &Job, now: Time) -> Option<Decision> {
        self.tally.decisions += 1;
        let controller: &dyn Controller = CONTROLLERS[job.controller];
        let world = &self.world;
        // `decide` borrows the world immutably and returns a value, so nothing is left half done by a panic.
        catch_unwind(AssertUnwindSafe(|| controller.decide(world, &job.key, now))).ok()
    }

    fn dispatch(
        &mut self,
        job: Job,
        decision: Option<Decision>,
        epoch: Epoch,
        now: Time,
        out: &mut Vec<Sent>,
    ) {
        let Some(mut decision) = decision else {
            self.tally.panics += 1;
            self.queue.postpone(&job, now + QUARANTINE);
            return;
        };
        match decision.why {
            Some(note) => drop(self.why.insert(job.clone(), note)),
            None => drop(self.why.remove(&job)),
        }
        decision.actions.retain(|action| match &action.verb {
            Verb::Note(note) => !self.said.contains(note),
            Verb::Create(_) | Verb::Edit(..) | Verb::Delete(..) => true,
        });
        if decision.actions.is_empty() {
            self.queue.rest(&job, decision.wake);
            return;
        }
        if let Some(at) = self.no_token_before(&decision.actions, now) {
            self.queue.postpone(&job, at);
            return;
        }
        self.tally.acted += 1;
        let ids = |action: &Action| match &action.verb {
            Verb::Note(note) => Some(note_id(note)),
            Verb::Create(_) | Verb::Edit(..) | Verb::Delete(..) => None,
        };
        let notes = decision.actions.iter().filter_map(ids).collect();
        let ticket = Ticket { job, wake: decision.wake, term: epoch, notes };
        out.push(Sent { ticket, actions: decision.actions });
    }

    /// Takes a token for each paced action, or says when to come again.
    fn no_token_before(&mut self, actions: &[Action], now: Time) -> Option<Time> {
        for pace in actions.iter().filter_map(|a| a.pace.as_ref()) {
            let every = rate(&self.world, pace);
            let bucket = self.buckets.entry(pace.clone()).or_insert(Bucket { every, next: now });
            if bucket.every != every {
                // A swap of the rate gives no free token (NLC-23): an exhausted bucket stays exhausted.
                let exhausted = bucket.next > now;
                *bucket = Bucket {
                    every,
                    next: if exhausted { now + every.unwrap_or(Duration::ZERO) } else { now },
                };
            }
            match every {
                // A rate of zero is left by a change of the zone, which touches the key; look again now and then.
                None => return Some(now + QUARANTINE),
                Some(_) if bucket.next > now => return Some(bucket.next),
                Some(every) => bucket.next = now + every,
            }
        }
        None
    }
}

/// The pause between two tokens; `None` if there are none.
fn rate(world: &World, pace: &Pace) -> Option<Duration> {
    let Pace::Evict(zone) = pace;
    zone_rate(world, zone)
}

/// The rate of a zone in its state (table before NLC-30).
fn zone_rate(world: &World, zone: &Zone) -> Option<Duration> {
    let timing = &world.settings().timing;
    if world.zones().all_full() {
        return None;
    }
    let health = world.zones().health(zone)?;
    match health.state {
        ZoneState::Normal | ZoneState::FullDisruption => Some(timing.eviction_interval),
        ZoneState::PartialDisruption if (health.ready + health.not_ready) as u64 > timing.large_zone => {
            Some(timing.eviction_interval_secondary)
        }
        ZoneState::PartialDisruption => None,
    }
}

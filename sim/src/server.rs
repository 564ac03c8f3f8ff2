//! A server process: the real mind of `control`, and the driver around it.
//!
//! Responsible for: feeding the mind in revision order, carrying its actions out in order until the first that does
//! not succeed, sessions of nodes, answering beats only after a read of the leader key. Leaves to [`crate::lease`] who
//! leads, to [`crate::write`] the law of writes, to the mind every decision.
//!
//! Invariants: messages that wait are handed to the mind before it decides; what a mind hears is late, never wrong; a
//! process that died knows nothing when it starts again; a request that left before its sender died is carried out
//! all the same (unless the store died with it).

use std::collections::BTreeMap;

use api::flaw::Flaw;
use api::message::{Beat, Closed};
use api::{Duration, Epoch, Rev, Time};
use control::decision::Verb;
use control::mind::{Mind, Sent};
use control::queue::Outcome;
use control::world::Settings;

use crate::chance::Chance;
use crate::clock::{Clock, OFFSET_MAX};
use crate::cluster::Cluster;
use crate::event::{Event, Request, ServerEvent, ToMachine, ToServer};
use crate::lease::Lease;
use crate::network::Site;
use crate::observe::Observation;
use crate::write::Answered;

/// A watch that broke is opened again after this long.
const REWATCH: (Duration, Duration) = (Duration::from_ms(200), Duration::from_ms(800));
/// A request that got no answer is given up after this long.
const PATIENCE: Duration = Duration::from_ms(1500);
/// One commit of the embedded store.
const COMMIT: (Duration, Duration) = (Duration::from_ms(0), Duration::from_ms(4));
/// Closes and opens are looked at this often.
const GATE_TICK: (Duration, Duration) = (Duration::from_ms(100), Duration::from_ms(250));
/// Sessions of one machine that are remembered. The one that was idle for longest goes: a node that dials again and
/// again because answers are lost must not lose the one that works.
const SESSIONS_MAX: usize = 4;

/// Whether a server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Down,
    Up,
    /// Its machine is paused: what comes waits.
    Paused,
}

/// A stream of a node, as the server knows it.
#[derive(Clone, Copy, Debug)]
struct Session {
    machine: usize,
    /// When its handshake began, by this server's clock.
    began: Time,
    /// When a beat came over it, or else when it began.
    used: Time,
}

/// See the module's header.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) clock: Clock,
    pub(crate) life: u32,
    pub(crate) standing: Standing,
    /// What came while it was paused, in order.
    pub(crate) backlog: Vec<Event>,
    /// Gone with the process.
    pub(crate) mind: Option<Mind>,
    pub(crate) lease: Lease,
    /// Watches are late by so much more.
    pub(crate) stale: Duration,
    /// The entry of the log that the watch brings next.
    pub(crate) cursor: u64,
    /// What the delivery under way brings: log up to here, and the head then.
    mark: Option<(u64, Rev)>,
    sessions: BTreeMap<u64, Session>,
    last_session: u64,
    wake: Option<Time>,
    batch: bool,
}

/// Actions under way.
#[derive(Debug)]
pub(crate) struct Flight {
    server: usize,
    life: u32,
    sent: Sent,
    next: usize,
    /// The revision of the newest effect.
    rev: Rev,
}

impl Server {
    pub(crate) fn new(chance: &mut Chance, now: Time, drift_ppm: u32) -> Self {
        let local = now + chance.span(Duration::ZERO, OFFSET_MAX);
        let ppm = u32::try_from(chance.below(u64::from(drift_ppm) + 1)).unwrap_or(0);
        Self {
            clock: Clock::new(now, local, ppm, chance.per_mille(500)),
            life: 0,
            standing: Standing::Down,
            backlog: Vec::new(),
            mind: None,
            lease: Lease::default(),
            stale: Duration::ZERO,
            cursor: 0,
            mark: None,
            sessions: BTreeMap::new(),
            last_session: 0,
            wake: None,
            batch: false,
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.standing != Standing::Down
    }
}

// === life ===

impl Cluster {
    /// The process starts: an empty mind, then everything that is.
    pub(crate) fn start_server(&mut self, index: usize) {
        let server = &mut self.servers[index];
        if server.is_up() {
            return;
        }
        server.life += 1;
        server.standing = Standing::Up;
        let now = server.clock.local(self.now);
        let settings = Settings { timing: self.config.timing, flaw: self.config.flaw };
        let mut mind = Mind::new(settings, now);
        let mut objects: Vec<_> =
            self.truth.objects().map(|(key, object)| (object.rev, key, &object.view)).collect();
        objects.sort_unstable_by_key(|(rev, _, _)| *rev);
        for (rev, key, view) in objects {
            mind.fold(key, view.clone(), rev, now);
        }
        mind.advance(self.truth.head());
        server.mind = Some(mind);
        server.cursor = self.truth.log_end();
        server.lease = Lease::default();
        server.last_session += 1000;
        self.forget_flights(index);
        self.state(Observation::Server { server: index, up: true });
        let soon = self.chance.span(Duration::from_ms(5), Duration::from_ms(300));
        self.later_in_server(index, soon, ServerEvent::LeaseTick);
        self.later_in_server(index, soon, ServerEvent::GateTick);
        self.watch_soon(index);
    }

    /// The process dies, and with it everything it knew.
    pub(crate) fn crash_server(&mut self, index: usize) {
        let server = &mut self.servers[index];
        if !server.is_up() {
            return;
        }
        if let Some(mind) = server.mind.take() {
            self.past.decisions += mind.tally().decisions;
            self.past.panics += mind.tally().panics;
        }
        server.standing = Standing::Down;
        server.clock.go(self.now);
        server.backlog.clear();
        server.sessions.clear();
        server.mark = None;
        server.wake = None;
        server.batch = false;
        self.state(Observation::Server { server: index, up: false });
    }

    /// Nothing of the server moves.
    pub(crate) fn pause_server(&mut self, index: usize, clock_runs: bool) {
        let server = &mut self.servers[index];
        if server.standing == Standing::Up {
            server.standing = Standing::Paused;
            if !clock_runs {
                server.clock.stop(self.now);
            }
        }
    }

    /// It goes on; what came meanwhile is handled now, in order. Messages that wait are read before anything is decided:
    /// a driver that decided first would take everybody for silent.
    pub(crate) fn resume_server(&mut self, index: usize) {
        let server = &mut self.servers[index];
        if server.standing == Standing::Paused {
            server.standing = Standing::Up;
            server.clock.go(self.now);
            let waiting = std::mem::take(&mut server.backlog);
            let (messages, timers): (Vec<_>, Vec<_>) =
                waiting.into_iter().partition(|event| matches!(event, Event::ToServer { .. }));
            for event in messages.into_iter().chain(timers) {
                self.agenda.put(self.now, event);
            }
        }
    }

    /// True if the event is for a server that cannot take it now; a paused one keeps it.
    pub(crate) fn hold_for_server(&mut self, index: usize, event: Event) -> Option<Event> {
        match self.servers[index].standing {
            Standing::Up => Some(event),
            Standing::Paused => {
                self.servers[index].backlog.push(event);
                None
            }
            Standing::Down => None,
        }
    }

    pub(crate) fn later_in_server(&mut self, server: usize, after: Duration, what: ServerEvent) {
        let life = self.servers[server].life;
        self.agenda.put(self.now + after, Event::Server { server, life, what });
    }

    pub(crate) fn server_event(&mut self, server: usize, what: ServerEvent) {
        match what {
            ServerEvent::Wake => {
                if self.servers[server].wake.is_some_and(|at| at <= self.now) {
                    self.servers[server].wake = None;
                    self.think(server);
                }
            }
            ServerEvent::Feed => self.feed(server),
            ServerEvent::LeaseTick => self.lease_tick(server),
            ServerEvent::Lease(answer) => self.lease_answer(server, answer),
            ServerEvent::Batch => self.batch(server),
            ServerEvent::Confirmed { epoch, began, leads } => self.confirmed(server, epoch, began, leads),
            ServerEvent::GateTick => self.gate_tick(server),
            ServerEvent::Acted { flight, answered } => self.acted(server, flight, answered),
            ServerEvent::Head { flight, head } => self.head_known(server, flight, head),
        }
    }

    pub(crate) fn message_to_server(&mut self, server: usize, message: ToServer) {
        match message {
            ToServer::Hello { machine, boot } => self.hello(server, machine, boot),
            ToServer::Beat { machine, session, beat } => self.beat(server, machine, session, &beat),
            ToServer::Closed(ack) => self.closed(server, &ack),
            ToServer::Call(call) => self.call_at_server(server, &call),
        }
    }
}

// === the way to the store ===

impl Cluster {
    /// True if the store is inside the only server.
    pub(crate) fn store_is_embedded(&self) -> bool {
        self.servers.len() == 1
    }

    /// How long one way between a server and the store takes; `None` if it is cut.
    pub(crate) fn way_to_store(&mut self, server: usize) -> Option<Duration> {
        if self.store_is_embedded() {
            return Some(self.chance.span(COMMIT.0, COMMIT.1));
        }
        self.network.stream(&mut self.chance, Site::Server(server), Site::Store)
    }

    pub(crate) fn store_connects(&self, server: usize) -> bool {
        self.store_is_embedded() || self.network.connects(Site::Server(server), Site::Store)
    }

    /// Sends a request. False if it could not be sent at all.
    pub(crate) fn ask_store(&mut self, server: usize, request: Request) -> bool {
        let Some(delay) = self.way_to_store(server) else { return false };
        let life = self.servers[server].life;
        self.agenda.put(self.now + delay, Event::AtStore { server, life, request });
        true
    }

    /// Sends the store's answer back, unless it is lost. True if it is on its way.
    pub(crate) fn answer_server(&mut self, server: usize, life: u32, what: ServerEvent) {
        let lost = self.chance.per_mille(self.lose_answers);
        let way = self.way_to_store(server).filter(|_| !lost);
        let (delay, what) = match (way, what) {
            (Some(delay), what) => (delay, what),
            // The caller learns by its own patience that no answer comes.
            (None, ServerEvent::Acted { flight, .. }) => {
                (PATIENCE, ServerEvent::Acted { flight, answered: Answered::Unknown })
            }
            (None, ServerEvent::Head { flight, .. }) => (PATIENCE, ServerEvent::Head { flight, head: None }),
            (
                None,
                ServerEvent::Wake
                | ServerEvent::Feed
                | ServerEvent::LeaseTick
                | ServerEvent::Lease(_)
                | ServerEvent::Batch
                | ServerEvent::Confirmed { .. }
                | ServerEvent::GateTick,
            ) => return,
        };
        self.agenda.put(self.now + delay, Event::Server { server, life, what });
    }

    /// A request is at the store.
    pub(crate) fn at_store(&mut self, server: usize, life: u32, request: Request) {
        let gone = self.servers[server].life != life || !self.servers[server].is_up();
        if gone && self.store_is_embedded() {
            return;
        }
        let what = match request {
            Request::Act { flight } => {
                let answered = self.act(flight);
                ServerEvent::Acted { flight, answered }
            }
            Request::Head { flight } => ServerEvent::Head { flight, head: Some(self.truth.head()) },
            Request::Confirm { epoch, began } => {
                let leads = self.truth.leader().is_some_and(|l| l.server == server && l.epoch == epoch);
                ServerEvent::Confirmed { epoch, began, leads }
            }
            Request::Look | Request::Take { .. } | Request::Renew { .. } => {
                ServerEvent::Lease(self.lease_at_store(server, request))
            }
        };
        self.answer_server(server, life, what);
    }
}

// === the watch ===

impl Cluster {
    /// Something was written: every server that runs hears of it after a while.
    pub(crate) fn watch_all(&mut self) {
        for server in 0..self.servers.len() {
            self.watch_soon(server);
        }
    }

    /// Lets the watch bring what is there now, unless a delivery is under way; the rest comes with the next one.
    fn watch_soon(&mut self, index: usize) {
        let server = &self.servers[index];
        if !server.is_up() || server.mark.is_some() {
            return;
        }
        let delay = self.way_to_store(index).unwrap_or(REWATCH.0) + self.servers[index].stale;
        self.servers[index].mark = Some((self.truth.log_end(), self.truth.head()));
        self.later_in_server(index, delay, ServerEvent::Feed);
    }

    fn feed(&mut self, index: usize) {
        if !self.store_connects(index) {
            let later = self.chance.span(REWATCH.0, REWATCH.1);
            self.later_in_server(index, later, ServerEvent::Feed);
            return;
        }
        let server = &mut self.servers[index];
        let Some((end, rev)) = server.mark.take() else { return };
        let Some(mind) = &mut server.mind else { return };
        let now = server.clock.local(self.now);
        for change in self.truth.log(server.cursor, end) {
            mind.fold(&change.key, change.new.clone(), change.rev, now);
        }
        mind.advance(rev);
        server.cursor = server.cursor.max(end);
        if self.truth.head() > rev {
            self.watch_soon(index);
        }
        self.forget_log();
        self.think(index);
    }

    /// Forgets what every server has read.
    fn forget_log(&mut self) {
        let read = self.servers.iter().filter(|s| s.is_up()).map(|s| s.cursor).min();
        if let Some(read) = read {
            self.truth.forget(read);
        }
    }
}

// === deciding and acting ===

impl Cluster {
    /// Lets the mind decide, sends out what it wants, and sets the next wake-up.
    pub(crate) fn think(&mut self, index: usize) {
        let mut out = std::mem::take(&mut self.sent);
        let server = &mut self.servers[index];
        let Some(mind) = &mut server.mind else { return };
        let next = mind.step(server.clock.local(self.now), &mut out);
        if let Some(local) = next {
            let at = server.clock.virtual_of(local).max(self.now + Duration::from_ms(1));
            self.wake_server(index, at);
        }
        for sent in out.drain(..) {
            self.last_flight += 1;
            let (life, rev) = (self.servers[index].life, Rev::default());
            self.flights.insert(self.last_flight, Flight { server: index, life, sent, next: 0, rev });
            self.send_action(index, self.last_flight);
        }
        self.sent = out;
    }

    fn wake_server(&mut self, index: usize, at: Time) {
        if self.servers[index].wake.is_none_or(|set| at < set) {
            self.servers[index].wake = Some(at);
            self.later_in_server(index, at.since(self.now), ServerEvent::Wake);
        }
    }

    /// Sends the next action. Notes are written beside the way: nothing waits for them.
    fn send_action(&mut self, server: usize, flight: u64) {
        let Some(flying) = self.flights.get_mut(&flight) else { return };
        let mut notes = Vec::new();
        while let Some(Verb::Note(note)) = flying.sent.actions.get(flying.next).map(|action| &action.verb) {
            notes.push(note.clone());
            flying.next += 1;
        }
        let (is_over, rev) = (flying.next >= flying.sent.actions.len(), flying.rev);
        for note in notes {
            self.state(Observation::Noted(note));
        }
        if is_over {
            let answered = Answered::Done(rev);
            self.later_in_server(server, Duration::from_ms(1), ServerEvent::Acted { flight, answered });
            return;
        }
        if !self.ask_store(server, Request::Act { flight }) {
            // Refused at once, or sent into the void: the sender cannot tell which.
            let (delay, answered) = if self.chance.per_mille(500) {
                (Duration::from_ms(5), Answered::Unavailable)
            } else {
                (PATIENCE, Answered::Unknown)
            };
            self.later_in_server(server, delay, ServerEvent::Acted { flight, answered });
        }
    }

    /// The store carries out the next action of a flight.
    fn act(&mut self, id: u64) -> Answered {
        let Some(flight) = self.flights.remove(&id) else { return Answered::Unavailable };
        let answered = match flight.sent.actions.get(flight.next) {
            Some(action) => self.carry_out(flight.server, &flight.sent.ticket, action),
            None => Answered::Done(flight.rev),
        };
        self.flights.insert(id, flight);
        answered
    }

    fn acted(&mut self, server: usize, id: u64, answered: Answered) {
        let Some(flight) = self.flights.get_mut(&id) else { return };
        match answered {
            Answered::Done(rev) => {
                flight.rev = flight.rev.max(rev);
                flight.next += 1;
                if flight.next < flight.sent.actions.len() {
                    self.send_action(server, id);
                } else {
                    let rev = flight.rev;
                    self.settle(server, id, Outcome::Done(rev));
                }
            }
            Answered::Stale(rev) => self.settle(server, id, Outcome::Stale(rev)),
            Answered::Exists(rev) => self.settle(server, id, Outcome::Stale(rev)),
            Answered::NotFound(rev) => self.settle(server, id, Outcome::Stale(rev)),
            Answered::Refused => self.settle(server, id, Outcome::Refused),
            Answered::Unavailable => self.settle(server, id, Outcome::Later),
            Answered::Deposed => {
                self.settle(server, id, Outcome::Later);
                self.step_down(server);
            }
            Answered::Unknown => self.read_head(server, id),
        }
    }

    /// An answer was lost: the head is read, as often as it takes, and the key waits for it.
    fn read_head(&mut self, server: usize, flight: u64) {
        if !self.ask_store(server, Request::Head { flight }) {
            self.later_in_server(server, PATIENCE, ServerEvent::Head { flight, head: None });
        }
    }

    fn head_known(&mut self, server: usize, flight: u64, head: Option<Rev>) {
        match head {
            Some(head) => self.settle(server, flight, Outcome::Unclear(head)),
            None => self.read_head(server, flight),
        }
    }

    fn settle(&mut self, index: usize, id: u64, outcome: Outcome) {
        let Some(flight) = self.flights.remove(&id) else { return };
        let server = &mut self.servers[index];
        if let Some(mind) = &mut server.mind
            && server.life == flight.life
        {
            mind.settle(&flight.sent.ticket, outcome, server.clock.local(self.now));
            self.think(index);
        }
    }

    /// What was decided in the lives before the last is forgotten; of the last, a request may still be on its way.
    fn forget_flights(&mut self, server: usize) {
        let life = self.servers[server].life;
        self.flights.retain(|_, f| f.server != server || f.life + 1 >= life);
    }
}

// === beats ===

impl Cluster {
    fn hello(&mut self, index: usize, machine: usize, boot: u32) {
        let server = &mut self.servers[index];
        server.last_session += 1;
        let session = server.last_session;
        let began = server.clock.local(self.now);
        server.sessions.insert(session, Session { machine, began, used: began });
        let of_machine = server.sessions.iter().filter(|(_, s)| s.machine == machine);
        let idle = of_machine.clone().min_by_key(|(id, s)| (s.used, **id)).map(|(id, _)| *id);
        if of_machine.count() > SESSIONS_MAX
            && let Some(idle) = idle
        {
            server.sessions.remove(&idle);
        }
        self.send_machine(Site::Server(index), machine, ToMachine::Welcome { server: index, session, boot });
    }

    fn beat(&mut self, index: usize, machine: usize, session: u64, beat: &Beat) {
        let server = &mut self.servers[index];
        let now = server.clock.local(self.now);
        let Some(known) = server.sessions.get_mut(&session).filter(|s| s.machine == machine) else {
            self.send_machine(Site::Server(index), machine, ToMachine::Unknown { server: index, session });
            return;
        };
        known.used = now;
        let began = known.began;
        let Some(mind) = &mut server.mind else { return };
        mind.hear(beat, began, now);
        if server.lease.term().is_some() && !server.batch {
            server.batch = true;
            let most = self.config.timing.leader_read;
            let wait = self.chance.span(most.ratio_down(1, 2), most);
            self.later_in_server(index, wait, ServerEvent::Batch);
        }
        if self.servers[index].lease.term().is_some() {
            self.wake_server(index, self.now + Duration::from_ms(1));
        }
    }

    /// Beats are answered after a read of the leader key that begins now.
    fn batch(&mut self, index: usize) {
        let server = &mut self.servers[index];
        server.batch = false;
        let began = server.clock.local(self.now);
        let Some(epoch) = server.lease.term() else { return };
        if self.config.flaw == Some(Flaw::LeaderClock) {
            let leads = server.lease.holds(began);
            self.confirmed(index, epoch, began, leads);
            return;
        }
        self.ask_store(index, Request::Confirm { epoch, began });
    }

    fn confirmed(&mut self, index: usize, epoch: Epoch, began: Time, leads: bool) {
        if !leads {
            if self.servers[index].lease.term() == Some(epoch) {
                self.step_down(index);
            }
            return;
        }
        let server = &mut self.servers[index];
        let Some(mind) = &mut server.mind else { return };
        let answers = mind.confirmed(epoch, began, server.clock.local(self.now));
        for (node, answer) in answers {
            if let Some(machine) = self.names.get(&node) {
                self.send_machine(Site::Server(index), *machine, ToMachine::Answer(Box::new(answer)));
            }
        }
        self.think(index);
    }

    fn gate_tick(&mut self, index: usize) {
        let again = self.chance.span(GATE_TICK.0, GATE_TICK.1);
        self.later_in_server(index, again, ServerEvent::GateTick);
        let server = &mut self.servers[index];
        let Some(mind) = &mut server.mind else { return };
        for (node, gate) in mind.gates(server.clock.local(self.now)) {
            if let Some(machine) = self.names.get(&node) {
                self.send_machine(Site::Server(index), *machine, ToMachine::Gate(gate));
            }
        }
    }

    fn closed(&mut self, index: usize, ack: &Closed) {
        let server = &mut self.servers[index];
        let Some(mind) = &mut server.mind else { return };
        mind.closed(ack, server.clock.local(self.now));
        self.think(index);
    }

    /// A datagram to a machine.
    pub(crate) fn send_machine(&mut self, from: Site, machine: usize, message: ToMachine) {
        if let Some(delay) = self.network.datagram(&mut self.chance, from, Site::Machine(machine)) {
            self.agenda.put(self.now + delay, Event::ToMachine { machine, message });
        }
    }

    /// A datagram to a server.
    pub(crate) fn send_server(&mut self, machine: usize, server: usize, message: ToServer) {
        let way = self.network.datagram(&mut self.chance, Site::Machine(machine), Site::Server(server));
        if let Some(delay) = way {
            self.agenda.put(self.now + delay, Event::ToServer { server, message });
        }
    }
}

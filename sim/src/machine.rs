//! A machine: power, boots, a clock, a disk that loses what was not synced, memory that power takes away.
//!
//! Responsible for: what a machine is made of, power and suspension, its disk. Leaves to [`crate::guardian`] the guard
//! process and the watchdog, to [`crate::node`] the agent process, to [`crate::runtime`] what runs.
//!
//! Invariants: an event of another boot never reaches a process; a suspended machine does nothing at all; what was
//! not synced may be lost by a power cut, what was synced is not.

use agent::guard::{Guard, Record, Status};
use agent::{Agent, Ledger, Note, OpId};
use api::{BootId, Duration, NodeName, Time, Uid};

use crate::chance::Chance;
use crate::clock::{Clock, OFFSET_MAX};
use crate::cluster::Cluster;
use crate::config::NodeConfig;
use crate::event::{Event, MachineEvent, ToMachine};
use crate::node::Watch;
use crate::observe::Observation;
use crate::runtime::Host;

/// From the kernel's start to the guard's.
const GUARD_BOOT: (Duration, Duration) = (Duration::from_ms(50), Duration::from_ms(400));
/// From the kernel's start to the agent's.
const AGENT_BOOT: (Duration, Duration) = (Duration::from_ms(300), Duration::from_ms(1200));
/// One sync of a note to the disk.
const SYNC: (Duration, Duration) = (Duration::from_ms(0), Duration::from_ms(12));
/// From a reset to the kernel's start.
pub(crate) const FIRMWARE: (Duration, Duration) = (Duration::from_secs(4), Duration::from_secs(15));

/// See the module's header.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) name: NodeName,
    pub(crate) zone: String,
    pub(crate) clock: Clock,
    /// How many boots there were.
    pub(crate) boots: u32,
    pub(crate) boot: BootId,
    pub(crate) powered: bool,
    pub(crate) suspended: bool,
    /// What came while it was suspended, in order.
    pub(crate) backlog: Vec<Event>,

    /// On the disk, synced.
    pub(crate) disk: Ledger,
    /// Written and not synced, in order.
    pub(crate) unsynced: Vec<(u64, Note)>,
    pub(crate) last_note: u64,

    /// On tmpfs: the guard's record, and who the node is.
    pub(crate) record: Option<Record>,
    pub(crate) identity: Uid,
    /// In shared memory: what the guard last said.
    pub(crate) page: Option<Status>,

    pub(crate) guard: Option<Guard>,
    pub(crate) guard_life: u32,
    pub(crate) guard_wake: Option<Time>,
    /// When the watchdog was last fed, and how often it was.
    pub(crate) fed: (Time, u32),
    /// The kill under way: its number, and the newest act on pods when it began.
    pub(crate) kill_run: Option<(u32, u64)>,
    pub(crate) kill_runs: u32,

    pub(crate) agent: Option<Box<Agent>>,
    pub(crate) agent_life: u32,
    pub(crate) agent_wake: Option<Time>,
    /// Sessions with servers, by index.
    pub(crate) sessions: Vec<Line>,
    /// When a leader last answered a beat, and when sessions were last dialled again for want of an answer.
    pub(crate) answered: Time,
    pub(crate) redialled: Time,
    pub(crate) watch: Watch,

    pub(crate) host: Host,
}

/// A session with one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// None, or asked for at that time.
    Closed(Time),
    /// Open under that number.
    Open(u64),
}

impl Machine {
    pub(crate) fn new(
        config: &NodeConfig,
        chance: &mut Chance,
        now: Time,
        drift_ppm: u32,
        servers: usize,
    ) -> Self {
        let local = now + chance.span(Duration::ZERO, OFFSET_MAX);
        let ppm = u32::try_from(chance.below(u64::from(drift_ppm) + 1)).unwrap_or(0);
        Self {
            name: config.name.clone(),
            zone: config.zone.clone(),
            clock: Clock::new(now, local, ppm, chance.per_mille(500)),
            boots: 0,
            boot: BootId::default(),
            powered: false,
            suspended: false,
            backlog: Vec::new(),
            disk: Ledger::default(),
            unsynced: Vec::new(),
            last_note: 0,
            record: None,
            identity: Uid::default(),
            page: None,
            guard: None,
            guard_life: 0,
            guard_wake: None,
            fed: (now, 0),
            kill_run: None,
            kill_runs: 0,
            agent: None,
            agent_life: 0,
            agent_wake: None,
            sessions: vec![Line::Closed(Time::ZERO); servers],
            answered: now,
            redialled: now,
            watch: Watch::default(),
            host: Host::default(),
        }
    }

    /// What its clock shows.
    pub(crate) fn local(&self, now: Time) -> Time {
        self.clock.local(now)
    }

    /// What a process that starts now reads from the disk: also what was written and not yet synced.
    pub(crate) fn read_disk(&self) -> Ledger {
        let mut ledger = self.disk.clone();
        for (_, note) in &self.unsynced {
            ledger.fold(note.clone());
        }
        ledger
    }

    /// The processes are gone, with everything that they alone knew.
    fn forget_processes(&mut self) {
        self.guard = None;
        self.guard_wake = None;
        self.kill_run = None;
        self.agent = None;
        self.agent_wake = None;
        self.watch = Watch::default();
        self.sessions.fill(Line::Closed(Time::ZERO));
    }
}

// === power ===

impl Cluster {
    /// The machine boots.
    pub(crate) fn power_on(&mut self, index: usize) {
        let machine = &mut self.machines[index];
        if machine.powered {
            return;
        }
        machine.powered = true;
        machine.boots += 1;
        machine.boot = BootId::from(format!("boot-{}-{}", machine.name, machine.boots));
        machine.fed = (self.now, machine.fed.1 + 1);
        let (name, boot) = (machine.name.clone(), machine.boot.clone());
        self.state(Observation::PoweredOn { machine: name, boot });
        let guard = self.chance.span(GUARD_BOOT.0, GUARD_BOOT.1);
        let agent = self.chance.span(AGENT_BOOT.0, AGENT_BOOT.1);
        self.in_machine(index, guard, MachineEvent::GuardStart);
        self.in_machine(index, agent, MachineEvent::AgentStart);
    }

    /// Every process ends at once; what was not synced may be lost, and with it everything written later.
    pub(crate) fn power_off(&mut self, index: usize) {
        if !self.machines[index].powered {
            return;
        }
        let machine = &mut self.machines[index];
        machine.powered = false;
        machine.suspended = false;
        machine.clock.go(self.now);
        machine.backlog.clear();
        machine.forget_processes();
        machine.record = None;
        machine.identity = Uid::default();
        machine.page = None;
        let survive = self.chance.index(machine.unsynced.len() + 1);
        for (_, note) in machine.unsynced.drain(..).take(survive) {
            machine.disk.fold(note);
        }
        let name = machine.name.clone();
        self.host_lost_power(index);
        self.state(Observation::PoweredOff(name));
    }

    /// Power comes back after a while, unless it came back otherwise before.
    pub(crate) fn power_on_after(&mut self, index: usize, after: Duration) {
        let boots = self.machines[index].boots;
        self.agenda.put(self.now + after, Event::PowerOn { machine: index, after: boots });
    }

    /// Off, and on again by itself.
    pub(crate) fn reset(&mut self, index: usize) {
        self.power_off(index);
        let after = self.chance.span(FIRMWARE.0, FIRMWARE.1);
        self.power_on_after(index, after);
    }

    /// Nothing moves.
    pub(crate) fn suspend(&mut self, index: usize, clock_runs: bool) {
        let machine = &mut self.machines[index];
        if !machine.powered || machine.suspended {
            return;
        }
        machine.suspended = true;
        if !clock_runs {
            machine.clock.stop(self.now);
        }
        let name = machine.name.clone();
        self.state(Observation::Suspended { machine: name, clock_runs });
    }

    /// It goes on: what came meanwhile is handled now. Timers and messages race after a thaw, so their order is drawn.
    pub(crate) fn resume(&mut self, index: usize) {
        let machine = &mut self.machines[index];
        if !machine.powered || !machine.suspended {
            return;
        }
        machine.suspended = false;
        machine.clock.go(self.now);
        let mut waiting = std::mem::take(&mut machine.backlog);
        let name = machine.name.clone();
        self.state(Observation::Resumed(name));
        while !waiting.is_empty() {
            let next = if self.chance.per_mille(250) { self.chance.index(waiting.len()) } else { 0 };
            let event = waiting.remove(next);
            self.agenda.put(self.now, event);
        }
    }

    /// The event, if the machine can take it now; a suspended one keeps it.
    pub(crate) fn hold_for_machine(&mut self, index: usize, event: Event) -> Option<Event> {
        let machine = &mut self.machines[index];
        if !machine.powered {
            return None;
        }
        if machine.suspended {
            machine.backlog.push(event);
            return None;
        }
        Some(event)
    }

    /// Something will happen inside this boot of a machine.
    pub(crate) fn in_machine(&mut self, machine: usize, after: Duration, what: MachineEvent) {
        let boot = self.machines[machine].boots;
        self.agenda.put(self.now + after, Event::Machine { machine, boot, what });
    }

    pub(crate) fn machine_event(&mut self, machine: usize, what: MachineEvent) {
        let (guard_life, agent_life) = (self.machines[machine].guard_life, self.machines[machine].agent_life);
        match what {
            MachineEvent::GuardWake { life } if life == guard_life => self.guard_wake(machine),
            MachineEvent::KillProcesses { run } => self.kill_processes(machine, run),
            MachineEvent::KillMounts { run } => self.kill_mounts(machine, run),
            MachineEvent::GuardStart => self.start_guard(machine),
            MachineEvent::Watchdog { fed } => self.watchdog(machine, fed),
            MachineEvent::AgentWake { life } if life == agent_life => self.agent_wake(machine),
            MachineEvent::AgentStart => self.start_agent(machine),
            MachineEvent::PodAct { work } => self.end_work(machine, work),
            MachineEvent::Exit { pod, round } => self.containers_exit(machine, &pod, round),
            MachineEvent::Synced { life, note, op } => self.synced(machine, life == agent_life, note, op),
            MachineEvent::Called { life, op, outcome } if life == agent_life => {
                self.agent_step(machine, agent::Event::Done { id: op, outcome });
            }
            MachineEvent::Feed { life } if life == agent_life => self.watch_feed(machine),
            MachineEvent::Dial { life } if life == agent_life => self.dial(machine),
            MachineEvent::Listed { life, server, server_life } if life == agent_life => {
                self.listed(machine, server, server_life);
            }
            MachineEvent::ShutDown { off_for } => {
                self.power_off(machine);
                self.power_on_after(machine, off_for);
            }
            // Of a process that is no more.
            MachineEvent::GuardWake { .. }
            | MachineEvent::AgentWake { .. }
            | MachineEvent::Called { .. }
            | MachineEvent::Feed { .. }
            | MachineEvent::Dial { .. }
            | MachineEvent::Listed { .. } => {}
        }
    }

    pub(crate) fn message_to_machine(&mut self, index: usize, message: ToMachine) {
        match message {
            ToMachine::Welcome { server, session, boot } => {
                if self.machines[index].boots == boot {
                    self.machines[index].sessions[server] = Line::Open(session);
                }
            }
            ToMachine::Unknown { server, session } => {
                if self.machines[index].sessions[server] == Line::Open(session) {
                    self.machines[index].sessions[server] = Line::Closed(Time::ZERO);
                    self.say_hello(index, server);
                }
            }
            ToMachine::Answer(answer) => self.beat_answered(index, *answer),
            ToMachine::Ask { from, ask } => self.agent_step(index, agent::Event::Asked { from, ask }),
            ToMachine::NoneHere(none) => self.guard_step(index, agent::guard::Event::NoneHere(none)),
            ToMachine::Gate(gate) => self.agent_step(index, agent::Event::Gate(gate)),
        }
    }
}

// === the disk ===

impl Cluster {
    /// Writes a note and syncs it.
    pub(crate) fn keep(&mut self, index: usize, op: OpId, note: Note) {
        let machine = &mut self.machines[index];
        machine.last_note += 1;
        machine.unsynced.push((machine.last_note, note));
        let what = MachineEvent::Synced { life: machine.agent_life, note: machine.last_note, op };
        let wait = self.chance.span(SYNC.0, SYNC.1);
        self.in_machine(index, wait, what);
    }

    /// A sync is done: everything written up to that note is on the disk.
    fn synced(&mut self, index: usize, same_life: bool, note: u64, op: OpId) {
        let machine = &mut self.machines[index];
        let done = machine.unsynced.partition_point(|(number, _)| *number <= note);
        for (_, note) in machine.unsynced.drain(..done) {
            machine.disk.fold(note);
        }
        if same_life {
            self.agent_step(index, agent::Event::Done { id: op, outcome: agent::Outcome::Kept });
        }
    }
}

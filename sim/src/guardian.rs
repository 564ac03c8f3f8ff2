//! The body of the guard: its process, its timer, its kill, and the watchdog that stands behind it.
//!
//! Responsible for: driving the real `agent::Guard` by the machine's clock, within the kill bound that the machine
//! declared. Leaves to the guard every decision, to [`crate::runtime`] what a kill ends.
//!
//! The parts of the kill bound: the timer fires up to `guard_wake` late, processes take up to `cgroup_kill` to die,
//! mounts up to `unmount` to be pulled. If the guard dies, nobody feeds the watchdog and the machine is reset
//! `watchdog` + `watchdog_reset` after the last feeding at the latest, unless its supervisor starts it before.

use agent::guard::{Event as GuardEvent, Guard, Kill, Op, Start};
use api::flaw::Flaw;
use api::message::{Incarnation, Stamp};
use api::timing::Timing;
use api::{Duration, Time};

use crate::chance::Chance;
use crate::cluster::Cluster;
use crate::event::MachineEvent;

/// This share of timers, per mille, is as late as the bound allows; the others are punctual.
const LATE_WAKES: u32 = 30;
const PUNCTUAL: Duration = Duration::from_ms(3);
/// This share of kills, per mille, leaves something alive: a process in uninterruptible sleep.
const STUBBORN: u32 = 10;
/// Beyond the kill bound, for the flaw.
const MUCH_LATER: Duration = Duration::from_secs(2);

impl Cluster {
    /// The supervisor starts the guard.
    pub(crate) fn start_guard(&mut self, index: usize) {
        let machine = &mut self.machines[index];
        if machine.guard.is_some() {
            return;
        }
        machine.guard_life += 1;
        let start = Start {
            who: Incarnation { uid: machine.identity.clone(), boot: machine.boot.clone() },
            kept: machine.record.clone(),
            timing: self.config.timing,
            kill_bound: self.config.timing.kill_bound,
            flaw: self.config.flaw,
        };
        let mut ops = Vec::new();
        machine.guard = Some(Guard::start(Stamp(machine.local(self.now)), start, &mut ops));
        machine.guard_wake = None;
        self.guard_acts(index, ops);
    }

    /// The guard process dies. What it was doing stays undone.
    pub(crate) fn kill_guard(&mut self, index: usize, back_after: Duration) {
        let machine = &mut self.machines[index];
        if machine.guard.take().is_none() {
            return;
        }
        machine.guard_wake = None;
        machine.kill_run = None;
        let (fed_at, fed) = machine.fed;
        self.in_machine(index, back_after, MachineEvent::GuardStart);
        let timing = &self.config.timing;
        let reset = self.chance.span(Duration::ZERO, timing.watchdog_reset);
        let fires = (fed_at + timing.watchdog + reset).since(self.now);
        self.in_machine(index, fires, MachineEvent::Watchdog { fed });
    }

    /// Nobody fed the watchdog since then: the machine is reset.
    pub(crate) fn watchdog(&mut self, index: usize, fed: u32) {
        let machine = &self.machines[index];
        if machine.guard.is_none() && machine.fed.1 == fed {
            self.reset(index);
        }
    }

    pub(crate) fn guard_wake(&mut self, index: usize) {
        let machine = &mut self.machines[index];
        if machine.guard_wake.is_some_and(|at| at <= self.now) {
            machine.guard_wake = None;
            self.guard_step(index, GuardEvent::Wake);
        }
    }

    pub(crate) fn guard_step(&mut self, index: usize, event: GuardEvent) {
        let machine = &mut self.machines[index];
        let Some(guard) = &mut machine.guard else { return };
        let mut ops = Vec::new();
        guard.step(Stamp(machine.clock.local(self.now)), event, &mut ops);
        self.guard_acts(index, ops);
    }

    /// Carries out what the guard wants, feeds the watchdog, sets the timer, and shows the agent what it said.
    fn guard_acts(&mut self, index: usize, ops: Vec<Op>) {
        for op in ops {
            match op {
                Op::Keep(record) => self.machines[index].record = Some(record),
                Op::Kill => self.begin_kill(index),
                // A kill that is late by a flaw must not be rescued by the reset.
                Op::Reboot if self.config.flaw == Some(Flaw::LateKill) => {}
                Op::Reboot => {
                    self.reset(index);
                    return;
                }
            }
        }
        let machine = &mut self.machines[index];
        let Some(guard) = &machine.guard else { return };
        let stamp = Stamp(machine.clock.local(self.now));
        if guard.is_live(stamp) || (machine.kill_run.is_none() && !machine.host.has_exclusive(&machine.boot))
        {
            machine.fed = (self.now, machine.fed.1 + 1);
        }
        let status = guard.status(stamp);
        let wake = machine.clock.virtual_of(guard.next_wake().0).max(self.now);
        let late = lateness(&mut self.chance, &self.config.timing);
        self.set_guard_wake(index, wake + late);
        self.agent_step(index, agent::Event::Guard(status));
    }

    fn set_guard_wake(&mut self, index: usize, at: Time) {
        let machine = &mut self.machines[index];
        if machine.guard_wake.is_none_or(|set| at < set) {
            machine.guard_wake = Some(at);
            let life = machine.guard_life;
            self.in_machine(index, at.since(self.now), MachineEvent::GuardWake { life });
        }
    }

    fn begin_kill(&mut self, index: usize) {
        let machine = &mut self.machines[index];
        if machine.kill_run.is_some() {
            return;
        }
        if !machine.host.has_exclusive(&machine.boot) {
            self.confirm_kill(index);
            return;
        }
        machine.kill_runs += 1;
        let run = machine.kill_runs;
        machine.kill_run = Some((run, machine.host.last_work()));
        let timing = &self.config.timing;
        let mut takes = self.chance.span(Duration::ZERO, timing.cgroup_kill);
        if self.config.flaw == Some(Flaw::LateKill) {
            takes = takes + self.chance.span(Duration::ZERO, timing.kill_bound + MUCH_LATER);
        }
        self.in_machine(index, takes, MachineEvent::KillProcesses { run });
    }

    pub(crate) fn kill_processes(&mut self, index: usize, run: u32) {
        let Some((_, until)) = self.machines[index].kill_run.filter(|(number, _)| *number == run) else {
            return;
        };
        if !self.chance.per_mille(STUBBORN) {
            self.kill_exclusive(index, until);
        }
        let takes = self.chance.span(Duration::ZERO, self.config.timing.unmount);
        self.in_machine(index, takes, MachineEvent::KillMounts { run });
    }

    pub(crate) fn kill_mounts(&mut self, index: usize, run: u32) {
        let Some((_, until)) = self.machines[index].kill_run.filter(|(number, _)| *number == run) else {
            return;
        };
        self.pull_exclusive(index, until);
        let machine = &mut self.machines[index];
        machine.kill_run = None;
        if machine.host.has_exclusive(&machine.boot) {
            self.guard_step(index, GuardEvent::KillDone(Kill::Remains));
        } else {
            self.confirm_kill(index);
        }
    }

    /// Nothing exclusive is left. Said in an event of its own: the guard is in the middle of a step.
    fn confirm_kill(&mut self, index: usize) {
        let machine = &mut self.machines[index];
        let Some(guard) = &mut machine.guard else { return };
        let mut ops = Vec::new();
        guard.step(Stamp(machine.clock.local(self.now)), GuardEvent::KillDone(Kill::Confirmed), &mut ops);
        for op in ops {
            match op {
                Op::Keep(record) => machine.record = Some(record),
                Op::Kill | Op::Reboot => {}
            }
        }
    }
}

/// How late a timer of the guard is. Mostly punctual, so that the laws of liveness hold in most runs.
fn lateness(chance: &mut Chance, timing: &Timing) -> Duration {
    let most = if chance.per_mille(LATE_WAKES) { timing.guard_wake } else { PUNCTUAL };
    chance.span(Duration::ZERO, most)
}

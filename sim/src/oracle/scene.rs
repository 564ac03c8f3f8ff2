//! The memory that all oracles share: the world as the facts tell it.
//!
//! Responsible for: machines with what runs on them, objects as the store has them, what was done to whom. Leaves to
//! the oracles every judgement.
//!
//! Invariant: only facts and the faults that were injected come in. Facts about a machine that nobody powered on are
//! facts all the same: a machine that is first heard of by an instance has power.

use std::collections::{BTreeMap, BTreeSet};

use api::view::{NodeIncident, Pod, View};
use api::{BootId, Kind, Name, Namespace, NodeName, ObjectKey, Time, Uid};

use super::Setting;
use crate::fault::Fault;
use crate::observe::{Fact, Instance, Observation};

/// See the module's header.
#[derive(Debug)]
pub struct Scene {
    /// What the run promises, and by which times.
    pub setting: Setting,
    now: Time,
    machines: BTreeMap<NodeName, Machine>,
    objects: BTreeMap<ObjectKey, View>,
    /// When the first fault was injected.
    troubled: Option<Time>,
    calm: Option<Time>,
    /// A human did something that stock takes for proof.
    human: bool,
    panics: u64,
}

/// A machine as it really is.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// Its boot, while it has power.
    pub boot: Option<BootId>,
    /// Since when nothing on it moves, and whether its clock counts that.
    pub asleep: Option<(Time, bool)>,
    /// What runs on it, also while it is asleep.
    pub running: BTreeSet<Instance>,
    /// PersistentVolumes that it can write to; true for those that one node at most may hold.
    pub mounted: BTreeMap<Name, bool>,
    /// Until when work of the time before a pause may still run; long ago if it never paused.
    excused: Time,
}

// === impl Machine ===

impl Machine {
    /// True if what is on it moves.
    pub fn is_awake(&self) -> bool {
        self.boot.is_some() && self.asleep.is_none()
    }

    /// Until when work of the time before a pause is within its bound.
    pub fn excused_until(&self) -> Time {
        self.excused
    }
}

// === impl Scene ===

impl Scene {
    pub(super) fn new(setting: Setting) -> Self {
        Self {
            setting,
            now: Time::ZERO,
            machines: BTreeMap::new(),
            objects: BTreeMap::new(),
            troubled: None,
            calm: None,
            human: false,
            panics: 0,
        }
    }

    pub(super) fn fault(&mut self, at: Time, fault: &Fault) {
        self.troubled.get_or_insert(at);
        self.human |= match fault {
            Fault::ForceDelete(..) | Fault::Taint(..) | Fault::DeleteNode(_) | Fault::DropFinalizers(..) => {
                true
            }
            Fault::PowerOff(_)
            | Fault::PowerOn(_)
            | Fault::Reboot(..)
            | Fault::AnnouncedReboot(..)
            | Fault::Suspend { .. }
            | Fault::Resume(_)
            | Fault::KillAgent(..)
            | Fault::KillGuard(..)
            | Fault::Cut(..)
            | Fault::Heal(..)
            | Fault::HealAll
            | Fault::Loss(_)
            | Fault::Delay(_)
            | Fault::CrashServer(_)
            | Fault::StartServer(_)
            | Fault::PauseServer { .. }
            | Fault::ResumeServer(_)
            | Fault::LoseAnswers(_)
            | Fault::StaleView(..)
            | Fault::DeletePod(..)
            | Fault::Untaint(..)
            | Fault::Scale(..) => false,
        };
    }

    pub(super) fn calm(&mut self, at: Time) {
        self.calm = Some(at);
    }

    pub(super) fn end(&mut self, now: Time, panics: u64) {
        self.now = now;
        self.panics = panics;
    }

    pub(super) fn fold(&mut self, fact: &Fact) {
        self.now = fact.at;
        match &fact.what {
            Observation::Started(instance) => {
                let machine = self.machine_mut(&instance.machine);
                machine.boot.get_or_insert_with(|| instance.boot.clone());
                machine.running.insert(instance.clone());
            }
            Observation::Ended(instance) => {
                self.machine_mut(&instance.machine).running.remove(instance);
            }
            Observation::Mounted { machine, volume, single } => {
                self.machine_mut(machine).mounted.insert(volume.clone(), *single);
            }
            Observation::Unmounted { machine, volume } => {
                self.machine_mut(machine).mounted.remove(volume);
            }
            Observation::PoweredOn { machine, boot } => {
                let machine = self.machine_mut(machine);
                *machine =
                    Machine { boot: Some(boot.clone()), excused: machine.excused, ..Machine::default() };
            }
            Observation::PoweredOff(machine) => {
                let machine = self.machine_mut(machine);
                *machine = Machine { excused: machine.excused, ..Machine::default() };
            }
            Observation::Suspended { machine, clock_runs } => {
                let at = fact.at;
                self.machine_mut(machine).asleep.get_or_insert((at, *clock_runs));
            }
            Observation::Resumed(machine) => self.resume(machine, fact.at),
            Observation::Written { key, new, .. } => {
                match new {
                    Some(view) => self.objects.insert(key.clone(), view.clone()),
                    None => self.objects.remove(key),
                };
            }
            Observation::Elected { .. }
            | Observation::Server { .. }
            | Observation::Evidence { .. }
            | Observation::Noted(_)
            | Observation::Counted(_)
            | Observation::Fault(_) => {}
        }
    }

    fn resume(&mut self, machine: &NodeName, at: Time) {
        let setting = self.setting.clone();
        let machine = self.machine_mut(machine);
        let Some((since, clock_runs)) = machine.asleep.take() else { return };
        // Bounds count running time: a pause within the bound of an earlier one moves that bound.
        if machine.excused > since {
            machine.excused += at.since(since);
        }
        machine.excused = machine.excused.max(at + setting.afterlife(clock_runs));
    }

    fn machine_mut(&mut self, name: &NodeName) -> &mut Machine {
        self.machines.entry(name.clone()).or_default()
    }

    /// Virtual time of the last fact.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Every machine by name.
    pub fn machines(&self) -> impl Iterator<Item = (&NodeName, &Machine)> {
        self.machines.iter()
    }

    /// A machine.
    pub fn machine(&self, name: &NodeName) -> Option<&Machine> {
        self.machines.get(name)
    }

    /// True if what is on that machine moves, and not as the remains of a pause.
    pub fn is_awake(&self, name: &NodeName) -> bool {
        self.machine(name).is_some_and(Machine::is_awake)
    }

    /// True if work on that machine may be a remainder from before a pause.
    pub fn is_excused(&self, name: &NodeName) -> bool {
        self.machine(name).is_some_and(|m| m.excused >= self.now)
    }

    /// Instances that move now, on all machines, leaving out those that a pause excuses.
    pub fn moving(&self) -> impl Iterator<Item = &Instance> {
        let awake = self.machines.values().filter(|m| m.is_awake() && m.excused < self.now);
        awake.flat_map(|m| m.running.iter())
    }

    /// True if an instance of that pod object is on an awake machine, excused or not.
    pub fn runs(&self, pod: &Uid) -> Option<&Instance> {
        self.machines
            .values()
            .filter(|m| m.is_awake())
            .flat_map(|m| m.running.iter())
            .find(|i| i.pod_uid == *pod)
    }

    /// An object as the store has it.
    pub fn object(&self, key: &ObjectKey) -> Option<&View> {
        self.objects.get(key)
    }

    /// All objects of a kind.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &View> {
        let first = ObjectKey::cluster(kind, "");
        self.objects.range(first..).take_while(move |(key, _)| key.kind == kind).map(|(_, view)| view)
    }

    /// All pods.
    pub fn pods(&self) -> impl Iterator<Item = &Pod> {
        self.of_kind(Kind::Pod).filter_map(|view| if let View::Pod(pod) = view { Some(&**pod) } else { None })
    }

    /// All incidents.
    pub fn incidents(&self) -> impl Iterator<Item = &NodeIncident> {
        self.of_kind(Kind::NodeIncident)
            .filter_map(|view| if let View::NodeIncident(incident) = view { Some(&**incident) } else { None })
    }

    /// A pod by its name.
    pub fn pod(&self, namespace: &Namespace, name: &Name) -> Option<&Pod> {
        match self.object(&ObjectKey::namespaced(Kind::Pod, namespace, name.clone()))? {
            View::Pod(pod) => Some(pod),
            _ => None,
        }
    }

    /// True if that pod must never run twice.
    pub fn is_exclusive(&self, pod: &Pod) -> bool {
        api::exclusive::is_exclusive(pod, |namespace, name| {
            match self.object(&ObjectKey::namespaced(Kind::PersistentVolumeClaim, namespace, name.clone()))? {
                View::PersistentVolumeClaim(claim) => Some(&**claim),
                _ => None,
            }
        })
    }

    /// True if the control plane has enough members for silence to prove anything.
    pub fn is_armed(&self) -> bool {
        let council = self.object(&ObjectKey::cluster(Kind::Council, "council"));
        let Some(View::Council(council)) = council else { return false };
        council.newest().is_some_and(api::view::Membership::arms)
    }

    /// True from the first fault on.
    pub fn is_troubled(&self) -> bool {
        self.troubled.is_some()
    }

    /// When the faults stopped.
    pub fn calm_since(&self) -> Option<Time> {
        self.calm
    }

    /// True if a human did something that stock takes for proof.
    pub fn has_human_acted(&self) -> bool {
        self.human
    }

    /// How many decisions panicked.
    pub fn panics(&self) -> u64 {
        self.panics
    }
}

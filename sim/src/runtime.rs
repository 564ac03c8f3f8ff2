//! What runs on a machine: sandboxes, containers, mounts; and how long it takes to change that.
//!
//! Responsible for: carrying out the agent's acts on pods, the guard's kill, and the facts that follow (`Started`,
//! `Ended`, `Mounted`, `Unmounted`). Leaves to the agent what should run, to the guard what may.
//!
//! Invariants: a fact is stated at the moment at which it becomes true; an act that was permitted when it began may
//! take effect after the permission has ended (the next kill catches it); what is on the disk outlives a power cut,
//! and looks as it looked before.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent::host::{ContainerOnHost, ContainerState, Mounted, Sandbox};
use agent::{Guarded, OpId, Outcome, PodAct, PodOnHost};
use api::view::{PersistentVolume, Pod, View};
use api::{BootId, Duration, Kind, Name, Namespace, ObjectKey, Uid};

use crate::cluster::Cluster;
use crate::event::MachineEvent;
use crate::observe::{Instance, Observation};

const MOUNT: (u64, u64) = (10, 100);
const UNMOUNT: (u64, u64) = (10, 80);
const SANDBOX: (u64, u64) = (20, 100);
const START: (u64, u64) = (30, 200);
const SIGNAL: (u64, u64) = (1, 10);
const KILL: (u64, u64) = (10, 150);
const REMOVE: (u64, u64) = (20, 100);
/// How long most programs take to end when asked.
const EXIT: (u64, u64) = (20, 1200);
/// This share of programs, per mille, does not end when asked.
const DEAF: u32 = 150;
/// This share of acts on the runtime, per mille, fails without effect.
const FAILS: u32 = 3;

/// Everything on one machine that the runtime and the mount table know.
#[derive(Debug, Default)]
pub(crate) struct Host {
    pods: BTreeMap<Uid, HostPod>,
    works: BTreeMap<u64, Work>,
    last_work: u64,
    addresses: u32,
    /// How many pods have each volume mounted, and whether one node at most may hold it.
    mounted: BTreeMap<Name, (u32, bool)>,
}

/// One pod on the host.
#[derive(Debug)]
struct HostPod {
    seen: PodOnHost,
    /// Volume behind each mounted claim, and the act that mounted it.
    volumes: BTreeMap<Name, (Name, u64)>,
    /// The act that made the sandbox.
    made: u64,
    /// Stated as running.
    instance: Option<Instance>,
    /// Grows with every request to end, and with every start of a program that ends by itself.
    round: u32,
    grace: Duration,
    program: Program,
}

/// What the program in a pod's containers does of its own accord.
#[derive(Clone, Copy, Debug, Default)]
struct Program {
    exit_code: i32,
    ends_after: Option<Duration>,
}

/// An act under way.
#[derive(Debug)]
struct Work {
    op: OpId,
    life: u32,
    uid: Uid,
    act: PodAct,
}

impl Host {
    /// What the runtime lists.
    pub(crate) fn list(&self) -> Vec<PodOnHost> {
        self.pods.values().map(|pod| pod.seen.clone()).collect()
    }

    /// What runs.
    pub(crate) fn running(&self) -> impl Iterator<Item = &Instance> {
        self.pods.values().filter_map(|pod| pod.instance.as_ref())
    }

    /// Which volumes are mounted.
    pub(crate) fn mounted(&self) -> impl Iterator<Item = &Name> {
        self.mounted.keys()
    }

    /// True if the guard would have something to kill in this boot. What another boot left on the disk is dead.
    pub(crate) fn has_exclusive(&self, boot: &BootId) -> bool {
        self.pods.values().any(|pod| pod.is_killable(boot))
    }

    /// The newest act that has begun.
    pub(crate) fn last_work(&self) -> u64 {
        self.last_work
    }
}

impl HostPod {
    fn is_killable(&self, boot: &BootId) -> bool {
        let lives = self.seen.runs(boot) || self.seen.has_ready_sandbox(boot);
        self.seen.exclusive && (lives || !self.seen.mounts.is_empty())
    }
}

// === acts of the agent ===

impl Cluster {
    /// Begins an act. A guarded one needs the guard's word at this moment.
    pub(crate) fn begin_work(&mut self, index: usize, op: OpId, uid: Uid, act: PodAct) {
        let machine = &mut self.machines[index];
        let local = machine.local(self.now);
        let permitted = machine.guard.as_ref().is_some_and(|g| g.permits(&uid, api::message::Stamp(local)));
        let life = machine.agent_life;
        if act.guarded() == Guarded::Yes && !permitted {
            let what = MachineEvent::Called { life, op, outcome: Outcome::Forbidden };
            self.in_machine(index, Duration::from_ms(1), what);
            return;
        }
        let (low, high) = match &act {
            PodAct::Mount { .. } => MOUNT,
            PodAct::Unmount { .. } => UNMOUNT,
            PodAct::CreateSandbox { .. } => SANDBOX,
            PodAct::StartContainer { .. } => START,
            PodAct::Terminate => SIGNAL,
            PodAct::Kill => KILL,
            PodAct::RemoveSandbox => REMOVE,
        };
        machine.host.last_work += 1;
        let work = machine.host.last_work;
        machine.host.works.insert(work, Work { op, life, uid, act });
        let takes = Duration::from_ms(self.chance.between(low, high));
        self.in_machine(index, takes, MachineEvent::PodAct { work });
    }

    /// An act takes effect.
    pub(crate) fn end_work(&mut self, index: usize, work: u64) {
        let Some(Work { op, life, uid, act }) = self.machines[index].host.works.remove(&work) else { return };
        let done = if self.chance.per_mille(FAILS) && !matches!(act, PodAct::Terminate) {
            Err("the runtime did not answer".to_owned())
        } else {
            self.take_effect(index, work, &uid, act)
        };
        self.settle_instance(index, &uid);
        let seen = self.seen_pod(index, &uid);
        self.drop_if_empty(index, &uid);
        if self.machines[index].agent_life == life {
            let outcome = match done {
                Ok(()) => Outcome::Host(seen),
                Err(why) => Outcome::HostFailed { seen, why },
            };
            self.agent_step(index, agent::Event::Done { id: op, outcome });
        }
    }

    fn take_effect(&mut self, index: usize, work: u64, uid: &Uid, act: PodAct) -> Result<(), String> {
        match act {
            PodAct::Mount { claim, volume, guarded } => {
                self.mount(index, uid, Mounted { claim, volume }, guarded, work)
            }
            PodAct::Unmount { claim } => {
                self.unmount(index, uid, &claim);
                Ok(())
            }
            PodAct::CreateSandbox { pod, guarded } => {
                self.create_sandbox(index, &pod, guarded, work);
                Ok(())
            }
            PodAct::StartContainer { container, image: _, attempt, guarded: _ } => {
                self.start_container(index, uid, container, attempt)
            }
            PodAct::Terminate => {
                self.terminate(index, uid);
                Ok(())
            }
            PodAct::Kill => {
                self.end_containers(index, uid, 137);
                Ok(())
            }
            PodAct::RemoveSandbox => {
                if let Some(pod) = self.machines[index].host.pods.get_mut(uid) {
                    pod.seen.containers.clear();
                    pod.seen.sandbox = None;
                }
                Ok(())
            }
        }
    }

    fn mount(
        &mut self,
        index: usize,
        uid: &Uid,
        mount: Mounted,
        guarded: Guarded,
        work: u64,
    ) -> Result<(), String> {
        let Mounted { claim, volume } = mount;
        let Some(wanted) = self.machines[index].watch.pod(uid) else {
            return Err("nobody knows the pod".to_owned());
        };
        let pv = self.volume_behind(&wanted.metadata.namespace, &claim, &volume);
        let (name, single) = match &pv {
            Some(pv) => (pv.metadata.name.clone(), !pv.is_multi_attach()),
            None => (Name::from(volume.as_str()), true),
        };
        if pv.is_some_and(|pv| pv.spec.csi.is_some()) && !self.attacher.has(&name, index) {
            return Err(format!("volume {name} is not attached"));
        }
        let pod = self.host_pod(index, &wanted);
        if pod.volumes.contains_key(&claim) {
            return Ok(());
        }
        pod.volumes.insert(claim.clone(), (name.clone(), work));
        pod.seen.mounts.push(Mounted { claim, volume });
        pod.seen.exclusive |= guarded == Guarded::Yes;
        let machine = &mut self.machines[index];
        let count = machine.host.mounted.entry(name.clone()).or_insert((0, single));
        count.0 += 1;
        if count.0 == 1 {
            let machine = machine.name.clone();
            self.state(Observation::Mounted { machine, volume: name, single });
        }
        Ok(())
    }

    /// The volume of that unique name, or the one behind the claim if it is none that is attached.
    fn volume_behind(
        &self,
        namespace: &Namespace,
        claim: &Name,
        unique: &str,
    ) -> Option<Arc<PersistentVolume>> {
        if unique.is_empty() {
            let claim = ObjectKey::namespaced(Kind::PersistentVolumeClaim, namespace, claim.clone());
            let Some(View::PersistentVolumeClaim(claim)) = self.truth.view(&claim) else { return None };
            let key = ObjectKey::cluster(Kind::PersistentVolume, claim.spec.volume_name.clone());
            let Some(View::PersistentVolume(pv)) = self.truth.view(&key) else { return None };
            return Some(Arc::clone(pv));
        }
        self.truth.of_kind(Kind::PersistentVolume).find_map(|(_, object)| match &object.view {
            Some(View::PersistentVolume(pv)) if pv.unique_name().as_deref() == Some(unique) => {
                Some(Arc::clone(pv))
            }
            Some(_) | None => None,
        })
    }

    fn unmount(&mut self, index: usize, uid: &Uid, claim: &Name) {
        let machine = &mut self.machines[index];
        let Some(pod) = machine.host.pods.get_mut(uid) else { return };
        pod.seen.mounts.retain(|m| m.claim != *claim);
        if let Some((volume, _)) = pod.volumes.remove(claim) {
            self.volume_released(index, &volume);
        }
    }

    fn volume_released(&mut self, index: usize, volume: &Name) {
        let machine = &mut self.machines[index];
        let Some((count, _)) = machine.host.mounted.get_mut(volume) else { return };
        *count -= 1;
        if *count == 0 {
            machine.host.mounted.remove(volume);
            let machine = machine.name.clone();
            self.state(Observation::Unmounted { machine, volume: volume.clone() });
        }
    }

    fn create_sandbox(&mut self, index: usize, pod: &Arc<Pod>, guarded: Guarded, work: u64) {
        let machine = &mut self.machines[index];
        machine.host.addresses += 1;
        let address =
            format!("10.{}.{}.{}", index % 256, machine.host.addresses / 256, machine.host.addresses % 256);
        let boot = machine.boot.clone();
        let host = self.host_pod(index, pod);
        if host.seen.has_ready_sandbox(&boot) {
            return;
        }
        host.seen.containers.clear();
        host.made = work;
        host.seen.sandbox = Some(Sandbox { boot, ready: true, address });
        host.seen.exclusive |= guarded == Guarded::Yes;
    }

    fn start_container(&mut self, index: usize, uid: &Uid, name: String, attempt: u32) -> Result<(), String> {
        let machine = &mut self.machines[index];
        let started_at = machine.local(self.now);
        let Some(pod) = machine.host.pods.get_mut(uid) else { return Err("there is no sandbox".to_owned()) };
        if !pod.seen.has_ready_sandbox(&machine.boot) {
            return Err("the sandbox is not ready".to_owned());
        }
        pod.seen.containers.retain(|c| c.name != name);
        pod.seen.containers.push(ContainerOnHost {
            name,
            attempt,
            state: ContainerState::Running { started_at },
        });
        if let Some(after) = pod.program.ends_after {
            // The end of an earlier run says nothing about this one.
            pod.round += 1;
            let what = MachineEvent::Exit { pod: uid.clone(), round: pod.round };
            self.in_machine(index, after, what);
        }
        Ok(())
    }

    fn terminate(&mut self, index: usize, uid: &Uid) {
        let deaf = self.chance.per_mille(DEAF);
        let takes = Duration::from_ms(self.chance.between(EXIT.0, EXIT.1));
        let Some(pod) = self.machines[index].host.pods.get_mut(uid) else { return };
        pod.round += 1;
        if !deaf {
            let what = MachineEvent::Exit { pod: uid.clone(), round: pod.round };
            let takes = takes.min(pod.grace.max(Duration::from_ms(EXIT.0)));
            self.in_machine(index, takes, what);
        }
    }

    /// What was asked to end, or ends after a while, has ended by itself.
    pub(crate) fn containers_exit(&mut self, index: usize, uid: &Uid, round: u32) {
        let Some(pod) = self.machines[index].host.pods.get(uid) else { return };
        if pod.round == round && pod.seen.containers.iter().any(ContainerOnHost::is_running) {
            let code = pod.program.exit_code;
            self.end_containers(index, uid, code);
            self.settle_instance(index, uid);
            let seen = self.seen_pod(index, uid);
            self.agent_step(index, agent::Event::PodObserved(seen));
        }
    }

    fn end_containers(&mut self, index: usize, uid: &Uid, code: i32) {
        let machine = &mut self.machines[index];
        let finished_at = machine.local(self.now);
        let Some(pod) = machine.host.pods.get_mut(uid) else { return };
        for container in &mut pod.seen.containers {
            if let ContainerState::Running { started_at } = container.state {
                container.state = ContainerState::Exited { code, started_at, finished_at };
            }
        }
    }

    fn host_pod(&mut self, index: usize, pod: &Arc<Pod>) -> &mut HostPod {
        let meta = &pod.metadata;
        let unusual = meta.labels.get("app").and_then(|app| self.config.templates.get(app));
        let program =
            unusual.map(|t| Program { exit_code: t.exit_code, ends_after: t.ends_after }).unwrap_or_default();
        self.machines[index].host.pods.entry(meta.uid.clone()).or_insert_with(|| HostPod {
            seen: PodOnHost::nothing(&meta.uid, &meta.namespace, &meta.name),
            volumes: BTreeMap::new(),
            made: 0,
            instance: None,
            round: 0,
            grace: Duration::from_secs(pod.grace_secs()),
            program,
        })
    }

    fn seen_pod(&self, index: usize, uid: &Uid) -> PodOnHost {
        let machine = &self.machines[index];
        if let Some(pod) = machine.host.pods.get(uid) {
            return pod.seen.clone();
        }
        match machine.watch.pod(uid) {
            Some(pod) => PodOnHost::nothing(uid, &pod.metadata.namespace, &pod.metadata.name),
            None => PodOnHost { uid: uid.clone(), ..PodOnHost::default() },
        }
    }

    fn drop_if_empty(&mut self, index: usize, uid: &Uid) {
        let pods = &mut self.machines[index].host.pods;
        if pods.get(uid).is_some_and(|pod| pod.seen.is_empty()) {
            pods.remove(uid);
        }
    }

    /// States that an instance began or ended, if it did.
    fn settle_instance(&mut self, index: usize, uid: &Uid) {
        let machine = &self.machines[index];
        let Some(pod) = machine.host.pods.get(uid) else { return };
        let runs = pod.seen.runs(&machine.boot);
        if runs == pod.instance.is_some() {
            return;
        }
        let instance = runs.then(|| Instance {
            machine: machine.name.clone(),
            boot: machine.boot.clone(),
            node_uid: machine.identity.clone(),
            namespace: pod.seen.namespace.clone(),
            name: pod.seen.name.clone(),
            pod_uid: uid.clone(),
            exclusive: machine.watch.pod(uid).is_some_and(|wanted| self.is_exclusive(&wanted)),
        });
        let Some(pod) = self.machines[index].host.pods.get_mut(uid) else { return };
        let before = std::mem::replace(&mut pod.instance, instance.clone());
        match (before, instance) {
            (_, Some(instance)) => self.state(Observation::Started(instance)),
            (Some(instance), None) => self.state(Observation::Ended(instance)),
            (None, None) => {}
        }
    }

    /// Whether a pod must never run twice, by the claims as the store has them.
    fn is_exclusive(&self, pod: &Pod) -> bool {
        api::exclusive::is_exclusive(pod, |namespace, name| {
            let key = ObjectKey::namespaced(Kind::PersistentVolumeClaim, namespace, name.clone());
            match self.truth.view(&key) {
                Some(View::PersistentVolumeClaim(claim)) => Some(&**claim),
                Some(_) | None => None,
            }
        })
    }
}

// === the guard's kill, and power ===

impl Cluster {
    /// Every exclusive process dies, with its sandbox. The kill is of what was there when the guard broke: what was made
    /// by an act that began after `until`, under a newer grant, is spared.
    pub(crate) fn kill_exclusive(&mut self, index: usize, until: u64) {
        let machine = &self.machines[index];
        let killable = |pod: &HostPod| pod.made <= until && pod.is_killable(&machine.boot);
        let uids: Vec<Uid> =
            machine.host.pods.iter().filter(|(_, pod)| killable(pod)).map(|(uid, _)| uid.clone()).collect();
        for uid in uids {
            self.end_containers(index, &uid, 137);
            if let Some(pod) = self.machines[index].host.pods.get_mut(&uid)
                && let Some(sandbox) = &mut pod.seen.sandbox
            {
                sandbox.ready = false;
            }
            self.settle_instance(index, &uid);
        }
    }

    /// Every exclusive mount of that time is pulled. The agent hears of it, if it runs.
    pub(crate) fn pull_exclusive(&mut self, index: usize, until: u64) {
        let pods = &self.machines[index].host.pods;
        let exclusive: Vec<Uid> =
            pods.iter().filter(|(_, pod)| pod.seen.exclusive).map(|(uid, _)| uid.clone()).collect();
        for uid in exclusive {
            let Some(pod) = self.machines[index].host.pods.get(&uid) else { continue };
            // A process that started after the kill still holds its mounts.
            if pod.instance.is_some() {
                continue;
            }
            let old = pod.volumes.iter().filter(|(_, (_, work))| *work <= until);
            let claims: Vec<Name> = old.map(|(claim, _)| claim.clone()).collect();
            for claim in claims {
                self.unmount(index, &uid, &claim);
            }
            let seen = self.seen_pod(index, &uid);
            self.drop_if_empty(index, &uid);
            self.agent_step(index, agent::Event::PodObserved(seen));
        }
    }

    /// Everything that ran has ended, every mount is gone; the records on the disk stay as they were.
    pub(crate) fn host_lost_power(&mut self, index: usize) {
        let host = &mut self.machines[index].host;
        host.works.clear();
        let mut ended = Vec::new();
        for pod in host.pods.values_mut() {
            ended.extend(pod.instance.take());
            pod.volumes.clear();
            pod.seen.mounts.clear();
        }
        host.pods.retain(|_, pod| !pod.seen.is_empty());
        let mounted = std::mem::take(&mut host.mounted);
        let machine = self.machines[index].name.clone();
        for instance in ended {
            self.state(Observation::Ended(instance));
        }
        for (volume, _) in mounted {
            self.state(Observation::Unmounted { machine: machine.clone(), volume });
        }
    }
}

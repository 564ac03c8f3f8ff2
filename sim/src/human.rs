//! The human: creates the workloads, and does unwise things at a bad moment. And the hand that makes faults happen.
//!
//! Responsible for: turning a config's workloads into objects, and each [`Fault`] into what it does. Leaves to the
//! schedule and the scenarios when.

use api::edit::{Edit, TaintName};
use api::taint::{Taint, TaintEffect};
use api::view::{RestartPolicy, View};
use api::write::{Deletion, New};
use api::{Duration, Kind, Name, Namespace, NodeName, ObjectKey};
use serde_json::{Value as Tree, json};

use crate::cluster::Cluster;
use crate::config::{Config, NAMESPACE, Template, Workload};
use crate::event::{Event, MachineEvent};
use crate::fault::{Fault, Party};
use crate::network::Site;
use crate::write::{Act, Answered};

/// A human whose command was not answered types it again after this long.
const AGAIN: Duration = Duration::from_secs(1);
/// And gives up after so many times.
const TRIES_MAX: u32 = 30;
/// An announced shutdown has this long before the switch.
const SHUTDOWN: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(5));
/// The driver of all volumes.
const DRIVER: &str = "disk.example.org";

// === workloads ===

impl Cluster {
    /// Creates what the config names, before anything else happens.
    pub(crate) fn create_workloads(&mut self) {
        for workload in self.config.workloads.clone() {
            for (kind, tree) in objects_of(&workload, &self.config) {
                self.create_at_start(kind, &tree);
            }
        }
    }

    fn create_at_start(&mut self, kind: Kind, tree: &Tree) {
        let bytes = serde_json::to_vec(tree).unwrap_or_default();
        let view = View::read(kind, &bytes);
        debug_assert!(view.is_ok(), "a workload of the simulator is readable: {view:?}");
        let Ok(view) = view else { return };
        let new = New::Object(Box::new(view));
        let author = crate::write::Author { caller: &registry::Caller::User, local: self.now, term: None };
        let answered = self.write(Act::Create(&new), &[], author, || "human".to_owned());
        debug_assert!(
            matches!(answered, Answered::Done(_)),
            "a workload of the simulator is lawful: {answered:?}"
        );
    }
}

/// What a workload consists of.
fn objects_of(workload: &Workload, config: &Config) -> Vec<(Kind, Tree)> {
    let template = |name: &str| pod_template(name, &config.templates.get(name).cloned().unwrap_or_default());
    match workload {
        Workload::StatefulSet { name, replicas, volume } => {
            let mut objects = Vec::new();
            if *volume {
                objects.extend((0..*replicas).flat_map(|n| volume_objects(name, n)));
            }
            let claims = if *volume { json!([claim_template()]) } else { json!([]) };
            let mut set = workload_object("StatefulSet", name, Some(*replicas), template(name));
            set["spec"]["serviceName"] = json!(name);
            set["spec"]["volumeClaimTemplates"] = claims;
            objects.push((Kind::StatefulSet, set));
            objects
        }
        Workload::ReplicaSet { name, replicas } => {
            vec![(Kind::ReplicaSet, workload_object("ReplicaSet", name, Some(*replicas), template(name)))]
        }
        Workload::DaemonSet { name } => {
            vec![(Kind::DaemonSet, workload_object("DaemonSet", name, None, template(name)))]
        }
        Workload::Pod { name } => {
            let mut pod = template(name);
            pod["metadata"]["name"] = json!(name);
            pod["metadata"]["namespace"] = json!(NAMESPACE);
            vec![(Kind::Pod, pod)]
        }
        Workload::Service { name } => vec![(
            Kind::Service,
            json!({
                "metadata": { "name": name, "namespace": NAMESPACE },
                "spec": { "selector": { "app": name } },
            }),
        )],
    }
}

/// Only what is unusual is written: a field that nobody set is not there.
fn pod_template(app: &str, unusual: &Template) -> Tree {
    let mut pod = json!({
        "metadata": { "labels": { "app": app } },
        "spec": {
            "terminationGracePeriodSeconds": 5,
            "containers": [{
                "name": "main",
                "image": "example.org/app:1",
                "resources": { "requests": { "cpu": "50m", "memory": "64Mi" } },
            }],
        },
    });
    if unusual.exclusive {
        pod["metadata"]["annotations"] = json!({ api::annotation::EXCLUSIVE: "true" });
    }
    if !unusual.finalizers.is_empty() {
        pod["metadata"]["finalizers"] = json!(unusual.finalizers);
    }
    if !unusual.tolerations.is_empty() {
        pod["spec"]["tolerations"] = json!(unusual.tolerations);
    }
    if unusual.restart_policy != RestartPolicy::default() {
        pod["spec"]["restartPolicy"] = json!(unusual.restart_policy);
    }
    pod
}

fn workload_object(kind: &str, name: &str, replicas: Option<u32>, template: Tree) -> Tree {
    json!({
        "kind": kind,
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": name } },
            "template": template,
        },
    })
}

fn claim_template() -> Tree {
    json!({ "metadata": { "name": "data" }, "spec": { "accessModes": ["ReadWriteOnce"] } })
}

/// The claim of one pod of a StatefulSet, bound to a volume of its own.
fn volume_objects(set: &str, ordinal: u32) -> Vec<(Kind, Tree)> {
    let (volume, claim) = (format!("pv-{set}-{ordinal}"), format!("data-{set}-{ordinal}"));
    vec![
        (
            Kind::PersistentVolume,
            json!({
                "metadata": { "name": volume },
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "claimRef": { "kind": "PersistentVolumeClaim", "namespace": NAMESPACE, "name": claim },
                    "csi": { "driver": DRIVER, "volumeHandle": volume },
                },
            }),
        ),
        (
            Kind::PersistentVolumeClaim,
            json!({
                "metadata": { "name": claim, "namespace": NAMESPACE },
                "spec": { "accessModes": ["ReadWriteOnce"], "volumeName": volume },
            }),
        ),
    ]
}

// === faults ===

impl Cluster {
    pub(crate) fn make_happen(&mut self, fault: Fault) {
        match fault {
            Fault::PowerOff(node) => self.on_machine(&node, Self::power_off),
            Fault::PowerOn(node) => self.on_machine(&node, Self::power_on),
            Fault::Reboot(node, after) => self.on_machine(&node, |cluster, index| {
                cluster.power_off(index);
                cluster.power_on_after(index, after);
            }),
            Fault::AnnouncedReboot(node, off_for) => {
                self.on_machine(&node, |cluster, index| cluster.announce_reboot(index, off_for));
            }
            Fault::Suspend { node, clock_runs } => {
                self.on_machine(&node, |cluster, index| cluster.suspend(index, clock_runs));
            }
            Fault::Resume(node) => self.on_machine(&node, Self::resume),
            Fault::KillAgent(node, after) => {
                self.on_machine(&node, |cluster, index| cluster.kill_agent(index, after));
            }
            Fault::KillGuard(node, after) => {
                self.on_machine(&node, |cluster, index| cluster.kill_guard(index, after));
            }
            Fault::Cut(from, to) => self.between(&from, &to, |cluster, a, b| cluster.network.cut(a, b)),
            Fault::Heal(from, to) => self.between(&from, &to, |cluster, a, b| cluster.network.heal(a, b)),
            Fault::HealAll => self.network.heal_all(),
            Fault::Loss(per_mille) => self.network.set_loss(per_mille),
            Fault::Delay(most) => self.network.set_late(most),
            Fault::CrashServer(server) => self.on_server(server, Self::crash_server),
            Fault::StartServer(server) => self.on_server(server, Self::start_server),
            Fault::PauseServer { server, clock_runs } => {
                self.on_server(server, |cluster, index| cluster.pause_server(index, clock_runs));
            }
            Fault::ResumeServer(server) => self.on_server(server, Self::resume_server),
            Fault::LoseAnswers(per_mille) => self.lose_answers = per_mille,
            Fault::StaleView(server, by) => {
                self.on_server(server, |cluster, index| cluster.servers[index].stale = by);
            }
            Fault::ForceDelete(..)
            | Fault::DeletePod(..)
            | Fault::Taint(..)
            | Fault::Untaint(..)
            | Fault::DeleteNode(_)
            | Fault::DropFinalizers(..)
            | Fault::Scale(..) => self.human_types(fault),
        }
    }

    fn on_machine(&mut self, node: &NodeName, act: impl FnOnce(&mut Self, usize)) {
        if let Some(index) = self.names.get(node).copied() {
            act(self, index);
        }
    }

    fn on_server(&mut self, server: usize, act: impl FnOnce(&mut Self, usize)) {
        if server < self.servers.len() {
            act(self, server);
        }
    }

    fn between(&mut self, from: &Party, to: &Party, act: impl FnOnce(&mut Self, Site, Site)) {
        if let (Some(from), Some(to)) = (self.site(from), self.site(to)) {
            act(self, from, to);
        }
    }

    fn site(&self, party: &Party) -> Option<Site> {
        match party {
            Party::Server(server) => (*server < self.servers.len()).then_some(Site::Server(*server)),
            Party::Node(node) => self.names.get(node).map(|index| Site::Machine(*index)),
            Party::Store => Some(Site::Store),
        }
    }

    /// The agent is told that the machine is about to reboot, and has a moment to say so and to end its pods.
    fn announce_reboot(&mut self, index: usize, off_for: Duration) {
        if self.machines[index].suspended || !self.machines[index].powered {
            return;
        }
        self.agent_step(index, agent::Event::RebootAnnounced);
        let shutdown = self.chance.span(SHUTDOWN.0, SHUTDOWN.1);
        self.in_machine(index, shutdown, MachineEvent::ShutDown { off_for });
    }

    /// A human types a command, after those that are not answered yet.
    fn human_types(&mut self, command: Fault) {
        self.commands.push_back((command, TRIES_MAX));
        if self.commands.len() == 1 {
            self.human_goes_on();
        }
    }

    /// The first command that is not answered yet is typed again; the others follow once it is.
    pub(crate) fn human_goes_on(&mut self) {
        while let Some((command, tries)) = self.commands.pop_front() {
            if self.human_commands(&command).is_none() && tries > 0 {
                self.commands.push_front((command, tries - 1));
                self.agenda.put(self.now + AGAIN, Event::Human);
                return;
            }
        }
    }

    /// `None` if no server answers.
    fn human_commands(&mut self, command: &Fault) -> Option<Answered> {
        match command {
            Fault::ForceDelete(namespace, name) => self.human_deletes(namespace, name, &Deletion::Force),
            Fault::DeletePod(namespace, name) => self.human_deletes(namespace, name, &Deletion::Graceful),
            Fault::Taint(node, taint) => {
                let edit = Edit::Taints { add: vec![taint.clone()], remove: Vec::new() };
                self.human_edits(&ObjectKey::node(node), &edit)
            }
            Fault::Untaint(node, key) => self.human_untaints(node, key),
            Fault::DeleteNode(node) => self.write_from_outside(
                Act::Delete(&ObjectKey::node(node), &Deletion::Graceful),
                &[],
                "human",
            ),
            Fault::DropFinalizers(namespace, name) => self.human_drops_finalizers(namespace, name),
            Fault::Scale(namespace, name, replicas) => self.human_scales(namespace, name, *replicas),
            // No human's command.
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
            | Fault::StaleView(..) => Some(Answered::Refused),
        }
    }

    fn human_edits(&mut self, key: &ObjectKey, edit: &Edit) -> Option<Answered> {
        self.write_from_outside(Act::Edit(key, edit), &[], "human")
    }

    fn human_deletes(&mut self, namespace: &Namespace, name: &Name, how: &Deletion) -> Option<Answered> {
        let key = ObjectKey::namespaced(Kind::Pod, namespace, name.clone());
        self.write_from_outside(Act::Delete(&key, how), &[], "human")
    }

    fn human_untaints(&mut self, node: &NodeName, taint: &str) -> Option<Answered> {
        let key = ObjectKey::node(node);
        let remove = match self.truth.view(&key) {
            Some(View::Node(node)) => {
                let named = |t: &&Taint| t.key == taint;
                node.spec.taints.iter().filter(named).map(TaintName::from).collect()
            }
            Some(_) | None => vec![TaintName::new(taint, TaintEffect::NoSchedule)],
        };
        self.human_edits(&key, &Edit::Taints { add: Vec::new(), remove })
    }

    fn human_drops_finalizers(&mut self, namespace: &Namespace, name: &Name) -> Option<Answered> {
        let key = ObjectKey::namespaced(Kind::Pod, namespace, name.clone());
        let finalizers = self.truth.view(&key).map(|view| view.meta().finalizers.clone()).unwrap_or_default();
        let mut answered = Some(Answered::Done(self.truth.head()));
        for finalizer in finalizers {
            answered = self.human_edits(&key, &Edit::RemoveFinalizer(finalizer));
        }
        answered
    }

    fn human_scales(&mut self, namespace: &Namespace, name: &Name, replicas: u32) -> Option<Answered> {
        let kinds = [Kind::StatefulSet, Kind::ReplicaSet, Kind::Deployment];
        let keys = kinds.map(|kind| ObjectKey::namespaced(kind, namespace, name.clone()));
        let key = keys.iter().find(|key| self.truth.get(key).is_some())?;
        self.human_edits(key, &Edit::Replicas(replicas))
    }
}

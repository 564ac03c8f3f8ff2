//! View of Pod.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Condition, ConditionStatus, Meta, view};
use crate::annotation;
use crate::id::{Name, NodeName, Uid};
use crate::object::{Kind, ObjectKey};
use crate::quantity::Quantity;
use crate::taint::Toleration;
use crate::time::Time;
use crate::view::volume::NodeSelector;

view! {
    /// `v1.Pod`.
    pub struct Pod {
        /// Metadata.
        pub metadata: Meta,
        /// What is wished.
        pub spec: PodSpec,
        /// What is.
        pub status: PodStatus,
    }
}

view! {
    /// `v1.PodSpec`, as far as minds read it.
    pub struct PodSpec {
        /// The node it is bound to; empty while it is not.
        pub node_name: NodeName,
        /// What runs.
        pub containers: Vec<Container>,
        /// What runs before.
        pub init_containers: Vec<Container>,
        /// When ended containers are started again.
        pub restart_policy: RestartPolicy,
        /// Seconds between the wish to stop and the kill; `None` is upstream's 30.
        pub termination_grace_period_seconds: Option<u64>,
        /// Taints it lives with.
        pub tolerations: Vec<Toleration>,
        /// Volumes it mounts.
        pub volumes: Vec<Volume>,
        /// Labels its node must have.
        pub node_selector: BTreeMap<String, String>,
        /// The node affinity that must hold (`affinity.nodeAffinity.requiredDuringScheduling…`).
        pub affinity: Affinity,
        /// Greater goes first.
        pub priority: i32,
        /// Shares the node's network.
        pub host_network: bool,
        /// Which scheduler binds it; empty is ours.
        pub scheduler_name: String,
        /// For StatefulSet pods: the ordinal's stable host name.
        pub hostname: String,
        /// The service that gives the host name.
        pub subdomain: String,
    }
}

view! {
    /// `v1.Affinity`, as far as minds read it.
    pub struct Affinity {
        /// Which nodes.
        pub node_affinity: NodeAffinity,
    }
}

view! {
    /// `v1.NodeAffinity`.
    pub struct NodeAffinity {
        /// Must hold at binding.
        pub required_during_scheduling_ignored_during_execution: NodeSelector,
    }
}

view! {
    /// `v1.Container`, as far as minds read it.
    pub struct Container {
        /// Unique in the pod.
        pub name: String,
        /// What to run.
        pub image: String,
        /// Requests and limits.
        pub resources: Resources,
        /// Ports; a host port is a resource of the node.
        pub ports: Vec<ContainerPort>,
    }
}

view! {
    /// `v1.ContainerPort`.
    pub struct ContainerPort {
        /// Port inside the pod.
        pub container_port: u16,
        /// Port of the node, or 0.
        pub host_port: u16,
        /// TCP if empty.
        pub protocol: String,
    }
}

view! {
    /// `v1.ResourceRequirements`.
    pub struct Resources {
        /// What the scheduler counts.
        pub requests: BTreeMap<String, Quantity>,
        /// What the node enforces.
        pub limits: BTreeMap<String, Quantity>,
    }
}

view! {
    /// `v1.Volume`, as far as minds read it.
    pub struct Volume {
        /// Name inside the pod.
        pub name: String,
        /// The claim behind it, if it is one.
        pub persistent_volume_claim: Option<PersistentVolumeClaimSource>,
    }
}

view! {
    /// `v1.PersistentVolumeClaimVolumeSource`.
    pub struct PersistentVolumeClaimSource {
        /// Name of the claim in the pod's namespace.
        pub claim_name: Name,
        /// Mounted read-only.
        pub read_only: bool,
    }
}

/// When an ended container is started again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RestartPolicy {
    /// Always.
    #[default]
    Always,
    /// If it failed.
    OnFailure,
    /// Not at all.
    Never,
}

/// `v1.PodPhase`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PodPhase {
    /// Not all containers have run yet.
    #[default]
    Pending,
    /// At least one container runs or will run again.
    Running,
    /// All ended well and none starts again.
    Succeeded,
    /// All ended, one of them badly, and none starts again.
    Failed,
    /// Nobody knows.
    #[serde(other)]
    Unknown,
}

view! {
    /// `v1.PodStatus`, as far as minds read it.
    pub struct PodStatus {
        /// Where it is in its life.
        pub phase: PodPhase,
        /// Why, one word.
        pub reason: String,
        /// Why, a sentence.
        pub message: String,
        /// Ready, PodScheduled, DisruptionTarget, …
        pub conditions: Vec<Condition>,
        /// The address of the pod.
        #[serde(rename = "podIP")]
        pub pod_ip: String,
        /// When its node began with it.
        pub start_time: Option<Time>,
        /// One per container, in the order of the spec.
        pub container_statuses: Vec<ContainerStatus>,
        /// A node the scheduler has in mind while it makes room.
        pub nominated_node_name: NodeName,
    }
}

/// `v1.ContainerStatus`. Written whole: clients take `ready` and `restartCount` for granted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    /// Name of the container.
    pub name: String,
    /// What it runs.
    pub image: String,
    /// What the image resolved to.
    #[serde(rename = "imageID")]
    pub image_id: String,
    /// Passed its readiness probe.
    pub ready: bool,
    /// How often it was replaced.
    pub restart_count: u32,
    /// What it does now.
    pub state: ContainerState,
    /// What the one before did.
    #[serde(skip_serializing_if = "super::is_default")]
    pub last_state: ContainerState,
}

view! {
    /// `v1.ContainerState`: at most one of the three is set.
    pub struct ContainerState {
        /// Not started.
        pub waiting: Option<StateWaiting>,
        /// Started.
        pub running: Option<StateRunning>,
        /// Ended.
        pub terminated: Option<StateTerminated>,
    }
}

view! {
    /// Why a container does not run yet.
    pub struct StateWaiting {
        /// One word, such as `ContainerCreating`.
        pub reason: String,
        /// A sentence.
        pub message: String,
    }
}

view! {
    /// Since when a container runs.
    pub struct StateRunning {
        /// Start of the process.
        pub started_at: Time,
    }
}

view! {
    /// How a container ended.
    pub struct StateTerminated {
        /// Exit code of the process.
        pub exit_code: i32,
        /// One word, such as `Completed`, `Error`, `Unknown`.
        pub reason: String,
        /// A sentence.
        pub message: String,
        /// Start of the process.
        pub started_at: Time,
        /// End of the process.
        pub finished_at: Time,
    }
}

impl Pod {
    /// Where it lies.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::namespaced(Kind::Pod, &self.metadata.namespace, self.metadata.name.clone())
    }

    /// The condition of that type, if there is one.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.status.conditions.iter().find(|c| c.kind == kind)
    }

    /// True if the Ready condition is True.
    pub fn is_ready(&self) -> bool {
        self.condition("Ready").is_some_and(|c| c.status == ConditionStatus::True)
    }

    /// True if it has ended for good (Succeeded or Failed).
    pub fn is_terminal(&self) -> bool {
        matches!(self.status.phase, PodPhase::Succeeded | PodPhase::Failed)
    }

    /// True once it has a node.
    pub fn is_bound(&self) -> bool {
        !self.spec.node_name.is_empty()
    }

    /// True if it is neither ended nor about to end: what workload controllers count (CT-10).
    pub fn is_active(&self) -> bool {
        !self.is_terminal() && !self.metadata.is_terminating()
    }

    /// The uid of the Node object it was bound to (case P86: a name is not a machine); empty if not bound.
    pub fn node_uid(&self) -> Uid {
        self.metadata.annotations.get(annotation::NODE_UID).map(|u| Uid::from(u.as_str())).unwrap_or_default()
    }

    /// Names of the claims it mounts.
    pub fn claims(&self) -> impl Iterator<Item = &Name> {
        self.spec.volumes.iter().filter_map(|v| v.persistent_volume_claim.as_ref()).map(|c| &c.claim_name)
    }

    /// True if its status says that some container runs.
    pub fn has_running_container(&self) -> bool {
        self.status.container_statuses.iter().any(|c| c.state.running.is_some())
    }

    /// True if its agent made it from a file on the node (a mirror pod).
    pub fn is_static(&self) -> bool {
        self.metadata.annotations.contains_key(annotation::MIRROR)
    }

    /// Grace in seconds between the wish to stop and the kill.
    pub fn grace_secs(&self) -> u64 {
        self.spec.termination_grace_period_seconds.unwrap_or(30)
    }
}

//! Views of ReplicaSet, Deployment, StatefulSet, DaemonSet, Service and EndpointSlice.

use serde::{Deserialize, Serialize};

use super::volume::ClaimSpec;
use super::{Meta, ObjectReference, PodSpec, view};
use crate::id::{Generation, NodeName};
use crate::selector::LabelSelector;

view! {
    /// `v1.PodTemplateSpec`.
    pub struct PodTemplate {
        /// Labels and annotations of the pods.
        pub metadata: Meta,
        /// Their spec.
        pub spec: PodSpec,
    }
}

view! {
    /// `apps/v1` ReplicaSet.
    pub struct ReplicaSet {
        /// Metadata.
        pub metadata: Meta,
        /// What is wished.
        pub spec: ReplicaSetSpec,
        /// What is.
        pub status: WorkloadStatus,
    }
}

view! {
    /// `apps/v1` ReplicaSetSpec; also what a DaemonSet needs of its own spec.
    pub struct ReplicaSetSpec {
        /// How many; `None` is upstream's 1.
        pub replicas: Option<u32>,
        /// Which pods.
        pub selector: LabelSelector,
        /// What they look like.
        pub template: PodTemplate,
    }
}

view! {
    /// The counts that workload controllers report.
    pub struct WorkloadStatus {
        /// Pods that are.
        pub replicas: u32,
        /// Pods that are Ready.
        pub ready_replicas: u32,
        /// Pods that are available.
        pub available_replicas: u32,
        /// The wish that these counts are about.
        pub observed_generation: Generation,
    }
}

view! {
    /// `apps/v1` Deployment.
    pub struct Deployment {
        /// Metadata.
        pub metadata: Meta,
        /// What is wished.
        pub spec: DeploymentSpec,
        /// What is.
        pub status: WorkloadStatus,
    }
}

view! {
    /// `apps/v1` DeploymentSpec, as far as minds read it.
    pub struct DeploymentSpec {
        /// How many; `None` is upstream's 1.
        pub replicas: Option<u32>,
        /// Which pods.
        pub selector: LabelSelector,
        /// What they look like.
        pub template: PodTemplate,
        /// No rollout while true.
        pub paused: bool,
    }
}

view! {
    /// `apps/v1` StatefulSet.
    pub struct StatefulSet {
        /// Metadata.
        pub metadata: Meta,
        /// What is wished.
        pub spec: StatefulSetSpec,
        /// What is.
        pub status: WorkloadStatus,
    }
}

view! {
    /// `apps/v1` StatefulSetSpec, as far as minds read it.
    pub struct StatefulSetSpec {
        /// How many; `None` is upstream's 1.
        pub replicas: Option<u32>,
        /// Which pods.
        pub selector: LabelSelector,
        /// What they look like.
        pub template: PodTemplate,
        /// The headless service that names them.
        pub service_name: String,
        /// One after the other, or all at once.
        pub pod_management_policy: PodManagement,
        /// One claim per template and ordinal.
        pub volume_claim_templates: Vec<ClaimTemplate>,
    }
}

/// How a StatefulSet orders its pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PodManagement {
    /// Ordinal by ordinal, each Ready before the next.
    #[default]
    OrderedReady,
    /// All at once, still one pod per ordinal.
    Parallel,
}

view! {
    /// A claim that each pod of a StatefulSet gets for itself.
    pub struct ClaimTemplate {
        /// Name and labels.
        pub metadata: Meta,
        /// The claim.
        pub spec: ClaimSpec,
    }
}

view! {
    /// `apps/v1` DaemonSet.
    pub struct DaemonSet {
        /// Metadata.
        pub metadata: Meta,
        /// What is wished.
        pub spec: ReplicaSetSpec,
    }
}

view! {
    /// `v1.Service`, as far as minds read it.
    pub struct Service {
        /// Metadata.
        pub metadata: Meta,
        /// Which pods it leads to.
        pub spec: ServiceSpec,
    }
}

view! {
    /// `v1.ServiceSpec`, as far as minds read it.
    pub struct ServiceSpec {
        /// Labels of the pods; none leads to nothing that we make.
        pub selector: std::collections::BTreeMap<String, String>,
        /// Also lists pods that are not Ready.
        pub publish_not_ready_addresses: bool,
    }
}

view! {
    /// `discovery.k8s.io/v1` EndpointSlice.
    pub struct EndpointSlice {
        /// Metadata; the label `kubernetes.io/service-name` says whose it is.
        pub metadata: Meta,
        /// IPv4, IPv6 or FQDN.
        pub address_type: String,
        /// Where the service leads.
        pub endpoints: Vec<Endpoint>,
    }
}

view! {
    /// `discovery.k8s.io/v1` Endpoint.
    pub struct Endpoint {
        /// Addresses of the pod.
        pub addresses: Vec<String>,
        /// Whether to send traffic.
        pub conditions: EndpointConditions,
        /// The node the pod is on.
        pub node_name: NodeName,
        /// The pod.
        pub target_ref: ObjectReference,
    }
}

/// `discovery.k8s.io/v1` EndpointConditions; written whole, since a missing `ready` means true to clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EndpointConditions {
    /// Send new traffic.
    pub ready: bool,
    /// Would serve, were it not terminating.
    pub serving: bool,
    /// On its way out.
    pub terminating: bool,
}

//! Views: what minds read of an object.
//!
//! Responsible for: one struct per kind with the fields that a decision needs, parsed at the door. Leaves to
//! `registry`: the object itself, which is a JSON tree and keeps fields that no view knows.
//!
//! Invariants: inside a view there is no `Option` for what has a default; a text with a closed set of values is an
//! enum; reading a view never fails because of a field that the view does not have. An object that no view can be
//! made of is not in the world at all: a mind does not decide about what it cannot read.

mod incident;
mod meta;
mod node;
mod pod;
mod volume;
mod workload;

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

pub use incident::{
    Brake, Council, CouncilSpec, Evidence, EvidenceKind, IncidentEnd, IncidentPhase, IncidentSpec,
    IncidentStatus, Membership, NodeIncident, Seat, Step, StepName, Tombstone, TombstoneSpec,
};
pub use meta::{Condition, ConditionStatus, Meta, ObjectReference, OwnerReference};
pub use node::{AttachedVolume, Lease, LeaseSpec, Node, NodeInfo, NodeSpec, NodeStatus};
pub use pod::{
    Affinity, Container, ContainerPort, ContainerState, ContainerStatus, NodeAffinity,
    PersistentVolumeClaimSource, Pod, PodPhase, PodSpec, PodStatus, Resources, RestartPolicy, StateRunning,
    StateTerminated, StateWaiting, Volume,
};
pub use volume::{
    AccessMode, ClaimSpec, ClaimStatus, CsiSource, NodeSelector, NodeSelectorTerm, PersistentVolume,
    PersistentVolumeClaim, PersistentVolumeSpec, Requirement, VolumeAttachment, VolumeAttachmentSource,
    VolumeAttachmentSpec, VolumeAttachmentStatus, VolumeNodeAffinity,
};
pub use workload::{
    ClaimTemplate, DaemonSet, Deployment, DeploymentSpec, Endpoint, EndpointConditions, EndpointSlice,
    PodManagement, PodTemplate, ReplicaSet, ReplicaSetSpec, Service, ServiceSpec, StatefulSet,
    StatefulSetSpec, WorkloadStatus,
};

use crate::object::{Kind, ObjectKey};

/// Any view, shared: a view is made once per revision and read by every mind of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is named after its kind")]
pub enum View {
    Node(Arc<Node>),
    Pod(Arc<Pod>),
    Lease(Arc<Lease>),
    ReplicaSet(Arc<ReplicaSet>),
    Deployment(Arc<Deployment>),
    StatefulSet(Arc<StatefulSet>),
    DaemonSet(Arc<DaemonSet>),
    PersistentVolume(Arc<PersistentVolume>),
    PersistentVolumeClaim(Arc<PersistentVolumeClaim>),
    VolumeAttachment(Arc<VolumeAttachment>),
    Service(Arc<Service>),
    EndpointSlice(Arc<EndpointSlice>),
    NodeIncident(Arc<NodeIncident>),
    Tombstone(Arc<Tombstone>),
    Council(Arc<Council>),
}

impl View {
    /// Reads the view of `kind` from the bytes of an object.
    ///
    /// # Errors
    /// The bytes are no JSON, or a field that the view has is of another type.
    pub fn read(kind: Kind, bytes: &[u8]) -> Result<Self, serde_json::Error> {
        fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<Arc<T>, serde_json::Error> {
            serde_json::from_slice(bytes).map(Arc::new)
        }
        Ok(match kind {
            Kind::Node => Self::Node(parse(bytes)?),
            Kind::Pod => Self::Pod(parse(bytes)?),
            Kind::Lease => Self::Lease(parse(bytes)?),
            Kind::ReplicaSet => Self::ReplicaSet(parse(bytes)?),
            Kind::Deployment => Self::Deployment(parse(bytes)?),
            Kind::StatefulSet => Self::StatefulSet(parse(bytes)?),
            Kind::DaemonSet => Self::DaemonSet(parse(bytes)?),
            Kind::PersistentVolume => Self::PersistentVolume(parse(bytes)?),
            Kind::PersistentVolumeClaim => Self::PersistentVolumeClaim(parse(bytes)?),
            Kind::VolumeAttachment => Self::VolumeAttachment(parse(bytes)?),
            Kind::Service => Self::Service(parse(bytes)?),
            Kind::EndpointSlice => Self::EndpointSlice(parse(bytes)?),
            Kind::NodeIncident => Self::NodeIncident(parse(bytes)?),
            Kind::Tombstone => Self::Tombstone(parse(bytes)?),
            Kind::Council => Self::Council(parse(bytes)?),
        })
    }

    /// The metadata, which every kind has.
    pub fn meta(&self) -> &Meta {
        match self {
            Self::Node(o) => &o.metadata,
            Self::Pod(o) => &o.metadata,
            Self::Lease(o) => &o.metadata,
            Self::ReplicaSet(o) => &o.metadata,
            Self::Deployment(o) => &o.metadata,
            Self::StatefulSet(o) => &o.metadata,
            Self::DaemonSet(o) => &o.metadata,
            Self::PersistentVolume(o) => &o.metadata,
            Self::PersistentVolumeClaim(o) => &o.metadata,
            Self::VolumeAttachment(o) => &o.metadata,
            Self::Service(o) => &o.metadata,
            Self::EndpointSlice(o) => &o.metadata,
            Self::NodeIncident(o) => &o.metadata,
            Self::Tombstone(o) => &o.metadata,
            Self::Council(o) => &o.metadata,
        }
    }

    /// The kind of the object.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Node(_) => Kind::Node,
            Self::Pod(_) => Kind::Pod,
            Self::Lease(_) => Kind::Lease,
            Self::ReplicaSet(_) => Kind::ReplicaSet,
            Self::Deployment(_) => Kind::Deployment,
            Self::StatefulSet(_) => Kind::StatefulSet,
            Self::DaemonSet(_) => Kind::DaemonSet,
            Self::PersistentVolume(_) => Kind::PersistentVolume,
            Self::PersistentVolumeClaim(_) => Kind::PersistentVolumeClaim,
            Self::VolumeAttachment(_) => Kind::VolumeAttachment,
            Self::Service(_) => Kind::Service,
            Self::EndpointSlice(_) => Kind::EndpointSlice,
            Self::NodeIncident(_) => Kind::NodeIncident,
            Self::Tombstone(_) => Kind::Tombstone,
            Self::Council(_) => Kind::Council,
        }
    }

    /// Where the object lies.
    pub fn key(&self) -> ObjectKey {
        let meta = self.meta();
        ObjectKey { kind: self.kind(), namespace: meta.namespace.clone(), name: meta.name.clone() }
    }
}

/// Declares a view: every field may be missing or null and then has its default; a default is not written.
macro_rules! view {
    ($(#[$doc:meta])* pub struct $name:ident { $($(#[$fdoc:meta])* pub $field:ident : $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name {
            $(
                $(#[$fdoc])*
                #[serde(
                    skip_serializing_if = "crate::view::is_default",
                    deserialize_with = "crate::view::null_is_default"
                )]
                pub $field: $type,
            )*
        }
    };
}
pub(crate) use view;

/// True if `value` is what a missing field means.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Clients write `null` where they mean "nothing" (`creationTimestamp: null` in every template).
pub(crate) fn null_is_default<'de, D, T>(d: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::<T>::deserialize(d).map(Option::unwrap_or_default)
}

/// The JSON tree of a view or of a part of one. A view has only string keys and no floats, so it cannot fail.
pub fn tree<T: Serialize>(part: &T) -> serde_json::Value {
    serde_json::to_value(part).unwrap_or(serde_json::Value::Null)
}

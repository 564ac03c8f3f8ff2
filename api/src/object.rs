//! Kinds and keys: where an object lies in the store.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::{Name, Namespace, NodeName};

/// The kinds that minds read. The registry knows more; a mind decides only about these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each variant is Kubernetes' or our own noun")]
pub enum Kind {
    Node,
    Pod,
    Lease,
    ReplicaSet,
    Deployment,
    StatefulSet,
    DaemonSet,
    PersistentVolume,
    PersistentVolumeClaim,
    VolumeAttachment,
    Service,
    EndpointSlice,
    NodeIncident,
    Tombstone,
    Council,
}

/// Where a kind lives: group, version, plural.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// API group; empty for core.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Plural noun in paths and keys.
    pub plural: &'static str,
    /// True if its objects have a namespace.
    pub namespaced: bool,
}

impl Kind {
    /// All kinds, in the order in which a store lists them.
    pub const ALL: [Self; 15] = [
        Self::Node,
        Self::Pod,
        Self::Lease,
        Self::ReplicaSet,
        Self::Deployment,
        Self::StatefulSet,
        Self::DaemonSet,
        Self::PersistentVolume,
        Self::PersistentVolumeClaim,
        Self::VolumeAttachment,
        Self::Service,
        Self::EndpointSlice,
        Self::NodeIncident,
        Self::Tombstone,
        Self::Council,
    ];

    /// Where the kind lives.
    pub const fn place(self) -> Place {
        const fn at(group: &'static str, plural: &'static str, namespaced: bool) -> Place {
            Place { group, version: "v1", plural, namespaced }
        }
        match self {
            Self::Node => at("", "nodes", false),
            Self::Pod => at("", "pods", true),
            Self::Lease => at("coordination.k8s.io", "leases", true),
            Self::ReplicaSet => at("apps", "replicasets", true),
            Self::Deployment => at("apps", "deployments", true),
            Self::StatefulSet => at("apps", "statefulsets", true),
            Self::DaemonSet => at("apps", "daemonsets", true),
            Self::PersistentVolume => at("", "persistentvolumes", false),
            Self::PersistentVolumeClaim => at("", "persistentvolumeclaims", true),
            Self::VolumeAttachment => at("storage.k8s.io", "volumeattachments", false),
            Self::Service => at("", "services", true),
            Self::EndpointSlice => at("discovery.k8s.io", "endpointslices", true),
            Self::NodeIncident => at("mainstay.dev", "nodeincidents", false),
            Self::Tombstone => at("mainstay.dev", "tombstones", false),
            Self::Council => at("mainstay.dev", "councils", false),
        }
    }

    /// The noun as it stands in `kind:`.
    pub fn noun(self) -> String {
        format!("{self:?}")
    }

    /// The text of `apiVersion:`.
    pub fn api_version(self) -> String {
        let place = self.place();
        if place.group.is_empty() {
            place.version.to_owned()
        } else {
            format!("{}/{}", place.group, place.version)
        }
    }

    /// The beginning of the store keys of this kind.
    pub fn prefix(self) -> String {
        let place = self.place();
        if place.group.is_empty() {
            format!("/registry/{}/", place.plural)
        } else {
            format!("/registry/{}/{}/", place.group, place.plural)
        }
    }
}

/// One object: kind, namespace, name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace; empty for objects of the cluster.
    pub namespace: Namespace,
    /// Its name.
    pub name: Name,
}

impl ObjectKey {
    /// An object of the cluster.
    pub fn cluster(kind: Kind, name: impl Into<Name>) -> Self {
        Self { kind, namespace: Namespace::default(), name: name.into() }
    }

    /// An object in a namespace.
    pub fn namespaced(kind: Kind, namespace: &Namespace, name: impl Into<Name>) -> Self {
        Self { kind, namespace: namespace.clone(), name: name.into() }
    }

    /// A node by its name.
    pub fn node(name: &NodeName) -> Self {
        Self::cluster(Kind::Node, Name::from(name))
    }

    /// The key under which the store keeps the object.
    pub fn store_key(&self) -> String {
        if self.namespace.is_empty() {
            format!("{}{}", self.kind.prefix(), self.name)
        } else {
            format!("{}{}/{}", self.kind.prefix(), self.namespace, self.name)
        }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/", self.kind.noun().to_lowercase())?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        fmt::Display::fmt(&self.name, f)
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

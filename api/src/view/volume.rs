//! Views of PersistentVolume, PersistentVolumeClaim and VolumeAttachment.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Meta, ObjectReference, view};
use crate::id::{Name, NodeName};

/// How many nodes, or pods, may use a volume at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AccessMode {
    /// RWO: one node.
    ReadWriteOnce,
    /// ROX: many nodes, reading.
    ReadOnlyMany,
    /// RWX: many nodes.
    ReadWriteMany,
    /// RWOP: one pod.
    ReadWriteOncePod,
}

impl AccessMode {
    /// True if one node at most may hold the volume.
    pub fn is_single_node(self) -> bool {
        match self {
            Self::ReadWriteOnce | Self::ReadWriteOncePod => true,
            Self::ReadOnlyMany | Self::ReadWriteMany => false,
        }
    }
}

view! {
    /// `v1.PersistentVolume`.
    pub struct PersistentVolume {
        /// Metadata.
        pub metadata: Meta,
        /// The volume.
        pub spec: PersistentVolumeSpec,
    }
}

view! {
    /// `v1.PersistentVolumeSpec`, as far as minds read it.
    pub struct PersistentVolumeSpec {
        /// What the volume can do.
        pub access_modes: Vec<AccessMode>,
        /// The claim it is bound to.
        pub claim_ref: Option<ObjectReference>,
        /// Set if a CSI driver serves it; only such volumes are attached.
        pub csi: Option<CsiSource>,
        /// Which nodes can reach it.
        pub node_affinity: VolumeNodeAffinity,
        /// Class it belongs to.
        pub storage_class_name: String,
    }
}

view! {
    /// `v1.CSIPersistentVolumeSource`.
    pub struct CsiSource {
        /// Name of the driver.
        pub driver: String,
        /// Name of the volume at the driver.
        pub volume_handle: String,
    }
}

impl PersistentVolume {
    /// The unique name under which nodes report the volume, if it is one that is attached.
    pub fn unique_name(&self) -> Option<String> {
        let csi = self.spec.csi.as_ref()?;
        Some(format!("kubernetes.io/csi/{}^{}", csi.driver, csi.volume_handle))
    }

    /// AD-01: true if several nodes may have it at once. A volume that states no mode is of unknown kind, and the
    /// stock controller lets such a volume go to many.
    pub fn is_multi_attach(&self) -> bool {
        self.spec.access_modes.is_empty() || self.spec.access_modes.iter().any(|m| !m.is_single_node())
    }
}

view! {
    /// `v1.VolumeNodeAffinity`.
    pub struct VolumeNodeAffinity {
        /// Must hold for a node to use the volume.
        pub required: NodeSelector,
    }
}

view! {
    /// `v1.NodeSelector`: one of the terms must hold; no terms at all hold everywhere.
    pub struct NodeSelector {
        /// Alternatives.
        pub node_selector_terms: Vec<NodeSelectorTerm>,
    }
}

view! {
    /// `v1.NodeSelectorTerm`: all requirements must hold.
    pub struct NodeSelectorTerm {
        /// Requirements on labels.
        pub match_expressions: Vec<Requirement>,
        /// Requirements on `metadata.name`.
        pub match_fields: Vec<Requirement>,
    }
}

view! {
    /// `v1.NodeSelectorRequirement`.
    pub struct Requirement {
        /// Label or field.
        pub key: String,
        /// In, NotIn, Exists, DoesNotExist, Gt or Lt.
        pub operator: String,
        /// What is compared with.
        pub values: Vec<String>,
    }
}

impl NodeSelector {
    /// True if a node with this name and these labels may be chosen.
    pub fn matches(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        self.node_selector_terms.is_empty()
            || self.node_selector_terms.iter().any(|t| t.matches(name, labels))
    }
}

impl NodeSelectorTerm {
    fn matches(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        // A term without any requirement matches nothing, as upstream has it.
        if self.match_expressions.is_empty() && self.match_fields.is_empty() {
            return false;
        }
        self.match_expressions.iter().all(|r| r.matches(labels.get(&r.key).map(String::as_str)))
            && self.match_fields.iter().all(|r| r.matches((r.key == "metadata.name").then_some(name)))
    }
}

impl Requirement {
    fn matches(&self, value: Option<&str>) -> bool {
        let listed = |v: &str| self.values.iter().any(|w| w == v);
        let number = |text: Option<&str>| text.and_then(|t| t.parse::<i64>().ok());
        let bound = number(self.values.first().map(String::as_str));
        match self.operator.as_str() {
            "In" => value.is_some_and(listed),
            "NotIn" => !value.is_some_and(listed),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            "Gt" => number(value).zip(bound).is_some_and(|(v, b)| v > b),
            "Lt" => number(value).zip(bound).is_some_and(|(v, b)| v < b),
            _ => false,
        }
    }
}

view! {
    /// `v1.PersistentVolumeClaim`.
    pub struct PersistentVolumeClaim {
        /// Metadata.
        pub metadata: Meta,
        /// What is wished.
        pub spec: ClaimSpec,
        /// What is.
        pub status: ClaimStatus,
    }
}

view! {
    /// `v1.PersistentVolumeClaimSpec`, as far as minds read it.
    pub struct ClaimSpec {
        /// How it is to be used.
        pub access_modes: Vec<AccessMode>,
        /// The volume behind it; empty while not bound.
        pub volume_name: Name,
        /// Class it asks for.
        pub storage_class_name: String,
    }
}

view! {
    /// `v1.PersistentVolumeClaimStatus`.
    pub struct ClaimStatus {
        /// Pending, Bound or Lost.
        pub phase: String,
    }
}

impl PersistentVolumeClaim {
    /// True if the claim lets one node at most use its volume.
    pub fn is_single_node(&self) -> bool {
        !self.spec.access_modes.iter().any(|m| !m.is_single_node())
    }
}

view! {
    /// `storage.k8s.io/v1` VolumeAttachment.
    pub struct VolumeAttachment {
        /// Metadata; VA-01 says how the name is made.
        pub metadata: Meta,
        /// Which volume to which node.
        pub spec: VolumeAttachmentSpec,
        /// Whether it is.
        pub status: VolumeAttachmentStatus,
    }
}

view! {
    /// `storage.k8s.io/v1` VolumeAttachmentSpec.
    pub struct VolumeAttachmentSpec {
        /// The driver that attaches.
        pub attacher: String,
        /// The volume.
        pub source: VolumeAttachmentSource,
        /// The node.
        pub node_name: NodeName,
    }
}

view! {
    /// `storage.k8s.io/v1` VolumeAttachmentSource.
    pub struct VolumeAttachmentSource {
        /// Name of the PersistentVolume.
        pub persistent_volume_name: Name,
    }
}

view! {
    /// `storage.k8s.io/v1` VolumeAttachmentStatus.
    pub struct VolumeAttachmentStatus {
        /// The driver has done it.
        pub attached: bool,
    }
}

//! Views of Node and Lease.

use std::collections::BTreeMap;

use super::{Condition, ConditionStatus, Meta, view};
use crate::annotation;
use crate::id::{BootId, Name, NodeName, Uid};
use crate::quantity::Quantity;
use crate::taint::Taint;
use crate::time::Time;

view! {
    /// `v1.Node`.
    pub struct Node {
        /// Metadata; the name is the name of the machine.
        pub metadata: Meta,
        /// What is wished of the node.
        pub spec: NodeSpec,
        /// What its agent, and the controllers, say of it.
        pub status: NodeStatus,
    }
}

view! {
    /// `v1.NodeSpec`.
    pub struct NodeSpec {
        /// Cordoned by a human.
        pub unschedulable: bool,
        /// What keeps pods away.
        pub taints: Vec<Taint>,
        /// The range of pod addresses of this node.
        #[serde(rename = "podCIDR")]
        pub pod_cidr: String,
    }
}

view! {
    /// `v1.NodeStatus`.
    pub struct NodeStatus {
        /// What pods may ask for, by resource name.
        pub allocatable: BTreeMap<String, Quantity>,
        /// Everything the machine has.
        pub capacity: BTreeMap<String, Quantity>,
        /// Ready, pressures, network.
        pub conditions: Vec<Condition>,
        /// Versions and the boot id, as the agent states them.
        pub node_info: NodeInfo,
        /// Volumes that the attach/detach controller says are attached; a mount needs its volume here (AD-38).
        pub volumes_attached: Vec<AttachedVolume>,
        /// Unique names of volumes that the agent has, or may have, mounted.
        pub volumes_in_use: Vec<String>,
    }
}

view! {
    /// `v1.NodeSystemInfo`, as far as minds read it.
    pub struct NodeInfo {
        /// The boot as the agent states it. Decisions use the *recorded* boot of the Node, not this.
        #[serde(rename = "bootID")]
        pub boot_id: BootId,
        /// The machine, over boots.
        #[serde(rename = "machineID")]
        pub machine_id: String,
    }
}

view! {
    /// `v1.AttachedVolume`.
    pub struct AttachedVolume {
        /// Unique name: `kubernetes.io/csi/<driver>^<handle>`.
        pub name: String,
        /// Where the device is, or empty.
        pub device_path: String,
    }
}

impl Node {
    /// The name of the machine.
    pub fn name(&self) -> NodeName {
        NodeName::from(&self.metadata.name)
    }

    /// The condition of that type, if there is one.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.status.conditions.iter().find(|c| c.kind == kind)
    }

    /// The Ready condition's status; Unknown if there is none.
    pub fn ready(&self) -> ConditionStatus {
        self.condition("Ready").map_or(ConditionStatus::Unknown, |c| c.status)
    }

    /// The boot that the leader recorded before it granted anything to it (protocol rule C15); empty if none.
    pub fn recorded_boot(&self) -> BootId {
        self.metadata
            .annotations
            .get(annotation::RECORDED_BOOT)
            .map(|b| BootId::from(b.as_str()))
            .unwrap_or_default()
    }

    /// When this boot announced that it is about to reboot, if it did.
    pub fn announced_reboot(&self) -> Option<(BootId, Time)> {
        let text = self.metadata.annotations.get(annotation::REBOOT_ANNOUNCED)?;
        let (boot, at) = text.split_once('@')?;
        Some((BootId::from(boot), Time::parse_rfc3339(at)?))
    }

    /// True if a taint with this key stands, whatever its value and effect.
    pub fn has_taint(&self, key: &str) -> bool {
        self.spec.taints.iter().any(|t| t.key == key)
    }
}

view! {
    /// `coordination.k8s.io/v1` Lease.
    pub struct Lease {
        /// Metadata; a node's lease has the node's name, in `kube-node-lease`.
        pub metadata: Meta,
        /// Who holds it and since when.
        pub spec: LeaseSpec,
    }
}

view! {
    /// `coordination.k8s.io/v1` LeaseSpec.
    pub struct LeaseSpec {
        /// Who holds it: for a node's lease the node's name.
        pub holder_identity: Name,
        /// How long it holds, in seconds, after `renew_time`.
        pub lease_duration_seconds: u64,
        /// When it was last renewed, by the holder's clock. Only *whether it changed* is used (NLC-02).
        pub renew_time: Time,
        /// The node uid that renewed, so that a new machine of the same name is not taken for the old one.
        pub holder_uid: Uid,
    }
}

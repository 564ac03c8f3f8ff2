//! Volumes: which node has which.
//!
//! Responsible for: who uses a volume, the names of attachments, attaching and detaching ([`attach`], [`detach`]).
//! Leaves to the CSI attacher the call to the driver (it holds a finalizer on every attachment), to agents mounting and
//! the report of what is mounted. Binding claims to volumes, and attaching what a pod names without a claim, would
//! stand here; neither is done yet.
//!
//! Invariant V1: a volume for one node has one VolumeAttachment at most. While an attachment exists, in whatever
//! state, the volume counts as attached; it ends to exist when the driver has taken the volume away.

pub mod attach;
pub mod detach;
mod sha256;

#[cfg(test)]
mod tests;

use api::view::{CsiSource, Node, PersistentVolume, Pod, VolumeAttachment};
use api::{Kind, Name, NodeName, ObjectKey, Uid, annotation};

use crate::world::{Seen, World};

/// VA-01: handle, driver and node put together without separators.
pub fn attachment_name(csi: &CsiSource, node: &NodeName) -> Name {
    let text = format!("{}{}{node}", csi.volume_handle, csi.driver);
    Name::from(format!("csi-{}", sha256::hex(text.as_bytes())))
}

/// True while a pod keeps its volumes attached: until it is final, or terminates and reports nothing as running. A pod
/// on a dead node whose last word was "running" keeps them until its object goes or becomes final.
pub(crate) fn keeps_volumes(pod: &Pod) -> bool {
    pod.is_bound() && !pod.is_terminal() && (!pod.metadata.is_terminating() || pod.has_running_container())
}

/// Pods that want a volume on the node that they are bound to.
fn users<'w>(world: &'w World, volume: &PersistentVolume) -> impl Iterator<Item = &'w Seen<Pod>> + use<'w> {
    let (claim, name) = (volume.spec.claim_ref.clone(), volume.metadata.name.clone());
    let claim =
        claim.filter(|c| world.claim(&c.namespace, &c.name).is_some_and(|c| c.spec.volume_name == name));
    let keys = claim.map(|c| (c.namespace, c.name));
    keys.into_iter().flat_map(|(ns, name)| world.pods_using(&ns, &name)).filter(|p| keeps_volumes(p))
}

/// The identity of the node that an attachment was made for; empty if it was not made by us.
pub(crate) fn attachment_node_uid(attachment: &VolumeAttachment) -> Uid {
    attachment
        .metadata
        .annotations
        .get(annotation::NODE_UID)
        .map(|u| Uid::from(u.as_str()))
        .unwrap_or_default()
}

/// True unless the agent of the node attaches by itself.
fn is_managed(node: &Node) -> bool {
    node.metadata.annotations.get(annotation::CONTROLLER_MANAGED_ATTACH).is_none_or(|v| v != "false")
}

fn volume_key(name: &Name) -> ObjectKey {
    ObjectKey::cluster(Kind::PersistentVolume, name.clone())
}

fn attachment_key(attachment: &VolumeAttachment) -> ObjectKey {
    ObjectKey::cluster(Kind::VolumeAttachment, attachment.metadata.name.clone())
}

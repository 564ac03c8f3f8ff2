//! Since when nobody wants an attachment (AD-04, AD-30, AD-33).
//!
//! Responsible for: the moment at which this process first saw that no pod on the node wants the volume any more.
//! Leaves to [`crate::volume::attach`] what "wants" means and what follows. Under the automatic profiles nothing
//! follows from it but a number in `why`: time alone never detaches.
//!
//! Invariant: derived from the views at each change; a pod that wants the volume again clears it.

use api::view::View;
use api::{Name, Time};

use super::World;
use crate::volume::attach::is_wanted;

impl World {
    /// When this process first saw that nobody wants that attachment; `None` while somebody does.
    pub fn unwanted_since(&self, attachment: &Name) -> Option<Time> {
        self.unwanted.get(attachment).copied()
    }

    pub(super) fn remember_attachments(&mut self, old: Option<&View>, new: Option<&View>, now: Time) {
        if let (Some(View::VolumeAttachment(gone)), None) = (old, new) {
            self.unwanted.remove(&gone.metadata.name);
            return;
        }
        let mut concerned = Vec::new();
        for view in [old, new].into_iter().flatten() {
            match view {
                View::Pod(pod) => {
                    for claim in pod.claims() {
                        let volume = self.volume_of_claim(&pod.metadata.namespace, claim);
                        concerned
                            .extend(volume.into_iter().flat_map(|v| self.attachments_of(&v.metadata.name)));
                    }
                }
                View::PersistentVolumeClaim(claim) => {
                    concerned.extend(self.attachments_of(&claim.spec.volume_name))
                }
                View::PersistentVolume(volume) => {
                    concerned.extend(self.attachments_of(&volume.metadata.name))
                }
                View::VolumeAttachment(attachment) => {
                    concerned.extend(self.attachment(&attachment.metadata.name))
                }
                View::Node(_)
                | View::Lease(_)
                | View::ReplicaSet(_)
                | View::Deployment(_)
                | View::StatefulSet(_)
                | View::DaemonSet(_)
                | View::Service(_)
                | View::EndpointSlice(_)
                | View::NodeIncident(_)
                | View::Tombstone(_)
                | View::Council(_) => {}
            }
        }
        let wanted: Vec<(Name, bool)> =
            concerned.into_iter().map(|a| (a.metadata.name.clone(), is_wanted(self, a))).collect();
        for (name, wanted) in wanted {
            if wanted {
                self.unwanted.remove(&name);
            } else {
                self.unwanted.entry(name).or_insert(now);
            }
        }
    }
}

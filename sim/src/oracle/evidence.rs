//! E1 and T1: irreversible acts rest on evidence, and the evidence is true.
//!
//! Responsible for: evidence at the moment it is recorded, removal of exclusive pods, detachment of volumes, removal of
//! tombstones. Leaves two copies that follow from a false one to [`super::twice`]; this oracle speaks earlier.
//!
//! The strongest question is asked of the truth: when somebody records that a node cannot act any more, does anything
//! exclusive of that node uid still move? A machine that was just resumed is excused within its bound.

use std::collections::BTreeSet;

use api::view::{EvidenceKind, Pod, View, VolumeAttachment};
use api::{Kind, NodeName, ObjectKey, Uid};

use super::scene::Scene;
use super::{Voice, Watch};
use crate::observe::{Fact, Observation};

/// Invariant E1.
#[derive(Debug, Default)]
pub(super) struct Proofs {
    /// Pods of which their node said that they have ended.
    ended: BTreeSet<Uid>,
}

/// Invariant T1.
#[derive(Debug)]
pub(super) struct Tombstones;

// === impl Proofs ===

impl Watch for Proofs {
    fn see(&mut self, scene: &Scene, fact: &Fact, voice: &mut Voice<'_>) {
        if !scene.setting.is_automatic() {
            return;
        }
        match &fact.what {
            Observation::Evidence { uid, kind, .. } => check_evidence(scene, uid, *kind, voice),
            Observation::Written { key, old: Some(View::Pod(pod)), new, by, .. } if key.kind == Kind::Pod => {
                match new {
                    Some(View::Pod(new)) if by.starts_with("node ") && new.is_terminal() => {
                        self.ended.insert(pod.metadata.uid.clone());
                    }
                    None => {
                        self.check_removal(scene, pod, by, voice);
                        self.ended.remove(&pod.metadata.uid);
                    }
                    Some(_) => {}
                }
            }
            Observation::Written { old: Some(View::VolumeAttachment(attachment)), new: None, .. } => {
                check_detach(scene, attachment, voice);
            }
            _ => {}
        }
    }
}

/// Nothing exclusive of that node uid may move when it is recorded that nothing can.
fn check_evidence(scene: &Scene, uid: &Uid, kind: EvidenceKind, voice: &mut Voice<'_>) {
    let on_word_alone = match kind {
        // Without a guard a human's word counts at once; the incident says on whose word.
        EvidenceKind::Operator | EvidenceKind::NodeDeleted => !scene.is_armed(),
        // The storage refuses the node: what runs there writes nowhere.
        EvidenceKind::Storage => true,
        EvidenceKind::LeaseExpiry | EvidenceKind::PowerOff | EvidenceKind::NewBoot => false,
    };
    if on_word_alone {
        return;
    }
    if let Some(instance) = scene.moving().find(|i| i.exclusive && i.node_uid == *uid) {
        voice.say(format!(
            "{kind:?} is recorded about node uid {uid}, but pod {}/{} runs on {} in boot {}",
            instance.namespace, instance.name, instance.machine, instance.boot
        ));
    }
}

impl Proofs {
    /// The object of an exclusive pod went by a controller's hand.
    fn check_removal(&self, scene: &Scene, pod: &Pod, by: &str, voice: &mut Voice<'_>) {
        if !by.starts_with("server-") || !pod.is_bound() || !scene.is_exclusive(pod) {
            return;
        }
        let uid = &pod.metadata.uid;
        let name = format!("pod {}/{} ({uid})", pod.metadata.namespace, pod.metadata.name);
        let remembered = scene.object(&ObjectKey::cluster(Kind::Tombstone, uid.as_str())).is_some();
        if let Some(instance) = scene.runs(uid)
            && !remembered
            && !scene.is_excused(&instance.machine)
        {
            voice.say(format!("{by} removed {name}, but it runs on {}", instance.machine));
            return;
        }
        let proven = scene.incidents().any(|i| i.was_fenced() && i.spec.node_uid == pod.node_uid());
        if !remembered && !proven && !self.ended.contains(uid) {
            voice.say(format!("{by} removed {name} without its node's word, evidence or a tombstone"));
        }
    }
}

/// A volume was detached by the word of the store: the machine must not be able to write to it.
fn check_detach(scene: &Scene, attachment: &VolumeAttachment, voice: &mut Voice<'_>) {
    let node: &NodeName = &attachment.spec.node_name;
    let volume = &attachment.spec.source.persistent_volume_name;
    let mounted = scene.machine(node).and_then(|m| m.mounted.get(volume));
    if mounted == Some(&true) && scene.is_awake(node) && !scene.is_excused(node) {
        voice.say(format!("volume {volume} is detached from {node}, which has it mounted"));
    }
}

// === impl Tombstones ===

impl Watch for Tombstones {
    fn see(&mut self, scene: &Scene, fact: &Fact, voice: &mut Voice<'_>) {
        let Observation::Written { old: Some(View::Tombstone(tombstone)), new: None, by, .. } = &fact.what
        else {
            return;
        };
        let spec = &tombstone.spec;
        if let Some(instance) = scene.moving().find(|i| i.pod_uid == spec.pod_uid) {
            voice.say(format!(
                "{by} removed the tombstone of pod {}/{} ({}), which runs on {}",
                spec.pod_namespace, spec.pod_name, spec.pod_uid, instance.machine
            ));
        }
    }
}

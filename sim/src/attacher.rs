//! The storage's own controller: what an external attacher does by the rules of VolumeAttachments.
//!
//! Responsible for: attaching what is asked for, detaching what is to go, and the finalizer in between. Leaves to
//! `control` what should be attached where.
//!
//! It does not fence: it attaches a volume to a second machine if the API asks for that, and a detach does not take a
//! mount away. So that whoever relies on the storage to keep two writers apart is found out.

use std::collections::BTreeSet;

use api::edit::Edit;
use api::view::{View, VolumeAttachment};
use api::{Duration, Kind, Name, ObjectKey, Uid};
use control::decision::Expect;

use crate::cluster::Cluster;
use crate::event::{AttacherEvent, Event};
use crate::truth::Change;
use crate::write::{Act, Answered};

/// From a change until the attacher looks.
const NOTICE: (Duration, Duration) = (Duration::from_ms(1), Duration::from_ms(30));
/// One attach or detach.
const MOVE: (Duration, Duration) = (Duration::from_ms(50), Duration::from_ms(300));
/// After a failure.
const AGAIN: Duration = Duration::from_ms(500);

/// What the storage has attached.
#[derive(Debug, Default)]
pub(crate) struct Attacher {
    attached: BTreeSet<(Name, usize)>,
    /// Attachments on which it works.
    busy: BTreeSet<ObjectKey>,
}

impl Attacher {
    /// True if the volume is attached to that machine.
    pub(crate) fn has(&self, volume: &Name, machine: usize) -> bool {
        self.attached.contains(&(volume.clone(), machine))
    }
}

impl Cluster {
    pub(crate) fn notify_attacher(&mut self, change: &Change) {
        if change.key.kind == Kind::VolumeAttachment && change.new.is_some() {
            self.attacher_looks(change.key.clone(), NOTICE.0, NOTICE.1);
        }
    }

    fn attacher_looks(&mut self, key: ObjectKey, low: Duration, high: Duration) {
        let wait = self.chance.span(low, high);
        self.agenda.put(self.now + wait, Event::Attacher(AttacherEvent::Look(key)));
    }

    pub(crate) fn attacher_event(&mut self, event: AttacherEvent) {
        match event {
            AttacherEvent::Look(key) => self.attacher_look(key),
            AttacherEvent::Moved { key, uid, attach } => self.attacher_moved(key, &uid, attach),
        }
    }

    fn attachment(&self, key: &ObjectKey) -> Option<&VolumeAttachment> {
        match self.truth.view(key) {
            Some(View::VolumeAttachment(attachment)) => Some(attachment),
            Some(_) | None => None,
        }
    }

    fn attacher_look(&mut self, key: ObjectKey) {
        let Some(attachment) = self.attachment(&key) else { return };
        let uid = attachment.metadata.uid.clone();
        let finalizer = finalizer(attachment);
        let held = attachment.metadata.finalizers.contains(&finalizer);
        let going = attachment.metadata.is_terminating();
        let attached = attachment.status.attached;
        if self.attacher.busy.contains(&key) || (going && !held) || (attached && !going) {
            return;
        }
        if !held {
            // VA: the finalizer stands before anything is attached.
            let expect = [Expect::Uid(key.clone(), uid)];
            let act = Edit::AddFinalizer(finalizer);
            self.attacher_writes(&key, &act, &expect);
            return;
        }
        self.attacher.busy.insert(key.clone());
        let takes = self.chance.span(MOVE.0, MOVE.1);
        let moved = AttacherEvent::Moved { key, uid, attach: !going };
        self.agenda.put(self.now + takes, Event::Attacher(moved));
    }

    fn attacher_moved(&mut self, key: ObjectKey, uid: &Uid, attach: bool) {
        self.attacher.busy.remove(&key);
        let Some(attachment) = self.attachment(&key).filter(|a| a.metadata.uid == *uid) else { return };
        let volume = attachment.spec.source.persistent_volume_name.clone();
        let finalizer = finalizer(attachment);
        if let Some(machine) = self.names.get(&attachment.spec.node_name).copied() {
            if attach {
                self.attacher.attached.insert((volume, machine));
            } else {
                self.attacher.attached.remove(&(volume, machine));
            }
        }
        let act = if attach { Edit::Attached(true) } else { Edit::RemoveFinalizer(finalizer) };
        let expect = [Expect::Uid(key.clone(), uid.clone())];
        self.attacher_writes(&key, &act, &expect);
        self.attacher_looks(key, NOTICE.0, NOTICE.1);
    }

    fn attacher_writes(&mut self, key: &ObjectKey, edit: &Edit, expect: &[Expect]) {
        match self.write_from_outside(Act::Edit(key, edit), expect, "attacher") {
            Some(Answered::Done(_) | Answered::NotFound(_) | Answered::Refused) => {}
            Some(
                Answered::Stale(_)
                | Answered::Exists(_)
                | Answered::Unavailable
                | Answered::Deposed
                | Answered::Unknown,
            )
            | None => self.attacher_looks(key.clone(), AGAIN, AGAIN),
        }
    }
}

fn finalizer(attachment: &VolumeAttachment) -> String {
    format!("external-attacher/{}", attachment.spec.attacher.replace('.', "-"))
}

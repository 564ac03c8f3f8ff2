//! The agent's part about pods: from events to workers, from steps to ops.
//!
//! Responsible for: which workers there are, looking at one of them, its reports and its final removal. Leaves to
//! [`crate::pod`] every decision about a single pod.
//!
//! Invariants: KR-21: a pod's object goes by this node's word only when its containers are gone, its volumes are
//! unmounted and its terminal status is written; a pod that is bound to another Node object of this name is neither
//! started nor spoken of (P86).

use std::sync::Arc;

use api::edit::Edit;
use api::view::{Pod, PodPhase};
use api::{Kind, Name, Namespace, ObjectKey, Rev, Time, Uid};

use super::{Agent, CALL_RETRY, Target};
use crate::event::Outcome;
use crate::host::PodOnHost;
use crate::ledger::Note;
use crate::op::{Call, Guarded, Op, PodAct};
use crate::pod::{InFlight, Life, Source, Step, Why, Worker, plan, status};

/// Wait after the object was removed before it is tried again: the watch needs that long at most to say that it is gone.
const REMOVE_RETRY: api::Duration = api::Duration::from_secs(10);

/// How soon the same status is said again when the API holds another. At half, two writers that disagree are twice as
/// loud; at double, a pod that a controller wrongly called unready gets no traffic for that much longer.
const REPEAT: api::Duration = api::Duration::from_secs(5);

impl Agent {
    pub(super) fn observe_all(&mut self, now: Time, list: Vec<PodOnHost>) {
        self.observed = true;
        let mut missing: Vec<Uid> = self.workers_by_uid.keys().cloned().collect();
        missing.retain(|uid| !list.iter().any(|p| p.uid == *uid));
        for uid in missing {
            if let Some(worker) = self.workers_by_uid.get_mut(&uid) {
                let nothing = PodOnHost::nothing(&uid, &worker.seen.namespace, &worker.seen.name);
                worker.observe(nothing, &self.ground.boot);
            }
        }
        for seen in list {
            self.observe(now, seen);
        }
        self.touch_all();
    }

    pub(super) fn observe(&mut self, _now: Time, seen: PodOnHost) {
        let uid = seen.uid.clone();
        match self.workers_by_uid.get_mut(&uid) {
            Some(worker) => worker.observe(seen, &self.ground.boot),
            None if seen.is_empty() => return,
            None => {
                let source = if self.ground.synced { Source::Nobody } else { Source::Unknown };
                self.workers_by_uid.insert(uid.clone(), Worker::new(&uid, source, seen));
            }
        }
        self.touched.insert(uid);
    }

    pub(super) fn wish(&mut self, pod: Arc<Pod>, rev: Rev) {
        let uid = pod.metadata.uid.clone();
        let meta = &pod.metadata;
        let nothing = || PodOnHost::nothing(&uid, &meta.namespace, &meta.name);
        let worker = self
            .workers_by_uid
            .entry(uid.clone())
            .or_insert_with(|| Worker::new(&uid, Source::Unknown, nothing()));
        worker.wish(pod.clone(), rev);
        self.touched.insert(uid);
    }

    pub(super) fn removed(&mut self, uid: &Uid) {
        if let Some(worker) = self.workers_by_uid.get_mut(uid) {
            worker.source = Source::Nobody;
            self.touched.insert(uid.clone());
        }
        if self.ground.doomed.contains(uid) {
            self.count_doomed();
        }
    }

    pub(super) fn touch_claim(&mut self, namespace: &Namespace, claim: &Name) {
        for (uid, worker) in &self.workers_by_uid {
            let uses = worker
                .pod()
                .is_some_and(|p| p.metadata.namespace == *namespace && p.claims().any(|c| c == claim));
            if uses {
                self.touched.insert(uid.clone());
            }
        }
    }

    /// Looks at one pod: at most one op for the host or the disk, and at most one call.
    pub(super) fn look_at(&mut self, uid: &Uid, now: Time, ops: &mut Vec<Op>) {
        if !self.observed {
            return;
        }
        self.node.looked();
        let Some(worker) = self.workers_by_uid.get_mut(uid) else { return };
        let step = plan(worker, &self.ground, now);
        match step {
            Step::Nothing => {}
            Step::Drop => {
                self.workers_by_uid.remove(uid);
                return;
            }
            Step::Keep => self.keep_pod(uid, ops),
            Step::Forget => {
                let id = self.keep(Note::ForgetPod(uid.clone()), Target::Forget(uid.clone()), ops);
                self.fly(uid, InFlight::Keep(id));
            }
            Step::Act(act) => self.act(uid, act, now, ops),
        }
        self.report(uid, now, ops);
        self.remove_object(uid, now, ops);
    }

    fn keep_pod(&mut self, uid: &Uid, ops: &mut Vec<Op>) {
        let Some(worker) = self.workers_by_uid.get_mut(uid) else { return };
        let Some(entry) = worker.entry.clone() else { return };
        worker.dirty = false;
        worker.kept = true;
        let id = self.keep(Note::Pod(uid.clone(), Box::new(entry)), Target::Pod(uid.clone()), ops);
        self.fly(uid, InFlight::Keep(id));
    }

    fn act(&mut self, uid: &Uid, act: PodAct, now: Time, ops: &mut Vec<Op>) {
        let begins = match act {
            PodAct::Mount { .. } | PodAct::CreateSandbox { .. } | PodAct::StartContainer { .. } => true,
            PodAct::Unmount { .. } | PodAct::Terminate | PodAct::Kill | PodAct::RemoveSandbox => false,
        };
        // Invariant S1: nothing exclusive leaves here without a permission, whatever led to it.
        debug_assert!(
            act.guarded() == Guarded::No || self.ground.permits(uid, now),
            "an exclusive pod is begun without a grant"
        );
        // A signal changes nothing that can be seen.
        let silent = act == PodAct::Terminate;
        let id = self.new_op(Target::Pod(uid.clone()));
        ops.push(Op::Pod { id, uid: uid.clone(), act });
        self.fly(uid, if begins { InFlight::Begins(id) } else { InFlight::Ends(id) });
        if let Some(worker) = self.workers_by_uid.get_mut(uid) {
            worker.progress = silent;
        }
    }

    fn fly(&mut self, uid: &Uid, in_flight: InFlight) {
        let Some(worker) = self.workers_by_uid.get_mut(uid) else { return };
        debug_assert!(worker.in_flight.is_none(), "two ops in flight for one pod");
        worker.in_flight = Some(in_flight);
    }

    pub(super) fn pod_done(&mut self, now: Time, uid: &Uid, outcome: Outcome) {
        let Some(worker) = self.workers_by_uid.get_mut(uid) else { return };
        debug_assert!(worker.in_flight.is_some(), "an outcome for a pod that has no op in flight");
        worker.in_flight = None;
        match outcome {
            Outcome::Host(seen) => {
                worker.observe(seen, &self.ground.boot);
                // An act that changed nothing would be repeated at once, and for ever.
                if worker.progress { worker.succeeded() } else { worker.failed(now) }
            }
            Outcome::HostFailed { seen, why: _ } => {
                worker.observe(seen, &self.ground.boot);
                worker.terminated = false;
                worker.failed(now);
            }
            // The guard's word was newer than the agent's copy of it.
            Outcome::Forbidden => worker.failed(now),
            Outcome::Kept => {}
            Outcome::Written(_)
            | Outcome::Conflict
            | Outcome::NotFound
            | Outcome::Exists
            | Outcome::Unreachable => debug_assert!(false, "an outcome of a call for an act on a pod"),
        }
        self.touched.insert(uid.clone());
    }

    pub(super) fn forgotten(&mut self, uid: &Uid) {
        if let Some(worker) = self.workers_by_uid.get_mut(uid) {
            worker.in_flight = None;
            worker.kept = false;
            worker.dirty = false;
            worker.entry = None;
            self.touched.insert(uid.clone());
        }
    }

    /// Says how the pod is, if the API does not know.
    fn report(&mut self, uid: &Uid, now: Time, ops: &mut Vec<Op>) {
        let Some(worker) = self.workers_by_uid.get_mut(uid) else { return };
        let Source::Api(pod, _) = worker.source.clone() else { return };
        if worker.call.is_some() || !self.ground.is_ours(&pod) {
            return;
        }
        let status = status::compile(&pod, worker, &self.ground, now);
        if !status::differs(&status, worker.status_at_api(&pod)) {
            return;
        }
        // Somebody took back what was said: say it again, but not in a race.
        let again = worker.reported.as_ref().is_some_and(|(_, said)| !status::differs(&status, said));
        let at = if again { worker.call_at.max(worker.reported_at + REPEAT) } else { worker.call_at };
        if now < at {
            worker.wake_at(at);
            return;
        }
        let key = ObjectKey::namespaced(Kind::Pod, &pod.metadata.namespace, pod.metadata.name.clone());
        let edit = Edit::PodReport(Box::new(status.clone()));
        let call = Call::Edit { key, uid: uid.clone(), edit };
        worker.reporting = Some(Box::new(status));
        let id = self.call(call, Target::Report(uid.clone()), ops);
        if let Some(worker) = self.workers_by_uid.get_mut(uid) {
            worker.call = Some(id);
        }
    }

    pub(super) fn report_done(&mut self, now: Time, uid: &Uid, outcome: &Outcome) {
        let Some(worker) = self.workers_by_uid.get_mut(uid) else { return };
        worker.call = None;
        let said = worker.reporting.take();
        match outcome {
            Outcome::Written(rev) => {
                worker.reported = said.map(|status| (*rev, status));
                worker.reported_at = now;
                worker.call_at = Time::ZERO;
            }
            Outcome::Conflict | Outcome::NotFound | Outcome::Exists | Outcome::Unreachable => {
                worker.call_at = now + CALL_RETRY;
            }
            Outcome::Host(_) | Outcome::HostFailed { .. } | Outcome::Forbidden | Outcome::Kept => {
                debug_assert!(false, "an outcome of an act for a call");
            }
        }
        self.touched.insert(uid.clone());
    }

    /// KR-21: the node's word that lets the object go.
    fn remove_object(&mut self, uid: &Uid, now: Time, ops: &mut Vec<Op>) {
        let Some(worker) = self.workers_by_uid.get_mut(uid) else { return };
        let Source::Api(pod, _) = worker.source.clone() else { return };
        // 1. It is this node's pod, and no mirror of a file.
        if !self.ground.is_ours(&pod) || pod.is_static() {
            return;
        }
        // 2. Its deletion has begun.
        if !pod.metadata.is_terminating() {
            return;
        }
        // 3. Its containers are gone and its volumes are unmounted, and nothing is on its way.
        if worker.life != Life::Gone || worker.is_here() {
            return;
        }
        // 4. The API holds its terminal status.
        let written = worker.status_at_api(&pod).phase;
        if !matches!(written, PodPhase::Succeeded | PodPhase::Failed) || worker.call.is_some() {
            return;
        }
        if now < worker.call_at {
            worker.wake_at(worker.call_at);
            return;
        }
        let key = ObjectKey::namespaced(Kind::Pod, &pod.metadata.namespace, pod.metadata.name.clone());
        let id = self.call(Call::Remove { key, uid: uid.clone() }, Target::Remove(uid.clone()), ops);
        if let Some(worker) = self.workers_by_uid.get_mut(uid) {
            worker.call = Some(id);
        }
    }

    pub(super) fn remove_done(&mut self, now: Time, uid: &Uid, outcome: &Outcome) {
        let Some(worker) = self.workers_by_uid.get_mut(uid) else { return };
        worker.call = None;
        let answered = matches!(outcome, Outcome::Written(_) | Outcome::NotFound);
        worker.call_at = now + if answered { REMOVE_RETRY } else { CALL_RETRY };
        self.touched.insert(uid.clone());
    }

    /// Unique names of volumes that are mounted, or are about to be.
    pub(super) fn volumes_in_use(&self) -> Vec<String> {
        let mut names = std::collections::BTreeSet::new();
        for worker in self.workers_by_uid.values() {
            let mounted = worker.seen.mounts.iter().map(|m| m.volume.clone());
            names.extend(mounted.filter(|name| !name.is_empty()));
            let begun = match worker.life {
                Life::Preparing | Life::Running => true,
                Life::Admitting | Life::Stopping { .. } | Life::Cleaning | Life::Gone => false,
            };
            if let (true, Some(pod)) = (begun, worker.pod()) {
                names.extend(pod.claims().filter_map(|c| self.ground.attachable(&pod.metadata.namespace, c)));
            }
        }
        names.into_iter().collect()
    }

    /// True if that pod's stop is one for which the API is not spoken to; for tests of P86.
    pub fn reason(&self, uid: &Uid, now: Time) -> Option<Why> {
        self.workers_by_uid.get(uid).and_then(|w| crate::pod::plan::reason(w, &self.ground, now))
    }
}

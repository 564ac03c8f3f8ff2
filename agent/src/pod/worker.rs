//! The memory of one pod: what the host cannot tell.
//!
//! Responsible for: folding observations, wishes and outcomes into one worker; the ledger entry and whether it is on
//! disk. Leaves every decision to [`super::plan`].
//!
//! Invariants: one op in flight at most; an observation always wins over the memory of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::view::{Pod, PodStatus};
use api::{BootId, Duration, Rev, Time, Uid};

use super::Life;
use crate::host::{ContainerState, PodOnHost};
use crate::ledger::{Exit, PodEntry, Run, Seen};
use crate::op::OpId;

/// Wait after a first failure on the host; doubles up to [`RETRY_MAX`]. At half, a broken runtime is asked twice as
/// often for nothing; at double, a volume that becomes attached is mounted that much later.
const RETRY_FIRST: Duration = Duration::from_ms(500);
/// Longest wait between two tries on the host.
const RETRY_MAX: Duration = Duration::from_secs(10);

/// Who wants a pod to be here.
#[derive(Clone, Debug)]
pub enum Source {
    /// The API, at that revision.
    Api(Arc<Pod>, Rev),
    /// The ledger; the API has not spoken yet.
    Ledger(Arc<Pod>),
    /// Nobody knows: found on the host, in no list yet.
    Unknown,
    /// Nobody: its object is gone.
    Nobody,
}

/// What is under way for a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InFlight {
    /// An act that may bring something to life.
    Begins(OpId),
    /// An act that stops, unmounts or removes.
    Ends(OpId),
    /// A ledger entry.
    Keep(OpId),
}

/// The memory of one pod.
#[derive(Clone, Debug)]
pub struct Worker {
    /// Identity of the pod.
    pub uid: Uid,
    /// Who wants it.
    pub source: Source,
    /// The pod on the host, as last observed.
    pub seen: PodOnHost,
    /// Where it is in its life.
    pub life: Life,
    /// What the ledger holds of it, or shall hold; `None` until it is admitted.
    pub entry: Option<PodEntry>,
    /// True if `entry` is not on disk as it stands.
    pub dirty: bool,
    /// True once an entry of it was, or may have been, written.
    pub kept: bool,
    /// What is under way on the host or the disk.
    pub in_flight: Option<InFlight>,
    /// What is under way at the API.
    pub call: Option<OpId>,
    /// The container that was noted as begun and was not seen yet. Lost with this process, on purpose: what was noted
    /// by an earlier one and is not there has run (P50).
    pub starting: Option<String>,
    /// SIGTERM was sent by this process.
    pub terminated: bool,
    /// Delay before the next restart, by container; none means at once.
    pub delay_by_container: BTreeMap<String, Duration>,
    /// Nothing is tried on the host before this.
    pub retry_at: Time,
    /// How long the next wait after a failure is.
    retry_delay: Duration,
    /// The newest status that was written, and at which revision.
    pub reported: Option<(Rev, Box<PodStatus>)>,
    /// When it was written.
    pub reported_at: Time,
    /// Status that is being written.
    pub reporting: Option<Box<PodStatus>>,
    /// No call before this.
    pub call_at: Time,
    /// When planning must look again although nothing happened.
    pub wake: Option<Time>,
    /// What was found when the claims were known.
    pub exclusive: bool,
    /// True if the host has changed since the last act: an act that changes nothing is not tried again at once.
    pub progress: bool,
    /// True if only the guard's permission was missing when it was last looked at.
    pub blocked: bool,
}

// === impl Worker ===

impl Worker {
    /// A pod that nothing is known of but its source.
    pub fn new(uid: &Uid, source: Source, seen: PodOnHost) -> Self {
        Self {
            uid: uid.clone(),
            source,
            seen,
            life: Life::Admitting,
            entry: None,
            dirty: false,
            kept: false,
            in_flight: None,
            call: None,
            starting: None,
            terminated: false,
            delay_by_container: BTreeMap::new(),
            retry_at: Time::ZERO,
            retry_delay: RETRY_FIRST,
            reported: None,
            reported_at: Time::ZERO,
            reporting: None,
            call_at: Time::ZERO,
            wake: None,
            exclusive: true,
            progress: false,
            blocked: false,
        }
    }

    /// A pod as the ledger remembers it.
    pub fn from_ledger(uid: &Uid, entry: PodEntry) -> Self {
        let meta = &entry.pod.metadata;
        let seen = PodOnHost::nothing(uid, &meta.namespace, &meta.name);
        let mut worker = Self::new(uid, Source::Ledger(entry.pod.clone()), seen);
        worker.exclusive = entry.exclusive;
        worker.entry = Some(entry);
        worker.kept = true;
        worker
    }

    /// The pod as it is wished, or was wished last.
    pub fn pod(&self) -> Option<&Arc<Pod>> {
        match &self.source {
            Source::Api(pod, _) | Source::Ledger(pod) => Some(pod),
            Source::Unknown | Source::Nobody => self.entry.as_ref().map(|e| &e.pod),
        }
    }

    /// The API wishes it so.
    pub fn wish(&mut self, pod: Arc<Pod>, rev: Rev) {
        if let Source::Api(_, known) = &self.source
            && rev < *known
        {
            return;
        }
        if let Some(entry) = &mut self.entry {
            let old = &entry.pod;
            let same = old.spec == pod.spec
                && old.metadata.deletion_timestamp == pod.metadata.deletion_timestamp
                && old.metadata.deletion_grace_period_seconds == pod.metadata.deletion_grace_period_seconds
                && old.node_uid() == pod.node_uid();
            entry.pod = pod.clone();
            entry.rev = rev;
            // A status that only comes back from the API is not worth a write to disk.
            self.dirty |= !same;
        }
        self.source = Source::Api(pod, rev);
    }

    /// The pod on the host is so. Containers that end are remembered with their exit.
    pub fn observe(&mut self, seen: PodOnHost, boot: &BootId) {
        self.progress |= self.seen != seen;
        self.seen = seen;
        if let Some(name) = &self.starting
            && let Some(container) = self.seen.container(name)
            && self.entry.as_ref().and_then(|e| e.runs_by_container.get(name)).map(|r| r.attempt)
                == Some(container.attempt)
        {
            self.starting = None;
        }
        let other_boot = self.seen.is_of_other_boot(boot);
        let Some(entry) = &mut self.entry else { return };
        for container in &self.seen.containers {
            let fresh = Run { attempt: container.attempt, ..Run::default() };
            let run = entry.runs_by_container.entry(container.name.clone()).or_insert_with(|| fresh.clone());
            if container.attempt > run.attempt {
                *run = Run { last_exit: run.exit.or(run.last_exit), ..fresh };
            }
            let exit = match container.state {
                ContainerState::Exited { code, started_at, finished_at } => {
                    Some(Exit { code, started_at, finished_at, seen: Seen::Exit })
                }
                // Of another boot and not known to have ended: the machine went down under it.
                ContainerState::Running { started_at } if other_boot => {
                    Some(Exit { code: 255, started_at, finished_at: started_at, seen: Seen::Reboot })
                }
                ContainerState::Running { .. } => None,
            };
            if container.attempt == run.attempt && run.exit.is_none() && exit.is_some() {
                run.exit = exit;
                self.dirty = true;
            }
        }
    }

    /// Runs that were begun, are not on the host and are not being begun: they are over, and nobody saw how.
    pub fn bury_lost(&mut self, now: Time, boot: &BootId) {
        let Some(entry) = &mut self.entry else { return };
        let here = !self.seen.is_of_other_boot(boot);
        let rebooted = entry.boot != *boot;
        for (name, run) in &mut entry.runs_by_container {
            let present = here && self.seen.container(name).is_some_and(|c| c.attempt == run.attempt);
            if run.exit.is_none() && !present && self.starting.as_ref() != Some(name) {
                let seen = if rebooted { Seen::Reboot } else { Seen::Lost };
                let code = if rebooted { 255 } else { 137 };
                run.exit = Some(Exit { code, started_at: now, finished_at: now, seen });
                self.dirty = true;
            }
        }
    }

    /// An act did not succeed: not again before a while.
    pub fn failed(&mut self, now: Time) {
        self.retry_at = now + self.retry_delay;
        self.retry_delay = self.retry_delay.times(2).min(RETRY_MAX);
    }

    /// An act succeeded.
    pub fn succeeded(&mut self) {
        self.retry_at = Time::ZERO;
        self.retry_delay = RETRY_FIRST;
    }

    /// The host shows more than nothing, or the pod is wanted again, after its life was over: a new life begins with
    /// what is known.
    pub fn begin_anew(&mut self) {
        self.life = Life::Admitting;
        self.terminated = false;
        self.starting = None;
        if let Some(entry) = &mut self.entry {
            entry.stop_by = None;
            self.dirty = true;
        }
    }

    /// The guard killed it, which is no fault of its own: its containers restart without delay once permitted.
    pub fn forgive(&mut self) {
        self.delay_by_container.clear();
    }

    /// The run of that container, if it was begun.
    pub fn run(&self, name: &str) -> Option<&Run> {
        self.entry.as_ref()?.runs_by_container.get(name)
    }

    /// What the API holds as the pod's status, as far as this process knows.
    pub fn status_at_api<'w>(&'w self, pod: &'w Pod) -> &'w PodStatus {
        match (&self.reported, &self.source) {
            (Some((written, status)), Source::Api(_, rev)) if rev < written => status,
            (Some(_) | None, _) => &pod.status,
        }
    }

    /// True if the API, or the ledger in its place, wishes the pod to be here.
    pub fn is_wished(&self) -> bool {
        match self.source {
            Source::Api(..) | Source::Ledger(_) => true,
            Source::Unknown | Source::Nobody => false,
        }
    }

    /// True if something of the pod is on its way to the host.
    pub fn begins(&self) -> bool {
        matches!(self.in_flight, Some(InFlight::Begins(_)))
    }

    /// True if anything of the pod is on the host, or on its way there.
    pub fn is_here(&self) -> bool {
        !self.seen.is_empty() || self.begins()
    }

    /// True if something exclusive of this pod runs or is mounted on this host, or may be in a moment.
    pub fn holds_exclusively(&self, boot: &BootId) -> bool {
        let here = self.seen.has_ready_sandbox(boot) || self.seen.runs(boot) || !self.seen.mounts.is_empty();
        (self.exclusive || self.seen.exclusive) && (here || self.begins())
    }

    /// Planning looks again at that moment at the latest.
    pub fn wake_at(&mut self, at: Time) {
        self.wake = Some(self.wake.map_or(at, |w| w.min(at)));
    }

    /// Moves the life forward.
    pub fn turn_to(&mut self, next: Life) {
        debug_assert!(self.life.may_become(&next), "{:?} may not become {next:?}", self.life);
        self.life = next;
    }
}

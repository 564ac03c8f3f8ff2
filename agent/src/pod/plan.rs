//! The next act of one pod.
//!
//! Responsible for: [`plan`], which moves a pod's life forward and says what is to be done now; the order of volumes,
//! sandbox and containers in both directions; the gates before something begins. Leaves to [`super::container`] which
//! container is next, to [`crate::agent`] carrying the step to the body.
//!
//! Invariants:
//! - Level-triggered: the same worker on the same ground gets the same step; nothing depends on which event came.
//! - What begins passes all gates of [`may_begin`] at the moment at which it is emitted, every single act of it.
//! - What ends passes none: a stop needs no permission of anybody.
//! - Before a container starts or is asked to end, the ledger knows. Before exits are removed from the host, too.

use std::sync::Arc;

use api::timing::Automatic;
use api::view::{Pod, PodPhase};
use api::{Duration, Name, Time};

use super::container::{self, Next};
use super::ground::Volume;
use super::{Ground, Life, Source, Why, Worker};
use crate::host::ContainerState;
use crate::ledger::{Exit, PodEntry, Run, Seen};
use crate::op::{Guarded, PodAct};

/// Grace of a pod that nobody waits for and somebody may wait to be gone (P14: dead 2 s after the force delete was
/// seen). At half, databases lose their chance to end in order; at double, a tombstone holds its name that much longer.
pub const REMOVED_GRACE: Duration = Duration::from_secs(2);

/// What is to be done for a pod now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing, until something happens or `worker.wake` has come.
    Nothing,
    /// Write the entry to the ledger, then ask again.
    Keep,
    /// Carry this out, then ask again.
    Act(PodAct),
    /// Take the entry out of the ledger.
    Forget,
    /// Nothing is left to remember.
    Drop,
}

/// What is to be done for that pod now.
pub fn plan(worker: &mut Worker, ground: &Ground, now: Time) -> Step {
    worker.wake = None;
    worker.blocked = false;
    if worker.in_flight.is_some() {
        return Step::Nothing;
    }
    judge_exclusive(worker, ground);
    let step = if worker.seen.is_of_other_boot(&ground.boot) {
        // P52: dead records of another boot hold names and addresses; they go before anything is begun.
        keep_or(worker, PodAct::RemoveSandbox)
    } else {
        worker.bury_lost(now, &ground.boot);
        if worker.life == Life::Gone && !is_over(worker, ground, now) {
            worker.begin_anew();
        }
        turn(worker, ground, now);
        match worker.life {
            Life::Admitting => admit(worker, ground, now),
            Life::Preparing | Life::Running => bring_up(worker, ground, now),
            Life::Stopping { until, .. } => stop(worker, ground, now, until),
            Life::Cleaning => clean(worker, ground),
            Life::Gone => gone(worker, ground),
        }
    };
    match step {
        Step::Act(_) if now < worker.retry_at => {
            worker.wake_at(worker.retry_at);
            Step::Nothing
        }
        Step::Nothing if worker.dirty && worker.entry.is_some() => Step::Keep,
        Step::Nothing | Step::Keep | Step::Act(_) | Step::Forget | Step::Drop => step,
    }
}

/// Why that pod must end, if it must.
pub fn reason(worker: &Worker, ground: &Ground, now: Time) -> Option<Why> {
    match &worker.source {
        Source::Nobody => Some(Why::Removed),
        Source::Unknown => ground.is_list_confirmed(now).then_some(Why::Removed),
        Source::Api(pod, _) | Source::Ledger(pod) => {
            let ended = worker.entry.as_ref().is_some_and(|e| e.ended.is_some());
            ground.reason_to_stop(pod, worker.exclusive).or(ended.then_some(Why::Declared))
        }
    }
}

/// True if a life that has reached its end stays there: nothing is on the host, and nobody wants the pod to run.
fn is_over(worker: &Worker, ground: &Ground, now: Time) -> bool {
    worker.seen.is_empty() && reason(worker, ground, now).is_some()
}

/// Decides again whether the pod is exclusive: claims may have become known.
fn judge_exclusive(worker: &mut Worker, ground: &Ground) {
    let before = worker.entry.as_ref().map(|e| e.exclusive);
    let exclusive = match worker.pod() {
        Some(pod) => ground.is_exclusive(pod, before) || worker.seen.exclusive,
        None => worker.seen.exclusive,
    };
    worker.exclusive = exclusive;
    if let Some(entry) = &mut worker.entry
        && entry.exclusive != exclusive
    {
        entry.exclusive = exclusive;
        worker.dirty = true;
    }
}

/// Turns a life towards its end, if there is a reason to.
fn turn(worker: &mut Worker, ground: &Ground, now: Time) {
    let Some(why) = reason(worker, ground, now) else { return };
    let until = deadline(worker, why, now);
    match worker.life {
        Life::Admitting if worker.seen.is_empty() => {
            end(worker, why);
            worker.turn_to(Life::Gone);
        }
        Life::Admitting | Life::Preparing | Life::Running => {
            note_deadline(worker, until);
            worker.turn_to(Life::Stopping { until, why });
        }
        // Only a stronger reason shortens a grace that is running: a weak one would start it anew at every look.
        Life::Stopping { until: old, why: because } if until < old && why < because => {
            note_deadline(worker, until);
            worker.turn_to(Life::Stopping { until, why });
        }
        // A second delete with less grace: its end is counted from when it was asked for.
        Life::Stopping { until: old, why: Why::Deleted } => {
            let shorter = worker.pod().and_then(shortened).map(|at| at.max(now)).filter(|at| *at < old);
            if let Some(until) = shorter {
                note_deadline(worker, until);
                worker.turn_to(Life::Stopping { until, why: Why::Deleted });
            }
        }
        Life::Stopping { .. } | Life::Cleaning | Life::Gone => {}
    }
}

/// When the grace of a pod that stops now ends.
fn deadline(worker: &Worker, why: Why, now: Time) -> Time {
    let pod = worker.pod();
    let own = Duration::from_secs(pod.map_or(REMOVED_GRACE.secs(), |p| p.grace_secs()));
    let asked = pod.and_then(|p| p.metadata.deletion_grace_period_seconds).map(Duration::from_secs);
    let grace = match why {
        Why::Removed | Why::OtherNode | Why::NodeGone => own.min(REMOVED_GRACE),
        Why::Declared if worker.exclusive => own.min(REMOVED_GRACE),
        Why::Declared => own,
        Why::Deleted => asked.unwrap_or(own),
    };
    // A restart of the agent does not give the pod its grace anew.
    let noted = worker.entry.as_ref().and_then(|e| e.stop_by).unwrap_or(Time::MAX);
    (now + grace).min(noted)
}

/// A deletion that asks for no grace at all.
fn shortened(pod: &Arc<Pod>) -> Option<Time> {
    (pod.metadata.deletion_grace_period_seconds == Some(0)).then_some(Time::ZERO)
}

fn note_deadline(worker: &mut Worker, until: Time) {
    if let Some(entry) = &mut worker.entry {
        entry.stop_by = Some(until);
        worker.dirty = true;
    }
}

fn admit(worker: &mut Worker, ground: &Ground, now: Time) -> Step {
    let pod = match &worker.source {
        Source::Api(pod, _) | Source::Ledger(pod) => pod.clone(),
        Source::Unknown | Source::Nobody => {
            worker.wake = ground.list_patience_until();
            return Step::Nothing;
        }
    };
    // Before the gates: the first report of a pod whose runs are not remembered would wipe out what its status says
    // of them, and a pod that must run once would run again.
    if worker.entry.is_none() {
        worker.entry = Some(new_entry(worker, &pod, ground, now));
        worker.dirty = true;
    }
    let adopted = worker.seen.has_ready_sandbox(&ground.boot);
    if !adopted && !may_begin(worker, ground, now) {
        return Step::Nothing;
    }
    // P46: what runs already goes on as it is, whoever restarted.
    worker.turn_to(if adopted { Life::Running } else { Life::Preparing });
    bring_up(worker, ground, now)
}

/// The gates before anything of a pod is begun.
fn may_begin(worker: &mut Worker, ground: &Ground, now: Time) -> bool {
    // 1. This boot does not go down.
    if ground.shutting_down {
        return false;
    }
    // The Node object that the pod was bound to is gone: the pod is an orphan, and this machine becomes another node.
    if ground.node_gone && ground.automatic == Automatic::On {
        return false;
    }
    // 2. The list that wants the pod is confirmed: the API's, or the ledger's while no server answers.
    if !ground.is_list_confirmed(now) {
        worker.wake = ground.list_patience_until();
        return false;
    }
    // Invariant S1: 3. An exclusive pod has a grant of its own that has not run out.
    worker.blocked = worker.exclusive && !ground.permits(&worker.uid, now);
    !worker.blocked
}

fn bring_up(worker: &mut Worker, ground: &Ground, now: Time) -> Step {
    let Some(pod) = worker.pod().cloned() else { return Step::Nothing };
    // A mount that was pulled while its containers came up: they would write beside the volume for ever.
    if worker.seen.runs(&ground.boot) && pod.claims().any(|c| !worker.seen.has_mount(c)) {
        return Step::Act(PodAct::Kill);
    }
    let (name, image, attempt) = match container::next(&pod, worker, now) {
        Next::Ended(phase) => return end_by_itself(worker, ground, phase),
        Next::Wait(at) => {
            worker.wake_at(at);
            return Step::Nothing;
        }
        Next::Settled => return Step::Nothing,
        Next::Start { name, image, attempt } => (name, image, attempt),
    };
    if !may_begin(worker, ground, now) {
        return Step::Nothing;
    }
    if let Some(step) = mount(worker, ground, &pod) {
        return step;
    }
    if let Some(step) = sandbox(worker, ground, &pod) {
        return step;
    }
    if worker.life == Life::Preparing {
        worker.turn_to(Life::Running);
    }
    let begun = worker.starting.as_deref() == Some(&*name);
    if !begun {
        intend(worker, &name, attempt);
    }
    if worker.dirty {
        // P50: the intent is on disk before the process is there.
        return Step::Keep;
    }
    Step::Act(PodAct::StartContainer { container: name, image, attempt, guarded: guarded(worker) })
}

/// The next volume to be mounted, or what it waits for.
fn mount(worker: &mut Worker, ground: &Ground, pod: &Pod) -> Option<Step> {
    let claim = pod.claims().find(|c| !worker.seen.has_mount(c))?.clone();
    let noted = worker.entry.as_ref().and_then(|e| e.volumes_by_claim.get(&claim));
    let volume = match ground.volume(&pod.metadata.namespace, &claim) {
        Volume::Plain => String::new(),
        Volume::Attached(name) => name,
        // AD-38: first announced as in use, then attached by the controller; the Node says both.
        Volume::Waiting(_) => return Some(Step::Nothing),
        // From the ledger, while nobody tells: a volume that needs no attaching is still the same.
        Volume::Unknown if noted.is_some_and(String::is_empty) => String::new(),
        Volume::Unknown => return Some(Step::Nothing),
    };
    note_volume(worker, &claim, &volume);
    if worker.dirty {
        return Some(Step::Keep);
    }
    Some(Step::Act(PodAct::Mount { claim, volume, guarded: guarded(worker) }))
}

fn note_volume(worker: &mut Worker, claim: &Name, volume: &str) {
    if let Some(entry) = &mut worker.entry
        && entry.volumes_by_claim.get(claim).map(String::as_str) != Some(volume)
    {
        entry.volumes_by_claim.insert(claim.clone(), volume.to_owned());
        worker.dirty = true;
    }
}

fn sandbox(worker: &mut Worker, ground: &Ground, pod: &Arc<Pod>) -> Option<Step> {
    if worker.seen.has_ready_sandbox(&ground.boot) {
        return None;
    }
    if worker.seen.sandbox.is_some() || !worker.seen.containers.is_empty() {
        return Some(keep_or(worker, PodAct::RemoveSandbox));
    }
    if let Some(entry) = &mut worker.entry {
        if entry.boot != ground.boot {
            entry.boot = ground.boot.clone();
            worker.dirty = true;
        }
        // In a new sandbox init containers run again, those too that had succeeded in the old one.
        for container in &pod.spec.init_containers {
            if let Some(exit) = entry.runs_by_container.get_mut(&container.name).and_then(|r| r.exit.as_mut())
                && exit.seen == Seen::Exit
            {
                exit.seen = Seen::Lost;
                worker.dirty = true;
            }
        }
    }
    Some(keep_or(worker, PodAct::CreateSandbox { pod: pod.clone(), guarded: guarded(worker) }))
}

/// Notes a run that is about to begin.
fn intend(worker: &mut Worker, name: &str, attempt: u32) {
    let Some(entry) = &mut worker.entry else { return };
    let known = entry.runs_by_container.get(name).cloned();
    if let Some(delay) =
        container::next_delay(&worker.delay_by_container, name, known.as_ref().and_then(|r| r.exit))
    {
        worker.delay_by_container.insert(name.to_owned(), delay);
    }
    container::begin(entry.runs_by_container.entry(name.to_owned()).or_default(), attempt);
    worker.starting = Some(name.to_owned());
    worker.dirty = true;
}

fn end_by_itself(worker: &mut Worker, ground: &Ground, phase: PodPhase) -> Step {
    if let Some(entry) = &mut worker.entry
        && entry.ended.is_none()
    {
        entry.ended = Some(phase);
        worker.dirty = true;
    }
    worker.turn_to(Life::Cleaning);
    clean(worker, ground)
}

fn stop(worker: &mut Worker, ground: &Ground, now: Time, until: Time) -> Step {
    if !worker.seen.runs(&ground.boot) {
        if let Life::Stopping { why, .. } = worker.life {
            end(worker, why);
        }
        worker.turn_to(Life::Cleaning);
        return clean(worker, ground);
    }
    if now >= until {
        return Step::Act(PodAct::Kill);
    }
    worker.wake_at(until);
    if worker.terminated {
        return Step::Nothing;
    }
    if worker.dirty && worker.entry.is_some() {
        return Step::Keep;
    }
    worker.terminated = true;
    Step::Act(PodAct::Terminate)
}

/// Decides the final phase of a pod that was made to end.
fn end(worker: &mut Worker, why: Why) {
    match why {
        Why::Removed | Why::OtherNode | Why::NodeGone => return,
        Why::Declared | Why::Deleted => {}
    }
    let Some(entry) = &mut worker.entry else { return };
    if entry.ended.is_some() {
        return;
    }
    let succeeded =
        |name: &str| entry.runs_by_container.get(name).and_then(|r| r.exit).is_some_and(|e| e.code == 0);
    let all = entry.pod.spec.containers.iter().all(|c| succeeded(&c.name));
    entry.ended = Some(if all { PodPhase::Succeeded } else { PodPhase::Failed });
    worker.dirty = true;
}

/// Sandbox first, volumes then: a volume is not pulled from under a process that may have been overlooked.
fn clean(worker: &mut Worker, ground: &Ground) -> Step {
    if worker.seen.sandbox.is_some() || !worker.seen.containers.is_empty() {
        return keep_or(worker, PodAct::RemoveSandbox);
    }
    if let Some(mounted) = worker.seen.mounts.first() {
        return Step::Act(PodAct::Unmount { claim: mounted.claim.clone() });
    }
    worker.turn_to(Life::Gone);
    gone(worker, ground)
}

fn gone(worker: &mut Worker, ground: &Ground) -> Step {
    let forgotten = match &worker.source {
        Source::Nobody | Source::Unknown => true,
        Source::Api(pod, _) | Source::Ledger(pod) => {
            ground.reason_to_stop(pod, worker.exclusive) == Some(Why::OtherNode)
        }
    };
    match (forgotten, worker.kept, &worker.source) {
        (true, true, _) => Step::Forget,
        (true, false, Source::Nobody | Source::Unknown) if worker.call.is_none() => Step::Drop,
        (true, false, _) => {
            worker.entry = None;
            Step::Nothing
        }
        (false, _, _) => Step::Nothing,
    }
}

/// The act, once what is known is on disk.
fn keep_or(worker: &Worker, act: PodAct) -> Step {
    if worker.dirty && worker.entry.is_some() { Step::Keep } else { Step::Act(act) }
}

fn guarded(worker: &Worker) -> Guarded {
    if worker.exclusive { Guarded::Yes } else { Guarded::No }
}

fn new_entry(worker: &Worker, pod: &Arc<Pod>, ground: &Ground, now: Time) -> PodEntry {
    let rev = match &worker.source {
        Source::Api(_, rev) => *rev,
        Source::Ledger(_) | Source::Unknown | Source::Nobody => api::Rev::default(),
    };
    // Without an entry the host and the status of the pod say what has run. What the status says was begun and is not
    // here is over (KR-13): a pod that must run once does not run again because a disk was lost (P50).
    let begun = pod
        .status
        .container_statuses
        .iter()
        .filter(|s| s.state.running.is_some() || s.state.terminated.is_some());
    let lost = begun.map(|s| {
        let exit = Exit { code: 137, started_at: now, finished_at: now, seen: Seen::Lost };
        (s.name.clone(), Run { attempt: s.restart_count, exit: Some(exit), last_exit: None })
    });
    let here = worker.seen.containers.iter().map(|c| {
        let exit = match c.state {
            ContainerState::Running { .. } => None,
            ContainerState::Exited { code, started_at, finished_at } => {
                Some(Exit { code, started_at, finished_at, seen: Seen::Exit })
            }
        };
        (c.name.clone(), Run { attempt: c.attempt, exit, last_exit: None })
    });
    PodEntry {
        pod: pod.clone(),
        rev,
        exclusive: worker.exclusive,
        volumes_by_claim: std::collections::BTreeMap::new(),
        start_time: pod.status.start_time.unwrap_or(now),
        boot: ground.boot.clone(),
        runs_by_container: lost.chain(here).collect(),
        stop_by: None,
        ended: pod.is_terminal().then_some(pod.status.phase),
    }
}

//! When a container starts, and starts again.
//!
//! Responsible for: choosing the next container of a pod, restart policy, back-off, and recognising that a pod has
//! ended. Leaves to [`super::plan`] whether anything may be started at all.
//!
//! Rules: upstream's. Init containers run one after the other until each has succeeded, again in every new sandbox; app
//! containers run together. A container that ended is replaced, never resumed (KR-10). First restart at once, then
//! after 10 s, doubling up to 300 s, forgotten after 10 minutes of life or a restart of the agent (4.5.1). What ended
//! with its machine, or by the guard, restarts without delay.

use std::collections::BTreeMap;

use api::view::{Container, Pod, PodPhase, RestartPolicy};
use api::{Duration, Time};

use super::Worker;
use crate::ledger::{Exit, Run, Seen};

/// Delay before the second restart.
pub const BACKOFF_FIRST: Duration = Duration::from_secs(10);
/// Longest delay.
pub const BACKOFF_MAX: Duration = Duration::from_secs(300);
/// A container that lived this long starts from no delay again: twice the longest delay.
pub const BACKOFF_FORGET: Duration = Duration::from_secs(600);

/// What the containers of a pod need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Start this one, with this attempt.
    Start {
        /// Name.
        name: String,
        /// Image.
        image: String,
        /// 0 for the first.
        attempt: u32,
    },
    /// Nothing before this moment.
    Wait(Time),
    /// All that should run runs.
    Settled,
    /// None runs and none starts again.
    Ended(PodPhase),
}

/// What one container needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// It runs.
    Runs,
    /// It is to be started, not before that moment.
    Start(u32, Time),
    /// It ended and stays so.
    Done(Exit),
}

/// What the pod's containers need next.
pub fn next(pod: &Pod, worker: &Worker, now: Time) -> Next {
    let apps: Vec<(&Container, Need)> =
        pod.spec.containers.iter().map(|c| (c, need(worker, c, pod.spec.restart_policy))).collect();
    if apps.iter().all(|(_, need)| matches!(need, Need::Done(_))) {
        return Next::Ended(ended(apps.iter().map(|(_, need)| *need)));
    }
    // An app container that runs has had its init containers; after an agent restart they may be gone from the list.
    if !apps.iter().any(|(_, need)| *need == Need::Runs)
        && let Some(next) = next_init(pod, worker, now)
    {
        return next;
    }
    first_due(apps.into_iter(), now)
}

/// What one container needs.
pub fn need(worker: &Worker, container: &Container, policy: RestartPolicy) -> Need {
    let Some(run) = worker.run(&container.name) else { return Need::Start(0, Time::ZERO) };
    let Some(exit) = run.exit else {
        let begun = worker.seen.container(&container.name).is_some_and(|c| c.attempt == run.attempt);
        return if begun { Need::Runs } else { Need::Start(run.attempt, Time::ZERO) };
    };
    let again = match policy {
        RestartPolicy::Always => true,
        // A success that was lost with its sandbox (an init container's) is none.
        RestartPolicy::OnFailure => exit.code != 0 || exit.seen != Seen::Exit,
        RestartPolicy::Never => false,
    };
    if !again {
        return Need::Done(exit);
    }
    Need::Start(run.attempt + 1, due(&worker.delay_by_container, &container.name, exit))
}

/// The delay that follows a restart of that container.
pub fn next_delay(delays: &BTreeMap<String, Duration>, name: &str, exit: Option<Exit>) -> Option<Duration> {
    let exit = exit.filter(|e| e.seen == Seen::Exit)?;
    let delay = current_delay(delays, name, exit);
    Some(if delay == Duration::ZERO { BACKOFF_FIRST } else { delay.times(2).min(BACKOFF_MAX) })
}

/// How long a container that ended so must wait.
pub fn current_delay(delays: &BTreeMap<String, Duration>, name: &str, exit: Exit) -> Duration {
    let lived = exit.finished_at.since(exit.started_at);
    if exit.seen != Seen::Exit || lived >= BACKOFF_FORGET {
        return Duration::ZERO;
    }
    delays.get(name).copied().unwrap_or(Duration::ZERO)
}

/// Begins a new run.
pub fn begin(run: &mut Run, attempt: u32) {
    *run = Run { attempt, exit: None, last_exit: run.exit.or(run.last_exit) };
}

fn next_init(pod: &Pod, worker: &Worker, now: Time) -> Option<Next> {
    let policy = match pod.spec.restart_policy {
        RestartPolicy::Always | RestartPolicy::OnFailure => RestartPolicy::OnFailure,
        RestartPolicy::Never => RestartPolicy::Never,
    };
    let open = pod.spec.init_containers.iter().find(|c| !has_succeeded(worker, &c.name))?;
    Some(match need(worker, open, policy) {
        Need::Runs => Next::Settled,
        Need::Done(_) => Next::Ended(PodPhase::Failed),
        need @ Need::Start(..) => first_due(std::iter::once((open, need)), now),
    })
}

/// True if an init container has done its part in this sandbox.
pub fn has_succeeded(worker: &Worker, name: &str) -> bool {
    worker.run(name).and_then(|r| r.exit).is_some_and(|e| e.code == 0 && e.seen == Seen::Exit)
}

fn first_due<'c>(needs: impl Iterator<Item = (&'c Container, Need)>, now: Time) -> Next {
    let mut first: Option<(&Container, u32, Time)> = None;
    for (container, need) in needs {
        match need {
            Need::Start(attempt, at) if first.is_none_or(|(_, _, t)| at < t) => {
                first = Some((container, attempt, at))
            }
            Need::Start(..) | Need::Runs | Need::Done(_) => {}
        }
    }
    match first {
        None => Next::Settled,
        Some((_, _, at)) if at > now => Next::Wait(at),
        Some((container, attempt, _)) => {
            Next::Start { name: container.name.clone(), image: container.image.clone(), attempt }
        }
    }
}

fn due(delays: &BTreeMap<String, Duration>, name: &str, exit: Exit) -> Time {
    exit.finished_at + current_delay(delays, name, exit)
}

fn ended(needs: impl Iterator<Item = Need>) -> PodPhase {
    let mut phase = PodPhase::Succeeded;
    for need in needs {
        match need {
            Need::Done(exit) if exit.code == 0 => {}
            Need::Done(_) | Need::Runs | Need::Start(..) => phase = PodPhase::Failed,
        }
    }
    phase
}

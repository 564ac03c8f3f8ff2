//! What the agent says about a pod, in Kubernetes' words.
//!
//! Responsible for: phase, conditions and container statuses (KR-10 to KR-14, KR-22), and whether they differ from what
//! the API holds. Leaves to `registry`: keeping a terminal phase and the conditions of others (KR-23).
//!
//! | field | written when |
//! |---|---|
//! | phase | Pending until a container ran; Running until the end; terminal only after all containers have stopped |
//! | Ready, ContainersReady | True while every container runs (a container without probes is ready once it runs) |
//! | podIP | address of the sandbox of this boot; a new sandbox has a new one |
//! | restartCount | the attempt that runs, or is to run |
//!
//! Case P46: an agent that restarts and finds everything as it was compiles the same status, so nothing is
//! written and no endpoint flaps. Times of transitions are taken over from the old condition while its status stays.

use api::Time;
use api::view::{
    Condition, ConditionStatus, ContainerState, ContainerStatus, Pod, PodPhase, PodStatus, StateRunning,
    StateTerminated, StateWaiting,
};

use super::container::{self, Need};
use super::{Ground, Life, Worker};
use crate::host::ContainerState as OnHost;
use crate::ledger::{Exit, Seen};

/// The conditions that are the agent's.
const OURS: [&str; 4] = ["PodScheduled", "Initialized", "ContainersReady", "Ready"];

/// What is to be said about the pod now.
pub fn compile(pod: &Pod, worker: &Worker, ground: &Ground, now: Time) -> PodStatus {
    let containers: Vec<ContainerStatus> =
        pod.spec.containers.iter().map(|c| container_status(pod, worker, c, ground)).collect();
    let phase = phase(pod, worker, &containers, ground);
    let ready = phase == PodPhase::Running && containers.iter().all(|c| c.ready);
    let old = worker.status_at_api(pod);
    let terminal = matches!(phase, PodPhase::Succeeded | PodPhase::Failed);
    let address = match &worker.seen.sandbox {
        Some(sandbox) if sandbox.boot == ground.boot => sandbox.address.clone(),
        Some(_) | None if terminal => old.pod_ip.clone(),
        Some(_) | None => String::new(),
    };
    let kept = pod.is_terminal();
    PodStatus {
        phase,
        reason: if kept { pod.status.reason.clone() } else { String::new() },
        message: if kept { pod.status.message.clone() } else { String::new() },
        conditions: conditions(pod, worker, phase, ready, &containers, &old.conditions, now),
        pod_ip: address,
        start_time: worker.entry.as_ref().map(|e| e.start_time).or(pod.status.start_time),
        container_statuses: containers,
        nominated_node_name: pod.status.nominated_node_name.clone(),
    }
}

/// True if `new` says something that `old` does not.
pub fn differs(new: &PodStatus, old: &PodStatus) -> bool {
    let condition = |status: &PodStatus, kind: &str| {
        let found = status.conditions.iter().find(|c| c.kind == kind);
        found.map(|c| (c.status, c.reason.clone(), c.message.clone()))
    };
    new.phase != old.phase
        || new.pod_ip != old.pod_ip
        || new.start_time.map(Time::ms) != old.start_time.map(Time::ms)
        || new.reason != old.reason
        || new.message != old.message
        || new.container_statuses != old.container_statuses
        || OURS.iter().any(|kind| condition(new, kind) != condition(old, kind))
}

/// KR-14, KR-22.
fn phase(pod: &Pod, worker: &Worker, containers: &[ContainerStatus], ground: &Ground) -> PodPhase {
    if pod.is_terminal() {
        return pod.status.phase;
    }
    let ended = worker.entry.as_ref().and_then(|e| e.ended);
    match (ended, worker.life) {
        (Some(phase), _) if !worker.seen.runs(&ground.boot) => return phase,
        // Deleted before it was begun.
        (None, Life::Gone) if pod.metadata.is_terminating() => return PodPhase::Failed,
        (Some(_) | None, _) => {}
    }
    let never_ran =
        |c: &ContainerStatus| c.state.waiting.is_some() && c.last_state == ContainerState::default();
    if containers.iter().any(never_ran) { PodPhase::Pending } else { PodPhase::Running }
}

fn container_status(
    pod: &Pod,
    worker: &Worker,
    container: &api::view::Container,
    ground: &Ground,
) -> ContainerStatus {
    let run = worker.run(&container.name).cloned().unwrap_or_default();
    let mut status = ContainerStatus {
        name: container.name.clone(),
        image: container.image.clone(),
        image_id: String::new(),
        ready: false,
        restart_count: run.attempt,
        state: ContainerState::default(),
        last_state: run.last_exit.map(terminated).unwrap_or_default(),
    };
    let on_host = worker.seen.container(&container.name).filter(|c| c.attempt == run.attempt);
    if let Some(OnHost::Running { started_at }) = on_host.map(|c| c.state)
        && !worker.seen.is_of_other_boot(&ground.boot)
    {
        status.ready = worker.life.is_ahead();
        status.state.running = Some(StateRunning { started_at });
        return status;
    }
    match container::need(worker, container, pod.spec.restart_policy) {
        Need::Start(_, _) if worker.life.is_ahead() => wait(pod, worker, container, run.exit, &mut status),
        Need::Done(exit) => status.state = terminated(exit),
        Need::Start(..) | Need::Runs => match run.exit {
            Some(exit) => status.state = terminated(exit),
            None => wait(pod, worker, container, None, &mut status),
        },
    }
    status
}

/// A container that will be started.
fn wait(
    pod: &Pod,
    worker: &Worker,
    container: &api::view::Container,
    exit: Option<Exit>,
    status: &mut ContainerStatus,
) {
    let delay = exit.map(|e| container::current_delay(&worker.delay_by_container, &container.name, e));
    let meta = &pod.metadata;
    let waiting = match delay {
        Some(delay) if delay > api::Duration::ZERO => StateWaiting {
            reason: "CrashLoopBackOff".to_owned(),
            message: format!(
                "back-off {delay} restarting failed container={} pod={}_{}({})",
                container.name, meta.name, meta.namespace, meta.uid
            ),
        },
        Some(_) | None if !initialized(pod, worker) => {
            StateWaiting { reason: "PodInitializing".to_owned(), message: String::new() }
        }
        Some(_) | None => StateWaiting { reason: "ContainerCreating".to_owned(), message: String::new() },
    };
    status.state.waiting = Some(waiting);
    if let Some(exit) = exit {
        status.last_state = terminated(exit);
    }
}

fn initialized(pod: &Pod, worker: &Worker) -> bool {
    pod.spec.init_containers.iter().all(|c| container::has_succeeded(worker, &c.name))
}

fn terminated(exit: Exit) -> ContainerState {
    let (reason, message) = match exit.seen {
        Seen::Exit if exit.code == 0 => ("Completed", ""),
        Seen::Exit => ("Error", ""),
        Seen::Reboot => ("Unknown", ""),
        Seen::Lost => {
            ("ContainerStatusUnknown", "The container could not be located when the pod was terminated")
        }
    };
    ContainerState {
        terminated: Some(StateTerminated {
            exit_code: exit.code,
            reason: reason.to_owned(),
            message: message.to_owned(),
            started_at: exit.started_at,
            finished_at: exit.finished_at,
        }),
        ..ContainerState::default()
    }
}

fn conditions(
    pod: &Pod,
    worker: &Worker,
    phase: PodPhase,
    ready: bool,
    containers: &[ContainerStatus],
    old: &[Condition],
    now: Time,
) -> Vec<Condition> {
    let unready: Vec<&str> = containers.iter().filter(|c| !c.ready).map(|c| c.name.as_str()).collect();
    let (why, what) = match phase {
        PodPhase::Succeeded => ("PodCompleted", String::new()),
        PodPhase::Failed => ("PodFailed", String::new()),
        PodPhase::Pending | PodPhase::Running | PodPhase::Unknown if ready => ("", String::new()),
        PodPhase::Pending | PodPhase::Running | PodPhase::Unknown => {
            ("ContainersNotReady", format!("containers with unready status: [{}]", unready.join(" ")))
        }
    };
    let status_of = |holds: bool| if holds { ConditionStatus::True } else { ConditionStatus::False };
    let initialized = initialized(pod, worker) || phase != PodPhase::Pending;
    let init_why = match (initialized, phase) {
        (_, PodPhase::Succeeded) => "PodCompleted",
        (false, PodPhase::Pending | PodPhase::Running | PodPhase::Failed | PodPhase::Unknown) => {
            "ContainersNotInitialized"
        }
        (true, PodPhase::Pending | PodPhase::Running | PodPhase::Failed | PodPhase::Unknown) => "",
    };
    let make = |kind: &str, holds: bool, reason: &str, message: &str| {
        let status = status_of(holds);
        let same = old.iter().find(|c| c.kind == kind && c.status == status);
        let since = same.map_or(now, |c| c.last_transition_time);
        Condition::new(kind, status, reason, message, since)
    };
    vec![
        make("PodScheduled", true, "", ""),
        make("Initialized", initialized, init_why, ""),
        make("ContainersReady", ready, why, &what),
        make("Ready", ready, why, &what),
    ]
}

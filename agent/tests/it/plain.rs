//! Pods that may run anywhere: start, stop, restart, reboot.

use agent::{Call, Event, Reach};
use api::edit::Edit;
use api::view::{Container, PodPhase, RestartPolicy};
use api::{NodeName, annotation};

use crate::body::{Body, pod, uid, with_policy};

#[test]
fn a_pod_is_prepared_started_and_reported() {
    let mut body = Body::booted();
    body.show(pod("web"));
    assert_eq!(body.take_log(), ["web: sandbox", "web: start app 0"]);
    let status = body.status("web");
    assert_eq!((status.phase, status.pod_ip.as_str()), (PodPhase::Running, "10.0.0.1"));
    assert!(body.pods[&uid("web")].is_ready());
    assert_eq!(status.container_statuses[0].restart_count, 0);
    assert!(status.start_time.is_some());
    let calls = body.calls.len();
    body.advance(3000);
    let reports =
        body.calls[calls..].iter().filter(|c| matches!(c, Call::Edit { edit: Edit::PodReport(_), .. }));
    assert_eq!(reports.count(), 0, "nothing changed, nothing is said");
}

#[test]
fn kr21_the_object_goes_after_containers_and_volumes() {
    let mut body = Body::booted();
    body.show(pod("web"));
    body.take_log();
    body.delete("web", 30);
    assert_eq!(body.take_log(), ["web: terminate", "web: remove", "remove object pod/default/web"]);
    assert!(body.is_empty("web"));
    assert!(body.agent.worker(&uid("web")).is_none());
    assert!(!body.ledger.pods_by_uid.contains_key(&uid("web")));
}

#[test]
fn a_stubborn_pod_gets_its_grace_and_then_the_kill() {
    let mut body = Body::booted();
    body.show(pod("web"));
    body.stubborn.insert(uid("web"));
    body.delete("web", 10);
    body.advance(9_900);
    assert!(body.runs("web"));
    // The grace does not start anew with the agent.
    body.restart_agent();
    body.list();
    body.advance(200);
    assert!(!body.runs("web"));
}

#[test]
fn kr21_a_pod_that_was_never_begun_goes_at_once() {
    let mut body = Body::booted();
    let mut doomed = pod("web");
    doomed.metadata.deletion_timestamp = Some(body.now);
    body.show(doomed);
    assert_eq!(body.take_log(), ["remove object pod/default/web"]);
}

#[test]
fn p14_force_delete_kills_within_two_seconds() {
    let mut body = Body::booted();
    body.show(pod("web"));
    body.stubborn.insert(uid("web"));
    body.force_delete("web");
    body.advance(1_990);
    assert!(body.runs("web"));
    body.advance(20);
    assert!(!body.runs("web") && body.is_empty("web"));
    // Also while a long graceful deletion is under way.
    body.show(pod("slow"));
    body.stubborn.insert(uid("slow"));
    body.delete("slow", 300);
    body.advance(5_000);
    assert!(body.runs("slow"));
    body.force_delete("slow");
    body.advance(2_001);
    assert!(!body.runs("slow"));
}

#[test]
fn p46_an_agent_restart_changes_nothing() {
    let mut body = Body::booted();
    body.show(pod("web"));
    let before = body.status("web").clone();
    body.take_log();
    let calls = body.calls.len();
    body.advance(500);
    body.restart_agent();
    body.advance(500);
    body.list();
    body.advance(5000);
    assert_eq!(body.take_log(), Vec::<String>::new());
    assert_eq!(*body.status("web"), before);
    let reports =
        body.calls[calls..].iter().filter(|c| matches!(c, Call::Edit { edit: Edit::PodReport(_), .. }));
    assert_eq!(reports.count(), 0);
}

#[test]
fn p46_an_agent_restart_without_its_disk_adopts_what_runs() {
    let mut body = Body::booted();
    body.show(pod("web"));
    let before = body.status("web").clone();
    body.ledger.pods_by_uid.clear();
    body.take_log();
    body.restart_agent();
    body.list();
    assert_eq!(body.take_log(), Vec::<String>::new());
    assert_eq!(*body.status("web"), before);
}

#[test]
fn p46_a_status_that_somebody_took_back_is_said_again() {
    let mut body = Body::booted();
    body.show(pod("web"));
    body.change("web", |p| {
        let ready = p.status.conditions.iter_mut().find(|c| c.kind == "Ready").unwrap();
        ready.status = api::view::ConditionStatus::False;
    });
    body.advance(5_000);
    assert!(body.pods[&uid("web")].is_ready());
}

#[test]
fn a_reboot_rebuilds_in_place() {
    let mut body = Body::booted();
    body.show(pod("web"));
    let before = body.status("web").clone();
    body.take_log();
    body.reboot("b2");
    body.list();
    assert_eq!(body.take_log(), ["web: remove", "web: sandbox", "web: start app 1"]);
    let after = body.status("web");
    assert_ne!(after.pod_ip, before.pod_ip, "a new sandbox has a new address");
    assert_eq!(after.container_statuses[0].restart_count, 1);
    assert_eq!(after.start_time, before.start_time);
    let last = after.container_statuses[0].last_state.terminated.as_ref().unwrap();
    assert_eq!(last.exit_code, 255);
}

#[test]
fn a_reboot_without_servers_rebuilds_from_the_ledger() {
    let mut body = Body::booted();
    body.show(pod("web"));
    body.take_log();
    body.api_up = false;
    body.reboot("b2");
    assert!(!body.runs("web"), "a stale list starts nothing while a server may still speak");
    body.send(Event::Api(Reach::No));
    assert!(body.runs("web"));
    // The list comes, and does not want it any more.
    body.api_up = true;
    body.pods.clear();
    body.list();
    assert!(body.is_empty("web"));
}

#[test]
fn p50_never_pods_are_not_run_twice() {
    for policy in [RestartPolicy::Never, RestartPolicy::OnFailure] {
        let mut body = Body::booted();
        body.show(with_policy(pod("job"), policy));
        body.reboot("b2");
        body.list();
        let again = policy == RestartPolicy::OnFailure;
        assert_eq!(body.runs("job"), again, "{policy:?}");
        let expected = if again { PodPhase::Running } else { PodPhase::Failed };
        assert_eq!(body.status("job").phase, expected);
    }
}

#[test]
fn p50_the_intent_alone_counts_as_a_run() {
    let mut body = Body::booted();
    body.show(with_policy(pod("job"), RestartPolicy::Never));
    // The machine dies between the intent and the start: nothing of it is on the host.
    body.host.clear();
    body.reboot("b2");
    body.list();
    assert_eq!(body.status("job").phase, PodPhase::Failed);
    // Even the disk is lost: the status says that it had begun.
    let mut body = Body::booted();
    body.show(with_policy(pod("job"), RestartPolicy::Never));
    body.host.clear();
    body.ledger.pods_by_uid.clear();
    body.reboot("b2");
    body.list();
    assert_eq!(body.status("job").phase, PodPhase::Failed);
    assert!(!body.runs("job"));
}

#[test]
fn p52_records_of_another_boot_go_first() {
    let mut body = Body::booted();
    body.show(with_policy(pod("done"), RestartPolicy::Never));
    body.reboot("b2");
    assert!(body.is_empty("done"), "before any list has come");
}

#[test]
fn p53_containers_that_nobody_wants_are_stopped_by_the_ledgers_word() {
    for (complete, stopped) in [(true, true), (false, false)] {
        let mut body = Body::booted();
        body.show(pod("old"));
        body.ledger.pods_by_uid.clear();
        if !complete {
            body.ledger.node.as_mut().unwrap().plan_complete = false;
        }
        body.api_up = false;
        body.restart_agent();
        assert!(body.runs("old"), "a server may still want it");
        body.send(Event::Api(Reach::No));
        body.advance(60_000);
        assert_eq!(!body.runs("old"), stopped, "complete: {complete}");
    }
}

// Invariant U1
#[test]
fn p86_pods_of_another_node_object_are_neither_started_nor_spoken_of() {
    let mut body = Body::booted();
    let calls = body.calls.len();
    let mut stranger = pod("web");
    stranger.metadata.annotations.insert(annotation::NODE_UID.to_owned(), "another-uid".to_owned());
    body.show(stranger);
    body.delete("web", 0);
    body.advance(5000);
    assert!(body.take_log().is_empty());
    assert!(body.calls[calls..].iter().all(|c| c.key().kind != api::Kind::Pod));
}

#[test]
fn a_crashing_container_backs_off() {
    let mut body = Body::booted();
    body.show(pod("web"));
    body.exit("web", 1);
    assert_eq!(body.attempt("web"), Some(1), "the first restart is at once");
    body.exit("web", 1);
    let waiting = body.status("web").container_statuses[0].state.waiting.clone().unwrap();
    assert_eq!(waiting.reason, "CrashLoopBackOff");
    assert!(waiting.message.starts_with("back-off 10s restarting failed container=app pod=web_default"));
    body.advance(9_900);
    assert_eq!(body.attempt("web"), Some(1));
    body.advance(200);
    assert_eq!(body.attempt("web"), Some(2));
}

#[test]
fn a_finished_job_is_cleaned_up_and_its_phase_is_final() {
    let mut body = Body::booted();
    body.show(with_policy(pod("job"), RestartPolicy::OnFailure));
    body.exit("job", 0);
    assert_eq!(body.status("job").phase, PodPhase::Succeeded);
    assert!(body.is_empty("job"));
    body.reboot("b2");
    body.list();
    body.advance(2000);
    assert_eq!(body.status("job").phase, PodPhase::Succeeded);
    assert!(!body.runs("job"));
}

#[test]
fn kr14_a_pod_that_was_declared_failed_is_stopped() {
    let mut body = Body::booted();
    body.show(pod("web"));
    body.change("web", |p| {
        p.status.phase = PodPhase::Failed;
        p.status.reason = "NodeLost".to_owned();
    });
    assert!(body.is_empty("web"));
    body.advance(10_000);
    let status = body.status("web");
    assert_eq!((status.phase, status.reason.as_str()), (PodPhase::Failed, "NodeLost"));
}

#[test]
fn init_containers_run_in_order_and_again_in_a_new_sandbox() {
    let mut body = Body::booted();
    let mut web = pod("web");
    let init = |name: &str| Container { name: name.to_owned(), ..Container::default() };
    web.spec.init_containers = vec![init("one"), init("two")];
    web.spec.node_name = NodeName::from("n1");
    body.show(web);
    assert_eq!(body.take_log(), ["web: sandbox", "web: start one 0"]);
    assert_eq!(body.status("web").phase, PodPhase::Pending);
    body.exit("web", 0);
    assert_eq!(body.take_log(), ["web: start two 0"]);
    body.exit("web", 0);
    assert_eq!(body.take_log(), ["web: start app 0"]);
    body.reboot("b2");
    body.list();
    assert_eq!(body.take_log(), ["web: remove", "web: sandbox", "web: start one 1"]);
}

#[test]
fn nothing_new_is_begun_before_a_reboot() {
    let mut body = Body::booted();
    body.send(Event::RebootAnnounced);
    body.show(pod("web"));
    assert!(body.take_log().is_empty());
    let announced =
        body.calls.iter().any(|c| matches!(c, Call::Edit { edit: Edit::AnnounceReboot { .. }, .. }));
    assert!(announced);
    body.advance(1000);
    let ready = body.node.as_ref().unwrap().condition("Ready").unwrap().clone();
    assert_eq!((ready.reason.as_str(), ready.message.as_str()), ("KubeletNotReady", "node is shutting down"));
}

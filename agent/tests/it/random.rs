//! Any order of events: nothing exclusive is begun without permission, and the agent always comes to rest.

use std::sync::Arc;

use agent::{Event, Reach, guard};
use api::message::{Answer, Incarnation, Stamp};
use api::view::PodPhase;
use proptest::prelude::*;

use crate::body::{Body, exclusive, pod, uid};

#[derive(Clone, Debug)]
enum Happening {
    Grant(bool),
    Deny,
    Pass(u64),
    Show(usize),
    Delete(usize, u64),
    Force(usize),
    Tombstone(usize),
    Exit(usize, i32),
    Fail(usize),
    RestartAgent,
    Reboot,
    List,
    ServersDown,
    GuardDies(bool),
    NodeGone,
    Lag(bool),
    Release(usize),
}

const PODS: [&str; 4] = ["db-0", "db-1", "web-0", "web-1"];

fn happening() -> impl Strategy<Value = Happening> {
    let pod = 0..PODS.len();
    prop_oneof![
        4 => any::<bool>().prop_map(Happening::Grant),
        1 => Just(Happening::Deny),
        6 => (1u64..8_000).prop_map(Happening::Pass),
        4 => pod.clone().prop_map(Happening::Show),
        2 => (pod.clone(), 0u64..40).prop_map(|(p, g)| Happening::Delete(p, g)),
        2 => pod.clone().prop_map(Happening::Force),
        1 => pod.clone().prop_map(Happening::Tombstone),
        2 => (pod.clone(), 0..2).prop_map(|(p, c)| Happening::Exit(p, c)),
        1 => pod.prop_map(Happening::Fail),
        1 => Just(Happening::RestartAgent),
        1 => Just(Happening::Reboot),
        3 => Just(Happening::List),
        1 => Just(Happening::ServersDown),
        1 => any::<bool>().prop_map(Happening::GuardDies),
        1 => Just(Happening::NodeGone),
        1 => any::<bool>().prop_map(Happening::Lag),
        4 => (1usize..6).prop_map(Happening::Release),
    ]
}

fn happen(body: &mut Body, happening: &Happening, boots: &mut u32) {
    match happening {
        Happening::Grant(all) => body.grant(if *all { &["db-0", "db-1"] } else { &["db-1"] }),
        Happening::Deny => {
            let who = Incarnation { uid: body.agent.uid().clone(), boot: body.boot.clone() };
            let denied = Answer::Denied { who, sent: Stamp(body.now), epoch: api::Epoch(1) };
            body.guard_step(guard::Event::Answer(denied));
        }
        Happening::Pass(ms) => body.advance(*ms),
        Happening::Show(p) if !body.pods.contains_key(&uid(PODS[*p])) => {
            let name = PODS[*p];
            body.show(if name.starts_with("db") { exclusive(name) } else { pod(name) });
        }
        Happening::Delete(p, grace) if body.pods.contains_key(&uid(PODS[*p])) => {
            body.delete(PODS[*p], *grace)
        }
        Happening::Force(p) => body.force_delete(PODS[*p]),
        Happening::Tombstone(p) => {
            let tombstone = body.tombstone(PODS[*p], &body.agent.uid().clone());
            body.pods.remove(&uid(PODS[*p]));
            body.send(Event::Tombstone(Arc::new(tombstone)));
        }
        Happening::Exit(p, code) if body.host.contains_key(&uid(PODS[*p])) => body.exit(PODS[*p], *code),
        Happening::Fail(p) if body.pods.contains_key(&uid(PODS[*p])) => {
            body.change(PODS[*p], |pod| pod.status.phase = PodPhase::Failed);
        }
        Happening::RestartAgent => body.restart_agent(),
        Happening::Reboot => {
            *boots += 1;
            body.reboot(&format!("boot-{boots}"));
        }
        Happening::List => {
            body.api_up = true;
            body.list();
        }
        Happening::ServersDown => {
            body.api_up = false;
            body.send(Event::Api(Reach::No));
        }
        Happening::GuardDies(alive) => {
            body.guard_alive = *alive;
            if *alive {
                body.guard_step(guard::Event::Wake);
            }
        }
        Happening::NodeGone => {
            body.node = None;
            body.send(Event::NodeAbsent);
        }
        Happening::Lag(lag) => body.lag = *lag,
        Happening::Release(count) => body.release(*count),
        Happening::Show(_) | Happening::Delete(..) | Happening::Exit(..) | Happening::Fail(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    // Invariant S1
    #[test]
    fn nothing_exclusive_runs_beyond_the_guards_permission(story in proptest::collection::vec(happening(), 1..50)) {
        let mut body = Body::booted();
        let mut boots = 1;
        for happening in &story {
            happen(&mut body, happening, &mut boots);
            // The body asserts one op per pod and intent before start; the agent asserts its own permission.
            for name in ["db-0", "db-1"] {
                let may = body.guard.is_live(Stamp(body.now));
                prop_assert!(!body.runs(name) || may || !body.guard_alive, "{} runs without permission", name);
            }
        }
        // Comes to rest: everything deleted is gone, and the plan forgets it.
        body.guard_alive = true;
        body.api_up = true;
        body.lag = false;
        body.release(usize::MAX);
        body.pods.clear();
        for name in PODS {
            body.send(Event::PodRemoved(uid(name)));
        }
        body.list();
        body.advance(60_000);
        for name in PODS {
            prop_assert!(body.is_empty(name), "{} is left", name);
            prop_assert!(!body.ledger.pods_by_uid.contains_key(&uid(name)));
        }
        prop_assert!(body.agent.is_idle());
    }

    #[test]
    fn the_same_story_gives_the_same_ops(story in proptest::collection::vec(happening(), 1..30)) {
        let run = || {
            let mut body = Body::booted();
            let mut boots = 1;
            story.iter().for_each(|h| happen(&mut body, h, &mut boots));
            (body.log, body.calls, body.beats)
        };
        prop_assert!(run() == run());
    }
}

use std::collections::BTreeMap;

use expect_test::expect;

use crate::controller::{Controller, Key};
use crate::text::{Story, check, check_touched};
use crate::workload::endpoints::Endpoints;
use crate::{Action, Decision, New, Verb};
use api::edit::Edit;
use api::view::{Endpoint, View};

/// A slice of the service `web`, as texts have it,
const SLICE: &str = "slice default/web-SUFFIX service=web";
/// and what makes it ours.
const OURS: &str =
    "owner=Service/web label=endpointslice.kubernetes.io/managed-by=endpointslice-controller.k8s.io";

fn endpoints(decision: &Decision) -> Vec<Endpoint> {
    let verb = &decision.actions.first().expect("something is done").verb;
    if let Verb::Edit(_, Edit::Endpoints(endpoints)) = verb {
        return endpoints.clone();
    }
    let Verb::Create(New::Object(view)) = verb else { panic!("no endpoints: {verb:?}") };
    let View::EndpointSlice(slice) = &**view else { panic!("not a slice: {view:?}") };
    slice.endpoints.clone()
}

/// A slice that is ours.
fn slice(name: &str) -> String {
    format!("{} {OURS}", SLICE.replace("web-SUFFIX", name))
}

/// One line per endpoint: `10.0.0.1 ready serving terminating`.
#[track_caller]
fn check_conditions(text: &str, golden: expect_test::Expect) {
    let decision =
        Story::read(&text.replace(SLICE, &slice("web-a"))).decide(&Endpoints, "service/default/web");
    if decision.actions.is_empty() {
        golden.assert_eq("rest\n");
        return;
    }
    let line = |e: &Endpoint| {
        let c = e.conditions;
        let words = [(c.ready, " ready"), (c.serving, " serving"), (c.terminating, " terminating")];
        let words: String = words.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect();
        format!("{} on {}:{words}\n", e.addresses[0], e.node_name)
    };
    golden.assert_eq(&endpoints(&decision).iter().map(line).collect::<String>());
}

#[test]
fn ct24_ready_unready_and_terminating() {
    check_conditions(
        "service default/web
         pod default/a on n1 label=app=web ip=10.0.0.1 ready
         pod default/b on n1 label=app=web ip=10.0.0.2 unready
         pod default/c on n1 label=app=web ip=10.0.0.3 ready terminating
         pod default/d on n1 label=app=web ip=10.0.0.4 unready terminating",
        expect![[r#"
            10.0.0.1 on n1: ready serving
            10.0.0.2 on n1:
            10.0.0.3 on n1: serving terminating
            10.0.0.4 on n1: terminating
        "#]],
    );
}

#[test]
fn ct24_pods_without_address_ended_or_not_selected_are_left_out() {
    check_conditions(
        "service default/web
         pod default/a label=app=web
         pod default/b on n1 label=app=web ip=10.0.0.2 phase=Failed
         pod default/c on n1 label=app=other ip=10.0.0.3 ready
         pod other/d on n1 label=app=web ip=10.0.0.4 ready
         pod default/e on n1 label=app=web ip=10.0.0.5 ready",
        expect![[r#"
            10.0.0.5 on n1: ready serving
        "#]],
    );
}

#[test]
fn ct24_publish_not_ready_keeps_them() {
    check_conditions(
        "service default/web publish-not-ready
         node n1
         pod default/a on n1 label=app=web ip=10.0.0.1 unready
         pod default/b on n1 label=app=web ip=10.0.0.2 ready terminating",
        expect![[r#"
            10.0.0.1 on n1: ready
            10.0.0.2 on n1: ready serving terminating
        "#]],
    );
}

#[test]
fn ct24_a_new_slice_is_owned_by_its_service() {
    check(
        &Endpoints,
        "service/default/web",
        "service default/web",
        expect![[r#"
            create endpointslice/default/web-rjl97 if service/default/web is uid-web
        "#]],
    );
}

#[test]
fn f1_suspicion_withdraws_the_pods_of_the_node_and_no_others() {
    let withdrawn = |phase: &str| {
        let decision = Story::read(&format!(
            "service default/web
             node n1
             node n2
             pod default/a on n1 label=app=web ip=10.0.0.1 ready
             pod default/b on n2 label=app=web ip=10.0.0.2 ready
             incident n1 phase={phase}"
        ))
        .decide(&Endpoints, "service/default/web");
        endpoints(&decision).iter().map(|e| (e.conditions.ready, e.conditions.serving)).collect::<Vec<_>>()
    };
    for phase in ["Suspect", "Dead", "Fencing", "Fenced", "Recovering"] {
        assert_eq!(withdrawn(phase), [(false, false), (true, true)], "{phase}");
    }
}

#[test]
fn f1_a_closed_incident_gives_them_back() {
    check_conditions(
        "service default/web
         node n1
         pod default/a on n1 label=app=web ip=10.0.0.1 ready
         incident n1 phase=Closed",
        expect![[r#"
            10.0.0.1 on n1: ready serving
        "#]],
    );
}

#[test]
fn f1_an_incident_of_another_machine_of_the_name_changes_nothing() {
    check_conditions(
        "service default/web
         node n1 uid=new
         pod default/a on n1 label=app=web ip=10.0.0.1 ready
         incident n1 phase=Dead node-uid=old",
        expect![[r#"
            10.0.0.1 on n1: ready serving
        "#]],
    );
}

#[test]
fn p69_a_brake_holds_endpoints_as_they_are() {
    let world = "now 10s
         service default/web
         node n1
         pod default/a on n1 label=app=web ip=10.0.0.1 unready
         pod default/b on n1 label=app=web ip=10.0.0.2 ready
         slice default/web-SUFFIX service=web endpoint=10.0.0.1@n1/a unready-endpoint=10.0.0.2@n1/b";
    // The set of endpoints is shown by a pod that is new.
    let more = "pod default/c on n1 label=app=web ip=10.0.0.3 ready";
    check_conditions(
        &format!("{world}\n{more}\nincident n1 phase=Dead brake=Storm"),
        expect![[r#"
            10.0.0.1 on n1: ready serving
            10.0.0.2 on n1:
            10.0.0.3 on n1: ready serving
        "#]],
    );
    check_conditions(
        &format!("{world}\n{more}\nincident n1 phase=Dead"),
        expect![[r#"
        10.0.0.1 on n1:
        10.0.0.2 on n1:
        10.0.0.3 on n1:
    "#]],
    );
}

#[test]
fn p69_a_pod_that_terminates_leaves_although_a_brake_holds() {
    check_conditions(
        "service default/web
         node n1
         pod default/a on n1 label=app=web ip=10.0.0.1 ready terminating
         slice default/web-SUFFIX service=web endpoint=10.0.0.1@n1/a
         incident n1 phase=Suspect brake=Storm",
        expect![[r#"
            10.0.0.1 on n1: serving terminating
        "#]],
    );
}

#[test]
fn a_service_without_selector_is_somebody_elses() {
    check(
        &Endpoints,
        "service/default/web",
        "service default/web spec.selector:={}",
        expect![[r#"
        rest
    "#]],
    );
}

#[test]
fn slices_of_a_service_that_is_gone_go() {
    let managed = "label=endpointslice.kubernetes.io/managed-by=endpointslice-controller.k8s.io";
    check(
        &Endpoints,
        "service/default/web",
        &format!("slice default/web-x service=web {managed}\nslice default/web-y service=web"),
        expect![[r#"
            delete endpointslice/default/web-x
        "#]],
    );
}

/// Slices of `web` by name, and the pods in them that are ready: how a big service looks.
type Slices = BTreeMap<String, Vec<(String, bool)>>;

/// A service whose slices are written as it is decided, one action after the other.
struct Big {
    pods: BTreeMap<String, &'static str>,
    slices: Slices,
    incident: &'static str,
    /// How long the slices have rested.
    rested: &'static str,
}

impl Big {
    fn new(pods: u32) -> Self {
        let pods = (0..pods).map(|i| (format!("p{i:03}"), "on n1 ready")).collect();
        Self { pods, slices: Slices::new(), incident: "", rested: "1s" }
    }

    fn text(&self) -> String {
        let address = |name: &str| format!("10.0.0.{}", &name[1..]);
        let mut text =
            format!("now 100s\nat 99s\nservice default/web\nnode n1\nnode n2\n{}\n", self.incident);
        for (name, words) in &self.pods {
            text += &format!("pod default/{name} {words} label=app=web ip={}\n", address(name));
        }
        let at = if self.rested == "1s" { "99s" } else { "99950ms" };
        text += &format!("at {at}\n");
        for (name, pods) in &self.slices {
            text += &slice(name);
            for (pod, ready) in pods {
                let node =
                    if self.pods.get(pod).is_some_and(|words| words.contains("on n2")) { "n2" } else { "n1" };
                let word = if *ready { "endpoint" } else { "unready-endpoint" };
                text += &format!(" {word}={}@{node}/{pod}", address(pod));
            }
            text += "\n";
        }
        text
    }

    fn decide(&self) -> Decision {
        Story::read(&self.text()).decide(&Endpoints, "service/default/web")
    }

    fn carry_out(&mut self, action: &Action) {
        let stand = |endpoints: &[Endpoint]| {
            endpoints.iter().map(|e| (e.target_ref.name.to_string(), e.conditions.ready)).collect()
        };
        match &action.verb {
            Verb::Create(New::Object(view)) => {
                let View::EndpointSlice(slice) = &**view else { panic!("not a slice: {view:?}") };
                let old = self.slices.insert(slice.metadata.name.to_string(), stand(&slice.endpoints));
                assert_eq!(old, None, "a slice is made twice");
            }
            Verb::Edit(key, Edit::Endpoints(endpoints)) => {
                let there = self.slices.get_mut(key.name.as_str()).expect("what is edited is there");
                *there = stand(endpoints);
            }
            Verb::Delete(key, _) => drop(self.slices.remove(key.name.as_str())),
            Verb::Create(_) | Verb::Edit(..) | Verb::Note(_) => panic!("not an act on slices: {action:?}"),
        }
    }

    /// Decides and carries out until nothing is left to do. The numbers of actions.
    fn settle(&mut self) -> Vec<usize> {
        let mut counts = Vec::new();
        loop {
            let actions = self.decide().actions;
            if actions.is_empty() {
                return counts;
            }
            counts.push(actions.len());
            assert!(counts.len() < 10, "it never rests");
            actions.iter().for_each(|action| self.carry_out(action));
        }
    }

    fn sizes(&self) -> Vec<usize> {
        let mut sizes: Vec<usize> = self.slices.values().map(Vec::len).collect();
        sizes.sort_unstable();
        sizes
    }

    fn slice_of(&self, pod: &str) -> Option<&String> {
        self.slices.iter().find(|(_, pods)| pods.iter().any(|(name, _)| name == pod)).map(|(name, _)| name)
    }

    /// Every pod with an address stands once, as it is, and no slice is too long.
    fn assert_whole(&self) {
        let mut led: Vec<(&String, bool)> = self.slices.values().flatten().map(|(n, r)| (n, *r)).collect();
        led.sort();
        let wanted: Vec<(&String, bool)> =
            self.pods.iter().map(|(name, words)| (name, words.ends_with(" ready"))).collect();
        assert_eq!(led, wanted);
        assert!(self.slices.values().all(|pods| pods.len() <= 100));
    }
}

#[test]
fn a_big_service_has_slices_of_a_hundred() {
    let mut big = Big::new(250);
    assert_eq!(big.settle(), [3]);
    assert_eq!(big.sizes(), [50, 100, 100]);
    big.assert_whole();
}

#[test]
fn one_pod_s_death_edits_one_slice_and_moves_nobody() {
    let mut big = Big::new(250);
    big.settle();
    let before = big.slices.clone();
    big.pods.remove("p120");
    let concerned = big.slice_of("p120").cloned().expect("it stands somewhere");
    assert_eq!(big.settle(), [1]);
    big.assert_whole();
    for (name, pods) in &before {
        let mut wanted = pods.clone();
        wanted.retain(|(pod, _)| pod != "p120");
        assert_eq!(big.slices[name].len() + usize::from(*name == concerned), pods.len());
        assert_eq!(big.slices[name], wanted);
    }
}

#[test]
fn new_pods_go_where_most_room_is_and_then_to_a_new_slice() {
    let mut big = Big::new(250);
    big.settle();
    let roomy = big.slice_of("p249").cloned();
    big.pods.insert("p250".to_owned(), "on n1 ready");
    assert_eq!(big.settle(), [1]);
    assert_eq!(big.slice_of("p250"), roomy.as_ref());
    for i in 251..310 {
        big.pods.insert(format!("p{i}"), "on n1 ready");
    }
    assert_eq!(big.settle(), [2]);
    assert_eq!(big.sizes(), [10, 100, 100, 100]);
    big.assert_whole();
}

#[test]
fn an_empty_slice_goes_but_the_last_stays() {
    let mut big = Big::new(150);
    big.settle();
    big.pods.retain(|name, _| name.as_str() < "p100");
    assert_eq!(big.settle(), [1]);
    assert_eq!(big.sizes(), [100]);
    big.pods.clear();
    assert_eq!(big.settle(), [1]);
    assert_eq!(big.sizes(), [0]);
}

#[test]
fn additions_are_gathered_and_withdrawals_are_not() {
    let mut big = Big::new(150);
    big.settle();
    big.rested = "50ms";
    big.pods.insert("p150".to_owned(), "on n1 ready");
    expect![[r#"
        wake +50ms
    "#]]
    .assert_eq(&crate::text::show(&big.decide(), crate::text::time("100s")));
    // What takes traffic away takes the rest with it, and comes first.
    big.pods.insert("p149".to_owned(), "on n1 unready");
    big.pods.insert("p000".to_owned(), "on n1 unready");
    let decision = big.decide();
    assert_eq!((decision.actions.len(), decision.wake), (2, None));
    big.settle();
    big.assert_whole();
}

#[test]
fn f1_a_dead_node_is_withdrawn_before_anything_is_added() {
    let mut big = Big::new(250);
    for name in ["p010", "p110", "p111"] {
        big.pods.insert(name.to_owned(), "on n2 ready");
    }
    big.settle();
    for i in 300..420 {
        big.pods.insert(format!("p{i}"), "on n1 ready");
    }
    big.incident = "incident n2 phase=Suspect";
    let actions = big.decide().actions;
    // Two slices lose pods; the third is filled; a fourth is made.
    assert_eq!(actions.len(), 4);
    for action in &actions[..2] {
        big.carry_out(action);
    }
    let withdrawn = |name: &str| big.slices.values().flatten().any(|(pod, ready)| pod == name && !ready);
    assert!(["p010", "p110", "p111"].into_iter().all(withdrawn));
}

#[test]
fn every_prefix_of_actions_is_safe_and_leads_to_the_same_end() {
    for cut in 0..=4 {
        let mut big = Big::new(230);
        big.settle();
        let before = big.slices.clone();
        big.pods.retain(|name, _| !(name.as_str() >= "p100" && name.as_str() < "p200"));
        big.pods.insert("p001".to_owned(), "on n1 unready");
        big.pods.insert("p229".to_owned(), "on n1 unready");
        for i in 300..400 {
            big.pods.insert(format!("p{i}"), "on n1 ready");
        }
        let actions = big.decide().actions;
        actions.iter().take(cut).for_each(|action| big.carry_out(action));
        for (name, pods) in &before {
            for (pod, _) in pods.iter().filter(|(pod, _)| big.pods.contains_key(pod)) {
                assert_eq!(big.slice_of(pod), Some(name), "{pod} stays after {cut} actions");
            }
        }
        big.settle();
        big.assert_whole();
    }
}

#[test]
fn a_pod_that_stands_twice_is_led_to_once() {
    let mut big = Big::new(2);
    big.slices.insert("web-a".to_owned(), vec![("p000".to_owned(), true)]);
    big.slices.insert("web-b".to_owned(), vec![("p000".to_owned(), true), ("p001".to_owned(), true)]);
    assert_eq!(big.settle(), [1]);
    big.assert_whole();
}

#[test]
fn slices_of_an_earlier_service_of_the_name_go() {
    let world = format!("service default/web uid=old\n{}\nservice default/web uid=new", slice("web-a"));
    check(
        &Endpoints,
        "service/default/web",
        &world,
        expect![[r#"
            create endpointslice/default/web-nbc75 if service/default/web is new
            delete endpointslice/default/web-a
        "#]],
    );
}

#[test]
fn what_may_wait_waits_and_what_takes_traffic_away_does_not() {
    let world = format!("{}\npod default/a on n1 label=app=web ip=10.0.0.1 ready\n", slice("web-a"));
    let patience = |line: &str| {
        let story = Story::read(&format!("now 9s\nat 5s\nservice default/web\n{world}at 6s\n{line}"));
        let key = Key::Object(crate::text::object_key("service/default/web"));
        story.changes().iter().find_map(|change| Endpoints.patience(change, &story.world, &key))
    };
    let due = Some(crate::text::time("5100ms"));
    assert_eq!(patience("pod default/b on n1 label=app=web ip=10.0.0.2 ready"), due);
    assert_eq!(patience("pod default/a on n1 label=app=web ip=10.0.0.1 ready label=more=1"), None);
    assert_eq!(patience("pod default/a on n1 label=app=web ip=10.0.0.1 unready"), None);
    assert_eq!(patience("pod default/a on n1 label=app=web ip=10.0.0.1 ready terminating"), None);
    assert_eq!(patience("pod default/a on n1 label=app=web ip=10.0.0.1 phase=Failed"), None);
    assert_eq!(patience("pod default/a on n1 label=app=web ip=10.0.0.9 ready"), None);
    assert_eq!(patience("pod default/a uid=new on n1 label=app=web ip=10.0.0.1 ready"), None);
    assert_eq!(patience("gone pod/default/a"), None);
    assert_eq!(patience("incident n1 phase=Suspect"), None);
}

#[test]
fn a_change_that_no_endpoint_shows_touches_nothing() {
    let pod = "pod default/a on n1 label=app=web ip=10.0.0.1 ready";
    check_touched(
        &Endpoints,
        &format!("service default/web\nnode n1\n{pod}\n{pod} annotation=a=b"),
        expect![""],
    );
}

#[test]
fn incidents_pods_and_slices_touch_the_services() {
    let world = "service default/web\nservice default/other\nnode n1\n\
                 pod default/a on n1 label=app=web ip=10.0.0.1 ready\n";
    check_touched(
        &Endpoints,
        &format!("{world}incident n1 phase=Suspect"),
        expect![[r#"
        service/default/web
    "#]],
    );
    check_touched(
        &Endpoints,
        &format!("{world}pod default/b label=app=other"),
        expect![[r#"
        service/default/other
    "#]],
    );
    check_touched(
        &Endpoints,
        &format!("{world}slice default/x service=web"),
        expect![[r#"
        service/default/web
    "#]],
    );
}

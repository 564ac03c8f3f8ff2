use expect_test::expect;

use crate::text::{Story, check, check_touched};
use crate::workload::endpoints::Endpoints;
use crate::{Decision, New, Verb};
use api::edit::Edit;
use api::view::{Endpoint, View};

/// The slice of the service `web` with uid `uid-web`.
const SLICE: &str = "slice default/web-SUFFIX service=web";

fn endpoints(decision: &Decision) -> Vec<Endpoint> {
    let verb = &decision.actions.first().expect("something is done").verb;
    if let Verb::Edit(_, Edit::Endpoints(endpoints)) = verb {
        return endpoints.clone();
    }
    let Verb::Create(New::Object(view)) = verb else { panic!("no endpoints: {verb:?}") };
    let View::EndpointSlice(slice) = &**view else { panic!("not a slice: {view:?}") };
    slice.endpoints.clone()
}

/// The name that the controller gives to the slice, found by asking it.
fn slice() -> String {
    let story = Story::read("service default/web");
    let decision = story.decide(&Endpoints, "service/default/web");
    let Some(Verb::Create(new)) = decision.actions.first().map(|a| &a.verb) else {
        panic!("no slice is made")
    };
    SLICE.replace("web-SUFFIX", new.key().name.as_str())
}

/// One line per endpoint: `10.0.0.1 ready serving terminating`.
#[track_caller]
fn check_conditions(text: &str, golden: expect_test::Expect) {
    let decision = Story::read(&text.replace(SLICE, &slice())).decide(&Endpoints, "service/default/web");
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
        create endpointslice/default/web-8d7bh if service/default/web is uid-web
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
    let world = "service default/web
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

#[test]
fn more_than_fit_are_said() {
    let pods: String = (0..1002)
        .map(|i| format!("pod default/p{i} on n1 label=app=web ip=10.0.{}.{} ready\n", i / 250, i % 250))
        .collect();
    let story = Story::read(&format!("service default/web\n{pods}"));
    let decision = story.decide(&Endpoints, "service/default/web");
    assert_eq!(endpoints(&decision).len(), 1000);
    expect!["2 endpoints do not fit into one slice and get no traffic"]
        .assert_eq(&decision.why.map(|n| n.message).unwrap_or_default());
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

//! Bad scenario files: one clear sentence, with line and column.

use api::Duration;
use api::taint::{TaintEffect, Toleration};
use api::view::RestartPolicy;
use sim::scenario::parse::parse;

#[track_caller]
fn check(text: &str, expected: &str) {
    match parse(text) {
        Ok(_) => panic!("this must not be readable:\n{text}"),
        Err(error) => assert_eq!(error.to_string(), expected),
    }
}

#[test]
fn what_is_not_known_is_named() {
    check(
        "nodes n1\nfly n1\n",
        "line 2, column 1: a line begins with at, by, not, always, never, seen, profile, set, servers, nodes, workload, seed, drift, delay, promise, mutation or end, not with `fly`",
    );
    check("nodes n1\nat 5s fly n1", "line 2, column 7: there is no act `fly`");
    check("nodes n1\nat 5s power-off n2", "line 2, column 17: there is no node `n2`");
    check("nodes n1\nby 5s node n2 gone", "line 2, column 12: there is no node `n2`");
    check(
        "nodes n1\nby 5s moon full",
        "line 2, column 7: what must hold begins with node, pod, two, pods, service, volume, tombstone, no, incidents, \
         count, note, waits, leader, council or whole, not with `moon`",
    );
    check("mutation c99 must fail", "line 1, column 10: there is no mutation `c99`");
    check(
        "profile slow",
        "line 1, column 9: there is no timing profile \"slow\"; there are default, fast, kubernetes",
    );
    check(
        "nodes n1\nat 5s crash server-1",
        "line 2, column 13: there is no server `server-1`: the first is server-0",
    );
}

#[test]
fn what_is_missing_or_too_much_is_named() {
    check("nodes n1\nat 5s", "line 2, column 6: here should be an act, but the line ends");
    check(
        "nodes n1\nat 5s power-off",
        "line 2, column 16: here should be the name of a node, but the line ends",
    );
    check("nodes n1\nat 5s calm now", "line 2, column 12: the line should end before `now`");
    check("# a story of nothing\n", "line 1, column 1: the scenario names no nodes");
    check("nodes n1 n1", "line 1, column 10: there is a node `n1` already");
    check("nodes n1\nby 5s note node n1 X \"abc", "line 2, column 22: this quotation does not end");
}

#[test]
fn times_have_units_and_an_order() {
    let looks = "a time looks like 10s, 6.8s, 500ms, 5m or 20s+6.8s, not like";
    for (time, column) in
        [("5", 4), ("5h", 4), ("s", 4), ("1.2345s", 4), ("0.5ms", 4), ("5s+", 4), ("-1s", 4)]
    {
        check(&format!("nodes n1\nat {time} calm"), &format!("line 2, column {column}: {looks} `{time}`"));
    }
    check("nodes n1\nat 5s calm\nat 4s calm", "line 3, column 4: acts stand in the order of their times");
    check("nodes n1\nalways 5s..4s whole", "line 2, column 8: this range ends before it begins");
    check(
        "nodes n1\nby 9s whole\nend 5s",
        "line 2, column 1: this is expected after the end of the scenario at 5s",
    );
    let scenario = parse("nodes n1\nat 1.5s calm\nat 2m+500ms calm\nby 3m whole").unwrap();
    let at: Vec<u64> = scenario.deeds.iter().map(|deed| deed.at.ms()).collect();
    assert_eq!(at, [1500, 120_500]);
    assert_eq!(scenario.end.ms(), 185_000);
}

#[test]
fn columns_count_characters_not_bytes() {
    check(
        "nodes n1\nby 5s note node n1 X \"äöü\" too much",
        "line 2, column 28: the line should end before `too`",
    );
}

#[test]
fn links_are_one_way_or_both() {
    let count = |act: &str| {
        let scenario = parse(&format!("servers 3\nnodes n1 n2\nat 1s {act}")).unwrap();
        match &scenario.deeds[0].what {
            sim::scenario::What::Faults(faults) => faults.len(),
            sim::scenario::What::Call(..) | sim::scenario::What::Calm => 0,
        }
    };
    assert_eq!(count("cut n1 from server-0"), 2);
    assert_eq!(count("cut n1 to server-0"), 1);
    assert_eq!(count("cut nodes from servers"), 12);
    assert_eq!(count("cut n1 from nodes"), 2, "nobody is cut off from himself");
    assert_eq!(count("heal all"), 1);
    assert_eq!(count("power-off nodes"), 2);
}

#[test]
fn what_is_unusual_about_pods_is_read_to_the_end_of_the_line() {
    let text = "nodes n1\nworkload statefulset db replicas=2 volume exclusive tolerates=a.b/c:NoExecute:200s tolerates=* \
                finalizer=x.org/keep restart=Never exit=143 ends-after=30s\nworkload pod bare";
    let config = parse(text).unwrap().config;
    assert_eq!(config.templates.len(), 1, "what is usual needs no template");
    let template = &config.templates["db"];
    let effect = Some(TaintEffect::NoExecute);
    let tolerations = [Toleration::exists("a.b/c", effect, Some(200)), Toleration::exists("", None, None)];
    assert_eq!(template.tolerations, tolerations);
    assert_eq!(template.finalizers, ["x.org/keep"]);
    assert!(template.exclusive);
    assert_eq!((template.restart_policy, template.exit_code), (RestartPolicy::Never, 143));
    assert_eq!(template.ends_after, Some(Duration::from_secs(30)));

    let known = "exclusive, tolerates=…, finalizer=…, restart=…, exit=… or ends-after=…";
    check("workload pod p volume", &format!("line 1, column 16: of pods can be said {known}, not `volume`"));
    let looks = "a toleration looks like *, KEY, KEY:NoExecute or KEY:NoExecute:200s, not like";
    for wrong in ["", "k:No", "k:NoExecute:0.5s", "k:NoExecute:1s:x"] {
        check(&format!("workload pod p tolerates={wrong}"), &format!("line 1, column 16: {looks} `{wrong}`"));
    }
    check(
        "workload pod p restart=Sometimes",
        "line 1, column 16: pods restart Always, OnFailure or Never, not `Sometimes`",
    );
    check("workload pod p exit=+1", "line 1, column 16: an exit code is a number from 0 to 255, not `+1`");
    check("workload pod p exit=256", "line 1, column 16: an exit code is a number from 0 to 255, not `256`");
    check("workload service web exclusive", "line 1, column 22: the line should end before `exclusive`");
    check(
        "workload pod p exclusive\nworkload daemonset p exclusive",
        "line 2, column 22: pods of `p` were described already",
    );
}

#[test]
fn names_are_names_and_mean_one_thing() {
    let rule = "a name has up to 63 lower-case letters, digits, `-` and `.`";
    check("nodes N1", &format!("line 1, column 7: {rule}; `N1` is none"));
    check("nodes \"\"", &format!("line 1, column 7: {rule}; `` is none"));
    check("nodes n1 zone=", &format!("line 1, column 10: {rule}; `` is none"));
    check("nodes n1\nworkload pod a/b", &format!("line 2, column 14: {rule}; `a/b` is none"));
    check("nodes n1\nat 5s delete pod a/b/c", &format!("line 2, column 18: {rule}; `b/c` is none"));
    let taken = "means something else: call the node otherwise";
    check("nodes leader", &format!("line 1, column 7: `leader` {taken}"));
    check("nodes n1\nat 5s call server-0 = not n1", &format!("line 2, column 12: `server-0` {taken}"));
    check("nodes n1\nat 5s call n1 = not n1", "line 2, column 12: there is a node `n1` already");
    check("nodes n1\nworkload pod p\nworkload pod p", "line 3, column 14: there is a pod `p` already");
    check("nodes n1\nat 5s scale web 1", "line 2, column 13: there is no statefulset or replicaset `web`");
    check("nodes n1\nby 5s service web leads to = 0", "line 2, column 15: there is no service `web`");
    check(
        "nodes n1\nby 5s pods of web = 0",
        "line 2, column 15: there is no statefulset or replicaset or daemonset `web`",
    );
    check(
        "nodes n1\nby 5s leader server-1",
        "line 2, column 14: there is no server `server-1`: the first is server-0",
    );
}

#[test]
fn numbers_have_limits() {
    let text = "a time is at most 1440m; `18446744073709551615ms` is longer";
    check("nodes n1\nend 18446744073709551615ms", &format!("line 2, column 5: {text}"));
    check("nodes n1\nat 1440m+1ms calm", "line 2, column 4: a time is at most 1440m; `1440m+1ms` is longer");
    let huge = "99999999999999999999999s";
    check(
        &format!("nodes n1\nat {huge} calm"),
        &format!("line 2, column 4: a time is at most 1440m; `{huge}` is longer"),
    );
    check("set nope 1s", "line 1, column 5: there is no timing value \"nope\"");
    check("set asking 0s", "line 1, column 12: asking cannot be zero: who asks again at once asks for ever");
    check("delay 1s..", "line 1, column 7: a delay has an upper end");
    check(
        "drift 500001ppm",
        "line 1, column 7: a drift looks like 10000ppm, up to 500000ppm, not like `500001ppm`",
    );
    check("seed +1", "line 1, column 6: here should be a seed, not `+1`");
    let replicas = "here should be replicas=N with N up to 10000, not";
    for n in ["-1", "+1", "10001", "99999999999999"] {
        check(
            &format!("workload replicaset web replicas={n}"),
            &format!("line 1, column 25: {replicas} `replicas={n}`"),
        );
    }
    for n in ["0", "2001"] {
        check(
            &format!("mutation c5-amnesia must fail within {n} seeds"),
            &format!("line 1, column 38: here should be a number of seeds from 1 to 2000, not `{n}`"),
        );
    }
}

#[test]
fn a_line_changes_nothing_that_an_earlier_line_meant() {
    check("seed 1\nseed 2", "line 2, column 1: `seed` stands here for the second time");
    check("set dead 1s\nset dead 2s", "line 2, column 5: `set dead` stands here for the second time");
    check("set dead 1s\nprofile fast", "line 2, column 1: `profile` stands before every `set`");
    check(
        "nodes n1\nat 1s calm\nnodes n2",
        "line 3, column 1: `nodes` stands before all acts and expectations",
    );
    check(
        "nodes n1\nat 9s calm\nend 5s",
        "line 2, column 1: this is done after the end of the scenario at 5s",
    );
    check(
        "nodes n1\nalways 9s.. whole\nend 5s",
        "line 2, column 1: this is expected after the end of the scenario at 5s",
    );
    assert_eq!(parse("nodes n1\nalways 20s.. whole").unwrap().end.ms(), 25_000);
}

#[test]
fn an_error_stays_readable() {
    let error = parse(&"x".repeat(1_000_000)).unwrap_err();
    assert_eq!((error.line, error.column), (1, 1));
    assert!(error.text.chars().count() < 400, "{}", error.text.len());
    // A line of many words is read in one pass.
    assert!(parse(&format!("nodes n1\nat 5s power-off {}", "n1 ".repeat(300_000))).is_ok());
}

#[test]
fn a_byte_order_mark_and_carriage_returns_mean_nothing() {
    let scenario = parse("\u{feff}# A title\r\nnodes n1\r\nend 5s\r\n").unwrap();
    assert_eq!(scenario.title, "A title");
    assert_eq!(scenario.end.ms(), 5000);
}

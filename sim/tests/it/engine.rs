//! The engine itself: a run is its seed, and a quiet cluster comes to rest.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use api::timing::PROFILES;
use api::view::View;
use api::{Duration, Kind, NodeName, ObjectKey};
use sim::cluster::Cluster;
use sim::config::{Config, START};
use sim::fault::{Fault, Party};
use sim::observe::{Fact, Observation};

fn small(servers: usize, nodes: usize) -> Config {
    Config::small(PROFILES[0].timing, servers, nodes)
}

fn run(cluster: &mut Cluster, secs: u64) -> Vec<Fact> {
    let until = cluster.now() + Duration::from_secs(secs);
    cluster.run_until(until);
    cluster.drain_facts()
}

/// One line per fact.
fn text(facts: &[Fact]) -> String {
    let mut text = String::new();
    for fact in facts {
        let _ = writeln!(text, "{} {:?}", fact.at.since(START).ms(), fact.what);
    }
    text
}

fn faults() -> Vec<(u64, Fault)> {
    let n = |i: usize| NodeName::from(format!("n{i}"));
    vec![
        (30, Fault::Cut(Party::Node(n(2)), Party::Server(0))),
        (34, Fault::PauseServer { server: 0, clock_runs: false }),
        (40, Fault::HealAll),
        (45, Fault::ResumeServer(0)),
        (46, Fault::PowerOff(n(1))),
        (60, Fault::CrashServer(1)),
        (70, Fault::StartServer(1)),
        (75, Fault::PowerOn(n(1))),
    ]
}

fn stormy(seed: u64) -> String {
    let mut cluster = Cluster::new(small(3, 4), seed);
    for (at, fault) in faults() {
        cluster.run_until(START + Duration::from_secs(at));
        cluster.inject(fault);
    }
    cluster.calm();
    cluster.run_until(START + Duration::from_secs(120));
    text(&cluster.drain_facts())
}

#[test]
fn same_seed_same_run() {
    let (one, two) = (stormy(7), stormy(7));
    assert_eq!(one, two);
    assert_ne!(one, stormy(8));
}

/// Running pods by name, over all machines that have power.
fn running(cluster: &Cluster) -> BTreeMap<String, Vec<NodeName>> {
    let mut running: BTreeMap<String, Vec<NodeName>> = BTreeMap::new();
    for machine in cluster.machines() {
        for instance in machine.running {
            running.entry(instance.name.to_string()).or_default().push(machine.name.clone());
        }
    }
    running
}

#[test]
fn quiet_cluster_comes_to_rest() {
    for (servers, nodes) in [(1, 1), (1, 3), (3, 5)] {
        let mut cluster = Cluster::new(small(servers, nodes), 1);
        run(&mut cluster, 60);
        let pods = running(&cluster);
        // db-0 db-1, three of web, one bare, one log per node.
        assert_eq!(
            pods.len(),
            2 + 3 + 1 + nodes,
            "{servers} servers, {nodes} nodes: {pods:?} {:?}",
            cluster.reasons()
        );
        let facts = run(&mut cluster, 120);
        let moved =
            facts.iter().filter(|f| matches!(f.what, Observation::Started(_) | Observation::Ended(_)));
        assert_eq!(moved.count(), 0, "{servers} servers, {nodes} nodes");
        assert_eq!(cluster.counters().panics, 0);
        let incidents = cluster.objects().filter(|(key, _, _)| key.kind == Kind::NodeIncident).count();
        assert_eq!(incidents, 0, "{servers} servers, {nodes} nodes");
    }
}

fn machine_of(cluster: &Cluster, pod: &str) -> NodeName {
    running(cluster).get(pod).and_then(|machines| machines.first().cloned()).unwrap_or_default()
}

// Promise F2.
#[test]
fn power_cut_moves_the_database() {
    for seed in 0..5 {
        let mut cluster = Cluster::new(small(3, 5), seed);
        run(&mut cluster, 40);
        let before = machine_of(&cluster, "db-0");
        assert!(!before.is_empty(), "seed {seed}: db-0 runs before the cut");
        cluster.inject(Fault::PowerOff(before.clone()));
        run(&mut cluster, 20);
        let after = machine_of(&cluster, "db-0");
        assert!(
            !after.is_empty() && after != before,
            "seed {seed}: db-0 runs elsewhere: {:?}",
            cluster.reasons()
        );
        let Some((_, View::Pod(pod))) =
            cluster.object(&ObjectKey::namespaced(Kind::Pod, &"default".into(), "db-0"))
        else {
            panic!("seed {seed}: there is a pod db-0");
        };
        assert_eq!(pod.spec.node_name, after);
    }
}

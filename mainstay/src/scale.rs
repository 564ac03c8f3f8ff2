//! `mainstay sim --nodes N --pods M`: one large cluster loses one node.
//!
//! Responsible for: showing that the decisions of node death hold at size, with wall time and memory beside: three
//! virtual minutes in which every pod is behind one service. Leaves the promises themselves to the oracles; that
//! everything is whole in the end is one of them.

use std::time::Instant;

use anyhow::Result;
use api::timing::Automatic;
use api::timing::profile::Profile;
use api::{Duration, Name, Namespace};
use serde_json::json;
use sim::config::{Config, NAMESPACE, START, Workload};
use sim::fault::Fault;
use sim::oracle::Promise;
use sim::run::Stage;

use crate::arguments::Output;
use crate::machine;

/// The cluster is left alone for so long before it loses the node, while pods are placed and started.
const WARM: Duration = Duration::from_secs(60);
/// The node stays away for so long: every automatic profile has its pods elsewhere well before.
const LOST: Duration = Duration::from_secs(60);
/// Then it has power again, and everything has so long to become whole. Three minutes in all.
const CALM: Duration = Duration::from_secs(60);

/// Runs it. The exit code.
pub(crate) fn run(nodes: u32, pods: u32, profile: &Profile, output: Output) -> Result<u8> {
    let began = Instant::now();
    let mut config = Config::small(profile.timing, 1, usize::try_from(nodes)?);
    config.workloads = vec![
        Workload::StatefulSet { name: "db".to_owned(), replicas: 1, volume: true },
        Workload::ReplicaSet { name: "web".to_owned(), replicas: pods.saturating_sub(1) },
        Workload::Service { name: "web".to_owned() },
    ];
    let mut promises = vec![Promise::Whole];
    if profile.timing.automatic == Automatic::On {
        promises.push(Promise::FailsOver);
    }
    let mut stage = Stage::new(config, promises, 1);
    stage.advance(START + WARM);
    let placed = stage.judge.scene().machines().map(|(_, m)| m.running.len()).sum::<usize>();
    let warm_ms = millis(began);
    if let Some(host) = stage.host_of(&Namespace::from(NAMESPACE), &Name::from("db-0")) {
        stage.inject(Fault::PowerOff(host));
    }
    let watched = Instant::now();
    stage.advance(START + WARM + LOST);
    let lost_ms = millis(watched);
    let calmed = Instant::now();
    stage.calm();
    stage.advance(START + WARM + LOST + CALM);
    let calm_ms = millis(calmed);
    let report = stage.report(1, "scale".to_owned(), None);
    let mut summary = sim::report::Summary::default();
    summary.fold(&report);
    let elapsed_ms = millis(began);
    match output {
        Output::Json => {
            let value = json!({
                "nodes": nodes,
                "pods": pods,
                "pods_running": placed,
                "failover_ms": summary.failover_max().ms(),
                "safety": summary.safety,
                "liveness": summary.liveness,
                "decisions": report.counters.decisions,
                "events": report.counters.events,
                "messages": report.counters.messages,
                "warm_elapsed_ms": warm_ms,
                "lost_elapsed_ms": lost_ms,
                "calm_elapsed_ms": calm_ms,
                "elapsed_ms": elapsed_ms,
                "virtual_ms": report.span.ms(),
                "rss_max_kib": machine::rss_max_kib(),
            });
            say!("{value}");
        }
        Output::Text => {
            for finding in &report.findings {
                say!("{} {}", finding.oracle, finding.text);
            }
            say!(
                "{nodes} nodes, {pods} pods wished, {placed} instances running after {WARM} of virtual time"
            );
            say!("{} decisions, {} events", report.counters.decisions, report.counters.events);
            say!(
                "wall time: {warm_ms} ms to start, {lost_ms} ms with the node lost, {calm_ms} ms afterwards"
            );
            say!("wall time: {elapsed_ms} ms for {} of virtual time", report.span);
            say!("memory: {} MiB at most", machine::rss_max_kib().unwrap_or(0) / 1024);
            say!("{}", summary.last_line());
        }
    }
    Ok(summary.verdict().exit_code())
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

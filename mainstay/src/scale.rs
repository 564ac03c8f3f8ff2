//! `mainstay sim --nodes N --pods M`: one large cluster loses one node.
//!
//! Responsible for: showing that the decisions of node death hold at size, with wall time and memory beside. Leaves the
//! promises themselves to the oracles.

use std::time::Instant;

use anyhow::Result;
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
/// And watched for so long afterwards.
const WATCH: Duration = Duration::from_secs(20);

/// Runs it. The exit code.
pub(crate) fn run(nodes: u32, pods: u32, profile: &Profile, output: Output) -> Result<u8> {
    let began = Instant::now();
    let mut config = Config::small(profile.timing, 1, usize::try_from(nodes)?);
    config.workloads = vec![
        Workload::StatefulSet { name: "db".to_owned(), replicas: 1, volume: true },
        Workload::ReplicaSet { name: "web".to_owned(), replicas: pods.saturating_sub(1) },
    ];
    let mut stage = Stage::new(config, [Promise::FailsOver], 1);
    stage.advance(START + WARM);
    let placed = stage.judge.scene().machines().map(|(_, m)| m.running.len()).sum::<usize>();
    let warm_ms = millis(began);
    if let Some(host) = stage.host_of(&Namespace::from(NAMESPACE), &Name::from("db-0")) {
        stage.inject(Fault::PowerOff(host));
    }
    let watched = Instant::now();
    stage.advance(START + WARM + WATCH);
    let watch_ms = millis(watched);
    let report = stage.report(1, "scale".to_owned(), None);
    let mut summary = sim::report::Summary::default();
    summary.fold(&report);
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
                "watch_elapsed_ms": watch_ms,
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
            say!("wall time: {warm_ms} ms to start, {watch_ms} ms for {WATCH} with the node lost");
            say!("memory: {} MiB at most", machine::rss_max_kib().unwrap_or(0) / 1024);
            say!("{}", summary.last_line());
        }
    }
    Ok(summary.verdict().exit_code())
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

//! `mainstay demo`: the same power cut, here and on stock Kubernetes, told in plain lines.
//!
//! Responsible for: telling. Both runs are the real decision code in virtual time; the stock one is the profile
//! `kubernetes`, in which nothing is fenced or moved without a human.

use anyhow::{Context as _, Result};
use api::timing::profile::Profile;
use api::view::{ConditionStatus, IncidentPhase, View};
use api::{Duration, Name, Namespace, NodeName, Time};
use sim::config::{Config, NAMESPACE, START, Workload};
use sim::fault::Fault;
use sim::observe::{Fact, Observation};
use sim::run::Stage;

/// When the power goes.
const CUT: Duration = Duration::from_secs(20);
/// How long the stock run is watched: longer than anything that stock does by itself.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
/// The pod that everybody waits for.
const DATABASE: &str = "db-0";

/// Runs it. The exit code.
pub(crate) fn run() -> Result<u8> {
    say!(
        "A cluster of three machines runs a database with one volume (StatefulSet) and a web front (ReplicaSet)."
    );
    say!("The machine of the database loses power and does not come back. No human does anything.");
    say!("Both runs below are the real decisions in virtual time; times count from the power cut.\n");
    say!("Mainstay, profile default:");
    let ours = tell("default", Duration::from_secs(60))?;
    say!("\nStock Kubernetes' rules, profile kubernetes:");
    let stock = tell("kubernetes", PATIENCE)?;
    say!("");
    let words = |took: Option<Duration>, watched: Duration| match took {
        Some(took) => format!("runs again after {}", seconds(took)),
        None => format!("does not run again (watched for {} minutes)", watched.secs() / 60),
    };
    let minute = Duration::from_secs(60);
    say!("result: Mainstay: the database {}; stock: it {}", words(ours, minute), words(stock, PATIENCE));
    Ok(0)
}

/// One run, told. How long the database was away, if it came back.
fn tell(profile: &str, watch: Duration) -> Result<Option<Duration>> {
    let profile = Profile::named(profile)?;
    let mut config = Config::small(profile.timing, 1, 3);
    config.workloads = vec![
        Workload::StatefulSet { name: "db".to_owned(), replicas: 1, volume: true },
        Workload::ReplicaSet { name: "web".to_owned(), replicas: 3 },
        Workload::Service { name: "web".to_owned() },
    ];
    let mut stage = Stage::new(config, [], 7);
    stage.advance(START + CUT);
    let (namespace, name) = (Namespace::from(NAMESPACE), Name::from(DATABASE));
    let host = stage.host_of(&namespace, &name).context("the database does not run before the power cut")?;
    say(START + CUT, &format!("machine {host} loses power; the database {DATABASE} ran there"));
    stage.cluster.inject(Fault::PowerOff(host.clone()));
    let until = START + CUT + watch;
    while stage.cluster.now() < until {
        stage.cluster.run_until((stage.cluster.now() + Duration::from_secs(1)).min(until));
        for fact in stage.take_new() {
            if let Some(line) = line(&fact, &host) {
                say(fact.at, &line);
            }
            if let Observation::Started(instance) = &fact.what
                && instance.name == name
            {
                return Ok(Some(fact.at.since(START + CUT)));
            }
        }
    }
    say(until, "nothing else has happened, and nothing will until a human acts");
    Ok(None)
}

fn say(at: Time, line: &str) {
    say!("  {:>9}  {line}", seconds(at.since(START + CUT)));
}

fn seconds(span: Duration) -> String {
    format!("{}.{} s", span.secs(), span.ms() % 1000 / 100)
}

/// What a fact means for people who wait for the database; most mean nothing to them.
#[allow(clippy::wildcard_enum_match_arm, reason = "the story picks what people want to hear")]
fn line(fact: &Fact, host: &NodeName) -> Option<String> {
    match &fact.what {
        Observation::Started(instance) if instance.name.as_str() == DATABASE => {
            Some(format!("the database runs on {}", instance.machine))
        }
        Observation::Started(instance) => Some(format!("{} runs on {}", instance.name, instance.machine)),
        Observation::Mounted { machine, volume, .. } => {
            Some(format!("volume {volume} is mounted on {machine}"))
        }
        Observation::Evidence { kind, .. } => {
            Some(format!("{host} is fenced: proven by {kind:?} that nothing of it runs"))
        }
        Observation::Written { old, new: Some(new), .. } => change(old.as_ref(), new, host),
        Observation::Written { old: Some(View::Pod(pod)), new: None, .. } => {
            Some(format!("pod {} of {host} is gone", pod.metadata.name))
        }
        _ => None,
    }
}

fn change(old: Option<&View>, new: &View, host: &NodeName) -> Option<String> {
    match (old, new) {
        (old, View::NodeIncident(incident)) => {
            let before = if let Some(View::NodeIncident(old)) = old { Some(old.status.phase) } else { None };
            let phase = incident.status.phase;
            if before == Some(phase) {
                return None;
            }
            match phase {
                IncidentPhase::Suspect => Some(format!("{host} is silent: no new traffic is sent there")),
                IncidentPhase::Dead => {
                    Some(format!("{host} counts as dead: it is tainted, and closed at the council"))
                }
                IncidentPhase::Fencing
                | IncidentPhase::Fenced
                | IncidentPhase::Recovering
                | IncidentPhase::Closed => None,
            }
        }
        (Some(View::Node(old)), View::Node(new)) => (old.ready() == ConditionStatus::True
            && new.ready() == ConditionStatus::Unknown)
            .then(|| format!("node {host} is shown as Unknown")),
        (Some(View::Pod(old)), View::Pod(new)) => {
            let name = &new.metadata.name;
            if !old.metadata.is_terminating() && new.metadata.is_terminating() {
                return Some(format!(
                    "pod {name} is marked for deletion; only its dead node could confirm that"
                ));
            }
            (!old.is_bound() && new.is_bound()).then(|| format!("{name} is placed on {}", new.spec.node_name))
        }
        _ => None,
    }
}

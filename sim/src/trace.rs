//! Facts as lines for people.
//!
//! Responsible for: one line per fact, in columns (docs/testing.md, "Trace columns"), and the choice of those that tell
//! a story. Leaves to the binary to print them, to [`crate::oracle`] to judge the facts.
//!
//! Invariant: a line is made from its fact alone. What changes with every run of another revision (uids, boot ids)
//! stands in a part of its own that golden traces leave out.

use std::collections::BTreeSet;
use std::fmt;

use api::view::{
    ConditionStatus, EndpointSlice, Membership, Node, NodeIncident, Pod, View, VolumeAttachment,
};
use api::{Kind, ObjectKey, Time};

use crate::config::START;
use crate::observe::{Fact, Instance, Observation};

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When.
    pub at: Time,
    /// Where.
    pub who: String,
    /// One word.
    pub what: &'static str,
    /// Names, phases, deadlines.
    pub detail: String,
    /// Uids and boots; empty if there are none.
    pub ids: String,
    /// True for what a short account of the run should have.
    pub is_story: bool,
}

/// Virtual time since the start of the run: `12.345`.
pub fn clock(at: Time) -> String {
    let ms = at.since(START).ms();
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

// === impl Line ===

impl Line {
    /// The line of a fact; `None` if it says nothing (a lease was renewed).
    pub fn of(fact: &Fact) -> Option<Self> {
        let (who, what, detail, ids, is_story) = match &fact.what {
            Observation::Started(instance) => of_instance(instance, "started"),
            Observation::Ended(instance) => of_instance(instance, "ended"),
            Observation::Mounted { machine, volume, .. } => {
                (machine.to_string(), "mounted", volume.to_string(), String::new(), false)
            }
            Observation::Unmounted { machine, volume } => {
                (machine.to_string(), "unmounted", volume.to_string(), String::new(), false)
            }
            Observation::PoweredOn { machine, boot } => {
                (machine.to_string(), "powered-on", String::new(), format!("boot {boot}"), true)
            }
            Observation::PoweredOff(machine) => {
                (machine.to_string(), "powered-off", String::new(), String::new(), true)
            }
            Observation::Suspended { machine, clock_runs } => {
                let clock = if *clock_runs { "its clock runs" } else { "its clock stands" };
                (machine.to_string(), "suspended", clock.to_owned(), String::new(), true)
            }
            Observation::Resumed(machine) => {
                (machine.to_string(), "resumed", String::new(), String::new(), true)
            }
            Observation::Written { key, old, new, by, .. } => {
                let (what, detail, ids, is_story) = of_write(key, old.as_ref(), new.as_ref())?;
                (by.clone(), what, detail, ids, is_story)
            }
            Observation::Elected { server, epoch } => {
                (server_name(*server), "leads", format!("epoch {epoch}"), String::new(), true)
            }
            Observation::Server { server, up } => {
                let what = if *up { "up" } else { "down" };
                (server_name(*server), what, String::new(), String::new(), true)
            }
            Observation::Evidence { uid, boot, kind } => {
                ("world".to_owned(), "evidence", format!("{kind:?}"), format!("uid {uid} boot {boot}"), true)
            }
            Observation::Noted(note) => {
                let detail = format!("{} {}: {}", note.about, note.reason, note.message);
                ("controllers".to_owned(), "note", detail, String::new(), false)
            }
            Observation::Counted(_) => return None,
            Observation::Fault(text) => ("world".to_owned(), "fault", text.clone(), String::new(), true),
        };
        Some(Self { at: fact.at, who, what, detail, ids, is_story })
    }

    /// The line without uids and boots: what a golden trace has.
    pub fn without_ids(&self) -> String {
        let mut line = format!("{:>9}  {:<28}  {:<11}  {}", clock(self.at), self.who, self.what, self.detail);
        line.truncate(line.trim_end().len());
        line
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.without_ids())?;
        if self.ids.is_empty() { Ok(()) } else { write!(f, "  ({})", self.ids) }
    }
}

/// The name of a server in traces, faults and scenario files. Counted from 0, as everywhere.
pub fn server_name(index: usize) -> String {
    format!("server-{index}")
}

type Columns = (String, &'static str, String, String, bool);

fn of_instance(instance: &Instance, what: &'static str) -> Columns {
    let ids = format!("pod {} boot {} node uid {}", instance.pod_uid, instance.boot, instance.node_uid);
    let exclusive = if instance.exclusive { " exclusive" } else { "" };
    let detail = format!("pod {}/{}{exclusive}", instance.namespace, instance.name);
    (instance.machine.to_string(), what, detail, ids, true)
}

/// What changed, as far as people want to know; `None` if nothing did.
fn of_write(
    key: &ObjectKey,
    old: Option<&View>,
    new: Option<&View>,
) -> Option<(&'static str, String, String, bool)> {
    let uid = new.or(old).map(|view| format!("uid {}", view.meta().uid)).unwrap_or_default();
    let is_told =
        matches!(key.kind, Kind::Pod | Kind::NodeIncident | Kind::Tombstone | Kind::VolumeAttachment);
    match (old, new) {
        (None, None) => None,
        (Some(_), None) => Some(("removed", key.to_string(), uid, is_told)),
        (None, Some(new)) if new.kind() == Kind::Lease => None,
        (None, Some(new)) => {
            let detail = format!("{key} {}", state(new).join(" "));
            Some(("created", detail.trim_end().to_owned(), uid, is_told))
        }
        (Some(old), Some(new)) => {
            let before: BTreeSet<String> = state(old).into_iter().collect();
            let mut changes: Vec<String> =
                state(new).into_iter().filter(|word| !before.contains(word)).collect();
            if !before.is_empty() && changes.is_empty() {
                let after: BTreeSet<String> = state(new).into_iter().collect();
                changes.extend(
                    before.iter().filter(|word| !after.contains(*word)).map(|word| format!("no {word}")),
                );
            }
            if changes.is_empty() {
                return None;
            }
            let is_story = match key.kind {
                Kind::Pod => changes
                    .iter()
                    .any(|c| c.starts_with("on ") || c.starts_with("terminating") || c == "Failed"),
                Kind::NodeIncident | Kind::Tombstone => true,
                Kind::Node => changes.iter().any(|c| c.starts_with("taint")),
                Kind::Lease
                | Kind::ReplicaSet
                | Kind::Deployment
                | Kind::StatefulSet
                | Kind::DaemonSet
                | Kind::PersistentVolume
                | Kind::PersistentVolumeClaim
                | Kind::VolumeAttachment
                | Kind::Service
                | Kind::EndpointSlice
                | Kind::Council => false,
            };
            Some(("changed", format!("{key} {}", changes.join(" ")), uid, is_story))
        }
    }
}

/// An object in a few words; a word that is new is a change.
fn state(view: &View) -> Vec<String> {
    match view {
        View::Pod(pod) => state_of_pod(pod),
        View::Node(node) => state_of_node(node),
        View::NodeIncident(incident) => state_of_incident(incident),
        View::VolumeAttachment(attachment) => state_of_attachment(attachment),
        View::EndpointSlice(slice) => vec![format!("leads to {}", ready_of(slice))],
        View::Council(council) => council.newest().map(state_of_membership).into_iter().collect(),
        View::Tombstone(tombstone) => {
            let spec = &tombstone.spec;
            vec![format!(
                "pod {}/{} on {} {}",
                spec.pod_namespace, spec.pod_name, spec.node_name, spec.reason
            )]
        }
        View::ReplicaSet(owner) => vec![format!("wishes {}", owner.spec.replicas.unwrap_or(1))],
        View::StatefulSet(owner) => vec![format!("wishes {}", owner.spec.replicas.unwrap_or(1))],
        View::Deployment(owner) => vec![format!("wishes {}", owner.spec.replicas.unwrap_or(1))],
        View::Lease(_)
        | View::DaemonSet(_)
        | View::PersistentVolume(_)
        | View::PersistentVolumeClaim(_)
        | View::Service(_) => Vec::new(),
    }
}

fn state_of_pod(pod: &Pod) -> Vec<String> {
    let mut words = vec![format!("{:?}", pod.status.phase)];
    if pod.is_bound() {
        words.push(format!("on {}", pod.spec.node_name));
    }
    words.push(if pod.is_ready() { "ready" } else { "not-ready" }.to_owned());
    if let Some(at) = pod.metadata.deletion_timestamp {
        words.push(format!("terminating until {}", clock(at)));
    }
    words
}

fn state_of_node(node: &Node) -> Vec<String> {
    let mut words = vec![match node.ready() {
        ConditionStatus::True => "Ready".to_owned(),
        ConditionStatus::False => "Ready=False".to_owned(),
        ConditionStatus::Unknown => "Ready=Unknown".to_owned(),
    }];
    words.extend(node.spec.taints.iter().map(|taint| format!("taint {}:{:?}", taint.key, taint.effect)));
    words
}

fn state_of_incident(incident: &NodeIncident) -> Vec<String> {
    let status = &incident.status;
    let mut words = vec![format!("node {} {:?}", incident.spec.node_name, status.phase)];
    words.extend(status.end.map(|end| format!("{end:?}")));
    words.extend(status.evidence.iter().map(|evidence| format!("proven by {:?}", evidence.kind)));
    words.extend(status.brakes.iter().map(|brake| format!("held by {brake:?}")));
    words
}

fn state_of_attachment(attachment: &VolumeAttachment) -> Vec<String> {
    let spec = &attachment.spec;
    let mut words = vec![format!("{} to {}", spec.source.persistent_volume_name, spec.node_name)];
    words.extend(attachment.status.attached.then(|| "attached".to_owned()));
    words.extend(attachment.metadata.is_terminating().then(|| "terminating".to_owned()));
    words
}

fn ready_of(slice: &EndpointSlice) -> String {
    let ready = slice.endpoints.iter().filter(|e| e.conditions.ready);
    let ready: Vec<&str> = ready.map(|e| e.target_ref.name.as_str()).collect();
    if ready.is_empty() { "nothing".to_owned() } else { ready.join(",") }
}

fn state_of_membership(membership: &Membership) -> String {
    let seats: Vec<&str> = membership.seats.iter().map(|seat| seat.node_name.as_str()).collect();
    format!("epoch {} seats {}", membership.epoch, seats.join(","))
}

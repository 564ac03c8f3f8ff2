//! The words behind an expectation: what holds or does not at a moment.

use std::collections::BTreeMap;

use api::view::{ConditionStatus, EvidenceKind, IncidentPhase, PodPhase};
use api::{Name, NodeName};

use super::acts::effect_of;
use super::words::{Word, Words};
use super::{Known, ParseError};
use crate::scenario::{NodeState, PodState, State, Target, VolumeState};

pub(super) fn state(words: &mut Words<'_>, known: &Known<'_>) -> Result<State, ParseError> {
    let nodes = known.nodes;
    let word = words.word("what must hold")?;
    Ok(match word.text {
        "node" => {
            let name = node(words, nodes)?;
            State::Node(name, node_state(words)?)
        }
        "pod" => {
            let pod = words.pod()?;
            State::Pod(pod, pod_state(words, nodes)?)
        }
        "two" => {
            words.exactly("running")?;
            State::Two(words.pod()?)
        }
        "pods" => {
            words.exactly("of")?;
            let owners = ["statefulset", "replicaset", "daemonset"];
            let owner = Name::from(known.workload(words, &owners)?.text);
            let (compare, number) = words.comparison()?;
            State::PodsOf(owner, compare, number)
        }
        "service" => {
            let name = Name::from(known.workload(words, &["service"])?.text);
            State::Leads(name, target(words, nodes)?)
        }
        "volume" => {
            let name = Name::from(words.word("the name of a volume")?.text);
            State::Volume(name, volume_state(words, nodes)?)
        }
        "tombstone" | "no" => {
            let there = word.text == "tombstone";
            if !there {
                words.exactly("tombstone")?;
            }
            words.exactly("of")?;
            words.exactly("pod")?;
            State::Tombstone(words.pod()?, there)
        }
        "incidents" => {
            words.exactly("open")?;
            let (compare, number) = words.comparison()?;
            State::OpenIncidents(compare, number)
        }
        "count" => count(words)?,
        "note" => note(words)?,
        "waits" => {
            let reason = words.word("a reason")?.text.to_owned();
            State::Waits(reason, words.next().map(|word| word.text.to_owned()).unwrap_or_default())
        }
        "leader" => State::Leader(known.server_by_name(words)?),
        "council" => {
            let how = words.word("`has` or `lacks`")?;
            let has = yes(words, how, "has", "lacks")?;
            State::Council(node(words, nodes)?, has)
        }
        "whole" => State::Whole,
        other => {
            let known = "node, pod, two, pods, service, volume, tombstone, no, incidents, count, note, waits, leader, \
                         council or whole";
            return Err(words.wrong(word, format!("what must hold begins with {known}, not with `{other}`")));
        }
    })
}

fn node(words: &mut Words<'_>, nodes: &BTreeMap<NodeName, bool>) -> Result<NodeName, ParseError> {
    let word = words.word("the name of a node")?;
    if nodes.contains_key(word.text) {
        return Ok(NodeName::from(word.text));
    }
    Err(words.wrong(word, format!("there is no node `{}`", word.text)))
}

/// One of two words.
fn yes(words: &Words<'_>, word: Word<'_>, yes: &str, no: &str) -> Result<bool, ParseError> {
    match word.text {
        text if text == yes => Ok(true),
        text if text == no => Ok(false),
        other => Err(words.wrong(word, format!("here should be `{yes}` or `{no}`, not `{other}`"))),
    }
}

fn node_state(words: &mut Words<'_>) -> Result<NodeState, ParseError> {
    let word = words.word("what holds of the node")?;
    Ok(match word.text {
        "exists" => NodeState::Exists(true),
        "gone" => NodeState::Exists(false),
        "powered" => NodeState::Powered(true),
        "off" => NodeState::Powered(false),
        "uid" => {
            let which = words.word("`same` or `new`")?;
            NodeState::SameUid(yes(words, which, "same", "new")?)
        }
        "condition" => {
            let (kind, status, reason) = condition(words)?;
            NodeState::Condition(kind, status, reason)
        }
        "taint" => taint(words, true)?,
        "no" => {
            let what = words.word("`taint` or `incident`")?;
            if yes(words, what, "taint", "incident")? { taint(words, false)? } else { NodeState::NoIncident }
        }
        "incident" => {
            let phase = words.word("the phase of an incident")?;
            NodeState::Incident(phase_of(phase.text).ok_or_else(|| {
                let known = "Suspect, Dead, Fencing, Fenced, Recovering or Closed";
                words.wrong(phase, format!("an incident is {known}, not `{}`", phase.text))
            })?)
        }
        "fenced" => match words.next() {
            None => NodeState::Fenced(None),
            Some(kind) => NodeState::Fenced(Some(evidence_of(kind.text).ok_or_else(|| {
                let known = "lease-expiry, power-off, new-boot, operator, node-deleted or storage";
                words.wrong(kind, format!("evidence is {known}, not `{}`", kind.text))
            })?)),
        },
        other => {
            let known = "exists, gone, powered, off, uid, condition, taint, no, incident or fenced";
            return Err(words.wrong(word, format!("of a node can hold {known}, not `{other}`")));
        }
    })
}

fn taint(words: &mut Words<'_>, there: bool) -> Result<NodeState, ParseError> {
    let word = words.word("the key of a taint")?;
    let (key, effect) = match word.text.rsplit_once(':') {
        None => (word.text, None),
        Some((key, effect)) => {
            let known = effect_of(effect);
            if known.is_none() {
                return Err(words.wrong(word, format!("there is no effect `{effect}`")));
            }
            (key, known)
        }
    };
    Ok(NodeState::Taint { key: key.to_owned(), effect, there })
}

/// `Ready=Unknown reason=NodeStatusUnknown`.
fn condition(words: &mut Words<'_>) -> Result<(String, ConditionStatus, Option<String>), ParseError> {
    let word = words.word("a condition such as Ready=Unknown")?;
    let (kind, status) = word.text.split_once('=').unwrap_or((word.text, ""));
    let status = match status {
        "True" => ConditionStatus::True,
        "False" => ConditionStatus::False,
        "Unknown" => ConditionStatus::Unknown,
        _ => {
            let text = format!(
                "a condition looks like Ready=True, Ready=False or Ready=Unknown, not like `{}`",
                word.text
            );
            return Err(words.wrong(word, text));
        }
    };
    let reason = match words.next() {
        None => None,
        Some(word) => match word.text.strip_prefix("reason=") {
            Some(reason) => Some(reason.to_owned()),
            None => return Err(words.wrong(word, format!("here can be reason=…, not `{}`", word.text))),
        },
    };
    Ok((kind.to_owned(), status, reason))
}

fn pod_state(words: &mut Words<'_>, nodes: &BTreeMap<NodeName, bool>) -> Result<PodState, ParseError> {
    let word = words.word("what holds of the pod")?;
    Ok(match word.text {
        "exists" => PodState::Exists(true),
        "gone" => PodState::Exists(false),
        "terminating" => PodState::Terminating(true),
        "ready" => PodState::Ready(true),
        "bound" => PodState::Bound(true),
        "unbound" => PodState::Bound(false),
        "on" => PodState::On(node(words, nodes)?),
        "running" => running(words, nodes, true)?,
        "not" => {
            let what = words.word("terminating, ready or running")?;
            match what.text {
                "terminating" => PodState::Terminating(false),
                "ready" => PodState::Ready(false),
                "running" => running(words, nodes, false)?,
                other => {
                    let text = format!(
                        "a pod is not terminating, not ready or not running; `{other}` is something else"
                    );
                    return Err(words.wrong(what, text));
                }
            }
        }
        "uid" => {
            let which = words.word("`same` or `new`")?;
            PodState::SameUid(yes(words, which, "same", "new")?)
        }
        "condition" => {
            let (kind, status, reason) = condition(words)?;
            PodState::Condition(kind, status, reason)
        }
        other => match other.strip_prefix("phase=").and_then(pod_phase_of) {
            Some(phase) => PodState::Phase(phase),
            None => {
                let known = "exists, gone, terminating, ready, bound, unbound, on, running, not, uid, condition or phase=…";
                return Err(words.wrong(word, format!("of a pod can hold {known}, not `{other}`")));
            }
        },
    })
}

fn running(
    words: &mut Words<'_>,
    nodes: &BTreeMap<NodeName, bool>,
    is: bool,
) -> Result<PodState, ParseError> {
    let place = if words.maybe("on") { Some(node(words, nodes)?) } else { None };
    Ok(PodState::Running(place, is))
}

/// `leads to 3`, `leads to <= 3`, `leads to node n1`, `avoids node n1`.
fn target(words: &mut Words<'_>, nodes: &BTreeMap<NodeName, bool>) -> Result<Target, ParseError> {
    let word = words.word("`leads` or `avoids`")?;
    let leads = yes(words, word, "leads", "avoids")?;
    if leads {
        words.exactly("to")?;
        if !words.maybe("node") {
            let (compare, number) = words.comparison()?;
            return Ok(Target::Number(compare, number));
        }
    } else {
        words.exactly("node")?;
    }
    Ok(Target::Node(node(words, nodes)?, leads))
}

fn volume_state(words: &mut Words<'_>, nodes: &BTreeMap<NodeName, bool>) -> Result<VolumeState, ParseError> {
    let is = !words.maybe("not");
    let word = words.word("`attached` or `mounted`")?;
    if yes(words, word, "attached", "mounted")? {
        words.exactly("to")?;
        Ok(VolumeState::Attached(node(words, nodes)?, is))
    } else {
        words.exactly("on")?;
        Ok(VolumeState::Mounted(node(words, nodes)?, is))
    }
}

/// `count METRIC label=value … = 1`.
fn count(words: &mut Words<'_>) -> Result<State, ParseError> {
    let metric = words.word("the name of a metric")?.text.to_owned();
    let mut labels = Vec::new();
    while let Some((label, value)) = words.peek().and_then(|word| word.split_once('=')) {
        if label.is_empty() || label == "<" || label == ">" {
            break;
        }
        labels.push((label.to_owned(), value.to_owned()));
        words.next();
    }
    let (compare, number) = words.comparison()?;
    Ok(State::Count { metric, labels, compare, number })
}

/// `note pod db-0 REASON "text"`.
fn note(words: &mut Words<'_>) -> Result<State, ParseError> {
    let kind = words.word("`pod` or `node`")?;
    let about = if yes(words, kind, "pod", "node")? {
        let pod = words.pod()?;
        format!("pod/{}/{}", pod.namespace, pod.name)
    } else {
        format!("node/{}", words.word("the name of a node")?.text)
    };
    let reason = words.word("a reason")?.text.to_owned();
    let text = words.next().map(|word| word.text.to_owned()).unwrap_or_default();
    Ok(State::Note { about, reason, text })
}

fn phase_of(text: &str) -> Option<IncidentPhase> {
    use IncidentPhase::{Closed, Dead, Fenced, Fencing, Recovering, Suspect};
    [Suspect, Dead, Fencing, Fenced, Recovering, Closed]
        .into_iter()
        .find(|phase| format!("{phase:?}") == text)
}

fn pod_phase_of(text: &str) -> Option<PodPhase> {
    use PodPhase::{Failed, Pending, Running, Succeeded, Unknown};
    [Pending, Running, Succeeded, Failed, Unknown].into_iter().find(|phase| format!("{phase:?}") == text)
}

fn evidence_of(text: &str) -> Option<EvidenceKind> {
    match text {
        "lease-expiry" => Some(EvidenceKind::LeaseExpiry),
        "power-off" => Some(EvidenceKind::PowerOff),
        "new-boot" => Some(EvidenceKind::NewBoot),
        "operator" => Some(EvidenceKind::Operator),
        "node-deleted" => Some(EvidenceKind::NodeDeleted),
        "storage" => Some(EvidenceKind::Storage),
        _ => None,
    }
}

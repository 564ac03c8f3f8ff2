//! Decisions as lines.
//!
//! One line per action, in order; then when to be woken, counted from now; then why. Expectations that every action
//! of its sort has (revision of what is edited, uid of what is deleted) are not shown; the others are, behind `if`.

use std::fmt::Write as _;

use api::Time;
use api::edit::{Edit, TaintName};
use api::taint::Taint;
use api::view::Condition;

use crate::decision::{Action, Decision, Expect, Pace, Verb};

/// A decision as text.
pub(crate) fn show(decision: &Decision, now: Time) -> String {
    let mut out = String::new();
    for action in &decision.actions {
        let _ = writeln!(out, "{}{}", act(action), riders(action));
    }
    if let Some(at) = decision.wake {
        // A deadline in the past is decided again at once, for ever: worth seeing.
        let _ = if at >= now {
            writeln!(out, "wake +{}", at.since(now))
        } else {
            writeln!(out, "wake -{}", now.since(at))
        };
    }
    if let Some(why) = &decision.why {
        let _ = writeln!(out, "why {} {}: {}", why.about, why.reason, why.message);
    }
    if out.is_empty() {
        out.push_str("rest\n");
    }
    out
}

/// An action as text, without what it expects.
pub(crate) fn act(action: &Action) -> String {
    let Verb::Edit(key, edit) = &action.verb else { return action.to_string() };
    let Some(text) = prose(edit) else { return action.to_string() };
    let mut out = format!("edit {key}: {text}");
    for count in &action.counts {
        let labels: Vec<String> = count.labels.iter().map(|(k, v)| format!(" {k}={v}")).collect();
        let _ = write!(out, " [{}{}]", count.metric, labels.concat());
    }
    out
}

/// The edits whose debug form is hard to read.
fn prose(edit: &Edit) -> Option<String> {
    let list = |parts: Vec<String>| parts.join(", ");
    if let Edit::NodeConditions(conditions) | Edit::PodConditions(conditions) = edit {
        return Some(list(conditions.iter().map(condition).collect()));
    }
    if let Edit::Taints { add, remove } = edit {
        let added = add.iter().map(|t| format!("+{}", taint(t)));
        let removed = remove.iter().map(|TaintName { key, effect }| format!("-{key}:{effect:?}"));
        return Some(list(added.chain(removed).collect()));
    }
    if let Edit::FailPod { reason, message, condition: added } = edit {
        let said = format!("Failed {reason} {message}");
        let added = added.as_ref().map(|c| format!(" with {}", condition(c))).unwrap_or_default();
        return Some(format!("{}{added}", said.trim_end()));
    }
    None
}

fn condition(c: &Condition) -> String {
    let mut out = format!("{}={:?}", c.kind, c.status);
    for part in [&c.reason, &c.message] {
        if !part.is_empty() {
            let _ = write!(out, " {part}");
        }
    }
    if c.last_transition_time != Time::ZERO {
        let _ = write!(out, " {:?}", c.last_transition_time);
    }
    out
}

fn taint(t: &Taint) -> String {
    let value = if t.value.is_empty() { String::new() } else { format!("={}", t.value) };
    let since = t.time_added.map(|at| format!("{at:?}")).unwrap_or_default();
    format!("{}{value}:{:?}{since}", t.key, t.effect)
}

/// What an action expects beyond the usual, and its pace.
fn riders(action: &Action) -> String {
    let own = |key: &api::ObjectKey| match &action.verb {
        Verb::Edit(k, _) | Verb::Delete(k, _) => k == key,
        Verb::Create(new) => new.key() == *key,
        Verb::Note(_) => false,
    };
    let mut out = String::new();
    for expect in &action.expect {
        let _ = match expect {
            Expect::At(key, _) | Expect::Uid(key, _) | Expect::Absent(key) if own(key) => Ok(()),
            Expect::At(key, rev) => write!(out, " if {key} at {rev}"),
            Expect::Uid(key, uid) => write!(out, " if {key} is {uid}"),
            Expect::Absent(key) => write!(out, " if {key} is absent"),
            Expect::Fresh(key, rev) => write!(out, " if {key} still at {rev}"),
            Expect::Gone(key) => write!(out, " if {key} is gone"),
        };
    }
    if let Some(Pace::Evict(zone)) = &action.pace {
        let _ = write!(out, " paced by zone {zone}");
    }
    out
}

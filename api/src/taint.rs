//! Taints and tolerations.
//!
//! Responsible for: which toleration matches which taint (TE-04) and for how long a pod stays (TE-05, TE-06).
//! Leaves to `control`: when the time starts to count.

use serde::{Deserialize, Serialize};

use crate::time::{Duration, Time};

/// What a taint does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TaintEffect {
    /// No new pods.
    NoSchedule,
    /// Rather no new pods.
    PreferNoSchedule,
    /// No new pods, and those that are leave.
    NoExecute,
}

/// `v1.Taint`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// What is wrong.
    pub key: String,
    /// More about it; often empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// What follows.
    pub effect: TaintEffect,
    /// Since when. The registry stamps it where it is missing, so that eviction deadlines survive a restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_added: Option<Time>,
}

/// `v1.Toleration`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Toleration {
    /// Key of the taint; empty (with `Exists`) means all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// How the value is compared.
    pub operator: TolerationOperator,
    /// Value of the taint, for `Equal`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// Effect of the taint; `None` means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<TaintEffect>,
    /// For how long a NoExecute taint is lived with; `None` means for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

/// How a toleration compares values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TolerationOperator {
    /// The values are equal.
    #[default]
    Equal,
    /// The value does not matter.
    Exists,
}

/// How long a pod may stay on a node with NoExecute taints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stay {
    /// For ever: every taint is tolerated without limit, or there is none.
    Forever,
    /// This long from the start of the count; zero where a taint is not tolerated at all.
    For(Duration),
}

// === impl Taint ===

impl Taint {
    /// A taint without value, to be stamped by the registry.
    pub fn new(key: &str, effect: TaintEffect) -> Self {
        Self { key: key.to_owned(), value: String::new(), effect, time_added: None }
    }

    /// The same taint since `at`.
    #[must_use]
    pub fn since(mut self, at: Time) -> Self {
        self.time_added = Some(at);
        self
    }

    /// The same taint with a value.
    #[must_use]
    pub fn with_value(mut self, value: &str) -> Self {
        value.clone_into(&mut self.value);
        self
    }

    /// True if both would be the same entry of a node: a node has at most one taint per key and effect.
    pub fn is_same_entry(&self, other: &Self) -> bool {
        self.key == other.key && self.effect == other.effect
    }
}

// === impl Toleration ===

impl Toleration {
    /// Tolerates `key` with `effect`, whatever the value, for `secs` or for ever.
    pub fn exists(key: &str, effect: Option<TaintEffect>, secs: Option<i64>) -> Self {
        Self {
            key: key.to_owned(),
            operator: TolerationOperator::Exists,
            value: String::new(),
            effect,
            toleration_seconds: secs,
        }
    }

    /// TE-04.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        let effect = self.effect.is_none_or(|e| e == taint.effect);
        let key = self.key.is_empty() || self.key == taint.key;
        let value = match self.operator {
            TolerationOperator::Exists => true,
            // An empty key needs Exists; with Equal it matches nothing.
            TolerationOperator::Equal => !self.key.is_empty() && self.value == taint.value,
        };
        effect && key && value
    }
}

/// The first taint of `taints` with one of `effects` that no toleration matches.
pub fn first_untolerated<'t>(
    taints: &'t [Taint],
    tolerations: &[Toleration],
    effects: &[TaintEffect],
) -> Option<&'t Taint> {
    taints
        .iter()
        .filter(|t| effects.contains(&t.effect))
        .find(|t| !tolerations.iter().any(|o| o.tolerates(t)))
}

/// TE-05, TE-06: how long a pod with `tolerations` stays under the NoExecute taints among `taints`.
pub fn stay(taints: &[Taint], tolerations: &[Toleration]) -> Stay {
    if first_untolerated(taints, tolerations, &[TaintEffect::NoExecute]).is_some() {
        return Stay::For(Duration::ZERO);
    }
    let no_execute = || taints.iter().filter(|t| t.effect == TaintEffect::NoExecute);
    let used = tolerations.iter().filter(|o| no_execute().any(|t| o.tolerates(t)));
    let shortest = used.filter_map(|o| o.toleration_seconds).min();
    match shortest {
        None => Stay::Forever,
        Some(secs) => Stay::For(Duration::from_secs(u64::try_from(secs).unwrap_or(0))),
    }
}

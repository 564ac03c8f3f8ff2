//! Reads a scenario file.
//!
//! Responsible for: text to [`Scenario`], and one clear sentence with line and column where that is not possible.
//! Leaves to [`states`] the words behind an expectation, to [`acts`] those behind `at`, to [`template`] those about pods
//! of a workload.

mod acts;
mod states;
mod template;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use api::flaw::Flaw;
use api::timing::profile::Profile;
use api::{Duration, NodeName};

use super::{Deed, Expectation, Mutation, Scenario, When};
use crate::config::{Config, NodeConfig, Template, Workload};
use crate::oracle::Promise;
use words::Words;

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// What is wrong.
    pub text: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.text)
    }
}

impl std::error::Error for ParseError {}

/// A scenario runs for this long after its last line, unless it says when it ends.
const TAIL: Duration = Duration::from_secs(5);

/// Reads a scenario from the text of a file.
///
/// # Errors
/// The first thing that cannot be understood.
pub fn parse(text: &str) -> Result<Scenario, ParseError> {
    let mut draft = Draft::new();
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if let Some(comment) = trimmed.strip_prefix('#') {
            if draft.title.is_empty() {
                comment.trim().clone_into(&mut draft.title);
            }
            continue;
        }
        if !trimmed.is_empty() {
            draft.line(&mut Words::new(line, index + 1)?, trimmed)?;
        }
    }
    draft.finish(text.lines().count())
}

struct Draft {
    title: String,
    config: Config,
    seed: u64,
    promises: BTreeSet<Promise>,
    mutations: Vec<Mutation>,
    /// Nodes and names for nodes: true for a node, false for a name.
    nodes: BTreeMap<NodeName, bool>,
    deeds: Vec<Deed>,
    expectations: Vec<Expectation>,
    end: Option<Duration>,
}

// === impl Draft ===

impl Draft {
    fn new() -> Self {
        let mut config = Config::small(api::timing::Timing::default(), 1, 0);
        config.workloads.clear();
        Self {
            title: String::new(),
            config,
            seed: 1,
            promises: BTreeSet::new(),
            mutations: Vec::new(),
            nodes: BTreeMap::new(),
            deeds: Vec::new(),
            expectations: Vec::new(),
            end: None,
        }
    }

    fn line(&mut self, words: &mut Words<'_>, text: &str) -> Result<(), ParseError> {
        let first = words.word("an act, an expectation or a setting")?;
        match first.text {
            "at" => return self.deed(words),
            "by" | "not" | "always" | "never" | "seen" => {
                let when = self.when(first.text, words)?;
                let state = states::state(words, &self.nodes)?;
                words.end()?;
                self.expectations.push(Expectation {
                    line: words.line(),
                    when,
                    state,
                    text: text.to_owned(),
                });
                return Ok(());
            }
            "profile" => {
                let name = words.word("the name of a profile")?;
                let profile = Profile::named(name.text).map_err(|e| words.wrong(name, e.to_string()))?;
                self.config.timing = profile.timing;
            }
            "set" => {
                let name = words.word("the name of a timing value")?;
                let value = words.word("its value")?;
                let set = self.config.timing.set(name.text, value.text);
                set.map_err(|e| words.wrong(value, e.to_string()))?;
            }
            "servers" => {
                let at = words.peek_column();
                self.config.servers = words.number("1 or 3")?;
                if ![1, 3].contains(&self.config.servers) {
                    return Err(words.wrong_at(at, "there can be 1 server or 3".to_owned()));
                }
            }
            "nodes" => self.nodes(words)?,
            "workload" => self.workload(words)?,
            "seed" => self.seed = words.number("a seed")? as u64,
            "drift" => self.config.drift_ppm = words.ppm()?,
            "delay" => self.config.delay = words.range()?,
            "promise" => self.promise(words)?,
            "mutation" => self.mutation(words)?,
            "end" => self.end = Some(words.time()?),
            _ => {
                let known = "at, by, not, always, never, seen, profile, set, servers, nodes, workload, seed, drift, \
                             delay, promise, mutation or end";
                return Err(
                    words.wrong(first, format!("a line begins with {known}, not with `{}`", first.text))
                );
            }
        }
        words.end()
    }

    fn deed(&mut self, words: &mut Words<'_>) -> Result<(), ParseError> {
        let column = words.peek_column();
        let at = words.time()?;
        if self.deeds.last().is_some_and(|last| last.at > at) {
            return Err(words.wrong_at(column, "acts stand in the order of their times".to_owned()));
        }
        let what = acts::act(words, &self.nodes, self.config.servers)?;
        words.end()?;
        if let super::What::Call(name, _) = &what {
            self.nodes.entry(name.clone()).or_insert(false);
        }
        self.deeds.push(Deed { line: words.line(), at, what });
        Ok(())
    }

    fn when(&self, first: &str, words: &mut Words<'_>) -> Result<When, ParseError> {
        let to_the_end =
            |range: Option<(Duration, Duration)>| range.unwrap_or((Duration::ZERO, Duration::MAX));
        Ok(match first {
            "by" => When::By(words.time()?),
            "not" => {
                words.exactly("before")?;
                When::NotBefore(words.time()?)
            }
            "always" => {
                let (from, until) = to_the_end(words.maybe_range()?);
                When::Always(from, until)
            }
            "never" => {
                let (from, until) = to_the_end(words.maybe_range()?);
                When::Never(from, until)
            }
            _ => {
                let (from, until) = to_the_end(words.maybe_range()?);
                When::Seen(from, until)
            }
        })
    }

    fn nodes(&mut self, words: &mut Words<'_>) -> Result<(), ParseError> {
        let mut names = vec![words.word("the name of a node")?];
        let mut zone = "a";
        while let Some(word) = words.next() {
            match word.text.strip_prefix("zone=") {
                Some(name) if !name.is_empty() => {
                    zone = name;
                    break;
                }
                _ => names.push(word),
            }
        }
        for word in names {
            let name = NodeName::from(word.text);
            if self.nodes.insert(name.clone(), true).is_some() {
                return Err(words.wrong(word, format!("there is a node `{}` already", word.text)));
            }
            self.config.nodes.push(NodeConfig { name, zone: zone.to_owned() });
        }
        Ok(())
    }

    fn workload(&mut self, words: &mut Words<'_>) -> Result<(), ParseError> {
        let kind = words.word("statefulset, replicaset, daemonset, pod or service")?;
        let name = words.word("a name")?.text.to_owned();
        let workload = match kind.text {
            "statefulset" => {
                let replicas = words.replicas()?;
                Workload::StatefulSet { name: name.clone(), replicas, volume: words.maybe("volume") }
            }
            "replicaset" => Workload::ReplicaSet { name: name.clone(), replicas: words.replicas()? },
            "daemonset" => Workload::DaemonSet { name: name.clone() },
            "pod" => Workload::Pod { name: name.clone() },
            "service" => {
                self.config.workloads.push(Workload::Service { name });
                return Ok(());
            }
            other => return Err(words.wrong(kind, format!("there is no kind of workload `{other}`"))),
        };
        let column = words.peek_column();
        let template = template::template(words)?;
        if template != Template::default() && self.config.templates.insert(name.clone(), template).is_some() {
            return Err(words.wrong_at(column, format!("pods of `{name}` were described already")));
        }
        self.config.workloads.push(workload);
        Ok(())
    }

    fn promise(&mut self, words: &mut Words<'_>) -> Result<(), ParseError> {
        let word = words.word("a promise")?;
        let promise = match word.text {
            "nothing-withdrawn" => Promise::NothingWithdrawn,
            "nothing-stops" => Promise::NothingStops,
            "nothing-moves" => Promise::NothingMoves,
            "fails-over" => Promise::FailsOver,
            "whole" => Promise::Whole,
            other => {
                let known = "nothing-withdrawn, nothing-stops, nothing-moves, fails-over or whole";
                return Err(words.wrong(word, format!("a promise is {known}, not `{other}`")));
            }
        };
        self.promises.insert(promise);
        Ok(())
    }

    fn mutation(&mut self, words: &mut Words<'_>) -> Result<(), ParseError> {
        let word = words.word("the name of a mutation")?;
        let Some(flaw) = Flaw::named(word.text) else {
            return Err(words.wrong(word, format!("there is no mutation `{}`", word.text)));
        };
        words.exactly("must")?;
        words.exactly("fail")?;
        let mut seeds = 1;
        if words.maybe("within") {
            seeds = words.number("a number of seeds")? as u64;
            words.exactly("seeds")?;
        }
        self.mutations.push(Mutation { flaw, seeds });
        Ok(())
    }

    fn finish(mut self, lines: usize) -> Result<Scenario, ParseError> {
        if self.config.nodes.is_empty() {
            let text = "the scenario names no nodes".to_owned();
            return Err(ParseError { line: lines.max(1), column: 1, text });
        }
        let last_deed = self.deeds.last().map_or(Duration::ZERO, |deed| deed.at);
        let last = self.expectations.iter().map(|e| e.when.last()).max().unwrap_or_default().max(last_deed);
        let end = self.end.unwrap_or(last + TAIL);
        if let Some(late) = self.expectations.iter().find(|e| e.when.last() > end) {
            let text = format!("this is expected after the end of the scenario at {end}");
            return Err(ParseError { line: late.line, column: 1, text });
        }
        // A range without an end goes to the end.
        for expectation in &mut self.expectations {
            expectation.when = expectation.when.until(end);
        }
        Ok(Scenario {
            title: self.title,
            config: self.config,
            seed: self.seed,
            promises: self.promises,
            mutations: self.mutations,
            deeds: self.deeds,
            expectations: self.expectations,
            end,
        })
    }
}

// === impl When ===

impl When {
    /// The last moment that it speaks of; zero if it goes to the end.
    fn last(self) -> Duration {
        let (Self::By(until)
        | Self::NotBefore(until)
        | Self::Always(_, until)
        | Self::Never(_, until)
        | Self::Seen(_, until)) = self;
        if until == Duration::MAX { Duration::ZERO } else { until }
    }

    fn until(self, end: Duration) -> Self {
        match self {
            Self::Always(from, until) => Self::Always(from, until.min(end)),
            Self::Never(from, until) => Self::Never(from, until.min(end)),
            Self::Seen(from, until) => Self::Seen(from, until.min(end)),
            Self::By(_) | Self::NotBefore(_) => self,
        }
    }
}

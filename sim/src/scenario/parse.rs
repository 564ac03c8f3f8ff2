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
use api::timing::SetError;
use api::timing::profile::Profile;
use api::{Duration, NodeName};

use super::{Deed, Expectation, Mutation, Scenario, When};
use crate::config::{Config, NodeConfig, Template, Workload};
use crate::oracle::Promise;
use words::{Word, Words};

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

/// More nodes than this show nothing that these do not.
const NODES_MAX: usize = 5000;
/// A mutation that needs more seeds than this is not caught by the story.
const MUTATION_SEEDS_MAX: u64 = 2000;
/// A scenario runs for this long after its last line, unless it says when it ends.
const TAIL: Duration = Duration::from_secs(5);

/// Reads a scenario from the text of a file.
///
/// # Errors
/// The first thing that cannot be understood.
pub fn parse(text: &str) -> Result<Scenario, ParseError> {
    // Some editors begin a file with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
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

/// What a line may refer to: what earlier lines have named.
struct Known<'d> {
    /// Nodes and names for nodes: true for a node, false for a name.
    nodes: &'d BTreeMap<NodeName, bool>,
    /// Workloads by kind and name.
    workloads: &'d BTreeSet<(String, String)>,
    servers: usize,
}

struct Draft {
    title: String,
    config: Config,
    seed: u64,
    promises: BTreeSet<Promise>,
    mutations: Vec<Mutation>,
    /// Nodes and names for nodes: true for a node, false for a name.
    nodes: BTreeMap<NodeName, bool>,
    /// Workloads by kind and name.
    workloads: BTreeSet<(String, String)>,
    /// Settings that were made and cannot be made again.
    made: BTreeSet<String>,
    deeds: Vec<Deed>,
    expectations: Vec<Expectation>,
    end: Option<Duration>,
}

// === impl Known ===

impl Known<'_> {
    /// The next word, which names a workload of one of these kinds.
    fn workload<'l>(&self, words: &mut Words<'l>, kinds: &[&str]) -> Result<Word<'l>, ParseError> {
        let word = words.word("the name of a workload")?;
        if kinds.iter().any(|kind| self.workloads.contains(&((*kind).to_owned(), word.text.to_owned()))) {
            return Ok(word);
        }
        Err(words.wrong(word, format!("there is no {} `{}`", kinds.join(" or "), word.text)))
    }
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
            workloads: BTreeSet::new(),
            made: BTreeSet::new(),
            deeds: Vec::new(),
            expectations: Vec::new(),
            end: None,
        }
    }

    fn line(&mut self, words: &mut Words<'_>, text: &str) -> Result<(), ParseError> {
        let first = words.word("an act, an expectation or a setting")?;
        self.place(first, words)?;
        match first.text {
            "at" => return self.deed(words),
            "by" | "not" | "always" | "never" | "seen" => {
                let when = self.when(first.text, words)?;
                let state = states::state(words, &self.known())?;
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
                self.once(name, &format!("set {}", name.text), words)?;
                let set = self.config.timing.set(name.text, value.text);
                set.map_err(|e| {
                    let about = if matches!(e, SetError::Unknown(_)) { name } else { value };
                    words.wrong(about, e.to_string())
                })?;
                // Unlawful times are welcome here, but time must go on.
                if self.config.timing.asking == Duration::ZERO {
                    let text = "asking cannot be zero: who asks again at once asks for ever".to_owned();
                    return Err(words.wrong(value, text));
                }
            }
            "servers" => {
                let at = words.peek_column();
                self.config.servers = match words.number("1 or 3")? {
                    1 => 1,
                    3 => 3,
                    _ => return Err(words.wrong_at(at, "there can be 1 server or 3".to_owned())),
                };
            }
            "nodes" => self.nodes(words)?,
            "workload" => self.workload(words)?,
            "seed" => self.seed = words.number("a seed")?,
            "drift" => self.config.drift_ppm = words.ppm()?,
            "delay" => {
                let at = words.peek_column();
                self.config.delay = words.range()?;
                if self.config.delay.1 == Duration::MAX {
                    return Err(words.wrong_at(at, "a delay has an upper end".to_owned()));
                }
            }
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

    /// What a line may refer to.
    fn known(&self) -> Known<'_> {
        Known { nodes: &self.nodes, workloads: &self.workloads, servers: self.config.servers }
    }

    /// Whether a line may stand here: later lines must not change what earlier ones meant.
    fn place(&mut self, first: Word<'_>, words: &Words<'_>) -> Result<(), ParseError> {
        let is_story = !self.deeds.is_empty() || !self.expectations.is_empty();
        match first.text {
            "servers" | "nodes" | "workload" if is_story => {
                let text = format!("`{}` stands before all acts and expectations", first.text);
                return Err(words.wrong(first, text));
            }
            "profile" if self.made.iter().any(|made| made.starts_with("set ")) => {
                return Err(words.wrong(first, "`profile` stands before every `set`".to_owned()));
            }
            _ => {}
        }
        match first.text {
            "profile" | "servers" | "seed" | "drift" | "delay" | "end" => self.once(first, first.text, words),
            _ => Ok(()),
        }
    }

    fn once(&mut self, word: Word<'_>, what: &str, words: &Words<'_>) -> Result<(), ParseError> {
        if self.made.insert(what.to_owned()) {
            return Ok(());
        }
        Err(words.wrong(word, format!("`{what}` stands here for the second time")))
    }

    fn deed(&mut self, words: &mut Words<'_>) -> Result<(), ParseError> {
        let column = words.peek_column();
        let at = words.time()?;
        if self.deeds.last().is_some_and(|last| last.at > at) {
            return Err(words.wrong_at(column, "acts stand in the order of their times".to_owned()));
        }
        let what = acts::act(words, &self.known())?;
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
                Some(name) => {
                    words.is_name(word, name)?;
                    zone = name;
                    break;
                }
                None => names.push(word),
            }
        }
        for word in names {
            words.is_name(word, word.text)?;
            acts::not_taken(words, word)?;
            if self.config.nodes.len() == NODES_MAX {
                return Err(words.wrong(word, format!("there can be {NODES_MAX} nodes at most")));
            }
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
        let named = words.name("a name")?;
        let name = named.text.to_owned();
        if !self.workloads.insert((kind.text.to_owned(), name.clone())) {
            return Err(words.wrong(named, format!("there is a {} `{name}` already", kind.text)));
        }
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
            seeds = words.number_in("a number of seeds", 1, MUTATION_SEEDS_MAX)?;
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
        if let Some(late) = self.deeds.iter().find(|deed| deed.at > end) {
            let text = format!("this is done after the end of the scenario at {end}");
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
    /// The last moment that it names.
    fn last(self) -> Duration {
        match self {
            Self::By(at) | Self::NotBefore(at) => at,
            Self::Always(from, until) | Self::Never(from, until) | Self::Seen(from, until) => {
                if until == Duration::MAX { from } else { until }
            }
        }
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

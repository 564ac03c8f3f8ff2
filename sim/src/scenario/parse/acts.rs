//! The words behind `at TIME`: one for each fault.

use api::taint::{Taint, TaintEffect};
use api::{Duration, Name, Namespace, NodeName};

use super::words::{COPIES_MAX, Word, Words, digits};
use super::{Known, ParseError};
use crate::config::NAMESPACE;
use crate::fault::{Fault, Party};
use crate::scenario::{FOLLOWERS, LEADER, What, Who};

/// How a list of parties is named.
const PARTIES: &str = "a node, server-N, leader, followers, servers, nodes or store";

pub(super) fn act(words: &mut Words<'_>, cast: &Known<'_>) -> Result<What, ParseError> {
    let verb = words.word("an act")?;
    let faults = match verb.text {
        "calm" => return Ok(What::Calm),
        "call" => {
            let word = words.name("a name")?;
            not_taken(words, word)?;
            let name = NodeName::from(word.text);
            if cast.nodes.get(&name) == Some(&true) {
                return Err(words.wrong(word, format!("there is a node `{name}` already")));
            }
            words.exactly("=")?;
            return Ok(What::Call(name, cast.who(words)?));
        }
        "power-off" => cast.each_node(words, Fault::PowerOff)?,
        "power-on" => cast.each_node(words, Fault::PowerOn)?,
        "resume" => cast.resume(words)?,
        "suspend" => {
            let node = cast.node(words)?;
            vec![Fault::Suspend { node, clock_runs: clock(words)? }]
        }
        "pause" => {
            let server = cast.server(words)?;
            vec![Fault::PauseServer { server, clock_runs: clock(words)? }]
        }
        "reboot" => vec![Fault::Reboot(cast.node(words)?, span(words)?)],
        "announced-reboot" => vec![Fault::AnnouncedReboot(cast.node(words)?, span(words)?)],
        "kill-agent" => vec![Fault::KillAgent(cast.node(words)?, span(words)?)],
        "kill-guard" => vec![Fault::KillGuard(cast.node(words)?, span(words)?)],
        "cut" => cast.link(words, Fault::Cut)?,
        "heal" if words.maybe("all") => vec![Fault::HealAll],
        "heal" => cast.link(words, Fault::Heal)?,
        "loss" => vec![Fault::Loss(words.share()?)],
        "lose-answers" => vec![Fault::LoseAnswers(words.share()?)],
        "delay" => vec![Fault::Delay(words.time()?)],
        "crash" => cast.each_server(words, Fault::CrashServer)?,
        "start" => cast.each_server(words, Fault::StartServer)?,
        "stale" => vec![Fault::StaleView(cast.server(words)?, words.time()?)],
        _ => cast.human(verb, words)?,
    };
    Ok(What::Faults(faults))
}

/// A node must not be called by a word that means something else where nodes are named.
pub(super) fn not_taken(words: &Words<'_>, word: Word<'_>) -> Result<(), ParseError> {
    let is_taken = ["leader", "followers", "servers", "nodes", "store", "all"].contains(&word.text);
    if is_taken || word.text.starts_with("server-") {
        return Err(
            words.wrong(word, format!("`{}` means something else: call the node otherwise", word.text))
        );
    }
    Ok(())
}

fn no_server(words: &Words<'_>, word: Word<'_>) -> ParseError {
    words.wrong(word, format!("there is no server `{}`: the first is server-0", word.text))
}

/// `clock runs` or `clock stands`.
fn clock(words: &mut Words<'_>) -> Result<bool, ParseError> {
    words.exactly("clock")?;
    let word = words.word("`runs` or `stands`")?;
    match word.text {
        "runs" => Ok(true),
        "stands" => Ok(false),
        other => Err(words.wrong(word, format!("a clock `runs` or `stands`, not `{other}`"))),
    }
}

/// `for 3s`.
fn span(words: &mut Words<'_>) -> Result<Duration, ParseError> {
    words.exactly("for")?;
    words.time()
}

// === impl Known ===

impl Known<'_> {
    /// What a human does.
    fn human(&self, verb: Word<'_>, words: &mut Words<'_>) -> Result<Vec<Fault>, ParseError> {
        Ok(vec![match verb.text {
            "force-delete" => {
                words.exactly("pod")?;
                let pod = words.pod()?;
                Fault::ForceDelete(pod.namespace, pod.name)
            }
            "delete" if words.maybe("pod") => {
                let pod = words.pod()?;
                Fault::DeletePod(pod.namespace, pod.name)
            }
            "delete" => {
                words.exactly("node")?;
                Fault::DeleteNode(self.node(words)?)
            }
            "drop-finalizers" => {
                words.exactly("pod")?;
                let pod = words.pod()?;
                Fault::DropFinalizers(pod.namespace, pod.name)
            }
            "taint" => Fault::Taint(self.node(words)?, taint(words)?),
            "untaint" => Fault::Untaint(self.node(words)?, words.word("the key of a taint")?.text.to_owned()),
            "scale" => {
                let name = Name::from(self.workload(words, &["statefulset", "replicaset"])?.text);
                let count = words.number_in("a number of pods", 0, u64::from(COPIES_MAX))?;
                Fault::Scale(Namespace::from(NAMESPACE), name, u32::try_from(count).unwrap_or(COPIES_MAX))
            }
            other => return Err(words.wrong(verb, format!("there is no act `{other}`"))),
        }])
    }

    /// `host of db-0` or `not n1,n2`.
    fn who(&self, words: &mut Words<'_>) -> Result<Who, ParseError> {
        if words.maybe("host") {
            words.exactly("of")?;
            return Ok(Who::HostOf(words.pod()?));
        }
        words.exactly("not")?;
        let word = words.word("nodes with commas between them")?;
        let names: Vec<NodeName> = word.text.split(',').map(NodeName::from).collect();
        match names.iter().find(|name| !self.nodes.contains_key(*name)) {
            Some(name) => Err(words.wrong(word, format!("there is no node `{name}`"))),
            None => Ok(Who::Not(names)),
        }
    }

    fn node(&self, words: &mut Words<'_>) -> Result<NodeName, ParseError> {
        let word = words.word("the name of a node")?;
        let name = NodeName::from(word.text);
        if self.nodes.contains_key(&name) {
            return Ok(name);
        }
        Err(words.wrong(word, format!("there is no node `{}`", word.text)))
    }

    /// Every node, not counting names that were given to one.
    fn machines(&self) -> impl Iterator<Item = NodeName> {
        self.nodes.iter().filter(|(_, is_node)| **is_node).map(|(name, _)| name.clone())
    }

    fn server(&self, words: &mut Words<'_>) -> Result<usize, ParseError> {
        let word = words.word("server-N")?;
        self.server_named(word.text).ok_or_else(|| no_server(words, word))
    }

    /// The next word, which must be `server-N`.
    pub(super) fn server_by_name(&self, words: &mut Words<'_>) -> Result<usize, ParseError> {
        let word = words.word("server-N")?;
        self.index_of(word.text).ok_or_else(|| no_server(words, word))
    }

    fn server_named(&self, text: &str) -> Option<usize> {
        match text {
            "leader" => Some(LEADER),
            "followers" => Some(FOLLOWERS),
            _ => self.index_of(text),
        }
    }

    fn index_of(&self, text: &str) -> Option<usize> {
        let index: usize = digits(text.strip_prefix("server-")?)?.parse().ok()?;
        (index < self.servers).then_some(index)
    }

    /// One node or more, or all.
    fn each_node(
        &self,
        words: &mut Words<'_>,
        fault: fn(NodeName) -> Fault,
    ) -> Result<Vec<Fault>, ParseError> {
        if words.maybe("nodes") {
            return Ok(self.machines().map(fault).collect());
        }
        let mut faults = vec![fault(self.node(words)?)];
        while words.peek().is_some() {
            faults.push(fault(self.node(words)?));
        }
        Ok(faults)
    }

    fn each_server(
        &self,
        words: &mut Words<'_>,
        fault: fn(usize) -> Fault,
    ) -> Result<Vec<Fault>, ParseError> {
        if words.maybe("servers") {
            return Ok((0..self.servers).map(fault).collect());
        }
        Ok(vec![fault(self.server(words)?)])
    }

    fn resume(&self, words: &mut Words<'_>) -> Result<Vec<Fault>, ParseError> {
        let server = words.peek().and_then(|word| self.server_named(word));
        if let Some(server) = server {
            words.next();
            return Ok(vec![Fault::ResumeServer(server)]);
        }
        if words.maybe("servers") {
            return Ok((0..self.servers).map(Fault::ResumeServer).collect());
        }
        self.each_node(words, Fault::Resume)
    }

    /// `n1,n2 from servers` both ways, `n1 to server-0` one way.
    fn link(
        &self,
        words: &mut Words<'_>,
        fault: fn(Party, Party) -> Fault,
    ) -> Result<Vec<Fault>, ParseError> {
        let ones = self.parties(words)?;
        let how = words.word("`from` or `to`")?;
        let both = match how.text {
            "from" => true,
            "to" => false,
            other => {
                let text = format!("`from` cuts both ways and `to` one way; `{other}` is neither");
                return Err(words.wrong(how, text));
            }
        };
        let others = self.parties(words)?;
        let mut faults = Vec::new();
        for one in &ones {
            for other in others.iter().filter(|other| *other != one) {
                faults.push(fault(one.clone(), other.clone()));
                if both {
                    faults.push(fault(other.clone(), one.clone()));
                }
            }
        }
        Ok(faults)
    }

    /// Parties with commas between them.
    fn parties(&self, words: &mut Words<'_>) -> Result<Vec<Party>, ParseError> {
        let word = words.word(PARTIES)?;
        let mut parties = Vec::new();
        for name in word.text.split(',') {
            match name {
                "servers" => parties.extend((0..self.servers).map(Party::Server)),
                "nodes" => parties.extend(self.machines().map(Party::Node)),
                "store" => parties.push(Party::Store),
                name if self.nodes.contains_key(name) => parties.push(Party::Node(NodeName::from(name))),
                name => match self.server_named(name) {
                    Some(server) => parties.push(Party::Server(server)),
                    None => return Err(words.wrong(word, format!("here should be {PARTIES}, not `{name}`"))),
                },
            }
        }
        Ok(parties)
    }
}

/// `key:Effect` or `key=value:Effect`.
fn taint(words: &mut Words<'_>) -> Result<Taint, ParseError> {
    let word = words.word("a taint such as key=value:NoExecute")?;
    let wrong =
        || words.wrong(word, format!("a taint looks like key=value:NoExecute, not like `{}`", word.text));
    let (name, effect) = word.text.rsplit_once(':').ok_or_else(wrong)?;
    let effect = effect_of(effect).ok_or_else(wrong)?;
    let (key, value) = name.split_once('=').unwrap_or((name, ""));
    Ok(Taint::new(key, effect).with_value(value))
}

/// The effect of that name.
pub(super) fn effect_of(text: &str) -> Option<TaintEffect> {
    match text {
        "NoSchedule" => Some(TaintEffect::NoSchedule),
        "PreferNoSchedule" => Some(TaintEffect::PreferNoSchedule),
        "NoExecute" => Some(TaintEffect::NoExecute),
        _ => None,
    }
}

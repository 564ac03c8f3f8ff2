//! A write: expectations, law and epoch in one transaction.
//!
//! Responsible for: running the real law of `registry` on the store as it is at this very moment, comparing what the
//! writer expects, and telling the world what was written. Leaves to the callers how a request gets here and how its
//! answer gets back, or not.
//!
//! Invariant: everything that the law read is compared in the same transaction. In virtual time that is trivially so,
//! because nothing happens in between; a body runs the same steps as a compare-and-set loop.

use agent::{OpId, Outcome};
use api::edit::Edit;
use api::flaw::Flaw;
use api::view::View;
use api::write::{Deletion, New};
use api::{Duration, Epoch, Kind, ObjectKey, Rev, Time, Uid};
use control::decision::{Action, Expect, Verb};
use control::mind::Ticket;
use registry::{Caller, Effect, Occasion};
use serde_json::Value as Tree;

use crate::cluster::Cluster;
use crate::event::{Event, MachineEvent};
use crate::network::Site;
use crate::observe::Observation;
use crate::truth::Change;

/// How a write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answered {
    /// It is so, since this revision at the latest.
    Done(Rev),
    /// An expectation did not hold at this revision.
    Stale(Rev),
    /// There is an object of that name.
    Exists(Rev),
    /// There is no such object.
    NotFound(Rev),
    /// The law refused it.
    Refused,
    /// Nothing happened.
    Unavailable,
    /// The writer's term is over. Nothing happened.
    Deposed,
    /// The answer was lost.
    Unknown,
}

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act<'a> {
    Create(&'a New),
    Edit(&'a ObjectKey, &'a Edit),
    Delete(&'a ObjectKey, &'a Deletion),
}

/// Who writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Author<'a> {
    pub(crate) caller: &'a Caller,
    /// The time of the server through which it goes.
    pub(crate) local: Time,
    /// Compared with the store's, for controllers.
    pub(crate) term: Option<Epoch>,
}

/// A write by the agent of a machine, on its way.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) machine: usize,
    pub(crate) boot: u32,
    pub(crate) life: u32,
    pub(crate) op: OpId,
    /// Who the node is.
    pub(crate) uid: Uid,
    pub(crate) what: agent::Call,
    /// The caller has given up already.
    pub(crate) given_up: bool,
}

/// An agent gives a request up after this long.
pub(crate) const CALL_PATIENCE: Duration = Duration::from_secs(4);

impl Cluster {
    /// Runs one write. Whoever must hear of it is told.
    pub(crate) fn write(
        &mut self,
        act: Act<'_>,
        expects: &[Expect],
        author: Author<'_>,
        by: impl FnOnce() -> String,
    ) -> Answered {
        let head = self.truth.head();
        if !expects.iter().all(|expect| self.holds(expect)) {
            return Answered::Stale(head);
        }
        let uid = Uid::from(format!("uid-{}", self.last_uid + 1));
        let writes = match self.plan(act, author, &uid) {
            Ok(writes) => writes,
            Err(answered) => {
                self.refused += u64::from(answered == Answered::Refused);
                return answered;
            }
        };
        let Some(changes) = self.truth.commit(writes, author.term) else { return Answered::Deposed };
        self.last_uid += u64::from(matches!(act, Act::Create(_)));
        let rev = changes.first().map_or(head, |change| change.rev);
        if !changes.is_empty() {
            self.publish(changes, by());
        }
        Answered::Done(rev)
    }

    /// What the law makes of the act.
    fn plan(
        &self,
        act: Act<'_>,
        author: Author<'_>,
        uid: &Uid,
    ) -> Result<Vec<(ObjectKey, Option<Tree>)>, Answered> {
        let head = self.truth.head();
        let read = |key: &ObjectKey| self.truth.view(key).cloned();
        let on = Occasion { now: author.local, caller: author.caller, law: &self.law, read: &read };
        let refused = |refusal: registry::Refusal| match refusal {
            registry::Refusal::NotFound { .. } => Answered::NotFound(head),
            registry::Refusal::Conflict { .. } => Answered::Stale(head),
            registry::Refusal::Invalid { .. } | registry::Refusal::Forbidden { .. } => Answered::Refused,
        };
        let (key, effect, tree) = match act {
            Act::Create(new) => {
                let key = new.key();
                if self.truth.get(&key).is_some() {
                    return Err(Answered::Exists(head));
                }
                let owner = match new {
                    New::Object(_) => None,
                    New::Pod { owner, .. } | New::Claim { owner, .. } => self.truth.get(owner),
                };
                let owner = owner.map(|object| &*object.tree);
                let tree = registry::create(new, owner, uid, &on).map_err(refused)?;
                (key, Effect::Put, tree)
            }
            Act::Edit(key, edit) => {
                let mut tree = (*self.truth.get(key).ok_or(Answered::NotFound(head))?.tree).clone();
                let effect = registry::edit(key, &mut tree, edit, &on).map_err(refused)?;
                (key.clone(), effect, tree)
            }
            Act::Delete(key, deletion) => {
                let mut tree = (*self.truth.get(key).ok_or(Answered::NotFound(head))?.tree).clone();
                let effect = registry::delete(key, &mut tree, deletion, &on).map_err(refused)?;
                (key.clone(), effect, tree)
            }
        };
        Ok(match effect {
            Effect::Same => Vec::new(),
            Effect::Put => vec![(key, Some(tree))],
            Effect::Remove { tombstone: None } => vec![(key, None)],
            Effect::Remove { tombstone: Some(stone) } => {
                let uid = tree.pointer("/metadata/uid").and_then(Tree::as_str).unwrap_or_default();
                vec![(ObjectKey::cluster(Kind::Tombstone, uid), Some(stone)), (key, None)]
            }
        })
    }

    fn holds(&self, expect: &Expect) -> bool {
        let fresh = self.config.flaw != Some(Flaw::NoFreshRead);
        match expect {
            Expect::At(key, rev) => self.truth.get(key).is_some_and(|object| object.rev == *rev),
            Expect::Uid(key, uid) => self.truth.view(key).is_some_and(|view| view.meta().uid == *uid),
            Expect::Absent(key) => self.truth.get(key).is_none(),
            Expect::Fresh(key, rev) => !fresh || self.truth.get(key).is_some_and(|object| object.rev == *rev),
            Expect::Gone(key) => !fresh || self.truth.get(key).is_none(),
        }
    }

    /// Tells everybody who watches.
    pub(crate) fn publish(&mut self, changes: Vec<Change>, by: String) {
        for change in changes {
            self.publish_evidence(&change);
            self.notify_machines(&change);
            self.notify_attacher(&change);
            let Change { rev, key, old, new } = change;
            self.state(Observation::Written { rev, key, old, new, by: by.clone() });
        }
        self.watch_all();
    }

    fn publish_evidence(&mut self, change: &Change) {
        let Some(View::NodeIncident(new)) = &change.new else { return };
        let before = match &change.old {
            Some(View::NodeIncident(old)) => old.status.evidence.len(),
            Some(_) | None => 0,
        };
        for evidence in new.status.evidence.iter().skip(before) {
            let (uid, boot) = (new.spec.node_uid.clone(), new.spec.boot_id.clone());
            self.state(Observation::Evidence { uid, boot, kind: evidence.kind });
        }
    }
}

// === who writes ===

impl Cluster {
    /// An action of a controller.
    pub(crate) fn carry_out(&mut self, server: usize, ticket: &Ticket, action: &Action) -> Answered {
        let act = match &action.verb {
            Verb::Create(new) => Act::Create(new),
            Verb::Edit(key, edit) => Act::Edit(key, edit),
            Verb::Delete(key, deletion) => Act::Delete(key, deletion),
            // Events are for people: in a simulation for those who read scenario files.
            Verb::Note(note) => {
                self.state(Observation::Noted(note.clone()));
                return Answered::Done(self.truth.head());
            }
        };
        // Invariant G1.
        let term = (self.config.flaw != Some(Flaw::NoEpoch)).then(|| ticket.term());
        let author =
            Author { caller: &Caller::Controller, local: self.servers[server].clock.local(self.now), term };
        let answered =
            self.write(act, &action.expect, author, || format!("server-{server}/{}", ticket.origin().0));
        if let Answered::Done(_) = answered {
            for count in &action.counts {
                self.state(Observation::Counted(count.clone()));
            }
        }
        answered
    }

    /// A write by a human or by the storage's controller, through whatever server runs. `None` if none does.
    pub(crate) fn write_from_outside(
        &mut self,
        act: Act<'_>,
        expects: &[Expect],
        by: &str,
    ) -> Option<Answered> {
        let server = self.any_server()?;
        let author =
            Author { caller: &Caller::User, local: self.servers[server].clock.local(self.now), term: None };
        Some(self.write(act, expects, author, || by.to_owned()))
    }

    /// A server that answers requests and reaches the store.
    pub(crate) fn any_server(&self) -> Option<usize> {
        (0..self.servers.len())
            .find(|s| self.servers[*s].standing == crate::server::Standing::Up && self.store_connects(*s))
    }

    /// A write by an agent has reached a server and the store behind it.
    pub(crate) fn call_at_server(&mut self, server: usize, call: &Call) {
        if !self.store_connects(server) {
            self.answer_call(call, Outcome::Unreachable, CALL_PATIENCE);
            return;
        }
        let caller = Caller::Node { name: self.machines[call.machine].name.clone(), uid: call.uid.clone() };
        let author =
            Author { caller: &caller, local: self.servers[server].clock.local(self.now), term: None };
        let mut expects = Vec::new();
        let new;
        let act = match &call.what {
            agent::Call::Create(view) => {
                new = New::Object(Box::new(view.clone()));
                Act::Create(&new)
            }
            agent::Call::Edit { key, uid, edit } => {
                expects.extend((!uid.is_empty()).then(|| Expect::Uid(key.clone(), uid.clone())));
                Act::Edit(key, edit)
            }
            agent::Call::Remove { key, uid } => {
                expects.extend((!uid.is_empty()).then(|| Expect::Uid(key.clone(), uid.clone())));
                Act::Delete(key, &Deletion::Force)
            }
        };
        let exists = self.truth.get(&call.what.key()).is_some();
        let answered = self.write(act, &expects, author, || format!("node {}", caller_name(&caller)));
        let outcome = match answered {
            Answered::Done(rev) => Outcome::Written(rev),
            Answered::Stale(_) if !exists => Outcome::NotFound,
            Answered::Stale(_) | Answered::Refused => Outcome::Conflict,
            Answered::Exists(_) => Outcome::Exists,
            Answered::NotFound(_) => Outcome::NotFound,
            Answered::Unavailable | Answered::Deposed | Answered::Unknown => Outcome::Unreachable,
        };
        let lost = self.chance.per_mille(self.lose_answers);
        let back = self.network.stream(&mut self.chance, Site::Server(server), Site::Machine(call.machine));
        match back.filter(|_| !lost) {
            Some(delay) => self.answer_call(call, outcome, delay),
            None => self.answer_call(call, Outcome::Unreachable, CALL_PATIENCE),
        }
    }

    /// Hands an outcome to the agent that called, unless it has given up.
    pub(crate) fn answer_call(&mut self, call: &Call, outcome: Outcome, after: Duration) {
        if !call.given_up {
            let what = MachineEvent::Called { life: call.life, op: call.op, outcome };
            self.agenda
                .put(self.now + after, Event::Machine { machine: call.machine, boot: call.boot, what });
        }
    }
}

fn caller_name(caller: &Caller) -> &str {
    match caller {
        Caller::Node { name, .. } => name.as_str(),
        Caller::Controller => "controller",
        Caller::User => "user",
    }
}

//! What a controller answers: actions, the next deadline, and why.
//!
//! Responsible for: the vocabulary of decisions. Leaves to the driver (a body) to carry actions out, to `registry`
//! how an [`Edit`] changes an object.
//!
//! Invariants: every action says what it expects, so that a decision on a stale view fails cleanly. Actions of one
//! decision are carried out in order and stop at the first that does not succeed; every prefix is safe. Names of new
//! objects are derived from what the decision knows, so that a decision made twice collides with itself.

use std::fmt;

use api::edit::Edit;
pub use api::write::{Deletion, Dress, New};
use api::{ObjectKey, Rev, Time, Uid};

/// The answer to "what should be done about this key now?".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// In order; stop at the first that does not succeed.
    pub actions: Vec<Action>,
    /// When to ask again if nothing changes before.
    pub wake: Option<Time>,
    /// What is being waited for or done, for people.
    pub why: Option<Note>,
}

/// One conditional act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// What to do.
    pub verb: Verb,
    /// What must hold in the store, in the same transaction.
    pub expect: Vec<Expect>,
    /// The bucket it must take a token from, if any.
    pub pace: Option<Pace>,
    /// Counters that grow when it succeeds; data, so that a body can turn them into metrics.
    pub counts: Vec<Count>,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Make an object. If it exists already, that counts as [`Outcome::Stale`](crate::queue::Outcome).
    Create(New),
    /// Change an object.
    Edit(ObjectKey, Edit),
    /// Delete an object.
    Delete(ObjectKey, Deletion),
    /// Write an Event. Idempotent by its subject, reason and `once`.
    Note(Note),
}

/// What an action expects of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// The object was last changed at this revision.
    At(ObjectKey, Rev),
    /// The object has this identity. The law of deletion and edit carries it as a precondition.
    Uid(ObjectKey, Uid),
    /// There is no such object.
    Absent(ObjectKey),
    /// Last gate of an irreversible step: as `At`, but a fresh read of the *Node* that the step is about. A variant of
    /// its own, so that the step's safety can be seen, counted, and left out on purpose by a mutation.
    Fresh(ObjectKey, Rev),
    /// Last gate of an irreversible step about a Node that is gone.
    Gone(ObjectKey),
}

/// A class of paced actions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pace {
    /// NoExecute taints in one zone (NLC-23); the rate follows the zone's state.
    Evict(crate::world::Zone),
}

/// Something that happened, said to people: becomes an Event, a log line, an answer of `why`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What it is about.
    pub about: ObjectKey,
    /// One word, upstream's where upstream has one.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
    /// Normal or Warning.
    pub tone: Tone,
    /// Makes the note the same note when the decision is made again: uid, revision or time of its cause.
    pub once: String,
}

/// How bad a note is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// It is how it should be.
    Normal,
    /// Someone should look.
    Warning,
}

/// A counter and its labels.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count {
    /// Name of the metric, upstream's where upstream has one.
    pub metric: &'static str,
    /// Label names and values, in the metric's order.
    pub labels: Vec<(&'static str, String)>,
}

// === impl Decision ===

impl Decision {
    /// Nothing to do until something changes.
    pub fn rest() -> Self {
        Self::default()
    }

    /// Nothing to do until `at`.
    pub fn wait(at: Time) -> Self {
        Self { wake: Some(at), ..Self::default() }
    }

    /// Adds an action.
    #[must_use]
    pub fn with(mut self, action: Action) -> Self {
        self.actions.push(action);
        self
    }

    /// Says why.
    #[must_use]
    pub fn because(mut self, note: Note) -> Self {
        self.why = Some(note);
        self
    }

    /// Asks to be woken at `at` at the latest.
    pub fn wake_at(&mut self, at: Time) {
        self.wake = Some(self.wake.map_or(at, |w| w.min(at)));
    }
}

// === impl Action ===

impl Action {
    /// Makes an object that must not be there yet.
    pub fn create(new: New) -> Self {
        let key = new.key();
        Self::of(Verb::Create(new)).expecting(Expect::Absent(key))
    }

    /// Changes an object that is at revision `rev`.
    pub fn edit(key: ObjectKey, rev: Rev, edit: Edit) -> Self {
        Self::of(Verb::Edit(key.clone(), edit)).expecting(Expect::At(key, rev))
    }

    /// Changes an object with this identity, whatever its revision: for edits that are right on any of them.
    pub fn edit_of(key: ObjectKey, uid: Uid, edit: Edit) -> Self {
        Self::of(Verb::Edit(key.clone(), edit)).expecting(Expect::Uid(key, uid))
    }

    /// Deletes an object with this identity.
    pub fn delete(key: ObjectKey, uid: Uid, deletion: Deletion) -> Self {
        Self::of(Verb::Delete(key.clone(), deletion)).expecting(Expect::Uid(key, uid))
    }

    /// Says something to people.
    pub fn note(note: Note) -> Self {
        Self::of(Verb::Note(note))
    }

    fn of(verb: Verb) -> Self {
        Self { verb, expect: Vec::new(), pace: None, counts: Vec::new() }
    }

    /// Adds an expectation.
    #[must_use]
    pub fn expecting(mut self, expect: Expect) -> Self {
        self.expect.push(expect);
        self
    }

    /// Takes a token first.
    #[must_use]
    pub fn paced(mut self, pace: Pace) -> Self {
        self.pace = Some(pace);
        self
    }

    /// Counts when it succeeds.
    #[must_use]
    pub fn counting(mut self, metric: &'static str, labels: &[(&'static str, &str)]) -> Self {
        let labels = labels.iter().map(|(k, v)| (*k, (*v).to_owned())).collect();
        self.counts.push(Count { metric, labels });
        self
    }
}

// === impl Note ===

impl Note {
    /// A note in a normal tone.
    pub fn normal(
        about: ObjectKey,
        reason: &'static str,
        message: impl Into<String>,
        once: impl Into<String>,
    ) -> Self {
        Self { about, reason, message: message.into(), tone: Tone::Normal, once: once.into() }
    }

    /// A note that someone should look at.
    pub fn warning(
        about: ObjectKey,
        reason: &'static str,
        message: impl Into<String>,
        once: impl Into<String>,
    ) -> Self {
        Self { about, reason, message: message.into(), tone: Tone::Warning, once: once.into() }
    }
}

/// Prose, for traces and for text tests: `edit pod/default/db-0 @12: FailPod { .. }`.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.verb {
            Verb::Create(New::Object(view)) => write!(f, "create {}", view.key())?,
            Verb::Create(new @ New::Pod { owner, .. }) => write!(f, "create {} for {owner}", new.key())?,
            Verb::Create(new @ New::Claim { owner, .. }) => write!(f, "create {} for {owner}", new.key())?,
            Verb::Edit(key, edit) => write!(f, "edit {key}: {edit:?}")?,
            Verb::Delete(key, Deletion::Graceful) => write!(f, "delete {key}")?,
            Verb::Delete(key, Deletion::Force) => write!(f, "force-delete {key}")?,
            Verb::Delete(key, Deletion::Proven { incident }) => {
                write!(f, "delete {key} proven by {incident}")?
            }
            Verb::Note(note) => write!(f, "note {} {}: {}", note.about, note.reason, note.message)?,
        }
        for count in &self.counts {
            write!(f, " [{}", count.metric)?;
            for (label, value) in &count.labels {
                write!(f, " {label}={value}")?;
            }
            write!(f, "]")?;
        }
        Ok(())
    }
}
